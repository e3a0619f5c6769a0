//! Functions that aren't mlc's own: called over dense tensors as they want them aligned, with scratch memory from the arena.

use super::homes::{BufferId, BufferKind, Homes};
use super::maker::{Maker, bound};
use super::part::{Binding, ExternRoutine, Once, Part, Routine, Step};
use super::view::View;
use crate::choice::Choice;
use crate::loops::spelling::comment;
use mlc_ir::ops::Extern;
use mlc_ir::{DType, NodeId, Value};

impl Maker<'_> {
    /// The step of a call. The homes of its operands and results are dense.
    pub(super) fn call(&mut self, homes: &mut Homes, id: NodeId, op: &Extern) {
        let node = self.graph.node(id);
        let operands = self.graph.operands(id);
        let results: Vec<Value> = (0..node.results.len()).map(|slot| Value { node: id, slot: slot as u32 }).collect();
        let places = results.iter().zip(operands.len()..);
        let places = places.map(|(&result, binding)| self.place(homes, result, binding)).collect();
        let mut bindings: Vec<Binding> =
            operands.iter().map(|&operand| self.aligned(homes, id, operand, op.alignment)).collect();
        for &result in &results {
            let buffer = homes.view(result).0;
            raise(homes, buffer, op.alignment);
            bindings.push(bound(homes, result, false));
        }
        let in_place = overwritten(homes, op, &bindings);
        if op.workspace > 0 {
            bindings.push(Binding::Scratch { bytes: op.workspace, dtype: DType::U8, alignment: op.alignment });
        }
        let mut symbol = |what: &str| self.names.symbol(&format!("{what}_{}", node.name));
        let code = ExternRoutine {
            name: symbol("call"),
            instance: op.instance.as_ref().map(|_| symbol("instance")),
            persistent: op.persistent.iter().map(|_| symbol("persistent")).collect(),
            once: (op.begin.is_some() || op.end.is_some()).then(|| Once {
                begin: symbol("begin"),
                end: symbol("end"),
                begun: symbol("begun"),
            }),
            comment: comment(&self.comment(id, &format!("extern {}", op.symbol), 0)),
            op: op.clone(),
        };
        let routine = Routine::Extern(Box::new(code));
        let label = self.label(id, format!("extern {}", op.symbol), 0);
        let (overlays, choice) = (Vec::new(), Choice::default());
        let step = Step { routine, bindings, label, results: places, in_place, overlays, choice };
        self.push_part(id, Part::Step(Box::new(step)));
    }

    /// Where a function finds an operand: where it lies, if that is as aligned as the function wants it, else in a copy.
    fn aligned(&mut self, homes: &mut Homes, id: NodeId, operand: Value, alignment: usize) -> Binding {
        let (buffer, view) = homes.view(operand).clone();
        if let Some(value) = self.constant_values(operand) {
            let name = self.graph.node(operand.node).name.to_string();
            return Binding::Packed { name, value: value.into() };
        }
        let size = view.dtype.size();
        let guaranteed = match homes.buffers[buffer].kind {
            BufferKind::Arena | BufferKind::Persistent => usize::MAX,
            BufferKind::Input(_) | BufferKind::Output(_) => homes.interface.alignment.max(size),
            BufferKind::State(_) | BufferKind::Constant(_) | BufferKind::Moving => size,
        };
        let begins_aligned = (view.offset.unsigned_abs() as usize * size).is_multiple_of(alignment);
        if alignment <= size || (alignment <= guaranteed && begins_aligned) {
            raise(homes, buffer, alignment);
            return bound(homes, operand, true);
        }
        let ty = self.graph.ty(operand);
        let copy = homes.buffer(BufferKind::Arena, ty.bytes());
        homes.buffers[copy].values.push(self.graph.node(operand.node).name.to_string());
        raise(homes, copy, alignment);
        let target = (copy, View::dense(ty.dtype, &ty.shape));
        self.copy(id, "aligned", operand, &(buffer, view), &target);
        Binding::Buffer { buffer: copy, offset: 0, dtype: ty.dtype, constant: true }
    }
}

/// Has a buffer be as aligned as a function wants it.
fn raise(homes: &mut Homes, buffer: BufferId, alignment: usize) {
    let known = &mut homes.buffers[buffer].alignment;
    *known = alignment.max(*known);
}

/// The buffers of results and operands that the function can write over each other. `bindings` are those of operands and results.
fn overwritten(homes: &Homes, op: &Extern, bindings: &[Binding]) -> Vec<(BufferId, BufferId)> {
    // A constant is in no buffer: its place is taken by a number that no buffer has.
    let buffer = |binding: &Binding| if let Binding::Buffer { buffer, .. } = binding { *buffer } else { usize::MAX };
    let buffers: Vec<BufferId> = bindings.iter().map(buffer).collect();
    let (operands, results) = buffers.split_at(op.operands.len());
    let pairs = op.overwrites.iter().filter(|(_, operand)| operands[*operand] != usize::MAX);
    pairs.filter_map(|&(result, operand)| homes.overwritten(operands, operand, results[result])).collect()
}
