//! Operators that run other subgraphs, which know nothing but the values that they are given. What constants decide leaves no trace; of
//! a branch that data decide on, both sides are computed and one is selected.

use super::call::{Importer, Site, Table, is_quantized};
use super::format::Region;
use crate::model::Subgraph;
use mlc_import::Handler::Control;
use mlc_import::{Conditional, Fault, Item, Operand};
use mlc_ir::Code;

pub(super) const OPERATORS: Table = &[("IF", Control(branch)), ("WHILE", Control(repeat))];

/// The two subgraphs that an operator runs.
fn regions<'m>(site: &Site<'m>) -> Result<[Region<'m>; 2], Fault> {
    let missing = || Fault::new(Code::ParameterMissing, "it doesn't say which subgraphs it runs");
    site.operator.regions().try_into().map_err(|_| missing())
}

/// Refuses values that have one quantisation in one subgraph and another in the other one. Values without a counterpart are left to those
/// who pair them.
fn check_same_scales(
    (outer, own): (&Subgraph, &[Option<usize>]),
    (inner, given): (&Subgraph, &[usize]),
) -> Result<(), Fault> {
    for (own, given) in own.iter().zip(given) {
        let Some(own) = own.map(|own| &outer.tensors[own]) else { continue };
        let given = &inner.tensors[*given];
        if is_quantized(own) && is_quantized(given) && own.quantization != given.quantization {
            let message = format!(
                "the integers of `{}` stand for other numbers than those of `{}` in the subgraph `{}`",
                own.name, given.name, inner.name
            );
            return Err(Fault::variant(message));
        }
    }
    Ok(())
}

fn named(tensors: &[usize]) -> Vec<Option<usize>> {
    tensors.iter().copied().map(Some).collect()
}

/// `IF`
fn branch<'m>(importer: &mut Importer<'m>, site: &Site<'m>, mut inputs: Vec<Operand>) -> Result<Vec<Operand>, Fault> {
    let (outer, own) = (site.operator.subgraph, site.operator.operator);
    let regions = regions(site)?;
    let results = named(&own.outputs);
    for Region { subgraph, .. } in regions {
        check_same_scales((outer, own.inputs.get(1..).unwrap_or_default()), (subgraph, &subgraph.inputs))?;
        check_same_scales((outer, &results), (subgraph, &subgraph.outputs))?;
    }
    if inputs.is_empty() {
        return Err(Fault::new(Code::OperandCount, "operand 0, the condition, is missing"));
    }
    let given = inputs.split_off(1);
    let condition = inputs[0].to_value(&mut importer.builder, "0, the condition,")?;
    importer.import_branch(site, condition, regions, &given)
}

/// `WHILE`: its operands are what the condition and the first turn are given.
fn repeat<'m>(importer: &mut Importer<'m>, site: &Site<'m>, inputs: Vec<Operand>) -> Result<Vec<Operand>, Fault> {
    let (outer, own) = (site.operator.subgraph, site.operator.operator);
    let [condition, body] = regions(site)?;
    for Region { subgraph, .. } in [condition, body] {
        check_same_scales((outer, &own.inputs), (subgraph, &subgraph.inputs))?;
    }
    check_same_scales((outer, &own.inputs), (body.subgraph, &body.subgraph.outputs))?;
    check_same_scales((outer, &own.inputs), (outer, &own.outputs))?;
    importer.import_conditional(site, Conditional { condition, body, carried: inputs })
}

#[cfg(test)]
mod tests;
