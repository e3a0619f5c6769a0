//! Patches: neighbouring columns of a result, each computed with all that lies before it, one patch after the other.
//!
//! What is between the first and the last of some nodes is then as wide as a patch, and its halo: columns beyond it that windows read, which
//! are computed for both neighbours. So a patch trades multiplications for memory (MCUNetV2, arXiv 2110.15352). Rows of each of them are
//! computed in a stripe of its own.

use super::rewriting::{Rewriting, misfit};
use mlc_ir::operator::OperatorError;
use mlc_ir::ops::{Concat, Slice};
use mlc_ir::{Diagnostic, Graph, Node, NodeId, Op, Shape, TensorType, Value};
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

/// The axis of columns.
const COLUMNS: usize = 2;

impl Patches {
    /// What each patch computes, of about as many columns of the last result; `None` where they can't.
    pub fn all(&self, graph: &Graph) -> Option<Vec<Patch>> {
        let width = self.nodes.last().and_then(|&last| width(graph, last))?;
        let border = |number: usize| width * number / self.count;
        (0..self.count).map(|number| Patch::new(graph, &self.nodes, border(number)..border(number + 1))).collect()
    }
}

/// Columns of a node's result.
pub fn width(graph: &Graph, node: NodeId) -> Option<usize> {
    graph.node(node).results.first()?.shape.get(COLUMNS).copied()
}

/// One patch: which columns of the nodes' results are computed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The columns, by node.
    pub columns: BTreeMap<NodeId, Range<usize>>,
    /// What is read of values that the nodes don't compute.
    pub outside: BTreeMap<Value, Range<usize>>,
}

impl Patch {
    /// What some columns of the last of some nodes take; `None` where nodes have no columns, or read all of another's.
    fn new(graph: &Graph, nodes: &[NodeId], columns: Range<usize>) -> Option<Patch> {
        let all: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let &last = nodes.last()?;
        let mut patch = Patch { columns: BTreeMap::from([(last, columns)]), outside: BTreeMap::new() };
        for &id in nodes.iter().rev() {
            let [result] = &graph.node(id).results[..] else { return None };
            let own = patch.columns.get(&id)?.clone();
            let (_, reads) = graph.node(id).op.of_columns(&graph.operand_types(id), own)?;
            if result.rank() != 4 {
                return None;
            }
            for (operand, read) in graph.operands(id).into_iter().zip(reads) {
                let read = match (read, all.contains(&operand.node)) {
                    (Some(read), _) => read,
                    (None, true) => return None,
                    (None, false) => continue,
                };
                if all.contains(&operand.node) {
                    widen(patch.columns.entry(operand.node).or_insert(read.clone()), &read);
                } else {
                    widen(patch.outside.entry(operand).or_insert(read.clone()), &read);
                }
            }
        }
        Some(patch)
    }

    /// How many columns of a value it computes or reads.
    pub fn width(&self, value: Value) -> Option<usize> {
        self.columns.get(&value.node).or_else(|| self.outside.get(&value)).map(ExactSizeIterator::len)
    }

    /// Operations that it takes.
    pub fn operations(&self, graph: &Graph) -> u64 {
        let share = |(&id, columns): (&NodeId, &Range<usize>)| {
            let all = width(graph, id).unwrap_or(1).max(1);
            operations(graph, id) / all as u64 * columns.len() as u64
        };
        self.columns.iter().map(share).sum()
    }
}

fn widen(known: &mut Range<usize>, other: &Range<usize>) {
    *known = known.start.min(other.start)..known.end.max(other.end);
}

/// Operations of a node.
pub fn operations(graph: &Graph, id: NodeId) -> u64 {
    let node = graph.node(id);
    let work = node.op.work(&graph.operand_types(id), &node.results);
    work.macs.saturating_add(work.scalar_operations)
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
        let mut rewriting = Rewriting::new(graph);
        let mut names = Vec::new();
        let inner: BTreeSet<NodeId> =
            all.iter().flat_map(|patches| patches.nodes.iter().rev().skip(1)).copied().collect();
        for id in graph.topological_order() {
            if rewriting.add_source(id) || inner.contains(&id) {
                continue;
            }
            let node = graph.node(id);
            let patches = all.iter().find(|patches| patches.nodes.last() == Some(&id));
            let Some(patches) = patches else {
                let operands = rewriting.operands(id);
                let results = super::rewriting::add(&mut rewriting.result, node.op.clone(), &operands, node);
                rewriting.replace(id, results.map_err(|error| misfit(node, &error))?);
                continue;
            };
            let mut parts = Vec::new();
            let Some(all) = patches.all(graph) else { return Ok(None) };
            for (number, patch) in all.into_iter().enumerate() {
                let mut draft = Draft { rewriting: &mut rewriting, graph, patch, number, made: BTreeMap::new() };
                let own = patches.nodes.iter().map(|&id| draft.add(id));
                let own: Vec<NodeId> = own.collect::<Result<_, _>>().map_err(|error| misfit(node, &error))?;
                parts.extend(own.last().map(|&last| Value::from(last)));
                names.push(own.iter().map(|&id| rewriting.result.node(id).name.to_string()).collect());
            }
            let joined = Op::from(Concat { axis: COLUMNS });
            let whole = super::rewriting::add(&mut rewriting.result, joined, &parts, node);
            rewriting.replace(id, whole.map_err(|error| misfit(node, &error))?);
        }
        Ok(Some(Patched { graph: rewriting.finish(), nodes: names }))
    }
}

/// A patch while its nodes are added.
struct Draft<'a, 'b> {
    rewriting: &'a mut Rewriting<'b>,
    graph: &'b Graph,
    patch: Patch,
    number: usize,
    /// What computes the columns of a node's result.
    made: BTreeMap<NodeId, NodeId>,
}

impl Draft<'_, '_> {
    fn add(&mut self, id: NodeId) -> Result<NodeId, OperatorError> {
        let graph = self.graph;
        let node: &Node = graph.node(id);
        let columns = self.patch.columns[&id].clone();
        let part = node.op.of_columns(&graph.operand_types(id), columns);
        let (op, reads) = part.ok_or_else(|| OperatorError::field("this has no columns"))?;
        let mut operands = Vec::new();
        for (operand, read) in graph.operands(id).into_iter().zip(reads) {
            let (value, first) = match self.made.get(&operand.node) {
                Some(&made) => (Value::from(made), self.patch.columns[&operand.node].start),
                None => (self.rewriting.value(operand), 0),
            };
            operands.push(match read {
                Some(read) => self.cut(value, read.start - first..read.end - first)?,
                None => value,
            });
        }
        let name = format!("{}_patch{}", node.name, self.number);
        let own = self.rewriting.result.add_with_origins(op, &operands, &name, node.origins.clone())?;
        self.made.insert(id, own);
        Ok(own)
    }

    /// Some columns of a value.
    fn cut(&mut self, value: Value, columns: Range<usize>) -> Result<Value, OperatorError> {
        let result = &mut self.rewriting.result;
        let ty: &TensorType = result.ty(value);
        if columns == (0..ty.shape[COLUMNS]) {
            return Ok(value);
        }
        let mut starts = vec![0; ty.rank()];
        starts[COLUMNS] = columns.start;
        let mut sizes = ty.shape.to_vec();
        sizes[COLUMNS] = columns.len();
        let steps = vec![1; ty.rank()];
        let name = format!("{}_columns", result.node(value.node).name);
        Ok(result.add(Slice { starts, sizes, steps }, &[value], &name)?.into())
    }
}

/// Where a value is some columns of another one, and nothing else: that, and which.
pub fn columns_of(graph: &Graph, value: Value) -> Option<(Value, Range<usize>)> {
    let Op::Slice(slice) = &graph.node(value.node).op else { return None };
    let &[whole] = &graph.operands(value.node)[..] else { return None };
    let mut shape: Shape = graph.ty(whole).shape.clone();
    let start = *slice.starts.get(COLUMNS)?;
    shape[COLUMNS] = *slice.sizes.get(COLUMNS)?;
    let is_plain = slice.steps.iter().all(|&step| step == 1) && slice.sizes[..] == shape[..];
    is_plain.then(|| (whole, start..start + slice.sizes[COLUMNS]))
}
