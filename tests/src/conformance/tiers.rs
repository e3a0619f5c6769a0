//! What is demanded of a format: shares of the cases that pass. The operators of ONNX are sorted by how often exports have
//! them, so that a share can be demanded of the cases of common operators alone.

use super::{Outcome, Status};
use std::fmt::Write as _;

/// Operators that exports of convolutional, recurrent and transformer networks contain.
const TIER_1: &str = "Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast Ceil Clip Concat Constant ConstantOfShape \
    Conv ConvTranspose CumSum DepthToSpace DequantizeLinear Div Dropout Elu Equal Erf Exp Expand Flatten Floor \
    GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual \
    HardSigmoid HardSwish Identity InstanceNormalization LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual \
    Log LogSoftmax MatMul Max MaxPool Mean Min Mul Neg Not Or PRelu Pad Pow QLinearConv QLinearMatMul \
    QuantizeLinear RNN Range Reciprocal ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu \
    Reshape Resize Round ScatterND Selu Shape Sigmoid Sign Slice Softmax Softplus Softsign SpaceToDepth Split \
    Sqrt Squeeze Sub Sum Tanh Tile TopK Transpose Trilu Unsqueeze Where Xor";

/// Operators that are seen now and then.
const TIER_2: &str = "Acos Acosh Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CastLike Celu \
    ConvInteger Cos Cosh DynamicQuantizeLinear Einsum EyeLike GridSample GroupNormalization Hardmax IsInf IsNaN \
    LpNormalization LpPool MatMulInteger MeanVarianceNormalization Mish Mod OneHot RMSNormalization ReduceL1 \
    ReduceLogSum ReduceLogSumExp ReduceSumSquare RotaryEmbedding Scatter ScatterElements Shrink Sin Sinh Size \
    Swish Tan ThresholdedRelu Upsample";

/// A share of a format's cases that must pass.
struct Demand {
    format: &'static str,
    /// The cases that it is about, in words.
    about: &'static str,
    /// Whether an operator is one of those that it is about.
    counts: fn(&str) -> bool,
    /// In percent.
    least: usize,
}

const DEMANDS: [Demand; 2] = [
    Demand { format: "onnx", about: "whose operators are all in tiers 1 and 2", counts: common, least: 97 },
    Demand { format: "onnx", about: "of all operators", counts: |_| true, least: 85 },
];

fn common(operator: &str) -> bool {
    [TIER_1, TIER_2].iter().any(|tier| tier.split(' ').any(|name| name == operator))
}

/// What is demanded of a format's cases and what passes, a line each, and whether it is enough.
pub fn demands(format: &str, outcomes: &[Outcome]) -> (String, bool) {
    let (mut text, mut met) = (String::new(), true);
    for demand in DEMANDS.iter().filter(|demand| demand.format == format) {
        let cases =
            outcomes.iter().filter(|outcome| outcome.operators.iter().all(|operator| (demand.counts)(operator)));
        let statuses: Vec<&Status> = cases.map(|outcome| &outcome.status).collect();
        let passed = statuses.iter().filter(|status| **status == &Status::Passed).count();
        let enough = passed * 100 >= statuses.len() * demand.least;
        met &= enough;
        let share = 100.0 * passed as f64 / statuses.len().max(1) as f64;
        let _ = writeln!(
            text,
            "- Of the {} cases {}, {passed} pass: {share:.1} %, at least {} % demanded{}.",
            statuses.len(),
            demand.about,
            demand.least,
            if enough { "" } else { " (NOT MET)" }
        );
    }
    (text, met)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(operator: &str, passed: usize, refused: usize) -> Vec<Outcome> {
        let outcome = |status: Status| Outcome {
            case: "c".into(),
            format: "onnx".into(),
            operators: vec![operator.into()],
            status,
            time: std::time::Duration::ZERO,
        };
        let refusals = (0..refused).map(|_| outcome(Status::Refused("no".into())));
        (0..passed).map(|_| outcome(Status::Passed)).chain(refusals).collect()
    }

    #[test]
    fn demands_count_the_cases_of_their_operators() {
        let mut all = outcomes("Conv", 97, 3);
        all.extend(outcomes("DeformConv", 1, 9));
        let (text, met) = demands("onnx", &all);
        assert!(met, "{text}");
        assert!(text.contains("Of the 100 cases whose operators are all in tiers 1 and 2, 97 pass: 97.0 %"), "{text}");
        assert!(text.contains("Of the 110 cases of all operators, 98 pass: 89.1 %"), "{text}");
        assert!(!demands("onnx", &outcomes("Add", 96, 4)).1);
        assert!(!demands("onnx", &outcomes("Loop", 84, 16)).1);
        assert_eq!(demands("pnnx", &outcomes("Add", 0, 1)), (String::new(), true));
    }

    #[test]
    fn no_operator_is_in_two_tiers() {
        let (first, second): (Vec<&str>, Vec<&str>) = (TIER_1.split(' ').collect(), TIER_2.split(' ').collect());
        assert!(first.is_sorted() && second.is_sorted() && first.len() + second.len() > 140);
        assert!(first.iter().all(|operator| !second.contains(operator)));
    }
}
