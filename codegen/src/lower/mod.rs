//! Lowering: from an optimised graph to a tree of parts over planned memory.
//!
//! [`legalize`](legalize::legalize) makes borders explicit where the target wants that, [`Homes`](homes::Homes) say which buffer each value is a view of,
//! [`steps`](steps::steps) are the parts, [`order`](order::candidates) the orders to choose from, [`Layout`] says how long each buffer lives in
//! the walk of the tree, [`plan`](plan::plan) finds the offsets. [`blocks`](blocks::plans) says which nodes may be computed as [`Stripe`]s, row by
//! row. Bodies of loops become parts of the tree before it is planned.

mod blocks;
mod byte_sums;
mod exchange;
mod external;
pub mod homes;
mod layout;
mod legalize;
mod loop_operator;
mod maker;
mod order;
mod outline;
mod part;
pub mod plan;
mod program;
mod rings;
mod roles;
mod search;
mod sequence;
mod steps;
mod stripe;
mod turns;
pub mod view;

pub use exchange::{Action, Exchange, LoweredMessage};
pub use layout::{Group, Layout};
pub use part::{
    Act, Binding, Carried, Entry, ExternRoutine, Label, Loop, Once, Part, ResultPlace, Routine, Step, Stripe, Walk,
    calls, entries,
};
pub use program::Program;
pub use rings::{Ring, RowWalk};
pub use roles::is_view;
pub use search::{Point, front};
pub use sequence::INTERFACE_ALIGNMENT;

use crate::choice::Chooser;
use crate::names::Names;
use legalize::simplify;
use mlc_ir::{Diagnostic, Graph};
use sequence::Sequence;

/// Lowers a verified graph; kernels take the schedules that are chosen for them. Where there are several choosers, that of the
/// best program takes the place of `chooser`.
///
/// # Errors
/// All nodes that the target can't run.
pub fn lower(graph: &Graph, chooser: &mut Chooser, names: &mut Names) -> Result<Program, Vec<Diagnostic>> {
    let Sequence { parts, messages, buffers, layout, .. } = search::best(&simplify(graph)?, chooser, names)?;
    Ok(Program { parts, messages, buffers, layout })
}

/// What a verified graph could be lowered to, see [`Point`].
///
/// # Errors
/// All nodes that the target can't run.
pub fn explore(graph: &Graph, chooser: &mut Chooser, names: &Names) -> Result<Vec<Point>, Vec<Diagnostic>> {
    search::explore(&simplify(graph)?, chooser, names)
}
