use super::*;
use crate::proto::TensorProto;

fn proto(data_type: i32, dims: &[i64]) -> TensorProto {
    TensorProto { data_type, dims: dims.to_vec(), ..TensorProto::default() }
}

fn floats(proto: &TensorProto) -> Result<Vec<f64>, Fault> {
    Ok(to_attribute(proto, &())?.to_tensor().to_floats())
}

#[test]
fn every_storage_form_is_read() {
    let raw = |data_type, dims: &[i64], bytes: &[u8]| TensorProto {
        raw_data: Some(Bytes::copy_from_slice(bytes)),
        ..proto(data_type, dims)
    };
    let ints = |data_type, values: &[i32]| TensorProto {
        int32_data: values.to_vec(),
        ..proto(data_type, &[values.len() as i64])
    };
    for (tensor, expected) in [
        (raw(1, &[1], &1.5f32.to_le_bytes()), vec![1.5]),
        (TensorProto { float_data: vec![1.5, -2.0], ..proto(1, &[2]) }, vec![1.5, -2.0]),
        (TensorProto { double_data: vec![0.1], ..proto(11, &[]) }, vec![0.1]),
        (TensorProto { int64_data: vec![-3], ..proto(7, &[1]) }, vec![-3.0]),
        (TensorProto { uint64_data: vec![4_000_000_000], ..proto(12, &[1]) }, vec![4e9]),
        (TensorProto { uint64_data: vec![5], ..proto(13, &[1]) }, vec![5.0]),
        (ints(10, &[0x3c00, 0xc000]), vec![1.0, -2.0]),
        (ints(16, &[0x3fc0]), vec![1.5]),
        (ints(3, &[-7]), vec![-7.0]),
        (ints(2, &[200]), vec![200.0]),
        (ints(9, &[0, 5]), vec![0.0, 1.0]),
        (raw(9, &[2], &[0, 7]), vec![0.0, 1.0]),
        (raw(21, &[3], &[0x2f, 0x01]), vec![15.0, 2.0, 1.0]),
        (raw(22, &[3], &[0x2f, 0x08]), vec![-1.0, 2.0, -8.0]),
        (TensorProto { int32_data: vec![0x2f, 0x08], ..proto(22, &[3]) }, vec![-1.0, 2.0, -8.0]),
        (raw(25, &[5], &[0b11_10_01_00, 0b10]), vec![0.0, 1.0, 2.0, 3.0, 2.0]),
        (raw(26, &[4], &[0b11_10_01_00]), vec![0.0, 1.0, -2.0, -1.0]),
        (raw(1, &[0, 3], &[]), vec![]),
        (proto(1, &[2, 0]), vec![]),
    ] {
        assert_eq!(floats(&tensor).unwrap(), expected, "{tensor:?}");
    }
}

#[test]
fn damaged_tensors_are_refused() {
    let both = TensorProto { float_data: vec![1.0], raw_data: Some(Bytes::from(vec![0; 4])), ..proto(1, &[1]) };
    let short = TensorProto { raw_data: Some(Bytes::from(vec![0; 3])), ..proto(1, &[1]) };
    let other_field = TensorProto { double_data: vec![1.0], ..proto(1, &[1]) };
    let extra = TensorProto { double_data: vec![1.0], float_data: vec![1.0], ..proto(1, &[1]) };
    for (tensor, message) in [
        (both, "twice"),
        (short, "takes 4 bytes; it has 3"),
        (other_field, "takes 1 numbers"),
        (extra, "takes 1 numbers; it has 2"),
        (proto(1, &[-1]), "can't exist"),
        (proto(1, &[1 << 40, 1 << 40]), "can't exist"),
        (proto(1, &[4]), "takes 4 numbers; it has 0"),
        (proto(8, &[1]), "string isn't supported"),
        (proto(99, &[1]), "no element type 99"),
        (TensorProto { data_location: 1, ..proto(1, &[1]) }, "doesn't name a file"),
        (TensorProto { data_location: 2, ..proto(1, &[1]) }, "data_location 2"),
    ] {
        let fault = floats(&tensor).unwrap_err();
        assert!(fault.message.contains(message), "{tensor:?}: {}", fault.message);
    }
}

#[test]
fn sparse_tensors_are_written_out() {
    let sparse = |indices: TensorProto| SparseTensorProto {
        values: Some(TensorProto { float_data: vec![1.0, 2.0], ..proto(1, &[2]) }),
        indices: Some(indices),
        dims: vec![2, 3],
    };
    let flat = TensorProto { int64_data: vec![1, 5], ..proto(7, &[2]) };
    let pairs = TensorProto { int64_data: vec![0, 1, 1, 2], ..proto(7, &[2, 2]) };
    for indices in [flat, pairs] {
        let tensor = sparse_to_attribute(&sparse(indices), &()).unwrap().to_tensor();
        assert_eq!(tensor.to_floats(), [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
    }
    for places in [vec![1, 6], vec![-1, 0]] {
        let indices = TensorProto { int64_data: places, ..proto(7, &[2]) };
        assert!(sparse_to_attribute(&sparse(indices), &()).is_err());
    }
}
