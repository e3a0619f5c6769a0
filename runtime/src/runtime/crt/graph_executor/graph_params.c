/*
 * Parameters files. Integers are little-endian and not aligned; data is copied as it is, so the machine must be, too.
 */
#include <string.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/internal/graph_executor/graph_executor.h>

#define LIST_MAGIC UINT64_C(0xF7E58D4F05049CB7)
#define ARRAY_MAGIC UINT64_C(0xDD5E40F096B4A13F)

/* Bytes that are left to read. */
typedef struct {
  const uint8_t* cursor;
  size_t left;
} Bytes;

/* An array of the file; shape and data lie in the file. */
typedef struct {
  DLDataType type;
  uint32_t ndim;
  const uint8_t* shape;
  const uint8_t* data;
  size_t bytes;
} Array;

static tvm_crt_error_t Refuse(const char* text) { return TVMCrtError(kTvmErrorFunctionCallInvalidArg, text, NULL); }

/* Takes bytes off the front; NULL when there are fewer. */
static const uint8_t* Take(Bytes* bytes, uint64_t count) {
  const uint8_t* const start = bytes->cursor;
  if (count > bytes->left) {
    return NULL;
  }
  bytes->cursor += (size_t)count;
  bytes->left -= (size_t)count;
  return start;
}

static uint64_t Integer(const uint8_t* bytes, unsigned count) {
  uint64_t value = 0;
  while (count > 0U) {
    --count;
    value = value << 8U | bytes[count];
  }
  return value;
}

/* Takes an integer of 8 bytes. */
static tvm_crt_error_t TakeInteger(Bytes* bytes, uint64_t* value) {
  const uint8_t* const field = Take(bytes, 8);
  if (field == NULL) {
    return Refuse("the parameters end too early");
  }
  *value = Integer(field, 8);
  return kTvmErrorNoError;
}

static tvm_crt_error_t TakeArray(Bytes* bytes, Array* array) {
  /* Magic, reserved; device type, device number, rank; code, bits, lanes. */
  const uint8_t* const header = Take(bytes, 8 + 8 + 4 + 4 + 4 + 4);
  const uint8_t* size;
  uint64_t length;
  if (header == NULL) {
    return Refuse("the parameters end too early");
  }
  if (Integer(header, 8) != ARRAY_MAGIC) {
    return Refuse("an array of the parameters does not begin as arrays do");
  }
  if (Integer(header + 16, 4) != (uint64_t)kDLCPU) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "an array of the parameters is not for the CPU", NULL);
  }
  array->ndim = (uint32_t)Integer(header + 24, 4);
  array->type.code = header[28];
  array->type.bits = header[29];
  array->type.lanes = (uint16_t)Integer(header + 30, 2);
  if (array->ndim > TVM_CRT_MAX_NDIM) {
    return Refuse("an array of the parameters has more than TVM_CRT_MAX_NDIM axes");
  }
  array->shape = Take(bytes, 8U * (uint64_t)array->ndim);
  size = array->shape == NULL ? NULL : Take(bytes, 8);
  if (size == NULL) {
    return Refuse("the parameters end too early");
  }
  length = Integer(size, 8);
  array->data = Take(bytes, length);
  if (array->data == NULL) {
    return Refuse("the parameters end too early");
  }
  array->bytes = (size_t)length;
  return kTvmErrorNoError;
}

/* Whether two shapes are equal, or both those of a single element without axes and with one. */
static int SameShape(const DLTensor* entry, const Array* array) {
  uint32_t i;
  if (entry->ndim + (int32_t)array->ndim == 1) {
    return (entry->ndim == 1 ? entry->shape[0] : (int64_t)Integer(array->shape, 8)) == 1;
  }
  if ((uint32_t)entry->ndim != array->ndim) {
    return 0;
  }
  for (i = 0; i < array->ndim; ++i) {
    if ((int64_t)Integer(array->shape + 8U * (size_t)i, 8) != entry->shape[i]) {
      return 0;
    }
  }
  return 1;
}

/* Whether an array can be that argument's. */
static tvm_crt_error_t CheckArray(const TVMGraphExecutor* graph, uint32_t entry, const Array* array) {
  const DLTensor* const tensor = &graph->entries[entry];
  size_t bytes = 0;
  tvm_crt_error_t status;
  if (!TVMDataType_Alike(tensor->dtype, array->type)) {
    return TVMCrtError(kTvmErrorFunctionCallWrongArgType, "a parameter has another type than the graph says", NULL);
  }
  if (!SameShape(tensor, array)) {
    return Refuse("a parameter has another shape than the graph says");
  }
  status = TVMTensor_Bytes(tensor->shape, tensor->ndim, tensor->dtype, &bytes);
  if (status == kTvmErrorNoError && bytes != array->bytes) {
    return Refuse("a parameter has another number of bytes than its shape and type say");
  }
  return status;
}

/* Reads the front of a file: the number of names, the names' bytes, and where the arrays begin. */
static tvm_crt_error_t TakeNames(Bytes* file, uint64_t* count, Bytes* names) {
  uint64_t magic = 0;
  uint64_t reserved = 0;
  uint64_t arrays = 0;
  uint64_t i;
  tvm_crt_error_t status = TakeInteger(file, &magic);
  if (status == kTvmErrorNoError) {
    status = TakeInteger(file, &reserved);
  }
  if (status == kTvmErrorNoError) {
    status = TakeInteger(file, count);
  }
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (magic != LIST_MAGIC) {
    return Refuse("the parameters do not begin as a list of arrays does");
  }
  *names = *file;
  for (i = 0; i < *count; ++i) {
    uint64_t length = 0;
    status = TakeInteger(file, &length);
    if (status != kTvmErrorNoError) {
      return status;
    }
    if (Take(file, length) == NULL) {
      return Refuse("the parameters end too early");
    }
  }
  status = TakeInteger(file, &arrays);
  if (status == kTvmErrorNoError && arrays != *count) {
    return Refuse("the parameters have not as many arrays as names");
  }
  return status;
}

/* Checks every array, or copies every one into its argument. */
static tvm_crt_error_t Load(TVMGraphExecutor* graph, Bytes file, int copy) {
  Bytes names = {NULL, 0};
  uint64_t count = 0;
  uint64_t i;
  tvm_crt_error_t status = TakeNames(&file, &count, &names);
  for (i = 0; status == kTvmErrorNoError && i < count; ++i) {
    uint64_t length = 0;
    const char* name;
    Array array = {{0, 0, 0}, 0, NULL, NULL, 0};
    int32_t position;
    uint32_t entry;
    status = TakeInteger(&names, &length);
    if (status == kTvmErrorNoError) {
      status = TakeArray(&file, &array);
    }
    if (status != kTvmErrorNoError) {
      return status;
    }
    name = (const char*)Take(&names, length);
    position = name == NULL ? -1 : TVMGraph_FindArgument(graph, name, (size_t)length);
    if (position < 0) {
      return TVMCrtError(kTvmErrorExecutorModuleNoSuchInput, "a parameter is not in the graph", NULL);
    }
    entry = TVMGraph_ArgumentEntry(graph, position);
    if (!copy) {
      status = CheckArray(graph, entry, &array);
      continue;
    }
    status = TVMGraph_OwnArgument(graph, entry);
    if (status == kTvmErrorNoError) {
      memcpy(graph->entries[entry].data, array.data, array.bytes);
    }
  }
  if (status == kTvmErrorNoError && file.left != 0U) {
    return Refuse("something follows the parameters");
  }
  return status;
}

int TVMGraphExecutor_LoadParams(TVMGraphExecutor* graph_executor, const char* param_blob, const uint32_t param_size) {
  Bytes file;
  tvm_crt_error_t status;
  file.cursor = (const uint8_t*)param_blob;
  file.left = param_size;
  status = Load(graph_executor, file, 0);
  return status == kTvmErrorNoError ? Load(graph_executor, file, 1) : status;
}
