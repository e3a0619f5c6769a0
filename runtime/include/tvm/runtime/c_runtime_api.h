/*
 * The C types of microTVM's runtime interface: values, type codes and devices. Generated code includes this header for
 * TVM_DLL and, where it is called through the packed convention, for TVMValue. The functions are in the library common;
 * code of the C interface calls none of them.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

/* Marks a function that other object files, or other shared objects, call. */
#ifndef TVM_DLL
#if defined(_WIN32) && defined(TVM_EXPORTS)
#define TVM_DLL __declspec(dllexport)
#elif defined(_WIN32) && defined(TVM_IMPORTS)
#define TVM_DLL __declspec(dllimport)
#elif defined(__GNUC__)
#define TVM_DLL __attribute__((visibility("default")))
#else
#define TVM_DLL
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t tvm_index_t;

/* Type codes of arguments of the packed convention. */
typedef enum {
  kTVMArgInt = kDLInt,
  kTVMArgFloat = kDLFloat,
  kTVMOpaqueHandle = 3U,
  kTVMNullptr = 4U,
  kTVMDataType = 5U,
  kDLDevice = 6U,
  kTVMDLTensorHandle = 7U,
  kTVMObjectHandle = 8U,
  kTVMModuleHandle = 9U,
  kTVMPackedFuncHandle = 10U,
  kTVMStr = 11U,
  kTVMBytes = 12U,
  kTVMNDArrayHandle = 13U,
  kTVMObjectRValueRefArg = 14U
} TVMArgTypeCode;

/* One argument of the packed convention; its type code says which member holds it. */
typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

/* Bytes of a given number: an argument of type kTVMBytes points at one. */
typedef struct {
  const char* data;
  size_t size;
} TVMByteArray;

/* A module or function: an index in disguise, never to be dereferenced. NULL is none. */
typedef void* TVMModuleHandle;
typedef void* TVMFunctionHandle;
typedef void* TVMRetValueHandle;
typedef void* TVMStreamHandle;
typedef DLTensor* TVMArrayHandle;

/* Remembers a text as that of the last error: a copy of its first 1023 bytes. */
TVM_DLL void TVMAPISetLastError(const char* message);

/* The text of the last error, an empty string when there was none. */
TVM_DLL const char* TVMGetLastError(void);

/*
 * Calls a function of the packed convention. The result's code is kTVMNullptr when the function sets none.
 * Returns 0, or what the function returned.
 */
TVM_DLL int TVMFuncCall(TVMFunctionHandle func, TVMValue* arg_values, int* type_codes, int num_args, TVMValue* ret_val,
                        int* ret_type_code);

/* Finds a global function; *out is NULL, and the result still 0, when there is none of that name. */
TVM_DLL int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out);

/* Registers a TVMBackendPackedCFunc as a global function, in the place of an older one if override is not 0. */
TVM_DLL int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle f, int override_existing);

/* Functions are not counted: nothing to do. */
TVM_DLL int TVMFuncFree(TVMFunctionHandle func);

/* Finds a function of a module; kTvmErrorFunctionNameNotFound when it has none of that name. Modules import nothing. */
TVM_DLL int TVMModGetFunction(TVMModuleHandle mod, const char* func_name, int query_imports, TVMFunctionHandle* out);

/* Forgets a module, so that another one can take its place. The system library stays. */
TVM_DLL int TVMModFree(TVMModuleHandle mod);

/* Frees the bytes that a function returned. */
TVM_DLL int TVMByteArrayFree(TVMByteArray* arr);

/* Allocates memory for tensors from the platform; the alignment asked for must be one that the platform keeps. */
TVM_DLL int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint,
                                    void** out_data);
TVM_DLL int TVMDeviceFreeDataSpace(DLDevice dev, void* ptr);

/* Copies the elements of a tensor into another one of the same size. */
TVM_DLL int TVMDeviceCopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream);

/* Work is done when a call returns: nothing to wait for. */
TVM_DLL int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
