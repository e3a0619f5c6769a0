//! What every importer of a model format is built on: the engine, which walks a model's operators, and the builder, which makes
//! a graph of them. Nothing here knows a format, and nothing opens a file.
//!
//! A format brings its reader (bytes to structures of its own), its kinds of operand and attribute ([`Format`]) and its tables
//! ([`Operators`]). The engine ([`Importer`]) looks each operator of the file up, hands it a [`Call`], notes what the import
//! looked at, names values, binds open dimensions, inlines functions, decides branches and makes loops, and tells everything
//! that stands in the way in one go. Operators that the user describes ([`CustomOperators`]) are found by it, too, whatever the
//! format.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod attributes;
mod axes;
mod bodies;
pub mod builder;
mod call;
mod control;
mod custom;
mod described;
mod fault;
mod findings;
mod format;
mod importer;
mod interface;
mod item;
mod masks;
mod options;
mod range;
mod report;
mod support;
mod trips;
mod turns;
mod walk;
mod weights;

pub use attributes::counts;
pub use axes::{MOST_ELEMENTS, check_filled, extents, normalized_axis, slice_part};
pub use builder::Builder;
pub use call::{Call, Site};
pub use custom::{CustomOperators, Renamed};
pub use fault::Fault;
pub use findings::Findings;
pub use format::{Attributes, Constant, Description, Format, Surplus};
pub use importer::{Entry, Handler, Importer, Operators, Table, entries};
pub use interface::{DeclaredInput, Extent};
pub use item::{AttributeValue, Item, Operand};
pub use masks::{SliceMask, SliceMasks};
pub use options::{Bindings, ImportOptions, Imported, Update, Weight};
pub use report::Report;
pub use support::{OperatorSupport, nearest};
pub use trips::Conditional;
pub use turns::{Turns, check_copies};
