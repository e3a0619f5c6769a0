//! Reading and writing where index tensors say, ordering, and what compares elements with their own coordinates.

use super::Builder;
use mlc_ir::ops::{GatherElements, Scatter, ScatterReduction, Sort};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::types::row_major_strides;
use mlc_ir::{Attribute, DType, Literal, OperatorError, Value};

impl Builder {
    /// A constant of 64-bit integers.
    ///
    /// # Errors
    /// When the values don't fill the shape.
    pub fn indices(&mut self, shape: &[usize], values: &[i64]) -> Result<Value, OperatorError> {
        let attribute = Attribute::from_i64(shape, values)
            .ok_or_else(|| OperatorError::types(format!("{} indices don't fill the shape {shape:?}", values.len())))?;
        Ok(self.constant("indices", attribute))
    }

    /// The constant 0, 1, 2, … of `count` elements, i64.
    ///
    /// # Errors
    /// When there are too many.
    pub fn counting(&mut self, count: usize) -> Result<Value, OperatorError> {
        self.indices(&[count], &(0..count as i64).collect::<Vec<i64>>())
    }

    /// The values of a constant of whole numbers.
    fn constant_integers(&self, x: Value) -> Option<Vec<i64>> {
        let attribute = self.graph().constant(x)?;
        (!attribute.ty().dtype.is_float()).then(|| attribute.to_tensor().to_integers())
    }

    /// For each element of the indices, the element of data at its place, but for `axis`, where the index says the place.
    ///
    /// # Errors
    /// When the shapes don't fit, or a constant index leaves the axis.
    pub fn gather_elements(&mut self, data: Value, indices: Value, axis: usize) -> Result<Value, OperatorError> {
        self.check_indices(data, indices, axis)?;
        self.apply(GatherElements { axis }, &[data, indices])
    }

    /// A copy of data in which updates are written, or combined with what is there, where the indices say. The indices
    /// broadcast to the updates' shape.
    ///
    /// # Errors
    /// When the shapes don't fit, or a constant index leaves the axis.
    pub fn scatter(
        &mut self,
        data: Value,
        indices: Value,
        updates: Value,
        axis: usize,
        reduction: ScatterReduction,
    ) -> Result<Value, OperatorError> {
        self.check_indices(data, indices, axis)?;
        self.apply(Scatter { axis, reduction }, &[data, indices, updates])
    }

    /// Refuses constant indices that leave an axis.
    pub(super) fn check_indices(&self, data: Value, indices: Value, axis: usize) -> Result<(), OperatorError> {
        match self.ty(data).shape.get(axis) {
            Some(&extent) => self.check_places(indices, extent),
            None => Err(OperatorError::field(format!("{} has no axis {axis}", self.ty(data)))),
        }
    }

    fn check_places(&self, indices: Value, extent: usize) -> Result<(), OperatorError> {
        let range = -(extent as i64)..extent as i64;
        let values = self.constant_integers(indices).unwrap_or_default();
        match values.into_iter().find(|index| !range.contains(index)) {
            Some(index) => Err(OperatorError::Evaluation(format!("index {index} leaves an axis of {extent} elements"))),
            None => Ok(()),
        }
    }

    /// The place in a row-major tensor of `extents` that coordinates mean, i64: one value per axis, which broadcast;
    /// negative ones count from the end.
    ///
    /// # Errors
    /// When they don't broadcast, aren't integers, or a constant one leaves its axis.
    pub fn flat_place(&mut self, coordinates: &[Value], extents: &[usize]) -> Result<Value, OperatorError> {
        let dtypes: Vec<DType> = coordinates.iter().map(|&coordinate| self.dtype(coordinate)).collect();
        if coordinates.len() != extents.len() || !dtypes.iter().all(|dtype| dtype.is_integer()) {
            return Err(OperatorError::types(format!("coordinates of {dtypes:?} can't name a place in {extents:?}")));
        }
        for (&coordinate, &extent) in coordinates.iter().zip(extents) {
            self.check_places(coordinate, extent)?;
        }
        let strides = row_major_strides(extents);
        self.map(coordinates, |b| {
            let mut sum = b.literal(Literal::integer(DType::I64, 0));
            for (axis, (&extent, &stride)) in extents.iter().zip(&strides).enumerate() {
                let number = |value: usize| Literal::integer(DType::I64, value as i64);
                let operand = b.operand(axis as u32);
                let own = if dtypes[axis] == DType::I64 { operand } else { b.cast(DType::I64, operand) };
                let (zero, extent, stride) =
                    (b.literal(number(0)), b.literal(number(extent)), b.literal(number(stride)));
                let (negative, from_end) = (b.binary(B::Less, own, zero), b.binary(B::Add, own, extent));
                let place = b.select(negative, from_end, own);
                let offset = b.binary(B::Multiply, place, stride);
                sum = b.binary(B::Add, sum, offset);
            }
            sum
        })
    }

    /// The places that tuples along the last axis of the indices mean in a tensor of `extents`, one per element of a tuple.
    fn tuple_places(&mut self, indices: Value, extents: &[usize]) -> Result<Value, OperatorError> {
        let last = self.rank(indices).saturating_sub(1);
        let picked: Result<Vec<Value>, OperatorError> =
            (0..extents.len()).map(|component| self.pick(indices, last, component)).collect();
        let picked = picked?;
        if picked.is_empty() {
            let shape = self.shape(indices);
            let zero = self.literal(Literal::integer(DType::I64, 0));
            return self.broadcast(zero, &shape[..last]);
        }
        self.flat_place(&picked, extents)
    }

    /// Slices of data [batch…, d1, …, dk, rest…] at the tuples of k coordinates in indices [batch…, places…, k]:
    /// [batch…, places…, rest…].
    ///
    /// # Errors
    /// When the shapes don't fit, or a constant coordinate leaves its axis.
    pub fn gather_nd(&mut self, data: Value, indices: Value, batch_axes: usize) -> Result<Value, OperatorError> {
        let (shape, wanted) = (self.shape(data), self.shape(indices));
        let misfit = |this: &Self| {
            OperatorError::types(format!("can't gather slices of {} by {}", this.ty(data), this.ty(indices)))
        };
        let Some((&components, places)) = wanted.split_last() else { return Err(misfit(self)) };
        let end = batch_axes.saturating_add(components);
        if end > shape.len() || places.len() < batch_axes || places[..batch_axes] != shape[..batch_axes] {
            return Err(misfit(self));
        }
        let extents = &shape[batch_axes..end];
        let mut place = self.tuple_places(indices, extents)?;
        let (batches, volume) = (shape[..batch_axes].iter().product::<usize>(), extents.iter().product::<usize>());
        if batches != 1 {
            let mut aligned = vec![1; places.len()];
            aligned[..batch_axes].copy_from_slice(&shape[..batch_axes]);
            let first: Vec<i64> = (0..batches).map(|batch| (batch * volume) as i64).collect();
            let first = self.indices(&aligned, &first)?;
            place = self.binary(B::Add, place, first)?;
        }
        let flat: Vec<usize> = [batches * volume].into_iter().chain(shape[end..].iter().copied()).collect();
        let data = self.reshape(data, &flat)?;
        self.gather(data, place, 0)
    }

    /// A copy of data [d1, …, dk, rest…] with updates [places…, rest…] at the tuples of k coordinates in indices
    /// [places…, k].
    ///
    /// # Errors
    /// When the shapes don't fit, or a constant coordinate leaves its axis.
    pub fn scatter_nd(
        &mut self,
        data: Value,
        indices: Value,
        updates: Value,
        reduction: ScatterReduction,
    ) -> Result<Value, OperatorError> {
        let (shape, wanted, given) = (self.shape(data), self.shape(indices), self.shape(updates));
        let components = wanted.last().copied().filter(|&components| components <= shape.len());
        let fits = components.is_some_and(|components| {
            let places = &wanted[..wanted.len() - 1];
            given.iter().eq(places.iter().chain(&shape[components..]))
        });
        let (Some(components), true) = (components, fits) else {
            let types = [data, indices, updates].map(|value| self.ty(value).to_string());
            return Err(OperatorError::types(format!("can't scatter {} into {} by {}", types[2], types[0], types[1])));
        };
        let place = self.tuple_places(indices, &shape[..components])?;
        self.scatter_slices(data, place, updates, components, reduction)
    }

    /// A copy of data [d1, …, dk, rest…] with updates [places…, rest…] at flat places [places…] of the first k axes.
    ///
    /// # Errors
    /// When the shapes don't fit.
    pub fn scatter_slices(
        &mut self,
        data: Value,
        place: Value,
        updates: Value,
        axes: usize,
        reduction: ScatterReduction,
    ) -> Result<Value, OperatorError> {
        let shape = self.shape(data);
        let count = self.ty(place).elements();
        let (volume, rest) = (shape[..axes].iter().product::<usize>(), shape[axes..].iter().product::<usize>());
        let flat = |extent: usize| if rest == 1 { vec![extent] } else { vec![extent, rest] };
        let column = if rest == 1 { vec![count] } else { vec![count, 1] };
        let place = self.reshape(place, &column)?;
        let updates = self.reshape(updates, &flat(count))?;
        let data = self.reshape(data, &flat(volume))?;
        let result = self.scatter(data, place, updates, 0, reduction)?;
        self.reshape(result, &shape)
    }

    /// The first elements of each item of a batch in reversed order, as many as `lengths` [batch] says; the others stay.
    ///
    /// # Errors
    /// When the axes are the same or aren't there, or the lengths aren't whole numbers for each item.
    pub fn reverse_sequence(
        &mut self,
        x: Value,
        lengths: Value,
        time: usize,
        batch: usize,
    ) -> Result<Value, OperatorError> {
        let rank = self.rank(x);
        if time == batch || time.max(batch) >= rank {
            let message = format!("{} can't have its time along axis {time} and its batch along {batch}", self.ty(x));
            return Err(OperatorError::types(message));
        }
        // Both axes before all others, in the order that they have.
        let (first, second) = (time.min(batch), time.max(batch));
        let x = self.move_axis(x, first, 0)?;
        let x = self.move_axis(x, second, 1)?;
        let shape = self.shape(x);
        let aligned = |axis: usize| if axis == first { [shape[0], 1] } else { [1, shape[1]] };
        let (of_time, of_batch) = (aligned(time), aligned(batch));
        let steps = self.counting(of_time.iter().product())?;
        let steps = self.reshape(steps, &of_time)?;
        let items = self.counting(of_batch.iter().product())?;
        let items = self.reshape(items, &of_batch)?;
        let lengths = self.cast(lengths, DType::I64)?;
        let lengths = self.reshape(lengths, &of_batch)?;
        let sources = self.map(&[steps, lengths], |b| {
            let (step, length, one) = (b.operand(0), b.operand(1), b.number(DType::I64, 1.0));
            let inside = b.binary(B::Less, step, length);
            let last = b.binary(B::Subtract, length, one);
            let mirrored = b.binary(B::Subtract, last, step);
            b.select(inside, mirrored, step)
        })?;
        let coordinates = if time < batch { [sources, items] } else { [items, sources] };
        let place = self.flat_place(&coordinates, &shape[..2])?;
        let flat: Vec<usize> = [shape[0] * shape[1]].into_iter().chain(shape[2..].iter().copied()).collect();
        let rows = self.reshape(x, &flat)?;
        let reversed = self.gather(rows, place, 0)?;
        let reversed = self.move_axis(reversed, 1, second)?;
        self.move_axis(reversed, 0, first)
    }

    /// A copy of `data` with `update`, of as many axes, written from a place on: whole numbers [rank], moved so that all of the update lies
    /// inside.
    ///
    /// # Errors
    /// When the update is larger, or the place isn't whole numbers for each axis.
    pub fn update_slice(&mut self, data: Value, update: Value, start: Value) -> Result<Value, OperatorError> {
        let (shape, given) = (self.shape(data), self.shape(update));
        let fits = shape.len() == given.len() && given.iter().zip(&shape).all(|(given, extent)| given <= extent);
        if !fits || self.shape(start)[..] != [shape.len()] || !self.dtype(start).is_integer() {
            let types = [update, data, start].map(|value| self.ty(value).to_string());
            return Err(OperatorError::types(format!("can't write {} into {} from {}", types[0], types[1], types[2])));
        }
        // Axes of which all is written need no places.
        let axes = given.iter().zip(&shape).rposition(|(given, extent)| given != extent).map_or(0, |axis| axis + 1);
        let mut coordinates = Vec::new();
        for axis in 0..axes {
            let mut aligned = vec![1; axes];
            aligned[axis] = given[axis];
            let steps = self.counting(given[axis])?;
            let steps = self.reshape(steps, &aligned)?;
            let first = self.pick(start, 0, axis)?;
            let first = self.cast(first, DType::I64)?;
            let first = self.clamp(first, 0.0, (shape[axis] - given[axis]) as f64)?;
            coordinates.push(self.binary(B::Add, steps, first)?);
        }
        if axes == 0 {
            return Ok(update);
        }
        let place = self.flat_place(&coordinates, &shape[..axes])?;
        self.scatter_slices(data, place, update, axes, ScatterReduction::Replace)
    }

    /// The first `count` elements of an axis in order, and their indices (i64). Equal elements keep their order; NaN
    /// counts as the largest.
    ///
    /// # Errors
    /// When the axis has fewer elements.
    pub fn sort(&mut self, x: Value, axis: usize, count: usize, descending: bool) -> Result<[Value; 2], OperatorError> {
        match self.apply_all(Sort { axis, count, descending }, &[x])?[..] {
            [values, indices] => Ok([values, indices]),
            ref other => Err(OperatorError::types(format!("sorting gave {} results", other.len()))),
        }
    }

    /// Zeros of a shape with elements at flat places: both of [outer…, n…], where the places name elements of the axes
    /// `plane` behind the `outer_axes` first ones.
    ///
    /// # Errors
    /// When the shapes don't fit.
    pub fn unpool(
        &mut self,
        x: Value,
        places: Value,
        outer_axes: usize,
        plane: &[usize],
    ) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        if shape != self.shape(places) || outer_axes > shape.len() {
            let (x, places) = (self.ty(x), self.ty(places));
            return Err(OperatorError::types(format!("places {places} don't fit the elements {x}")));
        }
        let (outer, inner) = (&shape[..outer_axes], shape[outer_axes..].iter().product::<usize>());
        let elements = plane.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        let elements = elements.ok_or_else(|| OperatorError::field(format!("{plane:?} is too large")))?;
        let flat = |extent: usize| outer.iter().copied().chain([extent]).collect::<Vec<usize>>();
        let zero = self.number(self.dtype(x), 0.0);
        let zeros = self.broadcast(zero, &flat(elements))?;
        let (x, places) = (self.reshape(x, &flat(inner))?, self.reshape(places, &flat(inner))?);
        let y = self.scatter(zeros, places, x, outer_axes, ScatterReduction::Replace)?;
        let result: Vec<usize> = outer.iter().chain(plane).copied().collect();
        self.reshape(y, &result)
    }

    /// Matrices (the last two axes) with zeros above, or below, a diagonal; the main one is 0, those above it are
    /// positive. The diagonal is an i64 of one element.
    ///
    /// # Errors
    /// When there are fewer than two axes.
    pub fn triangle(&mut self, x: Value, diagonal: Value, lower: bool) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let [.., rows, columns] = shape[..] else {
            return Err(OperatorError::types(format!("{} isn't a matrix", self.ty(x))));
        };
        let (row, column) = (self.counting(rows)?, self.counting(columns)?);
        let row = self.reshape(row, &[rows, 1])?;
        let diagonal = self.reshape(diagonal, &[])?;
        let zero = self.number(self.dtype(x), 0.0);
        self.map(&[x, row, column, diagonal, zero], |b| {
            let end = (b.operand(1), b.operand(3));
            let end = b.binary(B::Add, end.0, end.1);
            let column = b.operand(2);
            let kept = b.binary(if lower { B::LessEqual } else { B::GreaterEqual }, column, end);
            let (x, zero) = (b.operand(0), b.operand(4));
            b.select(kept, x, zero)
        })
    }

    /// Whether each of `depth` places along a new axis is the one that an index (an integer) names. With `from_end`, negative
    /// indices count from the end; no place is that of an index beside the axis.
    ///
    /// # Errors
    /// When the indices aren't integers or the axis has no place.
    pub fn one_hot(
        &mut self,
        indices: Value,
        depth: usize,
        axis: usize,
        from_end: bool,
    ) -> Result<Value, OperatorError> {
        let rank = self.rank(indices);
        if axis > rank || !self.dtype(indices).is_integer() {
            return Err(OperatorError::types(format!("{} has no one-hot axis {axis}", self.ty(indices))));
        }
        let indices = self.cast(indices, DType::I64)?;
        let indices = self.insert_axis(indices, axis)?;
        let mut aligned = vec![1; rank + 1];
        aligned[axis] = depth;
        let places = self.counting(depth)?;
        let places = self.reshape(places, &aligned)?;
        self.map(&[indices, places], |b| {
            let (index, place) = (b.operand(0), b.operand(1));
            let hit = b.binary(B::Equal, index, place);
            if !from_end {
                return hit;
            }
            let depth = b.literal(Literal::integer(DType::I64, depth as i64));
            let moved = b.binary(B::Add, index, depth);
            let hit_from_end = b.binary(B::Equal, moved, place);
            b.binary(B::Or, hit, hit_from_end)
        })
    }

    /// Whether the column less the row of each place of a matrix is `diagonal`.
    ///
    /// # Errors
    /// When the matrix is too large.
    pub fn diagonal_mask(&mut self, rows: usize, columns: usize, diagonal: i64) -> Result<Value, OperatorError> {
        let (row, column) = (self.counting(rows)?, self.counting(columns)?);
        let row = self.reshape(row, &[rows, 1])?;
        self.map(&[row, column], |b| {
            let (row, column) = (b.operand(0), b.operand(1));
            let diagonal = b.literal(Literal::integer(DType::I64, diagonal));
            let place = b.binary(B::Add, row, diagonal);
            b.binary(B::Equal, column, place)
        })
    }
}
