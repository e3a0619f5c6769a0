/* Checks of arguments of the packed convention. */
#include <string.h>
#include <tvm/runtime/crt/internal/common/arguments.h>
#include <tvm/runtime/crt/internal/common/errors.h>

static int Fits(char kind, int code) {
  switch (kind) {
    case 's':
      return code == kTVMStr;
    case 'm':
      return code == kTVMModuleHandle;
    case 'i':
      return code == kTVMArgInt;
    case 't':
      return code == kTVMNDArrayHandle || code == kTVMDLTensorHandle;
    case 'b':
      return code == kTVMBytes;
    default:
      return kind == 'a';
  }
}

tvm_crt_error_t TVMCrtCheckArguments(const char* kinds, const int* codes, int count) {
  int i;
  if (count < 0 || strlen(kinds) != (size_t)count) {
    return TVMCrtError(kTvmErrorFunctionCallNumArguments, "the function takes another number of arguments", NULL);
  }
  for (i = 0; i < count; ++i) {
    if (!Fits(kinds[i], codes[i])) {
      return TVMCrtError(kTvmErrorFunctionCallWrongArgType, "an argument of the function has another type", NULL);
    }
  }
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMCrtReturnInt(int64_t value, TVMValue* result, int* result_code) {
  result->v_int64 = value;
  *result_code = kTVMArgInt;
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMCrtReturnTensor(DLTensor* tensor, TVMValue* result, int* result_code) {
  if (tensor == NULL) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "there is no such tensor", NULL);
  }
  result->v_handle = tensor;
  *result_code = kTVMNDArrayHandle;
  return kTvmErrorNoError;
}
