//! The hook behind every kernel: a function that firmware names by the macro `TVMGEN_<MODEL>_PROFILE`, to count cycles or to look at
//! results. Without the macro it is nothing.

use super::emitter::Scope;
use crate::names::profile_macro;
use std::fmt::Write;

/// Declares the function, or has the hook be nothing.
pub(super) fn prelude(model: &str) -> String {
    let name = profile_macro(model);
    format!(
        "\n#ifdef {name}\n/* Called behind every kernel, for each of its results. */\n\
         void {name}(int32_t kernel, int32_t result, const void *address);\n#else\n\
         #define {name}(kernel, result, address) ((void)0)\n#endif\n"
    )
}

/// What stands behind the call of a kernel or a loop, whose number is its position: the hook for each result, once if there is none. The
/// functions of the graph executor have no hooks.
pub(super) fn calls(scope: Scope<'_>, position: usize, results: &[&str]) -> String {
    let mut text = String::new();
    if scope.call.is_some() {
        return text;
    }
    let name = profile_macro(scope.model);
    let none = ["NULL"];
    for (number, address) in if results.is_empty() { &none } else { results }.iter().enumerate() {
        let _ = writeln!(text, "  {name}({position}, {number}, {address});");
    }
    text
}
