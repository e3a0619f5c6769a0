//! Inputs and outputs of the model.

use super::call::{Importer, Item};
use crate::proto::{DimensionProto, TensorTypeProto, TypeProto, ValueInfoProto};
use crate::tensor;
use mlc_import::{DeclaredInput, Extent, Fault, ImportOptions};
use mlc_ir::{Attribute, Code, Diagnostic, Location, TensorType};

/// Adds an input for each input of the graph that has no value in the file.
pub(super) fn import_inputs(importer: &mut Importer<'_>, options: &ImportOptions) {
    let graph = &importer.model.model.graph;
    let constants = importer.scope();
    let inputs: Vec<&ValueInfoProto> =
        graph.input.iter().filter(|input| !constants.has_initializer(&input.name)).collect();
    let declared = inputs.iter().map(|input| declared(input));
    let declared = match declared.collect::<Result<Vec<_>, Fault>>() {
        Ok(declared) => declared,
        Err(fault) => return importer.findings.report(Location::default(), fault),
    };
    let shapes = importer.input_shapes(&declared, [], options);
    let values = importer.given_values(&declared, options);
    for ((input, shape), value) in inputs.iter().zip(shapes).zip(values) {
        if let Err(fault) = shape.and_then(|shape| add_input(importer, input, &shape, value)) {
            importer.report_value(&input.name, fault);
        }
    }
}

fn add_input<'m>(
    importer: &mut Importer<'m>,
    input: &'m ValueInfoProto,
    shape: &[usize],
    given: Option<Attribute>,
) -> Result<(), Fault> {
    let ty = input_type(importer, input, shape)?;
    importer.builder.begin(&input.name);
    let own = importer.builder.input(&input.name, ty);
    let value = importer.input_or_given(&input.name, own, given)?;
    let element_type = tensor_type(input).map_or(0, |ty| ty.elem_type);
    if let Ok(Some(bits)) = tensor::packed_bits(element_type.into()) {
        importer.set_note(value, bits);
    }
    importer.define(&input.name, Item::Tensor(value))
}

fn declared(input: &ValueInfoProto) -> Result<DeclaredInput<'_>, Fault> {
    let shape = tensor_type(input).and_then(|ty| ty.shape.as_ref());
    let shape = shape.map(|shape| shape.dim.iter().map(extent).collect::<Result<Vec<_>, Fault>>()).transpose()?;
    Ok(DeclaredInput { name: &input.name, alias: None, shape })
}

fn extent(dimension: &DimensionProto) -> Result<Extent<'_>, Fault> {
    match (dimension.dim_value, dimension.dim_param.as_deref()) {
        (Some(extent), _) => usize::try_from(extent)
            .map(Extent::Known)
            .map_err(|_| Fault::new(Code::NumberOutOfRange, format!("an input's extent is {extent}"))),
        (None, Some(name)) if !name.is_empty() => Ok(Extent::Named(name)),
        (None, _) => Ok(Extent::Open),
    }
}

fn input_type(importer: &Importer<'_>, input: &ValueInfoProto, shape: &[usize]) -> Result<TensorType, Fault> {
    let name = &input.name;
    let Some(declared) = tensor_type(input) else {
        let kind = kind(input.r#type.as_ref());
        return Err(Fault::variant(format!("the input `{name}` is {kind}, which isn't supported")));
    };
    let dtype = tensor::dtype_of(declared.elem_type.into())
        .map_err(|fault| Fault { message: format!("the input `{name}`: {}", fault.message), ..fault })?;
    importer.input_type(dtype, shape)
}

/// Adds the outputs of the graph.
pub(super) fn import_outputs(importer: &mut Importer<'_>) {
    let model = importer.model.model;
    if model.graph.output.is_empty() {
        importer.findings.push(Diagnostic::error(Code::NoOutput, Location::default(), "the model has no output"));
    }
    for output in &model.graph.output {
        match importer.resolve(&output.name) {
            Ok(Item::Tensor(value)) => {
                importer.builder.output(&output.name, value);
                check_declared(importer, output, value);
            }
            Ok(item) => {
                let found = match item {
                    Item::Sequence(_) => "a sequence",
                    _ => "absent",
                };
                let message = format!("the output `{}` must be a tensor, it is {found}", output.name);
                importer.report_value(&output.name, Fault::variant(message));
            }
            Err(fault) => importer.report_value(&output.name, fault),
        }
    }
}

/// Compares an output with what the file says about it.
fn check_declared(importer: &mut Importer<'_>, output: &ValueInfoProto, value: mlc_ir::Value) {
    let Some(declared) = tensor_type(output) else { return };
    let ty = importer.builder.ty(value).clone();
    // Where the file says strings, places in a list of names are; the operator that makes them has told so.
    let dtype_fits = matches!(declared.elem_type, 0 | tensor::STRING)
        || tensor::dtype_of(declared.elem_type.into()).is_ok_and(|dtype| dtype == ty.dtype);
    let shape_fits = declared.shape.as_ref().is_none_or(|shape| {
        let fits = |(dimension, &extent): (&DimensionProto, &usize)| {
            dimension.dim_value.is_none_or(|declared| usize::try_from(declared) == Ok(extent))
        };
        shape.dim.len() == ty.rank() && shape.dim.iter().zip(&ty.shape).all(fits)
    });
    if dtype_fits && shape_fits {
        return;
    }
    let dims = declared.shape.iter().flat_map(|shape| &shape.dim).map(dimension_text).collect::<Vec<_>>().join(", ");
    let message = format!(
        "the output `{}` is {ty}, the file says element type {} and shape [{dims}]",
        output.name, declared.elem_type
    );
    let location = Location { node: Some(output.name.clone()), ..Location::default() };
    importer.findings.push(Diagnostic::warning(Code::ShapeMismatch, location, message));
}

fn dimension_text(dimension: &DimensionProto) -> String {
    match (dimension.dim_value, dimension.dim_param.as_deref()) {
        (Some(extent), _) => extent.to_string(),
        (None, Some(name)) if !name.is_empty() => name.to_owned(),
        _ => "?".into(),
    }
}

/// The type of a tensor, also of one that may be absent: the caller of a program gives all inputs.
fn tensor_type(value: &ValueInfoProto) -> Option<&TensorTypeProto> {
    let ty = value.r#type.as_ref()?;
    let optional = || ty.optional_type.as_ref()?.elem_type.as_ref()?.tensor_type.as_ref();
    ty.tensor_type.as_ref().or_else(optional)
}

fn kind(ty: Option<&TypeProto>) -> &'static str {
    match ty {
        Some(ty) if ty.sequence_type.is_some() => "a sequence",
        Some(ty) if ty.map_type.is_some() => "a map",
        Some(ty) if ty.optional_type.is_some() => "an optional value",
        Some(ty) if ty.sparse_tensor_type.is_some() => "a sparse tensor",
        _ => "without a type",
    }
}
