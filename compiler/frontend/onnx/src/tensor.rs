//! [`TensorProto`] to [`Attribute`]: all the ways in which a file can hold a tensor's values.

use super::external::{self, ExternalData};
use super::proto::{SparseTensorProto, TensorProto};
use bytes::Bytes;
use mlc_import::Fault;
use mlc_ir::{Attribute, Code, DType, Shape, Tensor, TensorType};

/// The element type of strings.
pub(super) const STRING: i32 = 8;

/// Element types by their number in the standard (`TensorProto.DataType`), with their names.
const ELEMENT_TYPES: [(i32, &str, Option<Storage>); 27] = [
    (0, "undefined", None),
    (1, "float", Some(Storage::Plain(DType::F32))),
    (2, "uint8", Some(Storage::Plain(DType::U8))),
    (3, "int8", Some(Storage::Plain(DType::I8))),
    (4, "uint16", Some(Storage::Plain(DType::U16))),
    (5, "int16", Some(Storage::Plain(DType::I16))),
    (6, "int32", Some(Storage::Plain(DType::I32))),
    (7, "int64", Some(Storage::Plain(DType::I64))),
    (STRING, "string", None),
    (9, "bool", Some(Storage::Plain(DType::Bool))),
    (10, "float16", Some(Storage::Plain(DType::F16))),
    (11, "double", Some(Storage::Plain(DType::F64))),
    (12, "uint32", Some(Storage::Plain(DType::U32))),
    (13, "uint64", Some(Storage::Plain(DType::U64))),
    (14, "complex64", None),
    (15, "complex128", None),
    (16, "bfloat16", Some(Storage::Plain(DType::Bf16))),
    (17, "float8e4m3fn", None),
    (18, "float8e4m3fnuz", None),
    (19, "float8e5m2", None),
    (20, "float8e5m2fnuz", None),
    (21, "uint4", Some(Storage::Packed { dtype: DType::U8, bits: 4 })),
    (22, "int4", Some(Storage::Packed { dtype: DType::I8, bits: 4 })),
    (23, "float4e2m1", None),
    (24, "float8e8m0", None),
    (25, "uint2", Some(Storage::Packed { dtype: DType::U8, bits: 2 })),
    (26, "int2", Some(Storage::Packed { dtype: DType::I8, bits: 2 })),
];

/// How a file stores elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// As the IR has them.
    Plain(DType),
    /// Several in a byte, the first in the lowest bits; the IR has a byte for each.
    Packed {
        /// The IR's type.
        dtype: DType,
        /// Bits of an element.
        bits: usize,
    },
}

fn element_type(number: i32) -> Result<Storage, Fault> {
    match ELEMENT_TYPES.iter().find(|(known, ..)| *known == number) {
        Some((_, _, Some(storage))) => Ok(*storage),
        Some((_, name, None)) => Err(Fault::variant(format!("the element type {name} isn't supported"))),
        None => Err(Fault::variant(format!("there is no element type {number}"))),
    }
}

/// The IR's data type of an element type's number. Types narrower than a byte become bytes.
///
/// # Errors
/// When the IR has no such type.
pub(super) fn dtype_of(number: i64) -> Result<DType, Fault> {
    let number = i32::try_from(number).unwrap_or(-1);
    Ok(match element_type(number)? {
        Storage::Plain(dtype) | Storage::Packed { dtype, .. } => dtype,
    })
}

/// The number of an element type's name, in capitals as the first versions of the standard write it.
pub(super) fn number_of(name: &str) -> Option<i64> {
    let found = ELEMENT_TYPES.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
    found.map(|&(number, ..)| i64::from(number))
}

/// The number of the element type that stores elements as the IR has them.
pub(super) fn number_of_dtype(dtype: DType) -> i32 {
    let found = ELEMENT_TYPES.iter().find(|(.., storage)| *storage == Some(Storage::Plain(dtype)));
    found.map_or(0, |&(number, ..)| number)
}

/// Number of bits of an element as the file stores it, and whether it is a packed integer type.
///
/// # Errors
/// When the IR has no such type.
pub(super) fn packed_bits(number: i64) -> Result<Option<usize>, Fault> {
    Ok(match element_type(i32::try_from(number).unwrap_or(-1))? {
        Storage::Plain(_) => None,
        Storage::Packed { bits, .. } => Some(bits),
    })
}

/// Checks extents.
///
/// # Errors
/// When one is negative, or the tensor wouldn't fit into memory.
pub(super) fn checked_type(dtype: DType, dims: &[i64]) -> Result<TensorType, Fault> {
    let shape: Option<Shape> = dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let out_of_range = || Fault::new(Code::NumberOutOfRange, format!("{dtype} of the shape {dims:?} can't exist"));
    let ty = TensorType::new(dtype, shape.ok_or_else(out_of_range)?);
    if ty.checked_bytes().is_none() {
        return Err(out_of_range());
    }
    Ok(ty)
}

/// The values of a tensor. Those that are bytes in the file, or in a file beside it, aren't copied.
///
/// # Errors
/// When the values don't fit the shape, are there twice, or the element type has no counterpart.
pub(super) fn to_attribute(proto: &TensorProto, external: &dyn ExternalData) -> Result<Attribute, Fault> {
    let storage = element_type(proto.data_type)?;
    let (Storage::Plain(dtype) | Storage::Packed { dtype, .. }) = storage;
    let ty = checked_type(dtype, &proto.dims)?;
    let typed = proto.float_data.len()
        + proto.int32_data.len()
        + proto.int64_data.len()
        + proto.double_data.len()
        + proto.uint64_data.len();
    let raw = match (proto.data_location, &proto.raw_data) {
        (0, raw) => raw.clone().filter(|raw| !raw.is_empty() || typed == 0),
        (1, None) if typed == 0 => Some(external::read(&proto.external_data, stored_bytes(storage, &ty), external)?),
        (1, _) => return Err(twice("in the file and beside it")),
        (other, _) => return Err(Fault::parameter(format!("data_location {other} isn't known"))),
    };
    match raw {
        Some(_) if typed > 0 => Err(twice("as bytes and as numbers")),
        Some(raw) => from_raw(storage, ty, raw),
        None => from_numbers(storage, ty, proto, typed),
    }
}

fn twice(how: &str) -> Fault {
    Fault::new(Code::DuplicateDefinition, format!("the tensor's values are there twice: {how}"))
}

fn wrong_size(ty: &TensorType, expected: usize, found: usize, unit: &str) -> Fault {
    Fault::new(Code::WeightSizeMismatch, format!("the tensor is {ty}, which takes {expected} {unit}; it has {found}"))
}

fn stored_bytes(storage: Storage, ty: &TensorType) -> usize {
    match storage {
        Storage::Plain(dtype) => ty.elements() * dtype.size(),
        Storage::Packed { bits, .. } => (ty.elements() * bits).div_ceil(8),
    }
}

fn from_raw(storage: Storage, ty: TensorType, raw: Bytes) -> Result<Attribute, Fault> {
    let expected = stored_bytes(storage, &ty);
    if raw.len() != expected {
        return Err(wrong_size(&ty, expected, raw.len(), "bytes"));
    }
    match storage {
        Storage::Packed { bits, .. } => unpacked(ty, &raw, bits),
        Storage::Plain(DType::Bool) if raw.iter().any(|&byte| byte > 1) => {
            let bytes: Vec<u8> = raw.iter().map(|&byte| u8::from(byte != 0)).collect();
            Ok(Attribute::new(ty, bytes)?)
        }
        Storage::Plain(_) => Ok(Attribute::new(ty, raw)?),
    }
}

fn unpacked(ty: TensorType, raw: &[u8], bits: usize) -> Result<Attribute, Fault> {
    let (per_byte, signed) = (8 / bits, ty.dtype.is_signed());
    let element = |index: usize| {
        let shifted = raw[index / per_byte] >> (index % per_byte * bits) << (8 - bits);
        if signed { (shifted as i8 >> (8 - bits)) as u8 } else { shifted >> (8 - bits) }
    };
    let bytes: Vec<u8> = (0..ty.elements()).map(element).collect();
    Ok(Attribute::new(ty, bytes)?)
}

/// Values of the typed fields. Which field holds a type is the standard's choice.
fn from_numbers(storage: Storage, ty: TensorType, proto: &TensorProto, typed: usize) -> Result<Attribute, Fault> {
    let expected = match storage {
        Storage::Plain(_) => ty.elements(),
        Storage::Packed { .. } => stored_bytes(storage, &ty),
    };
    let bytes: Vec<u8> = match storage {
        Storage::Packed { .. } => proto.int32_data.iter().map(|&value| value as u8).collect(),
        Storage::Plain(dtype) => match dtype {
            DType::F32 => proto.float_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            DType::F64 => proto.double_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            DType::I64 => proto.int64_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            DType::U64 => proto.uint64_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            DType::U32 => proto.uint64_data.iter().flat_map(|&value| (value as u32).to_le_bytes()).collect(),
            DType::I32 => proto.int32_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            DType::F16 | DType::Bf16 | DType::I16 | DType::U16 => {
                proto.int32_data.iter().flat_map(|&value| (value as u16).to_le_bytes()).collect()
            }
            DType::I8 | DType::U8 => proto.int32_data.iter().map(|&value| value as u8).collect(),
            DType::Bool => proto.int32_data.iter().map(|&value| u8::from(value != 0)).collect(),
        },
    };
    if bytes.len() != stored_bytes(storage, &ty) || typed != expected {
        return Err(wrong_size(&ty, expected, typed, "numbers"));
    }
    match storage {
        Storage::Packed { bits, .. } => unpacked(ty, &bytes, bits),
        Storage::Plain(_) => Ok(Attribute::new(ty, bytes)?),
    }
}

/// Most elements of a sparse tensor when it is written out.
const MOST_SPARSE_ELEMENTS: usize = 1 << 26;

/// A sparse tensor, written out: zeros but for the given values.
///
/// # Errors
/// When values, indices and shape don't fit together.
pub(super) fn sparse_to_attribute(proto: &SparseTensorProto, external: &dyn ExternalData) -> Result<Attribute, Fault> {
    let part = |part: &Option<TensorProto>, what: &str| match part {
        Some(tensor) => to_attribute(tensor, external),
        None => Err(Fault::new(Code::WeightMissing, format!("the sparse tensor has no {what}"))),
    };
    let (values, indices) = (part(&proto.values, "values")?, part(&proto.indices, "indices")?);
    let ty = checked_type(values.ty().dtype, &proto.dims)?;
    let unfit = || Fault::new(Code::WeightSizeMismatch, "indices, values and shape of the sparse tensor don't fit");
    let (count, size) = (values.ty().elements(), ty.dtype.size());
    let rank = ty.rank();
    if ty.elements() > MOST_SPARSE_ELEMENTS || indices.ty().dtype != DType::I64 {
        return Err(unfit());
    }
    let places: Tensor = indices.to_tensor();
    let places: Vec<i64> = places.to_integers();
    let flat: Vec<Option<usize>> = match &indices.ty().shape[..] {
        [rows] if *rows == count => places.iter().map(|&place| usize::try_from(place).ok()).collect(),
        [rows, columns] if *rows == count && *columns == rank && rank > 0 => places
            .chunks_exact(rank)
            .map(|place| {
                let axes = place.iter().zip(&ty.shape);
                axes.into_iter().try_fold(0usize, |flat, (&index, &extent)| {
                    let index = usize::try_from(index).ok().filter(|&index| index < extent)?;
                    Some(flat * extent + index)
                })
            })
            .collect(),
        _ => return Err(unfit()),
    };
    let mut bytes = vec![0; ty.elements() * size];
    for (value, place) in values.bytes().chunks_exact(size).zip(flat) {
        let place = place.filter(|&place| place < ty.elements()).ok_or_else(unfit)?;
        bytes[place * size..][..size].copy_from_slice(value);
    }
    Ok(Attribute::new(ty, bytes)?)
}

#[cfg(test)]
#[path = "tensor_tests.rs"]
mod tests;
