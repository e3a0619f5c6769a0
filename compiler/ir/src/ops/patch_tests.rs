//! What operators say of patches, against their evaluation.

use super::*;
use crate::operator::PatchRead;

/// Rows of a tensor.
fn cut(x: &Tensor, rows: &Range<usize>) -> Tensor {
    let mut starts = vec![0; x.shape().len()];
    starts[1] = rows.start;
    let mut sizes = x.shape().to_vec();
    sizes[1] = rows.len();
    moved(x, Slice { starts, sizes, steps: vec![1; x.shape().len()] }.into())
}

/// A tensor with two axes in each other's place.
fn transposed(x: &Tensor, one: usize, other: usize) -> Tensor {
    let mut permutation: Vec<usize> = (0..x.shape().len()).collect();
    permutation.swap(one, other);
    moved(x, Transpose { permutation }.into())
}

fn moved(x: &Tensor, op: Op) -> Tensor {
    let results = op.infer(&[x.ty().clone()]).unwrap();
    op.evaluate(&[x], &results).unwrap().remove(0)
}

/// Values whose sums are exact in any order.
fn exact(x: Tensor) -> Tensor {
    if !x.ty().dtype.is_float() {
        return x;
    }
    let eighths = x.to_floats().iter().map(|value| (value * 8.0).round() / 8.0).collect();
    Tensor::from_floats(x.ty().clone(), eighths)
}

#[test]
fn patches_are_what_the_whole_result_has() {
    let (mut compared, mut kinds) = (0, std::collections::BTreeSet::new());
    for &kind in OpKind::OWN {
        let mut generator = Generator::new(kind as u64 + 7);
        for _ in 0..400 {
            let (op, types) = kind.sample(&mut generator);
            let results = op.infer(&types).unwrap();
            let Some(&height) = results[0].shape.get(1).filter(|&&height| height > 0) else { continue };
            let start = generator.range(0, height - 1);
            let rows = start..generator.range(start + 1, height);
            let Some((inner, reads)) = op.patch(&types, rows.clone()) else { continue };
            let operands: Vec<Tensor> = types.iter().map(|ty| exact(generator.tensor(ty))).collect();
            let whole = op.evaluate(&operands.iter().collect::<Vec<_>>(), &results).unwrap();
            let part = |(operand, read): (&Tensor, &PatchRead)| match read {
                PatchRead::Rows(read) => transposed(&cut(operand, read), 1, 2),
                PatchRead::Taps => transposed(operand, 0, 1),
                PatchRead::Whole => operand.clone(),
            };
            let parts: Vec<Tensor> = operands.iter().zip(&reads).map(part).collect();
            let types: Vec<TensorType> = parts.iter().map(|part| part.ty().clone()).collect();
            let inner_results = inner.infer(&types).unwrap();
            let found = inner.evaluate(&parts.iter().collect::<Vec<_>>(), &inner_results).unwrap();
            let wanted = transposed(&cut(&whole[0], &rows), 1, 2);
            let bits = |tensor: &Tensor| -> Vec<u64> { tensor.to_floats().into_iter().map(f64::to_bits).collect() };
            assert_eq!(found[0].ty(), wanted.ty(), "{op:?} {rows:?}");
            assert_eq!(bits(&found[0]), bits(&wanted), "{op:?} {rows:?}");
            compared += 1;
            kinds.insert(kind.name());
        }
    }
    assert!(compared > 500, "{compared}");
    for kind in ["convolution", "max_pool", "average_pool", "resize", "concat", "kernel", "map"] {
        assert!(kinds.contains(kind), "no patches of {kind}");
    }
}
