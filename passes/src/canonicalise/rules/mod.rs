//! The canonical rules: a right side that is always at least as good, so that they need no search.

mod elementwise;
mod movement;
mod normalization;
mod rounding;
mod scalar;

use crate::rewrite::Rule;

pub(crate) use movement::moves_unit_axes_only;

/// Every canonical rule, in the order in which they are tried.
pub fn all() -> Vec<Rule> {
    [elementwise::RULES, scalar::RULES, rounding::RULES, normalization::RULES, movement::RULES].concat()
}
