//! [`WorkPrices`]: prices of no machine in particular, for callers that have none.

use mlc_ir::{Category, Cost, Op, PricedOperand, Prices, TensorType, Work};

/// Counts an operator's [`Work`]: a multiply-accumulate, another scalar operation and a byte that moves take a unit of time each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkPrices;

/// Of starting a kernel.
const KERNEL: u64 = 1000;
/// Of a value that is a view of another one's memory: fewer are simpler.
const VIEW: u64 = 10;

impl Prices for WorkPrices {
    fn application(&self, op: &Op, operands: &[PricedOperand], results: &[TensorType]) -> Cost {
        let time = match op {
            _ if op.category() == Category::Source => 0,
            Op::Reshape(_) => VIEW,
            Op::Slice(slice) if slice.steps.iter().all(|&step| step == 1) => VIEW,
            _ => {
                let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty.clone()).collect();
                let Work { macs, scalar_operations, bytes_read, bytes_written } = op.work(&types, results);
                [macs, scalar_operations, bytes_read, bytes_written].into_iter().fold(KERNEL, u64::saturating_add)
            }
        };
        Cost { time, ..Cost::default() }
    }

    fn operand(
        &self,
        _op: &Op,
        _operands: &[PricedOperand],
        _results: &[TensorType],
        _number: usize,
        _source: &[(&Op, &TensorType)],
    ) -> Cost {
        Cost::default()
    }
}
