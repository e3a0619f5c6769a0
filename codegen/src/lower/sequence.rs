//! [`sequence`]: a graph's parts in an order, over planned memory.

use super::block::Block;
use super::entries::{entries, time};
use super::fetch::{Fetch, Fetched};
use super::fetching;
use super::homes::{Buffer, BufferId, Homes, Interface};
use super::layout::Layout;
use super::maker::{Body, Item};
use super::order::{self, Schedule};
use super::part::{Binding, Part};
use super::sharing::{mark, settle};
use super::{exchange, legalize, steps};
use crate::choice::Chooser;
use crate::kernels::Packed;
use crate::lower::LoweredMessage;
use crate::names::Names;
use crate::target::Target;
use mlc_ir::{Code, Diagnostic, Graph, Location};
use std::rc::Rc;

/// Alignment in bytes of the inputs and outputs of a model, which its header demands.
pub const INTERFACE_ALIGNMENT: usize = 16;
/// The inputs and outputs of a model.
pub const OF_MODELS: Interface = Interface { alignment: INTERFACE_ALIGNMENT, carried: 0 };

/// A lowered graph, planned as if there were nothing else.
pub struct Sequence {
    pub parts: Vec<Part>,
    pub messages: Vec<LoweredMessage>,
    pub buffers: Vec<Buffer>,
    pub layout: Layout,
    target: Rc<Target>,
}

impl Sequence {
    /// Bytes of the arena, and the time of what schedules were chosen for and of stripes.
    pub fn cost(&self) -> (usize, u64) {
        (self.layout.plan.arena_bytes, time(&self.parts, &self.target))
    }

    /// Finds out what programs do without that are only tried out: which loops' turns are independent, and the values of packed constants.
    ///
    /// # Errors
    /// A constant that has too few elements: a defect of mlc.
    pub fn finish(&mut self) -> Result<(), Vec<Diagnostic>> {
        self.parts.iter_mut().for_each(mark);
        let entries = entries(&self.parts, 0);
        let bindings = entries.iter().flat_map(|entry| entry.part.bindings());
        let packed =
            bindings.filter_map(|own| if let Binding::Packed { value, .. } = own { Some(value) } else { None });
        let fetches = self.parts.iter().filter_map(|own| if let Part::Fetch(own) = own { Some(own) } else { None });
        let fetched = fetches.flat_map(Fetch::begun).map(|fetched| &fetched.value);
        Packed::find(&packed.chain(fetched).collect::<Vec<_>>()).map_err(|error| vec![error])
    }
}

/// The parts of a graph without constant nodes, in the order whose arena is smallest; `blocks` are computed row by row. Constants of at
/// least `fetched` bytes are copied into the arena before they are read.
///
/// # Errors
/// All nodes that the target can't run; an order that messages, or calls with effects, can't keep.
pub fn sequence(
    graph: &Graph,
    blocks: &[Block],
    interface: Interface,
    fetched: Option<usize>,
    chooser: &mut Chooser,
    names: &mut Names,
) -> Result<Sequence, Vec<Diagnostic>> {
    let target = Rc::clone(&chooser.target);
    let in_stripe = |node: &str| blocks.iter().any(|block| block.has(node));
    let graph = legalize::legalize(graph, &target, |node| chooser.takes_band(node), in_stripe);
    let graph = graph.map_err(|error| vec![error])?;
    let by_rows = blocks.iter().flat_map(|block| block.found(&graph)).collect();
    let mut homes = Homes::assign(&graph, by_rows, interface);
    let (mut items, copies) = steps::steps(&graph, blocks, &mut homes, chooser, names, lower_body)?;
    let messages = exchange::messages(&graph, &homes, &copies);
    let mut buffers = homes.buffers;
    let fetched = fetching::take(&mut items, &mut buffers, fetched);
    let candidates = order::candidates(&graph, &items, &buffers, &messages).into_iter();
    let planned = candidates.map(|schedule| {
        let (ordered, uses) = ordered(&items, &schedule, &messages, &fetched);
        (Layout::new(ordered, &uses, &buffers, target.alignment), schedule)
    });
    let Some((layout, schedule)) = planned.min_by_key(|(layout, _)| layout.plan.arena_bytes) else {
        let place = Location { node: Some(graph.name.clone()), ..Location::default() };
        return Err(vec![Diagnostic::error(
            Code::InvalidGraph,
            place,
            "the order of the messages, or of calls with effects, can't be kept",
        )]);
    };
    let mut parts = assembled(items, &schedule, fetched);
    parts.iter_mut().for_each(|part| settle(part, &|overlay| layout.direction(overlay, &buffers)));
    Ok(Sequence { parts, messages, buffers, layout, target })
}

/// The parts in an order, and when the memory of messages and of fetched constants is used: positions with buffers.
fn ordered<'a>(
    items: &'a [Item],
    schedule: &Schedule,
    messages: &[LoweredMessage],
    fetched: &[Vec<Fetched>],
) -> (Vec<&'a Part>, Vec<(usize, BufferId)>) {
    let parts: Vec<&Part> = schedule.order.iter().map(|&index| &items[index].part).collect();
    let position = |before: usize| parts[..before].iter().map(|part| part.positions()).sum();
    let exchanges =
        schedule.exchanges.iter().map(|(before, exchange)| (position(*before), messages[exchange.message].buffer));
    let begins = fetching::begins(&schedule.order, fetched);
    let constants = begins.iter().flat_map(|&(place, begin)| {
        fetched[schedule.order[place]].iter().map(move |constant| (position(begin), constant.buffer))
    });
    let uses = exchanges.chain(constants).collect();
    (parts, uses)
}

/// The parts in an order, with what is done with messages and fetched constants between them.
fn assembled(items: Vec<Item>, schedule: &Schedule, mut fetched: Vec<Vec<Fetched>>) -> Vec<Part> {
    let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    let mut exchanges = schedule.exchanges.iter().peekable();
    let begins = fetching::begins(&schedule.order, &fetched);
    let mut parts = Vec::new();
    for place in 0..=schedule.order.len() {
        while let Some((_, exchange)) = exchanges.next_if(|(before, _)| *before <= place) {
            parts.push(Part::Exchange(*exchange));
        }
        // What the first of them takes begins before everything else, and may be waited for at once.
        let is_first = |own: &usize| begins.first().is_some_and(|(first, _)| first == own);
        let (first, others): (Vec<usize>, Vec<usize>) =
            begins.iter().filter(|(_, begin)| *begin == place).map(|(own, _)| *own).partition(is_first);
        let mut begin = |places: Vec<usize>| {
            let list = places.into_iter().flat_map(|own| std::mem::take(&mut fetched[schedule.order[own]]));
            Some(list.collect::<Vec<Fetched>>()).filter(|list| !list.is_empty()).map(Fetch::Begin)
        };
        let wait = begins.iter().any(|(own, _)| *own == place).then_some(Fetch::Wait);
        let fetches = [begin(first), wait, begin(others)];
        parts.extend(fetches.into_iter().flatten().map(Part::Fetch));
        let item = schedule.order.get(place).and_then(|&index| items[index].take());
        parts.extend(item.map(|item| item.part));
    }
    parts
}

/// Lowers the body of a loop: its inputs and outputs are slices, of which nobody knows more than the alignment of the elements.
fn lower_body(
    graph: &Graph,
    carried: usize,
    chooser: &mut Chooser,
    names: &mut Names,
) -> Result<Body, Vec<Diagnostic>> {
    let interface = Interface { alignment: 1, carried };
    let Sequence { parts, buffers, .. } = sequence(&legalize::simplify(graph)?, &[], interface, None, chooser, names)?;
    Ok(Body { parts, buffers })
}
