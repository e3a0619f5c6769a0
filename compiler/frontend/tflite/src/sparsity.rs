//! [`Sparsity`]: where the elements of a constant belong that is stored without most of its zeros, as pruned weights are.
//!
//! The stored form is a tree of levels, one for each axis and one for each axis of a block within it, in an order of its own (the
//! `SparsityParameters` of the format's schema). A level has all places of its axis, or a list of those that aren't empty.

use mlc_ir::types::row_major_strides;

/// So many zeros may stand for a stored element: more would let a small file become much memory.
const MOST_ZEROS: usize = 256;

/// How a constant is stored whose zeros are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sparsity {
    /// Axes from the outermost level on; from the number of axes on, those of blocks.
    pub order: Vec<usize>,
    /// The axis that each axis of a block divides.
    pub blocks: Vec<usize>,
    /// What each level stores.
    pub levels: Vec<Level>,
}

/// What a level stores of an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// All its places: so many.
    Dense(usize),
    /// Compressed rows.
    Compressed {
        /// Where the places of each row of the level before begin among the indices, and the end of the last one's.
        segments: Vec<usize>,
        /// The places that are stored.
        indices: Vec<usize>,
    },
}

impl Sparsity {
    /// The place of each of so many stored elements in a tensor of a shape, counted in the order of its axes.
    ///
    /// # Errors
    /// What contradicts itself, the shape or the number of elements.
    pub fn places(&self, shape: &[usize], stored: usize) -> Result<Vec<usize>, String> {
        let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent.max(1)));
        if elements.is_none_or(|elements| elements > MOST_ZEROS.saturating_mul(stored + 1)) {
            return Err(format!("of {shape:?} only {stored} elements are stored"));
        }
        let axes = self.axes(shape)?;
        let rows = |level: &Level| if let Level::Compressed { segments, .. } = level { segments.len() } else { 0 };
        let most = self.levels.iter().map(rows).fold(stored, usize::max);
        let mut places = vec![0];
        for (number, (level, &(extent, stride))) in self.levels.iter().zip(&axes).enumerate() {
            places = level.below(&places, extent, stride, most).map_err(|what| format!("level {number}: {what}"))?;
        }
        if places.len() == stored {
            Ok(places)
        } else {
            Err(format!("{} elements are told, {stored} stored", places.len()))
        }
    }

    /// Of each level the extent of its axis and how far its places are apart. The product of all extents of the shape is a number.
    fn axes(&self, shape: &[usize]) -> Result<Vec<(usize, usize)>, String> {
        let (rank, count) = (shape.len(), shape.len() + self.blocks.len());
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..count) || self.levels.len() != count {
            return Err(format!("{count} levels are needed, one for each axis and each axis of a block"));
        }
        let strides = row_major_strides(shape);
        // Of each axis and each axis of a block.
        let mut axes: Vec<(usize, usize)> = shape.iter().copied().zip(strides.iter().copied()).collect();
        for (number, &axis) in self.blocks.iter().enumerate() {
            let level = self.order.iter().position(|&own| own == rank + number).map(|place| &self.levels[place]);
            let Some(&Level::Dense(size)) = level else { return Err("places within blocks are left out".into()) };
            let Some((extent, stride)) = axes.get_mut(axis).filter(|_| axis < rank) else {
                return Err(format!("blocks divide axis {axis}, but there are {rank}"));
            };
            if size == 0 || !extent.is_multiple_of(size) || *stride != strides[axis] {
                return Err(format!("blocks of {size} don't divide axis {axis} of {shape:?}"));
            }
            (*extent, *stride) = (*extent / size, stride.saturating_mul(size));
            axes.push((size, strides[axis]));
        }
        Ok(self.order.iter().map(|&axis| axes[axis]).collect())
    }
}

impl Level {
    /// The places of a level below those of the one before; no more than `most`.
    fn below(&self, places: &[usize], extent: usize, stride: usize, most: usize) -> Result<Vec<usize>, String> {
        match self {
            Level::Dense(size) if *size != extent => Err(format!("{size} places of {extent}")),
            Level::Dense(size) if places.len().saturating_mul(*size) > most => {
                Err(format!("{} times {size} places, more than are stored", places.len()))
            }
            Level::Dense(size) => {
                Ok(places.iter().flat_map(|place| (0..*size).map(move |index| place + index * stride)).collect())
            }
            Level::Compressed { segments, indices } => {
                let is_sound = segments.len() == places.len() + 1
                    && segments.first() == Some(&0)
                    && segments.last() == Some(&indices.len())
                    && segments.is_sorted();
                if !is_sound {
                    return Err(format!("{} places aren't divided among {} rows", indices.len(), places.len()));
                }
                if let Some(beyond) = indices.iter().find(|&&index| index >= extent) {
                    return Err(format!("place {beyond} of {extent}"));
                }
                let rows = places.iter().zip(segments.windows(2));
                Ok(rows
                    .flat_map(|(place, row)| indices[row[0]..row[1]].iter().map(move |index| place + index * stride))
                    .collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(segments: &[usize], indices: &[usize]) -> Level {
        Level::Compressed { segments: segments.to_vec(), indices: indices.to_vec() }
    }

    fn rows() -> Sparsity {
        let levels = vec![Level::Dense(3), compressed(&[0, 2, 2, 3], &[0, 3, 1])];
        Sparsity { order: vec![0, 1], blocks: Vec::new(), levels }
    }

    #[test]
    fn compressed_rows_are_where_they_belong() {
        assert_eq!(rows().places(&[3, 4], 3), Ok(vec![0, 3, 9]));
        let columns = Sparsity { order: vec![1, 0], ..rows() };
        assert_eq!(columns.places(&[4, 3], 3), Ok(vec![0, 9, 5]));
    }

    #[test]
    fn blocks_are_within_their_axes() {
        // Two blocks of 2 x 2 of the six of 4 x 6: in rows 0 and 1 columns 4 and 5, below columns 2 and 3.
        let levels = vec![Level::Dense(2), compressed(&[0, 1, 2], &[2, 1]), Level::Dense(2), Level::Dense(2)];
        let blocks = Sparsity { order: vec![0, 1, 2, 3], blocks: vec![0, 1], levels };
        assert_eq!(blocks.places(&[4, 6], 8), Ok(vec![4, 5, 10, 11, 14, 15, 20, 21]));
    }

    #[test]
    fn contradictions_are_told() {
        let told = |sparsity: Sparsity, shape: &[usize], stored| sparsity.places(shape, stored).unwrap_err();
        let with = |level: Level| Sparsity { levels: vec![Level::Dense(3), level], ..rows() };
        assert_eq!(told(rows(), &[3, 4], 4), "3 elements are told, 4 stored");
        assert_eq!(told(rows(), &[2, 4], 3), "level 0: 3 places of 2");
        assert_eq!(told(rows(), &[3, 3], 3), "level 1: place 3 of 3");
        assert_eq!(told(rows(), &[3, 4, 1], 3), "3 levels are needed, one for each axis and each axis of a block");
        assert_eq!(
            told(with(compressed(&[0, 2, 1, 3], &[0, 3, 1])), &[3, 4], 3),
            "level 1: 3 places aren't divided among 3 rows"
        );
        assert_eq!(
            told(with(Level::Dense(1 << 40)), &[3, 1 << 40], 3),
            "of [3, 1099511627776] only 3 elements are stored"
        );
        assert_eq!(told(with(Level::Dense(100)), &[3, 100], 3), "level 1: 3 times 100 places, more than are stored");
        let blocks = |block: Level, axis| Sparsity {
            order: vec![0, 1, 2],
            blocks: vec![axis],
            levels: rows().levels.into_iter().chain([block]).collect(),
        };
        assert_eq!(told(blocks(Level::Dense(3), 1), &[3, 4], 9), "blocks of 3 don't divide axis 1 of [3, 4]");
        assert_eq!(told(blocks(Level::Dense(2), 2), &[3, 4], 6), "blocks divide axis 2, but there are 2");
        assert_eq!(told(blocks(compressed(&[0], &[]), 1), &[3, 4], 6), "places within blocks are left out");
    }
}
