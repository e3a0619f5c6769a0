//! Functions that an archive brought along: called over dense tensors, with scratch memory from the arena.

use super::homes::Homes;
use super::maker::{Maker, bound};
use super::program::{Binding, ExternRoutine, Routine, Step};
use crate::loops::spelling::comment;
use mlc_ir::ops::Extern;
use mlc_ir::{DType, NodeId, Value};

impl Maker<'_> {
    /// The step of a call. The homes of its operands and results are dense.
    pub(super) fn call(&mut self, homes: &Homes, id: NodeId, op: &Extern) {
        let node = self.graph.node(id);
        let operands = self.graph.operands(id);
        let results = (0..node.results.len()).map(|slot| Value { node: id, slot: slot as u32 });
        let operands = operands.iter().map(|&operand| bound(homes, operand, true));
        let mut bindings: Vec<Binding> = operands.chain(results.map(|result| bound(homes, result, false))).collect();
        if op.workspace > 0 {
            bindings.push(Binding::Scratch { bytes: op.workspace, dtype: DType::U8 });
        }
        let code = ExternRoutine {
            name: self.names.symbol(&format!("call_{}", node.name)),
            comment: comment(&self.comment(id, &format!("extern {}", op.symbol), 0)),
            symbol: op.symbol.clone(),
            operands: op.operands.clone(),
            results: op.results.clone(),
            workspace: op.workspace,
            sources: op.sources.clone(),
            convention: op.convention,
        };
        let routine = Routine::Extern(Box::new(code));
        let operator = format!("extern {}", op.symbol);
        self.steps.push(Step { routine, bindings, node: id, operator, macs: 0, in_place: Vec::new() });
    }
}
