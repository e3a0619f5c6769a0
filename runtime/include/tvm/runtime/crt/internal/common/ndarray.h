/* Tensors that own their memory, and what can be said of any tensor. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_COMMON_NDARRAY_H_
#define TVM_RUNTIME_CRT_INTERNAL_COMMON_NDARRAY_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that owns its shape and its elements' memory. */
typedef struct TVMNDArray {
  DLTensor dl_tensor;
} TVMNDArray;

/* Bytes of an element: ceil(bits * lanes / 8). */
size_t TVMDataType_Bytes(DLDataType dtype);

/* Whether two types are stored alike: same kind, same bytes, so that bool is uint8. */
int TVMDataType_Alike(DLDataType a, DLDataType b);

/* Reads a type's name of a given length; kTvmErrorFunctionCallWrongArgType when it is none. */
tvm_crt_error_t TVMDataType_Parse(const char* text, size_t length, DLDataType* out);

/*
 * The bytes of a tensor of a shape and type; kTvmErrorFunctionCallInvalidArg for negative extents or when the number
 * doesn't fit, kTvmErrorFunctionCallWrongArgType for a type without bits.
 */
tvm_crt_error_t TVMTensor_Bytes(const int64_t* shape, int32_t ndim, DLDataType dtype, size_t* out);

/* Whether the elements are dense and row-major. */
int TVMTensor_IsCompact(const DLTensor* tensor);

/* Copies the elements of a compact tensor to another one of a type stored alike and of the same size. */
tvm_crt_error_t TVMTensor_Copy(const DLTensor* from, DLTensor* to);

/* Makes an array without memory for elements; its shape is copied. 0 on success. */
int TVMNDArray_Create(int32_t ndim, const int64_t* shape, DLDataType dtype, DLDevice dev, TVMNDArray* array);

/* Makes an array with memory for its elements, whose content is whatever the platform hands out. 0 on success. */
int TVMNDArray_Empty(int32_t ndim, const int64_t* shape, DLDataType dtype, DLDevice dev, TVMNDArray* array);

/* Bytes of the elements. */
int64_t TVMNDArray_DataSizeBytes(const TVMNDArray* array);

/* Fills an array with random bytes of the platform. 0 on success. */
int TVMNDArray_RandomFill(TVMNDArray* array);

/* Frees the elements and the shape of an array that TVMNDArray_Create or TVMNDArray_Empty made. 0 on success. */
int TVMNDArray_Release(TVMNDArray* array);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_COMMON_NDARRAY_H_ */
