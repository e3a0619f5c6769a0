/*
 * Functions of the packed convention together with their arguments. Large: two lists of TVM_CRT_MAX_ARGS values each.
 */
#ifndef TVM_RUNTIME_CRT_PACKED_FUNC_H_
#define TVM_RUNTIME_CRT_PACKED_FUNC_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type that a text such as "int8" or "float32x4" names; one of 0 bits when it names none. "" is a handle. */
DLDataType String2DLDataType(const char* s);

/* Arguments or results with their type codes. */
typedef struct TVMArgs {
  TVMValue values[TVM_CRT_MAX_ARGS];
  int tcodes[TVM_CRT_MAX_ARGS];
  uint32_t values_count;
} TVMArgs;

/* Copies arguments; those beyond TVM_CRT_MAX_ARGS are left out. */
TVMArgs TVMArgs_Create(TVMValue* values, uint32_t* tcodes, uint32_t values_count);

/* The module that an argument is; NULL when it is none. */
TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs* args, size_t index);

/* A function with the arguments of its next call and the results of its last one. */
typedef struct TVMPackedFunc {
  char name[200];
  TVMFunctionHandle fexec;
  TVMArgs args;
  TVMArgs ret_value;
  void (*Call)(struct TVMPackedFunc* pf);
  void (*SetArgs)(struct TVMPackedFunc* pf, const struct TVMArgs* args);
} TVMPackedFunc;

/* Finds a global function, or one of a module; 0 on success. */
int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc* pf, const char* name, const TVMArgs* args);
int TVMPackedFunc_InitModuleFunc(TVMPackedFunc* pf, TVMModuleHandle module, const char* name, const TVMArgs* args);

/* Calls the function. Its result is ret_value, without values when the call failed (TVMGetLastError says why). */
void TVMPackedFunc_Call(TVMPackedFunc* pf);

/* Sets the arguments of the next call. */
void TVMPackedFunc_SetArgs(TVMPackedFunc* pf, const TVMArgs* args);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PACKED_FUNC_H_ */
