//! Einstein sums.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;

pub(super) const OPERATORS: Table = &[("Einsum", 12, One(einsum))];

fn einsum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let equation = call.word("equation")?;
    let equation = call.required("equation", equation)?;
    let operands = call.all_inputs()?;
    Ok(call.builder.einsum(equation, &operands)?)
}
