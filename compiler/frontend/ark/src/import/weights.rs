//! The arrays that the user gives for a model's external buffers: which is for which, and whether it fits.

use super::place::mismatch;
use crate::memory::External;
use crate::model::{DataType, Model};
use mlc_import::{Bindings, Fault, Weight};
use mlc_ir::ops::Cast;
use mlc_ir::{Attribute, Code, DType, Op, TensorType, folding};

/// The names that an external buffer is found by, the best first.
pub fn names_of(model: &Model, external: &External) -> Vec<String> {
    let mut names = vec![external.name.clone(), external.number_name(model), external.buffer_name(model)];
    names.dedup();
    names
}

/// The array for an external buffer, under the name that it is given by; `None` when it is to be an input.
///
/// # Errors
/// When the array doesn't fit.
pub fn weight_of<'b>(
    model: &Model,
    external: &External,
    bindings: &'b Bindings,
) -> Result<Option<(&'b str, Attribute)>, Fault> {
    let names = names_of(model, external);
    if names.iter().any(|name| bindings.inputs.contains(name)) {
        return Ok(None);
    }
    let Some((name, weight)) = names.iter().find_map(|name| bindings.weights.get_key_value(name)) else {
        return Ok(None);
    };
    let value = fitted(external, weight, bindings.cast)
        .map_err(|fault| Fault { message: format!("the weight '{name}': {}", fault.message), ..fault })?;
    Ok(Some((name, value)))
}

/// An array as the window of an external buffer wants it.
fn fitted(external: &External, weight: &Weight, cast: bool) -> Result<Attribute, Fault> {
    let window = &external.window;
    let wanted = TensorType::new(window.data_type.dtype(), &window.shape[..]);
    let given = weight.value.ty();
    let without_ones = |shape: &[usize]| shape.iter().copied().skip_while(|&extent| extent == 1).collect::<Vec<_>>();
    let same_shape = !weight.has_shape || without_ones(&given.shape) == without_ones(&wanted.shape);
    if !same_shape || given.elements() != wanted.elements() {
        let message = format!("it is {given}, the model wants {wanted}");
        return Err(Fault::new(Code::ShapeMismatch, message));
    }
    let value = weight.value.reshape(&wanted.shape)?;
    let is_bits = window.data_type == DataType::Bf16 && given.dtype == DType::U16;
    if is_bits {
        return Ok(Attribute::new(wanted, value.bytes().clone())?);
    }
    if given.dtype == wanted.dtype {
        return Ok(value);
    }
    if !cast {
        return Err(mismatch(format!("it is {given}, the model wants {wanted}"))
            .with_help("--cast-weights converts the numbers of weights to the model's data types"));
    }
    let mut converted = folding::compute(&Op::from(Cast { dtype: wanted.dtype }), &[&value])?;
    converted.pop().ok_or_else(|| Fault::operands("the conversion gives no array"))
}
