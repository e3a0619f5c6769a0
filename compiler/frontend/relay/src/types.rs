//! Data types and their names in Relay text and in arrays of parameters.

use bytes::Bytes;
use mlc_import::Fault;
use mlc_ir::{Attribute, DType, TensorType};
use mlc_runtime::params::{Array, ElementType};

/// How an array of parameters names a data type.
pub(super) fn element_type(dtype: DType) -> ElementType {
    let (code, bits) = dtype.dlpack();
    ElementType::new(code, bits)
}

/// A constant of an array; a slice of the bytes that the array borrows is shared.
pub(super) fn constant(array: &Array<'_>, owner: &Bytes) -> Result<Attribute, Fault> {
    let element = array.element;
    let dtype = DType::ALL.into_iter().find(|&dtype| element_type(dtype) == element);
    let dtype = dtype.ok_or_else(|| {
        let ElementType { code, bits, lanes } = element;
        Fault::variant(format!("arrays of the data type (code {code}, {bits} bits, {lanes} lanes) aren't supported"))
    })?;
    let ty = TensorType::new(dtype, &array.shape);
    if ty.checked_bytes().is_none() {
        return Err(Fault::operands(format!("an array {ty} is too large")));
    }
    let data: &[u8] = &array.data;
    let range = owner.as_ptr_range();
    let shared = !data.is_empty() && range.contains(&data.as_ptr());
    let bytes = if shared { owner.slice_ref(data) } else { Bytes::copy_from_slice(data) };
    if dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
        return Err(Fault::operands("an array of bool holds other bytes than 0 and 1"));
    }
    Ok(Attribute::new(ty, bytes)?)
}
