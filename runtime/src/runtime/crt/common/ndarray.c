/* Tensors: types by name, sizes, copies, memory. */
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/crt/platform.h>

size_t TVMDataType_Bytes(DLDataType dtype) { return ((size_t)dtype.bits * dtype.lanes + 7U) / 8U; }

int TVMDataType_Alike(DLDataType a, DLDataType b) {
  return a.code == b.code && a.lanes == b.lanes && TVMDataType_Bytes(a) == TVMDataType_Bytes(b);
}

/* Reads a number below 65536 and moves the cursor behind it; 0 when there is none. */
static uint32_t ParseNumber(const char** cursor, const char* end) {
  uint32_t value = 0;
  while (*cursor < end && **cursor >= '0' && **cursor <= '9' && value < 65536U) {
    value = value * 10U + (uint32_t)(**cursor - '0');
    ++*cursor;
  }
  return value < 65536U ? value : 0U;
}

tvm_crt_error_t TVMDataType_Parse(const char* text, size_t length, DLDataType* out) {
  static const struct {
    const char* prefix;
    uint8_t code;
    uint8_t bits;
  } kKinds[] = {
      {"int", kDLInt, 0},    {"uint", kDLUInt, 0},          {"float", kDLFloat, 0},
      {"bfloat", kDLBfloat, 0}, {"handle", kDLOpaqueHandle, 64}, {"bool", kDLUInt, 1},
  };
  const char* const end = text + length;
  size_t i;
  for (i = 0; i < sizeof(kKinds) / sizeof(kKinds[0]); ++i) {
    const size_t prefix = strlen(kKinds[i].prefix);
    if (length >= prefix && memcmp(text, kKinds[i].prefix, prefix) == 0) {
      const char* cursor = text + prefix;
      uint32_t bits = kKinds[i].bits;
      uint32_t lanes = 1;
      if (bits == 0U) {
        bits = ParseNumber(&cursor, end);
      }
      if (cursor < end && *cursor == 'x') {
        ++cursor;
        lanes = ParseNumber(&cursor, end);
      }
      if (cursor == end && bits > 0U && bits <= 255U && lanes > 0U) {
        out->code = kKinds[i].code;
        out->bits = (uint8_t)bits;
        out->lanes = (uint16_t)lanes;
        return kTvmErrorNoError;
      }
    }
  }
  return TVMCrtError(kTvmErrorFunctionCallWrongArgType, "no such data type", NULL);
}

DLDataType String2DLDataType(const char* s) {
  DLDataType type = {kDLOpaqueHandle, 64, 1};
  if (*s != '\0' && TVMDataType_Parse(s, strlen(s), &type) != kTvmErrorNoError) {
    type.code = 0;
    type.bits = 0;
    type.lanes = 0;
  }
  return type;
}

tvm_crt_error_t TVMTensor_Bytes(const int64_t* shape, int32_t ndim, DLDataType dtype, size_t* out) {
  size_t bytes = TVMDataType_Bytes(dtype);
  int empty = 0;
  int32_t i;
  if (bytes == 0U) {
    return TVMCrtError(kTvmErrorFunctionCallWrongArgType, "the data type has no bits", NULL);
  }
  for (i = 0; i < ndim; ++i) {
    if (shape[i] < 0) {
      return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "an extent is negative", NULL);
    }
    if (shape[i] == 0) {
      empty = 1;
    } else if ((uint64_t)shape[i] > (uint64_t)(SIZE_MAX / 2U) / bytes) {
      return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the tensor is larger than the address space", NULL);
    } else {
      bytes *= (size_t)shape[i];
    }
  }
  *out = empty ? 0U : bytes;
  return kTvmErrorNoError;
}

int TVMTensor_IsCompact(const DLTensor* tensor) {
  int64_t expected = 1;
  int32_t i;
  if (tensor->strides == NULL) {
    return 1;
  }
  for (i = tensor->ndim - 1; i >= 0; --i) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != expected) {
      return 0;
    }
    expected *= tensor->shape[i];
  }
  return 1;
}

tvm_crt_error_t TVMTensor_Copy(const DLTensor* from, DLTensor* to) {
  size_t from_bytes = 0;
  size_t to_bytes = 0;
  tvm_crt_error_t status = TVMTensor_Bytes(from->shape, from->ndim, from->dtype, &from_bytes);
  if (status == kTvmErrorNoError) {
    status = TVMTensor_Bytes(to->shape, to->ndim, to->dtype, &to_bytes);
  }
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (!TVMDataType_Alike(from->dtype, to->dtype)) {
    return TVMCrtError(kTvmErrorFunctionCallWrongArgType, "the tensors have different types", NULL);
  }
  if (from_bytes != to_bytes || !TVMTensor_IsCompact(from) || !TVMTensor_IsCompact(to)) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the tensors have different sizes, or gaps", NULL);
  }
  if (from->data == NULL || to->data == NULL) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "a tensor has no data", NULL);
  }
  memmove((uint8_t*)to->data + to->byte_offset, (const uint8_t*)from->data + from->byte_offset, from_bytes);
  return kTvmErrorNoError;
}

int TVMNDArray_Create(int32_t ndim, const int64_t* shape, DLDataType dtype, DLDevice dev, TVMNDArray* array) {
  size_t bytes = 0;
  void* memory = NULL;
  tvm_crt_error_t status;
  memset(array, 0, sizeof(*array));
  if (ndim < 0 || ndim > TVM_CRT_MAX_NDIM) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the tensor has more than TVM_CRT_MAX_NDIM axes", NULL);
  }
  status = TVMTensor_Bytes(shape, ndim, dtype, &bytes);
  if (status == kTvmErrorNoError) {
    /* One more than there are, so that a scalar's shape is no null pointer. */
    status = TVMPlatformMemoryAllocate(((size_t)ndim + 1U) * sizeof(int64_t), dev, &memory);
  }
  if (status != kTvmErrorNoError) {
    return status;
  }
  array->dl_tensor.shape = (int64_t*)memory;
  if (ndim > 0) {
    memcpy(memory, shape, (size_t)ndim * sizeof(int64_t));
  }
  array->dl_tensor.ndim = ndim;
  array->dl_tensor.dtype = dtype;
  array->dl_tensor.device = dev;
  return kTvmErrorNoError;
}

int TVMNDArray_Empty(int32_t ndim, const int64_t* shape, DLDataType dtype, DLDevice dev, TVMNDArray* array) {
  size_t bytes = 0;
  void* memory = NULL;
  int status = TVMNDArray_Create(ndim, shape, dtype, dev, array);
  if (status != kTvmErrorNoError) {
    return status;
  }
  status = TVMTensor_Bytes(shape, ndim, dtype, &bytes);
  if (status == kTvmErrorNoError) {
    status = TVMPlatformMemoryAllocate(bytes == 0U ? 1U : bytes, dev, &memory);
  }
  if (status != kTvmErrorNoError) {
    (void)TVMNDArray_Release(array);
    return status;
  }
  array->dl_tensor.data = memory;
  return kTvmErrorNoError;
}

int64_t TVMNDArray_DataSizeBytes(const TVMNDArray* array) {
  const DLTensor* const tensor = &array->dl_tensor;
  size_t bytes = 0;
  return TVMTensor_Bytes(tensor->shape, tensor->ndim, tensor->dtype, &bytes) == kTvmErrorNoError ? (int64_t)bytes : 0;
}

int TVMNDArray_RandomFill(TVMNDArray* array) {
  return TVMPlatformGenerateRandom((uint8_t*)array->dl_tensor.data, (size_t)TVMNDArray_DataSizeBytes(array));
}

int TVMNDArray_Release(TVMNDArray* array) {
  tvm_crt_error_t status = kTvmErrorNoError;
  if (array->dl_tensor.data != NULL) {
    status = TVMPlatformMemoryFree(array->dl_tensor.data, array->dl_tensor.device);
    array->dl_tensor.data = NULL;
  }
  if (array->dl_tensor.shape != NULL) {
    const tvm_crt_error_t freed = TVMPlatformMemoryFree(array->dl_tensor.shape, array->dl_tensor.device);
    array->dl_tensor.shape = NULL;
    status = status == kTvmErrorNoError ? freed : status;
  }
  return status;
}

int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint, void** out_data) {
  void* memory = NULL;
  tvm_crt_error_t status;
  (void)type_hint;
  *out_data = NULL;
  if (dev.device_type != kDLCPU) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "memory is only on the CPU", NULL);
  }
  status = TVMPlatformMemoryAllocate(nbytes == 0U ? 1U : nbytes, dev, &memory);
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (alignment > 1U && (uintptr_t)memory % alignment != 0U) {
    (void)TVMPlatformMemoryFree(memory, dev);
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the platform's memory is aligned less", NULL);
  }
  *out_data = memory;
  return kTvmErrorNoError;
}

int TVMDeviceFreeDataSpace(DLDevice dev, void* ptr) { return TVMPlatformMemoryFree(ptr, dev); }

int TVMDeviceCopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream) {
  (void)stream;
  return TVMTensor_Copy(from, to);
}

int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream) {
  (void)device_type;
  (void)device_id;
  (void)stream;
  return kTvmErrorNoError;
}
