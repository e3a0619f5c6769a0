//! Lowering: from an optimised graph to a tree of parts over planned memory.
//!
//! [`legalize`](legalize::legalize) makes borders explicit where the target wants that, [`Homes`](homes::Homes) say which buffer each value is a view of,
//! [`steps`](steps::steps) are the parts, [`order`](order::candidates) the orders to choose from, [`Layout`] says how long each buffer lives in
//! the walk of the tree, [`plan`](plan::plan) finds the offsets. Bodies of loops become parts of the tree before it is planned.

mod exchange;
mod external;
pub mod homes;
mod layout;
mod legalize;
mod loop_operator;
mod maker;
mod order;
mod part;
pub mod plan;
mod program;
mod roles;
mod steps;
pub mod view;

pub use exchange::{Action, Exchange, LoweredMessage};
pub use layout::{Group, Layout};
pub use part::{Binding, Carried, Entry, ExternRoutine, Label, Loop, Once, Part, Routine, Step, Walk, calls, entries};
pub use program::Program;
pub use roles::is_view;

use crate::choice::{Chooser, is_better};
use crate::names::Names;
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
    let has_bands = legalize::has_bands(graph, &chooser.target);
    let (alternatives, unused) = (chooser.alternatives(has_bands), names.clone());
    let objective = chooser.target.objective;
    let mut best = sequence(graph, INTERFACE_ALIGNMENT, chooser, names)?;
    for mut alternative in alternatives {
        let mut own_names = unused.clone();
        let other = sequence(graph, INTERFACE_ALIGNMENT, &mut alternative, &mut own_names)?;
        if is_better(objective, other.cost(), best.cost()) {
            best = other;
            (*chooser, *names) = (alternative, own_names);
        }
    }
    let Sequence { parts, messages, buffers, layout } = best;
    Ok(Program { parts, messages, buffers, layout })
}

/// Lowers the body of a loop: its inputs and outputs are slices, of which nobody knows more than the alignment of the elements.
fn lower_body(graph: &Graph, chooser: &mut Chooser, names: &mut Names) -> Result<Body, Vec<Diagnostic>> {
    let Sequence { parts, buffers, .. } = sequence(graph, 1, chooser, names)?;
    Ok(Body { parts, buffers })
}

/// A lowered graph, planned as if there were nothing else.
struct Sequence {
    parts: Vec<Part>,
    messages: Vec<LoweredMessage>,
    buffers: Vec<Buffer>,
    layout: Layout,
}

impl Sequence {
    /// Bytes of the arena, and the time of what schedules were chosen for.
    fn cost(&self) -> (usize, u64) {
        let time = |entry: Entry<'_>| match entry.part {
            Part::Step(step) => step.choice.taken().map_or(0, |taken| taken.price.time.saturating_mul(entry.turns())),
            _ => 0,
        };
        (self.layout.plan.arena_bytes, entries(&self.parts, 0).into_iter().map(time).sum())
    }
}

fn sequence(
    graph: &Graph,
    interface_alignment: usize,
    chooser: &mut Chooser,
    names: &mut Names,
) -> Result<Sequence, Vec<Diagnostic>> {
    let target = &*Rc::clone(&chooser.target);
    let graph = legalize::legalize(graph, target, |node| chooser.takes_band(node)).map_err(|error| vec![error])?;
    let mut homes = Homes::assign(&graph, interface_alignment);
    let (items, copies) = steps::steps(&graph, &mut homes, interface_alignment, chooser, names, lower_body)?;
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
    Ok(Sequence { parts: assembled(items, &schedule), messages, buffers, layout })
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
