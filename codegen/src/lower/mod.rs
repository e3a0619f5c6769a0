//! Lowering: from an optimised graph to steps over planned memory.
//!
//! [`legalize`](legalize::legalize) makes borders explicit where the target wants that, [`Homes`](homes::Homes) say which buffer each value is a view of,
//! [`steps`](steps::steps) are the kernels, [`order`](order::candidates) the orders to choose from, [`plan`](plan::plan) the offsets.

mod exchange;
mod external;
pub mod homes;
mod legalize;
mod loop_operator;
mod maker;
mod order;
pub mod plan;
mod program;
mod roles;
mod steps;
pub mod view;

pub use exchange::{Action, Exchange, LoweredMessage};
pub use program::{Binding, Carried, ExternRoutine, Group, LoopRoutine, Once, Program, Routine, Step, Walk};

use crate::choice::Chooser;
use crate::module::MemoryPlan;
use crate::names::Names;
use crate::target::Target;
use homes::{Buffer, BufferId, BufferKind, Homes};
use mlc_ir::{Code, Diagnostic, Graph, Location};
use order::Schedule;
use plan::Request;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Alignment in bytes of the inputs and outputs of a model, which its header demands.
pub const INTERFACE_ALIGNMENT: usize = 16;

/// Lowers a verified graph; kernels take the schedules that are chosen for them. Where there are several choosers, that of the
/// program with the smallest arena takes the place of `chooser`.
///
/// # Errors
/// All nodes that the target can't run.
pub fn lower(graph: &Graph, chooser: &mut Chooser, names: &mut Names) -> Result<Program, Vec<Diagnostic>> {
    let (alternatives, unused) = (chooser.alternatives(), names.clone());
    let mut best = lower_within(graph, INTERFACE_ALIGNMENT, chooser, names)?;
    for mut alternative in alternatives {
        let mut own_names = unused.clone();
        let program = lower_within(graph, INTERFACE_ALIGNMENT, &mut alternative, &mut own_names)?;
        if program.plan.arena_bytes < best.plan.arena_bytes {
            best = program;
            (*chooser, *names) = (alternative, own_names);
        }
    }
    Ok(best)
}

/// Lowers the body of a loop: its inputs and outputs are slices, of which nobody knows more than the alignment of the elements.
fn lower_body(graph: &Graph, chooser: &mut Chooser, names: &mut Names) -> Result<Program, Vec<Diagnostic>> {
    lower_within(graph, 1, chooser, names)
}

fn lower_within(
    graph: &Graph,
    interface_alignment: usize,
    chooser: &mut Chooser,
    names: &mut Names,
) -> Result<Program, Vec<Diagnostic>> {
    let target = &*Rc::clone(&chooser.target);
    let graph = legalize::legalize(graph, target.borders).map_err(|error| vec![error])?;
    let mut homes = Homes::assign(&graph, interface_alignment);
    let (steps, copies) = steps::steps(&graph, &mut homes, interface_alignment, chooser, names, lower_body)?;
    let messages = exchange::messages(&graph, &homes, &copies);
    let buffers = homes.buffers;
    let schedules = order::candidates(&graph, &steps, &buffers, &messages).into_iter();
    let layouts = schedules.map(|schedule| Layout::new(&steps, schedule, &buffers, &messages, target));
    let Some(best) = layouts.min_by_key(|layout| layout.plan.arena_bytes) else {
        let place = Location { node: Some(graph.name.clone()), ..Location::default() };
        return Err(vec![Diagnostic::error(
            Code::InvalidGraph,
            place,
            "the order of the messages, or of calls with effects, can't be kept",
        )]);
    };
    let mut slots: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    let Layout { schedule: Schedule { order, exchanges }, offsets, scratch, groups, plan } = best;
    let steps = order.iter().filter_map(|&index| slots[index].take()).collect();
    Ok(Program { graph, steps, messages, exchanges, buffers, offsets, scratch, groups, plan })
}

/// An order of the steps and where it puts everything.
struct Layout {
    schedule: Schedule,
    offsets: BTreeMap<BufferId, usize>,
    scratch: BTreeMap<(usize, usize), usize>,
    groups: Vec<Group>,
    plan: MemoryPlan,
}

impl Layout {
    fn new(
        steps: &[Step],
        schedule: Schedule,
        buffers: &[Buffer],
        messages: &[LoweredMessage],
        target: &Target,
    ) -> Layout {
        let ordered: Vec<&Step> = schedule.order.iter().map(|&index| &steps[index]).collect();
        let own = own_lives(&ordered, buffers, messages, &schedule.exchanges);
        let lives = merge_in_place(&ordered, &own);
        let (requests, owners) = requests(&ordered, buffers, &lives);
        let mut plan = plan::plan(&requests, target.alignment);
        let (mut offsets, mut scratch) = (BTreeMap::new(), BTreeMap::new());
        for (owner, planned) in owners.iter().zip(&plan.buffers) {
            match *owner {
                Owner::Buffer(root) => offsets.extend(lives.members(root).map(|id| (id, planned.offset))),
                Owner::Scratch(step, number) => {
                    scratch.insert((step, number), planned.offset);
                }
            }
        }
        plan.buffers.sort_by_key(|buffer| (buffer.first, buffer.offset));
        Layout { schedule, offsets, scratch, groups: lives.groups(buffers), plan }
    }
}

/// What needs a place in the arena, and for whom.
fn requests(steps: &[&Step], buffers: &[Buffer], lives: &Lives) -> (Vec<Request>, Vec<Owner>) {
    let mut requests: Vec<Request> = Vec::new();
    let mut owners: Vec<Owner> = Vec::new();
    for (&root, &(first, last)) in &lives.roots {
        let mut values: Vec<String> = lives.members(root).flat_map(|id| buffers[id].values.clone()).collect();
        values.dedup();
        let alignment = lives.members(root).map(|id| buffers[id].alignment).fold(1, usize::max);
        requests.push(Request { values, bytes: buffers[root].bytes, alignment, first, last });
        owners.push(Owner::Buffer(root));
    }
    for (index, step) in steps.iter().enumerate() {
        for (number, binding) in step.bindings.iter().enumerate() {
            if let Binding::Scratch { bytes, alignment, .. } = binding {
                let values = vec![format!("scratch of {}", step.routine.name())];
                requests.push(Request { values, bytes: *bytes, alignment: *alignment, first: index, last: index });
                owners.push(Owner::Scratch(index, number));
            }
        }
    }
    (requests, owners)
}

enum Owner {
    Buffer(BufferId),
    Scratch(usize, usize),
}

/// Arena buffers that share memory, and when each group lives.
struct Lives {
    alias: BTreeMap<BufferId, BufferId>,
    roots: BTreeMap<BufferId, (usize, usize)>,
}

impl Lives {
    fn groups(&self, buffers: &[Buffer]) -> Vec<Group> {
        let group = |(&root, &(first, last)): (&BufferId, &(usize, usize))| Group {
            members: self.members(root).collect(),
            bytes: buffers[root].bytes,
            first,
            last,
        };
        self.roots.iter().map(group).collect()
    }

    fn members(&self, root: BufferId) -> impl Iterator<Item = BufferId> + '_ {
        self.alias.iter().filter(move |(_, own)| **own == root).map(|(&id, _)| id)
    }
}

/// The first and the last step that touches each arena buffer. The memory of a message is its own from when it is sent, or ready to
/// be received, until it has been waited for.
fn own_lives(
    steps: &[&Step],
    buffers: &[Buffer],
    messages: &[LoweredMessage],
    exchanges: &[Exchange],
) -> BTreeMap<BufferId, (usize, usize)> {
    let mut own: BTreeMap<BufferId, (usize, usize)> = BTreeMap::new();
    let by_steps = steps.iter().enumerate().flat_map(|(index, step)| {
        let buffers = step.reads().chain(step.writes());
        buffers.map(move |id| (id, index))
    });
    let by_messages = exchanges.iter().map(|exchange| (messages[exchange.message].buffer, exchange.before));
    for (id, at) in by_steps.chain(by_messages).filter(|(id, _)| buffers[*id].kind == BufferKind::Arena) {
        let life = own.entry(id).or_insert((at, at));
        *life = (life.0.min(at), life.1.max(at));
    }
    own
}

/// Lets results overwrite operands that die in the step, where the step allows it.
fn merge_in_place(steps: &[&Step], own: &BTreeMap<BufferId, (usize, usize)>) -> Lives {
    let mut alias: BTreeMap<BufferId, BufferId> = own.keys().map(|&id| (id, id)).collect();
    let mut roots = own.clone();
    for (index, step) in steps.iter().enumerate() {
        for &(result, candidate) in &step.in_place {
            let root = alias[&candidate];
            let dies_here = roots.get(&root).is_some_and(|life| life.1 == index);
            let born_here = alias[&result] == result && own[&result].0 == index;
            if dies_here && born_here && root != result {
                alias.insert(result, root);
                roots.remove(&result);
                if let Some(life) = roots.get_mut(&root) {
                    life.1 = own[&result].1;
                }
            }
        }
    }
    Lives { alias, roots }
}
