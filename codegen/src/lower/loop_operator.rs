//! Nodes of the operator `loop`: the body is lowered to a program of its own, whose inputs and outputs are the loop's operands and results.
//!
//! A slice of a scanned or stacked tensor is an address in it, for which legalisation puts the axis outermost. A carried value
//! alternates between two places, the result's and one in the loop's scratch memory, where the body's arena is too.

use super::homes::Homes;
use super::maker::{Maker, bound};
use super::program::{Binding, Carried, LoopRoutine, Routine, Step, Walk};
use crate::choice::Choice;
use crate::loops::spelling::comment;
use mlc_ir::ops::{Loop, SliceAxis};
use mlc_ir::{DType, NodeId, Value};

impl Maker<'_> {
    /// The step of a loop. The homes of its operands and results are dense.
    pub(super) fn repeat(&mut self, homes: &Homes, id: NodeId, op: &Loop) {
        let node = self.graph.node(id);
        let body = match (self.lower_body)(&op.body, self.chooser, self.names) {
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
        let alignment = body.plan.alignment;
        let arena = scratch.next_multiple_of(alignment);
        let bytes = (arena + body.plan.arena_bytes).max(1);
        bindings.push(Binding::Scratch { bytes, dtype: DType::U8, alignment });
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
            arena,
        };
        let operator = node.op.name().to_owned();
        let routine = Routine::Loop(Box::new(code));
        self.steps.push(Step {
            routine,
            bindings,
            node: id,
            operator,
            macs,
            in_place: Vec::new(),
            choice: Choice::default(),
        });
    }
}
