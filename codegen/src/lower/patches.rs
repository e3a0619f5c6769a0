//! [`Patched`]: a graph in which some nodes compute [patches](super::patch), each in a stripe of its own.
//!
//! The nodes of a patch are transposed, so that what a stripe takes for rows are the patch's columns. Rows keep their order, so that a result
//! may lie over an operand.

use super::patch::{Patch, Patches, ROWS, TRANSPOSED_ROWS, of_node, transposition};
use super::rewriting::{Rewriting, misfit};
use mlc_ir::operator::OperatorError;
use mlc_ir::ops::{Concat, Map, Slice};
use mlc_ir::scalar::Expression;
use mlc_ir::{Diagnostic, Graph, Node, NodeId, Op, PatchRead, Shape, TensorType, Value, folding};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

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

/// A patch while its nodes are added.
struct Current<'a> {
    patch: &'a Patch,
    number: usize,
    /// What the patch before has kept of nodes.
    kept: BTreeMap<NodeId, Value>,
    /// The rows of nodes so far.
    rows: BTreeMap<NodeId, Value>,
    /// Names of its nodes.
    names: Vec<String>,
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
        // What the patch before has kept.
        let mut kept = BTreeMap::new();
        for (number, patch) in patches.iter().enumerate() {
            let mut current = Current { patch, number, kept, rows: BTreeMap::new(), names: Vec::new() };
            for &id in nodes.iter().filter(|id| patch.rows.contains_key(id)) {
                let own = self.rows(id, &mut current)?;
                current.rows.insert(id, own);
            }
            kept = self.keep(nodes, &mut current)?;
            if let Some(&last) = nodes.last().and_then(|last| current.rows.get(last)) {
                parts.push(self.transpose(last, &PatchRead::Rows(0..0))?);
            }
            names.push(current.names);
        }
        let last = self.graph.node(nodes[nodes.len() - 1]);
        super::rewriting::add(&mut self.rewriting.result, Concat { axis: ROWS }.into(), &parts, last)
    }

    /// Adds the rows of a node for a patch: those that were kept before those that are computed.
    fn rows(&mut self, id: NodeId, current: &mut Current<'_>) -> Result<Value, OperatorError> {
        let taken = current.kept.get(&id).copied();
        if let Some(taken) = taken.filter(|_| current.patch.computed(id).is_empty()) {
            return Ok(taken);
        }
        let own = self.add(id, current)?;
        let Some(taken) = taken else { return Ok(own) };
        let name = format!("{}_rows{}", self.graph.node(id).name, current.number);
        let origins = self.graph.node(id).origins.clone();
        let joined = Concat { axis: TRANSPOSED_ROWS };
        let joined = self.rewriting.result.add_with_origins(joined, &[taken, own], &name, origins)?;
        Ok(self.name(joined, current))
    }

    /// Copies rows for the next patch.
    fn keep(&mut self, nodes: &[NodeId], current: &mut Current<'_>) -> Result<BTreeMap<NodeId, Value>, OperatorError> {
        let mut kept = BTreeMap::new();
        let last = current.names.pop();
        for id in nodes {
            let Some(rows) = current.patch.kept.get(id) else { continue };
            let first = current.patch.rows[id].start;
            let rows = self.cut(current.rows[id], rows.start - first..rows.end - first)?;
            let name = format!("{}_kept{}", self.graph.node(*id).name, current.number);
            let copy = Map { expression: Expression::operand(0) };
            let copy = self.rewriting.result.add(copy, &[rows], &name)?;
            kept.insert(*id, self.name(copy, current));
        }
        // The last one's result is the patch's.
        current.names.extend(last);
        Ok(kept)
    }

    /// Notes that a node is a patch's.
    fn name(&self, id: NodeId, current: &mut Current<'_>) -> Value {
        current.names.push(self.rewriting.result.node(id).name.to_string());
        id.into()
    }

    /// Adds what computes rows of a node for a patch.
    fn add(&mut self, id: NodeId, current: &mut Current<'_>) -> Result<Value, OperatorError> {
        let graph = self.graph;
        let node: &Node = graph.node(id);
        let part = of_node(graph, id, current.patch.computed(id));
        let (op, reads) = part.ok_or_else(|| OperatorError::field("this has no patches"))?;
        let mut operands = Vec::new();
        for (operand, read) in graph.operands(id).into_iter().zip(reads) {
            operands.push(match (&read, current.rows.get(&operand.node)) {
                (PatchRead::Rows(rows), Some(&made)) => {
                    let first = current.patch.rows[&operand.node].start;
                    self.cut(made, rows.start - first..rows.end - first)?
                }
                (PatchRead::Rows(rows), None) => {
                    let whole = self.known_transpose(operand, &read)?;
                    self.cut(whole, rows.clone())?
                }
                (PatchRead::Taps, _) => self.known_transpose(operand, &read)?,
                (PatchRead::Whole, _) => self.rewriting.value(operand),
            });
        }
        let name = format!("{}_patch{}", node.name, current.number);
        let own = self.rewriting.result.add_with_origins(op, &operands, &name, node.origins.clone())?;
        Ok(self.name(own, current))
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

/// What a node copies some transposed rows of, or all of them, and nothing else.
pub fn kept_of(graph: &Graph, id: NodeId) -> Option<Value> {
    let Op::Map(map) = &graph.node(id).op else { return None };
    let &[rows] = &graph.operands(id)[..] else { return None };
    (map.expression == Expression::operand(0)).then(|| rows_of(graph, rows).map_or(rows, |(whole, _)| whole))
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
