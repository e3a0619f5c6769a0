/* The module of tvm/runtime/crt/graph_executor_module.h. */
#include <string.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/graph_executor_module.h>
#include <tvm/runtime/crt/internal/common/arguments.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/module.h>

/* All functions here are of the packed convention. */
#define PACKED(name) \
  static int name(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource)

#define UNUSED(argument) (void)(argument)

static TVMGraphExecutor* graph = NULL;

/* Whether arguments are of some kinds, and there is a graph. */
static tvm_crt_error_t Check(const char* kinds, const int* codes, int count) {
  if (graph == NULL) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "no graph executor was made", NULL);
  }
  return TVMCrtCheckArguments(kinds, codes, count);
}

/* The position of an input that is given by number or name; -1 when there is none. */
static int32_t Position(const TVMValue* value, int code) {
  if (code == kTVMStr) {
    return TVMGraphExecutor_GetInputIndex(graph, value->v_str);
  }
  if (code == kTVMArgInt && value->v_int64 >= 0 && value->v_int64 < TVMGraphExecutor_GetNumInputs(graph)) {
    return (int32_t)value->v_int64;
  }
  return -1;
}

PACKED(GetInput) {
  const tvm_crt_error_t status = Check("a", codes, count);
  UNUSED(resource);
  return status == kTvmErrorNoError
             ? TVMCrtReturnTensor(TVMGraphExecutor_GetInputTensor(graph, Position(args, codes[0])), result, result_code)
             : status;
}

PACKED(GetInputIndex) {
  const tvm_crt_error_t status = Check("s", codes, count);
  UNUSED(resource);
  return status == kTvmErrorNoError ? TVMCrtReturnInt(Position(args, codes[0]), result, result_code) : status;
}

PACKED(GetNumInputs) {
  const tvm_crt_error_t status = Check("", codes, count);
  UNUSED(args);
  UNUSED(resource);
  return status == kTvmErrorNoError ? TVMCrtReturnInt(TVMGraphExecutor_GetNumInputs(graph), result, result_code)
                                    : status;
}

PACKED(GetNumOutputs) {
  const tvm_crt_error_t status = Check("", codes, count);
  UNUSED(args);
  UNUSED(resource);
  return status == kTvmErrorNoError ? TVMCrtReturnInt(TVMGraphExecutor_GetNumOutputs(graph), result, result_code)
                                    : status;
}

/* get_output(number) returns the tensor, get_output(number, tensor) copies it. */
PACKED(GetOutput) {
  tvm_crt_error_t status = Check(count == 2 ? "it" : "i", codes, count);
  const int64_t number = status == kTvmErrorNoError ? args[0].v_int64 : -1;
  const int32_t index = number < 0 || number > INT32_MAX ? -1 : (int32_t)number;
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (count == 2) {
    return TVMGraphExecutor_GetOutput(graph, index, (DLTensor*)args[1].v_handle);
  }
  status = (tvm_crt_error_t)TVMGraphExecutor_GetStatus(graph);
  return status == kTvmErrorNoError
             ? TVMCrtReturnTensor(TVMGraphExecutor_GetOutputTensor(graph, index), result, result_code)
             : status;
}

PACKED(LoadParams) {
  const tvm_crt_error_t status = Check("b", codes, count);
  const TVMByteArray* const bytes = status == kTvmErrorNoError ? (const TVMByteArray*)args[0].v_handle : NULL;
  UNUSED(result);
  UNUSED(result_code);
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (bytes == NULL || bytes->size > UINT32_MAX) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the parameters are too long", NULL);
  }
  return TVMGraphExecutor_LoadParams(graph, bytes->data, (uint32_t)bytes->size);
}

PACKED(Run) {
  const tvm_crt_error_t status = Check("", codes, count);
  UNUSED(args);
  UNUSED(result);
  UNUSED(result_code);
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  TVMGraphExecutor_Run(graph);
  return TVMGraphExecutor_GetStatus(graph);
}

/* set_input(name or number, tensor) copies: whoever calls from elsewhere doesn't keep the tensor. */
PACKED(SetInput) {
  tvm_crt_error_t status = Check("at", codes, count);
  DLTensor* input;
  UNUSED(result);
  UNUSED(result_code);
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  input = TVMGraphExecutor_GetInputTensor(graph, Position(&args[0], codes[0]));
  if (input == NULL || args[1].v_handle == NULL) {
    return TVMCrtError(kTvmErrorExecutorModuleNoSuchInput, "the graph has no such input, or no memory for it", NULL);
  }
  return TVMTensor_Copy((const DLTensor*)args[1].v_handle, input);
}

PACKED(NotImplemented) {
  UNUSED(args);
  UNUSED(codes);
  UNUSED(count);
  UNUSED(result);
  UNUSED(result_code);
  UNUSED(resource);
  return TVMCrtError(kTvmErrorFunctionCallNotImplemented, "the graph executor does not do that", NULL);
}

/* The number of functions, as two bytes of this machine. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define COUNT "\000\012"
#else
#define COUNT "\012\000"
#endif

static const TVMBackendPackedCFunc functions[] = {GetInput,      GetInputIndex, NotImplemented, GetNumInputs,
                                                  GetNumOutputs, GetOutput,     LoadParams,     Run,
                                                  SetInput,      NotImplemented};
static const TVMFuncRegistry registry = {
    COUNT
    "get_input\0get_input_index\0get_input_info\0get_num_inputs\0get_num_outputs\0get_output\0load_params\0run\0"
    "set_input\0share_params\0",
    functions};
static const TVMModule module = {&registry};

PACKED(Create) {
  tvm_crt_error_t status = TVMCrtCheckArguments("smii", codes, count);
  TVMModuleHandle handle = NULL;
  DLDevice device;
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (graph != NULL) {
    return TVMCrtError(kTvmErrorExecutorModuleAlreadyCreated, "there is a graph executor already", NULL);
  }
  if (args[2].v_int64 != kDLCPU || args[3].v_int64 != 0) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "a graph runs on the CPU", NULL);
  }
  device.device_type = kDLCPU;
  device.device_id = 0;
  status = (tvm_crt_error_t)TVMGraphExecutor_Create(args[0].v_str, args[1].v_handle, &device, &graph);
  if (status == kTvmErrorNoError) {
    status = TVMModCreateFromCModule(&module, &handle);
    if (status != kTvmErrorNoError) {
      (void)TVMGraphExecutor_Release(&graph);
    }
  }
  result->v_handle = handle;
  *result_code = handle == NULL ? kTVMNullptr : kTVMModuleHandle;
  return status;
}

tvm_crt_error_t TVMGraphExecutorModule_Register(void) {
  const TVMBackendPackedCFunc function = Create;
  void* pointer;
  memcpy(&pointer, &function, sizeof(pointer));
  return (tvm_crt_error_t)TVMFuncRegisterGlobal("tvm.graph_executor.create", pointer, 0);
}
