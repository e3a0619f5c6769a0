//! Operators that the user describes, in models of any format: found by name, typed by their descriptions, and put into the graph
//! as calls of their C, or as views.

mod arguments;
mod calls;
mod options;
mod typed;

pub(crate) use arguments::{arguments, parameters, result_names, result_order};
pub(crate) use calls::CustomCalls;
pub use options::{CustomOperators, Renamed};
pub(crate) use typed::{Refusal, Typed};
