//! Lowering: from an optimised graph to a tree of parts over planned memory.
//!
//! [`legalize`](legalize::legalize) makes borders explicit where the target wants that, [`Homes`](homes::Homes) say which buffer each value is a view of,
//! [`steps`](steps::steps) are the parts, [`order`](order::candidates) the orders to choose from, [`Layout`] says how long each buffer lives in
//! the walk of the tree, [`plan`](plan::plan) finds the offsets. [`blocks`](blocks::plans) says which nodes may be computed as [`Stripe`]s, row by
//! row. Bodies of loops become parts of the tree before it is planned.

mod block;
mod blocks;
mod byte_sums;
mod chain;
mod considered;
mod entries;
mod exchange;
mod external;
mod feed;
mod fetch;
mod fetching;
pub mod homes;
mod layout;
mod legalize;
mod loop_operator;
mod maker;
mod membership;
mod order;
mod outline;
mod overlay;
mod part;
mod patch;
mod patches;
pub mod plan;
mod point;
mod pools;
mod program;
mod retiming;
mod rewriting;
mod rings;
mod roles;
mod search;
mod sequence;
mod sharing;
mod steps;
mod stripe;
mod transposed;
mod turns;
pub mod view;
mod workers;

pub use considered::{Candidate, Considered, Cut, CutReason, Span};
pub use entries::{Entry, calls, entries, time};
pub use exchange::{Action, Exchange, LoweredMessage};
pub use fetch::{Fetch, Fetched};
pub use layout::{Accessed, Group, Layout};
pub use overlay::Overlay;
pub use part::{
    Act, Binding, Carried, ExternRoutine, Label, Loop, Once, Part, ResultPlace, Routine, Step, Stripe, Walk,
};
pub use patch::Halo;
pub use point::{Point, front};
pub use program::{Feeding, Program};
pub use rings::{Ring, RowWalk};
pub use roles::is_view;
pub use sequence::INTERFACE_ALIGNMENT;

use crate::choice::Chooser;
use crate::names::Names;
use legalize::simplify;
use mlc_ir::{Diagnostic, Graph};
use sequence::Sequence;

/// Lowers a verified graph; kernels take the schedules that are chosen for them. Where there are several choosers, that of the
/// best program takes the place of `chooser`. `fed` is the number of the input whose rows are given one after the other, if there is one.
///
/// # Errors
/// All nodes that the target can't run; what stands in the way of taking an input row by row.
pub fn lower(
    graph: &Graph,
    fed: Option<usize>,
    chooser: &mut Chooser,
    names: &mut Names,
) -> Result<Program, Vec<Diagnostic>> {
    let graph = simplify(graph)?;
    let input = fed.and_then(|number| feed::input(&graph, number));
    let refused = || input.map(|input| feed::refusal(&graph, input)).into_iter().collect::<Vec<_>>();
    let Some((best, considered)) = search::best(&graph, input, chooser, names)? else { return Err(refused()) };
    let Sequence { parts, messages, buffers, layout, .. } = best;
    let mut program = Program { parts, messages, buffers, layout, considered, feeding: None };
    if let Some(number) = fed {
        program.feeding = Some(Feeding::find(&program, number).ok_or_else(refused)?);
    }
    Ok(program)
}

/// What a verified graph could be lowered to, see [`Point`].
///
/// # Errors
/// All nodes that the target can't run.
pub fn explore(graph: &Graph, chooser: &mut Chooser, names: &Names) -> Result<Vec<Point>, Vec<Diagnostic>> {
    search::explore(&simplify(graph)?, chooser, names)
}
