//! Inputs and outputs of the model.

use super::call::Importer;
use super::complex::{from_pairs, to_pairs};
use super::format::{Pnnx, extent, name_of};
use super::item::{Item, complex_dtype, dtype_of};
use super::promotion;
use crate::model::{Dimension, Model, OperandId, OperandType, Operator};
use mlc_import::{DeclaredInput, Fault, Format, ImportOptions};
use mlc_ir::{Code, DType, Diagnostic, Location, Value};

type Site<'m> = mlc_import::Site<'m, Pnnx>;

/// Adds an input for each `pnnx.Input`.
pub(super) fn import_inputs(importer: &mut Importer<'_>, options: &ImportOptions) {
    let model = importer.model;
    let inputs = model.operators.iter().filter(|operator| operator.kind == "pnnx.Input");
    let inputs: Vec<(&Operator, OperandId)> =
        inputs.filter_map(|operator| Some((operator, *operator.outputs.first()?))).collect();
    let declared: Vec<DeclaredInput<'_>> =
        inputs.iter().map(|&(operator, operand)| declared(model, operator, operand)).collect();
    let types = model.operands.iter().filter_map(|operand| operand.ty.as_ref());
    let named = types.flat_map(|ty| &ty.shape).filter_map(|dimension| match dimension {
        Dimension::Symbol(name) => Some(name.as_str()),
        _ => None,
    });
    let shapes = importer.input_shapes(&declared, named, options);
    for ((operator, operand), shape) in inputs.into_iter().zip(shapes) {
        let site = match importer.site(operator) {
            Ok(site) => site,
            Err(diagnostic) => return importer.findings.push(diagnostic),
        };
        let item = shape.and_then(|shape| add_input(importer, &site, operand, shape));
        let item = item.unwrap_or_else(|fault| {
            importer.report(&site, fault);
            Item::Unknown
        });
        if let Err(fault) = importer.define(name_of(model, operand), item) {
            importer.report(&site, fault);
        }
    }
}

fn declared<'m>(model: &'m Model, operator: &'m Operator, operand: OperandId) -> DeclaredInput<'m> {
    let operand = model.operand(operand);
    let shape = operand.ty.as_ref().map(|ty: &OperandType| ty.shape.iter().map(extent).collect());
    DeclaredInput { name: &operator.name, alias: Some(&operand.name), shape }
}

fn add_input<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    operand: OperandId,
    mut shape: Vec<usize>,
) -> Result<Item, Fault> {
    let element_type = importer.model.operand(operand).ty.as_ref().map(|ty| ty.element_type);
    let complex = element_type.and_then(complex_dtype);
    let dtype = match (element_type, complex) {
        (None, _) => {
            let message = "the file doesn't say the input's data type; f32 is assumed";
            importer.warn(site, Code::InputShapeUnknown, message);
            DType::F32
        }
        (_, Some(dtype)) => {
            shape.push(2);
            let message = "the complex input has a last axis of real and imaginary part";
            importer.warn(site, Code::VariantUnsupported, message);
            dtype
        }
        (Some(element_type), None) => {
            dtype_of(element_type).ok_or_else(|| Fault::variant("the file doesn't know the input's data type"))?
        }
    };
    let ty = importer.input_type(dtype, &shape)?;
    importer.builder.begin(&site.name);
    let value = importer.builder.input(&site.name, ty);
    if complex.is_some() { from_pairs(&mut importer.builder, value) } else { Ok(Item::Tensor(value)) }
}

/// Adds the outputs of every `pnnx.Output`; without one, the operands that nothing uses.
pub(super) fn import_outputs(importer: &mut Importer<'_>) {
    let model = importer.model;
    let outputs: Vec<&Operator> = model.operators.iter().filter(|operator| operator.kind == "pnnx.Output").collect();
    let mut found: Vec<(&Operator, Value)> = Vec::new();
    let operands: Vec<OperandId> = if outputs.is_empty() {
        let unused = (0..model.operands.len() as u32).map(OperandId);
        unused.filter(|&operand| model.operand(operand).consumers.is_empty()).collect()
    } else {
        outputs.iter().flat_map(|operator| operator.inputs.iter().copied()).collect()
    };
    for operand in operands {
        collect_output(importer, operand, &mut found);
    }
    if found.is_empty() && !importer.failed() {
        let message = "the model has no output that is a tensor";
        let location = outputs.first().map_or(Location::default(), |operator| {
            Pnnx::describe(operator).location.at_operator(&operator.kind, &operator.name)
        });
        importer.findings.push(Diagnostic::error(Code::NoOutput, location, message));
    }
    for (index, &(operator, value)) in found.iter().enumerate() {
        let single = found.iter().filter(|(other, _)| other.name == operator.name).count() == 1;
        let name = if single { operator.name.clone() } else { format!("output_{index}") };
        importer.builder.output(&name, value);
    }
}

/// Flattens tuples and lists depth first, from left to right. A tuple's items keep the operators that made them.
fn collect_output<'m>(importer: &mut Importer<'m>, operand: OperandId, found: &mut Vec<(&'m Operator, Value)>) {
    let model = importer.model;
    let mut pending = vec![operand];
    while let Some(operand) = pending.pop() {
        let producer = model.operator(model.operand(operand).producer);
        if matches!(producer.kind.as_str(), "prim::TupleConstruct" | "prim::ListConstruct") {
            pending.extend(producer.inputs.iter().rev());
            continue;
        }
        let site = match importer.site(producer) {
            Ok(site) => site,
            Err(diagnostic) => return importer.findings.push(diagnostic),
        };
        let mut items = match importer.resolve(name_of(model, operand)) {
            Ok(item) => vec![item],
            Err(fault) => return importer.report(&site, fault),
        };
        while let Some(item) = items.pop() {
            match item {
                Item::List(inner) => items.extend(inner.into_iter().rev()),
                Item::None => importer.warn(&site, Code::Unused, "an output is None and left out"),
                Item::Unknown => {}
                Item::Tensor(value) => found.push((producer, value)),
                item => match number_output(importer, &site, &item) {
                    Ok(value) => found.push((producer, value)),
                    Err(fault) => importer.report(&site, fault),
                },
            }
        }
    }
}

fn number_output<'m>(importer: &mut Importer<'m>, site: &Site<'m>, item: &Item) -> Result<Value, Fault> {
    if let Item::Complex(re, im) = item {
        importer.warn(site, Code::VariantUnsupported, "the complex output has a last axis of real and imaginary part");
        importer.builder.begin(&site.name);
        return to_pairs(&mut importer.builder, *re, *im);
    }
    let dtype = promotion::common_dtype(&importer.builder, &[item])
        .ok_or_else(|| Fault::variant(format!("an output of the model is {}", item.description())))?;
    importer.builder.begin(&site.name);
    promotion::operand(&mut importer.builder, item, dtype)
}
