//! Winograd's filters along one axis: so many neighbouring results of a window by as many products as they meet elements, between
//! linear transforms of the elements, of the weights and of the products.
//!
//! A filter is the product of two polynomials, known by its values at some points, at infinity among them (Cook and Toom). Transforms
//! of elements and products are applied when code runs, that of weights when it is generated, in double precision. Which points are
//! taken decides how much roundings grow: large numbers and small ones both make factors far from 1.

/// A filter along one axis; one result of one tap is no filter at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filter {
    /// Neighbouring results that are computed at once.
    pub outputs: usize,
    /// Taps of the window.
    pub taps: usize,
    /// The points beside 0 and infinity; the negative of each is one, too.
    pub points: &'static [f64],
}

/// Points for one pair, for two and for three: fractions that keep all transforms of elements and products exact in single precision,
/// those that errors were least with on random sums. Of two pairs, these err a quarter as much as 1 and 2.
const POINTS: [&[f64]; 4] = [&[], &[1.0], &[0.75, 1.5], &[0.5, 1.0, 2.0]];

impl Filter {
    /// The filter of so many results of so many taps, if there are points for it.
    pub fn new(outputs: usize, taps: usize) -> Option<Filter> {
        if (outputs, taps) == (1, 1) {
            return Some(Filter { outputs, taps, points: &[] });
        }
        let size = (outputs + taps).checked_sub(1)?;
        let points = POINTS.get(size.checked_sub(2)? / 2)?;
        (size.is_multiple_of(2) && outputs > 1 && taps > 1).then_some(Filter { outputs, taps, points })
    }

    /// Elements that the results meet, and products.
    pub fn size(&self) -> usize {
        self.outputs + self.taps - 1
    }

    /// Whether it does nothing.
    pub fn is_identity(&self) -> bool {
        self.size() == 1
    }

    /// Whether integers have transforms in integers: half of a weight is the least part that there is of one.
    pub fn is_of_integers(&self) -> bool {
        self.points.iter().all(|&point| point == 1.0)
    }

    /// All finite points: 0, then each point and its negative.
    fn finite(&self) -> Vec<f64> {
        let pairs = self.points.iter().flat_map(|&point| [point, -point]);
        std::iter::once(0.0).chain(pairs).collect()
    }

    /// What each product takes of the elements: a row for each finite point, the last one for infinity.
    pub fn elements(&self) -> Vec<Vec<f64>> {
        if self.is_identity() {
            return vec![vec![1.0]];
        }
        let finite = self.finite();
        let without = |left_out: Option<usize>| {
            let kept = finite.iter().enumerate().filter(|(place, _)| Some(*place) != left_out);
            let mut row = kept.fold(vec![1.0], |polynomial, (_, &root)| times_linear(&polynomial, root));
            row.resize(self.size(), 0.0);
            row
        };
        (0..finite.len()).map(Some).chain([None]).map(without).collect()
    }

    /// What each product takes of the taps.
    pub fn weights(&self) -> Vec<Vec<f64>> {
        if self.is_identity() {
            return vec![vec![1.0]];
        }
        let finite = self.finite();
        let row = |(place, &point): (usize, &f64)| {
            let others = finite.iter().enumerate().filter(|(other, _)| *other != place);
            let divisor: f64 = others.map(|(_, &other)| point - other).product();
            (0..self.taps as i32).map(|power| point.powi(power) / divisor).collect()
        };
        let mut last = vec![0.0; self.taps];
        last[self.taps - 1] = 1.0;
        finite.iter().enumerate().map(row).chain([last]).collect()
    }
}

/// A polynomial, its constant first, times `x - root`.
fn times_linear(polynomial: &[f64], root: f64) -> Vec<f64> {
    let shifted = std::iter::once(0.0).chain(polynomial.iter().copied());
    let scaled = polynomial.iter().map(|factor| root * factor).chain([0.0]);
    shifted.zip(scaled).map(|(shifted, scaled)| shifted - scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_compute_windows() {
        for (outputs, taps) in [(1, 1), (2, 3), (4, 3), (3, 2), (2, 5), (4, 5), (2, 7)] {
            let filter = Filter::new(outputs, taps).unwrap();
            let x: Vec<f64> = (0..filter.size()).map(|k| (k * k) as f64 - 3.5 * k as f64 + 1.0).collect();
            let w: Vec<f64> = (0..taps).map(|k| 2.0 - 1.5 * k as f64).collect();
            let dot = |row: &Vec<f64>, values: &[f64]| row.iter().zip(values).map(|(a, b)| a * b).sum::<f64>();
            let elements: Vec<f64> = filter.elements().iter().map(|row| dot(row, &x)).collect();
            let weights: Vec<f64> = filter.weights().iter().map(|row| dot(row, &w)).collect();
            for output in 0..outputs {
                let expected: f64 = (0..taps).map(|tap| w[tap] * x[output + tap]).sum();
                let mut sum = 0.0;
                for (place, (x, w)) in elements.iter().zip(&weights).enumerate() {
                    let factor = match filter.finite().get(place) {
                        _ if filter.is_identity() => 1.0,
                        Some(point) => point.powi(output as i32),
                        None => f64::from(u8::from(output + 1 == outputs)),
                    };
                    sum += factor * x * w;
                }
                assert!((sum - expected).abs() < 1e-12, "{filter:?} output {output}: {sum}, not {expected}");
            }
        }
    }

    #[test]
    fn there_are_no_filters_without_points() {
        for (outputs, taps) in [(0, 3), (1, 3), (3, 1), (3, 3), (4, 7), (2, 9), (0, 0)] {
            assert_eq!(Filter::new(outputs, taps), None, "{outputs}, {taps}");
        }
    }
}
