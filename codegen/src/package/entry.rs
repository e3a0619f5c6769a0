//! `<model>_lib0.c`: the entry point, the arena, and the descriptors that the header declares.

use super::names::c_escape;
use crate::module::{Module, Port};

/// The text of the file.
pub(super) fn entry(module: &Module) -> String {
    let model = &module.model_name;
    let mut text = format!(
        "/* Entry point and arena of the model \"{model}\". */\n#include \"tvmgen_{model}.h\"\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
    );
    text += &main_prototype(module);
    if module.plan.arena_bytes > 0 {
        text += &arena(module.plan.arena_bytes, module.plan.alignment.max(1));
    }
    text += &run(module);
    text += &descriptors(module);
    text + "#ifdef __cplusplus\n}\n#endif\n"
}

fn main_prototype(module: &Module) -> String {
    let inputs = (0..module.inputs.len()).map(|index| format!("const void* input{index}"));
    let outputs = (0..module.outputs.len()).map(|index| format!("void* output{index}"));
    let parameters: Vec<String> = inputs.chain(outputs).chain(["uint8_t* workspace".to_owned()]).collect();
    format!("int32_t tvmgen_{}___tvm_main__(\n  {}\n);\n\n", module.model_name, parameters.join(",\n  "))
}

/// The arena. Only GNU compilers can place and align it; C11 and C++11 can align it; for any other compiler it is longer
/// than needed, and its use starts at the first aligned byte.
fn arena(bytes: usize, alignment: usize) -> String {
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

fn run(module: &Module) -> String {
    let model = &module.model_name;
    let mut text = format!(
        "int32_t tvmgen_{model}_run(\n  struct tvmgen_{model}_inputs* inputs,\n  \
         struct tvmgen_{model}_outputs* outputs\n) {{\n"
    );
    let workspace = if module.plan.arena_bytes > 0 {
        let alignment = module.plan.alignment.max(1);
        text += &format!(
            "  uint8_t* workspace = global_workspace;\n#if ARENA_SLACK\n  \
             workspace += ({alignment} - (uintptr_t)workspace % {alignment}) % {alignment};\n#endif\n"
        );
        "workspace"
    } else {
        "NULL"
    };
    for (kind, ports) in [("inputs", &module.inputs), ("outputs", &module.outputs)] {
        if ports.is_empty() {
            text += &format!("  (void){kind};\n");
        }
    }
    let inputs = module.inputs.iter().map(|port| format!("inputs->{}", port.field));
    let outputs = module.outputs.iter().map(|port| format!("outputs->{}", port.field));
    let arguments: Vec<String> = inputs.chain(outputs).chain([workspace.to_owned()]).collect();
    text + &format!("  return tvmgen_{model}___tvm_main__(\n    {}\n  );\n}}\n\n", arguments.join(",\n    "))
}

fn descriptors(module: &Module) -> String {
    let model = &module.model_name;
    let mut text = format!(
        "const size_t mlc_{model}_workspace_size = {};\nconst size_t mlc_{model}_constants_size = {};\n",
        module.plan.arena_bytes,
        module.constants_bytes(),
    );
    for (kind, ports) in [("input", &module.inputs), ("output", &module.outputs)] {
        text += &port_table(model, kind, ports);
    }
    text + &format!(
        "const char mlc_{model}_version[] = \"{}\";\nconst char mlc_{model}_hash[] = \"{:016x}\";\n\n",
        env!("CARGO_PKG_VERSION"),
        content_hash(module),
    )
}

fn port_table(model: &str, kind: &str, ports: &[Port]) -> String {
    let mut text = format!("const size_t mlc_{model}_{kind}_count = {};\n", ports.len());
    let mut rows = String::new();
    for (index, port) in ports.iter().enumerate() {
        let shape = &port.ty.shape;
        let shape_name = if shape.is_empty() { "NULL".to_owned() } else { format!("{kind}{index}_shape") };
        if !shape.is_empty() {
            let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
            text += &format!("static const size_t {shape_name}[{}] = {{ {} }};\n", shape.len(), extents.join(", "));
        }
        rows += &format!(
            "  {{ \"{}\", \"{}\", {}, {shape_name}, {} }},\n",
            c_escape(&port.name),
            port.ty.dtype,
            shape.len(),
            port.ty.bytes(),
        );
    }
    if !ports.is_empty() {
        text += &format!("const struct mlc_{model}_tensor mlc_{model}_{kind}s[{}] = {{\n{rows}}};\n", ports.len());
    }
    text
}

/// FNV-1a over the generated sources and the constants' own hashes: the same on every machine.
fn content_hash(module: &Module) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut feed = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for source in &module.sources {
        feed(source.name.as_bytes());
        feed(source.text.as_bytes());
    }
    for constant in &module.constants {
        feed(constant.symbol.as_bytes());
        feed(&constant.value.content_hash().to_le_bytes());
    }
    hash
}
