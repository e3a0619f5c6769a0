//! The contents of a PNNX file: operators in file order, and the operands between them.
//!
//! A [`Model`] from [`read`](super::read()) is consistent: every operand has one producer, which comes before all its
//! consumers, and every attribute has as many bytes as its shape and element type say.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;

/// A model as its files say it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Model {
    /// The operators in file order, which is a topological order.
    pub operators: Vec<Operator>,
    /// The operands in the order of their definition.
    pub operands: Vec<Operand>,
}

impl Model {
    /// The operator with this index.
    pub fn operator(&self, id: OperatorId) -> &Operator {
        &self.operators[id.index()]
    }

    /// The operand with this index.
    pub fn operand(&self, id: OperandId) -> &Operand {
        &self.operands[id.index()]
    }
}

/// Index of an operator in [`Model::operators`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperatorId(pub u32);

/// Index of an operand in [`Model::operands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperandId(pub u32);

impl OperatorId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl OperandId {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One line of the `.param` file.
#[derive(Debug, Clone)]
pub struct Operator {
    /// The operator's type, such as `nn.Conv2d`.
    pub kind: String,
    /// The operator's name, such as `layer1.0.conv1`.
    pub name: String,
    /// The operands that it takes. One operand may occur several times.
    pub inputs: Vec<OperandId>,
    /// The operands that it makes.
    pub outputs: Vec<OperandId>,
    /// The keyword of each input, where the line names it. Either empty, or as long as `inputs`.
    pub input_names: Vec<Option<String>>,
    /// Parameters by key.
    pub parameters: BTreeMap<String, Parameter>,
    /// Weights by key.
    pub attributes: BTreeMap<String, Attribute>,
    /// Line in the `.param` file, from 1; 0 if the operator doesn't come from a file. Not part of equality.
    pub line: u32,
}

impl PartialEq for Operator {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.name == other.name
            && self.inputs == other.inputs
            && self.outputs == other.outputs
            && self.input_names == other.input_names
            && self.parameters == other.parameters
            && self.attributes == other.attributes
    }
}

impl Operator {
    /// The input with this keyword, if the line labels one so.
    pub fn input_named(&self, keyword: &str) -> Option<OperandId> {
        let position = self.input_names.iter().position(|name| name.as_deref() == Some(keyword))?;
        self.inputs.get(position).copied()
    }

    /// The name of the archive entry that holds the attribute `key`.
    pub fn entry_name(&self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }
}

/// A value that flows between operators.
#[derive(Debug, Clone, PartialEq)]
pub struct Operand {
    /// The operand's name; a decimal number in files of the exporter.
    pub name: String,
    /// Element type and shape, if the file tells. Exporters leave them out for values of rank 0 and for values whose
    /// shape they couldn't infer, so the absence means nothing.
    pub ty: Option<OperandType>,
    /// The operator that makes it.
    pub producer: OperatorId,
    /// The operators that take it, in file order, each once.
    pub consumers: Vec<OperatorId>,
}

/// Element type and shape of an operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperandType {
    /// The element type; [`ElementType::Null`] if the file doesn't know it.
    pub element_type: ElementType,
    /// The dimensions, outermost first.
    pub shape: Vec<Dimension>,
}

impl fmt::Display for OperandType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_shape(f, &self.shape)?;
        fmt::Display::fmt(&self.element_type, f)
    }
}

/// One dimension of an operand.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dimension {
    /// A fixed extent, at most 2^31-1.
    Known(u32),
    /// `?`: differed between the shapes given to the exporter. Two unknown dimensions are unrelated.
    Unknown,
    /// `%name`: the same extent wherever the name occurs.
    Symbol(String),
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dimension::Known(extent) => write!(f, "{extent}"),
            Dimension::Unknown => f.write_str("?"),
            Dimension::Symbol(name) => write!(f, "%{name}"),
        }
    }
}

fn write_shape<D: fmt::Display>(f: &mut fmt::Formatter<'_>, shape: &[D]) -> fmt::Result {
    f.write_str("(")?;
    for (index, dimension) in shape.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write!(f, "{dimension}")?;
    }
    f.write_str(")")
}

/// A parameter's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// `None`, `()` or `[]`; the file can't tell an empty list from nothing.
    Null,
    /// `True` or `False`.
    Bool(bool),
    /// A 32-bit integer. The exporter squeezes 64-bit extremes into the 32-bit ones.
    Int(i32),
    /// A finite 32-bit float. Where a float is meant, the file may hold an [`Parameter::Int`].
    Float(f32),
    /// Everything else, including `inf`, `-inf` and `nan`, and the raw text of expressions.
    String(String),
    /// A list of integers.
    IntList(Vec<i32>),
    /// A list with at least one float.
    FloatList(Vec<f32>),
    /// A list with at least one element that isn't a number.
    StringList(Vec<String>),
    /// A complex number.
    Complex(Complex),
    /// A list with at least one complex number, and nothing but numbers.
    ComplexList(Vec<Complex>),
}

/// A complex number of two 32-bit floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

/// A weight: element type, shape and raw little-endian bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The element type.
    pub element_type: ElementType,
    /// The dimensions, outermost first, each at most 2^31-1.
    pub shape: Vec<u32>,
    /// The elements in row-major order, without padding and without any alignment.
    pub data: Bytes,
}

impl Attribute {
    /// The number of bytes that the shape and the element type need; `None` if that doesn't fit 64 bits.
    pub fn byte_size(&self) -> Option<u64> {
        // Checked even when a dimension is 0, except that 0 wins: an empty tensor is legal whatever its other extents.
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(self.element_type.size(), |size, &extent| size.checked_mul(u64::from(extent)))
    }

    /// The type as the file writes it, such as `(16,12,3,3)f32`.
    pub fn type_text(&self) -> String {
        struct Shape<'a>(&'a [u32]);
        impl fmt::Display for Shape<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_shape(f, self.0)
            }
        }
        format!("{}{}", Shape(&self.shape), self.element_type)
    }
}

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// Unknown, or a type that the format has no name for, such as the quantised ones.
    Null,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// IEEE half.
    F16,
    /// Signed 32 bits.
    I32,
    /// Signed 64 bits.
    I64,
    /// Signed 16 bits.
    I16,
    /// Signed 8 bits.
    I8,
    /// Unsigned 8 bits.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// Two singles: real, imaginary.
    C64,
    /// Two doubles: real, imaginary.
    C128,
    /// Two halves: real, imaginary.
    C32,
    /// The upper half of a single.
    BF16,
}

impl ElementType {
    /// All element types, in the order of the format's codes.
    pub const ALL: [ElementType; 14] = [
        ElementType::Null,
        ElementType::F32,
        ElementType::F64,
        ElementType::F16,
        ElementType::I32,
        ElementType::I64,
        ElementType::I16,
        ElementType::I8,
        ElementType::U8,
        ElementType::Bool,
        ElementType::C64,
        ElementType::C128,
        ElementType::C32,
        ElementType::BF16,
    ];

    /// Finds a type by its spelling; the older `cp64`, `cp128` and `cp32` mean `c64`, `c128` and `c32`.
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        match suffix {
            "cp64" => Some(ElementType::C64),
            "cp128" => Some(ElementType::C128),
            "cp32" => Some(ElementType::C32),
            _ => Self::ALL.into_iter().find(|element_type| element_type.suffix() == suffix),
        }
    }

    /// The spelling behind a shape.
    pub fn suffix(self) -> &'static str {
        match self {
            ElementType::Null => "null",
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
            ElementType::F16 => "f16",
            ElementType::I32 => "i32",
            ElementType::I64 => "i64",
            ElementType::I16 => "i16",
            ElementType::I8 => "i8",
            ElementType::U8 => "u8",
            ElementType::Bool => "bool",
            ElementType::C64 => "c64",
            ElementType::C128 => "c128",
            ElementType::C32 => "c32",
            ElementType::BF16 => "bf16",
        }
    }

    /// Bytes per element; 0 for [`ElementType::Null`].
    pub fn size(self) -> u64 {
        match self {
            ElementType::Null => 0,
            ElementType::I8 | ElementType::U8 | ElementType::Bool => 1,
            ElementType::F16 | ElementType::BF16 | ElementType::I16 => 2,
            ElementType::F32 | ElementType::I32 | ElementType::C32 => 4,
            ElementType::F64 | ElementType::I64 | ElementType::C64 => 8,
            ElementType::C128 => 16,
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.suffix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_finds_its_type() {
        for element_type in ElementType::ALL {
            assert_eq!(ElementType::from_suffix(element_type.suffix()), Some(element_type));
        }
        assert_eq!(ElementType::from_suffix("cp64"), Some(ElementType::C64));
        assert_eq!(ElementType::from_suffix("cp128"), Some(ElementType::C128));
        assert_eq!(ElementType::from_suffix("cp32"), Some(ElementType::C32));
        assert_eq!(ElementType::from_suffix("float"), None);
    }

    #[test]
    fn byte_size_is_checked() {
        let attribute =
            |shape: &[u32]| Attribute { element_type: ElementType::C128, shape: shape.to_vec(), data: Bytes::new() };
        assert_eq!(attribute(&[]).byte_size(), Some(16));
        assert_eq!(attribute(&[2, 3]).byte_size(), Some(96));
        assert_eq!(attribute(&[1 << 30, 1 << 30, 1]).byte_size(), None);
        assert_eq!(attribute(&[1 << 30, 1 << 30, 1 << 30, 0]).byte_size(), Some(0));
        assert_eq!(attribute(&[4, 5]).type_text(), "(4,5)c128");
    }
}
