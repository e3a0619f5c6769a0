//! `.npy` files as tensors. A complex array becomes a float array with a last axis of 2: (real, imaginary).

use mlc_ir::{DType, Tensor, TensorType};
use npyz::{NpyHeader, Order, TypeChar};
use std::io::Read;
use std::path::Path;

/// Reads an array. `bf16` says that 16-bit words are the upper halves of singles.
///
/// # Errors
/// A sentence that names the file and what is wrong with it.
pub fn read(path: &Path, bf16: bool) -> Result<Tensor, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&bytes, bf16).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(mut bytes: &[u8], bf16: bool) -> Result<Tensor, String> {
    let header = NpyHeader::from_reader(&mut bytes).map_err(|error| error.to_string())?;
    let columns_first = header.order() == Order::Fortran;
    let mut shape = Vec::new();
    for &extent in header.shape() {
        shape.push(usize::try_from(extent).map_err(|_| "the array is too large")?);
    }
    if columns_first {
        shape.reverse();
    }
    let npyz::DType::Plain(item) = header.dtype() else { return Err("the array has a structured type".into()) };
    let dtype = match (item.type_char(), item.size_field()) {
        (TypeChar::Complex, 8 | 16) => {
            shape.push(2);
            if item.size_field() == 8 { DType::F32 } else { DType::F64 }
        }
        (TypeChar::Uint, 2) if bf16 => DType::Bf16,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Bool, _) => DType::Bool,
        (kind, size) => return Err(format!("the array's type {}{size} isn't supported", kind.to_str())),
    };
    if item.endianness() == npyz::Endianness::Big {
        return Err("the array is big-endian".into());
    }
    let ty = TensorType::new(dtype, &shape);
    let mut data = Vec::new();
    bytes.read_to_end(&mut data).map_err(|error| error.to_string())?;
    if ty.checked_bytes() != Some(data.len()) {
        return Err(format!("{} bytes of data for {ty}", data.len()));
    }
    let tensor = Tensor::from_le_bytes(ty, &data);
    Ok(if columns_first { rows_first(tensor, header.shape().len()) } else { tensor })
}

/// Reverses the first `rank` axes.
fn rows_first(tensor: Tensor, rank: usize) -> Tensor {
    let shape = tensor.shape().to_vec();
    let inner: usize = shape[rank..].iter().product();
    let reversed: Vec<usize> = shape[..rank].iter().rev().chain(&shape[rank..]).copied().collect();
    let ty = TensorType::new(tensor.ty().dtype, &reversed);
    tensor.rearrange(ty, |place| {
        let (mut rest, mut source, mut stride) =
            (place / inner, place % inner, inner * shape[..rank].iter().product::<usize>());
        for axis in (0..rank).rev() {
            let extent = reversed[axis];
            stride /= extent;
            source += rest % extent * stride;
            rest /= extent;
        }
        source
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn complex_numbers_become_a_last_axis_of_two() {
        let tensor = parse(&file("<c8", "(1,)", &[0, 0, 128, 63, 0, 0, 0, 64]), false).unwrap();
        assert_eq!(tensor.ty(), &TensorType::new(DType::F32, [1, 2]));
        assert_eq!(tensor.to_floats(), [1.0, 2.0]);
    }

    #[test]
    fn columns_may_come_first() {
        let data: Vec<u8> = (0..6).collect();
        let mut bytes = file("|u1", "(2, 3)", &data);
        let place = bytes.windows(5).position(|word| word == b"False").unwrap();
        bytes[place..place + 5].copy_from_slice(b"True ");
        let tensor = parse(&bytes, false).unwrap();
        assert_eq!(tensor.shape(), [2, 3]);
        assert_eq!(tensor.to_integers(), [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn words_become_bf16_on_request() {
        let bytes = file("<u2", "(1,)", &[0x80, 0x3f]);
        assert_eq!(parse(&bytes, true).unwrap().to_floats(), [1.0]);
        assert_eq!(parse(&bytes, false).unwrap().to_integers(), [0x3f80]);
    }

    #[test]
    fn short_data_is_an_error() {
        assert!(parse(&file("<f4", "(2,)", &[0; 4]), false).unwrap_err().contains("4 bytes"));
    }
}
