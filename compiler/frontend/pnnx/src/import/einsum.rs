//! `torch.einsum`.

use super::arithmetic::promote;
use super::call::Call;
use super::item::Item;
use super::registry::{Handler::One, Table};
use mlc_import::Fault;
use mlc_ir::Value;

pub(super) const OPERATORS: Table = &[("torch.einsum", One(einsum))];

fn einsum(call: &mut Call<'_>) -> Result<Value, Fault> {
    let equation = call.operator.parameters.get("equation").map(crate::value::format_parameter);
    call.ignore(&["equation"]);
    let values: Vec<Item> = call.all_tensors()?.into_iter().map(Item::Tensor).collect();
    let references: Vec<&Item> = values.iter().collect();
    let values = promote(call.builder, &references)?;
    Ok(call.builder.einsum(&equation.unwrap_or_default(), &values)?)
}
