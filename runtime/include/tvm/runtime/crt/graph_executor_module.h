/* The graph executor as a module, for callers that know only functions of the packed convention. */
#ifndef TVM_RUNTIME_CRT_GRAPH_EXECUTOR_MODULE_H_
#define TVM_RUNTIME_CRT_GRAPH_EXECUTOR_MODULE_H_

#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Registers the global function tvm.graph_executor.create(graph, module, device type, device number). It returns a
 * module with get_input, get_input_index, get_input_info, get_num_inputs, get_num_outputs, get_output, load_params,
 * run, set_input and share_params; one such module can exist at a time. get_input_info and share_params say
 * kTvmErrorFunctionCallNotImplemented.
 */
tvm_crt_error_t TVMGraphExecutorModule_Register(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_GRAPH_EXECUTOR_MODULE_H_ */
