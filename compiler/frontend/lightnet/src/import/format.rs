//! [`Lightnet`]: what the format brings to the import engine.

use super::program::{Name, Program, Step};
use crate::model::ParameterValue;
use mlc_import::{AttributeValue, Attributes, Description, Fault, Format, Operand, Surplus};
use mlc_ir::DType;
use mlc_json::shortened;
use std::convert::Infallible;

/// The format.
pub struct Lightnet;

/// A tensor that is there before the first run, in the format's sense.
#[derive(Clone, Copy)]
pub struct Static;

/// The ends of names that mean a back end for a device.
const DEVICES: [&str; 4] = ["_cuda", "_cudnn", "_dpu", "_tensorrt"];

impl Format for Lightnet {
    const NAME: &'static str = "lightnet";
    const ATTRIBUTE: &'static str = "parameter";
    const SURPLUS_ATTRIBUTES: Surplus = Surplus::Refused;

    type Model<'m> = &'m Program<'m>;
    type Operator<'m> = &'m Step<'m>;
    type Name<'m> = Name<'m>;
    type Item = Operand;
    type Attribute<'m> = &'m ParameterValue;
    type Region<'m> = Infallible;
    type Scope<'m> = ();
    type Note = Static;

    fn describe<'m>(step: Self::Operator<'m>) -> Description<'m> {
        let name = step.operator.name.clone();
        Description { kind: step.kind, domain: "", name, location: step.operator.place.location() }
    }

    fn operands<'m>(_model: Self::Model<'m>, step: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        step.operands.iter().map(|(_, name)| Some(*name)).collect()
    }

    fn results<'m>(_model: Self::Model<'m>, step: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        step.results.iter().copied().map(Some).collect()
    }

    fn label<'m>(step: Self::Operator<'m>, operand: usize) -> Option<&'m str> {
        step.operands.get(operand).map(|(label, _)| *label)
    }

    fn result_label<'m>(step: Self::Operator<'m>, result: usize) -> Option<&'m str> {
        step.labels.get(result).copied()
    }

    /// What `create` makes is, and nothing else, though mlc may know it too.
    fn is_static(note: Option<&Static>, _is_constant: bool) -> bool {
        note.is_some()
    }

    fn attributes<'m>(_scope: &(), step: Self::Operator<'m>) -> Result<Attributes<'m, Self>, Fault> {
        let parameters = step.operator.parameters.iter();
        Ok(parameters.map(|parameter| (parameter.name.as_str(), &parameter.value)).collect())
    }

    fn help_for_unknown(kind: &str) -> String {
        match DEVICES.iter().find(|suffix| kind.ends_with(*suffix)) {
            Some(suffix) => format!(
                "`{suffix}` means a back end for a device, which mlc isn't; take the operator without it, or with `_cpu`"
            ),
            None => "'mlc ops --format lightnet' lists what is supported".into(),
        }
    }
}

impl ParameterValue {
    /// For messages.
    pub(super) fn description(&self) -> String {
        match self {
            ParameterValue::Null => "null".into(),
            ParameterValue::Bool(value) => value.to_string(),
            ParameterValue::Number(value) => format!("the number {value}"),
            ParameterValue::Text(text) => format!("the text `{}`", shortened(text)),
            ParameterValue::Bools(values) => format!("a list of {} truth values", values.len()),
            ParameterValue::Numbers(values) => format!("a list of {} numbers", values.len()),
            ParameterValue::Texts(texts) => format!("a list of {} texts", texts.len()),
        }
    }
}

/// A number without a fraction, in the range of the format's integers.
fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
    fits.then_some(number as i64)
}

impl<'m> AttributeValue for &'m ParameterValue {
    type Word = &'m str;

    fn description(&self) -> String {
        (**self).description()
    }

    fn int(&self) -> Option<i64> {
        self.float().and_then(whole)
    }

    fn float(&self) -> Option<f64> {
        match self {
            ParameterValue::Number(value) => Some(*value),
            _ => None,
        }
    }

    fn flag(&self) -> Option<bool> {
        match self {
            ParameterValue::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// LightNet's compiler writes truth values of lists as numbers.
    fn flags(&self) -> Option<Vec<bool>> {
        match self {
            ParameterValue::Bools(values) => Some(values.clone()),
            ParameterValue::Numbers(numbers) => {
                let flag = |number: &f64| [0.0, 1.0].contains(number).then_some(*number == 1.0);
                numbers.iter().map(flag).collect()
            }
            _ => None,
        }
    }

    fn words(&self) -> Option<Vec<String>> {
        match self {
            ParameterValue::Texts(texts) => Some(texts.clone()),
            _ => None,
        }
    }

    fn ints(&self) -> Option<Vec<i64>> {
        match self {
            ParameterValue::Numbers(values) => values.iter().copied().map(whole).collect(),
            _ => None,
        }
    }

    fn floats(&self) -> Option<Vec<f64>> {
        match self {
            ParameterValue::Numbers(values) => Some(values.clone()),
            _ => None,
        }
    }

    fn word(&self) -> Option<&'m str> {
        match self {
            ParameterValue::Text(text) => Some(text),
            _ => None,
        }
    }

    fn dtype(&self) -> Option<Result<DType, Fault>> {
        let word = self.word()?;
        Some(dtype_of(word).ok_or_else(|| Fault::parameter(format!("there is no data type `{}`", shortened(word)))))
    }
}

/// The data type of the format's name for it.
pub fn dtype_of(word: &str) -> Option<DType> {
    Some(match word {
        "TL_DOUBLE" => DType::F64,
        "TL_FLOAT" => DType::F32,
        "TL_INT64" => DType::I64,
        "TL_INT32" => DType::I32,
        "TL_INT16" => DType::I16,
        "TL_INT8" => DType::I8,
        "TL_UINT64" => DType::U64,
        "TL_UINT32" => DType::U32,
        "TL_UINT16" => DType::U16,
        "TL_UINT8" => DType::U8,
        "TL_BOOL" => DType::Bool,
        _ => return None,
    })
}
