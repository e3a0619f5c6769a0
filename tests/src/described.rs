//! Models of LightNet whose operators are described: as much of them as tests of descriptions need.

use mlc::descriptions;
use mlc_descriptions::{ELEMENT_TYPES, Inference, Library, OperatorInstance, ParameterValue, TensorDescription};
use mlc_import::CustomOperators;
use mlc_ir::Diagnostic;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A member of an object that is a string, or nothing.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// What the description beside a model's file says, changed.
///
/// # Errors
/// All that is wrong with it.
pub fn described(
    model: &Path,
    change: impl FnOnce(&mut CustomOperators),
) -> Result<descriptions::Described, Vec<Diagnostic>> {
    let file = ["op.json", "op.op"].map(|name| model.with_file_name(name)).into_iter().find(|file| file.is_file());
    let (library, sources) = descriptions::read(&Vec::from_iter(file)).map_err(|failure| failure.diagnostics)?;
    let mut operators = CustomOperators::new(library);
    change(&mut operators);
    Ok(descriptions::Described { operators: Arc::new(operators), sources })
}

/// A described operator of a model.
pub struct Call {
    /// Its type.
    pub optype: String,
    /// What it is given.
    pub instance: OperatorInstance,
    /// What follows.
    pub inference: Inference,
    /// The input that each output is a view of, and the bytes into it.
    pub views: Vec<Option<(String, u64)>>,
}

/// A model.
#[derive(Default)]
pub struct Described {
    /// All tensors whose types are known.
    pub tensors: BTreeMap<String, TensorDescription>,
    /// The numbers that the model has for some of them.
    pub numbers: BTreeMap<String, Vec<f64>>,
    /// The described operators, in order.
    pub calls: Vec<Call>,
    /// Whether all other operators only make tensors.
    pub complete: bool,
}

impl Described {
    /// Infers all described operators of a model whose inputs are known.
    ///
    /// # Errors
    /// The first refusal.
    pub fn infer(library: &Library, model: &Value) -> Result<Described, Diagnostic> {
        let mut described = Described { complete: true, ..Described::default() };
        for operator in list(model, "ops") {
            if library.get(text(operator, "optype")).is_some() {
                let call = described.call(library, operator)?;
                described.complete &= call.is_some();
                described.calls.extend(call);
            } else {
                described.create(operator);
            }
        }
        Ok(described)
    }

    /// Takes the tensor that an operator makes from its parameters alone.
    fn create(&mut self, operator: &Value) {
        for name in arguments(operator, "tensors_out", "name").values().filter_map(Value::as_str) {
            match created(operator, name) {
                Some(tensor) => {
                    self.tensors.insert(name.to_owned(), tensor);
                    let data = arguments(operator, "params", "value").remove("data");
                    if let Some(ParameterValue::Numbers(numbers)) = data.as_ref().map(parameter) {
                        self.numbers.insert(name.to_owned(), numbers);
                    }
                }
                None => self.complete = false,
            }
        }
    }

    /// Infers an operator; nothing if its tensors aren't known, or have other names than the description says.
    fn call(&mut self, library: &Library, operator: &Value) -> Result<Option<Call>, Diagnostic> {
        let optype = text(operator, "optype");
        let Some(description) = library.get(optype) else { return Ok(None) };
        let (inputs, outputs) = (arguments(operator, "tensors_in", "name"), arguments(operator, "tensors_out", "name"));
        let input = |name: &str| self.tensors.get(inputs.get(name)?.as_str()?).cloned();
        let known = description.inputs.iter().map(|tensor| input(&tensor.name)).collect::<Option<Vec<_>>>();
        let output = |name: &str| outputs.get(name)?.as_str().map(str::to_owned);
        let names = description.outputs.iter().map(|tensor| output(&tensor.name)).collect::<Option<Vec<_>>>();
        let (Some(inputs), Some(outputs)) = (known, names) else { return Ok(None) };
        let parameters = arguments(operator, "params", "value");
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), parameter(value))).collect();
        let instance = OperatorInstance { name: text(operator, "name").to_owned(), inputs, outputs, parameters };
        let inference = library.infer(description, &instance)?;
        let mut views = Vec::new();
        for (number, output) in description.outputs.iter().enumerate() {
            let owner = output.owner.map(|owner| instance.inputs[owner].name.clone());
            let offset = library.view_offset(description, &instance, &inference, number, 64);
            views.push(owner.map(|owner| offset.map(|offset| (owner, offset))).transpose()?);
        }
        let outputs = inference.outputs.iter().map(|output| (output.name.clone(), output.clone()));
        self.tensors.extend(outputs);
        Ok(Some(Call { optype: optype.to_owned(), instance, inference, views }))
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A parameter's value.
fn parameter(value: &Value) -> ParameterValue {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match value {
        Value::String(text) => ParameterValue::Text(text.clone()),
        Value::Number(number) => ParameterValue::Number(number.as_f64().unwrap_or_default()),
        Value::Bool(truth) => ParameterValue::Bool(*truth),
        Value::Array(_) if list.iter().any(Value::is_string) => {
            ParameterValue::Texts(list.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect())
        }
        Value::Array(_) => {
            ParameterValue::Numbers(list.iter().map(|number| number.as_f64().unwrap_or_default()).collect())
        }
        _ => ParameterValue::Null,
    }
}

/// Arguments of an operator by name.
fn arguments<'a>(operator: &'a Value, key: &str, value: &str) -> BTreeMap<&'a str, Value> {
    list(operator, key).iter().map(|entry| (text(entry, "arg_name"), entry[value].clone())).collect()
}

/// The tensor that an operator of LightNet makes from its parameters alone.
fn created(operator: &Value, name: &str) -> Option<TensorDescription> {
    let optype = text(operator, "optype");
    if !optype.starts_with("create") && !optype.starts_with("zeros") {
        return None;
    }
    let parameters = arguments(operator, "params", "value");
    let extents = parameters
        .get("dims")?
        .as_array()?
        .iter()
        .map(|extent| extent.as_i64().and_then(|extent| i32::try_from(extent).ok()));
    Some(TensorDescription {
        name: name.to_owned(),
        element: ELEMENT_TYPES.iter().position(|element| parameters["dtype"] == *element)?,
        extents: extents.collect::<Option<_>>()?,
        is_static: optype.starts_with("create"),
        memory: u8::from(optype.ends_with("_cpu")),
    })
}
