//! Discrete Fourier transforms, as products by constant matrices of cosines and sines.

use super::Builder;
use mlc_ir::ops::PadMode;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Attribute, DType, OperatorError, Tensor, TensorType, Value};
use std::f64::consts::TAU;

/// A complex tensor; real ones have no imaginary part.
pub type Complex = (Value, Option<Value>);

/// Longest transform; its matrices have the square of that many elements.
pub const LONGEST_TRANSFORM: usize = 4096;

/// Most elements of overlapping frames.
const MOST_FRAMED: usize = 1 << 26;

/// Angle of row times column among points, kept small so that it stays exact.
fn angle(row: usize, column: usize, points: usize) -> f64 {
    TAU * ((row * column) % points) as f64 / points as f64
}

impl Builder {
    /// A constant matrix.
    pub fn matrix(
        &mut self,
        dtype: DType,
        rows: usize,
        columns: usize,
        element: impl Fn(usize, usize) -> f64,
    ) -> Value {
        let element = &element;
        let values = (0..rows).flat_map(|row| (0..columns).map(move |column| element(row, column))).collect();
        let tensor = Tensor::from_floats(TensorType::new(dtype, [rows, columns]), values);
        self.constant("transform", Attribute::from_tensor(&tensor))
    }

    /// Cuts or pads the end of an axis with zeros.
    ///
    /// # Errors
    /// When the axis isn't there.
    pub fn fit_axis(&mut self, x: Value, axis: usize, extent: usize) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let Some(&found) = shape.get(axis) else {
            return Err(OperatorError::field(format!("{} has no axis {axis}", self.ty(x))));
        };
        let mut pads = vec![(0, 0); shape.len()];
        pads[axis].1 = extent as i64 - found as i64;
        self.pad(x, &pads, PadMode::Constant, 0.0)
    }

    /// The first `results` frequencies of the last axis, which has `points` elements; unscaled.
    ///
    /// # Errors
    /// When the axis has another length, or the elements aren't floats.
    pub fn transform_last(
        &mut self,
        x: Complex,
        points: usize,
        results: usize,
        inverse: bool,
    ) -> Result<Complex, OperatorError> {
        let (sign, dtype) = (if inverse { 1.0 } else { -1.0 }, self.dtype(x.0));
        let cosines = self.matrix(dtype, points, results, |row, column| angle(row, column, points).cos());
        let sines = self.matrix(dtype, points, results, |row, column| sign * angle(row, column, points).sin());
        let (mut re, mut im) = (self.matmul(x.0, cosines)?, self.matmul(x.0, sines)?);
        if let Some(own) = x.1 {
            let (cosine, sine) = (self.matmul(own, cosines)?, self.matmul(own, sines)?);
            re = self.binary(BinaryFunction::Subtract, re, sine)?;
            im = self.binary(BinaryFunction::Add, im, cosine)?;
        }
        Ok((re, Some(im)))
    }

    /// The first `results` frequencies of an axis that is cut or padded to `points` elements; unscaled.
    ///
    /// # Errors
    /// When the axis isn't there, or the elements aren't floats.
    pub fn transform_axis(
        &mut self,
        x: Complex,
        axis: usize,
        (points, results): (usize, usize),
        inverse: bool,
    ) -> Result<Complex, OperatorError> {
        let last = self.rank(x.0).saturating_sub(1);
        let mut prepare = |x: Value| -> Result<Value, OperatorError> {
            let x = self.fit_axis(x, axis, points)?;
            self.move_axis(x, axis, last)
        };
        let re = prepare(x.0)?;
        let im = x.1.map(prepare).transpose()?;
        let (re, im) = self.transform_last((re, im), points, results, inverse)?;
        let re = self.move_axis(re, last, axis)?;
        Ok((re, im.map(|im| self.move_axis(im, last, axis)).transpose()?))
    }

    /// The real signal of a half spectrum, unscaled: what lies between its ends counts twice.
    ///
    /// # Errors
    /// When the axis isn't there, or the elements aren't floats.
    pub fn real_signal(&mut self, x: Complex, axis: usize, points: usize) -> Result<Value, OperatorError> {
        let last = self.rank(x.0).saturating_sub(1);
        let half = points / 2 + 1;
        let weight = |row: usize| if row == 0 || 2 * row == points { 1.0 } else { 2.0 };
        let mut part = |x: Value, element: fn(f64) -> f64| -> Result<Value, OperatorError> {
            let x = self.fit_axis(x, axis, half)?;
            let x = self.move_axis(x, axis, last)?;
            let dtype = self.dtype(x);
            let matrix =
                self.matrix(dtype, half, points, |row, column| weight(row) * element(angle(row, column, points)));
            self.matmul(x, matrix)
        };
        let mut y = part(x.0, f64::cos)?;
        if let Some(im) = x.1 {
            let sines = part(im, |angle| -angle.sin())?;
            y = self.binary(BinaryFunction::Add, y, sines)?;
        }
        self.move_axis(y, last, axis)
    }

    /// Overlapping frames of the last axis, as [.., frames, points].
    ///
    /// # Errors
    /// When a frame doesn't fit, the step is 0, or the frames have too many elements.
    pub fn frames(&mut self, x: Value, points: usize, hop: usize) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let Some((&extent, outer)) = shape.split_last() else {
            return Err(OperatorError::types("the signal has no axis"));
        };
        let room = extent.checked_sub(points).filter(|_| hop > 0).ok_or_else(|| {
            OperatorError::types(format!("a frame of {points} doesn't fit into a signal of {extent}"))
        })?;
        let count = room / hop + 1;
        if count.saturating_mul(points) > MOST_FRAMED {
            return Err(OperatorError::types(format!("{count} frames of {points} are too many")));
        }
        let places = (0..count).flat_map(|frame| (0..points).map(move |point| (frame * hop + point) as i64)).collect();
        let places = Tensor::from_integers(TensorType::new(DType::I64, [count, points]), places);
        let places = self.constant("frames", Attribute::from_tensor(&places));
        self.gather(x, places, outer.len())
    }
}
