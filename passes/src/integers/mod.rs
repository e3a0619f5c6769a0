//! Arithmetic on real numbers that integers stand for, as arithmetic on those integers. Rules move the conversion to real numbers towards the
//! outputs: what is between two quantisations becomes sums of products of integers, one factor, and one rounding.
//!
//! They run before all others, while no constant has been computed: a constant of real numbers no longer shows which integers it came from.
//! They are no rules of the e-graph, for each is the better one wherever it applies.

mod arithmetic;
mod movement;
mod products;
mod real;
mod reasons;
mod samples;

pub use reasons::{Reason, reasons};

use crate::rewrite::Rule;

/// Every rule, in the order in which they are tried.
pub fn rules() -> Vec<Rule> {
    [movement::RULES, products::RULES, arithmetic::RULES].concat()
}
