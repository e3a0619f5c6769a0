//! TEMP.
use mlc_ir::ops::TransposedConvolution;
/// TEMP
pub fn required_input_pads(op: &TransposedConvolution, _x: &[usize], _w: &[usize]) -> Vec<(usize, usize)> {
    vec![(0, 0); op.pads.len()]
}
