//! What indexing, sorting, sums by equation and sampling compute, on small tensors.

use super::*;
use mlc_ir::Tensor;
use mlc_ir::evaluate;
use mlc_ir::ops::ScatterReduction;

/// Values of what `build` makes of an f32 input with the values 0, 1, 2, ….
fn values(shape: &[usize], build: impl FnOnce(&mut Builder, Value) -> Result<Value, OperatorError>) -> Vec<f64> {
    let count: usize = shape.iter().product();
    values_of(shape, (0..count).map(|value| value as f64).collect(), build)
}

fn values_of(
    shape: &[usize],
    x: Vec<f64>,
    build: impl FnOnce(&mut Builder, Value) -> Result<Value, OperatorError>,
) -> Vec<f64> {
    let mut builder = Builder::new("test");
    let ty = TensorType::new(DType::F32, shape);
    let input = builder.input("x", ty.clone());
    let y = build(&mut builder, input).unwrap();
    builder.output("y", y);
    evaluate(&builder.finish(), &[Tensor::from_floats(ty, x)]).unwrap().remove(0).to_floats()
}

#[test]
fn tuples_choose_slices_and_elements() {
    let rows = values(&[2, 3, 2], |b, x| {
        let indices = b.indices(&[2, 2], &[0, -1, 1, 0])?;
        b.gather_nd(x, indices, 0)
    });
    assert_eq!(rows, [4., 5., 6., 7.]);
    let batched = values(&[2, 3, 2], |b, x| {
        let indices = b.indices(&[2, 1], &[1, 2])?;
        b.gather_nd(x, indices, 1)
    });
    assert_eq!(batched, [2., 3., 10., 11.]);
    let all = values(&[2, 2], |b, x| {
        let indices = b.indices(&[1, 0], &[])?;
        b.gather_nd(x, indices, 0)
    });
    assert_eq!(all, [0., 1., 2., 3.]);
}

#[test]
fn tuples_place_slices_and_elements() {
    let rows = values(&[3, 2], |b, x| {
        let indices = b.indices(&[2, 1], &[2, -3])?;
        let updates = b.numbers(DType::F32, &[2, 2], vec![7., 8., 9., 10.]);
        b.scatter_nd(x, indices, updates, ScatterReduction::Replace)
    });
    assert_eq!(rows, [9., 10., 2., 3., 7., 8.]);
    let sums = values(&[2, 2], |b, x| {
        let indices = b.indices(&[3, 2], &[0, 1, 1, 1, 0, 1])?;
        let updates = b.numbers(DType::F32, &[3], vec![10., 20., 30.]);
        b.scatter_nd(x, indices, updates, ScatterReduction::Sum)
    });
    assert_eq!(sums, [0., 41., 2., 23.]);
}

#[test]
fn constant_indices_beside_the_axis_are_refused() {
    let mut builder = Builder::new("test");
    let x = builder.input("x", TensorType::new(DType::F32, [3, 2]));
    let outside = builder.indices(&[1], &[3]).unwrap();
    let error = builder.gather(x, outside, 0).unwrap_err();
    assert_eq!(error.to_string(), "index 3 leaves an axis of 3 elements");
    let low = builder.indices(&[1, 1], &[-4]).unwrap();
    assert!(builder.gather_elements(x, low, 0).is_err());
    assert!(builder.gather_nd(x, low, 0).is_err());
    assert!(builder.gather(x, low, 0).is_err());
}

#[test]
fn elements_return_to_their_places() {
    let plane = values(&[1, 2], |b, x| {
        let places = b.indices(&[1, 2], &[3, 1])?;
        b.unpool(x, places, 1, &[2, 2])
    });
    assert_eq!(plane, [0., 1., 0., 0.]);
}

#[test]
fn masks_follow_coordinates() {
    let lower = |diagonal: i64, lower: bool| {
        values(&[2, 3], |b, x| {
            let diagonal = b.literal(Literal::integer(DType::I64, diagonal));
            b.triangle(x, diagonal, lower)
        })
    };
    assert_eq!(lower(0, true), [0., 0., 0., 3., 4., 0.]);
    assert_eq!(lower(1, false), [0., 1., 2., 0., 0., 5.]);
    assert_eq!(lower(-1, true), [0., 0., 0., 3., 0., 0.]);
    let hot = |from_end: bool| {
        values(&[1], |b, _| {
            let indices = b.indices(&[3], &[1, -1, 5])?;
            b.one_hot(indices, 3, 1, from_end)
        })
    };
    assert_eq!(hot(true), [0., 1., 0., 0., 0., 1., 0., 0., 0.]);
    assert_eq!(hot(false), [0., 1., 0., 0., 0., 0., 0., 0., 0.]);
    assert_eq!(values(&[1], |b, _| b.diagonal_mask(2, 3, 1)), [0., 1., 0., 0., 0., 1.]);
}

#[test]
fn equations_sum_products() {
    let square = |equation: &'static str| values(&[2, 2], |b, x| b.einsum(equation, &[x]));
    assert_eq!(square("ii->"), [3.]);
    assert_eq!(square("ii"), [3.]);
    assert_eq!(square("ii->i"), [0., 3.]);
    assert_eq!(square("ij->ji"), [0., 2., 1., 3.]);
    assert_eq!(square("...j->..."), [1., 5.]);
    let product = |equation: &'static str| values(&[2, 2], |b, x| b.einsum(equation, &[x, x]));
    assert_eq!(product("ij,jk"), [2., 3., 6., 11.]);
    assert_eq!(product(" ij , ij -> "), [14.]);
    assert_eq!(product("i...,i...->i..."), [0., 1., 4., 9.]);
    let broadcast = values(&[2, 2], |b, x| {
        let row = b.numbers(DType::F32, &[1, 2], vec![10., 100.]);
        b.einsum("...,...->...", &[x, row])
    });
    assert_eq!(broadcast, [0., 100., 20., 300.]);
    let mut builder = Builder::new("test");
    let x = builder.input("x", TensorType::new(DType::F32, [2, 3]));
    for equation in ["ii", "ij,jk", "ij->ijj", "ij->k", "i", "i$", ""] {
        assert!(builder.einsum(equation, &[x]).is_err(), "{equation}");
    }
}

#[test]
fn samples_beside_the_image_follow_the_rim() {
    let at = |mode, rim, align_corners, place: f64| {
        values(&[1, 1, 1, 4], |b, x| {
            let grid = b.numbers(DType::F32, &[1, 1, 1, 2], vec![place, 0.0]);
            b.grid_sample(x, grid, mode, rim, align_corners)
        })[0]
    };
    assert_eq!(at(SampleMode::Linear, SampleRim::Zeros, true, 0.0), 1.5);
    assert_eq!(at(SampleMode::Linear, SampleRim::Zeros, true, 1.0), 3.0);
    assert_eq!(at(SampleMode::Linear, SampleRim::Zeros, false, 1.0), 1.5);
    assert_eq!(at(SampleMode::Linear, SampleRim::Border, false, 2.0), 3.0);
    assert_eq!(at(SampleMode::Linear, SampleRim::Reflection, false, 1.5), 2.5);
    assert_eq!(at(SampleMode::Nearest, SampleRim::Zeros, true, 0.0), 2.0);
    assert_eq!(at(SampleMode::Nearest, SampleRim::Zeros, false, -0.5), 0.0);
    assert!((at(SampleMode::Cubic, SampleRim::Border, true, 0.0) - 1.5).abs() < 1e-6);
}

/// Means of a region with the corners (x1, y1, x2, y2) of an image, in two rows and one column of cells.
fn pooled(samples: usize, half_pixel: bool, maximum: bool, corners: [f64; 4]) -> Vec<f64> {
    values(&[2, 1, 4, 5], |b, x| {
        let corners = b.numbers(DType::F32, &[1, 4], corners.to_vec());
        let images = b.indices(&[1], &[1])?;
        let pool = RegionPool { cells: [2, 1], samples, scale: 0.5, half_pixel, maximum };
        b.pool_regions(x, corners, images, &pool)
    })
}

#[test]
fn regions_with_as_many_samples_as_elements_need_no_fixed_number() {
    // Cells of 2 rows and 3 columns, also such that reach beyond the image, and an empty one.
    for corners in [[0.0, 0.0, 6.0, 8.0], [-3.0, -4.0, 3.0, 4.0], [7.0, 5.0, 13.0, 13.0], [90.0, 0.0, 96.0, 8.0]] {
        for half_pixel in [false, true] {
            let adaptive = pooled(0, half_pixel, false, corners);
            let expected = direct(half_pixel, corners);
            let close = adaptive.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-4);
            assert!(close, "{corners:?}: {adaptive:?} {expected:?}");
        }
    }
    assert_eq!(pooled(0, true, false, [2.0, 2.0, 2.0, 2.0]), [0.0, 0.0]);
}

/// The same sample by sample.
fn direct(half_pixel: bool, corners: [f64; 4]) -> Vec<f64> {
    let offset = if half_pixel { 0.5 } else { 0.0 };
    let [left, top, right, bottom] = corners.map(|corner| corner * 0.5 - offset);
    let (height, width) = ((bottom - top) / 2.0, right - left);
    let (rows, columns) = (height.ceil() as usize, width.ceil() as usize);
    let hat = |position: f64, element: usize, extent: usize| {
        let clamped = position.clamp(0.0, extent as f64 - 1.0);
        let inside = (-1.0..=extent as f64).contains(&position);
        if inside { (1.0 - (clamped - element as f64).abs()).max(0.0) } else { 0.0 }
    };
    let mean = |cell: usize| {
        let mut sum = 0.0;
        for row in 0..rows {
            for column in 0..columns {
                let y = top + cell as f64 * height + (row as f64 + 0.5) * height / rows as f64;
                let x = left + (column as f64 + 0.5) * width / columns as f64;
                for place in 0..20 {
                    let value = (20 + place) as f64;
                    sum += value * hat(y, place / 5, 4) * hat(x, place % 5, 5);
                }
            }
        }
        sum / (rows * columns) as f64
    };
    vec![mean(0), mean(1)]
}

#[test]
fn the_largest_weighted_neighbour_of_all_samples_counts() {
    // One sample per cell, in column 1 and halfway between rows: two neighbours weigh a half each, the others nothing.
    assert_eq!(pooled(1, false, true, [0.0, 0.0, 4.0, 4.0]), [13.0, 15.5]);
    assert_eq!(pooled(1, false, false, [0.0, 0.0, 4.0, 4.0]), [23.5, 28.5]);
}
