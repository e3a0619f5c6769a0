//! Constants that are copied into the arena: the hooks that firmware names by the macros `TVMGEN_<MODEL>_FETCH` and `TVMGEN_<MODEL>_FETCHED`,
//! and their calls. Without the macros the copies are made by `memcpy`.

use super::emitter::{Emitter, Scope};
use super::sequence::Calls;
use crate::execution::{Execution, refused};
use crate::lower::{Binding, Fetch, Fetched, Part, Program};
use crate::names::fetch_macros;
use mlc_ir::Diagnostic;
use std::fmt::Write;

/// Checks that constants can be copied ahead of the kernels that read them in the way that is asked for.
///
/// # Errors
/// `MLC0004` when nothing calls the hooks.
pub(super) fn check(execution: Execution) -> Result<(), Diagnostic> {
    match execution.graph {
        true => refused(
            "the graph executor calls kernels one by one, and nothing copies weights for those to come",
            "give '--executor aot', or leave '--fetch-weights' out",
        ),
        false => Ok(()),
    }
}

/// Whether a program copies constants.
pub(super) fn fetches(program: &Program) -> bool {
    program.parts.iter().any(|part| matches!(part, Part::Fetch(_)))
}

/// Declares the functions, or has the hooks copy.
pub(super) fn prelude(program: &Program, model: &str) -> String {
    if !fetches(program) {
        return String::new();
    }
    let (begin, wait) = fetch_macros(model);
    format!(
        "\n#ifdef {begin}\n/* Begins to copy a constant; it may be under way until {wait} is called. */\n\
         void {begin}(void *to, const void *from, uint32_t bytes);\n#else\n\
         #define {begin}(to, from, bytes) ((void)memcpy((to), (from), (bytes)))\n#endif\n\
         #ifdef {wait}\n/* Returns when all that has begun is copied. */\nvoid {wait}(void);\n#else\n\
         #define {wait}() ((void)0)\n#endif\n"
    )
}

impl Emitter {
    /// What is done with constants before a part.
    pub(super) fn fetch(&mut self, scope: Scope<'_>, fetch: &Fetch, calls: &mut Calls) {
        let (begin, wait) = fetch_macros(scope.model);
        let Fetch::Begin(list) = fetch else {
            let _ = writeln!(calls.text, "  {wait}();");
            return;
        };
        for Fetched { name, value, buffer } in list {
            let (dtype, buffer) = (value.ty().dtype, *buffer);
            let to = Binding::Buffer { buffer, offset: 0, dtype, constant: false };
            let from = Binding::Packed { name: name.clone(), value: value.clone() };
            let [to, from] = [to, from].map(|binding| self.argument(scope, (0, 0), &binding));
            let _ = writeln!(
                calls.text,
                "  {begin}(\n      {},\n      {},\n      {});",
                to.text,
                from.text,
                value.ty().bytes()
            );
            calls.used.extend([to, from].into_iter().filter_map(|argument| argument.variable));
        }
    }
}
