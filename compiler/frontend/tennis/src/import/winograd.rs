//! Weights in Winograd's form: the transform U = G g Gᵀ of each 3 x 3 kernel g, for tiles of 6 x 6 or 2 x 2 elements of the result.
//!
//! G has full column rank, so U says what g was. With L, a left inverse of G, it is L U Lᵀ; the corners of g stand in U as they
//! are. Two roundings for each entry of G and three for each of the two products with it make an error of U of at most
//! 8 u |G| |g| |G|ᵀ, where u is the unit roundoff of the weights. So what is found differs from g by at most 8 u M |g| Mᵀ, with
//! M = |L| |G|, and its transform from U by at most 16 u |G| M |g| Mᵀ |G|ᵀ. Twice as much is let pass, for other orders of
//! the sums, and what underflows; whatever lies farther off is the transform of no kernel.

use super::call::{Call, Parameters};
use mlc_import::Fault;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

/// A kernel's elements, by rows.
type Kernel = [[f64; 3]; 3];

/// A way to transform kernels.
#[derive(Debug)]
struct Transform {
    /// G.
    rows: &'static [[f64; 3]],
    /// How many times the second row of U less the third one is the middle row of what G was multiplied with. First and last rows
    /// are first and last ones of it.
    middle: f64,
}

/// For tiles of 2 x 2 elements.
const F23: Transform =
    Transform { rows: &[[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]], middle: 1.0 };

/// For tiles of 6 x 6 elements.
const F63: Transform = Transform {
    rows: &[
        [1.0, 0.0, 0.0],
        [-2.0 / 9.0, -2.0 / 9.0, -2.0 / 9.0],
        [-2.0 / 9.0, 2.0 / 9.0, -2.0 / 9.0],
        [1.0 / 90.0, 1.0 / 45.0, 2.0 / 45.0],
        [1.0 / 90.0, -1.0 / 45.0, 2.0 / 45.0],
        [1.0 / 45.0, 1.0 / 90.0, 1.0 / 180.0],
        [1.0 / 45.0, -1.0 / 90.0, 1.0 / 180.0],
        [0.0, 0.0, 1.0],
    ],
    middle: -2.25,
};

/// How many times the bound on the distance of U from what is found, in u.
const LET_PASS: f64 = 32.0;

/// How many of the least numbers underflow may take: 3 of U, 3 · 4.5² of what L makes of it, which are 3 · (2/9 · 6.5)² on the way back.
const UNDERFLOW: f64 = 16.0;

/// The 3 x 3 weights whose transforms an operand holds.
///
/// # Errors
/// When it isn't known while the model is imported, or holds something that no weights have as their transform.
pub(super) fn stored_weights(call: &mut Call<'_, '_>, operand: usize) -> Result<Value, Fault> {
    let stored = call.floats_input(operand)?;
    let ty = call.builder.ty(stored).clone();
    let transform = match ty.shape[..] {
        [_, _, 4, 4] => F23,
        [_, _, 8, 8] => F63,
        _ => {
            let message = format!("weights in Winograd's form must be [.., 8, 8] or [.., 4, 4], found {ty}");
            return Err(Fault::operands(message));
        }
    };
    let known = call.constant(operand, "weights in Winograd's form")?;
    let known = call.required("weights", known)?;
    let weights = weights(&transform, &known.to_tensor()).map_err(|channels| {
        let message = format!(
            "the stored weights of output channel {} and input channel {} aren't Winograd's transform of a 3 x 3 kernel",
            channels[0], channels[1]
        );
        Fault::variant(message).with_help(
            "the order [output, input, row, column] is understood, not that of a runtime's kernels; \
             save the module before the runtime's optimiser has seen it",
        )
    })?;
    Ok(call.builder.constant("weights", Attribute::from_tensor(&weights)))
}

/// The weights of which a tensor holds the transforms, of the same type; the first channels of output and input of which it doesn't.
fn weights(transform: &Transform, stored: &Tensor) -> Result<Tensor, [usize; 2]> {
    let (shape, size) = (stored.shape(), transform.rows.len());
    let precision = Precision::of(stored.ty().dtype);
    let ty = TensorType::new(stored.ty().dtype, [shape[0], shape[1], 3, 3]);
    let mut found = Vec::with_capacity(ty.elements());
    for (number, tile) in stored.to_floats().chunks_exact(size * size).enumerate() {
        let kernel = transform.kernel(tile);
        if !transform.gives(&kernel, tile, precision) {
            return Err([number / shape[1], number % shape[1]]);
        }
        found.extend(kernel.as_flattened());
    }
    Ok(Tensor::from_floats(ty, found))
}

/// How exactly a data type has numbers.
#[derive(Clone, Copy)]
struct Precision {
    /// The largest relative error of a rounded number.
    unit_roundoff: f64,
    /// The least number above zero.
    least: f64,
}

impl Precision {
    /// Of a data type of floating-point numbers.
    fn of(dtype: DType) -> Self {
        let (digits, least) = match dtype {
            DType::F16 => (11, -24),
            DType::Bf16 => (8, -133),
            DType::F64 => (53, -1074),
            _ => (24, -149),
        };
        Precision { unit_roundoff: 2_f64.powi(-digits), least: 2_f64.powi(least) }
    }
}

impl Transform {
    /// What L takes a column of U to, whose elements are `step` apart.
    fn column(&self, column: &[f64], step: usize) -> [f64; 3] {
        let last = (self.rows.len() - 1) * step;
        [column[0], self.middle * (column[step] - column[2 * step]), column[last]]
    }

    /// L U Lᵀ.
    fn kernel(&self, tile: &[f64]) -> Kernel {
        let size = self.rows.len();
        let columns: Vec<[f64; 3]> = (0..size).map(|column| self.column(&tile[column..], size)).collect();
        [0, 1, 2].map(|row| {
            let row: Vec<f64> = columns.iter().map(|column| column[row]).collect();
            self.column(&row, 1)
        })
    }

    /// Whether U may be the transform of a kernel, but for roundings.
    fn gives(&self, kernel: &Kernel, tile: &[f64], Precision { unit_roundoff, least }: Precision) -> bool {
        let spread = |[first, middle, last]: [f64; 3]| [first, first + middle + last, last];
        let magnitudes = kernel.map(|row| spread(row.map(f64::abs)));
        let columns = [0, 1, 2].map(|column| spread(magnitudes.map(|row| row[column])));
        let size = self.rows.len();
        tile.iter().enumerate().all(|(place, element)| {
            let (left, right) = (self.rows[place / size], self.rows[place % size]);
            let (mut exact, mut bound) = (0.0, 0.0);
            for (row, left) in left.iter().enumerate() {
                for (column, right) in right.iter().enumerate() {
                    exact += left * kernel[row][column] * right;
                    bound += (left * right).abs() * columns[column][row];
                }
            }
            (element - exact).abs() <= LET_PASS * unit_roundoff * bound + UNDERFLOW * least
        })
    }
}

/// The transforms of weights in tiles of this size, as the runtime makes them in single precision.
#[cfg(test)]
pub(super) fn stored_form(size: usize, weights: &Tensor) -> Tensor {
    let transform = if size == 4 { F23 } else { F63 };
    let g = |row: usize, column: usize| transform.rows[row][column] as f32;
    let tile = |kernel: &[f64]| -> Vec<f64> {
        let k = |place: usize| kernel[place] as f32;
        let half = |row: usize, j: usize| k(3 * row) * g(j, 0) + k(3 * row + 1) * g(j, 1) + k(3 * row + 2) * g(j, 2);
        let element = |i: usize, j: usize| half(0, j) * g(i, 0) + half(1, j) * g(i, 1) + half(2, j) * g(i, 2);
        (0..size * size).map(|place| f64::from(element(place / size, place % size))).collect()
    };
    let tiles = weights.to_floats().chunks(9).flat_map(tile).collect();
    Tensor::from_floats(TensorType::new(DType::F32, [weights.shape()[0], weights.shape()[1], size, size]), tiles)
}

/// How far each element of weights that are found may be from that of a kernel: 8 u M |g| Mᵀ, a rounding to single, and what
/// underflows.
#[cfg(test)]
pub(super) fn bounds(kernel: &[f64]) -> [f64; 9] {
    let spread = |index: usize| if index == 1 { 0..3 } else { index..index + 1 };
    let (unit, least) = (2_f64.powi(-24), 2_f64.powi(-149));
    std::array::from_fn(|place| {
        let near = spread(place / 3).flat_map(|row| spread(place % 3).map(move |column| 3 * row + column));
        let sum: f64 = near.map(|place| kernel[place].abs()).sum();
        8.0 * unit * sum + unit * kernel[place].abs() + 64.0 * least
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Generator;

    /// Random kernels, also such with elements of very different sizes, and very small ones.
    fn kernels(generator: &mut Generator) -> Tensor {
        let ty = TensorType::new(DType::F32, [2, 3, 3, 3]);
        let plain = generator.tensor(&ty).to_floats();
        let mut scaled = |value: f64| match generator.range(0, 3) {
            0 => value * 2_f64.powi(-(generator.range(0, 30) as i32)),
            1 => value * 2_f64.powi(-(generator.range(100, 148) as i32)),
            _ => value,
        };
        let values = plain.into_iter().map(&mut scaled).collect();
        Tensor::from_floats(ty, values)
    }

    #[test]
    fn stored_weights_are_found_within_the_bound() {
        let mut generator = Generator::new(11);
        for (round, size) in [4, 8].into_iter().cycle().take(400).enumerate() {
            let kernels = kernels(&mut generator);
            let transform = if size == 4 { F23 } else { F63 };
            let found = weights(&transform, &stored_form(size, &kernels)).unwrap();
            assert_eq!(found.ty(), kernels.ty());
            for (found, kernel) in found.to_floats().chunks(9).zip(kernels.to_floats().chunks(9)) {
                for (place, bound) in bounds(kernel).into_iter().enumerate() {
                    let far = (found[place] - kernel[place]).abs();
                    assert!(far <= bound, "round {round}, element {place}: off by {far}, bound {bound}");
                    if [0, 2, 6, 8].contains(&place) {
                        assert!(far == 0.0, "corners stand there as they are");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_the_transform_of_no_kernel_is_told() {
        let mut generator = Generator::new(12);
        for (size, transform) in [(4, F23), (8, F63)] {
            let tile = size * size;
            let good = stored_form(size, &generator.tensor(&TensorType::new(DType::F32, [2, 3, 3, 3])));
            let with = |place: usize, value: f64| {
                let mut values = good.to_floats();
                values[place] = value;
                Tensor::from_floats(good.ty().clone(), values)
            };
            for place in 4 * tile..5 * tile {
                let bad = with(place, good.to_floats()[place] + 0.01);
                assert_eq!(weights(&transform, &bad), Err([1, 1]), "element {place} of {size} x {size}");
            }
            for value in [f64::NAN, f64::INFINITY] {
                assert_eq!(weights(&transform, &with(0, value)), Err([0, 0]));
            }
        }
    }

    #[test]
    fn nothing_is_nothing() {
        let zeros = |shape: [usize; 4]| {
            Tensor::from_floats(TensorType::new(DType::F32, shape), vec![0.0; shape.iter().product()])
        };
        assert_eq!(weights(&F63, &zeros([2, 1, 8, 8])), Ok(zeros([2, 1, 3, 3])));
        assert_eq!(weights(&F23, &zeros([0, 1, 4, 4])), Ok(zeros([0, 1, 3, 3])));
    }
}
