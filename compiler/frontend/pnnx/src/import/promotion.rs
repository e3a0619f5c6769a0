//! The data type that operands of several types are computed with, by PyTorch's rules: a number, or a tensor of rank 0, changes
//! the data type of a tensor only when it is of a higher kind (bool, integer, float).

use super::item::Item;
use mlc_import::Fault;
use mlc_import::builder::{Builder, promoted};
use mlc_ir::{DType, Literal, Value};

/// Kind of a data type in the order in which kinds win.
fn kind(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        _ if dtype.is_float() => 2,
        _ => 1,
    }
}

/// The data type that PyTorch computes with for these operands. `None` when one is neither a tensor nor a number.
pub(super) fn common_dtype(builder: &Builder, items: &[&Item]) -> Option<DType> {
    // Tensors with axes come first, then tensors of rank 0, then plain numbers.
    let mut levels: [Option<DType>; 3] = [None; 3];
    for item in items {
        let (level, dtype) = match item {
            Item::Tensor(value) => (usize::from(builder.rank(*value) == 0), builder.dtype(*value)),
            Item::Float(_) => (2, DType::F32),
            Item::Int(_) => (2, DType::I64),
            Item::Bool(_) => (2, DType::Bool),
            _ => return None,
        };
        levels[level] = Some(levels[level].map_or(dtype, |other| promoted(other, dtype)));
    }
    levels.into_iter().flatten().reduce(|high, low| if kind(low) > kind(high) { low } else { high })
}

/// An operand as a tensor of the data type that the computation has.
pub(super) fn operand(builder: &mut Builder, item: &Item, dtype: DType) -> Result<Value, Fault> {
    let literal = match item {
        Item::Tensor(value) => return Ok(builder.cast(*value, dtype)?),
        Item::Int(value) if dtype.is_float() => Literal::float(dtype, *value as f64),
        Item::Int(value) => Literal::integer(dtype, *value),
        Item::Float(value) => Literal::of(dtype, *value),
        Item::Bool(value) => Literal::of(dtype, f64::from(u8::from(*value))),
        Item::Complex(..) => return Err(complex_refused()),
        other => return Err(Fault::operands(format!("{} can't be computed with", other.description()))),
    };
    Ok(builder.literal(literal))
}

/// Why complex numbers are refused.
pub(super) fn complex_refused() -> Fault {
    Fault::variant("complex numbers aren't supported here")
        .with_help("split them into real and imaginary parts in the source model")
}

pub(super) fn common(builder: &Builder, items: &[&Item]) -> Result<DType, Fault> {
    common_dtype(builder, items).ok_or_else(|| match items.iter().find(|item| matches!(item, Item::Complex(..))) {
        Some(_) => complex_refused(),
        None => {
            let list: Vec<String> = items.iter().map(|item| item.description()).collect();
            Fault::operands(format!("can't compute with {}", list.join(" and ")))
        }
    })
}

/// Tensors of one data type, as PyTorch promotes them.
pub(super) fn promote(builder: &mut Builder, items: &[&Item]) -> Result<Vec<Value>, Fault> {
    let dtype = common(builder, items)?;
    items.iter().map(|item| operand(builder, item, dtype)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::TensorType;

    fn tensor(builder: &mut Builder, dtype: DType, shape: &[usize]) -> Item {
        Item::Tensor(builder.input("x", TensorType::new(dtype, shape)))
    }

    #[test]
    fn numbers_and_tensors_of_rank_0_count_only_when_of_a_higher_kind() {
        let mut b = Builder::new("test");
        let half = tensor(&mut b, DType::F16, &[2]);
        let long = tensor(&mut b, DType::I64, &[2]);
        let double_scalar = tensor(&mut b, DType::F64, &[]);
        let byte = tensor(&mut b, DType::U8, &[3, 1]);
        let common = |items: &[&Item]| common_dtype(&b, items);
        assert_eq!(common(&[&half, &Item::Float(0.1)]), Some(DType::F16));
        assert_eq!(common(&[&half, &double_scalar]), Some(DType::F16));
        assert_eq!(common(&[&long, &Item::Float(0.5)]), Some(DType::F32));
        assert_eq!(common(&[&long, &double_scalar]), Some(DType::F64));
        assert_eq!(common(&[&byte, &Item::Int(1000)]), Some(DType::U8));
        assert_eq!(common(&[&byte, &long]), Some(DType::I64));
        assert_eq!(common(&[&Item::Bool(true), &Item::Int(1)]), Some(DType::I64));
        assert_eq!(common(&[&Item::None]), None);
    }
}
