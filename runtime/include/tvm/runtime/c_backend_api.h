/*
 * What generated code may call. Code whose memory was planned at compile time, which is all that mlc generates, calls
 * none of it but, where it is for several threads, TVMBackendParallelLaunch; the functions are here for code of other generators that shares the image.
 */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the packed convention; 0 on success. */
typedef int (*TVMBackendPackedCFunc)(TVMValue* args, int* type_codes, int num_args, TVMValue* out_ret_value,
                                     int* out_ret_tcode, void* resource_handle);

/* Tasks of a parallel launch. */
typedef struct {
  void* sync_handle;
  int32_t num_task;
} TVMParallelGroupEnv;

/* One task of a parallel launch; 0 on success. */
typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv* penv, void* cdata);

/*
 * Allocates nbytes of scratch memory, to be freed in reverse order. Calls TVMPlatformAbort when there is none left.
 * The hints say which elements it will hold; they do not change the alignment.
 */
TVM_DLL void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                                       int dtype_bits_hint);

/* Frees memory of TVMBackendAllocWorkspace; 0 on success. */
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr);

/*
 * Runs tasks, num_task of them or fewer, and returns when all have ended: each is a call of flambda with its number, and with their
 * count in the environment. Without a pool of threads there is one task, 0, whatever num_task asks for.
 */
TVM_DLL int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void* cdata, int num_task);

/* Registers a TVMBackendPackedCFunc of the program under a name, as a global function. */
TVM_DLL int TVMBackendRegisterSystemLibSymbol(const char* name, void* ptr);

/* Finds a function for generated code: one of its module, given by handle, or a global one. */
TVM_DLL int TVMBackendGetFuncFromEnv(void* mod_node, const char* func_name, TVMFunctionHandle* out);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_BACKEND_API_H_ */
