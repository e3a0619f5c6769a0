use crate::model::{BufferIndex, DataType, Extents, Tensor};
use std::collections::BTreeSet;

fn window(data_type: DataType, shape: &[usize], storage: &[usize], offsets: &[usize]) -> Tensor {
    let extents = Extents::from_slice;
    Tensor {
        id: 0,
        data_type,
        shape: extents(shape),
        storage: extents(storage),
        offsets: extents(offsets),
        padded_shape: extents(shape),
        buffer: BufferIndex(0),
    }
}

/// The bytes of a window, by the format's formula for single elements.
fn bytes(tensor: &Tensor) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for mut element in 0..tensor.elements() {
        let mut address = 0;
        let mut step = 1;
        for axis in (0..tensor.rank()).rev() {
            address += (tensor.offsets[axis] + element % tensor.shape[axis]) * step;
            element /= tensor.shape[axis];
            step *= tensor.storage[axis];
        }
        found.extend(address * tensor.data_type.size()..(address + 1) * tensor.data_type.size());
    }
    found
}

fn windows() -> Vec<Tensor> {
    use DataType::{Byte, Fp16, Fp32};
    vec![
        window(Fp32, &[12], &[12], &[0]),
        window(Fp32, &[1], &[12], &[7]),
        window(Fp32, &[2, 3], &[3, 4], &[1, 1]),
        window(Fp32, &[3, 1], &[3, 4], &[0, 0]),
        window(Fp32, &[3, 1], &[3, 4], &[0, 3]),
        window(Fp32, &[1, 3], &[3, 4], &[2, 1]),
        window(Fp32, &[3, 4], &[3, 4], &[0, 0]),
        window(Fp16, &[3, 3], &[3, 8], &[0, 5]),
        window(Fp16, &[2, 2, 1, 2], &[2, 3, 2, 2], &[0, 1, 1, 0]),
        window(Fp16, &[2, 2, 2, 1], &[2, 3, 2, 2], &[0, 0, 0, 1]),
        window(Byte, &[6, 1], &[6, 8], &[0, 2]),
        window(Byte, &[5], &[48], &[43]),
        window(Byte, &[2, 3, 2], &[2, 6, 4], &[0, 3, 2]),
        window(Byte, &[3, 4], &[3, 16], &[0, 4]),
        window(Fp16, &[1, 2, 2], &[3, 2, 4], &[1, 0, 2]),
        window(Fp16, &[4, 2], &[6, 4], &[2, 0]),
        window(Fp16, &[4, 1, 2], &[6, 2, 2], &[2, 1, 0]),
        window(Fp16, &[3, 2], &[6, 4], &[1, 2]),
    ]
}

#[test]
fn runs_are_the_bytes_of_the_elements() {
    for tensor in windows() {
        let wanted = bytes(&tensor);
        let runs: Vec<_> = tensor.runs().collect();
        assert_eq!(runs.len(), tensor.run_count(), "{tensor:?}");
        assert!(
            runs.windows(2).all(|pair| pair[0].end < pair[1].start),
            "not as long as possible: {tensor:?} {runs:?}"
        );
        assert_eq!(runs.into_iter().flatten().collect::<BTreeSet<_>>(), wanted, "{tensor:?}");
        assert_eq!(tensor.first_byte(), *wanted.first().unwrap(), "{tensor:?}");
        assert_eq!(tensor.interval(), tensor.first_byte()..wanted.last().unwrap() + 1, "{tensor:?}");
        assert_eq!(tensor.is_dense(), wanted.len() == tensor.interval().len(), "{tensor:?}");
        assert_eq!(tensor.bytes(), wanted.len(), "{tensor:?}");
    }
}

#[test]
fn windows_overlap_that_share_a_byte() {
    for a in windows() {
        for b in windows() {
            let shared = bytes(&a).intersection(&bytes(&b)).count();
            assert_eq!(a.overlaps(&b), shared > 0, "{a:?} {b:?}");
            let by_runs = a.runs().any(|run| b.first_from(run.start).is_some_and(|byte| byte < run.end));
            assert_eq!(by_runs, shared > 0, "{a:?} {b:?}");
            if a.same_array(&b) {
                let elements: usize = a.common_box(&b).map_or(0, |(_, extents)| extents.iter().product());
                assert_eq!(elements * a.data_type.size(), shared, "{a:?} {b:?}");
            }
        }
    }
    let other = Tensor { buffer: BufferIndex(1), ..window(DataType::Fp32, &[12], &[12], &[0]) };
    assert!(windows().iter().all(|tensor| !tensor.overlaps(&other)));
}

#[test]
fn halves_of_many_rows_are_told_apart() {
    let heads = |first: usize| window(DataType::Fp16, &[100_000, 2, 8], &[100_000, 4, 8], &[0, first, 0]);
    let columns = |first: usize| window(DataType::Fp32, &[50_000, 2, 8], &[50_000, 2, 16], &[0, 0, first]);
    assert!(!heads(0).overlaps(&columns(8)));
    assert!(!heads(2).overlaps(&columns(0)));
    assert!(heads(1).overlaps(&columns(8)) && heads(0).overlaps(&columns(0)));
}
