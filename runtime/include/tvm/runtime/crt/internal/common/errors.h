/* Errors with a text. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_COMMON_ERRORS_H_
#define TVM_RUNTIME_CRT_INTERNAL_COMMON_ERRORS_H_

#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Remembers "text" or, with a name that is not NULL, "text: 'name'" as the last error; returns the code. */
tvm_crt_error_t TVMCrtError(tvm_crt_error_t code, const char* text, const char* name);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_COMMON_ERRORS_H_ */
