//! The registry: functions by name, through which runtimes find what they call (Model Library Format, section 7.5).
//!
//! A program links one registry, so that all models of an archive share it.

use crate::execution::Interface;
use crate::module::Module;
use crate::names::PACKED_PARAMETERS;
use std::fmt::Write;

/// Longest string that a C99 compiler must take.
const LONGEST_STRING: usize = 4095;

/// The registry of all functions of all modules that are called by name; nothing if there are none.
pub(super) fn registry(modules: &[&Module]) -> String {
    let functions: Vec<String> = modules.iter().flat_map(|module| registered(module)).collect();
    if functions.is_empty() {
        return String::new();
    }
    let mut text = "\n#include \"tvm/runtime/crt/module.h\"\n\n".to_owned();
    for function in &functions {
        let _ = writeln!(text, "int {function}(\n    {PACKED_PARAMETERS});");
    }
    text += "\nstatic const TVMBackendPackedCFunc functions[] = {\n";
    for function in &functions {
        let _ = writeln!(text, "  {function},");
    }
    text += "};\n\n";
    text += &names(&functions);
    text + "static const TVMFuncRegistry registry = { function_names, functions };\n\n\
        static const TVMModule system_library = { &registry };\n\n\
        /* Where a runtime finds all functions by name. */\n\
        const TVMModule* TVMSystemLibEntryPoint(void) {\n  return &system_library;\n}\n"
}

/// Functions of the packed calling convention, sorted by name.
fn registered(module: &Module) -> Vec<String> {
    let model = &module.model_name;
    let mut functions: Vec<String> = Vec::new();
    if let Some(graph) = &module.graph {
        functions.extend(graph.nodes.iter().filter(|node| node.calls).map(|node| node.name.clone()));
    }
    if module.execution.aot == Some(Interface::Packed) {
        functions.extend(["__tvm_main__", "get_c_metadata", "run"].map(|name| format!("tvmgen_{model}_{name}")));
    }
    functions.sort_unstable();
    functions
}

/// The names: their number in 16 bits of the machine's byte order, then each with a NUL, then one more NUL.
fn names(functions: &[String]) -> String {
    let count = functions.len();
    let (low, high) = (count & 0xff, count >> 8 & 0xff);
    let ordered = |little: String, big: String| {
        format!(
            "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__\n#define FUNCTION_COUNT {big}\n\
             #else\n#define FUNCTION_COUNT {little}\n#endif\n\n"
        )
    };
    let length: usize = functions.iter().map(|name| name.len() + 1).sum();
    if length + 3 <= LONGEST_STRING {
        let mut text = ordered(format!("\"\\{low:03o}\\{high:03o}\""), format!("\"\\{high:03o}\\{low:03o}\""));
        text += "static const char function_names[] =\n  FUNCTION_COUNT";
        for name in functions {
            let _ = write!(text, "\n  \"{name}\\0\"");
        }
        return text + ";\n\n";
    }
    let mut text = ordered(format!("{low}, {high}"), format!("{high}, {low}"));
    text += "static const char function_names[] = {\n  FUNCTION_COUNT,\n";
    for name in functions {
        let characters: Vec<String> = name.chars().map(|character| format!("'{character}'")).collect();
        let _ = writeln!(text, "  {}, 0,", characters.join(","));
    }
    text + "  0\n};\n\n"
}
