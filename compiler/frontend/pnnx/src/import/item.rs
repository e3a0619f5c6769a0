//! [`Item`]: what an operand of a PNNX model is. Tensors become values of the graph; numbers, lists and words, which stand
//! for shapes and options, are known while the model is imported and never become tensors by themselves.

use crate::model::{ElementType, Parameter};
use mlc_ir::{DType, Value};

/// What an operand, or an argument, holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// A tensor.
    Tensor(Value),
    /// A complex tensor: real and imaginary part, of one shape and data type.
    Complex(Value, Value),
    /// A whole number.
    Int(i64),
    /// A number of Python's float type.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Nothing.
    None,
    /// An option, such as `torch.float`.
    Word(String),
    /// A list or a tuple.
    List(Vec<Item>),
    /// The result of an operator that couldn't be imported; what depends on it is left out without a word.
    Unknown,
}

impl Item {
    /// For messages.
    pub(super) fn description(&self) -> String {
        match self {
            Item::Tensor(_) => "a tensor".into(),
            Item::Complex(..) => "a complex tensor".into(),
            Item::Int(value) => format!("the whole number {value}"),
            Item::Float(value) => format!("the number {value}"),
            Item::Bool(true) => "True".into(),
            Item::Bool(false) => "False".into(),
            Item::None => "None".into(),
            Item::Word(word) => format!("the word `{word}`"),
            Item::List(items) => format!("a list of {}", items.len()),
            Item::Unknown => "unknown".into(),
        }
    }

    /// Whether an operator that failed stands behind it.
    pub(super) fn is_unknown(&self) -> bool {
        match self {
            Item::Unknown => true,
            Item::List(items) => items.iter().any(Item::is_unknown),
            _ => false,
        }
    }

    /// A whole number.
    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Item::Int(value) => Some(*value),
            Item::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(*value as i64),
            _ => None,
        }
    }

    /// A number.
    pub(super) fn float(&self) -> Option<f64> {
        match self {
            Item::Int(value) => Some(*value as f64),
            Item::Float(value) => Some(*value),
            Item::Bool(value) => Some(f64::from(u8::from(*value))),
            _ => None,
        }
    }

    /// A list of whole numbers; a single one counts as a list of it.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Item::List(items) => items.iter().map(Item::int).collect(),
            other => other.int().map(|value| vec![value]),
        }
    }

    /// A list of numbers; a single one counts as a list of it.
    pub(super) fn floats(&self) -> Option<Vec<f64>> {
        match self {
            Item::List(items) => items.iter().map(Item::float).collect(),
            other => other.float().map(|value| vec![value]),
        }
    }
}

impl From<&Parameter> for Item {
    fn from(parameter: &Parameter) -> Self {
        match parameter {
            Parameter::Null => Item::None,
            Parameter::Bool(value) => Item::Bool(*value),
            Parameter::Int(value) => Item::Int(i64::from(*value)),
            Parameter::Float(value) => Item::Float(decimal(*value)),
            Parameter::String(word) => word_or_number(word),
            Parameter::IntList(values) => Item::List(values.iter().map(|&value| Item::Int(i64::from(value))).collect()),
            Parameter::FloatList(values) => {
                Item::List(values.iter().map(|&value| Item::Float(decimal(value))).collect())
            }
            Parameter::StringList(words) => Item::List(words.iter().map(|word| list_word(word)).collect()),
            Parameter::Complex(value) => Item::Word(format!("{}{:+}j", value.re, value.im)),
            Parameter::ComplexList(values) => {
                Item::List(values.iter().map(|value| Item::Word(format!("{}{:+}j", value.re, value.im))).collect())
            }
        }
    }
}

/// The format has no numbers without digits, so these are words to its reader.
fn word_or_number(word: &str) -> Item {
    match word {
        "inf" => Item::Float(f64::INFINITY),
        "-inf" => Item::Float(f64::NEG_INFINITY),
        "nan" => Item::Float(f64::NAN),
        _ => Item::Word(word.to_owned()),
    }
}

/// A list with one word in it is a list of words for the reader, though the others may be numbers.
fn list_word(word: &str) -> Item {
    match word {
        "None" => Item::None,
        "True" => Item::Bool(true),
        "False" => Item::Bool(false),
        _ => word
            .parse()
            .map(Item::Int)
            .or_else(|_| word.parse().map(Item::Float))
            .unwrap_or_else(|_| Item::Word(word.to_owned())),
    }
}

/// The double that the shortest decimal text of a float stands for.
///
/// The exporter squeezes Python's doubles into floats. A scale factor of 1.3 must stay 1.3, as the float's own value,
/// 1.2999999523, gives another extent.
pub(super) fn decimal(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// The IR's data type of an element type; `None` for complex and unknown ones.
pub(super) fn dtype_of(element_type: ElementType) -> Option<DType> {
    Some(match element_type {
        ElementType::F32 => DType::F32,
        ElementType::F64 => DType::F64,
        ElementType::F16 => DType::F16,
        ElementType::BF16 => DType::Bf16,
        ElementType::I64 => DType::I64,
        ElementType::I32 => DType::I32,
        ElementType::I16 => DType::I16,
        ElementType::I8 => DType::I8,
        ElementType::U8 => DType::U8,
        ElementType::Bool => DType::Bool,
        ElementType::Null | ElementType::C32 | ElementType::C64 | ElementType::C128 => return None,
    })
}

/// The data type of the parts of a complex element type.
pub(super) fn complex_dtype(element_type: ElementType) -> Option<DType> {
    match element_type {
        ElementType::C32 => Some(DType::F16),
        ElementType::C64 => Some(DType::F32),
        ElementType::C128 => Some(DType::F64),
        _ => None,
    }
}

/// The data type of a word such as `torch.float`.
pub(super) fn dtype_of_word(word: &str) -> Option<DType> {
    Some(match word.strip_prefix("torch.").unwrap_or(word) {
        "float" | "float32" => DType::F32,
        "double" | "float64" => DType::F64,
        "half" | "float16" => DType::F16,
        "bfloat16" => DType::Bf16,
        "long" | "int64" => DType::I64,
        "int" | "int32" => DType::I32,
        "short" | "int16" => DType::I16,
        "int8" => DType::I8,
        "uint8" => DType::U8,
        "bool" => DType::Bool,
        _ => return None,
    })
}
