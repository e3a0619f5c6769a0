//! What functions around calls, and the called functions, take.

use mlc_ir::ops::{Extern, Instance};

/// Parameters of a function around a call: operands, results, scratch memory.
pub(super) fn parameters(op: &Extern) -> Vec<String> {
    pointers(op).into_iter().map(|(ty, name)| format!("{ty}{name}")).collect()
}

/// The names of the parameters.
pub(super) fn names(op: &Extern) -> Vec<String> {
    pointers(op).into_iter().map(|(_, name)| name).collect()
}

/// Types and names of the parameters.
pub(super) fn pointers(op: &Extern) -> Vec<(&'static str, String)> {
    let operands = (0..op.operands.len()).map(|k| ("const void *", format!("x{k}")));
    let results = (0..op.results.len()).map(|k| ("void *", format!("y{k}")));
    let scratch = (op.workspace > 0).then(|| ("uint8_t *", "scratch".to_owned()));
    operands.chain(results).chain(scratch).collect()
}

/// The declaration of an unpacked function of the user's.
pub(super) fn prototype(op: &Extern, symbol: &str) -> String {
    let own = op.instance.as_ref().map(|Instance { structure, .. }| format!("struct {structure} *self"));
    let pointers = pointers(op).into_iter().map(|(ty, name)| match ty {
        "uint8_t *" => format!("void *{name}"),
        ty => format!("{ty}{name}"),
    });
    let parameters: Vec<String> = own.into_iter().chain(pointers).collect();
    format!("int32_t {symbol}({});\n", parameters.join(", "))
}
