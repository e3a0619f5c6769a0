/*
 * Tables of functions by name. The names are one string: two bytes with the number of functions in the machine's byte
 * order, then every name with its terminator, then one more terminator.
 */
#ifndef TVM_RUNTIME_CRT_FUNC_REGISTRY_H_
#define TVM_RUNTIME_CRT_FUNC_REGISTRY_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of a module and of a function in its module, below 0x8000. */
typedef uint16_t tvm_module_index_t;
typedef uint16_t tvm_function_index_t;

/* A table in read-only memory; funcs has the order of the names. */
typedef struct TVMFuncRegistry {
  const char* names;
  const TVMBackendPackedCFunc* funcs;
} TVMFuncRegistry;

/* A table that grows, up to max_functions. */
typedef struct TVMMutableFuncRegistry {
  TVMFuncRegistry registry;
  size_t max_functions;
} TVMMutableFuncRegistry;

/* What TVMMutableFuncRegistry_Create reckons with for each function: a name of 10 bytes, its terminator, a pointer. */
#define kTvmAverageFunctionNameStrlenBytes ((size_t)10)
#define kTvmAverageFuncEntrySizeBytes (kTvmAverageFunctionNameStrlenBytes + 1U + sizeof(void*))

/* The number of functions. */
uint16_t TVMFuncRegistry_GetNumFuncs(const TVMFuncRegistry* reg);

/* Changes the number of functions in the names, which must be writable; 0. */
int TVMFuncRegistry_SetNumFuncs(const TVMFuncRegistry* reg, const uint16_t num_funcs);

/* The first name; the others follow it. */
const char* TVMFuncRegistry_Get0thFunctionName(const TVMFuncRegistry* reg);

/* Finds a function's number by its name: kTvmErrorFunctionNameNotFound when there is none. */
tvm_crt_error_t TVMFuncRegistry_Lookup(const TVMFuncRegistry* reg, const char* name,
                                       tvm_function_index_t* function_index);

/* The function of a number: kTvmErrorFunctionIndexInvalid when there is none. */
tvm_crt_error_t TVMFuncRegistry_GetByIndex(const TVMFuncRegistry* reg, tvm_function_index_t function_index,
                                           TVMBackendPackedCFunc* out_func);

/*
 * Makes an empty table in a buffer: names grow from its front, pointers take its back. kTvmErrorBufferTooSmall when not
 * even one function fits.
 */
tvm_crt_error_t TVMMutableFuncRegistry_Create(TVMMutableFuncRegistry* reg, uint8_t* buffer,
                                              size_t buffer_size_bytes);

/*
 * Adds a function. One of that name is replaced if override_existing is not 0, and else an error,
 * kTvmErrorFunctionAlreadyDefined. kTvmErrorFunctionRegistryFull when there is no room.
 */
tvm_crt_error_t TVMMutableFuncRegistry_Set(TVMMutableFuncRegistry* reg, const char* name, TVMBackendPackedCFunc func,
                                           int override_existing);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_FUNC_REGISTRY_H_ */
