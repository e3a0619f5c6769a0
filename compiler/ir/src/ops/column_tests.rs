//! What operators say of their columns, against their evaluation.

use super::*;

/// Columns of a tensor.
fn cut(x: &Tensor, columns: &Range<usize>) -> Tensor {
    let mut starts = vec![0; x.shape().len()];
    starts[2] = columns.start;
    let mut sizes = x.shape().to_vec();
    sizes[2] = columns.len();
    let slice = Slice { starts, sizes, steps: vec![1; x.shape().len()] };
    let results = slice.infer(&[x.ty().clone()]).unwrap();
    slice.evaluate(&[x], &results).unwrap().remove(0)
}

#[test]
fn columns_are_what_the_whole_result_has() {
    let (mut compared, mut kinds) = (0, std::collections::BTreeSet::new());
    for &kind in OpKind::OWN {
        let mut generator = Generator::new(kind as u64 + 7);
        for _ in 0..400 {
            let (op, types) = kind.sample(&mut generator);
            let results = op.infer(&types).unwrap();
            let Some(&width) = results[0].shape.get(2).filter(|&&width| width > 0) else { continue };
            let start = generator.range(0, width - 1);
            let columns = start..generator.range(start + 1, width);
            let Some((inner, reads)) = op.of_columns(&types, columns.clone()) else { continue };
            let operands: Vec<Tensor> = types.iter().map(|ty| generator.tensor(ty)).collect();
            let whole = op.evaluate(&operands.iter().collect::<Vec<_>>(), &results).unwrap();
            let part = |(operand, read): (&Tensor, &Option<Range<usize>>)| match read {
                Some(read) => cut(operand, read),
                None => operand.clone(),
            };
            let parts: Vec<Tensor> = operands.iter().zip(&reads).map(part).collect();
            let types: Vec<TensorType> = parts.iter().map(|part| part.ty().clone()).collect();
            let inner_results = inner.infer(&types).unwrap();
            let found = inner.evaluate(&parts.iter().collect::<Vec<_>>(), &inner_results).unwrap();
            let bits = |tensor: &Tensor| -> Vec<u64> { tensor.to_floats().into_iter().map(f64::to_bits).collect() };
            assert_eq!(found[0].ty(), cut(&whole[0], &columns).ty(), "{op:?} {columns:?}");
            assert_eq!(bits(&found[0]), bits(&cut(&whole[0], &columns)), "{op:?} {columns:?}");
            compared += 1;
            kinds.insert(kind.name());
        }
    }
    assert!(compared > 500, "{compared}");
    for kind in ["convolution", "max_pool", "average_pool", "resize", "concat", "kernel", "map"] {
        assert!(kinds.contains(kind), "no columns of {kind}");
    }
}
