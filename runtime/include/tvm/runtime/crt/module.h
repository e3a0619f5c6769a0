/* Modules: a table of functions with a handle. */
#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/func_registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A module; it and its registry must outlive their use. */
typedef struct TVMModule {
  const TVMFuncRegistry* registry;
} TVMModule;

/* Gives a module a handle; kTvmErrorFunctionRegistryFull when TVM_CRT_MAX_REGISTERED_MODULES have one. */
tvm_crt_error_t TVMModCreateFromCModule(const TVMModule* mod, TVMModuleHandle* out_handle);

/*
 * The functions that were compiled into the program: defined by the generated code of graph and packed models. Programs
 * without such code that link the library common add platform/no_system_lib/system_lib_stub.c, which returns NULL.
 */
const TVMModule* TVMSystemLibEntryPoint(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_MODULE_H_ */
