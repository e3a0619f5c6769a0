//! Legalisation: a graph in which every node is something that lowering knows how to place or to compute.
//!
//! Convolutions get their zero borders from `pad` nodes of their own where the target keeps borders in memory, so that no
//! schedule checks bounds; several pads of one value become slices of the widest; loops walk outermost axes. Before all that, and before
//! anything is planned, nodes over constants only are folded.

use super::byte_sums::with_byte_sums;
use super::rewriting::{add, rewrite};
use crate::kernels;
use crate::target::{Borders, Target};
use mlc_ir::folding;
use mlc_ir::operator::OperatorError;
use mlc_ir::ops::{Convolution, Kernel, Loop, Pad, PadMode, Slice, Transpose};
use mlc_ir::{Attribute, Diagnostic, Graph, Literal, Node, Op, TensorType, Value};
use std::collections::BTreeMap;

/// Pads around each axis.
type Pads = Vec<(usize, usize)>;

/// Computes the nodes of a verified graph whose operands are constants, and has sums of bytes take fewer instructions.
///
/// # Errors
/// When one can't be computed: a defect of mlc.
pub fn simplify(graph: &Graph) -> Result<Graph, Vec<Diagnostic>> {
    let simple = rewrite(graph, |graph, node, operands| match fold(graph, node, operands) {
        Some(results) => results,
        None => add(graph, with_byte_sums(graph, &node.op, operands), operands, node),
    });
    simple.map_err(|error| vec![error])
}

/// Rewrites a graph of [`simplify`] for lowering; `in_band` says of a node whether its border is to be in a band, where it can be, `in_stripe`
/// whether it is computed by rows, which are in rings with their borders.
///
/// # Errors
/// When a rewritten operator doesn't fit: a defect of mlc.
pub fn legalize(
    graph: &Graph,
    target: &Target,
    in_band: impl Fn(&str) -> bool,
    in_stripe: impl Fn(&str) -> bool,
) -> Result<Graph, Diagnostic> {
    let explicit = rewrite(graph, |graph, node, operands| match &node.op {
        Op::Loop(op) => legal_loop(graph, node, op, operands),
        op if in_stripe(&node.name) => add(graph, op.clone(), operands, node),
        _ => explicit_pads(graph, node, operands, target, in_band(&node.name)),
    });
    share_pads(explicit?)
}

/// Computes a node whose operands are all constants.
fn fold(graph: &mut Graph, node: &Node, operands: &[Value]) -> Option<Result<Vec<Value>, OperatorError>> {
    // A broadcast stays a view of its operand: its elements are stored once.
    if operands.is_empty() || matches!(node.op, Op::Broadcast(_)) || !folding::is_computable(&node.op) {
        return None;
    }
    let constants: Vec<&Attribute> = operands.iter().map(|&operand| graph.constant(operand)).collect::<Option<_>>()?;
    let results = folding::compute(&node.op, &constants);
    Some(results.map(|results| results.into_iter().map(|value| graph.add_constant(&node.name, value)).collect()))
}

/// Adds a loop that walks outermost axes only: transposes put scanned axes there, and take stacked ones to their places.
fn legal_loop(graph: &mut Graph, node: &Node, op: &Loop, operands: &[Value]) -> Result<Vec<Value>, OperatorError> {
    let (mut op, mut operands) = (op.clone(), operands.to_vec());
    for (way, operand) in op.scanned.iter_mut().zip(&mut operands[op.carried..]) {
        let mut permutation: Vec<usize> = (0..graph.ty(*operand).rank()).collect();
        let outermost = permutation.remove(way.axis);
        permutation.insert(0, outermost);
        if std::mem::take(&mut way.axis) != 0 {
            *operand = graph.add(Transpose { permutation }, &[*operand], &format!("{}_slices", node.name))?.into();
        }
    }
    let axes: Vec<usize> = op.stacked.iter_mut().map(|way| std::mem::take(&mut way.axis)).collect();
    let carried = op.carried;
    let id = graph.add_with_origins(Op::from(op), &operands, &node.name, node.origins.clone())?;
    let mut results: Vec<Value> = (0..node.results.len()).map(|slot| Value { node: id, slot: slot as u32 }).collect();
    for (result, axis) in results[carried..].iter_mut().zip(axes) {
        if axis != 0 {
            let mut permutation: Vec<usize> = (1..graph.ty(*result).rank()).collect();
            permutation.insert(axis, 0);
            *result = graph.add(Transpose { permutation }, &[*result], &format!("{}_stacked", node.name))?.into();
        }
    }
    Ok(results)
}

/// A kernel's anchor; any other operator itself.
pub fn anchor_mut(op: &mut Op) -> &mut Op {
    match op {
        Op::Kernel(Kernel { anchor, .. }) => anchor,
        other => other,
    }
}

/// Puts a border around the first operand of convolutions, and takes it out of the operator, unless it is to be in a band. One that isn't
/// zero is never left out of sums.
fn explicit_pads(
    graph: &mut Graph,
    node: &Node,
    operands: &[Value],
    target: &Target,
    in_band: bool,
) -> Result<Vec<Value>, OperatorError> {
    let mut op = node.op.clone();
    let mut operands = operands.to_vec();
    let mut border = 0;
    let spatial = match anchor_mut(&mut op) {
        Op::Convolution(convolution) => {
            let (x, weights) = (graph.ty(operands[0]), graph.constant(operands[1]));
            match border_in_memory(convolution, x, weights, target, in_band) {
                Some(own) => {
                    border = own;
                    take_pads(convolution)
                }
                None => Pads::new(),
            }
        }
        Op::TransposedConvolution(convolution) => {
            let (x, weights) = (graph.ty(operands[0]), graph.ty(operands[1]));
            kernels::transposed_convolution::move_border(convolution, &x.shape, &weights.shape)
        }
        _ => Pads::new(),
    };
    if spatial.iter().any(|&pad| pad != (0, 0)) {
        let ty = graph.ty(operands[0]).clone();
        let mut pads = vec![(0, 0)];
        pads.extend(spatial);
        pads.push((0, 0));
        let pad = Pad { pads, mode: PadMode::Constant, value: Literal::of(ty.dtype, border as f64) };
        let name = format!("{}_padded", graph.node(operands[0].node).name);
        operands[0] = graph.add(pad, &[operands[0]], &name)?.into();
    }
    add(graph, op, &operands, node)
}

/// What the border of a convolution consists of, if it is to be in memory around x.
pub fn border_in_memory(
    op: &Convolution,
    x: &TensorType,
    weights: Option<&Attribute>,
    target: &Target,
    in_band: bool,
) -> Option<i64> {
    // A schedule that copies what it reads into memory with a border.
    let has_planes = target.dsp && weights.is_some_and(|weights| kernels::planes::fits(op, x, weights.ty()));
    let has_band = || weights.is_some_and(|weights| kernels::band::fits(op, x, weights, target));
    if has_planes || in_band && has_band() {
        return None;
    }
    let has_pairs = target.pixel_pairs && op.sums.is_some() && op.groups == 1;
    (target.borders == Borders::Memory || op.border != 0 || has_pairs || has_band()).then_some(op.border)
}

/// Takes a convolution's border away, and gives its extents.
pub fn take_pads(op: &mut Convolution) -> Vec<(usize, usize)> {
    op.border = 0;
    let rank = op.pads.len();
    std::mem::replace(&mut op.pads, vec![(0, 0); rank])
}

/// Whether a convolution of a graph has a border that can be in a band.
pub fn has_bands(graph: &Graph, target: &Target) -> bool {
    let is_one = |id| {
        let node = graph.node(id);
        let op = if let Op::Kernel(kernel) = &node.op { &kernel.anchor } else { &node.op };
        let Op::Convolution(op) = op else { return false };
        let operands = graph.operands(id);
        let weights = graph.constant(operands[1]);
        weights.is_some_and(|weights| kernels::band::fits(op, graph.ty(operands[0]), weights, target))
    };
    graph.node_ids().any(is_one)
}

/// Whether a graph has products of numbers other than bytes, which tiles are made for.
pub fn has_tiles(graph: &Graph) -> bool {
    let is_one = |id| {
        let (node, types) = (graph.node(id), graph.operand_types(id));
        node.op.work(&types, &node.results).macs > 0 && !types[0].dtype.is_byte()
    };
    graph.node_ids().any(is_one)
}

/// Where several nodes pad one value with one constant, they all become slices of the widest pad.
fn share_pads(graph: Graph) -> Result<Graph, Diagnostic> {
    let mut widest: BTreeMap<(Value, Literal), (usize, Pads)> = BTreeMap::new();
    for id in graph.node_ids() {
        if let Op::Pad(pad) = &graph.node(id).op
            && pad.mode == PadMode::Constant
        {
            let key = (graph.operands(id)[0], pad.value);
            let (count, pads) = widest.entry(key).or_insert_with(|| (0, vec![(0, 0); pad.pads.len()]));
            *count += 1;
            for (own, other) in pads.iter_mut().zip(&pad.pads) {
                *own = (own.0.max(other.0), own.1.max(other.1));
            }
        }
    }
    let plan: BTreeMap<String, Pads> = graph
        .node_ids()
        .filter_map(|id| {
            let Op::Pad(pad) = &graph.node(id).op else { return None };
            let (count, pads) = widest.get(&(graph.operands(id)[0], pad.value))?;
            (*count > 1 && pad.mode == PadMode::Constant).then(|| (graph.node(id).name.to_string(), pads.clone()))
        })
        .collect();
    if plan.is_empty() {
        return Ok(graph);
    }
    let shared: std::cell::RefCell<BTreeMap<(Value, Literal), Value>> = std::cell::RefCell::default();
    rewrite(&graph, |graph, node, operands| {
        let (Op::Pad(pad), Some(widest)) = (&node.op, plan.get(&*node.name)) else {
            return add(graph, node.op.clone(), operands, node);
        };
        let key = (operands[0], pad.value);
        let known = shared.borrow().get(&key).copied();
        let wide = match known {
            Some(value) => value,
            None => {
                let wide = add(graph, Pad { pads: widest.clone(), ..pad.clone() }.into(), operands, node)?[0];
                shared.borrow_mut().insert(key, wide);
                wide
            }
        };
        let starts: Vec<usize> = widest.iter().zip(&pad.pads).map(|(wide, own)| wide.0 - own.0).collect();
        let sizes = node.results[0].shape.to_vec();
        if starts.iter().all(|&start| start == 0) && sizes == graph.ty(wide).shape.to_vec() {
            return Ok(vec![wide]);
        }
        let steps = vec![1; sizes.len()];
        add(graph, Slice { starts, sizes, steps }.into(), &[wide], node)
    })
}
