//! Lowering: from an optimised graph to steps over planned memory.
//!
//! [`legalize`](legalize::legalize) makes borders explicit, [`Homes`](homes::Homes) say which buffer each value is a view of,
//! [`steps`](steps::steps) are the kernels, [`order`](order::order) their order, [`plan`](plan::plan) the offsets.

pub mod homes;
pub mod legalize;
pub mod order;
pub mod plan;
pub mod steps;
pub mod view;

use crate::module::MemoryPlan;
use crate::names::Names;
use crate::target::Target;
use homes::{Buffer, BufferId, BufferKind, Homes};
use mlc_ir::{Diagnostic, Graph};
use plan::Request;
use std::collections::BTreeMap;
use steps::{Binding, Step};

/// Kernels in execution order, over buffers with offsets.
#[derive(Debug)]
pub struct Program {
    /// The legal graph that the steps compute.
    pub graph: Graph,
    /// The kernels.
    pub steps: Vec<Step>,
    /// The buffers that the steps' bindings name.
    pub buffers: Vec<Buffer>,
    /// Offset in the arena of each arena buffer, in bytes.
    pub offsets: BTreeMap<BufferId, usize>,
    /// Offset in the arena of each step's scratch memory, by (step, number of the binding).
    pub scratch: BTreeMap<(usize, usize), usize>,
    /// The memory plan.
    pub plan: MemoryPlan,
}

/// Lowers a verified graph.
///
/// # Errors
/// All nodes that the target can't run.
pub fn lower(graph: &Graph, target: &Target, names: &mut Names) -> Result<Program, Vec<Diagnostic>> {
    let graph = legalize::legalize(graph).map_err(|error| vec![error])?;
    let mut homes = Homes::assign(&graph);
    let steps = steps::steps(&graph, &mut homes, target, names)?;
    let buffers = homes.buffers;
    let mut steps = order::order(steps, &buffers);
    let lives = merge_in_place(&mut steps, &buffers);
    let mut requests: Vec<Request> = Vec::new();
    let mut owners: Vec<Owner> = Vec::new();
    for (&root, life) in &lives.roots {
        let members = lives.alias.iter().filter(|(_, own)| **own == root).map(|(id, _)| *id);
        let mut values: Vec<String> = members.flat_map(|id| buffers[id].values.clone()).collect();
        values.dedup();
        requests.push(Request { values, bytes: buffers[root].bytes, first: life.0, last: life.1 });
        owners.push(Owner::Buffer(root));
    }
    for (index, step) in steps.iter().enumerate() {
        for (number, binding) in step.bindings.iter().enumerate() {
            if let Binding::Scratch { bytes, .. } = binding {
                let values = vec![format!("scratch of {}", step.function.name)];
                requests.push(Request { values, bytes: *bytes, first: index, last: index });
                owners.push(Owner::Scratch(index, number));
            }
        }
    }
    let mut plan = plan::plan(&requests, target.alignment);
    let (mut offsets, mut scratch) = (BTreeMap::new(), BTreeMap::new());
    for (owner, planned) in owners.iter().zip(&plan.buffers) {
        match *owner {
            Owner::Buffer(root) => {
                for (&id, _) in lives.alias.iter().filter(|(_, own)| **own == root) {
                    offsets.insert(id, planned.offset);
                }
            }
            Owner::Scratch(step, number) => {
                scratch.insert((step, number), planned.offset);
            }
        }
    }
    plan.buffers.sort_by_key(|buffer| (buffer.first, buffer.offset));
    Ok(Program { graph, steps, buffers, offsets, scratch, plan })
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

/// Lets results overwrite operands that die in the step, where the step allows it.
fn merge_in_place(steps: &mut [Step], buffers: &[Buffer]) -> Lives {
    let mut own: BTreeMap<BufferId, (usize, usize)> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        for id in step.reads().chain(step.writes()).filter(|&id| buffers[id].kind == BufferKind::Arena) {
            own.entry(id).or_insert((index, index)).1 = index;
        }
    }
    let mut alias: BTreeMap<BufferId, BufferId> = own.keys().map(|&id| (id, id)).collect();
    let mut roots = own.clone();
    for (index, step) in steps.iter().enumerate() {
        let Some(result) = step.writes().next() else { continue };
        for &candidate in &step.in_place {
            let root = alias[&candidate];
            let dies_here = roots.get(&root).is_some_and(|life| life.1 == index);
            let born_here = alias[&result] == result && own[&result].0 == index;
            if dies_here && born_here && root != result {
                alias.insert(result, root);
                roots.remove(&result);
                if let Some(life) = roots.get_mut(&root) {
                    life.1 = own[&result].1;
                }
                break;
            }
        }
    }
    Lives { alias, roots }
}
