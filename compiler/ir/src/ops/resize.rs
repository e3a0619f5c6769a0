//! `resize`: Interpolation along axes. Element o of a resized axis reads around source coordinate f(o).

use super::numbers::{expect_values, indices};
use super::window::spatial_shape;
use crate::types::{Shape, row_major_strides};
use smallvec::{SmallVec, smallvec};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchRead, PatchReads, RowReads, RowWindow, Work, count_product, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::reduce::reduced_shape;
use crate::types::Float;
use std::ops::Range;

crate::operator_fields! {
    /// Interpolation along axes.
    pub struct Resize {
        /// The resized axes, ascending.
        pub axes: Vec<usize>,
        /// Their new extents.
        pub sizes: Vec<usize>,
        /// Input elements per output element (single precision), per axis.
        pub ratios: Vec<Float>,
        /// Which elements are combined.
        pub mode: ResizeMode,
        /// The source coordinate f(o), with ratio r, old extent I and new extent O.
        pub coordinates: ResizeCoordinates,
    }
}

crate::word_enum! {
    /// Which elements an interpolation combines.
    pub enum ResizeMode {
        /// The element at floor(f(o)), clamped to the axis.
        Nearest = "nearest",
        /// The two neighbours of f(o), weighted by distance; the coordinate is clamped to 0 from below.
        Linear = "linear",
        /// Four neighbours by cubic convolution with a = -0.75, clamped at the rim.
        Cubic = "cubic",
    }
}

crate::word_enum! {
    /// The source coordinate of output element o.
    pub enum ResizeCoordinates {
        /// (o + 0.5) * r - 0.5; for nearest (o + 0.5) * r
        HalfPixel = "half_pixel",
        /// o * r
        Asymmetric = "asymmetric",
        /// o * (I - 1) / (O - 1); 0 for O = 1
        AlignCorners = "align_corners",
    }
}

impl Operator for Resize {
    const NAME: &'static str = "resize";
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn integer_form(&self) -> IntegerForm {
        if self.mode == ResizeMode::Nearest { IntegerForm::Elements } else { IntegerForm::None }
    }

    fn by_rows(&self, operands: &[TensorType]) -> Option<(Self, RowReads)> {
        let [x] = operands else { return None };
        let has_rows = x.rank() > 2 && x.shape[0] == 1 && self.mode == ResizeMode::Nearest;
        let repeat = self.repeats(1, *x.shape.get(1)?).filter(|_| has_rows && !self.axes.contains(&0))?;
        let others = || (0..self.axes.len()).filter(|&entry| self.axes[entry] != 1);
        let inner = Resize {
            axes: others().map(|entry| self.axes[entry]).collect(),
            sizes: others().map(|entry| self.sizes[entry]).collect(),
            ratios: others().map(|entry| self.ratios[entry]).collect(),
            ..self.clone()
        };
        Some((inner, vec![Some(RowWindow { repeat, ..RowWindow::ROW })]))
    }

    fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Self, PatchReads)> {
        let [x] = operands else { return None };
        let is_nearest = x.rank() == 4 && x.shape[0] == 1 && self.mode == ResizeMode::Nearest;
        let repeat = self.repeats(1, *x.shape.get(1)?).filter(|_| is_nearest)?;
        let read = rows.start / repeat..rows.end / repeat;
        let entry = |number: usize| match self.axes[number] {
            1 => (2, rows.len(), self.ratios[number]),
            2 => (1, self.sizes[number], self.ratios[number]),
            axis => (axis, self.sizes[number], self.ratios[number]),
        };
        let mut entries: Vec<(usize, usize, Float)> = (0..self.axes.len()).map(entry).collect();
        entries.sort_by_key(|&(axis, ..)| axis);
        let inner = Resize {
            axes: entries.iter().map(|entry| entry.0).collect(),
            sizes: entries.iter().map(|entry| entry.1).collect(),
            ratios: entries.iter().map(|entry| entry.2).collect(),
            ..self.clone()
        };
        let is_whole = rows.start.is_multiple_of(repeat) && inner.repeats(2, read.len()) == Some(repeat);
        is_whole.then(|| (inner, vec![PatchRead::Rows(read)]))
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        reduced_shape(x, &self.axes, true)?;
        if self.sizes.len() != self.axes.len() || self.ratios.len() != self.axes.len() {
            return Err(OperatorError::field("sizes and ratios need an entry per axis"));
        }
        if !x.dtype.is_float() && self.mode != ResizeMode::Nearest {
            return Err(OperatorError::types(format!("{} interpolation isn't defined for {}", self.mode.name(), x.dtype)));
        }
        let mut shape = x.shape.clone();
        for (&axis, &size) in self.axes.iter().zip(&self.sizes) {
            if shape[axis] == 0 && size > 0 {
                return Err(OperatorError::types(format!("axis {axis} of {x} has nothing to interpolate")));
            }
            shape[axis] = size;
        }
        Ok(vec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        if results[0].elements() == 0 {
            return Ok(vec![x.rearrange(results[0].clone(), |element| element)]);
        }
        let taps: Vec<Vec<Taps>> = (0..x.shape().len()).map(|axis| self.taps(axis, x.shape()[axis])).collect();
        let strides = row_major_strides(x.shape());
        if self.mode == ResizeMode::Nearest {
            let mut sources = indices(&results[0].shape).map(|index| -> usize {
                index.iter().enumerate().map(|(axis, &place)| taps[axis][place][0].0 * strides[axis]).sum()
            });
            return Ok(vec![x.rearrange(results[0].clone(), |_| sources.next().unwrap_or_default())]);
        }
        let values = x.to_floats();
        let interpolate = |index: Shape| {
            let mut terms: Vec<(usize, f64)> = vec![(0, 1.0)];
            for (axis, &place) in index.iter().enumerate() {
                let mut wider = Vec::new();
                for &(base, weight) in &terms {
                    for &(source, factor) in &taps[axis][place] {
                        wider.push((base + source * strides[axis], weight * factor));
                    }
                }
                terms = wider;
            }
            terms.into_iter().map(|(source, weight)| values[source] * weight).sum()
        };
        Ok(vec![Tensor::from_floats(results[0].clone(), indices(&results[0].shape).map(interpolate).collect())])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let taps: usize = match self.mode {
            ResizeMode::Nearest => return Work::moving(operands, results),
            ResizeMode::Linear => 1 << self.axes.len().min(20),
            ResizeMode::Cubic => 1 << (2 * self.axes.len().min(10)),
        };
        Work { scalar_operations: count_product([results[0].elements(), 2, taps]), ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let spatial = generator.choose(&[1, 2, 2, 2, 3]);
        let extents: Vec<usize> = (0..spatial).map(|_| generator.extent()).collect();
        let sizes: Vec<usize> = extents.iter().map(|&extent| generator.range(1, 2 * extent + 1)).collect();
        let by_factor = generator.one_in(3);
        let ratio = |(&extent, &size): (&usize, &usize)| {
            let ratio = if by_factor { 1.0 / ((size as f32 + 0.3) / extent as f32) } else { extent as f32 / size as f32 };
            Float(f64::from(ratio))
        };
        let ratios = extents.iter().zip(&sizes).map(ratio).collect();
        let mode = generator.choose(ResizeMode::ALL);
        let coordinates = generator.choose(ResizeCoordinates::ALL);
        let dtype = if mode == ResizeMode::Nearest { generator.number_dtype() } else { generator.float_dtype() };
        let channels = generator.extent();
        let x = spatial_shape(generator.range(1, 2), extents, channels);
        (Resize { axes: (1..=spatial).collect(), sizes, ratios, mode, coordinates }, vec![TensorType::new(dtype, x)])
    }
}

/// The source elements along an axis, with their weights, of one output element.
pub type Taps = SmallVec<[(usize, f64); 4]>;

impl Resize {
    /// What each output element along an axis of x combines; an axis that isn't resized takes its own elements.
    pub fn taps(&self, axis: usize, extent: usize) -> Vec<Taps> {
        match self.axes.iter().position(|&resized| resized == axis) {
            None => (0..extent).map(|place| smallvec![(place, 1.0)]).collect(),
            Some(entry) => (0..self.sizes[entry]).map(|output| self.taps_of(entry, extent, output)).collect(),
        }
    }

    /// How often each element of an axis of some extent follows itself, if nothing else is done along it.
    pub fn repeats(&self, axis: usize, extent: usize) -> Option<usize> {
        let taps = self.taps(axis, extent);
        let repeat = taps.len().checked_div(extent).filter(|&repeat| repeat > 0 && repeat * extent == taps.len())?;
        taps.iter().enumerate().all(|(place, taps)| taps[..] == [(place / repeat, 1.0)]).then_some(repeat)
    }

    /// The source coordinate in single precision, before any clamping.
    fn coordinate(&self, entry: usize, extent: usize, output: usize) -> f32 {
        let (place, ratio) = (output as f32, self.ratios[entry].0 as f32);
        match self.coordinates {
            ResizeCoordinates::HalfPixel if self.mode == ResizeMode::Nearest => (place + 0.5) * ratio,
            ResizeCoordinates::HalfPixel => (place + 0.5) * ratio - 0.5,
            ResizeCoordinates::Asymmetric => place * ratio,
            ResizeCoordinates::AlignCorners => match self.sizes[entry] {
                0 | 1 => 0.0,
                size => place * ((extent - 1) as f32 / (size - 1) as f32),
            },
        }
    }

    fn taps_of(&self, entry: usize, extent: usize, output: usize) -> Taps {
        let last = extent.saturating_sub(1) as i64;
        let clamped = |place: i64| place.clamp(0, last) as usize;
        let coordinate = self.coordinate(entry, extent, output);
        match self.mode {
            ResizeMode::Nearest => smallvec![(clamped(coordinate.floor() as i64), 1.0)],
            ResizeMode::Linear => {
                let coordinate = coordinate.max(0.0);
                let first = (coordinate.floor() as i64).min(last);
                let weight = f64::from((coordinate - first as f32).min(1.0));
                smallvec![(clamped(first), 1.0 - weight), (clamped(first.saturating_add(1)), weight)]
            }
            ResizeMode::Cubic => {
                let floor = coordinate.floor();
                let (first, fraction) = (floor as i64, f64::from(coordinate - floor));
                let distances = [1.0 + fraction, fraction, 1.0 - fraction, 2.0 - fraction];
                let taps = distances.into_iter().zip(-1..);
                taps.map(|(distance, offset)| (clamped(first.saturating_add(offset)), cubic_weight(distance))).collect()
            }
        }
    }
}

/// The cubic convolution kernel with a = -0.75 at a distance of 0..=2.
fn cubic_weight(distance: f64) -> f64 {
    const A: f64 = -0.75;
    if distance <= 1.0 {
        ((A + 2.0) * distance - (A + 3.0)) * distance * distance + 1.0
    } else {
        ((A * distance - 5.0 * A) * distance + 8.0 * A) * distance - 4.0 * A
    }
}
