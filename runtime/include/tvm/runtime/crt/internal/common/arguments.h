/* Checks of arguments of the packed convention, for functions that are called from elsewhere. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_COMMON_ARGUMENTS_H_
#define TVM_RUNTIME_CRT_INTERNAL_COMMON_ARGUMENTS_H_

#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Compares arguments with a text of one letter each: s string, m module, i integer, t tensor, b bytes, a any.
 * kTvmErrorFunctionCallNumArguments or kTvmErrorFunctionCallWrongArgType where they differ.
 */
tvm_crt_error_t TVMCrtCheckArguments(const char* kinds, const int* codes, int count);

/* Sets a result. */
tvm_crt_error_t TVMCrtReturnInt(int64_t value, TVMValue* result, int* result_code);
tvm_crt_error_t TVMCrtReturnTensor(DLTensor* tensor, TVMValue* result, int* result_code);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_COMMON_ARGUMENTS_H_ */
