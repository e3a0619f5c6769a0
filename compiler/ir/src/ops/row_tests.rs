//! What operators say of their rows, against their evaluation.

use super::*;
use crate::operator::RowWindow;
use crate::tensor::Values;

/// Rows of a tensor from number `first` on, some of which may be its border's.
fn rows(x: &Tensor, first: i64, count: usize, border: i64) -> Tensor {
    let mut shape = x.shape().to_vec();
    let (height, row) = (shape[1] as i64, shape[2..].iter().product::<usize>());
    shape[1] = count;
    let place = |row_number: i64| {
        (0..height).contains(&row_number).then(|| row_number as usize * row..(row_number as usize + 1) * row)
    };
    let numbers = first..first + count as i64;
    let ty = TensorType::new(x.ty().dtype, shape);
    match x.values() {
        Values::Float(values) => {
            let rows = numbers.map(|number| match place(number) {
                Some(place) => values[place].to_vec(),
                None => vec![border as f64; row],
            });
            Tensor::from_floats(ty, rows.flatten().collect())
        }
        Values::Integer(values) => {
            let rows = numbers.map(|number| match place(number) {
                Some(place) => values[place].to_vec(),
                None => vec![border; row],
            });
            Tensor::from_integers(ty, rows.flatten().collect())
        }
    }
}

#[test]
fn rows_are_what_the_whole_result_has() {
    let mut compared = 0;
    for &kind in OpKind::OWN {
        let mut generator = Generator::new(kind as u64 + 5);
        for _ in 0..300 {
            let (op, types) = kind.sample(&mut generator);
            let Some((inner, reads)) = op.by_rows(&types) else { continue };
            let results = op.infer(&types).unwrap();
            let operands: Vec<Tensor> = types.iter().map(|ty| generator.tensor(ty)).collect();
            let whole = op.evaluate(&operands.iter().collect::<Vec<_>>(), &results).unwrap();
            if reads.iter().all(Option::is_none) {
                continue;
            }
            let repeats = reads.iter().flatten().any(|window| window.repeat > 1);
            let count = if repeats { 1 } else { generator.range(1, whole[0].shape()[1]) };
            let first = generator.range(0, whole[0].shape()[1] - count);
            let read = |(operand, window): (&Tensor, &Option<RowWindow>)| match window {
                Some(window) => {
                    let first = (first / window.repeat * window.stride) as i64 - window.pads.0 as i64;
                    rows(operand, first, window.reach(count), window.border)
                }
                None => operand.clone(),
            };
            let parts: Vec<Tensor> = operands.iter().zip(&reads).map(read).collect();
            let types: Vec<TensorType> = parts.iter().map(|part| part.ty().clone()).collect();
            let inner_results = inner.infer(&types).unwrap();
            let found = inner.evaluate(&parts.iter().collect::<Vec<_>>(), &inner_results).unwrap();
            let bits = |tensor: &Tensor| -> Vec<u64> { tensor.to_floats().into_iter().map(f64::to_bits).collect() };
            assert_eq!(bits(&found[0]), bits(&rows(&whole[0], first as i64, count, 0)), "{op:?}");
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn rows_that_only_repeat_are_read_one_by_one() {
    let x = |rows| TensorType::new(crate::DType::F32, [1, rows, 3, 2]);
    let resize = |rows: usize, ratio, mode, coordinates| Resize {
        axes: vec![1, 2],
        sizes: vec![rows, 6],
        ratios: vec![crate::types::Float(ratio), crate::types::Float(0.5)],
        mode,
        coordinates,
    };
    let reads = |op: Resize| Some(op.by_rows(&[x(4)])?.1[0]?.repeat);
    use ResizeCoordinates::{AlignCorners, Asymmetric, HalfPixel};
    for coordinates in [Asymmetric, HalfPixel] {
        assert_eq!(reads(resize(12, 1.0 / 3.0, ResizeMode::Nearest, coordinates)), Some(3));
        assert_eq!(reads(resize(8, 0.5, ResizeMode::Nearest, coordinates)), Some(2));
        assert_eq!(reads(resize(8, 0.5, ResizeMode::Linear, coordinates)), None);
        assert_eq!(reads(resize(10, 0.4, ResizeMode::Nearest, coordinates)), None);
        assert_eq!(reads(resize(2, 2.0, ResizeMode::Nearest, coordinates)), None);
    }
    assert_eq!(reads(resize(8, 0.5, ResizeMode::Nearest, AlignCorners)), None);
    let op: Op = resize(8, 0.5, ResizeMode::Nearest, Asymmetric).into();
    let (inner, _) = op.by_rows(&[x(4)]).unwrap();
    let value = Generator::new(3).tensor(&x(4));
    let whole = op.evaluate(&[&value], &op.infer(&[x(4)]).unwrap()).unwrap();
    for row in 0..8 {
        let part = rows(&value, row / 2, 1, 0);
        let found = inner.evaluate(&[&part], &inner.infer(&[x(1)]).unwrap()).unwrap();
        assert_eq!(found[0].to_floats(), rows(&whole[0], row, 1, 0).to_floats());
    }
}

#[test]
fn shares_of_rows_add_up_to_the_result() {
    let shape = |rows: usize| TensorType::new(crate::DType::F32, [1, rows, 5, 3]);
    let window = |rows: usize| TensorType::new(crate::DType::F32, [rows, 5, 3, 2]);
    let pool = AveragePool {
        window: vec![6, 5],
        strides: vec![6, 5],
        dilations: vec![1, 1],
        pads: vec![(0, 0); 2],
        counted_pads: vec![(0, 0); 2],
    };
    let dense = Convolution {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: vec![(0, 0); 2],
        groups: 1,
        border: 0,
        sums: None,
    };
    let reduce = |function| Reduce { function, axes: vec![1, 2], keep_axes: true };
    let cases: [(Op, bool); 4] = [
        (pool.into(), false),
        (dense.into(), true),
        (reduce(ReduceFunction::Sum).into(), false),
        (reduce(ReduceFunction::Mean).into(), false),
    ];
    for (op, has_weights) in cases {
        let mut generator = Generator::new(3);
        let x = generator.tensor(&shape(6));
        // All rows of the weights are alike.
        let row = generator.tensor(&window(1)).to_floats();
        let weights = |rows: usize| Tensor::from_floats(window(rows), row.repeat(rows));
        let operands = |x: Tensor| match has_weights {
            true => vec![weights(x.shape()[1]), x].into_iter().rev().collect(),
            false => vec![x],
        };
        let value = |op: &Op, operands: &[Tensor]| {
            let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
            let results = op.infer(&types).unwrap();
            op.evaluate(&operands.iter().collect::<Vec<_>>(), &results).unwrap()[0].to_floats()
        };
        let whole: Vec<Tensor> = operands(x.clone());
        let types: Vec<TensorType> = whole.iter().map(|operand| operand.ty().clone()).collect();
        let (share, factor) = op.share_of_rows(&types, 2).unwrap();
        assert!(op.share_of_rows(&types, 4).is_none());
        let shares: Vec<Vec<f64>> = (0..3).map(|part| value(&share, &operands(rows(&x, part * 2, 2, 0)))).collect();
        for (place, golden) in value(&op, &whole).into_iter().enumerate() {
            let sum: f64 = shares.iter().map(|share| share[place]).sum();
            assert!((sum * factor - golden).abs() < 1e-4, "{op:?}: {} instead of {golden}", sum * factor);
        }
    }
}
