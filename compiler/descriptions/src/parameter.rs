//! Parameters of operators, and their values.

/// What a parameter's value is in a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Null.
    Null,
    /// A string.
    Text,
    /// A number.
    Number,
    /// A truth value.
    Bool,
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What its value, or each of its elements, is.
    pub kind: ParameterKind,
    /// Whether it is an array.
    pub array: bool,
    /// Type of its variable in C, or of its elements', where the kind leaves a choice.
    pub real_type: Option<String>,
    /// The function that makes the variable's value of a string.
    pub from_function: Option<String>,
    /// The value of operators that don't give one.
    pub default: Option<ParameterValue>,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    /// Null.
    Null,
    /// A string.
    Text(String),
    /// A number.
    Number(f64),
    /// A truth value.
    Bool(bool),
    /// Strings.
    Texts(Vec<String>),
    /// Numbers.
    Numbers(Vec<f64>),
    /// Truth values.
    Bools(Vec<bool>),
}

impl ParameterValue {
    /// The name of its type in descriptions.
    pub fn type_name(&self) -> &'static str {
        match self {
            ParameterValue::Null => "LN_PARAM_NULL",
            ParameterValue::Text(_) => "LN_PARAM_STRING",
            ParameterValue::Number(_) => "LN_PARAM_NUMBER",
            ParameterValue::Bool(_) => "LN_PARAM_BOOL",
            ParameterValue::Texts(_) => "LN_PARAM_ARRAY_STRING",
            ParameterValue::Numbers(_) => "LN_PARAM_ARRAY_NUMBER",
            ParameterValue::Bools(_) => "LN_PARAM_ARRAY_BOOL",
        }
    }

    /// Number of elements of an array, else 0.
    pub fn length(&self) -> usize {
        match self {
            ParameterValue::Texts(list) => list.len(),
            ParameterValue::Numbers(list) => list.len(),
            ParameterValue::Bools(list) => list.len(),
            _ => 0,
        }
    }
}

impl Parameter {
    /// The name of its type in descriptions.
    pub fn type_name(&self) -> &'static str {
        match (self.kind, self.array) {
            (ParameterKind::Null, _) => "LN_PARAM_NULL",
            (ParameterKind::Text, false) => "LN_PARAM_STRING",
            (ParameterKind::Number, false) => "LN_PARAM_NUMBER",
            (ParameterKind::Bool, false) => "LN_PARAM_BOOL",
            (ParameterKind::Text, true) => "LN_PARAM_ARRAY_STRING",
            (ParameterKind::Number, true) => "LN_PARAM_ARRAY_NUMBER",
            (ParameterKind::Bool, true) => "LN_PARAM_ARRAY_BOOL",
        }
    }
}
