//! Boxes that others of higher scores don't hide.

use super::call::{Call, Parameters, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{Corners, KeptBoxes, Suppression};
use mlc_ir::ops::PadMode;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("non_max_suppression_v3", One(suppress))];

/// Most boxes that are kept.
const MOST_KEPT: i64 = 1 << 20;

/// boxes [n, 4], scores [n]; the numbers of the boxes that are kept, i32, and -1 behind them.
fn suppress(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (boxes, scores) = (call.input(0)?, call.input(1)?);
    let most = call.required_int("max_output_size")?;
    let (most_overlap, threshold) = (call.required_float("iou_threshold")?, call.required_float("score_threshold")?);
    let has_ends = call.word("mode")?.is_some_and(|mode| mode == "xyxy");
    let (box_shape, score_shape) = (call.shape(boxes), call.shape(scores));
    let fits = box_shape[..] == [score_shape.iter().product(), 4] && score_shape.len() == 1;
    if !fits || [call.dtype_of(boxes), call.dtype_of(scores)] != [DType::F32; 2] || !(1..=MOST_KEPT).contains(&most) {
        let (boxes, scores) = (call.builder.ty(boxes), call.builder.ty(scores));
        return Err(Fault::operands(format!(
            "at most {most} of the boxes {boxes} with the scores {scores} can't be kept"
        )));
    }
    let (count, kept) = (score_shape[0], (most as usize).min(score_shape[0]));
    let corners = corners(call, boxes, has_ends)?;
    let scores = call.builder.reshape(scores, &[count, 1])?;
    let suppression = Suppression { counts: (B::Greater, threshold), most_overlap, most: kept };
    let found = call.builder.suppress_overlapping(scores, &corners, suppression)?;
    let numbers = call.builder.map(&[found.numbers, found.scores], |b| {
        let (number, score) = (b.operand(0), b.operand(1));
        let is_found = KeptBoxes::is_there(b, score);
        let none = b.number(DType::I64, -1.0);
        let number = b.select(is_found, number, none);
        b.cast(DType::I32, number)
    })?;
    let numbers = call.builder.reshape(numbers, &[kept])?;
    Ok(call.builder.pad(numbers, &[(0, most - kept as i64)], PadMode::Constant, -1.0)?)
}

/// The corners of boxes of x and y, and of x and y where they end, or else of their widths and heights.
fn corners(call: &mut Call<'_, '_>, boxes: Value, has_ends: bool) -> Result<Corners, Fault> {
    let mut column = |place| call.builder.pick(boxes, 1, place);
    let mut corners = [column(0)?, column(1)?, column(2)?, column(3)?];
    if !has_ends {
        for place in 0..2 {
            corners[place + 2] = call.builder.binary(B::Add, corners[place], corners[place + 2])?;
        }
    }
    Ok(corners)
}
