//! `torch.einsum`.

use super::call::{Call, Operands, Table};
use super::item::Item;
use super::promotion::promote;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;

pub(super) const OPERATORS: Table = &[("torch.einsum", One(einsum))];

fn einsum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let equation = call.site.operator.parameters.get("equation").map(crate::value::format_parameter);
    call.ignore(&["equation"]);
    let values: Vec<Item> = call.all_tensors()?.into_iter().map(Item::Tensor).collect();
    let references: Vec<&Item> = values.iter().collect();
    let values = promote(call.builder, &references)?;
    Ok(call.builder.einsum(&equation.unwrap_or_default(), &values)?)
}
