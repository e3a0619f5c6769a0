//! Operators that print: firmware has nothing to print to, so that they vanish.

use super::call::{Call, Table};
use super::signature::Signature;
use super::signature::Type::Text;
use mlc_import::Handler::Many;
use mlc_import::{Fault, Operand};

pub(super) const OPERATORS: Table = &[
    (Signature::new("fprint", &["src"], &[], &[("msg", Text), ("file", Text)]), Many(vanish)),
    (Signature::new("print", &["src"], &[], &[("msg", Text)]), Many(vanish)),
];

fn vanish(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    call.use_all_inputs();
    call.ignore(&["msg", "file"]);
    Ok(Vec::new())
}
