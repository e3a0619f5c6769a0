/* The module of tvm/runtime/crt/aot_executor_module.h. */
#include <string.h>
#include <tvm/runtime/crt/aot_executor.h>
#include <tvm/runtime/crt/aot_executor_module.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/internal/common/arguments.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/module.h>

/* All functions here are of the packed convention. */
#define PACKED(name) \
  static int name(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource)

#define UNUSED(argument) (void)(argument)

static TVMAotExecutor* executor = NULL;

/* Whether arguments are of some kinds, and there is a model. */
static tvm_crt_error_t Check(const char* kinds, const int* codes, int count) {
  if (executor == NULL) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "no executor was made", NULL);
  }
  return TVMCrtCheckArguments(kinds, codes, count);
}

/* An input that is given by number or name; NULL when there is none. */
static DLTensor* Input(const TVMValue* value, int code) {
  int64_t index = -1;
  if (code == kTVMStr) {
    index = TVMAotExecutor_GetInputIndex(executor, value->v_str);
  } else if (code == kTVMArgInt) {
    index = value->v_int64;
  }
  if (index < 0 || index >= TVMAotExecutor_GetNumInputs(executor)) {
    return NULL;
  }
  return &executor->args[index].dl_tensor;
}

PACKED(GetInput) {
  const tvm_crt_error_t status = Check("a", codes, count);
  UNUSED(resource);
  return status == kTvmErrorNoError ? TVMCrtReturnTensor(Input(args, codes[0]), result, result_code) : status;
}

PACKED(GetInputIndex) {
  const tvm_crt_error_t status = Check("s", codes, count);
  UNUSED(resource);
  return status == kTvmErrorNoError
             ? TVMCrtReturnInt(TVMAotExecutor_GetInputIndex(executor, args[0].v_str), result, result_code)
             : status;
}

PACKED(GetInputName) {
  const tvm_crt_error_t status = Check("i", codes, count);
  const char* name = NULL;
  int found;
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  found = args[0].v_int64 < 0 || args[0].v_int64 > INT32_MAX ? -1 : (int)args[0].v_int64;
  found = TVMAotExecutor_GetInputName(executor, found, &name);
  result->v_str = name;
  *result_code = found == kTvmErrorNoError ? kTVMStr : kTVMNullptr;
  return found;
}

PACKED(GetNumInputs) {
  const tvm_crt_error_t status = Check("", codes, count);
  UNUSED(args);
  UNUSED(resource);
  return status == kTvmErrorNoError ? TVMCrtReturnInt(TVMAotExecutor_GetNumInputs(executor), result, result_code)
                                    : status;
}

PACKED(GetNumOutputs) {
  const tvm_crt_error_t status = Check("", codes, count);
  UNUSED(args);
  UNUSED(resource);
  return status == kTvmErrorNoError ? TVMCrtReturnInt(TVMAotExecutor_GetNumOutputs(executor), result, result_code)
                                    : status;
}

/* get_output(number) returns the tensor, get_output(number, tensor) copies it. */
PACKED(GetOutput) {
  const tvm_crt_error_t status = Check(count == 2 ? "it" : "i", codes, count);
  DLTensor* output = NULL;
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (args[0].v_int64 >= 0 && args[0].v_int64 < TVMAotExecutor_GetNumOutputs(executor)) {
    output = &executor->args[TVMAotExecutor_GetNumInputs(executor) + args[0].v_int64].dl_tensor;
  }
  if (output == NULL || (count == 2 && args[1].v_handle == NULL)) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the model has no such output", NULL);
  }
  return count == 2 ? TVMTensor_Copy(output, (DLTensor*)args[1].v_handle)
                    : TVMCrtReturnTensor(output, result, result_code);
}

PACKED(Run) {
  const tvm_crt_error_t status = Check("", codes, count);
  UNUSED(args);
  UNUSED(result);
  UNUSED(result_code);
  UNUSED(resource);
  return status == kTvmErrorNoError ? TVMAotExecutor_Run(executor) : (int)status;
}

PACKED(SetInput) {
  const tvm_crt_error_t status = Check("at", codes, count);
  DLTensor* input;
  UNUSED(result);
  UNUSED(result_code);
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  input = Input(&args[0], codes[0]);
  if (input == NULL || args[1].v_handle == NULL) {
    return TVMCrtError(kTvmErrorExecutorModuleNoSuchInput, "the model has no such input", NULL);
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
  return TVMCrtError(kTvmErrorFunctionCallNotImplemented, "the executor does not do that", NULL);
}

/* The number of functions, as two bytes of this machine. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define COUNT "\000\013"
#else
#define COUNT "\013\000"
#endif

static const TVMBackendPackedCFunc functions[] = {GetInput,     GetInputIndex, NotImplemented, GetInputName,
                                                  GetNumInputs, GetNumOutputs, GetOutput,      NotImplemented,
                                                  Run,          SetInput,      NotImplemented};
static const TVMFuncRegistry registry = {
    COUNT
    "get_input\0get_input_index\0get_input_info\0get_input_name\0get_num_inputs\0get_num_outputs\0get_output\0"
    "load_params\0run\0set_input\0share_params\0",
    functions};
static const TVMModule module = {&registry};

PACKED(Create) {
  tvm_crt_error_t status = TVMCrtCheckArguments("msii", codes, count);
  TVMModuleHandle handle = NULL;
  DLDevice device;
  UNUSED(resource);
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (executor != NULL) {
    return TVMCrtError(kTvmErrorExecutorModuleAlreadyCreated, "there is an executor already", NULL);
  }
  if (args[2].v_int64 != kDLCPU || args[3].v_int64 != 0) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "a model runs on the CPU", NULL);
  }
  device.device_type = kDLCPU;
  device.device_id = 0;
  status = (tvm_crt_error_t)TVMAotExecutor_Create(args[0].v_handle, device, &executor, args[1].v_str);
  if (status == kTvmErrorNoError) {
    status = TVMModCreateFromCModule(&module, &handle);
    if (status != kTvmErrorNoError) {
      (void)TVMAotExecutor_Release(executor, device);
      executor = NULL;
    }
  }
  result->v_handle = handle;
  *result_code = handle == NULL ? kTVMNullptr : kTVMModuleHandle;
  return status;
}

tvm_crt_error_t TVMAotExecutorModule_Register(void) {
  const TVMBackendPackedCFunc function = Create;
  void* pointer;
  memcpy(&pointer, &function, sizeof(pointer));
  return (tvm_crt_error_t)TVMFuncRegisterGlobal("tvm.aot_executor.create", pointer, 0);
}
