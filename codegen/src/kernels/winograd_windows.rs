//! Windows that [`Filter`]s compute, those that move by several elements among them.
//!
//! A window that moves by two is the sum of as many windows that move by one as there are ways to take every second tap: 2 × 2, 2 × 1, 1 × 2
//! and 1 tap of 3 × 3. Each of these, a phase, meets elements of its own, every second one of a row or column. All are computed by the filters of
//! the phase that has most taps, so that their products are sums over the channels of all phases and are transformed once. A phase
//! that has one tap less along an axis takes no part in what belongs to the point at infinity, which is a multiple of its last tap.

use super::winograd_filter::Filter;
use mlc_ir::{Attribute, DType};
use std::ops::Range;

/// A window along both axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windows {
    /// The filters of the phase that has most taps.
    pub filters: [Filter; 2],
    /// Elements that the window moves by.
    pub strides: [usize; 2],
    taps: [usize; 2],
}

/// Products that as many phases take part in.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The phases that take part in each.
    pub phases: usize,
    /// The number of the first one.
    pub first: usize,
    /// Their rows and columns in the transformed window.
    pub products: Vec<[usize; 2]>,
}

impl Windows {
    /// A window of some taps that moves by `strides`, `outputs` results at once along each axis where a phase has several taps; nothing
    /// if there is no filter for it, or if filters do nothing.
    pub fn new(taps: [usize; 2], strides: [usize; 2], outputs: usize) -> Option<Windows> {
        let along = |axis: usize| {
            let taps = taps[axis].div_ceil(strides[axis]);
            Filter::new(if taps == 1 { 1 } else { outputs }, taps)
        };
        let filters = [along(0)?, along(1)?];
        (!filters.iter().all(Filter::is_identity)).then_some(Windows { filters, strides, taps })
    }

    /// Taps of the window.
    pub fn taps(&self) -> usize {
        self.taps.iter().product()
    }

    /// Products along each axis.
    pub fn sizes(&self) -> [usize; 2] {
        self.filters.map(|filter| filter.size())
    }

    /// How often transformed weights of integers are doubled so that they are integers, once for each axis that has a filter; so often are
    /// results halved. Nothing if elements have no transforms in integers.
    pub fn doublings(&self) -> Option<u32> {
        let are_of_integers = self.filters.iter().all(Filter::is_of_integers);
        are_of_integers.then(|| self.filters.iter().map(|filter| u32::from(!filter.is_identity())).sum())
    }

    /// Products of a tile.
    pub fn size(&self) -> usize {
        self.sizes().iter().product()
    }

    /// The phases, by the first tap of each along both axes.
    pub fn phases(&self) -> Vec<[usize; 2]> {
        let [rows, columns] = [0, 1].map(|axis| self.strides[axis].min(self.taps[axis]));
        (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column])).collect()
    }

    /// The taps of a phase along an axis.
    fn taps_of(&self, phase: [usize; 2], axis: usize) -> usize {
        (self.taps[axis] - phase[axis]).div_ceil(self.strides[axis])
    }

    /// Elements that a phase meets along an axis, and products that it takes part in.
    pub fn reach(&self, phase: [usize; 2], axis: usize) -> usize {
        self.sizes()[axis] - (self.filters[axis].taps - self.taps_of(phase, axis))
    }

    /// The phases that take part in a product.
    fn phases_of(&self, product: [usize; 2]) -> Vec<[usize; 2]> {
        let takes_part = |phase: &[usize; 2]| (0..2).all(|axis| product[axis] < self.reach(*phase, axis));
        self.phases().into_iter().filter(takes_part).collect()
    }

    /// All products: row by row those that most phases take part in, then the others.
    pub fn groups(&self) -> Vec<Group> {
        let [rows, columns] = self.sizes();
        let products = (0..rows).flat_map(|row| (0..columns).map(move |column| [row, column]));
        let counted: Vec<(usize, [usize; 2])> =
            products.map(|product| (self.phases_of(product).len(), product)).collect();
        let mut first = 0;
        let mut groups = Vec::new();
        for phases in (1..=self.phases().len()).rev() {
            let products: Vec<[usize; 2]> = counted.iter().filter(|own| own.0 == phases).map(|own| own.1).collect();
            if !products.is_empty() {
                let count = products.len();
                groups.push(Group { phases, first, products });
                first += count;
            }
        }
        groups
    }

    /// Which of the phases that take part in a product one is.
    pub fn turn(&self, product: [usize; 2], phase: [usize; 2]) -> Option<usize> {
        self.phases_of(product).iter().position(|own| *own == phase)
    }

    /// The weights `[rows, columns, channels, outputs]` of a window as `[products, depths, outputs]` of a group, each rounded once: of some
    /// depths, which are the channels of one phase after the other. Nothing if they aren't of single precision, or of another window.
    pub fn transformed_weights(&self, group: &Group, weights: &Attribute, depths: Range<usize>) -> Option<Vec<u8>> {
        let [height, width, channels, outputs] = *weights.ty().shape.as_slice() else { return None };
        if weights.ty().dtype != DType::F32 || [height, width] != self.taps {
            return None;
        }
        let terms = self.terms(group);
        let mut transformed = vec![0; 4 * group.products.len() * depths.len() * outputs];
        let mut values = vec![[0.0; CHUNK]; height * width];
        let of_products = 4 * depths.len() * outputs;
        for number in 0..group.phases {
            // Of the depths, those of this phase.
            let own = depths.start.max(number * channels)..depths.end.min((number + 1) * channels);
            let first = 4 * own.start.saturating_sub(number * channels) * outputs;
            let before = 4 * own.start.saturating_sub(depths.start) * outputs;
            let bytes = 4 * own.len() * outputs;
            for start in (0..bytes).step_by(4 * CHUNK) {
                let end = bytes.min(start + 4 * CHUNK);
                let planes = weights.bytes().chunks_exact(4 * channels * outputs);
                for (values, plane) in values.iter_mut().zip(planes) {
                    let singles = plane[first + start..first + end].as_chunks::<4>().0;
                    for (value, bytes) in values.iter_mut().zip(singles) {
                        *value = f64::from(f32::from_le_bytes(*bytes));
                    }
                }
                for (terms, transformed) in terms.iter().zip(transformed.chunks_exact_mut(of_products)) {
                    let mut sums = [0.0; CHUNK];
                    for &(factor, tap) in &terms[number] {
                        sums.iter_mut().zip(values[tap]).for_each(|(sum, value)| *sum += factor * value);
                    }
                    let to = transformed[before + start..before + end].as_chunks_mut::<4>().0;
                    for (bytes, sum) in to.iter_mut().zip(sums) {
                        *bytes = (sum as f32).to_le_bytes();
                    }
                }
            }
        }
        Some(transformed)
    }

    /// The same of weights that are bytes, [doubled](Windows::doublings), exactly: of all depths.
    pub fn transformed_words(&self, group: &Group, weights: &Attribute) -> Option<Vec<i16>> {
        let [height, width, channels, outputs] = *weights.ty().shape.as_slice() else { return None };
        if weights.ty().dtype != DType::I8 || [height, width] != self.taps {
            return None;
        }
        let scale = f64::from(1 << self.doublings()?);
        let planes: Vec<&[u8]> = weights.bytes().chunks_exact(channels * outputs).collect();
        let mut words = Vec::with_capacity(group.products.len() * group.phases * channels * outputs);
        for of_phase in self.terms(group).iter().flatten() {
            let terms: Vec<(i16, &[u8])> = of_phase
                .iter()
                .map(|&(factor, tap)| Some(((scale * factor) as i16, *planes.get(tap)?)))
                .collect::<Option<_>>()?;
            let sum =
                |place: usize| terms.iter().map(|(factor, plane)| factor * i16::from(plane[place] as i8)).sum::<i16>();
            words.extend((0..channels * outputs).map(sum));
        }
        Some(words)
    }

    /// The taps that each phase of each product of a group is a sum of, and their factors. Half of a filter's elements are zeros: they aren't here.
    fn terms(&self, group: &Group) -> Vec<Vec<Vec<(f64, usize)>>> {
        let [rows, columns] = self.filters.map(|filter| filter.weights());
        let [height, width] = self.taps;
        let of_phase = |[row, column]: [usize; 2], phase: [usize; 2]| {
            let taps = (phase[0]..height).step_by(self.strides[0]).flat_map(|tap| {
                let others = (phase[1]..width).step_by(self.strides[1]);
                others.map(move |other| (tap, other))
            });
            let term = |(tap, other): (usize, usize)| {
                let factor = rows[row][tap / self.strides[0]] * columns[column][other / self.strides[1]];
                (factor, tap * width + other)
            };
            taps.map(term).filter(|&(factor, _)| factor != 0.0).collect()
        };
        let of_product =
            |&product: &[usize; 2]| self.phases_of(product).into_iter().map(|phase| of_phase(product, phase)).collect();
        group.products.iter().map(of_product).collect()
    }
}

/// Weights that are transformed at once, so that all their taps stay near.
const CHUNK: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(taps: [usize; 2], strides: [usize; 2], outputs: usize) -> Vec<(usize, usize)> {
        let windows = Windows::new(taps, strides, outputs).unwrap();
        windows.groups().iter().map(|group| (group.products.len(), group.phases)).collect()
    }

    #[test]
    fn phases_of_fewer_taps_take_part_in_fewer_products() {
        assert_eq!(counts([3, 3], [1, 1], 4), [(36, 1)]);
        assert_eq!(counts([3, 3], [2, 2], 3), [(9, 4), (6, 2), (1, 1)]);
        assert_eq!(counts([4, 4], [2, 2], 3), [(16, 4)]);
        assert_eq!(counts([7, 7], [2, 2], 3), [(25, 4), (10, 2), (1, 1)]);
        assert_eq!(counts([1, 3], [2, 2], 3), [(3, 2), (1, 1)]);
        assert_eq!(counts([3, 2], [1, 2], 4), [(6, 2)]);
    }

    #[test]
    fn numbers_and_turns_name_each_phase_of_each_product_once() {
        for (taps, outputs) in [([3, 3], 3), ([7, 5], 4), ([7, 7], 3), ([2, 3], 5)] {
            let Some(windows) = Windows::new(taps, [2, 2], outputs) else { continue };
            let mut first = 0;
            for group in windows.groups() {
                assert_eq!(group.first, first);
                first += group.products.len();
                for &product in &group.products {
                    let turns: Vec<usize> =
                        windows.phases().into_iter().filter_map(|phase| windows.turn(product, phase)).collect();
                    assert_eq!(turns, (0..group.phases).collect::<Vec<_>>(), "{taps:?}, product {product:?}");
                }
            }
            assert_eq!(first, windows.size());
        }
    }

    #[test]
    fn windows_of_single_taps_have_no_filters() {
        for (taps, strides) in [([1, 1], [1, 1]), ([2, 2], [2, 2]), ([1, 2], [1, 2]), ([9, 9], [1, 1])] {
            assert_eq!(Windows::new(taps, strides, 3), None, "{taps:?} by {strides:?}");
        }
    }
}
