//! `@main`: its variables are parameters and inputs, its result gives the outputs.

use super::evaluate::Evaluator;
use super::item::Item;
use super::scope::{Meaning, Scope};
use crate::lexer::Place;
use crate::parameters::Parameters;
use crate::syntax::{Argument, AttributeValue, Parameter, Type};
use mlc_import::{DeclaredInput, Extent, Fault, ImportOptions};
use mlc_ir::{Attribute, Code, Diagnostic, Location, Value};
use std::rc::Rc;

pub(super) fn import_main<'a>(evaluator: &mut Evaluator<'a>, parameters: &Parameters, options: &ImportOptions) {
    let module = evaluator.module;
    let Some((_, main)) = module.definitions.iter().find(|(name, _)| *name == "main") else {
        let message = "the text has no function @main";
        let diagnostic = Diagnostic::error(Code::UndefinedValue, Location::default(), message);
        return evaluator.importer.findings.push(diagnostic);
    };
    let main = &module.functions[*main];
    check_parameters(evaluator, &main.parameters, parameters);
    let open: Vec<DeclaredInput<'a>> =
        main.parameters.iter().filter(|variable| !parameters.contains_key(&variable.name)).map(declared).collect();
    let mut shapes = evaluator.importer.input_shapes(&open, [], options).into_iter();
    let scope = Rc::new(Scope::default());
    for variable in &main.parameters {
        let value = match parameters.get(&variable.name) {
            Some(constant) => bound(evaluator, variable, constant),
            None => {
                shapes.next().unwrap_or_else(|| Ok(Vec::new())).and_then(|shape| input(evaluator, variable, &shape))
            }
        };
        let item = value.map(Meaning::of).unwrap_or_else(|fault| {
            evaluator.report(variable.place, fault);
            Meaning::UNKNOWN
        });
        scope.bind(&variable.name, item);
    }
    let result = evaluator.block(&main.body, &scope);
    scope.clear();
    if !evaluator.importer.failed() {
        outputs(evaluator, &result, &main.attributes, main.place);
    }
}

/// Tells of parameters that are no variables of the text.
fn check_parameters(evaluator: &mut Evaluator<'_>, variables: &[Parameter<'_>], parameters: &Parameters) {
    let known = |name: &str| variables.iter().any(|variable| variable.name == name);
    let unused: Vec<&str> = parameters.keys().map(String::as_str).filter(|name| !known(name)).collect();
    if let Some(first) = unused.first() {
        let message = format!("{} of the parameters aren't variables of @main, such as `{first}`", unused.len());
        evaluator.importer.findings.push(Diagnostic::warning(Code::Unused, Location::default(), message));
    }
}

fn declared<'a>(variable: &'a Parameter<'a>) -> DeclaredInput<'a> {
    let shape = match &variable.ty {
        Some(Type::Tensor(_, extents)) => {
            Some(extents.iter().map(|extent| extent.map_or(Extent::Open, Extent::Known)).collect())
        }
        // Its type is refused, whatever the shape.
        _ => Some(Vec::new()),
    };
    DeclaredInput { name: &variable.name, alias: None, shape }
}

fn bound<'a>(evaluator: &mut Evaluator<'a>, variable: &'a Parameter<'a>, constant: &Attribute) -> Result<Value, Fault> {
    let found = constant.ty();
    let fits = match &variable.ty {
        None => true,
        Some(Type::Tensor(dtype, extents)) => {
            *dtype == found.dtype
                && extents.len() == found.rank()
                && extents.iter().zip(&found.shape).all(|(known, &extent)| known.is_none_or(|known| known == extent))
        }
        Some(_) => false,
    };
    if !fits {
        let message = format!("the parameter for %{} is {found}, which isn't of the variable's type", variable.name);
        return Err(Fault::new(Code::WeightSizeMismatch, message));
    }
    Ok(evaluator.importer.builder.named_constant(&variable.name, constant.clone()))
}

fn input<'a>(evaluator: &mut Evaluator<'a>, variable: &'a Parameter<'a>, shape: &[usize]) -> Result<Value, Fault> {
    let name = &variable.name;
    let Some(Type::Tensor(dtype, _)) = &variable.ty else {
        return Err(Fault::variant(format!("the type of the input %{name} must be that of a tensor")));
    };
    let ty = evaluator.importer.input_type(*dtype, shape)?;
    Ok(evaluator.importer.builder.input(name, ty))
}

fn outputs<'a>(evaluator: &mut Evaluator<'a>, result: &Meaning<'a>, attributes: &[Argument<'a>], place: Place) {
    let mut values = Vec::new();
    let flat = match result {
        Meaning::Operand(item) => flatten(item, &mut values),
        Meaning::Function(..) => Err(Fault::variant("@main gives a function, tensors are expected")),
    };
    if let Err(fault) = flat {
        return evaluator.report(place, fault);
    }
    if values.is_empty() {
        return evaluator.report(place, Fault::new(Code::NoOutput, "@main gives nothing"));
    }
    let given = attributes.iter().find(|attribute| attribute.name == "output_tensor_names");
    let names: Vec<String> = match given.map(|attribute| &attribute.value) {
        Some(AttributeValue::List(names)) if names.len() == values.len() => names
            .iter()
            .filter_map(|name| match name {
                AttributeValue::Text(name) => Some(name.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    let named = unique.len() == values.len();
    for (index, &value) in values.iter().enumerate() {
        let name = match named {
            true => names[index].clone(),
            false if values.len() == 1 => "output".into(),
            false => format!("output{index}"),
        };
        evaluator.importer.builder.output(&name, value);
    }
}

/// The tensors of tuples in tuples.
fn flatten(item: &Item, values: &mut Vec<Value>) -> Result<(), Fault> {
    match item {
        Item::Tensor(value) => values.push(*value),
        Item::Tuple(tuple) => tuple.items.iter().try_for_each(|item| flatten(item, values))?,
        Item::Absent | Item::Unknown => return Err(Fault::variant("@main gives something that isn't a tensor")),
    }
    Ok(())
}
