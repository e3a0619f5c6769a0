//! Prior boxes of SSD, as Caffe has them: constants that depend on shapes alone.

use super::call::Call;
use super::padding::not_four_axes;
use mlc_import::Fault;
use mlc_ir::{DType, Value};

/// Most numbers of prior boxes.
const MOST_NUMBERS: usize = 1 << 24;

/// What the parameters say of the boxes around each place of the features.
struct Priors {
    /// Width and height of each box, in the image's pixels.
    boxes: Vec<[f64; 2]>,
    /// Width and height of the image.
    image: [f64; 2],
    /// Pixels between two places.
    steps: [f64; 2],
    offset: f64,
    variances: [f64; 4],
    clips: bool,
}

/// x1, y1, x2, y2 of each box as shares of the image, and behind them the variances: [1, 2, boxes * 4].
pub(super) fn prior_boxes(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let features = call.input(0)?;
    let &[_, _, rows, columns] = &call.shape(features)[..] else { return Err(not_four_axes(call, features)) };
    let priors = read(call, rows, columns)?;
    let numbers = rows.saturating_mul(columns).saturating_mul(priors.boxes.len()).saturating_mul(4);
    if numbers == 0 || numbers > MOST_NUMBERS {
        let ty = call.builder.ty(features);
        return Err(Fault::operands(format!(
            "{} boxes for each place of {ty} are too many or none",
            priors.boxes.len()
        )));
    }
    let mut values = Vec::with_capacity(2 * numbers);
    for row in 0..rows {
        for column in 0..columns {
            let x = (column as f64 + priors.offset) * priors.steps[0];
            let y = (row as f64 + priors.offset) * priors.steps[1];
            let [width, height] = priors.image;
            for [w, h] in &priors.boxes {
                let corners =
                    [(x - w / 2.0) / width, (y - h / 2.0) / height, (x + w / 2.0) / width, (y + h / 2.0) / height];
                values.extend(corners.map(|share| if priors.clips { share.clamp(0.0, 1.0) } else { share }));
            }
        }
    }
    for _ in 0..numbers / 4 {
        values.extend(priors.variances);
    }
    Ok(call.builder.numbers(DType::F32, &[1, 2, numbers], values))
}

fn read(call: &mut Call<'_, '_>, rows: usize, columns: usize) -> Result<Priors, Fault> {
    let image = image(call)?;
    let steps = match (pair(call, "step", ["step_w", "step_h"])?, image) {
        (Some(steps), _) if steps[0] > 0.0 && steps[1] > 0.0 => steps,
        (_, [width, height]) => [width / columns.max(1) as f64, height / rows.max(1) as f64],
    };
    let variances = call.floats("variance")?.unwrap_or_else(|| vec![0.1]);
    let variances = match variances[..] {
        [one] => [one; 4],
        [a, b, c, d] => [a, b, c, d],
        _ => {
            return Err(Fault::parameter(format!(
                "parameter `variance` is {variances:?}, one or four numbers expected"
            )));
        }
    };
    Ok(Priors {
        boxes: boxes(call)?,
        image,
        steps,
        offset: call.float_or("offset", 0.5)?,
        variances,
        clips: call.flag_or("clip", false)?,
    })
}

/// Two numbers: one parameter for both, or one for each.
fn pair(call: &mut Call<'_, '_>, both: &str, each: [&str; 2]) -> Result<Option<[f64; 2]>, Fault> {
    if let Some(number) = call.float(both)? {
        return Ok(Some([number; 2]));
    }
    match (call.float(each[0])?, call.float(each[1])?) {
        (Some(first), Some(second)) => Ok(Some([first, second])),
        _ => Ok(None),
    }
}

/// Width and height of the image: parameters, or the second operand's.
fn image(call: &mut Call<'_, '_>) -> Result<[f64; 2], Fault> {
    let given = pair(call, "img_size", ["img_w", "img_h"])?.filter(|size| size.iter().all(|&extent| extent > 0.0));
    let operand = call.optional(1)?;
    match (given, operand) {
        (Some(size), _) => Ok(size),
        (None, Some(image)) => match call.shape(image)[..] {
            [_, _, rows, columns] if rows > 0 && columns > 0 => Ok([columns as f64, rows as f64]),
            _ => Err(not_four_axes(call, image)),
        },
        (None, None) => {
            let message = "neither an operand nor the parameters `img_w` and `img_h` say the size of the image";
            Err(Fault::new(mlc_ir::Code::ParameterMissing, message))
        }
    }
}

/// For each smallest size a square, one between it and the largest size, and a box for each ratio.
fn boxes(call: &mut Call<'_, '_>) -> Result<Vec<[f64; 2]>, Fault> {
    let smallest = call.floats("min_size")?;
    let smallest = call.required("min_size", smallest)?;
    let largest = call.floats("max_size")?.unwrap_or_default();
    if !largest.is_empty() && largest.len() != smallest.len() {
        return Err(Fault::parameter(format!("{} sizes `min_size` and {} `max_size`", smallest.len(), largest.len())));
    }
    let mut ratios: Vec<f64> = Vec::new();
    let flip = call.flag_or("flip", true)?;
    for ratio in call.floats("aspect_ratio")?.unwrap_or_default() {
        let is_known = |known: &f64| (ratio - known).abs() < 1e-6;
        if ratio <= 0.0 || (ratio - 1.0).abs() < 1e-6 || ratios.iter().any(is_known) {
            continue;
        }
        ratios.push(ratio);
        if flip {
            ratios.push(1.0 / ratio);
        }
    }
    let mut boxes = Vec::new();
    for (number, &size) in smallest.iter().enumerate() {
        boxes.push([size; 2]);
        if let Some(largest) = largest.get(number) {
            boxes.push([(size * largest).sqrt(); 2]);
        }
        boxes.extend(ratios.iter().map(|ratio| [size * ratio.sqrt(), size / ratio.sqrt()]));
    }
    Ok(boxes)
}
