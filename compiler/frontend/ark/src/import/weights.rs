//! The arrays that the user gives for a model's external buffers: which is for which, and whether it fits.

use crate::memory::External;
use crate::model::Model;
use mlc_import::{Bindings, Fault};
use mlc_ir::{Attribute, TensorType};

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
    let wanted = TensorType::new(external.window.data_type.dtype(), &external.window.shape[..]);
    let value = weight
        .fitted(&wanted, bindings.cast)
        .map_err(|fault| Fault { message: format!("the weight '{name}': {}", fault.message), ..fault })?;
    Ok(Some((name, value)))
}
