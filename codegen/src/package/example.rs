//! `example/main.c`: a program that runs every model once on zeroes and prints the first values of every output.

use super::names::macro_prefix;
use super::parameters::element_type;
use super::pools::Pool;
use crate::execution::Interface;
use crate::loops::spelling::c_type;
use crate::module::{Module, Port};
use crate::names::c_escape;
use mlc_ir::DType;
use std::fmt::Write;

/// The program.
pub(super) fn example(modules: &[&Module]) -> String {
    let names: Vec<String> = modules.iter().map(|module| format!("\"{}\"", module.model_name)).collect();
    let plural = if modules.len() == 1 { "the model" } else { "each of the models" };
    let mut text =
        format!("/* Runs {plural} {} once on zeroes and prints the start of every output. */\n", names.join(", "));
    text += "#include <stdio.h>\n";
    for module in modules {
        text += &includes(module);
    }
    text += "\n#if defined(__GNUC__)\n#define ALIGNED __attribute__((aligned(64)))\n#else\n#define ALIGNED\n#endif\n\n";
    if modules.iter().any(|module| reads_files(module)) {
        text += READ_FILE;
    }
    for module in modules {
        text += &run(module);
    }
    if modules.iter().any(|module| module.ranks.is_some()) {
        return text + &mpi_main(modules);
    }
    let calls: Vec<String> = modules.iter().map(|module| format!("run_{}()", module.model_name)).collect();
    text + &format!("int main(void) {{\n  return {};\n}}\n", calls.join(" != 0 || "))
}

/// A program that `mpirun` starts with the programs of the other ranks.
fn mpi_main(modules: &[&Module]) -> String {
    let calls: Vec<String> = modules.iter().map(|module| format!("run_{}()", module.model_name)).collect();
    format!(
        "int main(int argc, char** argv) {{\n  int failed;\n  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) {{\n    return 1;\n  }}\n  \
         failed = {};\n  if (failed) {{\n    (void)MPI_Abort(MPI_COMM_WORLD, 1);\n  }}\n  \
         (void)MPI_Finalize();\n  return failed;\n}}\n",
        calls.join(" != 0 || ")
    )
}

/// Reads a file as a text with a NUL at its end, which the caller frees.
const READ_FILE: &str = "\
/* The contents of a file with a NUL behind them; NULL if there is no such file. */
static char* read_file(const char* path, long* size) {
  FILE* file = fopen(path, \"rb\");
  char* contents = NULL;
  if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (*size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0) {
    fprintf(stderr, \"can't read %s: run the program in the archive's folder\\n\", path);
    return NULL;
  }
  contents = (char*)calloc((size_t)*size + 1, 1);
  if (contents != NULL && fread(contents, 1, (size_t)*size, file) != (size_t)*size) {
    free(contents);
    contents = NULL;
  }
  fclose(file);
  return contents;
}

";

fn reads_files(module: &Module) -> bool {
    module.execution.aot.is_none() || Pool::constants(module).is_some()
}

fn includes(module: &Module) -> String {
    let model = &module.model_name;
    let mut text = String::new();
    if reads_files(module) {
        text += "#include <stdlib.h>\n#include <string.h>\n";
    }
    match module.execution.aot {
        Some(Interface::C) => {
            text += &format!("#include \"tvmgen_{model}.h\"\n");
            if module.ranks.is_some() {
                text += "#include \"transport_mpi.h\"\n";
            }
        }
        Some(_) => {
            text += &format!(
                "#include \"tvm/runtime/c_runtime_api.h\"\n\nint tvmgen_{model}_run(TVMValue* args, int* type_codes, int num_args, \
                 TVMValue* result,\n                   int* result_code, void* resource_handle);\n"
            );
        }
        None => {
            text += "#include \"tvm/runtime/crt/crt.h\"\n#include \"tvm/runtime/crt/graph_executor.h\"\n#include \"tvm/runtime/crt/module.h\"\n#include \"tvm/runtime/crt/platform.h\"\n"
        }
    }
    text
}

fn run(module: &Module) -> String {
    let model = &module.model_name;
    let mut text = format!("static int run_{model}(void) {{\n") + &buffers(module);
    if module.outputs.iter().any(|port| port.ty.elements() > 0) {
        text += "  size_t index;\n";
    }
    text += &match module.execution.aot {
        Some(Interface::C) => run_by_structures(module),
        Some(_) => run_packed(module),
        None => run_graph(module),
    };
    for (index, port) in module.outputs.iter().enumerate() {
        text += &print_output(index, port);
    }
    text + "  return 0;\n}\n\n"
}

/// Memory of inputs and outputs.
fn buffers(module: &Module) -> String {
    let mut text = String::new();
    for (kind, ports) in [("input", &module.inputs), ("output", &module.outputs)] {
        for (index, port) in ports.iter().enumerate() {
            // An empty tensor still needs something to point at.
            let extent = port.ty.elements().max(1);
            let _ = writeln!(text, "  static {} {kind}{index}[{extent}] ALIGNED;", c_type(port.ty.dtype));
        }
    }
    text
}

fn run_by_structures(module: &Module) -> String {
    let model = &module.model_name;
    let pools = Pool::external(module);
    let mut text = format!(
        "  struct tvmgen_{model}_inputs inputs;\n  struct tvmgen_{model}_outputs outputs;\n  int32_t status;\n"
    );
    if module.ranks.is_some() {
        text += "  mlc_mpi* mpi;\n";
    }
    for pool in Pool::workspaces(module) {
        // A pool may have nothing to hold.
        let size = if pool.bytes == 0 { "1".to_owned() } else { pool.size_macro };
        let _ = writeln!(text, "  static uint8_t {}[{size}] ALIGNED;", pool.memory);
    }
    if let Some(pool) = Pool::constants(module) {
        let _ = writeln!(
            text,
            "  static uint8_t constants[{0} + 1] ALIGNED;\n  long size = 0;\n  char* file = \
             read_file(\"parameters/{model}.constants.bin\", &size);",
            pool.size_macro
        );
        let _ = writeln!(
            text,
            "  if (file == NULL || size != {}) {{\n    return 1;\n  }}\n  memcpy(constants, file, (size_t)size);\n  free(file);",
            pool.size_macro
        );
    }
    if let Some(pool) = Pool::states(module) {
        let _ = writeln!(text, "  static uint8_t states[{}] ALIGNED;", pool.size_macro);
    }
    text.push('\n');
    for (kind, ports) in [("input", &module.inputs), ("output", &module.outputs)] {
        for (index, port) in ports.iter().enumerate() {
            let _ = writeln!(text, "  {kind}s.{} = {kind}{index};", port.field);
        }
        if ports.is_empty() {
            let _ = writeln!(text, "  {kind}s.none = NULL;");
        }
    }
    let mut arguments = "&inputs, &outputs".to_owned();
    let transport = if module.ranks.is_some() { ", mlc_mpi_transport(mpi)" } else { "" };
    if module.ranks.is_some() {
        text += &open_mpi(&macro_prefix(module));
    }
    if !pools.is_empty() {
        let mut block = format!("  {{\n    struct tvmgen_{model}_workspace_pools pools;\n");
        for pool in &pools {
            let _ = writeln!(block, "    pools.{} = {};", pool.name, pool.memory);
        }
        if Pool::states(module).is_some() {
            let _ = writeln!(block, "    (void)tvmgen_{model}_reset(&pools);");
        }
        text += &block;
        arguments = arguments + ", &pools" + transport;
        let _ = writeln!(text, "    status = tvmgen_{model}_run({arguments});\n  }}");
    } else {
        let _ = writeln!(text, "  status = tvmgen_{model}_run({arguments}{transport});");
    }
    text += FAILED;
    if module.ranks.is_some() {
        text += "  mlc_mpi_close(mpi);\n";
    }
    text
}

/// Statements that make the transport of a rank.
fn open_mpi(prefix: &str) -> String {
    format!(
        "  mpi = mlc_mpi_open(MPI_COMM_WORLD, {prefix}_RANK, {prefix}_RANK_COUNT, {prefix}_MESSAGE_COUNT, 30.0);\n  \
         if (mpi == NULL) {{\n    \
         fprintf(stderr, \"this is the program of rank %d of %d, and MPI didn't start it as that\\n\", {prefix}_RANK, {prefix}_RANK_COUNT);\n    \
         return 1;\n  }}\n"
    )
}

const FAILED: &str = "  if (status != 0) {\n    fprintf(stderr, \"the model failed with status %ld\\n\", (long)status);\n    return 1;\n  }\n";

/// Definitions of tensors over the memory of inputs and outputs, as `name_tensor`.
fn tensors(module: &Module) -> (String, Vec<String>) {
    let mut text = String::new();
    let mut names = Vec::new();
    for (kind, ports) in [("input", &module.inputs), ("output", &module.outputs)] {
        for (index, port) in ports.iter().enumerate() {
            let extents: Vec<String> = port.ty.shape.iter().map(usize::to_string).collect();
            let (shape, rank) =
                if extents.is_empty() { ("1".to_owned(), 1) } else { (extents.join(", "), extents.len()) };
            let element = element_type(port.ty.dtype);
            let name = format!("{kind}{index}_tensor");
            let _ = writeln!(
                text,
                "  int64_t {kind}{index}_shape[] = {{ {shape} }};\n  DLTensor {name} = {{ {kind}{index}, {{ kDLCPU, 0 }}, {rank}, \
                 {{ {}, {}, 1 }}, {kind}{index}_shape, NULL, 0 }};",
                element.code, element.bits
            );
            names.push(name);
        }
    }
    (text, names)
}

fn run_packed(module: &Module) -> String {
    let (mut text, names) = tensors(module);
    let count = names.len();
    let _ = writeln!(
        text,
        "  TVMValue arguments[{0}];\n  int codes[{0}];\n  TVMValue result;\n  int code = 0;\n  int status;\n",
        count.max(1)
    );
    for (index, name) in names.iter().enumerate() {
        let _ = writeln!(text, "  arguments[{index}].v_handle = &{name};\n  codes[{index}] = kTVMDLTensorHandle;");
    }
    let model = &module.model_name;
    let _ = writeln!(text, "  status = tvmgen_{model}_run(arguments, codes, {count}, &result, &code, NULL);");
    text + FAILED
}

fn run_graph(module: &Module) -> String {
    let model = &module.model_name;
    let (mut text, names) = tensors(module);
    let (inputs, outputs) = names.split_at(module.inputs.len());
    let _ = write!(
        text,
        "  DLDevice device = {{ kDLCPU, 0 }};\n  TVMModuleHandle library = NULL;\n  TVMGraphExecutor* executor = NULL;\n  \
         long graph_size = 0;\n  long parameters_size = 0;\n  int status;\n  \
         char* graph = read_file(\"executor-config/graph/{model}.graph\", &graph_size);\n  \
         char* parameters = read_file(\"parameters/{model}.params\", &parameters_size);\n\n  \
         if (graph == NULL || parameters == NULL) {{\n    return 1;\n  }}\n  \
         status = (int)TVMPlatformInitialize();\n  \
         if (status == 0) {{\n    status = (int)TVMInitializeRuntime();\n  }}\n  \
         if (status == 0) {{\n    status = TVMModCreateFromCModule(TVMSystemLibEntryPoint(), &library);\n  }}\n  \
         if (status == 0) {{\n    status = TVMGraphExecutor_Create(graph, library, &device, &executor);\n  }}\n  \
         if (status == 0) {{\n    status = TVMGraphExecutor_LoadParams(executor, parameters, (uint32_t)parameters_size);\n  }}\n"
    );
    text += FAILED;
    for (name, port) in inputs.iter().zip(&module.inputs) {
        let _ = writeln!(text, "  TVMGraphExecutor_SetInput(executor, \"{}\", &{name});", c_escape(&port.name));
    }
    text += "  TVMGraphExecutor_Run(executor);\n";
    for (index, name) in outputs.iter().enumerate() {
        let _ = writeln!(text, "  status = TVMGraphExecutor_GetOutput(executor, {index}, &{name});");
        text += FAILED;
    }
    text + "  TVMGraphExecutor_Release(&executor);\n  free(graph);\n  free(parameters);\n"
}

fn print_output(index: usize, port: &Port) -> String {
    let (conversion, cast) = match port.ty.dtype {
        DType::F32 | DType::F64 => ("%g", "(double)"),
        DType::I64 => ("%lld", "(long long)"),
        DType::U64 => ("%llu", "(unsigned long long)"),
        dtype if dtype.is_signed() && dtype.is_integer() => ("%ld", "(long)"),
        _ => ("%lu", "(unsigned long)"),
    };
    // In a format string a percent sign stands for itself only when doubled.
    let mut text = format!("  printf(\"{}:\");\n", c_escape(&port.name).replace('%', "%%"));
    let shown = port.ty.elements().min(8);
    if shown > 0 {
        text += &format!(
            "  for (index = 0; index < {shown}; ++index) {{\n    \
             printf(\" {conversion}\", {cast}output{index}[index]);\n  }}\n"
        );
    }
    let rest = if port.ty.elements() > shown { " ..." } else { "" };
    text + &format!("  printf(\"{rest}\\n\");\n")
}
