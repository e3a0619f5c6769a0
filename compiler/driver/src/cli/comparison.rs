//! What `mlc verify` is told of comparisons: what is compared beside the outputs, and what counts as equal.

use super::values::tolerance;
use crate::compare::Tolerance;
use clap::Args;
use std::path::PathBuf;

/// What counts as equal.
#[derive(Debug, Clone, Copy, Args)]
pub struct ToleranceOptions {
    /// Absolute tolerance [default: by data type; one step of a quantised output against a file]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = tolerance)]
    pub atol: Option<f64>,
    /// Relative tolerance [default: by data type]
    #[arg(long, value_name = "X", allow_negative_numbers = true, value_parser = tolerance)]
    pub rtol: Option<f64>,
}

impl ToleranceOptions {
    /// Whether the user gives none.
    pub(super) fn is_default(self) -> bool {
        self.atol.is_none() && self.rtol.is_none()
    }

    /// The user's tolerance, or else this one.
    pub(super) fn or(self, default: Tolerance) -> Tolerance {
        Tolerance { absolute: self.atol.unwrap_or(default.absolute), relative: self.rtol.unwrap_or(default.relative) }
    }
}

/// What is compared beside the outputs.
#[derive(Debug, Clone, Args)]
pub struct LayerOptions {
    /// Also compare what every kernel computes, and name the first that is off: by itself, on the operands that it had
    #[arg(long)]
    pub per_layer: bool,
    /// Compare what kernels compute with this model, too, whose operators have the same names
    #[arg(long, value_name = "MODEL", requires = "per_layer")]
    pub against: Option<PathBuf>,
}
