//! Nodes of the operator `loop`: the body becomes parts over the buffers around it.
//!
//! A slice of a scanned or stacked tensor is an address in it, for which legalisation puts the axis outermost. A carried value
//! alternates between two places, one of which may be where its first value is, unless a turn can write it where it has read it. Captured
//! values are where they are.

use super::homes::{Buffer, BufferId, BufferKind, Homes};
use super::maker::{Body, Maker, bound};
use super::part::{Binding, Carried, Label, Loop, Part, Walk};
use crate::loops::spelling::comment;
use mlc_ir::ops::{self, SliceAxis};
use mlc_ir::{NodeId, Value};
use std::collections::BTreeSet;

impl Maker<'_> {
    /// The part of a loop. The homes of its operands and results are dense.
    pub(super) fn repeat(&mut self, homes: &mut Homes, id: NodeId, op: &ops::Loop) {
        let node = self.graph.node(id);
        let body = match (self.lower_body)(&op.body, op.carried, self.chooser, self.names) {
            Ok(body) => body,
            Err(errors) => {
                let note = format!("in the body of {} \"{}\"", node.op.name(), node.name);
                return self.errors.extend(errors.into_iter().map(|error| error.with_note(note.clone())));
            }
        };
        let operands = self.graph.operands(id);
        let results: Vec<Value> = (0..node.results.len()).map(|slot| Value { node: id, slot: slot as u32 }).collect();
        let (given, captured) = operands.split_at(op.carried + op.scanned.len());
        let mut bindings: Vec<Binding> = given.iter().map(|&operand| bound(homes, operand, true)).collect();
        bindings.extend(results.iter().map(|&result| bound(homes, result, false)));
        let places = results.iter().zip(given.len()..);
        let places = places.map(|(&result, binding)| self.place(homes, result, binding)).collect();
        let captured: Vec<Binding> = captured.iter().map(|&operand| bound(homes, operand, true)).collect();
        let homes_of =
            |values: &[Value]| -> Vec<BufferId> { values.iter().map(|&value| homes.view(value).0).collect() };
        let (sources, targets) = (homes_of(&operands), homes_of(&results));
        let mut moving = |bytes: usize| homes.buffer(BufferKind::Moving, bytes);
        let mut walk = |value: Value, whole: usize, way: SliceAxis| {
            let ty = self.graph.ty(value);
            let stride = ty.shape[1..].iter().product::<usize>() * ty.dtype.size();
            Walk { slice: moving(stride), whole, stride, reverse: way.reverse }
        };
        let numbered = |first: usize| (first..).zip(&op.scanned);
        let scanned = operands[op.carried..].iter().zip(numbered(op.carried));
        let scanned: Vec<Walk> = scanned.map(|(&value, (whole, &way))| walk(value, whole, way)).collect();
        let first = given.len() + op.carried;
        let stacked = results[op.carried..].iter().zip((first..).zip(&op.stacked));
        let stacked: Vec<Walk> = stacked.map(|(&value, (whole, &way))| walk(value, whole, way)).collect();
        let turn = moving(size_of::<i64>());
        let types = &node.results[..op.carried];
        let moved = types.iter().map(|ty| [(), ()].map(|()| homes.buffer(BufferKind::Moving, ty.bytes())));
        let moved: Vec<[BufferId; 2]> = moved.collect();
        let inputs = [turn].into_iter().chain(moved.iter().map(|[read, _]| *read));
        let inputs = inputs.chain(scanned.iter().map(|walk| walk.slice)).map(|buffer| (buffer, 0));
        let captured = captured.iter().filter_map(|binding| match binding {
            Binding::Buffer { buffer, offset, .. } => Some((*buffer, *offset)),
            _ => None,
        });
        let inputs: Vec<(BufferId, i64)> = inputs.chain(captured).collect();
        let outputs = moved.iter().map(|[_, written]| *written).chain(stacked.iter().map(|walk| walk.slice));
        let mut locals = BTreeSet::new();
        let body = place(body, homes, &inputs, &outputs.collect::<Vec<_>>(), &mut locals);
        let (mut carried, mut in_place) = (Vec::new(), Vec::new());
        for (number, (ty, [read, written])) in types.iter().zip(moved).enumerate() {
            let bytes = ty.bytes();
            let last = given.len() + number;
            let mut over = targets[number];
            let mut spare = last;
            let stays = is_rewritten(&body, read, written);
            if !stays && op.trip_count.is_none_or(|turns| turns > 1) {
                let buffer = homes.buffer(BufferKind::Arena, bytes);
                homes.buffers[buffer].values.push(format!("spare of {}", node.name));
                spare = bindings.len();
                bindings.push(Binding::Buffer { buffer, offset: 0, dtype: ty.dtype, constant: false });
                locals.insert(buffer);
                // The first turn writes the place that the last but an even number of turns writes.
                if op.trip_count.is_some_and(|turns| turns % 2 == 1) {
                    over = buffer;
                }
            }
            if stays || op.trip_count != Some(1) {
                in_place.extend(homes.overwritten(&sources, number, over));
            }
            carried.push(Carried { bytes, read, written, initial: number, last, spare });
        }
        let macs = node.op.work(&self.graph.operand_types(id), &node.results).macs;
        let what = match op.trip_count {
            Some(_) => "loop".to_owned(),
            None => format!("loop until data end it; {} turns are counted", op.counted_turns()),
        };
        let code = Loop {
            name: self.names.symbol(&node.name),
            comment: comment(&self.comment(id, &what, macs)),
            // The kernels of the body have the operations.
            label: Label { bytes: 0, ..self.label(id, node.op.name().to_owned(), 0) },
            trip_count: op.trip_count,
            counted_turns: op.counted_turns(),
            conditional: op.conditional,
            turn,
            carried,
            scanned,
            stacked,
            bindings,
            body,
            locals,
            results: places,
            in_place,
        };
        self.push_part(id, Part::Loop(Box::new(code)));
    }
}

/// Whether a turn can write a value where it has read it: the one step that writes it can, and nothing reads it behind that.
fn is_rewritten(body: &[Part], read: BufferId, written: BufferId) -> bool {
    let Some(own) = body.iter().position(|part| part.in_place().contains(&(written, read))) else { return false };
    let touches = |part: &Part, buffer| part.touched().iter().any(|(other, _)| *other == buffer);
    let keeps = |(number, part): (usize, &Part)| !touches(part, written) && (number < own || !touches(part, read));
    body.iter().enumerate().filter(|(number, _)| *number != own).all(keeps)
}

/// Has the parts of a body be over the buffers around it: its inputs and outputs are some of them, the rest is added to them. What is
/// added in the arena goes to `locals` too.
fn place(
    body: Body,
    homes: &mut Homes,
    inputs: &[(BufferId, i64)],
    outputs: &[BufferId],
    locals: &mut BTreeSet<BufferId>,
) -> Vec<Part> {
    let mut place = |buffer: Buffer| match buffer.kind {
        BufferKind::Input(number) => inputs[number],
        BufferKind::Output(number) => (outputs[number], 0),
        _ => {
            let id = homes.buffers.len();
            if buffer.kind == BufferKind::Arena {
                locals.insert(id);
            }
            homes.buffers.push(buffer);
            (id, 0)
        }
    };
    let places: Vec<(BufferId, i64)> = body.buffers.into_iter().map(&mut place).collect();
    let mut parts = body.parts;
    parts.iter_mut().for_each(|part| part.rebind(&|buffer| places[buffer]));
    parts
}
