/*
 * Runs a model that is described by a graph: executor-config/graph/<model>.graph of an archive, its parameters, and a
 * module with its operators. Nothing here aborts; TVMGetLastError tells more than a result's code.
 */
#ifndef TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_

#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMGraphExecutor TVMGraphExecutor;

/*
 * Reads the graph, allocates what its operators write, and finds every operator in the module. The text is not needed
 * any more afterwards. On failure *out_graph_executor is NULL, everything is freed, and the result is not 0.
 */
int TVMGraphExecutor_Create(const char* graph_json, TVMModuleHandle module_handle, const DLDevice* devices,
                            TVMGraphExecutor** out_graph_executor);

/* The position of an input or parameter; -1 when there is none of that name. */
int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor* graph_executor, const char* name);

/* The number of inputs and parameters. */
int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor* graph_executor);

/*
 * Makes the caller's tensor an input. It is not copied: its data must stay until the last run that reads it. An unknown
 * name, another type or another size makes the next run fail.
 */
void TVMGraphExecutor_SetInput(TVMGraphExecutor* graph_executor, const char* name, DLTensor* data_in);

/*
 * Copies parameters out of the content of a parameters file: all of it is checked before the first is copied. Names,
 * types and shapes must be those of the graph. 0 on success.
 */
int TVMGraphExecutor_LoadParams(TVMGraphExecutor* graph_executor, const char* param_blob, const uint32_t param_size);

/*
 * Runs the operators in order; ends at the first that fails. Whether the run went well, TVMGraphExecutor_GetStatus
 * says.
 */
void TVMGraphExecutor_Run(TVMGraphExecutor* graph_executor);

/*
 * The error of the last run, or of an input that was set after it: 0 when there is none. An operator's own code is
 * returned as it is. Before the first run it is 0.
 */
int TVMGraphExecutor_GetStatus(const TVMGraphExecutor* graph_executor);

/* The number of outputs. */
int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor* graph_executor);

/* Copies an output to the caller's tensor, of the same type and size. 0 on success; the error of a run that failed. */
int TVMGraphExecutor_GetOutput(TVMGraphExecutor* graph_executor, const int32_t index, DLTensor* out);

/* The tensors themselves: inputs that were not set get memory of their own. NULL when there is none. */
DLTensor* TVMGraphExecutor_GetInputTensor(TVMGraphExecutor* graph_executor, int32_t index);
DLTensor* TVMGraphExecutor_GetOutputTensor(TVMGraphExecutor* graph_executor, int32_t index);

/* Frees the executor and what it allocated; *graph_executor becomes NULL. */
int TVMGraphExecutor_Release(TVMGraphExecutor** graph_executor);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_GRAPH_EXECUTOR_H_ */
