//! Calls by the packed convention, and the scratch memory that such functions ask for.

use super::signature::parameters;
use crate::lower::ExternRoutine;
use mlc_ir::{DType, TensorType};
use std::fmt::Write;

/// What the functions below include.
pub(super) const HEADERS: &str =
    "\n#include \"tvm/runtime/c_backend_api.h\"\n#include \"tvm/runtime/c_runtime_api.h\"\n";

/// An allocator over the memory that the arena has for the function at hand. The symbols are weak, so that a runtime with an allocator of its own can be linked, and that
/// several models can be: they take turns with it.
pub(super) const ALLOCATOR: &str = r#"
#if defined(__GNUC__)
#define MLC_WEAK __attribute__((weak))
#else
#define MLC_WEAK
#endif

extern uint8_t *tvmgen_scratch_next;
extern uint8_t *tvmgen_scratch_end;
MLC_WEAK uint8_t *tvmgen_scratch_next;
MLC_WEAK uint8_t *tvmgen_scratch_end;

MLC_WEAK void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                                        int dtype_bits_hint) {
  uint8_t *const memory = tvmgen_scratch_next;
  const size_t left = memory == NULL ? 0 : (size_t)(tvmgen_scratch_end - memory);
  (void)device_type;
  (void)device_id;
  (void)dtype_code_hint;
  (void)dtype_bits_hint;
  if (nbytes > left || ((size_t)nbytes + 15) / 16 * 16 > left) {
    return NULL;
  }
  tvmgen_scratch_next = memory + ((size_t)nbytes + 15) / 16 * 16;
  return memory;
}

MLC_WEAK int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr) {
  (void)device_type;
  (void)device_id;
  tvmgen_scratch_next = (uint8_t *)ptr;
  return 0;
}
"#;

/// Code and bits of a data type as DLPack has them.
fn dlpack_type(dtype: DType) -> (u8, usize) {
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::Bf16 => 4,
    };
    (code, if dtype == DType::Bool { 1 } else { 8 * dtype.size() })
}

/// Who gives such functions their scratch memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scratch {
    /// The allocator of the kernels' file, from the arena.
    Arena,
    /// The same, but for the graph executor, which leaves that to its runtime.
    ArenaOrRuntime,
    /// The runtime.
    Runtime,
}

/// The C function around a call: it takes plain pointers and makes tensors of them.
pub(super) fn function(code: &ExternRoutine, scratch: Scratch) -> String {
    let ExternRoutine { name, comment, op, .. } = code;
    let symbol = &op.symbol;
    let (inputs, count) = (op.operands.len(), op.operands.len() + op.results.len());
    let prototype = format!(
        "int32_t {symbol}(\n    void *args, int32_t *arg_type_ids, int32_t num_args, void *out_ret_value, \
         int32_t *out_ret_tcode,\n    void *resource_handle)"
    );
    let mut text = format!(
        "{prototype};\n\n{comment}static int32_t {name}(\n    {}) {{\n  DLTensor tensor[{count}];\n  \
         TVMValue value[{count}];\n  int32_t code[{count}];\n  TVMValue result;\n  int32_t result_code = kTVMNullptr;\n",
        parameters(op).join(",\n    ")
    );
    let types: Vec<&TensorType> = op.operands.iter().chain(&op.results).collect();
    // No formatting of a String fails.
    for (number, ty) in types.iter().enumerate() {
        let mut extents: Vec<String> = ty.shape.iter().map(ToString::to_string).collect();
        if extents.is_empty() {
            extents.push("1".into());
        }
        let _ = writeln!(text, "  int64_t shape{number}[{}] = {{{}}};", extents.len(), extents.join(", "));
    }
    text += "  int k;\n";
    for (number, ty) in types.iter().enumerate() {
        let data = match number.checked_sub(inputs) {
            None => format!("(void *)(uintptr_t)x{number}"),
            Some(result) => format!("y{result}"),
        };
        let (kind, bits) = dlpack_type(ty.dtype);
        let _ = write!(
            text,
            "  tensor[{number}].data = {data};\n  tensor[{number}].ndim = {};\n  tensor[{number}].dtype.code = {kind};\n  \
             tensor[{number}].dtype.bits = {bits};\n  tensor[{number}].shape = shape{number};\n",
            ty.rank()
        );
    }
    text += &format!(
        "  for (k = 0; k < {count}; ++k) {{\n    tensor[k].device.device_type = kDLCPU;\n    \
         tensor[k].device.device_id = 0;\n    tensor[k].dtype.lanes = 1;\n    tensor[k].strides = NULL;\n    \
         tensor[k].byte_offset = 0;\n    value[k].v_handle = &tensor[k];\n    code[k] = kTVMDLTensorHandle;\n  }}\n  \
         result.v_handle = NULL;\n"
    );
    text += &match (scratch, op.workspace) {
        (Scratch::Runtime, 0) => String::new(),
        (Scratch::Runtime, _) => "  (void)scratch;\n".to_owned(),
        (_, 0) => "  tvmgen_scratch_next = NULL;\n  tvmgen_scratch_end = NULL;\n".to_owned(),
        (Scratch::Arena, bytes) => {
            format!("  tvmgen_scratch_next = scratch;\n  tvmgen_scratch_end = scratch + {bytes};\n")
        }
        (Scratch::ArenaOrRuntime, bytes) => format!(
            "  tvmgen_scratch_next = scratch;\n  tvmgen_scratch_end = scratch == NULL ? NULL : scratch + {bytes};\n"
        ),
    };
    text + &format!("  return {symbol}(value, code, {count}, &result, &result_code, NULL);\n}}\n")
}
