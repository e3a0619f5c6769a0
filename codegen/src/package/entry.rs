//! `<model>_lib0.c` of the C interface: the entry point, the arena, and the descriptors that the header declares.

use super::arena;
use super::feed;
use super::levels;
use super::pools::Pool;
use super::signature::{memories, prototype};
use super::states;
use crate::module::{Module, Port};
use crate::names::c_escape;
use mlc_ir::checksum::Fnv;

/// The text of the file.
pub(super) fn entry(module: &Module) -> String {
    let model = &module.model_name;
    let mut text = format!(
        "/* Entry point and arena of the model \"{model}\". */\n#include \"tvmgen_{model}.h\"\n{}\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
        levels::includes(module)
    );
    text += &levels::functions(module);
    text += &states::shared(module);
    match module.fed_rows() {
        Some(rows) => {
            text += &feed::prototypes(module);
            text += &arena::definition(module);
            text += &feed::functions(module, &rows);
        }
        None => {
            text += &main_prototypes(module);
            text += &arena::definition(module);
            text += &run(module);
        }
    }
    text += &states::reset(module);
    text += &end(module);
    text += &descriptors(module);
    text + "#ifdef __cplusplus\n}\n#endif\n"
}

/// The declaration of the function that runs all kernels on plain pointers.
pub(super) fn main_prototype(module: &Module) -> String {
    prototype(&module.execution.main_symbol(&module.model_name), module, &[])
}

/// The declarations of those of all levels.
fn main_prototypes(module: &Module) -> String {
    levels::parts(module).iter().map(|part| prototype(&part.symbol(MAIN), module, &[])).collect()
}

/// What the name of the function ends with that runs all kernels.
const MAIN: &str = "__tvm_main__";

fn run(module: &Module) -> String {
    let model = &module.model_name;
    let pools = Pool::external(module);
    let mut parameter = if pools.is_empty() {
        String::new()
    } else {
        format!(",\n  struct tvmgen_{model}_workspace_pools* workspace_pools")
    };
    if module.ranks.is_some() {
        parameter += ",\n  const mlc_transport* transport";
    }
    let mut text = format!(
        "int32_t tvmgen_{model}_run(\n  struct tvmgen_{model}_inputs* inputs,\n  \
         struct tvmgen_{model}_outputs* outputs{parameter}\n) {{\n"
    );
    text += &arena::address(module);
    for (kind, ports) in [("inputs", &module.inputs), ("outputs", &module.outputs)] {
        if ports.is_empty() {
            text += &format!("  (void){kind};\n");
        }
    }
    let arguments = |part: &levels::Part<'_>| {
        let inputs = module.inputs.iter().map(|port| format!("inputs->{}", port.field));
        let outputs = module.outputs.iter().map(|port| format!("outputs->{}", port.field));
        let memories = memories(module, part, "workspace_pools");
        let transport = module.ranks.iter().map(|_| "transport".to_owned());
        inputs.chain(outputs).chain(memories).chain(transport).collect()
    };
    text + &levels::call(module, MAIN, &levels::in_use(module), &arguments) + "}\n\n"
}

/// The function that ends what the first run of any level began; that of one level is in the kernels' file.
fn end(module: &Module) -> String {
    let ending: Vec<String> = module
        .levels
        .iter()
        .filter(|level| level.ends)
        .map(|level| format!("tvmgen_{}_end", level.model_name))
        .collect();
    if ending.is_empty() {
        return String::new();
    }
    let prototypes: String = ending.iter().map(|symbol| format!("int32_t {symbol}(void);\n")).collect();
    let calls: String = ending
        .iter()
        .map(|symbol| format!("  status = {symbol}();\n  if (first == 0) {{\n    first = status;\n  }}\n"))
        .collect();
    format!(
        "{prototypes}\nint32_t tvmgen_{}_end(void) {{\n  int32_t first = 0;\n  int32_t status;\n{calls}  return first;\n}}\n\n",
        module.model_name
    )
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

/// FNV-1a over the generated sources and the constants' types and own hashes: the same on every machine.
fn content_hash(module: &Module) -> u64 {
    let mut sum = Fnv::default();
    for source in &module.sources {
        sum.feed(source.name.as_bytes());
        sum.feed(source.text.as_bytes());
    }
    for constant in &module.constants {
        sum.feed(constant.symbol.as_bytes());
        sum.feed(constant.value.ty().to_string().as_bytes());
        sum.feed(&constant.value.word_hash().to_le_bytes());
    }
    sum.sum()
}
