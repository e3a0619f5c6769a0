//! Operators' typed fields, seen generically: the text form, hashing in the e-graph and the documentation are derived from them.

use crate::attribute::Attribute;
use crate::literal::Literal;
use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::types::{DType, Float, Shape, TensorType};
use std::any::Any;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// The value of an operator's field, without its Rust type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FieldValue {
    /// `true`, `false`
    Bool(bool),
    /// `-3`
    Integer(i64),
    /// `0.5`
    Float(Float),
    /// A bare word, such as `same` or `f32`.
    Word(String),
    /// Any text, in quotes.
    Text(Text),
    /// `[1, 2]`
    List(Vec<FieldValue>),
    /// A typed number.
    Literal(Literal),
    /// A scalar expression.
    Expression(Expression),
    /// A tensor type.
    Type(TensorType),
    /// A weight.
    Attribute(Attribute),
    /// An operator or a graph inside an operator: something that has fields itself.
    Nested(Nested),
}

/// Text that isn't a word, such as C; shared, since operators are copied often.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text(Arc<str>);

impl<T: Into<Arc<str>>> From<T> for Text {
    fn from(text: T) -> Self {
        Text(text.into())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A value of a type that this file needn't know: types with fields hold values of fields, not the other way round. What knows the
/// type wraps it and finds it again ([`FieldValue::of_operator`], [`FieldValue::of_graph`]).
#[derive(Debug, Clone)]
pub struct Nested(Arc<dyn NestedValue>);

/// What a value must allow to be nested; every such type does.
trait NestedValue: Any + Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;

    fn equals(&self, other: &dyn NestedValue) -> bool;

    fn feed(&self, hasher: &mut dyn Hasher);
}

impl<T: Any + Debug + Eq + Hash + Send + Sync> NestedValue for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn NestedValue) -> bool {
        other.as_any().downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn feed(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
}

impl Nested {
    /// Wraps a value.
    pub(crate) fn new(value: impl Any + Debug + Eq + Hash + Send + Sync) -> Self {
        Nested(Arc::new(value))
    }

    /// The value, if it is of this type.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        (*self.0).as_any().downcast_ref()
    }
}

impl PartialEq for Nested {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Eq for Nested {}

impl Hash for Nested {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.feed(state);
    }
}

/// A Rust type that a field can have.
pub trait Field: Sized {
    /// The value without its type.
    fn to_value(&self) -> FieldValue;

    /// The typed value; `None` when it is of another kind or out of range.
    fn from_value(value: &FieldValue) -> Option<Self>;
}

/// The fields of an operator, in a fixed order. Implemented by [`operator_fields!`].
pub trait Fields: Sized {
    /// Names and documentation of the fields.
    const DESCRIPTIONS: &'static [(&'static str, &'static str)];

    /// Names and values, in the order of the declaration.
    fn fields(&self) -> Vec<(&'static str, FieldValue)>;

    /// Builds the operator from values by name.
    ///
    /// # Errors
    /// A sentence that names the field that is missing, unknown or of the wrong kind.
    fn from_fields(values: &[(String, FieldValue)]) -> Result<Self, String>;
}

/// Declares an operator's structure and derives [`Fields`] for it. A field with a default is left out of the text where it has it.
#[macro_export]
macro_rules! operator_fields {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ pub $field:ident: $ty:ty $(= $default:expr)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $ty,)* }

        impl $crate::fields::Fields for $name {
            const DESCRIPTIONS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($doc, " ",)+).trim_ascii()),)*];

            fn fields(&self) -> Vec<(&'static str, $crate::fields::FieldValue)> {
                let all: Vec<Option<(&'static str, $crate::fields::FieldValue)>> = vec![$({
                    let default: &[$ty] = &[$($default)?];
                    let value = $crate::fields::Field::to_value(&self.$field);
                    (!default.contains(&self.$field)).then_some((stringify!($field), value))
                },)*];
                all.into_iter().flatten().collect()
            }

            fn from_fields(values: &[(String, $crate::fields::FieldValue)]) -> Result<Self, String> {
                $crate::fields::check_names(values, Self::DESCRIPTIONS)?;
                Ok($name { $($field: {
                    let default: &[$ty] = &[$($default)?];
                    $crate::fields::typed_field(values, stringify!($field), default.first())?
                },)* })
            }
        }
    };
}

/// Looks a field up and gives it its type; one that isn't there has its default.
pub fn typed_field<T: Field + Clone>(
    values: &[(String, FieldValue)],
    name: &str,
    default: Option<&T>,
) -> Result<T, String> {
    let Some((_, value)) = values.iter().find(|(key, _)| key == name) else {
        return default.cloned().ok_or_else(|| format!("field {name} is missing"));
    };
    T::from_value(value).ok_or_else(|| format!("field {name} can't be {value}"))
}

/// Checks that no name is unknown or given twice.
pub fn check_names(values: &[(String, FieldValue)], known: &[(&str, &str)]) -> Result<(), String> {
    for (index, (name, _)) in values.iter().enumerate() {
        if !known.iter().any(|(known, _)| known == name) {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no field {name}; the fields are: {}", names.join(", ")));
        }
        if values[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err(format!("field {name} is given twice"));
        }
    }
    Ok(())
}

/// Declares an enumeration whose variants are bare words in the text form.
#[macro_export]
macro_rules! word_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)+ }

        impl $name {
            /// Every variant.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The spelling in the text form.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }

        impl $crate::fields::Field for $name {
            fn to_value(&self) -> $crate::fields::FieldValue {
                $crate::fields::FieldValue::Word(self.name().to_owned())
            }

            fn from_value(value: &$crate::fields::FieldValue) -> Option<Self> {
                let $crate::fields::FieldValue::Word(word) = value else { return None };
                Self::ALL.iter().copied().find(|variant| variant.name() == word)
            }
        }
    };
}

macro_rules! simple_field {
    ($ty:ty, $variant:ident) => {
        impl Field for $ty {
            fn to_value(&self) -> FieldValue {
                FieldValue::$variant(self.clone())
            }

            fn from_value(value: &FieldValue) -> Option<Self> {
                match value {
                    FieldValue::$variant(value) => Some(value.clone()),
                    _ => None,
                }
            }
        }
    };
}

simple_field!(bool, Bool);
simple_field!(i64, Integer);
simple_field!(TensorType, Type);
simple_field!(Attribute, Attribute);
simple_field!(Text, Text);

/// A bare word that isn't one of a list, such as a symbol of C.
impl Field for String {
    fn to_value(&self) -> FieldValue {
        FieldValue::Word(self.clone())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Word(word) => Some(word.clone()),
            _ => None,
        }
    }
}

/// A bool in text may also stand for a literal.
impl Field for Literal {
    fn to_value(&self) -> FieldValue {
        FieldValue::Literal(*self)
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Literal(value) => Some(*value),
            FieldValue::Bool(value) => Some(Literal::integer(DType::Bool, i64::from(*value))),
            _ => None,
        }
    }
}

/// An operand such as `x0`, which in text is a word, and a literal are expressions too.
impl Field for Expression {
    fn to_value(&self) -> FieldValue {
        FieldValue::Expression(self.clone())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Expression(value) => Some(value.clone()),
            FieldValue::Word(word) => Expression::parse(word).ok(),
            value => Literal::from_value(value).map(|literal| Expression::build(|b| b.literal(literal))),
        }
    }
}

impl Field for Float {
    fn to_value(&self) -> FieldValue {
        FieldValue::Float(*self)
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Float(value) => Some(*value),
            FieldValue::Integer(value) => Some(Float(*value as f64)),
            _ => None,
        }
    }
}

impl Field for usize {
    fn to_value(&self) -> FieldValue {
        FieldValue::Integer(*self as i64)
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Integer(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn to_value(&self) -> FieldValue {
        FieldValue::List(self.iter().map(Field::to_value).collect())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::List(values) => values.iter().map(T::from_value).collect(),
            _ => None,
        }
    }
}

/// What isn't there is the word `none`, which no value may be.
impl<T: Field> Field for Option<T> {
    fn to_value(&self) -> FieldValue {
        self.as_ref().map_or_else(|| FieldValue::Word("none".to_owned()), Field::to_value)
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Word(word) if word == "none" => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl Field for Shape {
    fn to_value(&self) -> FieldValue {
        FieldValue::List(self.iter().map(Field::to_value).collect())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        Vec::<usize>::from_value(value).map(Shape::from)
    }
}

/// A pair prints as `[begin, end]`.
impl<T: Field> Field for (T, T) {
    fn to_value(&self) -> FieldValue {
        FieldValue::List(vec![self.0.to_value(), self.1.to_value()])
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::List(values) if values.len() == 2 => {
                Some((T::from_value(&values[0])?, T::from_value(&values[1])?))
            }
            _ => None,
        }
    }
}

impl Field for DType {
    fn to_value(&self) -> FieldValue {
        FieldValue::Word(self.name().to_owned())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Word(word) => DType::parse(word),
            _ => None,
        }
    }
}

impl Field for UnaryFunction {
    fn to_value(&self) -> FieldValue {
        FieldValue::Word(self.name().to_owned())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Word(word) => UnaryFunction::parse(word),
            _ => None,
        }
    }
}

impl Field for BinaryFunction {
    fn to_value(&self) -> FieldValue {
        FieldValue::Word(self.name().to_owned())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        match value {
            FieldValue::Word(word) => BinaryFunction::parse(word),
            _ => None,
        }
    }
}
