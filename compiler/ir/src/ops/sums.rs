//! Types of sums of products.

use crate::generator::Generator;
use crate::operator::OperatorError;
use crate::types::{DType, TensorType};

/// The type of sums of products of two operands: that of both, or, of integers of 8 or 16 bits, the wide one that is asked for; or `f32`,
/// if that is asked for, of singles and halves. Such a sum of integers is that of the exact products, modulo its type.
///
/// # Errors
/// When such sums of the operands' elements aren't known.
pub fn sums_dtype(sums: Option<DType>, x: &TensorType, weights: &TensorType) -> Result<DType, OperatorError> {
    let is_half = |ty: &TensorType| matches!(ty.dtype, DType::F16 | DType::Bf16);
    let is_narrow = |ty: &TensorType| ty.dtype.is_integer() && ty.dtype.size() <= 2;
    match sums {
        None if x.dtype == weights.dtype && x.dtype != DType::Bool => Ok(x.dtype),
        None => Err(OperatorError::types(format!("{x} and {weights} aren't numbers of one type"))),
        Some(sums @ (DType::I32 | DType::I64)) if is_narrow(x) && is_narrow(weights) => Ok(sums),
        Some(DType::F32) if x.dtype == DType::F32 && is_half(weights) => Ok(DType::F32),
        Some(sums) => Err(OperatorError::types(format!(
            "no sums of {sums} of products of {x} by {weights}: integers of 8 or 16 bits are added up in i32 or i64, singles times halves in f32"
        ))),
    }
}

/// Types of two operands and of their sums, as [`sums_dtype`] takes them.
pub(super) fn sample(generator: &mut Generator) -> (DType, DType, Option<DType>) {
    if !generator.one_in(4) {
        let dtype = generator.number_dtype();
        return (dtype, dtype, None);
    }
    let narrow = [DType::I8, DType::I8, DType::U8, DType::I16, DType::U16];
    let (x, weights) = (generator.choose(&narrow), generator.choose(&narrow));
    (x, weights, Some(generator.choose(&[DType::I32, DType::I32, DType::I64])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_narrow_integers_are_wide() {
        let ty = |dtype| TensorType::new(dtype, [2]);
        let of = |sums, x, weights| sums_dtype(sums, &ty(x), &ty(weights));
        assert_eq!(of(None, DType::F32, DType::F32), Ok(DType::F32));
        assert_eq!(of(Some(DType::I32), DType::I8, DType::I16), Ok(DType::I32));
        assert_eq!(of(Some(DType::I64), DType::U8, DType::U8), Ok(DType::I64));
        assert_eq!(of(Some(DType::F32), DType::F32, DType::Bf16), Ok(DType::F32));
        for (sums, x, weights) in [
            (None, DType::I8, DType::I16),
            (None, DType::Bool, DType::Bool),
            (Some(DType::I16), DType::I8, DType::I8),
            (Some(DType::I32), DType::I32, DType::I8),
            (Some(DType::I32), DType::F16, DType::F16),
        ] {
            assert!(of(sums, x, weights).is_err(), "{sums:?} of {x} and {weights}");
        }
    }
}
