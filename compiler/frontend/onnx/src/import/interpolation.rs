//! Which elements an interpolated element combines: the standard's coordinates and weights, for one axis at a time.

use mlc_import::Fault;
use mlc_import::builder::Rows;

/// Which elements are combined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mode {
    Nearest(Rounding),
    Linear,
    /// Cubic convolution with this parameter.
    Cubic(f64),
}

/// How a coordinate becomes a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
}

impl Rounding {
    pub fn parse(word: &str) -> Option<Rounding> {
        Some(match word {
            "round_prefer_floor" => Rounding::PreferFloor,
            "round_prefer_ceil" => Rounding::PreferCeil,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            _ => return None,
        })
    }

    fn apply(self, coordinate: f32) -> i64 {
        let floor = coordinate.floor();
        let up = match self {
            Rounding::PreferFloor => coordinate - floor > 0.5,
            Rounding::PreferCeil => coordinate - floor >= 0.5,
            Rounding::Floor => false,
            Rounding::Ceil => coordinate > floor,
        };
        (floor as i64).saturating_add(i64::from(up))
    }
}

/// Where an element of the result lies in the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Transform {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    /// The part of the axis from the first to the second number, both relative to its length.
    Crop(f32, f32),
}

impl Transform {
    /// The transform of a word; the crop's is the whole axis.
    pub fn parse(word: &str) -> Option<Transform> {
        Some(match word {
            "half_pixel" => Transform::HalfPixel,
            "half_pixel_symmetric" => Transform::HalfPixelSymmetric,
            "pytorch_half_pixel" => Transform::PytorchHalfPixel,
            "align_corners" => Transform::AlignCorners,
            "asymmetric" => Transform::Asymmetric,
            "tf_crop_and_resize" => Transform::Crop(0.0, 1.0),
            _ => return None,
        })
    }
}

/// Interpolation of one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// Elements before.
    pub extent: usize,
    /// Elements after.
    pub size: usize,
    /// Elements after per element before, as the model gives it.
    pub scale: f32,
    pub transform: Transform,
    pub mode: Mode,
    /// Whether weights of places outside of the axis are left out, and the others grow for it.
    pub exclude_outside: bool,
    /// Whether the weights widen where the axis shrinks.
    pub antialias: bool,
}

/// What the elements of an axis combine.
pub(super) struct Interpolation {
    pub rows: Rows,
    /// Elements that lie outside of the input.
    pub outside: Vec<bool>,
}

/// Weights of one axis, more than which aren't computed.
const MOST_WEIGHTS: usize = 1 << 24;

impl Axis {
    /// The source coordinate, in single precision as everywhere.
    pub fn coordinate(&self, output: usize) -> f32 {
        let (place, extent) = (output as f32, self.extent as f32);
        let length = extent * self.scale;
        match self.transform {
            Transform::HalfPixel => (place + 0.5) / self.scale - 0.5,
            Transform::PytorchHalfPixel if self.size == 1 => 0.0,
            Transform::PytorchHalfPixel => (place + 0.5) / self.scale - 0.5,
            Transform::HalfPixelSymmetric => {
                let offset = extent / 2.0 * (1.0 - self.size as f32 / length);
                offset + (place + 0.5) / self.scale - 0.5
            }
            Transform::AlignCorners if self.size == 1 || length == 1.0 => 0.0,
            Transform::AlignCorners => place * (extent - 1.0) / (length - 1.0),
            Transform::Asymmetric => place / self.scale,
            Transform::Crop(start, end) if self.size == 1 => 0.5 * (start + end) * (extent - 1.0),
            Transform::Crop(start, end) => {
                start * (extent - 1.0) + place * (end - start) * (extent - 1.0) / (self.size as f32 - 1.0)
            }
        }
    }

    /// What each element combines.
    pub fn interpolation(&self) -> Result<Interpolation, Fault> {
        let (first, last) = self.support();
        let taps = usize::try_from(last - first + 1).unwrap_or(usize::MAX);
        if self.extent == 0 || self.size.checked_mul(taps).is_none_or(|weights| weights > MOST_WEIGHTS) {
            return Err(Fault::variant(format!(
                "interpolation of {} to {} elements isn't possible, or too large",
                self.extent, self.size
            )));
        }
        let coordinates: Vec<f32> = (0..self.size).map(|output| self.coordinate(output)).collect();
        let end = self.extent as f32 - 1.0;
        let crops = matches!(self.transform, Transform::Crop(..));
        let outside: Vec<bool> =
            coordinates.iter().map(|&coordinate| crops && !(0.0..=end).contains(&coordinate)).collect();
        let rows = coordinates.iter().zip(&outside);
        let rows = rows.map(|(&coordinate, &outside)| if outside { Ok(vec![(0, 1.0)]) } else { self.row(coordinate) });
        Ok(Interpolation { rows: rows.collect::<Result<Rows, Fault>>()?, outside })
    }

    /// How much the weights widen.
    fn widening(&self) -> f64 {
        if self.antialias { f64::from(self.scale).min(1.0) } else { 1.0 }
    }

    /// First and last place with a weight, from the place before the coordinate on.
    fn support(&self) -> (i64, i64) {
        let radius = match self.mode {
            Mode::Nearest(_) => return (0, 0),
            Mode::Linear => 1.0,
            Mode::Cubic(_) => 2.0,
        };
        let first = (-radius / self.widening()).floor() as i64 + 1;
        (first, 1 - first)
    }

    fn row(&self, coordinate: f32) -> Result<Vec<(usize, f64)>, Fault> {
        let last = self.extent as i64 - 1;
        if let Mode::Nearest(rounding) = self.mode {
            return Ok(vec![(rounding.apply(coordinate).clamp(0, last) as usize, 1.0)]);
        }
        let floor = coordinate.floor();
        let (base, fraction) = (floor as i64, f64::from(coordinate) - f64::from(floor));
        let (first, end) = self.support();
        let weight = |offset: i64| {
            let distance = ((offset as f64 - fraction) * self.widening()).abs();
            match self.mode {
                Mode::Cubic(parameter) => cubic_weight(parameter, distance),
                _ => (1.0 - distance).max(0.0),
            }
        };
        let places = (first..=end).map(|offset| (base.saturating_add(offset), weight(offset)));
        let counted = places.filter(|(place, _)| !self.exclude_outside || (0..=last).contains(place));
        let mut row: Vec<(usize, f64)> = Vec::new();
        for (place, weight) in counted.filter(|&(_, weight)| weight != 0.0) {
            let place = place.clamp(0, last) as usize;
            match row.last_mut() {
                Some((before, sum)) if *before == place => *sum += weight,
                _ => row.push((place, weight)),
            }
        }
        let total: f64 = row.iter().map(|&(_, weight)| weight).sum();
        if !(total.is_normal() && total.abs() > 1e-6) {
            return Err(Fault::variant(format!("the weights of the interpolation at {coordinate} sum up to {total}")));
        }
        row.iter_mut().for_each(|(_, weight)| *weight /= total);
        Ok(row)
    }
}

/// The cubic convolution kernel.
fn cubic_weight(parameter: f64, distance: f64) -> f64 {
    let a = parameter;
    if distance <= 1.0 {
        ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
    } else if distance < 2.0 {
        ((a * distance - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: usize, scale: f32, transform: Transform, mode: Mode) -> Axis {
        let size = (extent as f32 * scale) as usize;
        Axis { extent, size, scale, transform, mode, exclude_outside: false, antialias: false }
    }

    fn nearest(extent: usize, scale: f32, transform: Transform, rounding: Rounding) -> Vec<usize> {
        let axis = axis(extent, scale, transform, Mode::Nearest(rounding));
        axis.interpolation().unwrap().rows.iter().map(|row| row[0].0).collect()
    }

    #[test]
    fn halves_are_rounded_as_the_mode_says() {
        let transform = Transform::Asymmetric;
        assert_eq!(nearest(2, 2.0, transform, Rounding::PreferFloor), [0, 0, 1, 1]);
        assert_eq!(nearest(2, 2.0, transform, Rounding::PreferCeil), [0, 1, 1, 1]);
        assert_eq!(nearest(2, 2.0, transform, Rounding::Floor), [0, 0, 1, 1]);
        assert_eq!(nearest(2, 2.0, transform, Rounding::Ceil), [0, 1, 1, 1]);
        assert_eq!(nearest(4, 0.6, Transform::HalfPixel, Rounding::PreferFloor), [0, 2]);
    }

    #[test]
    fn coordinates_follow_the_transform() {
        let coordinates = |transform| {
            let axis = axis(4, 0.5, transform, Mode::Linear);
            [axis.coordinate(0), axis.coordinate(1)]
        };
        assert_eq!(coordinates(Transform::HalfPixel), [0.5, 2.5]);
        assert_eq!(coordinates(Transform::Asymmetric), [0.0, 2.0]);
        assert_eq!(coordinates(Transform::AlignCorners), [0.0, 3.0]);
        assert_eq!(coordinates(Transform::Crop(0.5, 1.0)), [1.5, 3.0]);
        let single = axis(4, 0.25, Transform::PytorchHalfPixel, Mode::Linear);
        assert_eq!(single.coordinate(0), 0.0);
    }

    #[test]
    fn weights_sum_up_to_one_and_widen() {
        let mut axis = axis(8, 0.5, Transform::HalfPixel, Mode::Linear);
        axis.antialias = true;
        let rows = axis.interpolation().unwrap().rows;
        assert_eq!(rows[1].iter().map(|&(place, _)| place).collect::<Vec<_>>(), [1, 2, 3, 4]);
        for row in &rows {
            assert!((row.iter().map(|&(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert!(rows[0][0].1 > rows[0][2].1);
    }

    #[test]
    fn what_lies_outside_of_the_crop_is_marked() {
        let axis = axis(4, 1.0, Transform::Crop(-0.5, 1.0), Mode::Linear);
        let outside = axis.interpolation().unwrap().outside;
        assert_eq!(outside, [true, false, false, false]);
    }
}
