/* The executor of tvm/runtime/crt/aot_executor.h. */
#include <string.h>
#include <tvm/runtime/crt/aot_executor.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/platform.h>
#if TVM_CRT_DEBUG > 0
#include <tvm/runtime/crt/logging.h>
#endif

/* Looks a function up whose name has three parts. */
static int FindFunction(TVMModuleHandle module, const char* first, const char* second, const char* third,
                        TVMFunctionHandle* function) {
  char name[TVM_CRT_MAX_STRLEN_FUNCTION_NAME];
  const size_t a = strlen(first);
  const size_t b = strlen(second);
  const size_t c = strlen(third);
  if (a >= sizeof(name) || b >= sizeof(name) - a || c >= sizeof(name) - a - b) {
    return TVMCrtError(kTvmErrorBufferTooSmall, "the model's name is too long for TVM_CRT_MAX_STRLEN_FUNCTION_NAME",
                       second);
  }
  memcpy(name, first, a);
  memcpy(name + a, second, b);
  memcpy(name + a + b, third, c + 1U);
  return TVMModGetFunction(module, name, 0, function);
}

/* Whether the tables that are counted are there, and of what can be an argument. */
static tvm_crt_error_t CheckMetadata(const TVMMetadata* metadata) {
  if (metadata == NULL || metadata->version != 1) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the model's metadata is not of version 1", NULL);
  }
  if (metadata->num_inputs < 0 || metadata->num_outputs < 0 || metadata->num_inputs > TVM_CRT_MAX_ARGS ||
      metadata->num_outputs > TVM_CRT_MAX_ARGS - metadata->num_inputs) {
    return TVMCrtError(kTvmErrorFunctionCallNumArguments, "the model has more than TVM_CRT_MAX_ARGS inputs and outputs",
                       metadata->mod_name);
  }
  if ((metadata->num_inputs > 0 && metadata->inputs == NULL) ||
      (metadata->num_outputs > 0 && metadata->outputs == NULL) || metadata->mod_name == NULL) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the model's metadata has gaps", NULL);
  }
  return kTvmErrorNoError;
}

static tvm_crt_error_t GetMetadata(TVMModuleHandle module, const char* module_name, const TVMMetadata** metadata) {
  TVMFunctionHandle function = NULL;
  TVMValue none;
  TVMValue result;
  int none_code = kTVMNullptr;
  int result_code = kTVMNullptr;
  int status = FindFunction(module, "tvmgen_", module_name, "_get_c_metadata", &function);
  if (status != kTvmErrorNoError) {
    return (tvm_crt_error_t)status;
  }
  none.v_handle = NULL;
  result.v_handle = NULL;
  status = TVMFuncCall(function, &none, &none_code, 0, &result, &result_code);
  if (status != kTvmErrorNoError) {
    return (tvm_crt_error_t)status;
  }
  if (result_code != kTVMOpaqueHandle) {
    return TVMCrtError(kTvmErrorFunctionCallWrongArgType, "the model's metadata is no handle", module_name);
  }
  *metadata = (const TVMMetadata*)result.v_handle;
  return CheckMetadata(*metadata);
}

/* Allocates tensors; num_args counts them as they come, so that a failure leaves a whole executor. */
static int AllocateTensors(TVMAotExecutor* executor, const struct TVMTensorInfo* tensors, int64_t count) {
  int64_t i;
  int status = kTvmErrorNoError;
  for (i = 0; status == kTvmErrorNoError && i < count; ++i) {
    const struct TVMTensorInfo* const info = &tensors[i];
    if (info->num_shape < 0 || info->num_shape > TVM_CRT_MAX_NDIM || (info->num_shape > 0 && info->shape == NULL)) {
      return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "a tensor has no shape, or more than TVM_CRT_MAX_NDIM axes",
                         info->name);
    }
    status = TVMNDArray_Empty((int32_t)info->num_shape, info->shape, info->dtype, executor->device,
                              &executor->args[executor->num_args]);
    if (status == kTvmErrorNoError) {
      ++executor->num_args;
    }
  }
  return status;
}

int TVMAotExecutor_Create(TVMModuleHandle module_handle, const DLDevice device, TVMAotExecutor** executor,
                          const char* module_name) {
  const TVMMetadata* metadata = NULL;
  TVMAotExecutor* created;
  void* memory = NULL;
  size_t bytes;
  int status;
  *executor = NULL;
  if (device.device_type != kDLCPU) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "a model runs on the CPU", NULL);
  }
  status = GetMetadata(module_handle, module_name, &metadata);
  if (status != kTvmErrorNoError) {
    return status;
  }
  bytes = sizeof(TVMAotExecutor) + (size_t)(metadata->num_inputs + metadata->num_outputs) * sizeof(TVMNDArray);
  status = TVMPlatformMemoryAllocate(bytes, device, &memory);
  if (status != kTvmErrorNoError) {
    return TVMCrtError((tvm_crt_error_t)status, "there is no memory for the model", module_name);
  }
  memset(memory, 0, bytes);
  created = (TVMAotExecutor*)memory;
  created->metadata = metadata;
  created->args = (TVMNDArray*)(void*)(created + 1);
  created->module_handle = module_handle;
  created->device = device;
  status = AllocateTensors(created, metadata->inputs, metadata->num_inputs);
  if (status == kTvmErrorNoError) {
    status = AllocateTensors(created, metadata->outputs, metadata->num_outputs);
  }
  if (status != kTvmErrorNoError) {
    (void)TVMAotExecutor_Release(created, device);
    return status;
  }
  *executor = created;
  return kTvmErrorNoError;
}

int TVMAotExecutor_Release(TVMAotExecutor* executor, const DLDevice device) {
  int status = kTvmErrorNoError;
  int freed;
  if (executor == NULL) {
    return kTvmErrorNoError;
  }
  while (executor->num_args > 0) {
    freed = TVMNDArray_Release(&executor->args[--executor->num_args]);
    status = status == kTvmErrorNoError ? freed : status;
  }
  freed = TVMPlatformMemoryFree(executor, device);
  return status == kTvmErrorNoError ? freed : status;
}

int TVMAotExecutor_GetNumInputs(TVMAotExecutor* executor) { return (int)executor->metadata->num_inputs; }

int TVMAotExecutor_GetNumOutputs(TVMAotExecutor* executor) { return (int)executor->metadata->num_outputs; }

int TVMAotExecutor_GetInputIndex(TVMAotExecutor* executor, const char* name) {
  const TVMMetadata* const metadata = executor->metadata;
  int i;
  for (i = 0; i < (int)metadata->num_inputs; ++i) {
    if (metadata->inputs[i].name != NULL && strcmp(metadata->inputs[i].name, name) == 0) {
      return i;
    }
  }
  return -1;
}

int TVMAotExecutor_GetInputName(TVMAotExecutor* executor, int index, const char** name) {
  if (index < 0 || index >= (int)executor->metadata->num_inputs) {
    return TVMCrtError(kTvmErrorExecutorModuleNoSuchInput, "the model has no input of that number", NULL);
  }
  *name = executor->metadata->inputs[index].name;
  return kTvmErrorNoError;
}

int TVMAotExecutor_Run(TVMAotExecutor* executor) {
  TVMValue values[TVM_CRT_MAX_ARGS];
  int codes[TVM_CRT_MAX_ARGS];
  TVMFunctionHandle function = NULL;
  TVMValue result;
  int result_code = kTVMNullptr;
  int64_t i;
  const int status = FindFunction(executor->module_handle, executor->metadata->mod_name, "_run", "", &function);
  if (status != kTvmErrorNoError) {
    return status;
  }
  for (i = 0; i < executor->num_args; ++i) {
    values[i].v_handle = &executor->args[i].dl_tensor;
    codes[i] = kTVMDLTensorHandle;
  }
#if TVM_CRT_DEBUG > 0
  LOG_DEBUG("aot executor: %s\n", executor->metadata->mod_name);
#endif
  return TVMFuncCall(function, values, codes, (int)executor->num_args, &result, &result_code);
}
