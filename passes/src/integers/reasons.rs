//! Why products of real numbers weren't made products of integers.

use super::products::{along_results, is_plain, sums_fit};
use super::real::{Real, is_narrow, reals};
use super::rules;
use crate::canonicalise::simplifier::Simplifier;
use crate::rewrite::{Match, Rule};
use mlc_ir::{DType, Graph, IntegerForm, OperatorError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A node that multiplies real numbers, and why it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Its name.
    pub node: Arc<str>,
    /// The source operators that it stands for.
    pub origins: BTreeSet<Arc<str>>,
    /// A sentence without a subject.
    pub text: String,
}

/// The products of real numbers in a graph as an importer gives it, each with the first thing that keeps it from being one of integers.
/// Bodies of loops aren't looked into.
///
/// # Errors
/// When an operator doesn't accept its operands, which a verified graph excludes.
pub fn reasons(graph: &Graph) -> Result<Vec<Reason>, OperatorError> {
    let rules: Vec<Rule> = rules();
    let mut simplifier = Simplifier::new(&graph.name, &rules, false);
    simplifier.import(graph)?;
    let built = &simplifier.graph;
    // What a rule has replaced is still there.
    let mut live = built.clone();
    live.remove_dead();
    let found = live.node_ids().filter_map(|id| {
        let node = built.node(id);
        let [ty] = &node.results[..] else { return None };
        let operands: Vec<_> = built.operands(id).into_iter().map(|value| simplifier.class_of(value)).collect();
        let names: Vec<&str> = built.operands(id).into_iter().map(|value| &*built.node(value.node).name).collect();
        let text = if node.op.integer_form() == IntegerForm::Products {
            product(&Match { view: &simplifier, op: &node.op, operands: &operands, ty }, &names)?
        } else if ty.dtype.is_float() && node.op.work(&built.operand_types(id), &node.results).macs > 0 {
            format!("the operator {} has no form of integers", node.op.name())
        } else {
            return None;
        };
        Some(Reason { node: node.name.clone(), origins: node.origins.clone(), text })
    });
    Ok(found.collect())
}

/// Why a sum of products is one of real numbers, if it is.
fn product(m: &Match<'_>, names: &[&str]) -> Option<String> {
    if m.ty.dtype != DType::F32 || !is_plain(m.op) {
        return m.ty.dtype.is_float().then(|| format!("the sums are {}, those of f32 can be replaced", m.ty.dtype));
    }
    // What the model's file says of weights tells more than what is computed of its inputs.
    let (x, weights) = match (conversion(m, 0, names), conversion(m, 1, names)) {
        (_, Err(reason)) | (Err(reason), _) => return Some(reason),
        (Ok(x), Ok(weights)) => (x, weights),
    };
    if !x.is_uniform(m.view) {
        return Some(format!("`{}` has several scales or zero points", names[0]));
    }
    if !sums_fit(m, &x, &weights) {
        return Some("the sums may have more than 32 bits".into());
    }
    let along = along_results(m, &weights);
    along.is_none().then(|| format!("the scales of `{}` don't run along the results", names[1]))
}

/// The integers that stand for an operand, if they are fit for products.
///
/// # Errors
/// Why they aren't.
fn conversion(m: &Match<'_>, k: usize, names: &[&str]) -> Result<Real, String> {
    let (operand, name) = (m.operands[k], names[k]);
    let Some(&own) = reals(m.view, operand).first() else {
        let kind = if m.view.is_constant(operand) { "a constant of real numbers" } else { "computed in real numbers" };
        return Err(format!("`{name}` is {kind}, no integers stand for it"));
    };
    let ty = m.view.ty(own.integers);
    if !is_narrow(ty.dtype) {
        return Err(format!("the integers that stand for `{name}` are {}", ty.dtype));
    }
    if !m.view.is_constant(own.scale) {
        return Err(format!("the scale of `{name}` isn't constant"));
    }
    match own.scales(m.view) {
        Some(_) => Ok(own),
        None => Err(format!("the scale of `{name}` isn't a positive number of a usual size")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::text;

    const GRAPH: &str = "mlc 1
graph @t(%x: i8[2, 4], %s: f32[], %r: f32[2, 4], %l: i32[2, 4]) -> (\"a\": f32[2, 3], \"b\": f32[2, 3], \"c\": f32[2, 3], \"d\": f32[2, 3], \"e\": f32[2, 3], \"f\": f32[2, 3]) {
  %ws = constant f32[] [0.5]
  %w = constant i8[4, 3] random(seed = 1)
  %wd = map %w, %ws {expression = multiply(cast_f32(x0), x1)} : f32[4, 3]
  %moving = map %x, %s {expression = multiply(cast_f32(x0), x1)} : f32[2, 4]
  %a = matmul %moving, %wd {transpose_left = false, transpose_right = false} : f32[2, 3]
  %vs = constant f32[2, 1] [0.5, 0.25]
  %rows = map %x, %vs {expression = multiply(cast_f32(x0), x1)} : f32[2, 4]
  %b = matmul %rows, %wd {transpose_left = false, transpose_right = false} : f32[2, 3]
  %c = matmul %r, %wd {transpose_left = false, transpose_right = false} : f32[2, 3]
  %real = constant f32[4, 3] random(seed = 2)
  %xd = map %x, %ws {expression = multiply(cast_f32(x0), x1)} : f32[2, 4]
  %d = matmul %xd, %real {transpose_left = false, transpose_right = false} : f32[2, 3]
  %long = map %l, %ws {expression = multiply(cast_f32(x0), x1)} : f32[2, 4]
  %e = matmul %long, %wd {transpose_left = false, transpose_right = false} : f32[2, 3]
  %f = matmul %xd, %wd {transpose_left = false, transpose_right = false} : f32[2, 3]
  return %a, %b, %c, %d, %e, %f
}
";

    #[test]
    fn products_of_real_numbers_have_a_reason_each() {
        let graph = text::parse(GRAPH, &()).unwrap_or_else(|faults| panic!("{faults:?}"));
        let found = reasons(&graph).unwrap();
        let mut found: Vec<(&str, &str)> = found.iter().map(|reason| (&*reason.node, &*reason.text)).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                ("a", "the scale of `moving` isn't constant"),
                ("b", "`rows` has several scales or zero points"),
                ("c", "`r` is computed in real numbers, no integers stand for it"),
                ("d", "`real` is a constant of real numbers, no integers stand for it"),
                ("e", "the integers that stand for `long` are i32"),
            ]
        );
    }
}
