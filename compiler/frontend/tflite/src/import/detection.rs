//! The end of detectors (SSD): boxes that deviations from anchors say, of which the best that hardly overlap are kept. A custom operator of
//! TensorFlow's exporter, `TFLite_Detection_PostProcess`.

use super::call::{Call, Table, Tensors};
use super::convolution::positive;
use mlc_import::Handler::Many;
use mlc_import::builder::{Corners, KeptBoxes, Suppression};
use mlc_import::{Fault, Operand};
use mlc_ir::ops::{PadMode, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("TFLite_Detection_PostProcess", Many(detections))];

/// Most boxes that are kept.
const MOST_DETECTIONS: usize = 1 << 16;
/// Corners of a box: its least and its greatest row, and columns.
const CORNERS: usize = 4;

/// What the options say.
struct Detector {
    detections: usize,
    /// Most boxes of a class, if boxes are kept class by class.
    by_class: Option<usize>,
    /// Classes that are told of each box.
    told: usize,
    classes: usize,
    least_score: f64,
    most_overlap: f64,
    /// Divisors of a deviation in row, column, height and width.
    scales: [f64; CORNERS],
}

impl Detector {
    fn read(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        let most = positive("detections_per_class", call.int_or("detections_per_class", 100)?)?;
        let by_class = call.flag_or("use_regular_nms", false)?.then_some(most);
        let detections = count(call, "max_detections")?;
        let (told, classes) = (count(call, "max_classes_per_detection")?, count(call, "num_classes")?);
        if by_class.is_some() && told > 1 {
            let message = "several classes of a box aren't supported where boxes are kept class by class";
            return Err(Fault::variant(message));
        }
        if detections > MOST_DETECTIONS {
            let message = format!("{detections} boxes are wanted, at most {MOST_DETECTIONS} are supported");
            return Err(Fault::variant(message));
        }
        let mut scales = [1.0; CORNERS];
        for (scale, key) in scales.iter_mut().zip(["y_scale", "x_scale", "h_scale", "w_scale"]) {
            *scale = number(call, key)?;
        }
        let (least_score, most_overlap) = (number(call, "nms_score_threshold")?, number(call, "nms_iou_threshold")?);
        Ok(Detector { detections, by_class, told: told.min(classes), classes, least_score, most_overlap, scales })
    }
}

fn count(call: &mut Call<'_, '_>, key: &str) -> Result<usize, Fault> {
    let number = call.int(key)?;
    positive(key, call.required(key, number)?)
}

fn number(call: &mut Call<'_, '_>, key: &str) -> Result<f64, Fault> {
    let number = call.float(key)?;
    call.required(key, number)
}

/// Boxes, classes and scores of what was found, best first, and how much that is; zeros behind it.
fn detections(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let detector = Detector::read(call)?;
    let (deviations, scores, anchors) = (call.real(0)?, call.real(1)?, call.real(2)?);
    let (shape, wanted) = (call.shape(scores), call.shape(deviations));
    let misfit = || Fault::operands(format!("scores {shape:?} don't fit deviations {wanted:?} from anchors"));
    let &[1, boxes, all] = &shape[..] else { return Err(misfit()) };
    if wanted[..] != [1, boxes, CORNERS] || call.shape(anchors)[..] != [boxes, CORNERS] || boxes == 0 {
        return Err(misfit());
    }
    // Classes of the background come first.
    let background = all.checked_sub(detector.classes).ok_or_else(misfit)?;
    let scores = call.builder.slice_axis(scores, 2, background, detector.classes, 1)?;
    let scores = call.builder.reshape(scores, &[boxes, detector.classes])?;
    let corners = corners(call, deviations, anchors, &detector)?;
    let Found { rows, found, classes, scores } = match detector.by_class {
        None => whatever_the_class(call, scores, &corners, &detector)?,
        Some(most) => class_by_class(call, scores, &corners, &detector, most)?,
    };

    let told = |call: &mut Call<'_, '_>, x: Value| -> Result<Value, Fault> {
        let own = call.builder.cast(x, DType::F32)?;
        let found = call.builder.reshape(found, &[detector.detections, 1])?;
        Ok(call.builder.binary(B::Multiply, own, found)?)
    };
    let results = detector.detections * detector.told;
    let corners = call.builder.stack(&corners, 1)?;
    let corners = call.builder.gather(corners, rows, 0)?;
    let of_boxes = told(call, corners)?;
    let of_boxes = call.builder.insert_axis(of_boxes, 1)?;
    let of_boxes = call.builder.broadcast(of_boxes, &[detector.detections, detector.told, CORNERS])?;
    let of_boxes = call.builder.reshape(of_boxes, &[1, results, CORNERS])?;
    let mut listed = vec![of_boxes];
    for x in [classes, scores] {
        let own = told(call, x)?;
        listed.push(call.builder.reshape(own, &[1, results])?);
    }
    listed.push(call.builder.reduce(ReduceFunction::Sum, found, &[0], true)?);
    Ok(listed.into_iter().map(Operand::Tensor).collect())
}

/// What was found, best first: numbers of boxes, i64 [detections], 1 for each that there is, else 0, and what is told of each
/// [detections, told].
struct Found {
    rows: Value,
    found: Value,
    classes: Value,
    scores: Value,
}

/// Boxes are kept by their best scores [boxes, classes], and have several classes told.
fn whatever_the_class(
    call: &mut Call<'_, '_>,
    scores: Value,
    corners: &Corners,
    detector: &Detector,
) -> Result<Found, Fault> {
    let [scores, classes] = call.builder.sort(scores, 1, detector.told, true)?;
    let best = call.builder.pick(scores, 1, 0)?;
    let best = call.builder.insert_axis(best, 1)?;
    let (rows, best) = keep(call, best, corners, detector, detector.detections)?;
    let (classes, scores) = (call.builder.gather(classes, rows, 0)?, call.builder.gather(scores, rows, 0)?);
    Ok(Found { rows, found: is_found(call, best)?, classes, scores })
}

/// The boxes of each class are kept by its scores, of [boxes, classes], and the best of all are told.
fn class_by_class(
    call: &mut Call<'_, '_>,
    scores: Value,
    corners: &Corners,
    detector: &Detector,
    most: usize,
) -> Result<Found, Fault> {
    let (rows, best) = keep(call, scores, corners, detector, most)?;
    let [best, places] = call.builder.sort(best, 0, detector.detections, true)?;
    let rows = call.builder.gather(rows, places, 0)?;
    let classes = call.builder.map(&[places], |b| {
        let (place, classes) = (b.operand(0), b.number(DType::I64, detector.classes as f64));
        b.binary(B::Modulo, place, classes)
    })?;
    let column = [detector.detections, 1];
    let (classes, scores) = (call.builder.reshape(classes, &column)?, call.builder.reshape(best, &column)?);
    Ok(Found { rows, found: is_found(call, best)?, classes, scores })
}

/// 1 for scores of boxes, 0 for those of none.
fn is_found(call: &mut Call<'_, '_>, best: Value) -> Result<Value, Fault> {
    Ok(call.builder.map(&[best], |b| {
        let score = b.operand(0);
        let is_found = KeptBoxes::is_there(b, score);
        b.cast(DType::F32, is_found)
    })?)
}

/// Least row, least column, greatest row, greatest column of each box, [boxes] each.
fn corners(call: &mut Call<'_, '_>, deviations: Value, anchors: Value, detector: &Detector) -> Result<Corners, Fault> {
    let boxes = call.shape(anchors)[0];
    let deviations = call.builder.reshape(deviations, &[boxes, CORNERS])?;
    let mut columns =
        |x: Value| (0..CORNERS).map(|column| call.builder.pick(x, 1, column)).collect::<Result<Vec<Value>, _>>();
    let (deviations, anchors) = (columns(deviations)?, columns(anchors)?);
    let mut corner = |sign: f64, axis: usize| {
        let (scale, length) = (detector.scales[axis], detector.scales[axis + 2]);
        let operands = [deviations[axis], deviations[axis + 2], anchors[axis], anchors[axis + 2]];
        call.builder.map(&operands, |b| {
            let [place, size, centre, extent] = [0, 1, 2, 3].map(|operand| b.operand(operand));
            let divided = |b: &mut ExpressionBuilder, x: ScalarId, divisor: f64| {
                let divisor = b.number(DType::F32, divisor);
                b.binary(B::Divide, x, divisor)
            };
            let (place, size) = (divided(b, place, scale), divided(b, size, length));
            let moved = b.binary(B::Multiply, place, extent);
            let centre = b.binary(B::Add, moved, centre);
            let size = b.unary(U::Exp, size);
            let half = b.number(DType::F32, sign);
            let half = b.binary(B::Multiply, half, size);
            let half = b.binary(B::Multiply, half, extent);
            b.binary(B::Add, centre, half)
        })
    };
    Ok([corner(-0.5, 0)?, corner(-0.5, 1)?, corner(0.5, 0)?, corner(0.5, 1)?])
}

/// Numbers and scores of the boxes of the scores [boxes, groups] that are good enough and hardly overlap better ones, at most so many of
/// each group: the best of all groups first, then the second ones. There are at least as many as are wanted in all, and those behind the
/// last box have no score.
fn keep(
    call: &mut Call<'_, '_>,
    scores: Value,
    corners: &Corners,
    detector: &Detector,
    most: usize,
) -> Result<(Value, Value), Fault> {
    let [boxes, groups] = call.shape(scores)[..] else { return Err(Fault::operands("scores have two axes")) };
    let most = most.min(detector.detections).min(boxes);
    let counts = (B::GreaterEqual, detector.least_score);
    let suppression = Suppression { counts, most_overlap: detector.most_overlap, most };
    let kept = call.builder.suppress_overlapping(scores, corners, suppression)?;
    let all = most * groups;
    let behind = detector.detections.saturating_sub(all) as i64;
    let mut in_a_row = |x, value| -> Result<Value, Fault> {
        let x = call.builder.reshape(x, &[all])?;
        Ok(call.builder.pad(x, &[(0, behind)], PadMode::Constant, value)?)
    };
    Ok((in_a_row(kept.numbers, 0.0)?, in_a_row(kept.scores, KeptBoxes::NO_SCORE)?))
}

#[cfg(test)]
mod tests {
    use crate::model::Setting;
    use crate::test_models::{operator, said_of, subgraph, tensor};

    /// What is said of a detector of three anchors whose options are others than the usual ones.
    fn message(others: &[(&'static str, Setting)], scores: &[usize]) -> String {
        let usual = [
            ("max_detections", Setting::Int(2)),
            ("max_classes_per_detection", Setting::Int(1)),
            ("num_classes", Setting::Int(2)),
            ("nms_score_threshold", Setting::Float(0.5)),
            ("nms_iou_threshold", Setting::Float(0.5)),
            ("y_scale", Setting::Float(1.0)),
            ("x_scale", Setting::Float(1.0)),
            ("h_scale", Setting::Float(1.0)),
            ("w_scale", Setting::Float(1.0)),
        ];
        let kept = usual.into_iter().filter(|(key, _)| others.iter().all(|(other, _)| other != key));
        let options: Vec<_> = kept.chain(others.iter().cloned()).collect();
        let mut tensors = vec![tensor("boxes", &[1, 3, 4], None), tensor("scores", scores, None)];
        tensors.push(tensor("anchors", &[3, 4], Some(&[0.5; 12])));
        let results = [("b", &[1, 2, 4][..]), ("c", &[1, 2]), ("s", &[1, 2]), ("n", &[1])];
        tensors.extend(results.map(|(name, shape)| tensor(name, shape, None)));
        let detector = operator("TFLite_Detection_PostProcess", &[0, 1, 2], &[3, 4, 5, 6], &options);
        said_of(subgraph(tensors, &[0, 1], &[3, 4, 5, 6], vec![detector]))
    }

    #[test]
    fn what_is_not_supported_is_told() {
        assert_eq!(message(&[], &[1, 3, 3]), "");
        let regular = ("use_regular_nms", Setting::Flag(true));
        assert_eq!(message(std::slice::from_ref(&regular), &[1, 3, 3]), "");
        let said = message(&[regular.clone(), ("max_classes_per_detection", Setting::Int(2))], &[1, 3, 3]);
        assert!(said.contains("several classes of a box"), "{said}");
        let said = message(&[regular, ("detections_per_class", Setting::Int(0))], &[1, 3, 3]);
        assert!(said.contains("`detections_per_class` is 0"), "{said}");
        let said = message(&[("max_detections", Setting::Int(100_000))], &[1, 3, 3]);
        assert!(said.contains("at most 65536 are supported"), "{said}");
        let said = message(&[("max_detections", Setting::Int(0))], &[1, 3, 3]);
        assert!(said.contains("`max_detections` is 0"), "{said}");
        // What isn't a number isn't there.
        let said = message(&[("num_classes", Setting::Other)], &[1, 3, 3]);
        assert!(said.contains("num_classes"), "{said}");
        // Two scores for each of three anchors, and none of the background.
        assert_eq!(message(&[], &[1, 3, 2]), "");
        for scores in [&[1, 3, 1][..], &[1, 4, 3], &[2, 3, 3], &[3, 3]] {
            let said = message(&[], scores);
            assert!(said.contains("don't fit deviations"), "{scores:?}: {said}");
        }
    }
}
