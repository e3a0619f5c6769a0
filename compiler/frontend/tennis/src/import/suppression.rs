//! Boxes that others of higher scores don't hide: a loop that takes the best box that is left in each turn.

use super::call::{Call, Parameters, Table};
use mlc_import::Handler::One;
use mlc_import::{Builder, Fault};
use mlc_ir::ops::{ArgFunction, ArgReduce, Loop, ReduceFunction, SliceAxis};
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId};
use mlc_ir::{DType, OperatorError, Subgraph, TensorType, Value};

pub(super) const OPERATORS: Table = &[("non_max_suppression_v3", One(suppress))];

/// Most boxes that are kept.
const MOST_KEPT: i64 = 1 << 20;

/// What decides about boxes.
struct Thresholds {
    overlap: f64,
    score: f64,
}

/// boxes [n, 4], scores [n]; the numbers of the boxes that are kept, i32, and -1 behind them.
fn suppress(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (boxes, scores) = (call.input(0)?, call.input(1)?);
    let most = call.required_int("max_output_size")?;
    let thresholds =
        Thresholds { overlap: call.required_float("iou_threshold")?, score: call.required_float("score_threshold")? };
    let corners = call.word("mode")?.is_some_and(|mode| mode == "xyxy");
    let (box_shape, score_shape) = (call.shape(boxes), call.shape(scores));
    let fits = box_shape[..] == [score_shape.iter().product(), 4] && score_shape.len() == 1;
    if !fits || [call.dtype_of(boxes), call.dtype_of(scores)] != [DType::F32; 2] || !(1..=MOST_KEPT).contains(&most) {
        let (boxes, scores) = (call.builder.ty(boxes), call.builder.ty(scores));
        return Err(Fault::operands(format!(
            "at most {most} of the boxes {boxes} with the scores {scores} can't be kept"
        )));
    }
    let (count, kept) = (score_shape[0], (most as usize).min(score_shape[0]));
    let boxes = if corners { boxes } else { with_corners(call, boxes)? };
    let body = turn(count, &thresholds)?;
    let stacked = vec![SliceAxis { axis: 0, reverse: false }];
    let op = Loop { body, trip_count: Some(kept), carried: 1, scanned: Vec::new(), stacked, conditional: false };
    let results = call.builder.apply_all(op, &[scores, boxes])?;
    let rest = most - kept as i64;
    Ok(call.builder.pad(results[1], &[(0, rest)], mlc_ir::ops::PadMode::Constant, -1.0)?)
}

/// Boxes of x, y, width and height by their corners.
fn with_corners(call: &mut Call<'_, '_>, boxes: Value) -> Result<Value, Fault> {
    let first = call.builder.slice_axis(boxes, 1, 0, 2, 1)?;
    let size = call.builder.slice_axis(boxes, 1, 2, 2, 1)?;
    let last = call.builder.binary(B::Add, first, size)?;
    Ok(call.builder.concat(&[first, last], 1)?)
}

/// One turn: the scores that are left become those that the best box leaves.
fn turn(count: usize, thresholds: &Thresholds) -> Result<Subgraph, OperatorError> {
    let mut b = Builder::new("body");
    b.begin("box");
    b.input("turn", TensorType::new(DType::I64, []));
    let scores = b.input("scores", TensorType::new(DType::F32, [count]));
    let boxes = b.input("boxes", TensorType::new(DType::F32, [count, 4]));
    let best = ArgReduce { function: ArgFunction::Maximum, axis: 0, keep_axis: false, last: false };
    let best = b.apply(best, &[scores])?;
    let score = b.reduce(ReduceFunction::Maximum, scores, &[0], false)?;
    let counts = b.binary_number(B::Greater, score, thresholds.score)?;
    let none = b.number(DType::I64, -1.0);
    let number = b.select(counts, best, none)?;
    let number = b.cast(number, DType::I32)?;
    let corners: Vec<Value> = (0..4).map(|place| b.pick(boxes, 1, place)).collect::<Result<_, _>>()?;
    let of_best: Vec<Value> = corners.iter().map(|&corner| b.gather(corner, best, 0)).collect::<Result<_, _>>()?;
    let operands = [corners, of_best].concat();
    let overlap = b.map(&operands, overlap)?;
    let hidden = b.binary_number(B::Greater, overlap, thresholds.overlap)?;
    let places = b.counting(count)?;
    let itself = b.binary(B::Equal, places, best)?;
    let gone = b.binary(B::Or, hidden, itself)?;
    let gone = b.binary(B::And, gone, counts)?;
    let lowest = b.number(DType::F32, f64::NEG_INFINITY);
    let left = b.select(gone, lowest, scores)?;
    b.output("left", left);
    b.output("number", number);
    Ok(Subgraph::new(b.finish()))
}

/// The share of what two boxes have in common; 0 where one of them has no area. Operands are x1, y1, x2 and y2 of both.
fn overlap(b: &mut ExpressionBuilder) -> ScalarId {
    let [x1, y1, x2, y2] = [0, 1, 2, 3].map(|place| b.operand(place));
    let [u1, v1, u2, v2] = [4, 5, 6, 7].map(|place| b.operand(place));
    let zero = b.number(DType::F32, 0.0);
    let area = |b: &mut ExpressionBuilder, [x1, y1, x2, y2]: [ScalarId; 4]| {
        let (width, height) = (b.binary(B::Subtract, x2, x1), b.binary(B::Subtract, y2, y1));
        b.binary(B::Multiply, width, height)
    };
    let (own, other) = (area(b, [x1, y1, x2, y2]), area(b, [u1, v1, u2, v2]));
    let common = |b: &mut ExpressionBuilder, [first, last, other_first, other_last]: [ScalarId; 4]| {
        let (from, to) = (b.binary(B::Maximum, first, other_first), b.binary(B::Minimum, last, other_last));
        let length = b.binary(B::Subtract, to, from);
        b.binary(B::Maximum, length, zero)
    };
    let (width, height) = (common(b, [x1, x2, u1, u2]), common(b, [y1, y2, v1, v2]));
    let common = b.binary(B::Multiply, width, height);
    let sum = b.binary(B::Add, own, other);
    let union = b.binary(B::Subtract, sum, common);
    let share = b.binary(B::Divide, common, union);
    let smaller = b.binary(B::Minimum, own, other);
    let has_area = b.binary(B::Greater, smaller, zero);
    b.select(has_area, share, zero)
}
