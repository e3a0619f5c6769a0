/*
 * The C types of microTVM's runtime interface: values, type codes and devices. Generated code includes this header for
 * TVM_DLL and, where it is called through the packed convention, for TVMValue. It declares nothing that must be linked
 * except TVMAPISetLastError.
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

typedef void* TVMModuleHandle;
typedef void* TVMFunctionHandle;
typedef DLTensor* TVMArrayHandle;

/* Remembers the text of the last error; the text is not copied, so it must outlive its use. */
TVM_DLL void TVMAPISetLastError(const char* message);

/* The text of the last error, an empty string when there was none. */
TVM_DLL const char* TVMGetLastError(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
