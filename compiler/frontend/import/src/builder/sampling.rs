//! Reading an image at computed, fractional positions: every neighbour is gathered by its place in the flat image.

use super::Builder;
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::types::row_major_strides;
use mlc_ir::{Attribute, DType, OperatorError, Tensor, TensorType, Value};

/// Most elements of a table that is made at import, or of positions that an operator needs.
pub(super) const LARGEST_TABLE: usize = 1 << 26;

/// How samples between elements are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMode {
    /// The nearest element; halves go to the even one.
    Nearest,
    /// Linear between the two neighbours of each axis.
    Linear,
    /// Cubic convolution of four neighbours of each axis, with a = -0.75.
    Cubic,
}

/// What samples outside of the image are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRim {
    /// Zero.
    Zeros,
    /// The nearest element.
    Border,
    /// Mirrored at the rim.
    Reflection,
}

/// Coordinates of the cells of an axis in -1..1: centres, or with aligned corners from end to end.
fn base_coordinates(cells: usize, align_corners: bool) -> Vec<f64> {
    let place = |cell: usize| match (align_corners, cells) {
        (true, 1) => 0.0,
        (true, _) => 2.0 * cell as f64 / (cells - 1) as f64 - 1.0,
        (false, _) => (2 * cell + 1) as f64 / cells as f64 - 1.0,
    };
    (0..cells).map(place).collect()
}

/// An image [N, C, spatial…] as rows [N * positions, C].
pub(super) struct Image {
    rows: Value,
    pub(super) extents: Vec<usize>,
    pub(super) dtype: DType,
}

/// A whole coordinate of a neighbour with its weight.
pub(super) type Tap = (Value, Option<Value>);

impl Builder {
    /// A constant of floating-point numbers.
    pub fn numbers(&mut self, dtype: DType, shape: &[usize], values: Vec<f64>) -> Value {
        let tensor = Tensor::from_floats(TensorType::new(dtype, shape), values);
        self.constant("numbers", Attribute::from_tensor(&tensor))
    }

    /// The positions (x, y(, z)) in -1..1 of the cells of an image with these spatial extents, moved by affine maps theta
    /// [N, k, k + 1]: [N, extents…, k].
    ///
    /// # Errors
    /// When theta doesn't fit, or the grid is too large.
    pub fn affine_grid(
        &mut self,
        theta: Value,
        extents: &[usize],
        align_corners: bool,
    ) -> Result<Value, OperatorError> {
        let (axes, shape, dtype) = (extents.len(), self.shape(theta), self.dtype(theta));
        let points = extents.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        let points = points.filter(|&points| points <= LARGEST_TABLE / (axes + 1));
        let points = points.ok_or_else(|| OperatorError::field(format!("a grid of {extents:?} is too large")))?;
        if shape.len() != 3 || shape[1..] != [axes, axes + 1] || !dtype.is_float() {
            return Err(OperatorError::types(format!("{} isn't [N, {axes}, {}]", self.ty(theta), axes + 1)));
        }
        let coordinates: Vec<Vec<f64>> = extents.iter().map(|&cells| base_coordinates(cells, align_corners)).collect();
        let strides = row_major_strides(extents);
        let mut values = Vec::with_capacity(points * (axes + 1));
        for point in 0..points {
            values.extend((0..axes).rev().map(|axis| coordinates[axis][point / strides[axis] % extents[axis]]));
            values.push(1.0);
        }
        let base = self.numbers(dtype, &[points, axes + 1], values);
        let grid = self.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[base, theta])?;
        let result: Vec<usize> = shape[..1].iter().chain(extents).chain([&axes]).copied().collect();
        self.reshape(grid, &result)
    }

    /// Samples of the images x [N, C, spatial…] at the positions (x, y(, z)) in -1..1 of a grid [N, places…, k]:
    /// [N, C, places…].
    ///
    /// # Errors
    /// When the grid doesn't fit the images.
    pub fn grid_sample(
        &mut self,
        x: Value,
        grid: Value,
        mode: SampleMode,
        rim: SampleRim,
        align_corners: bool,
    ) -> Result<Value, OperatorError> {
        let image = self.image(x)?;
        let (shape, grid_shape, axes) = (self.shape(x), self.shape(grid), image.extents.len());
        if grid_shape.len() != shape.len() || grid_shape[0] != shape[0] || grid_shape.last() != Some(&axes) {
            let (grid, x) = (self.ty(grid), self.ty(x));
            return Err(OperatorError::types(format!("the grid {grid} doesn't fit the image {x}")));
        }
        let grid = self.cast(grid, image.dtype)?;
        let points: usize = grid_shape[1..grid_shape.len() - 1].iter().product();
        let first = self.first_rows(&image, shape[0])?;
        let mut taps = Vec::new();
        for axis in 0..axes {
            let coordinate = self.pick(grid, grid_shape.len() - 1, axes - 1 - axis)?;
            let coordinate = self.reshape(coordinate, &[shape[0], points])?;
            let axis = Axis { extent: image.extents[axis], dtype: image.dtype, mode, rim, align_corners };
            taps.push(axis.taps(self, coordinate)?);
        }
        let sum = self.combined_taps(&image, first, &taps, rim == SampleRim::Zeros)?;
        let mut result = grid_shape.to_vec();
        if let Some(last) = result.last_mut() {
            *last = shape[1];
        }
        let sum = self.reshape(sum, &result)?;
        self.to_channels_first(sum)
    }

    pub(super) fn image(&mut self, x: Value) -> Result<Image, OperatorError> {
        let shape = self.shape(x);
        if shape.len() < 3 || shape.contains(&0) || !self.dtype(x).is_float() {
            return Err(OperatorError::types(format!("{} isn't an image", self.ty(x))));
        }
        let last = self.to_channels_last(x)?;
        let positions: usize = shape[2..].iter().product();
        let rows = self.reshape(last, &[shape[0] * positions, shape[1]])?;
        Ok(Image { rows, extents: shape[2..].to_vec(), dtype: self.dtype(x) })
    }

    /// The first row of each image, [N, 1].
    pub(super) fn first_rows(&mut self, image: &Image, batch: usize) -> Result<Value, OperatorError> {
        let positions: usize = image.extents.iter().product();
        let first: Vec<i64> = (0..batch).map(|number| (number * positions) as i64).collect();
        self.indices(&[batch, 1], &first)
    }

    /// The rows at whole coordinates, one tensor of them per axis, clamped to the image. With `zeros`, zero outside.
    /// `first` holds the image's first row for each position.
    fn read_rows(
        &mut self,
        image: &Image,
        first: Value,
        coordinates: &[Value],
        zeros: bool,
    ) -> Result<Value, OperatorError> {
        let (dtype, strides) = (image.dtype, row_major_strides(&image.extents));
        let operands: Vec<Value> = coordinates.iter().copied().chain([first]).collect();
        let last = |axis: usize| (image.extents[axis] - 1) as f64;
        let row = self.map(&operands, |b| {
            let mut row = b.operand(coordinates.len() as u32);
            for (axis, &stride) in strides.iter().enumerate() {
                let (x, low, high) = (b.operand(axis as u32), b.number(dtype, 0.0), b.number(dtype, last(axis)));
                let above = b.binary(B::Maximum, x, low);
                let clamped = b.binary(B::Minimum, above, high);
                let (index, stride) = (b.cast(DType::I64, clamped), b.number(DType::I64, stride as f64));
                let offset = b.binary(B::Multiply, index, stride);
                row = b.binary(B::Add, row, offset);
            }
            row
        })?;
        let values = self.gather(image.rows, row, 0)?;
        if !zeros {
            return Ok(values);
        }
        let inside = self.map(coordinates, |b| {
            let mut inside = None;
            for axis in 0..coordinates.len() {
                let (x, low, high) = (b.operand(axis as u32), b.number(dtype, 0.0), b.number(dtype, last(axis)));
                let (above, below) = (b.binary(B::GreaterEqual, x, low), b.binary(B::LessEqual, x, high));
                let own = b.binary(B::And, above, below);
                inside = Some(inside.map_or(own, |others| b.binary(B::And, others, own)));
            }
            inside.unwrap_or_else(|| b.number(DType::Bool, 1.0))
        })?;
        let inside = self.insert_axis(inside, self.rank(inside))?;
        let zero = self.number(dtype, 0.0);
        self.select(inside, values, zero)
    }

    /// The weighted rows of all combinations of the axes' taps, [N, places…, C] each.
    pub(super) fn weighted_taps(
        &mut self,
        image: &Image,
        first: Value,
        taps: &[Vec<Tap>],
        zeros: bool,
    ) -> Result<Vec<Value>, OperatorError> {
        let combinations: usize = taps.iter().map(Vec::len).product();
        let mut values = Vec::new();
        for combination in 0..combinations {
            let mut rest = combination;
            let (mut coordinates, mut weight) = (Vec::new(), None);
            for axis in taps {
                let (coordinate, own) = axis[rest % axis.len()];
                rest /= axis.len();
                coordinates.push(coordinate);
                weight = match (weight, own) {
                    (Some(weight), Some(own)) => Some(self.binary(B::Multiply, weight, own)?),
                    (weight, own) => weight.or(own),
                };
            }
            let mut value = self.read_rows(image, first, &coordinates, zeros)?;
            if let Some(weight) = weight {
                let weight = self.insert_axis(weight, self.rank(weight))?;
                value = self.binary(B::Multiply, value, weight)?;
            }
            values.push(value);
        }
        Ok(values)
    }

    /// The sum of all combinations of the axes' taps.
    pub(super) fn combined_taps(
        &mut self,
        image: &Image,
        first: Value,
        taps: &[Vec<Tap>],
        zeros: bool,
    ) -> Result<Value, OperatorError> {
        let values = self.weighted_taps(image, first, taps, zeros)?;
        let mut sum = None;
        for value in values {
            sum = Some(self.add_optional(value, sum)?);
        }
        sum.ok_or_else(|| OperatorError::types("the image has no axes"))
    }

    /// The two neighbours of a position, from the lower one.
    pub(super) fn linear_taps(&mut self, source: Value) -> Result<Vec<Tap>, OperatorError> {
        let dtype = self.dtype(source);
        let floor = self.unary(U::Floor, source)?;
        let upper = self.binary_number(B::Add, floor, 1.0)?;
        let fraction = self.binary(B::Subtract, source, floor)?;
        let rest = self.map(&[fraction], |b| {
            let (one, x) = (b.number(dtype, 1.0), b.operand(0));
            b.binary(B::Subtract, one, x)
        })?;
        Ok(vec![(floor, Some(rest)), (upper, Some(fraction))])
    }
}

/// How an axis of an image is sampled.
struct Axis {
    extent: usize,
    dtype: DType,
    mode: SampleMode,
    rim: SampleRim,
    align_corners: bool,
}

impl Axis {
    /// The neighbours of positions given in -1..1.
    fn taps(&self, builder: &mut Builder, grid: Value) -> Result<Vec<Tap>, OperatorError> {
        let source = builder.map(&[grid], |b| self.source(b))?;
        match self.mode {
            SampleMode::Nearest => Ok(vec![(builder.unary(U::Round, source)?, None)]),
            SampleMode::Linear => builder.linear_taps(source),
            SampleMode::Cubic => self.cubic_taps(builder, source),
        }
    }

    /// From -1..1 to elements.
    fn source(&self, b: &mut ExpressionBuilder) -> ScalarId {
        let (dtype, last) = (self.dtype, self.extent as f64 - 1.0);
        let (g, one, two) = (b.operand(0), b.number(dtype, 1.0), b.number(dtype, 2.0));
        let shifted = b.binary(B::Add, g, one);
        let mut source = if self.align_corners {
            let (half, last) = (b.binary(B::Divide, shifted, two), b.number(dtype, last));
            b.binary(B::Multiply, half, last)
        } else {
            let extent = b.number(dtype, self.extent as f64);
            let scaled = b.binary(B::Multiply, shifted, extent);
            let moved = b.binary(B::Subtract, scaled, one);
            b.binary(B::Divide, moved, two)
        };
        // Cubic interpolation mirrors each neighbour instead.
        if self.mode == SampleMode::Cubic {
            return source;
        }
        if self.rim == SampleRim::Reflection {
            source = self.reflected(b, source);
        }
        if self.rim != SampleRim::Zeros {
            let (low, high) = (b.number(dtype, 0.0), b.number(dtype, last));
            let above = b.binary(B::Maximum, source, low);
            source = b.binary(B::Minimum, above, high);
        }
        source
    }

    /// Mirrors coordinates at the rim: at the outermost elements with aligned corners, else half an element outside.
    fn reflected(&self, b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
        let dtype = self.dtype;
        let (low, span) = if self.align_corners { (0.0, self.extent as f64 - 1.0) } else { (-0.5, self.extent as f64) };
        let zero = b.number(dtype, 0.0);
        if span == 0.0 {
            return b.binary(B::Multiply, x, zero);
        }
        let (low, span, two) = (b.number(dtype, low), b.number(dtype, span), b.number(dtype, 2.0));
        let distance = b.binary(B::Subtract, x, low);
        let distance = b.unary(U::Absolute, distance);
        let extra = b.binary(B::Remainder, distance, span);
        let flips = b.binary(B::FloorDivide, distance, span);
        let odd = b.binary(B::Remainder, flips, two);
        let even = b.binary(B::Equal, odd, zero);
        let mirrored = b.binary(B::Subtract, span, extra);
        let inner = b.select(even, extra, mirrored);
        b.binary(B::Add, inner, low)
    }

    /// Four neighbours by cubic convolution.
    fn cubic_taps(&self, builder: &mut Builder, source: Value) -> Result<Vec<Tap>, OperatorError> {
        let dtype = self.dtype;
        let floor = builder.unary(U::Floor, source)?;
        let fraction = builder.binary(B::Subtract, source, floor)?;
        let mut taps = Vec::new();
        for tap in -1..=2 {
            let coordinate = builder.map(&[floor], |b| {
                let (floor, tap) = (b.operand(0), b.number(dtype, f64::from(tap)));
                let place = b.binary(B::Add, floor, tap);
                if self.rim == SampleRim::Reflection { self.reflected(b, place) } else { place }
            })?;
            let weight = builder.map(&[fraction], |b| {
                let (x, place) = (b.operand(0), b.number(dtype, f64::from(tap)));
                let distance = b.binary(B::Subtract, x, place);
                let distance = b.unary(U::Absolute, distance);
                cubic_weight(b, distance, matches!(tap, 0 | 1), dtype)
            })?;
            taps.push((coordinate, Some(weight)));
        }
        Ok(taps)
    }
}

/// Up to a distance of 1: (a + 2) d^3 - (a + 3) d^2 + 1; up to 2: a (d^3 - 5 d^2 + 8 d - 4).
fn cubic_weight(b: &mut ExpressionBuilder, d: ScalarId, near: bool, dtype: DType) -> ScalarId {
    let a = -0.75;
    let coefficients = if near { [a + 2.0, -(a + 3.0), 0.0, 1.0] } else { [a, -5.0 * a, 8.0 * a, -4.0 * a] };
    let mut sum = b.number(dtype, coefficients[0]);
    for coefficient in &coefficients[1..] {
        let (product, coefficient) = (b.binary(B::Multiply, sum, d), b.number(dtype, *coefficient));
        sum = b.binary(B::Add, product, coefficient);
    }
    sum
}
