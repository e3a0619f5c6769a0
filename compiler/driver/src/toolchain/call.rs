//! How a program or a shared library calls a model: C text for each interface that an archive may have. All of them define
//! `prepare`, which is called once, `set_tensors`, which is called whenever the tensors' memory is another, and `invoke`, which runs the
//! model on `input` into `output`.

use crate::bundle::{Bundle, Call, Port};
use mlc_archive::{Executor, Header, Reset};
use mlc_ir::{DType, TensorType};
use std::fmt::Write;
use std::path::Path;

/// What `main.c` includes for the call.
pub(super) fn includes(bundle: &Bundle) -> String {
    match &bundle.call {
        Call::CInterface(_) => format!("#include \"tvmgen_{}.h\"\n", bundle.model.name.to_ascii_lowercase()),
        Call::Packed => "#include <tvm/runtime/c_runtime_api.h>\n".into(),
        Call::Graph { .. } => "#include <tvm/runtime/crt/crt.h>\n#include <tvm/runtime/crt/graph_executor.h>\n\
                               #include <tvm/runtime/crt/module.h>\n\
                               #include <tvm/runtime/crt/platform.h>\n"
            .into(),
    }
}

/// `prepare`, `set_tensors` and `invoke`.
pub(super) fn functions(bundle: &Bundle, folder: &Path) -> String {
    let model = bundle.model.name.to_ascii_lowercase();
    match &bundle.call {
        Call::CInterface(header) => allocator(bundle).to_owned() + &c_interface(&model, header, bundle, folder),
        Call::Packed => allocator(bundle).to_owned() + &packed(&bundle.model.name, bundle),
        Call::Graph { graph, parameters, .. } => graph_executor(bundle, &folder.join(graph), &folder.join(parameters)),
    }
}

/// The allocator, unless the code asks for no memory at run time.
fn allocator(bundle: &Bundle) -> &'static str {
    let planned = bundle.origin.is_some() && !bundle.model.executors.contains(&Executor::Graph);
    if planned { "" } else { ALLOCATOR }
}

/// Scratch memory of code that asks for some at run time. A runtime that is linked has its own.
const ALLOCATOR: &str = "
__attribute__((weak)) void* TVMBackendAllocWorkspace(int type, int id, uint64_t bytes, int code, int bits);
__attribute__((weak)) int TVMBackendFreeWorkspace(int type, int id, void* memory);

__attribute__((weak)) void* TVMBackendAllocWorkspace(int type, int id, uint64_t bytes, int code, int bits) {
  unsigned char* const block = (unsigned char*)malloc((size_t)bytes + 64 + sizeof(void*));
  unsigned char* memory = NULL;
  (void)type;
  (void)id;
  (void)code;
  (void)bits;
  if (block != NULL) {
    memory = block + sizeof(void*);
    memory += (64 - (size_t)((uintptr_t)memory % 64)) % 64;
    memcpy(memory - sizeof(void*), &block, sizeof(void*));
  }
  return memory;
}

__attribute__((weak)) int TVMBackendFreeWorkspace(int type, int id, void* memory) {
  void* block;
  (void)type;
  (void)id;
  memcpy(&block, (unsigned char*)memory - sizeof(void*), sizeof(void*));
  free(block);
  return 0;
}
";

/// The call that begins a new stream, for a model with states.
pub(super) fn reset(model: &str, header: &Header) -> Option<String> {
    let argument = match header.reset()? {
        Reset::Pools => "&pools",
        Reset::Everything => "",
    };
    Some(format!("tvmgen_{model}_reset({argument})"))
}

fn c_interface(model: &str, header: &Header, bundle: &Bundle, folder: &Path) -> String {
    let mut text =
        format!("\nstatic struct tvmgen_{model}_inputs inputs;\nstatic struct tvmgen_{model}_outputs outputs;\n");
    let (mut prepare, mut bind) = (String::new(), String::new());
    // No formatting of a String fails.
    if !header.pools.is_empty() {
        let _ = writeln!(text, "static struct tvmgen_{model}_workspace_pools pools;");
    }
    for (number, pool) in header.pools.iter().enumerate() {
        let bytes = header.pool_bytes(pool).unwrap_or_default().max(1);
        let data = header.pool_data(pool).map_or_else(String::new, |data| format!(" = {{ {data} }}"));
        let _ = writeln!(text, "static uint8_t pool{number}[{bytes}] __attribute__((aligned(64))){data};");
        let _ = writeln!(prepare, "  pools.{pool} = pool{number};");
        if header.is_constant(pool) && header.pool_data(pool).is_none() {
            let path = folder.join(bundle.constants_path());
            let path = c_string(path.as_os_str().as_encoded_bytes());
            let read = format!("file == NULL || fread(pool{number}, 1, {bytes}, file) != {bytes}");
            let _ = writeln!(
                prepare,
                "  {{\n    FILE* const file = fopen({path}, \"rb\");\n    if ({read}) {{\n      \
                 fprintf(stderr, \"can't read the constants\\n\");\n      return 1;\n    }}\n    (void)fclose(file);\n  }}"
            );
        }
    }
    let ready = reset(model, header).filter(|_| header.reset() == Some(Reset::Pools)).unwrap_or_else(|| "0".to_owned());
    let pools = if header.pools.is_empty() { "" } else { "&pools" };
    let mut invoke = String::new();
    if header.io_in_pool {
        // The tensors lie in the pool, and may overlap there.
        let _ = writeln!(prepare, "  inputs = tvmgen_{model}_map_inputs(&pools);");
        let _ = writeln!(prepare, "  outputs = tvmgen_{model}_map_outputs(&pools);");
        for (index, port) in bundle.inputs.iter().enumerate() {
            let _ = writeln!(invoke, "  memcpy(inputs.{}, input[{index}].data, input[{index}].bytes);", port.field);
        }
        let _ = writeln!(invoke, "  status = tvmgen_{model}_run({pools});");
        for (index, port) in bundle.outputs.iter().enumerate() {
            let _ = writeln!(invoke, "  memcpy(output[{index}].data, outputs.{}, output[{index}].bytes);", port.field);
        }
    } else {
        for (index, port) in bundle.inputs.iter().enumerate() {
            let _ = writeln!(bind, "  inputs.{} = (void*)input[{index}].data;", port.field);
        }
        for (index, port) in bundle.outputs.iter().enumerate() {
            let _ = writeln!(bind, "  outputs.{} = (void*)output[{index}].data;", port.field);
        }
        let pools = if pools.is_empty() { String::new() } else { format!(", {pools}") };
        let is_rank = bundle.origin.as_ref().is_some_and(|origin| origin.ranks.is_some());
        let transport = if is_rank { ", transport" } else { "" };
        match bundle.origin.as_ref().and_then(|origin| origin.feed) {
            Some(fed) => invoke += &feed(model, bundle, fed, &pools),
            None => {
                let _ = writeln!(invoke, "  status = tvmgen_{model}_run(&inputs, &outputs{pools}{transport});");
            }
        }
    }
    text + &format!(
        "\nstatic int prepare(void) {{\n{prepare}  return {ready};\n}}\n\nstatic void set_tensors(void) {{\n{bind}}}\n\n\
         static int32_t invoke(void) {{\n  int32_t status;\n{invoke}  return status;\n}}\n"
    )
}

/// Statements that give an input to a model row by row.
fn feed(model: &str, bundle: &Bundle, input: usize, pools: &str) -> String {
    let prefix = format!("TVMGEN_{}", model.to_ascii_uppercase());
    let inputs = if bundle.inputs.len() > 1 { ", &inputs" } else { "" };
    let outputs = if bundle.outputs.is_empty() { "" } else { ", &outputs" };
    format!(
        "  struct tvmgen_{model}_feeding feeding;\n  size_t row;\n  (void)inputs;\n  (void)outputs;\n  \
         status = tvmgen_{model}_begin(&feeding{inputs}{outputs}{pools});\n  \
         for (row = 0; status == 0 && row < {prefix}_FEED_ROWS; ++row) {{\n    \
         status = tvmgen_{model}_feed(&feeding, input[{input}].data + row * {prefix}_FEED_ROW_SIZE, 1);\n  }}\n  \
         if (status == 0) {{\n    status = tvmgen_{model}_finish(&feeding);\n  }}\n"
    )
}

/// The type of an element as DLPack has it.
fn element(dtype: DType) -> String {
    let (code, bits) = dtype.dlpack();
    format!("{{ {code}, {bits}, 1 }}")
}

/// Definitions of tensors around buffers, `<what>_tensor`, whose data are still to be set.
fn tensors(what: &str, ports: &[Port]) -> String {
    let mut text = String::new();
    let mut list = Vec::new();
    for (number, Port { ty: TensorType { dtype, shape, .. }, .. }) in ports.iter().enumerate() {
        let mut extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let rank = extents.len();
        if extents.is_empty() {
            extents.push("1".into());
        }
        let _ = writeln!(text, "static int64_t {what}_shape{number}[] = {{ {} }};", extents.join(", "));
        list.push(format!("  {{ NULL, {{ kDLCPU, 0 }}, {rank}, {}, {what}_shape{number}, NULL, 0 }}", element(*dtype)));
    }
    if list.is_empty() {
        list.push("  { NULL, { kDLCPU, 0 }, 0, { 0, 8, 1 }, NULL, NULL, 0 }".into());
    }
    text + &format!("static DLTensor {what}_tensor[] = {{\n{}\n}};\n", list.join(",\n"))
}

fn packed(model: &str, bundle: &Bundle) -> String {
    let (inputs, outputs) = (bundle.inputs.len(), bundle.outputs.len());
    let count = inputs + outputs;
    format!(
        "\nint32_t tvmgen_{model}_run(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, \
         int* out_type_code, void* resource_handle);\n\n{}{}\n\
         static TVMValue values[{}];\nstatic int codes[{}];\n\n\
         static int prepare(void) {{\n  size_t i;\n  \
         for (i = 0; i < {inputs}; ++i) {{\n    values[i].v_handle = &input_tensor[i];\n  }}\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    values[{inputs} + i].v_handle = &output_tensor[i];\n  }}\n  \
         for (i = 0; i < {count}; ++i) {{\n    codes[i] = kTVMDLTensorHandle;\n  }}\n  return 0;\n}}\n\n\
         static void set_tensors(void) {{\n  size_t i;\n  \
         for (i = 0; i < {inputs}; ++i) {{\n    input_tensor[i].data = input[i].data;\n  }}\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    output_tensor[i].data = output[i].data;\n  }}\n}}\n\n\
         static int32_t invoke(void) {{\n  TVMValue result;\n  int result_code = kTVMNullptr;\n  result.v_handle = NULL;\n  \
         return tvmgen_{model}_run(values, codes, {count}, &result, &result_code, NULL);\n}}\n",
        tensors("input", &bundle.inputs),
        tensors("output", &bundle.outputs),
        count.max(1),
        count.max(1),
    )
}

/// A text as a string of C.
fn c_string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b' '..=b'~' if !matches!(byte, b'"' | b'\\' | b'?') => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text + "\""
}

fn graph_executor(bundle: &Bundle, graph: &Path, parameters: &Path) -> String {
    let (inputs, outputs) = (bundle.inputs.len(), bundle.outputs.len());
    let names = bundle.inputs.iter().map(|port| c_string(port.name.as_bytes())).chain(["NULL".into()]);
    let names: Vec<String> = names.collect();
    let (graph, parameters) =
        (c_string(graph.as_os_str().as_encoded_bytes()), c_string(parameters.as_os_str().as_encoded_bytes()));
    format!(
        "{}{}{GRAPH}\
         static int prepare(void) {{\n  return load({graph}, {parameters});\n}}\n\n\
         static void set_tensors(void) {{\n  static const char* const names[] = {{ {} }};\n  size_t i;\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    output_tensor[i].data = output[i].data;\n  }}\n  \
         for (i = 0; i < {inputs}; ++i) {{\n    input_tensor[i].data = input[i].data;\n    \
         TVMGraphExecutor_SetInput(executor, names[i], &input_tensor[i]);\n  }}\n}}\n\n\
         static int32_t invoke(void) {{\n  int32_t i;\n  TVMGraphExecutor_Run(executor);\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    \
         const int status = TVMGraphExecutor_GetOutput(executor, i, &output_tensor[i]);\n    \
         if (status != 0) {{\n      return status;\n    }}\n  }}\n  return 0;\n}}\n",
        tensors("input", &bundle.inputs),
        tensors("output", &bundle.outputs),
        names.join(", "),
    )
}

/// The executor, made of the two files.
const GRAPH: &str = "
static TVMGraphExecutor* executor;

static char* contents(const char* path, size_t* bytes) {
  FILE* const file = fopen(path, \"rb\");
  char* text;
  long length;
  if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (length = ftell(file)) < 0) {
    return NULL;
  }
  rewind(file);
  *bytes = (size_t)length;
  text = (char*)malloc(*bytes + 1);
  if (text != NULL) {
    text[fread(text, 1, *bytes, file)] = 0;
  }
  (void)fclose(file);
  return text;
}

/* Until version 5 of the format, one byte counts the functions of a registry, not two. */
static const TVMModule* operators_module(void) {
  static TVMFuncRegistry registry;
  static TVMModule module;
  const TVMModule* const given = TVMSystemLibEntryPoint();
  const char* end;
  char* names;
  int left;
  if (given == NULL || given->registry->names[1] < 'A') {
    return given;
  }
  end = given->registry->names + 1;
  for (left = (unsigned char)given->registry->names[0]; left > 0; --left) {
    end += strlen(end) + 1;
  }
  names = (char*)calloc((size_t)(end - given->registry->names) + 2, 1);
  if (names == NULL) {
    return NULL;
  }
  names[0] = given->registry->names[0];
  memcpy(names + 2, given->registry->names + 1, (size_t)(end - given->registry->names) - 1);
  registry.names = names;
  registry.funcs = given->registry->funcs;
  module.registry = &registry;
  return &module;
}

static int load(const char* graph_path, const char* parameters_path) {
  static const DLDevice device = { kDLCPU, 0 };
  TVMModuleHandle operators;
  size_t bytes;
  char* const graph = contents(graph_path, &bytes);
  char* const parameters = contents(parameters_path, &bytes);
  if (graph == NULL || parameters == NULL) {
    fprintf(stderr, \"can't read the graph or its parameters\\n\");
    return 1;
  }
  if (TVMPlatformInitialize() != 0 || TVMInitializeRuntime() != 0 ||
      TVMModCreateFromCModule(operators_module(), &operators) != 0) {
    fprintf(stderr, \"can't start the runtime\\n\");
    return 1;
  }
  if (TVMGraphExecutor_Create(graph, operators, &device, &executor) != 0) {
    fprintf(stderr, \"can't make the executor: %s\\n\", TVMGetLastError());
    return 1;
  }
  if (TVMGraphExecutor_LoadParams(executor, parameters, (uint32_t)bytes) != 0) {
    fprintf(stderr, \"can't load the parameters: %s\\n\", TVMGetLastError());
    return 1;
  }
  free(graph);
  free(parameters);
  return 0;
}

";
