/* Small global functions. */
#include <tvm/runtime/crt/internal/common/arguments.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/internal/common/runtime_functions.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/platform.h>

int TVMCrtModuleGetFunction(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code,
                            void* resource) {
  TVMFunctionHandle function = NULL;
  int status = TVMCrtCheckArguments("msi", codes, count);
  (void)resource;
  if (status != kTvmErrorNoError) {
    return status;
  }
  status = TVMModGetFunction(args[0].v_handle, args[1].v_str, args[2].v_int64 != 0, &function);
  result->v_handle = function;
  *result_code = function == NULL ? kTVMNullptr : kTVMPackedFuncHandle;
  /* The caller asks whether there is such a function; that there is none is an answer. */
  return status == kTvmErrorFunctionNameNotFound ? kTvmErrorNoError : status;
}

int TVMCrtMaxPacketSize(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  const tvm_crt_error_t status = TVMCrtCheckArguments("", codes, count);
  (void)args;
  (void)resource;
  return status == kTvmErrorNoError ? TVMCrtReturnInt(TVM_CRT_MAX_PACKET_SIZE_BYTES, result, result_code) : status;
}

int TVMCrtRandomFill(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  const DLTensor* tensor;
  size_t bytes = 0;
  tvm_crt_error_t status = TVMCrtCheckArguments("t", codes, count);
  (void)resource;
  if (status != kTvmErrorNoError) {
    return status;
  }
  tensor = (const DLTensor*)args[0].v_handle;
  if (tensor == NULL || tensor->data == NULL || !TVMTensor_IsCompact(tensor)) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the tensor has no data, or is not compact", NULL);
  }
  status = TVMTensor_Bytes(tensor->shape, tensor->ndim, tensor->dtype, &bytes);
  if (status == kTvmErrorNoError) {
    status = TVMPlatformGenerateRandom((uint8_t*)tensor->data + tensor->byte_offset, bytes);
  }
  result->v_int64 = 0;
  *result_code = kTVMNullptr;
  return status;
}

#if defined(__GNUC__)
/* Platforms define their own where they have something to do. */
__attribute__((weak)) tvm_crt_error_t TVMPlatformBeforeMeasurement(void) { return kTvmErrorNoError; }

__attribute__((weak)) tvm_crt_error_t TVMPlatformAfterMeasurement(void) { return kTvmErrorNoError; }

__attribute__((weak)) tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t* buffer, size_t num_bytes) {
  (void)buffer;
  (void)num_bytes;
  return kTvmErrorFunctionCallNotImplemented;
}
#endif
