/*
 * Runs a model that was compiled ahead of time with the packed interface. Models of the C interface are called directly
 * and need none of this.
 */
#ifndef TVM_RUNTIME_CRT_AOT_EXECUTOR_H_
#define TVM_RUNTIME_CRT_AOT_EXECUTOR_H_

#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/metadata_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMMetadata TVMMetadata;

/* A model with its tensors: args are the inputs, then the outputs. Their data is the caller's to fill and to read. */
typedef struct TVMAotExecutor {
  const TVMMetadata* metadata;
  TVMNDArray* args;
  int64_t num_args;
  TVMModuleHandle module_handle;
  DLDevice device;
} TVMAotExecutor;

/*
 * Finds tvmgen_<module_name>_get_c_metadata in a module, checks what it says, and allocates every input and output. On
 * failure *executor is NULL, everything is freed, and the result is not 0.
 */
int TVMAotExecutor_Create(TVMModuleHandle module_handle, const DLDevice device, TVMAotExecutor** executor,
                          const char* module_name);

/* Frees the executor and its tensors. 0 on success. */
int TVMAotExecutor_Release(TVMAotExecutor* executor, const DLDevice device);

/* The numbers of inputs and outputs. */
int TVMAotExecutor_GetNumInputs(TVMAotExecutor* executor);
int TVMAotExecutor_GetNumOutputs(TVMAotExecutor* executor);

/* The position of an input; -1 when there is none of that name. */
int TVMAotExecutor_GetInputIndex(TVMAotExecutor* executor, const char* name);

/* The name of an input; kTvmErrorExecutorModuleNoSuchInput when there is none of that number. */
int TVMAotExecutor_GetInputName(TVMAotExecutor* executor, int index, const char** name);

/* Runs the model: 0, or what its entry point returned. */
int TVMAotExecutor_Run(TVMAotExecutor* executor);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_AOT_EXECUTOR_H_ */
