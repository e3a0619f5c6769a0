//! Loops: the body is lowered to a program of its own, whose inputs and outputs are the loop's operands and results.
//!
//! A slice of a scanned or stacked tensor is an address in it, for which legalisation puts the axis outermost. A carried value
//! alternates between two places, the result's and one in the loop's scratch memory, where the body's arena is too.

use super::Program;
use super::homes::Homes;
use super::steps::{Binding, Maker, Routine, Step};
use crate::loops::print::comment;
use mlc_ir::ops::{Loop, SliceAxis, Transpose};
use mlc_ir::{DType, Graph, Node, NodeId, Op, OperatorError, Value};

/// A loop over the steps of its body.
#[derive(Debug)]
pub struct LoopRoutine {
    /// C symbol.
    pub name: String,
    /// What it computes, as a C comment.
    pub comment: String,
    /// The number of turns.
    pub trip_count: usize,
    /// Whether the first carried value ends the loop when it is false.
    pub conditional: bool,
    /// What turns hand on.
    pub carried: Vec<Carried>,
    /// How each scanned operand is walked.
    pub scanned: Vec<Walk>,
    /// How many operands each turn sees as they are.
    pub captured: usize,
    /// How each stacked result is walked.
    pub stacked: Vec<Walk>,
    /// What each turn does. Its inputs are the number of the turn, the carried values, slices and captured values.
    pub body: Program,
    /// Where the body's arena starts in the loop's scratch memory.
    pub arena: usize,
}

/// A carried value.
#[derive(Debug)]
pub struct Carried {
    /// Its size.
    pub bytes: usize,
    /// Its second place: an offset in the loop's scratch memory.
    pub spare: usize,
}

/// How a tensor is walked, slice by slice.
#[derive(Debug)]
pub struct Walk {
    /// Bytes between slices.
    pub stride: usize,
    /// Whether the first turn has the last slice.
    pub reverse: bool,
}

impl Maker<'_> {
    /// The step of a loop. The homes of its operands and results are dense.
    pub(super) fn repeat(&mut self, homes: &Homes, id: NodeId, op: &Loop) {
        let node = self.graph.node(id);
        let body = match super::lower(&op.body, self.target, self.names) {
            Ok(body) => body,
            Err(errors) => {
                let note = format!("in the body of {} \"{}\"", node.op.name(), node.name);
                return self.errors.extend(errors.into_iter().map(|error| error.with_note(note.clone())));
            }
        };
        let operands = self.graph.operands(id);
        let mut bindings: Vec<Binding> = operands.iter().map(|&operand| bound(homes, operand, true)).collect();
        let results: Vec<Value> = (0..node.results.len()).map(|slot| Value { node: id, slot: slot as u32 }).collect();
        bindings.extend(results.iter().map(|&result| bound(homes, result, false)));
        let mut scratch = 0;
        let mut carried = Vec::new();
        for ty in &node.results[..op.carried] {
            carried.push(Carried { bytes: ty.bytes(), spare: scratch });
            scratch += ty.bytes().next_multiple_of(self.target.alignment);
        }
        let bytes = (scratch + body.plan.arena_bytes).max(1);
        bindings.push(Binding::Scratch { bytes, dtype: DType::U8 });
        let walk = |value: Value, way: &SliceAxis| {
            let (_, view) = homes.view(value);
            let slice: usize = view.shape[1..].iter().product();
            Walk { stride: slice * view.dtype.size(), reverse: way.reverse }
        };
        let macs = node.op.work(&self.graph.operand_types(id), &node.results).macs;
        let code = LoopRoutine {
            name: self.names.symbol(&node.name),
            comment: comment(&self.comment(id, "loop", macs)),
            trip_count: op.trip_count,
            conditional: op.conditional,
            carried,
            scanned: operands[op.carried..].iter().zip(&op.scanned).map(|(&value, way)| walk(value, way)).collect(),
            captured: op.captured(),
            stacked: results[op.carried..].iter().zip(&op.stacked).map(|(&value, way)| walk(value, way)).collect(),
            body,
            arena: scratch,
        };
        let operator = node.op.name().to_owned();
        let routine = Routine::Loop(Box::new(code));
        self.steps.push(Step { routine, bindings, node: id, operator, macs, in_place: Vec::new() });
    }
}

pub(super) fn bound(homes: &Homes, value: Value, constant: bool) -> Binding {
    let (buffer, view) = homes.view(value);
    Binding::Buffer { buffer: *buffer, offset: view.offset, dtype: view.dtype, constant }
}

/// Adds a loop that walks outermost axes only: transposes put scanned axes there, and take stacked ones to their places.
pub(super) fn legal_loop(
    graph: &mut Graph,
    node: &Node,
    op: &Loop,
    operands: &[Value],
) -> Result<Vec<Value>, OperatorError> {
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
