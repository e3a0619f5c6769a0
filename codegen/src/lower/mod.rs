//! Lowering: from an optimised graph to a tree of parts over planned memory.
//!
//! [`legalize`](legalize::legalize) makes borders explicit where the target wants that, [`Homes`](homes::Homes) say which buffer each value is a view of,
//! [`steps`](steps::steps) are the parts, [`order`](order::candidates) the orders to choose from, [`Layout`] says how long each buffer lives in
//! the walk of the tree, [`plan`](plan::plan) finds the offsets. [`blocks`](blocks::plans) says which nodes may be computed as [`Stripe`]s, row by
//! row. Bodies of loops become parts of the tree before it is planned.

mod blocks;
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

use crate::choice::Chooser;
use crate::names::Names;
use crate::target::Target;
use blocks::Block;
use homes::{Buffer, BufferId, Homes};
use maker::{Body, Item};
use mlc_ir::{Code, Diagnostic, Graph, Location};
use order::Schedule;
use std::rc::Rc;

/// Alignment in bytes of the inputs and outputs of a model, which its header demands.
pub const INTERFACE_ALIGNMENT: usize = 16;

/// Lowers a verified graph; kernels take the schedules that are chosen for them. Where there are several choosers, that of the
/// best program takes the place of `chooser`.
///
/// # Errors
/// All nodes that the target can't run.
pub fn lower(graph: &Graph, chooser: &mut Chooser, names: &mut Names) -> Result<Program, Vec<Diagnostic>> {
    let Sequence { parts, messages, buffers, layout, .. } = search::best(&folded(graph)?, chooser, names)?;
    Ok(Program { parts, messages, buffers, layout })
}

/// What a verified graph could be lowered to, see [`Point`].
///
/// # Errors
/// All nodes that the target can't run.
pub fn explore(graph: &Graph, chooser: &mut Chooser, names: &Names) -> Result<Vec<Point>, Vec<Diagnostic>> {
    search::explore(&folded(graph)?, chooser, names)
}

/// Lowers the body of a loop: its inputs and outputs are slices, of which nobody knows more than the alignment of the elements.
fn lower_body(graph: &Graph, chooser: &mut Chooser, names: &mut Names) -> Result<Body, Vec<Diagnostic>> {
    let Sequence { parts, buffers, .. } = sequence(&folded(graph)?, &[], 1, chooser, names)?;
    Ok(Body { parts, buffers })
}

fn folded(graph: &Graph) -> Result<Graph, Vec<Diagnostic>> {
    legalize::fold_constants(graph).map_err(|error| vec![error])
}

/// A lowered graph, planned as if there were nothing else.
struct Sequence {
    parts: Vec<Part>,
    messages: Vec<LoweredMessage>,
    buffers: Vec<Buffer>,
    layout: Layout,
    target: Rc<Target>,
}

impl Sequence {
    /// Bytes of the arena, and the time of what schedules were chosen for and of stripes.
    fn cost(&self) -> (usize, u64) {
        let time = |entry: Entry<'_>| match entry.part {
            Part::Step(step) => step.choice.taken().map_or(0, |taken| taken.price.time.saturating_mul(entry.turns())),
            Part::Stripe(code) => code.time(&self.target),
            _ => 0,
        };
        (self.layout.plan.arena_bytes, entries(&self.parts, 0).into_iter().map(time).sum())
    }
}

fn sequence(
    graph: &Graph,
    blocks: &[Block],
    interface_alignment: usize,
    chooser: &mut Chooser,
    names: &mut Names,
) -> Result<Sequence, Vec<Diagnostic>> {
    let target = Rc::clone(&chooser.target);
    let in_stripe = |node: &str| blocks.iter().any(|block| block.has(node));
    let graph = legalize::legalize(graph, &target, |node| chooser.takes_band(node), in_stripe);
    let graph = graph.map_err(|error| vec![error])?;
    let mut homes = Homes::assign(&graph, interface_alignment);
    let (items, copies) = steps::steps(&graph, blocks, &mut homes, interface_alignment, chooser, names, lower_body)?;
    let messages = exchange::messages(&graph, &homes, &copies);
    let buffers = homes.buffers;
    let candidates = order::candidates(&graph, &items, &buffers, &messages).into_iter();
    let planned = candidates.map(|schedule| {
        let (ordered, exchanges) = ordered(&items, &schedule, &messages);
        (Layout::new(ordered, &exchanges, &buffers, target.alignment), schedule)
    });
    let Some((layout, schedule)) = planned.min_by_key(|(layout, _)| layout.plan.arena_bytes) else {
        let place = Location { node: Some(graph.name.clone()), ..Location::default() };
        return Err(vec![Diagnostic::error(
            Code::InvalidGraph,
            place,
            "the order of the messages, or of calls with effects, can't be kept",
        )]);
    };
    Ok(Sequence { parts: assembled(items, &schedule), messages, buffers, layout, target })
}

/// The parts in an order, and when the memory of messages is used: positions with buffers.
fn ordered<'a>(
    items: &'a [Item],
    schedule: &Schedule,
    messages: &[LoweredMessage],
) -> (Vec<&'a Part>, Vec<(usize, BufferId)>) {
    let parts: Vec<&Part> = schedule.order.iter().map(|&index| &items[index].part).collect();
    let position = |before: usize| parts[..before].iter().map(|part| part.positions()).sum();
    let exchanges =
        schedule.exchanges.iter().map(|(before, exchange)| (position(*before), messages[exchange.message].buffer));
    let exchanges = exchanges.collect();
    (parts, exchanges)
}

/// The parts in an order, with what is done with messages between them.
fn assembled(items: Vec<Item>, schedule: &Schedule) -> Vec<Part> {
    let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    let mut exchanges = schedule.exchanges.iter().peekable();
    let mut parts = Vec::new();
    for place in 0..=schedule.order.len() {
        while let Some((_, exchange)) = exchanges.next_if(|(before, _)| *before <= place) {
            parts.push(Part::Exchange(*exchange));
        }
        let item = schedule.order.get(place).and_then(|&index| items[index].take());
        parts.extend(item.map(|item| item.part));
    }
    parts
}
