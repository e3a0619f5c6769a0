//! [`Problem`]: what a kernel is but for its name.

use crate::kernels::{Argument, KernelWriter};
use crate::lower::view::View;
use mlc_ir::Op;
use mlc_ir::checksum::Fnv;
use mlc_ir::scalar::Expression;

/// All that the schedules of a kernel and their prices depend on, beside the target.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    op: Op,
    /// Layouts, and whether the values are known.
    operands: Vec<(View, bool)>,
    results: Vec<View>,
    epilogue: Option<(Expression, Vec<(View, bool)>)>,
}

impl Problem {
    /// That of a kernel that nothing has been written to.
    pub fn new(op: &Op, kernel: &KernelWriter<'_>) -> Problem {
        let views = |arguments: &[Argument]| {
            arguments.iter().map(|argument| (argument.view.clone(), argument.constant.is_some())).collect()
        };
        Problem {
            op: op.clone(),
            operands: views(&kernel.operands),
            results: kernel.results.iter().map(|result| result.view.clone()).collect(),
            epilogue: kernel.epilogue.as_ref().map(|own| (own.expression.clone(), views(&own.operands))),
        }
    }

    /// A short name of it: the operator, the first result's type, and a checksum of it all.
    pub fn key(&self) -> String {
        let result = |view: &View| format!(" {}{:?}", view.dtype.name(), view.shape);
        let result = self.results.first().map_or(String::new(), result);
        let mut sum = Fnv::default();
        sum.feed(format!("{self:?}").as_bytes());
        format!("{}{result} {:016x}", self.op.name(), sum.sum())
    }
}
