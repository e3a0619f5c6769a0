//! Non-maximum suppression: of boxes that overlap much, the one of the highest score is kept.

use super::Builder;
use mlc_ir::ops::{ArgFunction, ArgReduce, Loop, ReduceFunction, SliceAxis};
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId};
use mlc_ir::{DType, OperatorError, Subgraph, TensorType, Value};

/// Corners of boxes, f32 [boxes] each: where they begin along both axes, and where they end.
pub type Corners = [Value; 4];

/// The boxes that are kept in each group, best first.
pub struct KeptBoxes {
    /// Their numbers, i64 [most, groups]; any where there are no more.
    pub numbers: Value,
    /// Their scores, f32 [most, groups]; [`KeptBoxes::NO_SCORE`] where there are no more.
    pub scores: Value,
}

impl KeptBoxes {
    /// The score of a box that isn't there: the lowest number, for C compilers may be told that there is no infinity.
    pub const NO_SCORE: f64 = f32::MIN as f64;

    /// Whether a score is that of a box.
    pub fn is_there(b: &mut ExpressionBuilder, score: ScalarId) -> ScalarId {
        let nothing = b.number(DType::F32, KeptBoxes::NO_SCORE);
        b.binary(B::Greater, score, nothing)
    }
}

/// Which boxes are kept.
#[derive(Debug, Clone, Copy)]
pub struct Suppression {
    /// The comparison with a number that a score must stand to count.
    pub counts: (B, f64),
    /// The largest share of what a box and a better one cover that they may have in common.
    pub most_overlap: f64,
    /// The largest number of boxes in each group.
    pub most: usize,
}

impl Builder {
    /// Takes the box of the best of the scores f32 [boxes, groups] that count and are left, group by group, and leaves out those that overlap
    /// it too much, as often as boxes are kept. Boxes without an area overlap none.
    ///
    /// It is a loop of so many turns: neither the code nor what it takes to compile it grows with them.
    ///
    /// # Errors
    /// When the shapes don't fit.
    pub fn suppress_overlapping(
        &mut self,
        scores: Value,
        corners: &Corners,
        suppression: Suppression,
    ) -> Result<KeptBoxes, OperatorError> {
        let Suppression { counts: (comparison, threshold), most_overlap, most } = suppression;
        let scores = self.map(&[scores], |b| {
            let (score, threshold) = (b.operand(0), b.number(DType::F32, threshold));
            let counts = b.binary(comparison, score, threshold);
            let nothing = b.number(DType::F32, KeptBoxes::NO_SCORE);
            b.select(counts, score, nothing)
        })?;
        let body = turn(&self.ty(scores).shape, most_overlap)?;
        let stacked = vec![SliceAxis { axis: 0, reverse: false }; 2];
        let op = Loop { body, trip_count: Some(most), carried: 1, scanned: Vec::new(), stacked, conditional: false };
        let operands: Vec<Value> = [scores].into_iter().chain(*corners).collect();
        let results = self.apply_all(op, &operands)?;
        Ok(KeptBoxes { numbers: results[1], scores: results[2] })
    }
}

/// One turn: the scores become those that the best boxes leave.
fn turn(shape: &[usize], most_overlap: f64) -> Result<Subgraph, OperatorError> {
    let (boxes, groups) = (shape[0], shape[1]);
    let mut b = Builder::new("body");
    b.begin("box");
    b.input("turn", TensorType::new(DType::I64, []));
    let scores = b.input("scores", TensorType::new(DType::F32, shape));
    let corners = ["y1", "x1", "y2", "x2"].map(|name| b.input(name, TensorType::new(DType::F32, [boxes])));
    let first = ArgReduce { function: ArgFunction::Maximum, axis: 0, keep_axis: true, last: false };
    let taken = b.apply(first, &[scores])?;
    let best = b.reduce(ReduceFunction::Maximum, scores, &[0], true)?;
    let numbers = b.counting(boxes)?;
    let mut operands = vec![scores, b.reshape(numbers, &[boxes, 1])?, taken];
    for corner in corners {
        operands.push(b.reshape(corner, &[boxes, 1])?);
    }
    for corner in corners {
        operands.push(b.gather(corner, taken, 0)?);
    }
    let left = b.map(&operands, |b| left(b, most_overlap))?;
    b.output("left", left);
    for (name, told) in [("number", taken), ("score", best)] {
        let told = b.reshape(told, &[groups])?;
        b.output(name, told);
    }
    Ok(Subgraph::new(b.finish()))
}

/// The score of a box that is left beside one that was taken. Operands are its score before, its number, the number of the one, and the
/// corners of both.
fn left(b: &mut ExpressionBuilder, most_overlap: f64) -> ScalarId {
    let [score, number, taken] = [0, 1, 2].map(|operand| b.operand(operand));
    let overlaps = overlaps(b, [3, 7], most_overlap);
    let is_taken = b.binary(B::Equal, number, taken);
    let is_out = b.binary(B::Or, overlaps, is_taken);
    let nothing = b.number(DType::F32, KeptBoxes::NO_SCORE);
    b.select(is_out, nothing, score)
}

/// Whether two boxes, whose corners begin with these operands, have more than a share of what both cover in common, and areas. The truth
/// values are joined, so that C compilers compute several boxes at once: behind a selection of the share they would compute one by one.
fn overlaps(b: &mut ExpressionBuilder, firsts: [u32; 2], most: f64) -> ScalarId {
    let [this, that] = firsts.map(|first| [0, 1, 2, 3].map(|corner| b.operand(first + corner)));
    let zero = b.number(DType::F32, 0.0);
    let mut area = |[y1, x1, y2, x2]: [ScalarId; 4]| {
        let (height, width) = (b.binary(B::Subtract, y2, y1), b.binary(B::Subtract, x2, x1));
        b.binary(B::Multiply, height, width)
    };
    let (own, other) = (area(this), area(that));
    let [y1, x1] = [0, 1].map(|corner| b.binary(B::Maximum, this[corner], that[corner]));
    let [y2, x2] = [2, 3].map(|corner| b.binary(B::Minimum, this[corner], that[corner]));
    let (height, width) = (b.binary(B::Subtract, y2, y1), b.binary(B::Subtract, x2, x1));
    let [height, width] = [height, width].map(|extent| b.binary(B::Maximum, extent, zero));
    let common = b.binary(B::Multiply, height, width);
    let both = b.binary(B::Add, own, other);
    let union = b.binary(B::Subtract, both, common);
    let share = b.binary(B::Divide, common, union);
    let most = b.number(DType::F32, most);
    let is_more = b.binary(B::Greater, share, most);
    let smaller = b.binary(B::Minimum, own, other);
    let have_areas = b.binary(B::Greater, smaller, zero);
    b.binary(B::And, is_more, have_areas)
}
