//! Inputs and outputs of the model.

use super::{Importer, Item};
use crate::proto::{DimensionProto, TensorTypeProto, TypeProto, ValueInfoProto};
use crate::tensor;
use mlc_import::Fault;
use mlc_import::{ImportOptions, unknown_dimension};
use mlc_ir::{Code, Diagnostic, Location, TensorType};
use std::collections::BTreeSet;

impl<'a> Importer<'a> {
    /// Adds an input for each input of the graph that has no value in the file.
    pub(super) fn import_inputs(&mut self, options: &ImportOptions) {
        let model = self.model;
        self.dimensions = options.dimensions.iter().map(|(name, &extent)| (name.clone(), extent)).collect();
        let constants = &self.scope().initializers;
        let inputs: Vec<&'a ValueInfoProto> =
            model.graph.input.iter().filter(|input| !constants.contains_key(input.name.as_str())).collect();
        let given = self.given_shapes(&inputs, options);
        // Shapes that the user gives bind names that other inputs' shapes use.
        for (input, shape) in inputs.iter().zip(&given) {
            if let (Some(ty), Some(shape)) = (tensor_type(input), shape) {
                self.bind_dimensions(ty, shape);
            }
        }
        for (input, shape) in inputs.iter().zip(given) {
            match self.input_type(input, shape) {
                Ok(ty) => {
                    self.builder.begin(&input.name);
                    let value = self.builder.input(&input.name, ty);
                    let declared = tensor_type(input).map_or(0, |ty| ty.elem_type);
                    self.note_packed(value, 0, declared);
                    if let Err(fault) = self.define(&input.name, Item::Tensor(value)) {
                        self.report_at(&input.name, fault);
                    }
                }
                Err(fault) => self.report_at(&input.name, fault),
            }
        }
        self.report_unused_dimensions(&inputs, options);
    }

    fn report_at(&mut self, name: &str, fault: Fault) {
        let location = Location { node: Some(name.to_owned()), ..Location::default() };
        let mut diagnostic = Diagnostic::error(fault.code, location, fault.message);
        if let Some(help) = fault.help {
            diagnostic = diagnostic.with_help(help);
        }
        self.findings.push(diagnostic);
    }

    /// The shape that the user gives for each input, by its name or number.
    fn given_shapes(&mut self, inputs: &[&'a ValueInfoProto], options: &ImportOptions) -> Vec<Option<Vec<usize>>> {
        let mut used = Vec::new();
        let mut given = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let names = [input.name.clone(), index.to_string()];
            let key = names.into_iter().find(|name| options.input_shapes.contains_key(name));
            given.push(key.as_ref().and_then(|key| options.input_shapes.get(key).cloned()));
            used.extend(key);
        }
        for name in options.input_shapes.keys().filter(|name| !used.contains(name)) {
            let message = format!("a shape is given for the input `{name}`, which the model doesn't have");
            let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
            let diagnostic = Diagnostic::error(Code::OptionMismatch, Location::default(), message);
            self.findings.push(diagnostic.with_help(format!("the inputs are: {}", names.join(", "))));
        }
        given
    }

    fn report_unused_dimensions(&mut self, inputs: &[&ValueInfoProto], options: &ImportOptions) {
        let shapes = inputs.iter().filter_map(|input| tensor_type(input)?.shape.as_ref());
        let dimensions = shapes.flat_map(|shape| &shape.dim).filter_map(|dimension| dimension.dim_param.as_deref());
        let known: BTreeSet<&str> = dimensions.filter(|name| !name.is_empty()).collect();
        for name in options.dimensions.keys().filter(|name| !known.contains(name.as_str())) {
            self.findings.push(unknown_dimension(name, &known));
        }
    }

    fn bind_dimensions(&mut self, ty: &TensorTypeProto, shape: &[usize]) {
        let dimensions = ty.shape.iter().flat_map(|shape| &shape.dim);
        for (dimension, &extent) in dimensions.zip(shape) {
            if let Some(name) = dimension.dim_param.as_deref().filter(|name| !name.is_empty()) {
                self.dimensions.entry(name.to_owned()).or_insert(extent);
            }
        }
    }

    fn input_type(&mut self, input: &ValueInfoProto, given: Option<Vec<usize>>) -> Result<TensorType, Fault> {
        let name = &input.name;
        let Some(declared) = tensor_type(input) else {
            return Err(Fault::variant(format!(
                "the input `{name}` is {}, which isn't supported",
                kind(input.r#type.as_ref())
            )));
        };
        let dtype = tensor::dtype_of(declared.elem_type.into())
            .map_err(|fault| Fault { message: format!("the input `{name}`: {}", fault.message), ..fault })?;
        let shape = match (&declared.shape, given) {
            (Some(shape), Some(given)) => {
                self.check_given(name, &shape.dim, &given)?;
                given
            }
            (None, Some(given)) => given,
            (Some(shape), None) => self.declared_shape(name, &shape.dim)?,
            (None, None) => return Err(open(name, "the file doesn't say its shape", "1,3,224,224".into())),
        };
        let dims: Vec<i64> = shape.iter().map(|&extent| i64::try_from(extent).unwrap_or(-1)).collect();
        tensor::checked_type(dtype, &dims)
    }

    fn extent(&self, dimension: &DimensionProto) -> Result<Option<usize>, Fault> {
        match (dimension.dim_value, dimension.dim_param.as_deref()) {
            (Some(extent), _) => usize::try_from(extent)
                .map(Some)
                .map_err(|_| Fault::new(Code::NumberOutOfRange, format!("an input's extent is {extent}"))),
            (None, Some(name)) => Ok(self.dimensions.get(name).copied()),
            (None, None) => Ok(None),
        }
    }

    fn declared_shape(&mut self, name: &str, dimensions: &[DimensionProto]) -> Result<Vec<usize>, Fault> {
        let mut extents = dimensions.iter().map(|dimension| self.extent(dimension)).collect::<Result<Vec<_>, _>>()?;
        // A leading open dimension beside known ones is the batch.
        if extents.len() > 1 && extents[0].is_none() && extents[1..].iter().all(Option::is_some) {
            extents[0] = Some(1);
            let parameter = dimensions[0].dim_param.as_deref().filter(|parameter| !parameter.is_empty());
            if let Some(parameter) = parameter {
                self.dimensions.insert(parameter.to_owned(), 1);
            }
            let option = parameter.map_or_else(|| "--input-shape".into(), |parameter| format!("--dim {parameter}=N"));
            let message = format!("the first dimension of the input `{name}` is open; 1 is taken, {option} sets it");
            let location = Location { node: Some(name.to_owned()), ..Location::default() };
            self.findings.push(Diagnostic::note(Code::InputShapeUnknown, location, message));
        }
        extents.iter().copied().collect::<Option<Vec<usize>>>().ok_or_else(|| {
            let example: Vec<String> =
                extents.iter().map(|extent| extent.map_or_else(|| "1".into(), |extent| extent.to_string())).collect();
            let unknown = dimensions.iter().zip(&extents).filter(|(_, extent)| extent.is_none());
            let names: Vec<String> = unknown
                .filter_map(|(dimension, _)| dimension.dim_param.as_deref().filter(|name| !name.is_empty()))
                .map(|name| format!("--dim {name}=N"))
                .collect();
            let fault = open(name, "it has open dimensions", example.join(","));
            match names.is_empty() {
                true => fault,
                false => {
                    Fault { help: fault.help.map(|help| format!("{help}, or by name: {}", names.join(" "))), ..fault }
                }
            }
        })
    }

    fn check_given(&self, name: &str, declared: &[DimensionProto], given: &[usize]) -> Result<(), Fault> {
        let mut fits = declared.len() == given.len();
        for (dimension, &extent) in declared.iter().zip(given) {
            fits &= self.extent(dimension)?.is_none_or(|expected| expected == extent);
        }
        if fits {
            return Ok(());
        }
        let text: Vec<String> = declared.iter().map(dimension_text).collect();
        let message =
            format!("the shape {given:?} was given for the input `{name}`, the file says [{}]", text.join(", "));
        Err(Fault::new(Code::ShapeMismatch, message)
            .with_help("extents that the file fixes can only be changed by exporting the model again"))
    }

    /// Adds the outputs of the graph.
    pub(super) fn import_outputs(&mut self) {
        let model = self.model;
        if model.graph.output.is_empty() {
            self.findings.push(Diagnostic::error(Code::NoOutput, Location::default(), "the model has no output"));
        }
        for output in &model.graph.output {
            match self.resolve(&output.name) {
                Ok(Item::Tensor(value)) => {
                    self.builder.output(&output.name, value);
                    self.check_declared(output, value);
                }
                Ok(item) => {
                    let found = match item {
                        Item::Sequence(_) => "a sequence",
                        _ => "absent",
                    };
                    let message = format!("the output `{}` must be a tensor, it is {found}", output.name);
                    self.report_at(&output.name, Fault::variant(message));
                }
                Err(fault) => self.report_at(&output.name, fault),
            }
        }
    }

    /// Compares an output with what the file says about it.
    fn check_declared(&mut self, output: &ValueInfoProto, value: mlc_ir::Value) {
        let Some(declared) = tensor_type(output) else { return };
        let ty = self.builder.ty(value).clone();
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
        let dims =
            declared.shape.iter().flat_map(|shape| &shape.dim).map(dimension_text).collect::<Vec<_>>().join(", ");
        let message = format!(
            "the output `{}` is {ty}, the file says element type {} and shape [{dims}]",
            output.name, declared.elem_type
        );
        let location = Location { node: Some(output.name.clone()), ..Location::default() };
        self.findings.push(Diagnostic::warning(Code::ShapeMismatch, location, message));
    }
}

fn dimension_text(dimension: &DimensionProto) -> String {
    match (dimension.dim_value, dimension.dim_param.as_deref()) {
        (Some(extent), _) => extent.to_string(),
        (None, Some(name)) if !name.is_empty() => name.to_owned(),
        _ => "?".into(),
    }
}

fn tensor_type(value: &ValueInfoProto) -> Option<&TensorTypeProto> {
    value.r#type.as_ref()?.tensor_type.as_ref()
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

fn open(name: &str, reason: &str, example: String) -> Fault {
    Fault::new(Code::InputShapeUnknown, format!("the shape of the input `{name}` must be given: {reason}"))
        .with_help(format!("give it, for example with --input-shape '{name}={example}'"))
}
