//! Calls of functions that an archive brought along, by the packed convention, and the scratch memory that they ask for.

use crate::execution::Execution;
use crate::lower::{ExternRoutine, Program, Routine};
use crate::module::SourceFile;
use indexmap::IndexMap;
use mlc_ir::ops::{CFile, CallConvention};
use mlc_ir::{Code, DType, Diagnostic, Location, TensorType};
use std::fmt::Write;

/// What the kernels' file needs before functions that call others: headers, and an allocator over the memory that the arena has
/// for the function at hand. The symbols are weak, so that a runtime with an allocator of its own can be linked, and that
/// several models can be: they take turns with it.
const ALLOCATOR: &str = r#"
#include "tvm/runtime/c_backend_api.h"
#include "tvm/runtime/c_runtime_api.h"

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

fn routines(program: &Program) -> impl Iterator<Item = &ExternRoutine> {
    program.steps.iter().filter_map(|step| match &step.routine {
        Routine::Extern(code) => Some(&**code),
        _ => None,
    })
}

/// Checks that the program's functions of archives, if it has some, can be called.
///
/// # Errors
/// When a graph executor would call them, whose functions have no arena to give to others.
pub(super) fn check(program: &Program, execution: Execution) -> Result<(), Diagnostic> {
    match routines(program).next() {
        Some(code) if execution.graph => {
            let message = "functions of archives are compiled for the executor 'aot' only";
            Err(fault(code, Code::TargetLimit, message))
        }
        _ => Ok(()),
    }
}

/// The allocator, if the program calls functions of archives.
pub(super) fn allocator(program: &Program) -> &'static str {
    if routines(program).next().is_some() { ALLOCATOR } else { "" }
}

/// The C files of all functions, each once. Those of packed functions, which archives number, get the model's name in front.
///
/// # Errors
/// When one isn't text, or two of one name differ.
pub(super) fn sources(program: &Program, model: &str) -> Result<Vec<SourceFile>, Vec<Diagnostic>> {
    let mut files: IndexMap<String, &CFile> = IndexMap::new();
    for code in routines(program) {
        for file in &code.sources {
            let name = match code.convention {
                CallConvention::Packed => format!("{model}_{}", &*file.name),
                CallConvention::Unpacked => file.name.to_string(),
            };
            if *files.entry(name).or_insert(file) != file {
                let message = format!("two C files of the model have the name '{}' and differ", &*file.name);
                return Err(vec![fault(code, Code::DuplicateDefinition, message)]);
            }
        }
    }
    let text = |(name, file): (String, &CFile)| {
        let text = String::from_utf8(file.text.bytes().to_vec()).map_err(|_| {
            let message = format!("the C file '{name}' of the model isn't UTF-8");
            vec![Diagnostic::error(Code::VariantUnsupported, Location::default(), message)]
        })?;
        Ok(SourceFile { name, text })
    };
    files.into_iter().map(text).collect()
}

/// A fault of a call.
fn fault(code: &ExternRoutine, kind: Code, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(kind, Location::default().at_operator("extern", code.symbol.clone()), message)
}

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

/// The C function around a call: it takes plain pointers and makes tensors of them.
pub(super) fn function(code: &ExternRoutine) -> String {
    let ExternRoutine { name, comment, symbol, operands, results, workspace, .. } = code;
    let (inputs, count) = (operands.len(), operands.len() + results.len());
    let parameters = (0..inputs).map(|k| format!("const void *x{k}"));
    let parameters = parameters.chain((0..results.len()).map(|k| format!("void *y{k}")));
    let parameters: Vec<String> = parameters.chain((*workspace > 0).then(|| "uint8_t *scratch".to_owned())).collect();
    let prototype = format!(
        "int32_t {symbol}(\n    void *args, int32_t *arg_type_ids, int32_t num_args, void *out_ret_value, \
         int32_t *out_ret_tcode,\n    void *resource_handle)"
    );
    let mut text = format!(
        "{prototype};\n\n{comment}static int32_t {name}(\n    {}) {{\n  DLTensor tensor[{count}];\n  \
         TVMValue value[{count}];\n  int32_t code[{count}];\n  TVMValue result;\n  int32_t result_code = kTVMNullptr;\n",
        parameters.join(",\n    ")
    );
    let types: Vec<&TensorType> = operands.iter().chain(results).collect();
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
    text += &match workspace {
        0 => "  tvmgen_scratch_next = NULL;\n  tvmgen_scratch_end = NULL;\n".to_owned(),
        bytes => format!("  tvmgen_scratch_next = scratch;\n  tvmgen_scratch_end = scratch + {bytes};\n"),
    };
    text + &format!("  return {symbol}(value, code, {count}, &result, &result_code, NULL);\n}}\n")
}
