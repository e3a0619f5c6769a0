//! Patches: neighbouring rows of a result, each computed with all that lies before it, one patch after the other.
//!
//! What is between the first and the last of some nodes is then as high as a patch, and its halo: rows beyond it that windows read, which are
//! computed for both neighbours. So a patch trades multiplications for memory (as do the patches of MCUNetV2, arXiv 2110.15352). It is walked
//! along its columns, in a stripe of its own whose nodes are transposed. Rows keep their order, so that a result may lie over an operand.

use super::rewriting::{Rewriting, misfit};
use mlc_ir::operator::OperatorError;
use mlc_ir::ops::{Concat, Slice, Transpose};
use mlc_ir::{Diagnostic, Graph, Node, NodeId, Op, Operator, PatchRead, Shape, TensorType, Value, folding};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Nodes, in order, whose last one's result is computed in so many patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patches {
    /// The nodes.
    pub nodes: Vec<NodeId>,
    /// How many patches.
    pub count: usize,
}

/// The axis of rows, and where it is when they are transposed.
const ROWS: usize = 1;
const TRANSPOSED_ROWS: usize = 2;

impl Patches {
    /// What each patch computes, of about as many rows of the last result; `None` where they can't.
    pub fn all(&self, graph: &Graph) -> Option<Vec<Patch>> {
        let height = self.nodes.last().and_then(|&last| height(graph, last))?;
        let border = |number: usize| height * number / self.count;
        (0..self.count).map(|number| Patch::new(graph, &self.nodes, border(number)..border(number + 1))).collect()
    }
}

/// Rows of a node's result.
pub fn height(graph: &Graph, node: NodeId) -> Option<usize> {
    graph.node(node).results.first()?.shape.get(ROWS).copied()
}

/// One patch: which rows of the nodes' results are computed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Those of the last node's result.
    pub result: Range<usize>,
    /// The rows, by node.
    pub rows: BTreeMap<NodeId, Range<usize>>,
    /// What is read of values that the nodes don't compute.
    pub outside: BTreeMap<Value, Range<usize>>,
}

impl Patch {
    /// What some rows of the last of some nodes take; `None` where nodes have no rows, or read all of another's.
    fn new(graph: &Graph, nodes: &[NodeId], rows: Range<usize>) -> Option<Patch> {
        let all: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let &last = nodes.last()?;
        let mut patch = Patch { result: rows.clone(), rows: BTreeMap::from([(last, rows)]), outside: BTreeMap::new() };
        for &id in nodes.iter().rev() {
            let own = patch.rows.get(&id)?.clone();
            let (_, reads) = of_node(graph, id, own)?;
            for (operand, read) in graph.operands(id).into_iter().zip(reads) {
                match (read, all.contains(&operand.node)) {
                    (PatchRead::Rows(read), true) => {
                        widen(patch.rows.entry(operand.node).or_insert(read.clone()), &read);
                    }
                    (PatchRead::Rows(read), false) => {
                        widen(patch.outside.entry(operand).or_insert(read.clone()), &read);
                    }
                    (_, true) => return None,
                    (_, false) => {}
                }
            }
        }
        Some(patch)
    }

    /// Which rows of a value it computes or reads.
    pub fn rows_of(&self, value: Value) -> Option<Range<usize>> {
        self.rows.get(&value.node).or_else(|| self.outside.get(&value)).cloned()
    }

    /// Operations that it takes.
    pub fn operations(&self, graph: &Graph) -> u64 {
        let share = |(&id, rows): (&NodeId, &Range<usize>)| {
            let all = height(graph, id).unwrap_or(1).max(1);
            operations(graph, id) / all as u64 * rows.len() as u64
        };
        self.rows.iter().map(share).sum()
    }
}

/// What computes a patch of a node's only result, and reads what.
fn of_node(graph: &Graph, id: NodeId, rows: Range<usize>) -> Option<(Op, Vec<PatchRead>)> {
    let node = graph.node(id);
    if node.results.len() != 1 {
        return None;
    }
    node.op.patch(&graph.operand_types(id), rows)
}

fn widen(known: &mut Range<usize>, other: &Range<usize>) {
    *known = known.start.min(other.start)..known.end.max(other.end);
}

/// Multiply–accumulates of a node, or its other operations if it has none: an epilogue is little beside them.
pub fn operations(graph: &Graph, id: NodeId) -> u64 {
    let node = graph.node(id);
    let work = node.op.work(&graph.operand_types(id), &node.results);
    if work.macs > 0 { work.macs } else { work.scalar_operations }
}

/// A graph's nodes that have patches, each of them transposed as a whole: what stripes along columns are measured by.
pub struct Transposed {
    /// The nodes, and inputs for all else that they read.
    pub graph: Graph,
    /// What each node has become.
    nodes: BTreeMap<NodeId, NodeId>,
    /// What the values were.
    values: BTreeMap<Value, Value>,
}

impl Transposed {
    /// Transposes the nodes of a graph.
    ///
    /// # Errors
    /// When one doesn't fit: a defect of mlc.
    pub fn new(graph: &Graph) -> Result<Transposed, Diagnostic> {
        let (nodes, values) = (BTreeMap::new(), BTreeMap::new());
        let mut result = Transposed { graph: Graph::new(graph.name.clone()), nodes, values };
        let mut known: BTreeMap<(Value, bool), Value> = BTreeMap::new();
        for id in graph.topological_order() {
            let Some((op, reads)) = height(graph, id).and_then(|height| of_node(graph, id, 0..height)) else {
                continue;
            };
            let node = graph.node(id);
            let own = graph.operands(id).into_iter().zip(&reads);
            let operands = own.map(|(value, read)| result.operand(graph, &mut known, value, read));
            let own = operands.collect::<Result<Vec<Value>, OperatorError>>();
            let own = own.and_then(|operands| result.graph.add(op, &operands, &node.name));
            let own = own.map_err(|error| misfit(node, &error))?;
            result.nodes.insert(id, own);
            result.values.insert(own.into(), id.into());
            let is_output = || graph.outputs().iter().any(|output| output.value.node == id);
            known.insert((id.into(), true), own.into());
            if is_output() {
                result.graph.add_output(&node.name, own.into());
            }
        }
        // What others read is needed whole.
        for (&id, &own) in &result.nodes {
            if graph.uses(id.into()).iter().any(|(user, _)| !result.nodes.contains_key(user)) {
                result.graph.add_output(&graph.node(id).name, own.into());
            }
        }
        Ok(result)
    }

    /// What an operand has become: what computes it, a constant, or an input.
    fn operand(
        &mut self,
        graph: &Graph,
        known: &mut BTreeMap<(Value, bool), Value>,
        value: Value,
        read: &PatchRead,
    ) -> Result<Value, OperatorError> {
        let key = (value, *read != PatchRead::Whole);
        if let Some(&known) = known.get(&key) {
            return Ok(known);
        }
        let ty = graph.ty(value);
        let name = &graph.node(value.node).name;
        let moved = transposition(read, ty.rank());
        let own = match (graph.constant(value), &moved) {
            (Some(constant), None) => self.graph.add_constant(name, constant.clone()),
            (Some(constant), Some(transpose)) => {
                let transposed = folding::compute(&transpose.clone().into(), &[constant])?;
                self.graph.add_constant(name, transposed[0].clone())
            }
            (None, None) => self.graph.add_input(name, ty.clone()),
            (None, Some(transpose)) => {
                let results = transpose.infer(std::slice::from_ref(ty))?;
                self.graph.add_input(name, results[0].clone())
            }
        };
        self.values.insert(own, value);
        known.insert(key, own);
        Ok(own)
    }

    /// What some nodes have become; `None` where one of them has no patches.
    pub fn nodes(&self, nodes: &[NodeId]) -> Option<Vec<NodeId>> {
        nodes.iter().map(|id| self.nodes.get(id).copied()).collect()
    }

    /// What a value of it was.
    pub fn original(&self, value: Value) -> Option<Value> {
        self.values.get(&value).copied()
    }
}

/// How the axes of an operand change places.
fn transposition(read: &PatchRead, rank: usize) -> Option<Transpose> {
    let mut permutation: Vec<usize> = (0..rank).collect();
    match read {
        PatchRead::Whole => return None,
        PatchRead::Rows(_) => permutation.swap(ROWS, TRANSPOSED_ROWS),
        PatchRead::Taps => permutation.swap(0, 1),
    }
    Some(Transpose { permutation })
}

/// A graph in which some nodes compute patches.
pub struct Patched {
    /// The graph.
    pub graph: Graph,
    /// The names of the nodes of each patch, in order.
    pub nodes: Vec<Vec<String>>,
}

impl Patched {
    /// Has nodes of a graph compute patches, which are joined where the last node was; `None` where they can't.
    ///
    /// # Errors
    /// When what computes a patch doesn't fit: a defect of mlc.
    pub fn new(graph: &Graph, all: &[Patches]) -> Result<Option<Patched>, Diagnostic> {
        let mut draft = Draft { rewriting: Rewriting::new(graph), graph, transposed: BTreeMap::new() };
        let mut names = Vec::new();
        let inner: BTreeSet<NodeId> =
            all.iter().flat_map(|patches| patches.nodes.iter().rev().skip(1)).copied().collect();
        for id in graph.topological_order() {
            if draft.rewriting.add_source(id) || inner.contains(&id) {
                continue;
            }
            let node = graph.node(id);
            let patches = all.iter().find(|patches| patches.nodes.last() == Some(&id));
            let Some(patches) = patches else {
                let operands = draft.rewriting.operands(id);
                let results = super::rewriting::add(&mut draft.rewriting.result, node.op.clone(), &operands, node);
                draft.rewriting.replace(id, results.map_err(|error| misfit(node, &error))?);
                continue;
            };
            let Some(own) = patches.all(graph) else { return Ok(None) };
            let results = draft.patches(&patches.nodes, &own, &mut names).map_err(|error| misfit(node, &error))?;
            draft.rewriting.replace(id, results);
        }
        Ok(Some(Patched { graph: draft.rewriting.finish(), nodes: names }))
    }
}

/// The copy of a graph while patches are added.
struct Draft<'a> {
    rewriting: Rewriting<'a>,
    graph: &'a Graph,
    /// What is read transposed.
    transposed: BTreeMap<Value, Value>,
}

impl Draft<'_> {
    /// Adds the patches of some nodes, and what joins them.
    fn patches(
        &mut self,
        nodes: &[NodeId],
        patches: &[Patch],
        names: &mut Vec<Vec<String>>,
    ) -> Result<Vec<Value>, OperatorError> {
        let mut parts = Vec::new();
        for (number, patch) in patches.iter().enumerate() {
            let mut made = BTreeMap::new();
            for &id in nodes {
                let own = self.add(id, patch, number, &made)?;
                made.insert(id, own);
            }
            let name = |id: &NodeId| self.rewriting.result.node(*id).name.to_string();
            names.push(nodes.iter().map(|id| name(&made[id])).collect());
            if let Some(&last) = nodes.last().and_then(|last| made.get(last)) {
                parts.push(self.transpose(last.into(), &PatchRead::Rows(0..0))?);
            }
        }
        let last = self.graph.node(nodes[nodes.len() - 1]);
        super::rewriting::add(&mut self.rewriting.result, Concat { axis: ROWS }.into(), &parts, last)
    }

    /// Adds a node of a patch, of which others are `made`.
    fn add(
        &mut self,
        id: NodeId,
        patch: &Patch,
        number: usize,
        made: &BTreeMap<NodeId, NodeId>,
    ) -> Result<NodeId, OperatorError> {
        let graph = self.graph;
        let node: &Node = graph.node(id);
        let part = of_node(graph, id, patch.rows[&id].clone());
        let (op, reads) = part.ok_or_else(|| OperatorError::field("this has no patches"))?;
        let mut operands = Vec::new();
        for (operand, read) in graph.operands(id).into_iter().zip(reads) {
            operands.push(match (&read, made.get(&operand.node)) {
                (PatchRead::Rows(rows), Some(&made)) => {
                    let first = patch.rows[&operand.node].start;
                    self.cut(made.into(), rows.start - first..rows.end - first)?
                }
                (PatchRead::Rows(rows), None) => {
                    let whole = self.known_transpose(operand, &read)?;
                    self.cut(whole, rows.clone())?
                }
                (PatchRead::Taps, _) => self.known_transpose(operand, &read)?,
                (PatchRead::Whole, _) => self.rewriting.value(operand),
            });
        }
        let name = format!("{}_patch{number}", node.name);
        self.rewriting.result.add_with_origins(op, &operands, &name, node.origins.clone())
    }

    /// A value of the graph as patches read it, the same for all of them.
    fn known_transpose(&mut self, value: Value, read: &PatchRead) -> Result<Value, OperatorError> {
        if let Some(&known) = self.transposed.get(&value) {
            return Ok(known);
        }
        let own = self.transpose(self.rewriting.value(value), read)?;
        self.transposed.insert(value, own);
        Ok(own)
    }

    fn transpose(&mut self, value: Value, read: &PatchRead) -> Result<Value, OperatorError> {
        let result = &mut self.rewriting.result;
        let Some(transpose) = transposition(read, result.ty(value).rank()) else { return Ok(value) };
        let name = format!("{}_transposed", result.node(value.node).name);
        if let Some(constant) = result.constant(value) {
            let transposed = folding::compute(&transpose.into(), &[constant])?;
            return Ok(result.add_constant(&name, transposed[0].clone()));
        }
        Ok(result.add(transpose, &[value], &name)?.into())
    }

    /// Some transposed rows of a value.
    fn cut(&mut self, value: Value, rows: Range<usize>) -> Result<Value, OperatorError> {
        let result = &mut self.rewriting.result;
        let ty: &TensorType = result.ty(value);
        if rows == (0..ty.shape[TRANSPOSED_ROWS]) {
            return Ok(value);
        }
        let mut starts = vec![0; ty.rank()];
        starts[TRANSPOSED_ROWS] = rows.start;
        let mut sizes = ty.shape.to_vec();
        sizes[TRANSPOSED_ROWS] = rows.len();
        let steps = vec![1; ty.rank()];
        let name = format!("{}_rows", result.node(value.node).name);
        Ok(result.add(Slice { starts, sizes, steps }, &[value], &name)?.into())
    }
}

/// Where a value is some transposed rows of another one, and nothing else: that, and which.
pub fn rows_of(graph: &Graph, value: Value) -> Option<(Value, Range<usize>)> {
    let Op::Slice(slice) = &graph.node(value.node).op else { return None };
    let &[whole] = &graph.operands(value.node)[..] else { return None };
    let mut shape: Shape = graph.ty(whole).shape.clone();
    let start = *slice.starts.get(TRANSPOSED_ROWS)?;
    shape[TRANSPOSED_ROWS] = *slice.sizes.get(TRANSPOSED_ROWS)?;
    let is_plain = slice.steps.iter().all(|&step| step == 1) && slice.sizes[..] == shape[..];
    is_plain.then(|| (whole, start..start + slice.sizes[TRANSPOSED_ROWS]))
}
