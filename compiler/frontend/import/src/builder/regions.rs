//! Pooling of regions whose corners are data, and convolutions whose taps are moved by data.

use super::sampling::{LARGEST_TABLE, Tap};
use super::{Builder, SlidingWindow};
use mlc_ir::ops::{Convolution, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{OperatorError, Value};

/// How regions are cut into cells and sampled.
#[derive(Debug, Clone)]
pub struct RegionPool {
    /// Cells of a region: rows and columns.
    pub cells: [usize; 2],
    /// Samples of a cell along each axis; 0 lets each region have its own number, one sample per element of the image.
    pub samples: usize,
    /// From the corners' unit to elements.
    pub scale: f64,
    /// Whether the centre of an element, not its corner, is at whole coordinates; regions may have any extent then.
    pub half_pixel: bool,
    /// Whether the largest weighted neighbour of all samples counts, not their mean.
    pub maximum: bool,
}

/// Where samples lie along an axis.
struct Line {
    /// First position of each region, [K, 1].
    start: Value,
    /// Extent of a cell, [K, 1].
    cell: Value,
}

impl Builder {
    /// Pools regions of the images x [N, C, H, W] into cells: [K, C, cells…]. The corners [K, 4] are x1, y1, x2, y2;
    /// `images` [K] says which image a region is in.
    ///
    /// # Errors
    /// When the operands don't fit, or the samples take too much memory.
    pub fn pool_regions(
        &mut self,
        x: Value,
        corners: Value,
        images: Value,
        pool: &RegionPool,
    ) -> Result<Value, OperatorError> {
        let (shape, corner_shape, image_shape) = (self.shape(x), self.shape(corners), self.shape(images));
        let [count, 4] = corner_shape[..] else {
            return Err(OperatorError::types(format!("the corners {} aren't [K, 4]", self.ty(corners))));
        };
        let sound = shape.len() == 4 && image_shape[..] == [count] && self.dtype(images).is_integer();
        if !sound || pool.cells.iter().any(|&cells| cells == 0 || cells > 1 << 12) || pool.samples >= 64 {
            let (x, images) = (self.ty(x), self.ty(images));
            return Err(OperatorError::types(format!("{pool:?} doesn't fit the images {x} with numbers {images}")));
        }
        let corners = self.cast(corners, self.dtype(x))?;
        let lines = [self.region_line(corners, 0, pool)?, self.region_line(corners, 1, pool)?];
        if pool.samples == 0 && pool.maximum {
            let message = "the largest of samples whose number depends on the regions has no static memory plan";
            return Err(OperatorError::field(message));
        }
        if pool.samples == 0 {
            self.pool_by_matrices(x, images, &lines, pool)
        } else {
            self.pool_by_samples(x, images, &lines, pool)
        }
    }

    /// The start and the cells of the regions along an axis.
    fn region_line(&mut self, corners: Value, axis: usize, pool: &RegionPool) -> Result<Line, OperatorError> {
        let dtype = self.dtype(corners);
        let start = self.slice_axis(corners, 1, 1 - axis, 1, 1)?;
        let end = self.slice_axis(corners, 1, 3 - axis, 1, 1)?;
        let cell = self.map(&[start, end], |b| {
            let (start, end, scale) = (b.operand(0), b.operand(1), b.number(dtype, pool.scale));
            let (start, end) = (b.binary(B::Multiply, start, scale), b.binary(B::Multiply, end, scale));
            let mut length = b.binary(B::Subtract, end, start);
            if !pool.half_pixel {
                let one = b.number(dtype, 1.0);
                length = b.binary(B::Maximum, length, one);
            }
            let count = b.number(dtype, pool.cells[axis] as f64);
            b.binary(B::Divide, length, count)
        })?;
        let start = self.map(&[start], |b| {
            let (start, scale) = (b.operand(0), b.number(dtype, pool.scale));
            let (scaled, offset) =
                (b.binary(B::Multiply, start, scale), b.number(dtype, if pool.half_pixel { 0.5 } else { 0.0 }));
            b.binary(B::Subtract, scaled, offset)
        })?;
        Ok(Line { start, cell })
    }

    /// Gathers the neighbours of every sample.
    fn pool_by_samples(
        &mut self,
        x: Value,
        images: Value,
        lines: &[Line; 2],
        pool: &RegionPool,
    ) -> Result<Value, OperatorError> {
        let (image, shape, samples) = (self.image(x)?, self.shape(x), pool.samples);
        let (dtype, count) = (image.dtype, self.ty(images).elements());
        let positions = pool.cells.iter().fold(count.saturating_mul(shape[1]), |product, &cells| {
            product.saturating_mul(cells).saturating_mul(samples)
        });
        if positions > LARGEST_TABLE {
            return Err(OperatorError::field(format!("{positions} samples are too many")));
        }
        let images = self.cast(images, mlc_ir::DType::I64)?;
        let first = self.binary_number(B::Multiply, images, (shape[2] * shape[3]) as f64)?;
        let first = self.reshape(first, &[count, 1, 1])?;
        let (mut taps, mut valid) = (Vec::new(), None);
        for (axis, line) in lines.iter().enumerate() {
            let steps = (0..pool.cells[axis] * samples)
                .map(|sample| (sample / samples) as f64 + ((sample % samples) as f64 + 0.5) / samples as f64);
            let steps = self.numbers(dtype, &[1, pool.cells[axis] * samples], steps.collect());
            let offset = self.binary(B::Multiply, steps, line.cell)?;
            let positions = self.binary(B::Add, line.start, offset)?;
            let mut lined_up = [count, 1, 1];
            lined_up[axis + 1] = pool.cells[axis] * samples;
            let positions = self.reshape(positions, &lined_up)?;
            let extent = image.extents[axis] as f64;
            let within = self.map(&[positions], |b| {
                let (x, low, high) = (b.operand(0), b.number(dtype, -1.0), b.number(dtype, extent));
                let (above, below) = (b.binary(B::GreaterEqual, x, low), b.binary(B::LessEqual, x, high));
                b.binary(B::And, above, below)
            })?;
            valid = Some(match valid {
                Some(others) => self.binary(B::And, others, within)?,
                None => within,
            });
            let clamped = self.clamp(positions, 0.0, extent - 1.0)?;
            taps.push(self.linear_taps(clamped)?);
        }
        let mut values = self.weighted_taps(&image, first, &taps, false)?.into_iter();
        let (Some(first), Some(valid)) = (values.next(), valid) else {
            return Err(OperatorError::types("the image has no axes"));
        };
        let function = if pool.maximum { B::Maximum } else { B::Add };
        let combined = values.try_fold(first, |combined, value| self.binary(function, combined, value))?;
        let valid = self.insert_axis(valid, 3)?;
        let zero = self.number(dtype, 0.0);
        let combined = self.select(valid, combined, zero)?;
        let split = [count, pool.cells[0], samples, pool.cells[1], samples, shape[1]];
        let split = self.reshape(combined, &split)?;
        let function = if pool.maximum { ReduceFunction::Maximum } else { ReduceFunction::Mean };
        let y = self.apply(Reduce { function, axes: vec![2, 4], keep_axes: false }, &[split])?;
        self.to_channels_first(y)
    }

    /// The mean of samples that are as many as a cell has elements, which depends on the data: what each element weighs in
    /// a cell is a sum over samples for rows and columns apart, so that the mean is a product of two matrices and the
    /// image. Samples are at least half an element apart or alone in their cell, so that only so many lie in the image.
    fn pool_by_matrices(
        &mut self,
        x: Value,
        images: Value,
        lines: &[Line; 2],
        pool: &RegionPool,
    ) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let count = self.ty(images).elements();
        let rows = self.cell_weights(&lines[0], count, pool.cells[0], shape[2])?;
        let columns = self.cell_weights(&lines[1], count, pool.cells[1], shape[3])?;
        if shape[0] == 1 {
            let image = self.remove_axis(x, 0)?;
            return self.einsum("cyx,kpy,kqx->kcpq", &[image, rows, columns]);
        }
        let chosen = self.gather(x, images, 0)?;
        self.einsum("kcyx,kpy,kqx->kcpq", &[chosen, rows, columns])
    }

    /// What each element of an axis weighs in each cell of each region, [K, cells, extent].
    fn cell_weights(&mut self, line: &Line, count: usize, cells: usize, extent: usize) -> Result<Value, OperatorError> {
        let dtype = self.dtype(line.start);
        let taps = 2 * extent + 5;
        let elements = [cells, taps, extent].iter().fold(count, |product, &extent| product.saturating_mul(extent));
        if elements > LARGEST_TABLE {
            return Err(OperatorError::field("the samples of the regions, whose number depends on them, are too many"));
        }
        let aligned = |builder: &mut Builder, value: Value| builder.reshape(value, &[count, 1, 1, 1]);
        let (start, cell) = (aligned(self, line.start)?, aligned(self, line.cell)?);
        let counted = |count: usize| (0..count).map(|number| number as f64).collect::<Vec<f64>>();
        let number = self.numbers(dtype, &[1, cells, 1, 1], counted(cells));
        let tap = self.numbers(dtype, &[1, 1, taps, 1], counted(taps));
        let element = self.numbers(dtype, &[1, 1, 1, extent], counted(extent));
        let samples = self.unary(U::Ceil, cell)?;
        let step = self.binary(B::Divide, cell, samples)?;
        let begin = self.map(&[start, cell, number], |b| {
            let (start, cell, number) = (b.operand(0), b.operand(1), b.operand(2));
            let offset = b.binary(B::Multiply, number, cell);
            b.binary(B::Add, start, offset)
        })?;
        // The sample before the first one that may lie in the image, and those that follow it.
        let sample = self.map(&[begin, step, tap], |b| {
            let (begin, step, tap) = (b.operand(0), b.operand(1), b.operand(2));
            let (edge, half, zero) = (b.number(dtype, -1.0), b.number(dtype, 1.5), b.number(dtype, 0.0));
            let distance = b.binary(B::Subtract, edge, begin);
            let steps = b.binary(B::Divide, distance, step);
            let before = b.binary(B::Subtract, steps, half);
            let before = b.unary(U::Floor, before);
            let first = b.binary(B::Maximum, before, zero);
            b.binary(B::Add, first, tap)
        })?;
        let position = self.map(&[begin, step, sample], |b| {
            let (begin, step, sample, half) = (b.operand(0), b.operand(1), b.operand(2), b.number(dtype, 0.5));
            let centre = b.binary(B::Add, sample, half);
            let offset = b.binary(B::Multiply, centre, step);
            b.binary(B::Add, begin, offset)
        })?;
        let weights = self.map(&[position, sample, samples, element], |b| {
            let (position, sample, samples, element) = (b.operand(0), b.operand(1), b.operand(2), b.operand(3));
            let (zero, one, edge) = (b.number(dtype, 0.0), b.number(dtype, 1.0), b.number(dtype, -1.0));
            let (last, end) = (b.number(dtype, extent as f64 - 1.0), b.number(dtype, extent as f64));
            let above = b.binary(B::Maximum, position, zero);
            let clamped = b.binary(B::Minimum, above, last);
            let distance = b.binary(B::Subtract, clamped, element);
            let distance = b.unary(U::Absolute, distance);
            let near = b.binary(B::Subtract, one, distance);
            let weight = b.binary(B::Maximum, near, zero);
            let share = b.binary(B::Divide, weight, samples);
            let (exists, inside) = (b.binary(B::Less, sample, samples), b.binary(B::GreaterEqual, position, edge));
            let (behind, counts) = (b.binary(B::LessEqual, position, end), b.binary(B::And, exists, inside));
            let counts = b.binary(B::And, counts, behind);
            b.select(counts, share, zero)
        })?;
        let sum = Reduce { function: ReduceFunction::Sum, axes: vec![2], keep_axes: false };
        self.apply(sum, &[weights])
    }

    /// A convolution of x [N, C, H, W] by weights [M, C / groups, h, w] whose taps are moved by offsets
    /// [N, 2 * offset groups * taps, rows, columns] of y before x, and scaled by a mask [N, offset groups * taps, rows,
    /// columns]. Samples outside of the image are zero.
    ///
    /// # Errors
    /// When the operands don't fit, or the samples take too much memory.
    pub fn deformable_convolution(
        &mut self,
        x: Value,
        weights: Value,
        offsets: Value,
        mask: Option<Value>,
        window: &SlidingWindow,
        offset_groups: usize,
    ) -> Result<Value, OperatorError> {
        let (shape, offset_shape, weight_shape) = (self.shape(x), self.shape(offsets), self.shape(weights));
        let (&[batch, channels, ..], &[_, count, rows, columns], &[outputs, inputs, height, width]) =
            (&shape[..], &offset_shape[..], &weight_shape[..])
        else {
            return Err(OperatorError::types("image, offsets and weights must have four axes"));
        };
        let taps = height.saturating_mul(width);
        let points = taps.saturating_mul(rows).saturating_mul(columns);
        let fits = shape.len() == 4
            && offset_groups > 0
            && channels % offset_groups.max(1) == 0
            && count == taps.saturating_mul(2).saturating_mul(offset_groups)
            && points.saturating_mul(channels.max(1)) <= LARGEST_TABLE
            && [window.strides.len(), window.dilations.len(), window.pads.len()] == [2; 3];
        if !fits {
            let types = [x, offsets, weights].map(|value| self.ty(value).to_string());
            return Err(OperatorError::types(format!(
                "the offsets {} don't fit {} and {}",
                types[1], types[0], types[2]
            )));
        }
        let split = self.reshape(offsets, &[batch, offset_groups, taps, 2, rows, columns])?;
        let (own, mut sampled) = (channels / offset_groups, Vec::new());
        for group in 0..offset_groups {
            let part = self.slice_axis(x, 1, group * own, own, 1)?;
            let moved = self.pick(split, 1, group)?;
            let mut values = self.moved_taps(part, moved, [height, width], window)?;
            if let Some(mask) = mask {
                let mask = self.slice_axis(mask, 1, group * taps, taps, 1)?;
                let mask = self.reshape(mask, &[batch, points, 1])?;
                values = self.binary(B::Multiply, values, mask)?;
            }
            sampled.push(values);
        }
        let values = self.concat(&sampled, 2)?;
        // The taps of each place one behind the other: a convolution along one axis that steps by all taps.
        let values = self.reshape(values, &[batch, taps, rows * columns, channels])?;
        let values = self.transpose(values, &[0, 2, 1, 3])?;
        let values = self.reshape(values, &[batch, rows * columns * taps, channels])?;
        let weights = self.transpose(weights, &[2, 3, 1, 0])?;
        let weights = self.reshape(weights, &[taps, inputs, outputs])?;
        let groups = window.groups;
        let op =
            Convolution { strides: vec![taps], dilations: vec![1], pads: vec![(0, 0)], groups, border: 0, sums: None };
        let y = self.apply(op, &[values, weights])?;
        let y = self.reshape(y, &[batch, rows, columns, outputs])?;
        self.to_channels_first(y)
    }

    /// Samples [N, taps * rows * columns, C] of an image at the taps of a window, moved by offsets
    /// [N, taps, 2, rows, columns].
    fn moved_taps(
        &mut self,
        x: Value,
        offsets: Value,
        [height, width]: [usize; 2],
        window: &SlidingWindow,
    ) -> Result<Value, OperatorError> {
        let image = self.image(x)?;
        let shape = self.shape(offsets);
        let (batch, taps, rows, columns) = (shape[0], height * width, shape[3], shape[4]);
        let first = self.first_rows(&image, batch)?;
        let mut axis_taps: Vec<Vec<Tap>> = Vec::new();
        for axis in 0..2 {
            let place = |tap: usize, row: usize, column: usize| {
                let (cell, tap) = if axis == 0 { (row, tap / width) } else { (column, tap % width) };
                (cell * window.strides[axis] + tap * window.dilations[axis]) as f64 - window.pads[axis].0 as f64
            };
            let place = &place;
            let places = (0..taps)
                .flat_map(|tap| (0..rows).flat_map(move |row| (0..columns).map(move |column| place(tap, row, column))));
            let places = self.numbers(image.dtype, &[taps * rows * columns], places.collect());
            let offset = self.pick(offsets, 2, axis)?;
            let offset = self.reshape(offset, &[batch, taps * rows * columns])?;
            let source = self.binary(B::Add, offset, places)?;
            axis_taps.push(self.linear_taps(source)?);
        }
        self.combined_taps(&image, first, &axis_taps, true)
    }
}
