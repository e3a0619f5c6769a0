//! The arena as a static array of the generated code.

use super::pools::Pool;
use crate::module::Module;

fn is_static(module: &Module) -> bool {
    module.plan.arena_bytes > 0 && Pool::workspaces(module).is_empty()
}

/// The array. Only GNU compilers can place and align it; C11 and C++11 can align it; for any other compiler it is longer than
/// needed, and its use starts at the first aligned byte.
pub(super) fn definition(module: &Module) -> String {
    if !is_static(module) {
        return String::new();
    }
    let (bytes, alignment) = (module.plan.arena_bytes, module.plan.alignment.max(1));
    format!(
        "#if defined(__GNUC__) && defined(__ELF__)\n\
         #define ARENA_PLACE __attribute__((section(\".bss.noinit.tvm\"), aligned({alignment})))\n\
         #define ARENA_SLACK 0\n\
         #elif defined(__GNUC__)\n\
         #define ARENA_PLACE __attribute__((aligned({alignment})))\n\
         #define ARENA_SLACK 0\n\
         #elif defined(__cplusplus) && __cplusplus >= 201103L\n\
         #define ARENA_PLACE alignas({alignment})\n\
         #define ARENA_SLACK 0\n\
         #elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n\
         #define ARENA_PLACE _Alignas({alignment})\n\
         #define ARENA_SLACK 0\n\
         #else\n\
         #define ARENA_PLACE\n\
         #define ARENA_SLACK {slack}\n\
         #endif\n\n\
         /* Nothing relies on its contents between two runs, or at the start. */\n\
         ARENA_PLACE static uint8_t global_workspace[{bytes} + ARENA_SLACK];\n\n",
        slack = alignment - 1,
    )
}

/// Statements that define `workspace`, the first aligned byte; nothing where there is no array.
pub(super) fn address(module: &Module) -> String {
    if !is_static(module) {
        return String::new();
    }
    let alignment = module.plan.alignment.max(1);
    format!(
        "  uint8_t* workspace = global_workspace;\n#if ARENA_SLACK\n  \
         workspace += ({alignment} - (uintptr_t)workspace % {alignment}) % {alignment};\n#endif\n"
    )
}

/// What the main function gets for its arena.
pub(super) fn argument(module: &Module) -> &'static str {
    if is_static(module) { "workspace" } else { "NULL" }
}
