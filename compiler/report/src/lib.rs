//! Reports: what a model became, for people and for programs.
//!
//! [`Report::new`] gathers what the compiler knows of a compiled model as data. [`page`] makes a page of it that needs nothing else, [`svg`]
//! pictures, [`dot`] the text that Graphviz reads. Nothing here reads files, a clock or the machine.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod comparison;
pub mod diagram;
pub mod dot;
pub mod page;
pub mod placement;
pub mod report;
pub mod svg;
mod template;

pub use comparison::Comparison;
pub use diagram::{Diagram, DiagramEdge, DiagramNode};
pub use report::{KernelReport, Measured, Report, Subject, Totals};
