//! [`Fault`]: why one operator can't be imported. The importer adds the place and makes a diagnostic of it.

use mlc_ir::{AttributeError, Code, OperatorError};

/// A finding about the operator at hand.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub code: Code,
    pub message: String,
    pub help: Option<String>,
}

impl Fault {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Fault { code, message: message.into(), help: None }
    }

    /// A form of a supported operator that can't be expressed.
    pub(crate) fn variant(message: impl Into<String>) -> Self {
        Fault::new(Code::VariantUnsupported, message)
    }

    /// A parameter of the wrong kind or with a value that isn't allowed.
    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Fault::new(Code::ParameterInvalid, message)
    }

    /// Operands that don't fit.
    pub(crate) fn operands(message: impl Into<String>) -> Self {
        Fault::new(Code::OperandTypes, message)
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
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
