//! Values of the C subset.

use super::types::{Base, IntType, Record, Type};

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer of a type.
    Int(i128, IntType),
    /// A `float`
    Single(f32),
    /// A `double`
    Double(f64),
    /// A pointer.
    Pointer(Pointer),
    /// What a function without a result returns.
    Void,
}

/// A pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// What it points into.
    pub target: Target,
    /// How many bytes into it.
    pub offset: i64,
    /// Type of what it points to.
    pub ty: Type,
}

/// What pointers point into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Nothing.
    Null,
    /// An object of the memory.
    Object(usize),
    /// A structure: its kind and its number.
    Record(Record, usize),
}

impl Pointer {
    /// The null pointer.
    pub const NULL: Pointer = Pointer { target: Target::Null, offset: 0, ty: Type::VOID };

    /// A pointer to a structure.
    pub fn record(record: Record, number: usize) -> Pointer {
        Pointer { target: Target::Record(record, number), offset: 0, ty: Type::record(record) }
    }

    /// A pointer to the first element of an object.
    pub fn object(object: usize, ty: Type) -> Pointer {
        Pointer { target: Target::Object(object), offset: 0, ty }
    }
}

impl Value {
    /// An `int`
    pub fn int(number: impl Into<i128>) -> Value {
        Value::Int(number.into(), IntType::INT)
    }

    /// A truth value.
    pub fn truth(truth: bool) -> Value {
        Value::int(i32::from(truth))
    }

    /// Whether it counts as true; `None` for no value.
    pub fn is_true(self) -> Option<bool> {
        Some(match self {
            Value::Int(number, _) => number != 0,
            Value::Single(number) => number != 0.0,
            Value::Double(number) => number != 0.0,
            Value::Pointer(pointer) => pointer.target != Target::Null,
            Value::Void => return None,
        })
    }

    /// The number in double precision.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Int(number, _) => Some(number as f64),
            Value::Single(number) => Some(number.into()),
            Value::Double(number) => Some(number),
            Value::Pointer(_) | Value::Void => None,
        }
    }

    /// How messages call its type.
    pub fn describe(self) -> String {
        match self {
            Value::Int(_, int) => Type::int(int).to_string(),
            Value::Single(_) => "float".into(),
            Value::Double(_) => "double".into(),
            Value::Pointer(pointer) => pointer.ty.pointer().to_string(),
            Value::Void => "void".into(),
        }
    }

    /// The value converted to a type, as an assignment does it.
    ///
    /// # Errors
    /// When the types don't go together, or the number isn't one of the type.
    pub fn converted(self, ty: Type) -> Result<Value, String> {
        let none = || format!("a value of type `{}` isn't one of type `{ty}`", self.describe());
        if let Some(target) = ty.target() {
            return match self {
                Value::Pointer(pointer) => pointer.converted(target).map(Value::Pointer).ok_or_else(none),
                Value::Int(0, _) => Ok(Value::Pointer(Pointer { ty: target, ..Pointer::NULL })),
                _ => Err(none()),
            };
        }
        match ty.base {
            Base::Double => self.number().map(Value::Double).ok_or_else(none),
            Base::Float => match self {
                Value::Single(number) => Ok(Value::Single(number)),
                _ => self.number().map(|number| Value::Single(number as f32)).ok_or_else(none),
            },
            Base::Int(int) => {
                let number = match self {
                    Value::Int(number, _) => return Ok(Value::Int(int.wrapped(number), int)),
                    _ => self.number().ok_or_else(none)?.trunc(),
                };
                let (low, high) = int.range();
                if number >= low as f64 && number <= high as f64 && (number as i128) <= high {
                    Ok(Value::Int(number as i128, int))
                } else {
                    Err(format!("{number} is out of the range of `{ty}`"))
                }
            }
            Base::Void | Base::Record(_) => Err(none()),
        }
    }
}

impl Pointer {
    /// The pointer as one to another type, if it can be: structures are only pointed to as what they are.
    fn converted(self, ty: Type) -> Option<Pointer> {
        let fits = match (self.target, ty) {
            (Target::Null, _) | (_, Type { base: Base::Void, stars: 0 }) => true,
            (Target::Record(record, _), _) => ty == Type::record(record),
            (Target::Object(_), Type { base: Base::Record(_), stars: 0 }) => false,
            (Target::Object(_), _) => true,
        };
        fits.then_some(Pointer { ty, ..self })
    }
}
