//! [`write()`]: a model as JSON, in the form that LightNet's compiler reads.

use crate::model::{Argument, Model, Operator, Parameter, ParameterValue};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// How a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Over many lines.
    Pretty,
    /// Without white space.
    Compact,
}

/// Writes a model. What [`read`](crate::read()) makes of the file equals the model. The plan of a planned one isn't written:
/// LightNet's compiler plans it again.
///
/// # Errors
/// When the output refuses bytes.
pub fn write(model: &Model, form: Form, out: &mut impl Write) -> io::Result<()> {
    let operators = model.operators.iter().map(OperatorObject::of).collect();
    let model = ModelObject { ops: operators };
    match form {
        Form::Compact => Ok(serde_json::to_writer(out, &model)?),
        Form::Pretty => {
            serde_json::to_writer_pretty(&mut *out, &model)?;
            out.write_all(b"\n")
        }
    }
}

#[derive(Serialize)]
struct ModelObject<'a> {
    ops: Vec<OperatorObject<'a>>,
}

#[derive(Serialize)]
struct OperatorObject<'a> {
    name: &'a str,
    optype: &'a str,
    tensors_in: Vec<TensorObject<'a>>,
    tensors_out: Vec<TensorObject<'a>>,
    params: Vec<ParameterObject<'a>>,
}

#[derive(Serialize)]
struct TensorObject<'a> {
    arg_name: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct ParameterObject<'a> {
    arg_name: &'a str,
    value: &'a ParameterValue,
}

impl<'a> OperatorObject<'a> {
    fn of(operator: &'a Operator) -> Self {
        let tensor = |argument: &'a Argument| TensorObject { arg_name: &argument.name, name: &argument.tensor };
        let parameter =
            |parameter: &'a Parameter| ParameterObject { arg_name: &parameter.name, value: &parameter.value };
        OperatorObject {
            name: &operator.name,
            optype: &operator.kind,
            tensors_in: operator.inputs.iter().map(tensor).collect(),
            tensors_out: operator.outputs.iter().map(tensor).collect(),
            params: operator.parameters.iter().map(parameter).collect(),
        }
    }
}

impl Serialize for ParameterValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ParameterValue::Null => serializer.serialize_unit(),
            ParameterValue::Bool(value) => value.serialize(serializer),
            ParameterValue::Number(value) => Number(*value).serialize(serializer),
            ParameterValue::Text(text) => text.serialize(serializer),
            ParameterValue::Bools(values) => values.serialize(serializer),
            ParameterValue::Numbers(values) => serializer.collect_seq(values.iter().copied().map(Number)),
            ParameterValue::Texts(texts) => texts.serialize(serializer),
        }
    }
}

/// A number, written without a fraction where it has none: `3` in the place of `3.0`.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Up to it, doubles hold every integer.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let Number(value) = *self;
        let is_integer = value.fract() == 0.0 && value.abs() <= EXACT && value.to_bits() != (-0.0f64).to_bits();
        if is_integer { serializer.serialize_i64(value as i64) } else { serializer.serialize_f64(value) }
    }
}
