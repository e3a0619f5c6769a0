//! The JSON form, in which comments are spaces by now. Fields that the format doesn't have are passed over, and so is the plan of a planned model.

use crate::model::{Argument, Model, Operator, Parameter, ParameterValue};
use crate::place::Place;
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_json::{Json, shortened};
use serde_json::Value;

/// Reads the model as far as it can be read; what can't be is reported.
pub(super) fn read(text: &[u8], report: &mut Report) -> Option<Model> {
    let value = mlc_json::parse(text).map_err(|error| {
        let place = Location::line_column(error.line().max(1) as u32, error.column().max(1) as u32);
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or_default();
        Diagnostic::error(Code::Syntax, place, format!("the file is damaged: {message}"))
    });
    let value = report.note(value)?;
    let root = Json::root("$", "", &value);
    let operators = report.note(root.get("ops").and_then(|operators| operators.list()))?;
    let mut is_planned = root.keys().any(|key| key == "mem_sizes_h" || key == "mem_sizes_l");
    let mut model = Model::default();
    for (index, operator) in operators.iter().enumerate() {
        let Some((name, kind)) = report.note(names(operator)) else { continue };
        let mut reading = Reading { name, kind, report };
        let inputs = reading.tensors(operator, "tensors_in", &mut is_planned);
        let outputs = reading.tensors(operator, "tensors_out", &mut is_planned);
        let parameters = reading.parameters(operator);
        let (name, kind) = (name.to_owned(), kind.to_owned());
        let place = Place::Json(index);
        if let (Some(inputs), Some(outputs), Some(parameters)) = (inputs, outputs, parameters) {
            model.operators.push(Operator { name, kind, inputs, outputs, parameters, place });
        }
    }
    model.is_planned = is_planned;
    Some(model)
}

/// An operator's own name and its type.
fn names<'a>(operator: &Json<'a>) -> Result<(&'a str, &'a str), Diagnostic> {
    let name = operator.get("name")?.text()?;
    let kind = operator.get("optype").and_then(|kind| kind.text());
    let kind = kind.map_err(|finding| Diagnostic {
        message: format!("operator `{name}`: {}", finding.message),
        location: Location { node: Some(name.to_owned()), ..finding.location },
        ..finding
    })?;
    Ok((name, kind))
}

/// The reading of one operator.
struct Reading<'a, 'r> {
    name: &'a str,
    kind: &'a str,
    report: &'r mut Report,
}

impl Reading<'_, '_> {
    /// The value; what is wrong is noted as the operator's.
    fn note<T>(&mut self, what: &str, result: Result<T, Diagnostic>) -> Option<T> {
        let named = result.map_err(|finding| Diagnostic {
            message: format!("{} `{}`: {what}{}", self.kind, self.name, finding.message),
            location: finding.location.at_operator(self.kind, self.name),
            ..finding
        });
        self.report.note(named)
    }

    /// The tensors of a list, if all of them can be read.
    fn tensors(&mut self, operator: &Json<'_>, key: &str, is_planned: &mut bool) -> Option<Vec<Argument>> {
        let list = self.note("", operator.get(key).and_then(|list| list.list()))?;
        let mut tensors = Vec::new();
        for tensor in &list {
            let name = self.note(&format!("{key}: "), text(tensor, "arg_name"));
            let what = name.map_or_else(|| format!("{key}: "), |name| format!("tensor `{name}`: "));
            let own = self.note(&what, text(tensor, "name"));
            *is_planned |= tensor.keys().any(|key| key == "offset_h" || key == "offset_l");
            if let (Some(name), Some(own)) = (name, own) {
                tensors.push(Argument { name: name.to_owned(), tensor: own.to_owned() });
            }
        }
        (tensors.len() == list.len()).then_some(tensors)
    }

    /// The parameters, if all of them can be read.
    fn parameters(&mut self, operator: &Json<'_>) -> Option<Vec<Parameter>> {
        let list = self.note("", operator.get("params").and_then(|list| list.list()))?;
        let mut parameters = Vec::new();
        for parameter in &list {
            let Some(name) = self.note("params: ", text(parameter, "arg_name")) else { continue };
            let value = self.note(&format!("parameter `{name}`: "), value(parameter));
            parameters.extend(value.map(|value| Parameter { name: name.to_owned(), value }));
        }
        (parameters.len() == list.len()).then_some(parameters)
    }
}

fn text<'a>(object: &Json<'a>, key: &str) -> Result<&'a str, Diagnostic> {
    object.get(key)?.text()
}

/// The value of a parameter.
fn value(parameter: &Json<'_>) -> Result<ParameterValue, Diagnostic> {
    if parameter.find("value")?.is_none() && parameter.keys().any(|key| key == "value") {
        return Ok(ParameterValue::Null);
    }
    let json = parameter.get("value")?;
    let fault = |message: &str| Err(json.fault(Code::ParameterInvalid, message));
    match json.value() {
        Value::Array(list) => list_value(list).map_err(|message| json.fault(Code::ParameterInvalid, message)),
        Value::Object(_) => fault("it is an object; a number, a text, true, false, null or a list expected"),
        scalar => Ok(scalar_value(scalar)),
    }
}

fn scalar_value(value: &Value) -> ParameterValue {
    match value {
        Value::Bool(value) => ParameterValue::Bool(*value),
        Value::Number(number) => ParameterValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => ParameterValue::Text(text.clone()),
        Value::Null | Value::Array(_) | Value::Object(_) => ParameterValue::Null,
    }
}

/// A list of numbers, of texts or of truth values.
fn list_value(list: &[Value]) -> Result<ParameterValue, String> {
    fn all<T>(list: &[Value], what: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, String> {
        let element = |(index, value): (usize, &Value)| {
            read(value).ok_or_else(|| {
                let text = value.to_string();
                format!("it is a list of {what}, but element {index} is {}", shortened(&text))
            })
        };
        list.iter().enumerate().map(element).collect()
    }
    match list.first() {
        None => Err("it is an empty list; at least one element expected".into()),
        Some(Value::Number(_)) => all(list, "numbers", Value::as_f64).map(ParameterValue::Numbers),
        Some(Value::String(_)) => {
            all(list, "texts", |value| value.as_str().map(str::to_owned)).map(ParameterValue::Texts)
        }
        Some(Value::Bool(_)) => all(list, "truth values", Value::as_bool).map(ParameterValue::Bools),
        Some(_) => Err("a list must hold numbers, texts or truth values".into()),
    }
}
