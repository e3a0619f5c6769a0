/* The global functions that TVMInitializeRuntime registers. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_COMMON_RUNTIME_FUNCTIONS_H_
#define TVM_RUNTIME_CRT_INTERNAL_COMMON_RUNTIME_FUNCTIONS_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of the module that stands for the time evaluator. */
#define kTvmTimeEvaluatorModule 0x7fffU

/* runtime.SystemLib(): the module of TVMSystemLibEntryPoint. */
int TVMCrtSystemLibrary(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource);

/* tvm.rpc.server.ModuleGetFunction(module, name, query_imports): a function, or null. */
int TVMCrtModuleGetFunction(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code,
                            void* resource);

/* tvm.rpc.server.GetCRTMaxPacketSize(): TVM_CRT_MAX_PACKET_SIZE_BYTES. */
int TVMCrtMaxPacketSize(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource);

/* tvm.contrib.random.random_fill(tensor). */
int TVMCrtRandomFill(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource);

/* runtime.RPCTimeEvaluator(module, name, device type, device number, number, repeat, minimum milliseconds, ...). */
int TVMCrtCreateTimeEvaluator(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code,
                              void* resource);

/* What the time evaluator does when it is called: measures the function with the arguments of the call. */
int TVMCrtRunTimeEvaluator(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource);

/* The function handle of the time evaluator. */
TVMFunctionHandle TVMCrtTimeEvaluatorHandle(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_COMMON_RUNTIME_FUNCTIONS_H_ */
