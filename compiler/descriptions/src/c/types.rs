//! Types of the C subset.

use std::fmt;

/// An integer type; `long`, `size_t` and pointers have 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntType {
    /// Its size.
    pub bytes: u8,
    /// Whether it has negative numbers.
    pub signed: bool,
}

impl IntType {
    /// `int`
    pub const INT: IntType = IntType { bytes: 4, signed: true };
    /// `char`
    pub const CHAR: IntType = IntType { bytes: 1, signed: true };
    /// `long`
    pub const LONG: IntType = IntType { bytes: 8, signed: true };
    /// `size_t`
    pub const SIZE: IntType = IntType { bytes: 8, signed: false };

    /// The smallest and the greatest number.
    pub fn range(self) -> (i128, i128) {
        let bits = 8 * u32::from(self.bytes);
        if self.signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    /// The number modulo 2 to the number of bits, as unsigned numbers have it.
    pub fn wrapped(self, number: i128) -> i128 {
        let bits = 8 * u32::from(self.bytes);
        let low = number & ((1 << bits) - 1);
        if self.signed && low >> (bits - 1) == 1 { low - (1 << bits) } else { low }
    }
}

/// The structures of the interface that operators are written against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// `tl_tensor`
    Tensor,
    /// `ln_tensor_entry`
    TensorEntry,
    /// `ln_tensor_list_entry`
    ListEntry,
    /// `ln_param_entry`
    ParamEntry,
    /// `ln_op_arg`
    Operator,
    /// The table of tensors, whose members nobody sees.
    Table,
}

impl Record {
    fn name(self) -> &'static str {
        match self {
            Record::Tensor => "tl_tensor",
            Record::TensorEntry => "ln_tensor_entry",
            Record::ListEntry => "ln_tensor_list_entry",
            Record::ParamEntry => "ln_param_entry",
            Record::Operator => "ln_op_arg",
            Record::Table => "ln_hash",
        }
    }
}

/// A type without its stars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// `void`
    Void,
    /// An integer.
    Int(IntType),
    /// `float`
    Float,
    /// `double`
    Double,
    /// A structure; only pointers to structures are values.
    Record(Record),
}

/// A type of values: a base and the number of stars behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// What remains without the stars.
    pub base: Base,
    /// Number of stars.
    pub stars: u8,
}

impl Type {
    /// `int`
    pub const INT: Type = Type::int(IntType::INT);
    /// `char`
    pub const CHAR: Type = Type::int(IntType::CHAR);
    /// `double`
    pub const DOUBLE: Type = Type { base: Base::Double, stars: 0 };
    /// `float`
    pub const FLOAT: Type = Type { base: Base::Float, stars: 0 };
    /// `void`
    pub const VOID: Type = Type { base: Base::Void, stars: 0 };

    /// An integer type.
    pub const fn int(ty: IntType) -> Type {
        Type { base: Base::Int(ty), stars: 0 }
    }

    /// A structure.
    pub const fn record(record: Record) -> Type {
        Type { base: Base::Record(record), stars: 0 }
    }

    /// A pointer to this type.
    pub fn pointer(self) -> Type {
        Type { stars: self.stars.saturating_add(1), ..self }
    }

    /// What a pointer of this type leads to.
    pub fn target(self) -> Option<Type> {
        Some(Type { stars: self.stars.checked_sub(1)?, ..self })
    }

    /// Bytes of a value, if there are values of this type.
    pub fn size(self) -> Option<usize> {
        match self {
            Type { stars: 1.., .. } => Some(8),
            Type { base: Base::Int(int), .. } => Some(int.bytes.into()),
            Type { base: Base::Float, .. } => Some(4),
            Type { base: Base::Double, .. } => Some(8),
            Type { base: Base::Void | Base::Record(_), .. } => None,
        }
    }

    /// The type that a name of a type stands for, without the words that combine.
    pub fn named(word: &str) -> Option<Type> {
        let int = |bytes, signed| Some(Type::int(IntType { bytes, signed }));
        match word {
            "int8_t" => int(1, true),
            "uint8_t" => int(1, false),
            "int16_t" => int(2, true),
            "uint16_t" => int(2, false),
            "int32_t" => int(4, true),
            "uint32_t" => int(4, false),
            "int64_t" | "ptrdiff_t" | "ssize_t" => int(8, true),
            "uint64_t" | "size_t" => int(8, false),
            "tl_dtype" | "tl_bool_t" | "tl_elew_op" | "tl_resize_type" | "tl_sort_dir" | "ln_bool" | "ln_mem_type"
            | "ln_param_type" | "bool" => Some(Type::INT),
            "tl_tensor" => Some(Type::record(Record::Tensor)),
            "ln_tensor_entry" => Some(Type::record(Record::TensorEntry)),
            "ln_tensor_list_entry" => Some(Type::record(Record::ListEntry)),
            "ln_param_entry" => Some(Type::record(Record::ParamEntry)),
            "ln_op_arg" => Some(Type::record(Record::Operator)),
            "ln_hash" => Some(Type::record(Record::Table)),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base {
            Base::Void => f.write_str("void")?,
            Base::Int(IntType::CHAR) => f.write_str("char")?,
            Base::Int(IntType::INT) => f.write_str("int")?,
            Base::Int(IntType { bytes, signed }) => {
                write!(f, "{}int{}_t", if signed { "" } else { "u" }, 8 * u32::from(bytes))?;
            }
            Base::Float => f.write_str("float")?,
            Base::Double => f.write_str("double")?,
            Base::Record(record) => f.write_str(record.name())?,
        }
        if self.stars > 0 {
            write!(f, " {}", "*".repeat(self.stars.into()))?;
        }
        Ok(())
    }
}
