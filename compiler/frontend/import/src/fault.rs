//! [`Fault`]: why one operator can't be imported. The importer adds the place and makes a diagnostic of it.

use mlc_ir::{AttributeError, Code, OperatorError};

/// A finding about the operator at hand.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What kind of finding it is.
    pub code: Code,
    /// What is wrong, and what was expected.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Fault {
    /// A finding of a kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Fault { code, message: message.into(), help: None }
    }

    /// A form of a supported operator that can't be expressed.
    pub fn variant(message: impl Into<String>) -> Self {
        Fault::new(Code::VariantUnsupported, message)
    }

    /// A parameter of the wrong kind or with a value that isn't allowed.
    pub fn parameter(message: impl Into<String>) -> Self {
        Fault::new(Code::ParameterInvalid, message)
    }

    /// Operands that don't fit.
    pub fn operands(message: impl Into<String>) -> Self {
        Fault::new(Code::OperandTypes, message)
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<OperatorError> for Fault {
    fn from(error: OperatorError) -> Self {
        let code = match error {
            OperatorError::OperandCount { .. } => Code::OperandCount,
            OperatorError::OperandTypes(_) => Code::OperandTypes,
            OperatorError::Field(_) => Code::ParameterInvalid,
            OperatorError::Evaluation(_) => Code::Evaluation,
        };
        Fault::new(code, error.to_string())
    }
}

impl From<AttributeError> for Fault {
    fn from(error: AttributeError) -> Self {
        Fault::operands(error.to_string())
    }
}
