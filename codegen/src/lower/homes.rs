//! Homes: where each value of a legal graph lives, as a view of a buffer.
//!
//! Views cost nothing: a transpose, slice, broadcast or reshape of a value is another view of its buffer. A value that is
//! joined or padded later is computed right inside the buffer of the whole, where that is possible; where not, lowering copies.

use super::patches::kept_of;
use super::roles::{is_computed, is_view};
use super::view::View;
use mlc_ir::ops::PadMode;
use mlc_ir::{Attribute, Category, Graph, NodeId, Op, Transfer, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A buffer, by its number.
pub type BufferId = usize;

/// What a buffer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferKind {
    /// Input number k of those that the caller gives; read only.
    Input(usize),
    /// Output number k of those that the caller gets.
    Output(usize),
    /// State number k, which keeps its contents from one run to the next.
    State(usize),
    /// A constant; the first of the buffer's values is its name.
    Constant(Attribute),
    /// A result that is computed once and kept from then on, in static memory.
    Persistent,
    /// What a loop's turns find elsewhere each time: a slice, or a place of a value that they hand on.
    Moving,
    /// Memory in the arena.
    Arena,
}

/// Where a value is.
pub type Home = (BufferId, View);

/// Memory for elements of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// What it is.
    pub kind: BufferKind,
    /// Size in bytes.
    pub bytes: usize,
    /// Alignment in bytes that a function asks for, 1 if none does.
    pub alignment: usize,
    /// The values that live in it.
    pub values: Vec<String>,
}

/// How a value lies inside another one.
#[derive(Debug, Clone)]
enum Inside {
    Interior(Vec<(usize, usize)>),
    Part {
        axis: usize,
        start: usize,
    },
    Reshaped,
    /// With axis i of the whole as axis `permutation[i]`.
    Transposed(Vec<usize>),
}

/// Where a computed value is put.
#[derive(Debug, Clone)]
enum Placement {
    Output(usize),
    /// A message: memory of its own, which nothing else is written to.
    Message,
    Inside(Value, Inside),
}

/// The buffers of a graph and every value's view of one.
#[derive(Debug, Default)]
pub struct Homes {
    /// The buffers.
    pub buffers: Vec<Buffer>,
    views: BTreeMap<Value, (BufferId, View)>,
    placements: BTreeMap<Value, Placement>,
    materialized: BTreeSet<Value>,
    /// Operands and results of loops and functions, which are dense tensors of their own.
    dense: BTreeSet<Value>,
    /// Results of functions that can't be where the caller wants an output: it is copied there.
    apart: BTreeSet<Value>,
    /// Nodes that are computed row by row, in which nothing else lies.
    by_rows: BTreeSet<NodeId>,
    /// What is known of inputs and outputs.
    pub interface: Interface,
}

/// What is known of a graph's inputs and outputs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interface {
    /// Their alignment in bytes, where the elements' isn't larger.
    pub alignment: usize,
    /// How many values a loop's body hands on: input `k + 1` is what the turn before wrote to output `k`.
    pub carried: usize,
}

impl Homes {
    /// Decides the homes of all values of a legal graph, of which some nodes are computed row by row.
    pub fn assign(graph: &Graph, by_rows: BTreeSet<NodeId>, interface: Interface) -> Homes {
        let (materialized, dense) = (materialized(graph), dense(graph));
        let apart = apart(graph, interface.alignment);
        let mut homes = Homes { materialized, dense, apart, by_rows, interface, ..Homes::default() };
        homes.place_outputs(graph);
        for id in graph.topological_order() {
            homes.place_parts(graph, id);
        }
        for id in graph.topological_order() {
            for slot in 0..graph.node(id).results.len() {
                homes.resolve(graph, Value { node: id, slot: slot as u32 });
            }
        }
        homes
    }

    /// A value's buffer and its view of it. Precondition: it is a value of the graph.
    pub fn view(&self, value: Value) -> &(BufferId, View) {
        &self.views[&value]
    }

    /// Whether a view node has no view, so that its value must be copied.
    pub fn is_copied(&self, value: Value) -> bool {
        self.materialized.contains(&value)
    }

    /// Whether an operand was put inside the whole, so that it needs no copy.
    pub fn is_inside(&self, part: Value, whole: Value) -> bool {
        matches!(self.placements.get(&part), Some(Placement::Inside(host, _)) if *host == whole)
    }

    /// Whether an output's value is in the output's buffer.
    pub fn is_output(&self, value: Value, output: usize) -> bool {
        self.buffers[self.views[&value].0].kind == BufferKind::Output(output)
    }

    fn is_placeable(&self, graph: &Graph, value: Value) -> bool {
        let op = &graph.node(value.node).op;
        let own = is_computed(op) || op.category() == Category::Movement || self.materialized.contains(&value);
        own && !self.placements.contains_key(&value) && !self.apart.contains(&value)
    }

    /// Whether a value can be a part of another one, with gaps between its rows.
    fn fits_inside(&self, graph: &Graph, value: Value) -> bool {
        self.is_placeable(graph, value) && !self.dense.contains(&value)
    }

    /// What a value is the transposed rows of, if that is computed row by row and nothing else reads it, and how its axes are in the value.
    fn transposed_patch(&self, graph: &Graph, value: Value) -> Option<(Value, Vec<usize>)> {
        let Op::Transpose(transpose) = &graph.node(value.node).op else { return None };
        let patch = graph.operands(value.node)[0];
        let is_free = self.by_rows.contains(&patch.node) && !self.materialized.contains(&value);
        let is_placeable = is_free && graph.uses(patch).len() == 1 && self.fits_inside(graph, patch);
        // Two axes change places, so that it is so from either.
        let permutation = &transpose.permutation;
        let is_exchange = permutation.iter().enumerate().all(|(axis, &other)| permutation[other] == axis);
        (is_placeable && is_exchange).then(|| (patch, permutation.clone()))
    }

    /// Rows that are copied for the next one of some patches take the place of those that were copied for this one, which come before its own
    /// wherever it needs them.
    fn kept_before(&self, graph: &Graph, value: Value) -> Option<Value> {
        let kept = |id: NodeId| kept_of(graph, id).filter(|_| self.by_rows.contains(&id));
        let joined = kept(value.node)?;
        let &before = graph.operands(joined.node).first()?;
        let is_joined = matches!(graph.node(joined.node).op, Op::Concat(_)) && self.by_rows.contains(&joined.node);
        let is_alike = graph.ty(before) == graph.ty(value) && graph.uses(before).len() == 1;
        (is_joined && is_alike && kept(before.node).is_some()).then_some(before)
    }

    fn place_outputs(&mut self, graph: &Graph) {
        for (number, output) in graph.open_outputs().into_iter().enumerate() {
            self.place_output(graph, graph.outputs()[output].value, Placement::Output(number));
        }
        for output in graph.messages().iter().filter_map(|message| message.transfer.output()) {
            self.place_output(graph, graph.outputs()[output].value, Placement::Message);
        }
    }

    fn place_output(&mut self, graph: &Graph, whole: Value, placement: Placement) {
        let mut value = whole;
        let mut reshaped = false;
        while let Op::Reshape(_) = graph.node(value.node).op
            && !self.materialized.contains(&value)
        {
            value = graph.operands(value.node)[0];
            reshaped = true;
        }
        if !self.is_placeable(graph, value) {
            return;
        }
        if reshaped {
            self.placements.insert(value, Placement::Inside(whole, Inside::Reshaped));
        }
        self.placements.entry(whole).or_insert(placement);
    }

    fn place_parts(&mut self, graph: &Graph, id: NodeId) {
        let whole = Value::from(id);
        let operands = graph.operands(id);
        match &graph.node(id).op {
            Op::Concat(concat) if !self.by_rows.contains(&id) => {
                let mut start = 0;
                for &part in &operands {
                    let once = operands.iter().filter(|&&other| other == part).count() == 1;
                    let inside = Inside::Part { axis: concat.axis, start };
                    if once && self.fits_inside(graph, part) {
                        self.placements.insert(part, Placement::Inside(whole, inside));
                    } else if once && let Some((patch, permutation)) = self.transposed_patch(graph, part) {
                        self.placements.insert(part, Placement::Inside(whole, inside));
                        self.placements.insert(patch, Placement::Inside(part, Inside::Transposed(permutation)));
                    }
                    start += graph.ty(part).shape[concat.axis];
                }
            }
            Op::Pad(pad) if pad.mode == PadMode::Constant && self.fits_inside(graph, operands[0]) => {
                let inside = Inside::Interior(pad.pads.clone());
                self.placements.insert(operands[0], Placement::Inside(whole, inside));
            }
            _ => {}
        }
    }

    fn resolve(&mut self, graph: &Graph, value: Value) -> (BufferId, View) {
        if let Some(known) = self.views.get(&value) {
            return known.clone();
        }
        let node = graph.node(value.node);
        let ty = graph.ty(value);
        let dense = View::dense(ty.dtype, &ty.shape);
        let view = match (self.placements.get(&value).cloned(), &node.op) {
            (Some(Placement::Output(number)), _) => (self.buffer(BufferKind::Output(number), ty.bytes()), dense),
            (Some(Placement::Message), _) => (self.buffer(BufferKind::Arena, ty.bytes()), dense),
            (Some(Placement::Inside(host, inside)), _) => {
                let (buffer, whole) = self.resolve(graph, host);
                let view = match inside {
                    Inside::Interior(pads) => whole.interior(&pads),
                    Inside::Part { axis, start } => {
                        let mut starts = vec![0; whole.rank()];
                        starts[axis] = start;
                        whole.slice(&starts, &ty.shape, &vec![1; whole.rank()])
                    }
                    Inside::Reshaped => View { offset: whole.offset, ..dense },
                    Inside::Transposed(permutation) => whole.transpose(&permutation),
                };
                (buffer, view)
            }
            (None, Op::Extern(op)) if op.persistent.contains(&(value.slot as usize)) => {
                (self.buffer(BufferKind::Persistent, ty.bytes()), dense)
            }
            (None, Op::Input(_)) => (self.buffer(input_kind(graph, value.node), ty.bytes()), dense),
            (None, Op::Constant(op)) => (self.buffer(BufferKind::Constant(op.value.clone()), ty.bytes()), dense),
            (None, op) if is_view(op) && !self.materialized.contains(&value) => {
                let (buffer, operand) = self.resolve(graph, graph.operands(value.node)[0]);
                match moved(op, &operand, &ty.shape) {
                    Some(view) if view.is_dense() || !self.dense.contains(&value) => (buffer, view),
                    _ => {
                        self.materialized.insert(value);
                        (self.buffer(BufferKind::Arena, ty.bytes()), dense)
                    }
                }
            }
            (None, _) => match self.kept_before(graph, value) {
                Some(before) => self.resolve(graph, before),
                None => (self.buffer(BufferKind::Arena, ty.bytes()), dense),
            },
        };
        self.buffers[view.0].values.push(node.name.to_string());
        self.views.insert(value, view.clone());
        view
    }

    /// The buffer of a state; one that nothing reads has none yet.
    pub fn state(&mut self, number: usize, bytes: usize, name: &str) -> BufferId {
        let known = self.buffers.iter().position(|buffer| buffer.kind == BufferKind::State(number));
        known.unwrap_or_else(|| {
            let id = self.buffer(BufferKind::State(number), bytes);
            self.buffers[id].values.push(name.to_owned());
            id
        })
    }

    /// A result's buffer and that of the operand of this number, of operands in these buffers, if the one can be written over the
    /// other: both are of the arena, or what turns of a loop hand on, and as large, and no other operand is there.
    pub fn overwritten(&self, operands: &[BufferId], number: usize, result: BufferId) -> Option<(BufferId, BufferId)> {
        let operand = operands[number];
        let alone = operands.iter().filter(|&&other| other == operand).count() == 1;
        let [over, under] = [result, operand].map(|id| &self.buffers[id]);
        let can_meet = match (&over.kind, &under.kind) {
            (BufferKind::Arena, BufferKind::Arena) => true,
            (&BufferKind::Output(output), &BufferKind::Input(input)) => {
                output < self.interface.carried && input == output + 1
            }
            _ => false,
        };
        (alone && can_meet && over.bytes == under.bytes).then_some((result, operand))
    }

    /// A new buffer.
    pub fn buffer(&mut self, kind: BufferKind, bytes: usize) -> BufferId {
        self.buffers.push(Buffer { kind, bytes, alignment: 1, values: Vec::new() });
        self.buffers.len() - 1
    }
}

/// See [`Homes::dense`].
fn dense(graph: &Graph) -> BTreeSet<Value> {
    let functions = graph.node_ids().filter(|&id| graph.node(id).op.category() == Category::Control);
    let around = |id: NodeId| {
        let results = (0..graph.node(id).results.len() as u32).map(move |slot| Value { node: id, slot });
        graph.operands(id).into_iter().chain(results)
    };
    functions.flat_map(around).collect()
}

/// See [`Homes::apart`]: persistent results, and those that need a larger alignment than the caller's buffers have.
fn apart(graph: &Graph, interface_alignment: usize) -> BTreeSet<Value> {
    let mut apart = BTreeSet::new();
    for id in graph.node_ids() {
        let node = graph.node(id);
        let Op::Extern(op) = &node.op else { continue };
        for (slot, ty) in node.results.iter().enumerate() {
            if op.persistent.contains(&slot) || op.alignment > interface_alignment.max(ty.dtype.size()) {
                apart.insert(Value { node: id, slot: slot as u32 });
            }
        }
    }
    apart
}

/// Where an input is: with the caller, or kept from the last run; what is received has a place in the arena.
fn input_kind(graph: &Graph, node: NodeId) -> BufferKind {
    let input = graph.inputs().iter().position(|&input| input == node).unwrap_or(0);
    if graph.messages().iter().any(|message| message.transfer == Transfer::Receive { input }) {
        return BufferKind::Arena;
    }
    match graph.states.iter().position(|state| state.input == input) {
        Some(state) => BufferKind::State(state),
        None => BufferKind::Input(graph.open_inputs().iter().position(|&open| open == input).unwrap_or(0)),
    }
}

/// Whether a value is a constant behind views.
pub fn is_constant(graph: &Graph, value: Value) -> bool {
    match &graph.node(value.node).op {
        Op::Constant(_) => true,
        op if is_view(op) => is_constant(graph, graph.operands(value.node)[0]),
        _ => false,
    }
}

/// A view operator's result as a view of the operand's buffer; `None` where strides can't express it.
pub fn moved(op: &Op, operand: &View, shape: &[usize]) -> Option<View> {
    match op {
        Op::Transpose(transpose) => Some(operand.transpose(&transpose.permutation)),
        Op::Slice(slice) => Some(operand.slice(&slice.starts, &slice.sizes, &slice.steps)),
        Op::Broadcast(_) => Some(operand.broadcast(shape)),
        Op::Reshape(_) => operand.reshape(shape),
        _ => None,
    }
}

/// Views that a consumer would read badly, and are copied therefore: ones whose last axis isn't contiguous, where a window
/// slides over vectors of channels, or where a large matrix product would read them again and again.
fn materialized(graph: &Graph) -> BTreeSet<Value> {
    let mut result = BTreeSet::new();
    for id in graph.node_ids() {
        let operands = graph.operands(id);
        if graph.node(id).op.reads_rows()
            && let Some(&operand) = operands.first()
        {
            let moves_last = match &graph.node(operand.node).op {
                Op::Transpose(transpose) => transpose.permutation.last() != Some(&(transpose.permutation.len() - 1)),
                _ => false,
            };
            if moves_last && graph.ty(operand).shape.last() != Some(&1) {
                result.insert(operand);
            }
        }
    }
    result
}
