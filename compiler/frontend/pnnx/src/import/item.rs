//! [`Item`]: what an operand of a PNNX model is. Tensors become values of the graph; numbers, lists and words, which stand
//! for shapes and options, are known while the model is imported and never become tensors by themselves.

use crate::model::{ElementType, Parameter};
use mlc_import::{AttributeValue, Builder, Fault};
use mlc_ir::{DType, Literal, Value};

/// What an operand, or an argument, holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
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
    /// A constant of one element as a number, anything else as it is.
    pub(super) fn host_number(self, builder: &Builder) -> Item {
        let Item::Tensor(value) = self else { return self };
        match builder.graph().constant(value) {
            Some(attribute) if attribute.ty().elements() == 1 => {
                let tensor = attribute.to_tensor();
                match attribute.ty().dtype {
                    DType::Bool => Item::Bool(tensor.to_integers() == [1]),
                    dtype if dtype.is_float() => Item::Float(tensor.to_floats()[0]),
                    _ => Item::Int(tensor.to_integers()[0]),
                }
            }
            _ => self,
        }
    }

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

impl mlc_import::Item for Item {
    fn of(value: Value) -> Self {
        Item::Tensor(value)
    }

    fn absent() -> Self {
        Item::None
    }

    fn unknown() -> Self {
        Item::Unknown
    }

    fn tensor(&self) -> Option<Value> {
        match self {
            Item::Tensor(value) => Some(*value),
            _ => None,
        }
    }

    fn is_unknown(&self) -> bool {
        match self {
            Item::Unknown => true,
            Item::List(items) => items.iter().any(Item::is_unknown),
            _ => false,
        }
    }

    fn description(&self) -> String {
        self.description()
    }

    /// Numbers become tensors of rank 0.
    fn to_value(&self, builder: &mut Builder, what: &str) -> Result<Value, Fault> {
        match self {
            Item::Tensor(value) => Ok(*value),
            Item::Int(value) => Ok(builder.literal(Literal::integer(DType::I64, *value))),
            Item::Float(value) => Ok(builder.number(DType::F32, *value)),
            Item::Bool(value) => Ok(builder.number(DType::Bool, f64::from(u8::from(*value)))),
            Item::Complex(..) => Err(Fault::variant(format!("operand {what} is complex, which isn't supported here"))
                .with_help("split it into real and imaginary parts in the source model")),
            other => Err(Fault::operands(format!("operand {what} must be a tensor, found {}", other.description()))),
        }
    }

    fn map(self, replace: &mut dyn FnMut(Value) -> Value) -> Self {
        match self {
            Item::Tensor(value) => Item::Tensor(replace(value)),
            Item::Complex(re, im) => Item::Complex(replace(re), replace(im)),
            Item::List(items) => Item::List(items.into_iter().map(|item| item.map(replace)).collect()),
            other => other,
        }
    }
}

/// A parameter, or the operand that stands in its place.
#[derive(Debug, Clone)]
pub struct Argument {
    /// As the file has it.
    pub item: Item,
    /// The same, a constant of one element as a number.
    value: Item,
}

impl Argument {
    /// An operand in the place of a parameter.
    pub(super) fn of_operand(item: &Item, builder: &Builder) -> Self {
        Argument { item: item.clone(), value: item.clone().host_number(builder) }
    }
}

impl From<&Parameter> for Argument {
    fn from(parameter: &Parameter) -> Self {
        let item = Item::from(parameter);
        Argument { value: item.clone(), item }
    }
}

impl AttributeValue for Argument {
    type Word = String;

    fn is_absent(&self) -> bool {
        self.item == Item::None
    }

    fn description(&self) -> String {
        self.value.description()
    }

    fn int(&self) -> Option<i64> {
        self.value.int()
    }

    fn float(&self) -> Option<f64> {
        self.value.float()
    }

    fn flag(&self) -> Option<bool> {
        match self.value {
            Item::Bool(value) => Some(value),
            Item::Int(0) => Some(false),
            Item::Int(1) => Some(true),
            _ => None,
        }
    }

    fn ints(&self) -> Option<Vec<i64>> {
        self.value.ints()
    }

    fn floats(&self) -> Option<Vec<f64>> {
        self.value.floats()
    }

    fn word(&self) -> Option<String> {
        match &self.value {
            Item::Word(word) => Some(word.clone()),
            _ => None,
        }
    }

    fn dtype(&self) -> Option<Result<DType, Fault>> {
        let word = self.word()?;
        Some(dtype_of_word(&word).ok_or_else(|| Fault::variant(format!("data type {word} isn't supported"))))
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

/// The data type of a number with which TorchScript's operators name it.
pub(super) fn dtype_of_code(code: i64) -> Option<DType> {
    Some(match code {
        0 => DType::U8,
        1 => DType::I8,
        2 => DType::I16,
        3 => DType::I32,
        4 => DType::I64,
        5 => DType::F16,
        6 => DType::F32,
        7 => DType::F64,
        11 => DType::Bool,
        15 => DType::Bf16,
        _ => return None,
    })
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
