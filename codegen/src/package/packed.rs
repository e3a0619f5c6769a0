//! `<model>_lib0.c` of the packed interfaces: entry points that take packed arguments, and the tables that tell the runtime's AOT
//! executor what the model takes and gives (Model Library Format, sections 8.4 and 10.5).

use super::arena;
use super::entry::main_prototype;
use super::parameters::element_type;
use crate::execution::Interface;
use crate::module::{Module, Port};
use crate::names::PACKED_PARAMETERS;
use crate::names::c_escape;
use std::fmt::Write;

/// Parameters that the functions below ignore.
const UNUSED: &str =
    "  (void)arg_type_ids;\n  (void)out_ret_value;\n  (void)out_ret_tcode;\n  (void)resource_handle;\n";
/// The packed code of a `DLTensor`.
const TENSOR_CODE: u32 = 7;

/// The text of the file.
pub(super) fn entry(module: &Module) -> String {
    let mut text = format!(
        "/* Entry points and arena of the model \"{}\", by the packed calling convention. */\n\
         #include <stddef.h>\n#include <stdint.h>\n#include \"tvm/runtime/c_runtime_api.h\"\n",
        module.model_name
    );
    let registered = module.execution.aot == Some(Interface::Packed);
    if registered {
        text += "#include \"tvm/runtime/metadata_types.h\"\n";
    }
    text.push('\n');
    text += &main_prototype(module);
    text += &arena::definition(module);
    if registered {
        text += &packed_main(module);
        text += &run_through_packed_main(module);
        text += &metadata(module);
    } else {
        text += &run(module);
    }
    text
}

fn head(module: &Module, name: &str) -> String {
    let head = format!("int tvmgen_{}_{name}(\n    {PACKED_PARAMETERS})", module.model_name);
    format!("{head};\n\n{head} {{\n")
}

fn data(number: usize) -> String {
    format!("((const DLTensor*)args[{number}].v_handle)->data")
}

/// `tvmgen_<model>_run`: takes the tensors apart and calls the main function, which takes plain pointers.
fn run(module: &Module) -> String {
    let tensors = module.inputs.len() + module.outputs.len();
    let mut text = head(module, "run") + &arena::address(module);
    text += UNUSED;
    let _ = writeln!(text, "  if (num_args != {tensors}) {{\n    return -1;\n  }}");
    let arguments: Vec<String> = (0..tensors).map(data).chain([arena::argument(module).to_owned()]).collect();
    text + &call(module, &arguments)
}

fn call(module: &Module, arguments: &[String]) -> String {
    let main = module.execution.main_symbol(&module.model_name);
    format!("  return {main}(\n    {}\n  );\n}}\n\n", arguments.join(",\n    "))
}

/// `tvmgen_<model>___tvm_main__`: inputs, outputs and the arena as packed tensors.
fn packed_main(module: &Module) -> String {
    let tensors = module.inputs.len() + module.outputs.len();
    let mut text = head(module, "__tvm_main__") + UNUSED;
    let _ = writeln!(text, "  if (num_args != {}) {{\n    return -1;\n  }}", tensors + 1);
    let workspace = format!("(uint8_t*){}", data(tensors));
    text + &call(module, &(0..tensors).map(data).chain([workspace]).collect::<Vec<_>>())
}

/// `tvmgen_<model>_run`: adds the arena to the arguments.
fn run_through_packed_main(module: &Module) -> String {
    let tensors = module.inputs.len() + module.outputs.len();
    let bytes = module.plan.arena_bytes;
    let mut text = head(module, "run") + &arena::address(module);
    let _ = writeln!(
        text,
        "  int64_t shape = {bytes};\n  DLTensor arena;\n  TVMValue values[{0}];\n  int codes[{0}];\n  int number;",
        tensors + 1
    );
    let _ = writeln!(text, "  if (num_args != {tensors}) {{\n    return -1;\n  }}");
    let _ = write!(
        text,
        "  for (number = 0; number < {tensors}; ++number) {{\n    values[number] = args[number];\n    \
         codes[number] = arg_type_ids[number];\n  }}\n\
         \x20 arena.data = {};\n  arena.device.device_type = kDLCPU;\n  arena.device.device_id = 0;\n  arena.ndim = 1;\n\
         \x20 arena.dtype.code = kDLUInt;\n  arena.dtype.bits = 8;\n  arena.dtype.lanes = 1;\n  arena.shape = &shape;\n\
         \x20 arena.strides = NULL;\n  arena.byte_offset = 0;\n\
         \x20 values[{tensors}].v_handle = &arena;\n  codes[{tensors}] = {TENSOR_CODE};\n",
        arena::argument(module)
    );
    let model = &module.model_name;
    text + &format!(
        "  return tvmgen_{model}___tvm_main__(values, codes, {}, out_ret_value, out_ret_tcode, resource_handle);\n}}\n\n",
        tensors + 1
    )
}

/// `tvmgen_<model>_get_c_metadata` and its tables.
fn metadata(module: &Module) -> String {
    let model = &module.model_name;
    let mut text = String::new();
    for (kind, ports) in [("inputs", &module.inputs), ("outputs", &module.outputs)] {
        text += &tensors(kind, ports);
    }
    let table = |kind: &str, ports: &[Port]| {
        if ports.is_empty() { "NULL".to_owned() } else { format!("kTvmgenMetadata_{kind}") }
    };
    let _ = write!(
        text,
        "static const struct TVMMetadata kTvmgenMetadata = {{\n  1, {}, {}, {}, {}, NULL, 0, NULL, 0, \"tvmgen_{model}\"\n}};\n\n",
        table("inputs", &module.inputs),
        module.inputs.len(),
        table("outputs", &module.outputs),
        module.outputs.len(),
    );
    text += &head(module, "get_c_metadata");
    text + "  (void)args;\n  (void)arg_type_ids;\n  (void)num_args;\n  (void)resource_handle;\n  \
        out_ret_value[0].v_handle = (void*)&kTvmgenMetadata;\n  out_ret_tcode[0] = kTVMOpaqueHandle;\n  return 0;\n}\n\n"
}

fn tensors(kind: &str, ports: &[Port]) -> String {
    let mut text = String::new();
    let mut rows = String::new();
    for (number, port) in ports.iter().enumerate() {
        let shape = &port.ty.shape;
        let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
        let name = format!("kTvmgenMetadata_{kind}_{number}_shape");
        let pointer = if shape.is_empty() { "NULL" } else { &name };
        if !shape.is_empty() {
            let _ = writeln!(text, "static const int64_t {name}[{}] = {{ {} }};", shape.len(), extents.join(", "));
        }
        let element = element_type(port.ty.dtype);
        let name = c_escape(&port.name);
        let _ = writeln!(
            rows,
            "  {{ \"{name}\", {pointer}, {}, {{ {}, {}, 1 }} }},",
            shape.len(),
            element.code,
            element.bits
        );
    }
    if !rows.is_empty() {
        let _ = write!(
            text,
            "static const struct TVMTensorInfo kTvmgenMetadata_{kind}[{}] = {{\n{rows}}};\n\n",
            ports.len()
        );
    }
    text
}
