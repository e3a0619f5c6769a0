/* The fixture of graph_fixture.h. */
#include "graph_fixture.h"

#include <string.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>

const char fixture_graph[] =
    "{\"unknown\": [1, {\"deep\": [null, -1.5e3, \"]\"]}],\n"
    " \"nodes\": [\n"
    "  {\"op\": \"null\", \"name\": \"x\", \"inputs\": []},\n"
    "  {\"op\": \"tvm_op\", \"name\": \"reshape_nop\", \"inputs\": [[0, 0, 0]],\n"
    "   \"attrs\": {\"func_name\": \"__nop\", \"num_inputs\": \"1\",\n"
    "   \"num_outputs\": \"1\", \"flatten_data\": \"0\"}},\n"
    "  {\"op\": \"null\", \"name\": \"p0\", \"inputs\": []},\n"
    "  {\"op\": \"tvm_op\", \"name\": \"add\", \"attrs\": {\"func_name\": \"add\", \"num_inputs\": \"2\",\n"
    "   \"num_outputs\": \"1\", \"flatten_data\": \"0\", \"hash\": \"1f\"}, \"inputs\": [[1, 0], [2, 0, 0]]},\n"
    "  {\"inputs\": [[3, 0, 0]], \"attrs\": {\"num_outputs\": \"1\", \"num_inputs\": \"1\",\n"
    "   \"func_name\": \"negate\",\n"
    "   \"an_attribute_with_a_very_long_name\": \"\\u0041\"}, \"name\": \"negate\", \"op\": \"tvm_op\"},\n"
    "  {\"op\": \"null\", \"name\": \"p\\u0031\", \"inputs\": [], \"control_deps\": [1]},\n"
    "  {\"op\": \"tvm_op\", \"name\": \"scale\", \"attrs\": {\"func_name\": \"scale\", \"num_inputs\": \"2\",\n"
    "   \"num_outputs\": \"1\"}, \"inputs\": [[4, 0, 0], [5, 0, 0]]},\n"
    "  {\"op\": \"tvm_op\", \"name\": \"split\", \"attrs\": {\"func_name\": \"split\", \"num_inputs\": \"1\",\n"
    "   \"num_outputs\": \"2\"}, \"inputs\": [[6, 0, 0]]},\n"
    "  {\"op\": \"tvm_op\", \"name\": \"reshape_nop_1\", \"inputs\": [[7, 1, 0]],\n"
    "   \"attrs\": {\"func_name\": \"__nop\", \"num_inputs\": \"1\",\n"
    "   \"num_outputs\": \"1\", \"flatten_data\": \"0\"}}],\n"
    " \"arg_nodes\": [0, 2, 5],\n"
    " \"heads\": [[7, 0, 0], [8, 0]],\n"
    " \"attrs\": {\n"
    "  \"dltype\": [\"list_str\", [\"float32\", \"float32\", \"float32\", \"float32\", \"float32\", \"float32\",\n"
    "   \"float32\", \"float32\", \"float32\", \"float32\"]],\n"
    "  \"device_index\": [\"list_int\", [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],\n"
    "  \"other\": [\"size_t\", 7],\n"
    "  \"shape\": [\"list_shape\", [[2, 3], [6], [6], [6], [6], [], [6], [3], [3], [3, 1]]],\n"
    "  \"storage_id\": [\"list_int\", [0, 0, 1, 2, 3, 4, 2, 5, 3, 3]]},\n"
    " \"node_row_ptr\": [0, 1, 2, 3, 4, 5, 6, 7, 9, 10],\n"
    " \"metadata\": {\"signature\": \"none\"}}\n";

/* The elements of a float32 argument; NULL when it is no such thing. */
static float* Elements(const TVMValue* value, int code, size_t* count) {
  const DLTensor* const tensor = (const DLTensor*)value->v_handle;
  size_t bytes = 0;
  if (code != kTVMNDArrayHandle || tensor->dtype.code != kDLFloat || tensor->dtype.bits != 32 ||
      tensor->dtype.lanes != 1 || TVMTensor_Bytes(tensor->shape, tensor->ndim, tensor->dtype, &bytes) != 0) {
    return NULL;
  }
  *count = bytes / sizeof(float);
  return (float*)tensor->data;
}

static int Add(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  size_t sizes[3] = {0, 0, 0};
  size_t i;
  const float* a;
  const float* b;
  float* sum;
  (void)result;
  (void)result_code;
  (void)resource;
  if (count != 3) {
    return 1;
  }
  a = Elements(&args[0], codes[0], &sizes[0]);
  b = Elements(&args[1], codes[1], &sizes[1]);
  sum = Elements(&args[2], codes[2], &sizes[2]);
  if (a == NULL || b == NULL || sum == NULL || sizes[0] != sizes[1] || sizes[0] != sizes[2]) {
    return 2;
  }
  for (i = 0; i < sizes[0]; ++i) {
    sum[i] = a[i] + b[i];
  }
  return 0;
}

static int Scale(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  size_t sizes[3] = {0, 0, 0};
  size_t i;
  const float* a;
  const float* factor;
  float* product;
  (void)result;
  (void)result_code;
  (void)resource;
  if (count != 3) {
    return 1;
  }
  a = Elements(&args[0], codes[0], &sizes[0]);
  factor = Elements(&args[1], codes[1], &sizes[1]);
  product = Elements(&args[2], codes[2], &sizes[2]);
  if (a == NULL || factor == NULL || product == NULL || sizes[1] != 1U || sizes[0] != sizes[2]) {
    return 2;
  }
  for (i = 0; i < sizes[0]; ++i) {
    product[i] = a[i] * *factor;
  }
  return 0;
}

static int Negate(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  size_t sizes[2] = {0, 0};
  size_t i;
  const float* a;
  float* negative;
  (void)result;
  (void)result_code;
  (void)resource;
  if (count != 2) {
    return 1;
  }
  a = Elements(&args[0], codes[0], &sizes[0]);
  negative = Elements(&args[1], codes[1], &sizes[1]);
  if (a == NULL || negative == NULL || sizes[0] != sizes[1]) {
    return 2;
  }
  for (i = 0; i < sizes[0]; ++i) {
    negative[i] = -a[i];
  }
  return 0;
}

static int Split(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  size_t sizes[3] = {0, 0, 0};
  const float* a;
  float* first;
  float* second;
  (void)result;
  (void)result_code;
  (void)resource;
  if (count != 3) {
    return 1;
  }
  a = Elements(&args[0], codes[0], &sizes[0]);
  first = Elements(&args[1], codes[1], &sizes[1]);
  second = Elements(&args[2], codes[2], &sizes[2]);
  if (a == NULL || first == NULL || second == NULL || sizes[1] != sizes[2] || sizes[0] != 2U * sizes[1]) {
    return 2;
  }
  memmove(first, a, sizes[1] * sizeof(float));
  memmove(second, a + sizes[1], sizes[1] * sizeof(float));
  return 0;
}

static int Fail(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  (void)args;
  (void)codes;
  (void)count;
  (void)result;
  (void)result_code;
  (void)resource;
  return 0x1234;
}

static int LookUp(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  static float first[6] = {10, 20, 30, 40, 50, 60};
  static float second[1] = {2};
  (void)resource;
  if (count != 1 || codes[0] != kTVMArgInt) {
    return 1;
  }
  result->v_handle = args[0].v_int64 == 1 ? first : args[0].v_int64 == 4 ? second : NULL;
  *result_code = result->v_handle == NULL ? kTVMNullptr : kTVMOpaqueHandle;
  return 0;
}

static const TVMBackendPackedCFunc functions[] = {Add, Negate, Scale, Split, Fail, LookUp};
static const TVMFuncRegistry registry = {"\005\000add\000negate\000scale\000split\000fail\000", functions};
static const TVMFuncRegistry linked_registry = {
    "\006\000add\000negate\000scale\000split\000fail\000_lookup_linked_param\000", functions};
const TVMModule fixture_module = {&registry};
const TVMModule fixture_linked_module = {&linked_registry};

static void Put(Blob* blob, const void* bytes, size_t count) {
  memcpy(blob->bytes + blob->size, bytes, count);
  blob->size += count;
}

static void PutInteger(Blob* blob, uint64_t value, unsigned bytes) {
  while (bytes > 0U) {
    const uint8_t byte = (uint8_t)(value & 0xffU);
    Put(blob, &byte, 1);
    value >>= 8U;
    --bytes;
  }
}

DLTensor FloatTensor(float* data, int64_t* shape, int ndim) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = ndim;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

void Blob_Names(Blob* blob, const char* const* names) {
  uint64_t count = 0;
  uint64_t i;
  while (names[count] != NULL) {
    ++count;
  }
  blob->size = 0;
  PutInteger(blob, UINT64_C(0xF7E58D4F05049CB7), 8);
  PutInteger(blob, 0, 8);
  PutInteger(blob, count, 8);
  for (i = 0; i < count; ++i) {
    PutInteger(blob, strlen(names[i]), 8);
    Put(blob, names[i], strlen(names[i]));
  }
  PutInteger(blob, count, 8);
}

void Blob_Array(Blob* blob, int32_t ndim, const int64_t* shape, const float* values, size_t count) {
  int32_t i;
  PutInteger(blob, UINT64_C(0xDD5E40F096B4A13F), 8);
  PutInteger(blob, 0, 8);
  PutInteger(blob, 1, 4);
  PutInteger(blob, 0, 4);
  PutInteger(blob, (uint64_t)ndim, 4);
  PutInteger(blob, kDLFloat, 1);
  PutInteger(blob, 32, 1);
  PutInteger(blob, 1, 2);
  for (i = 0; i < ndim; ++i) {
    PutInteger(blob, (uint64_t)shape[i], 8);
  }
  PutInteger(blob, count * sizeof(float), 8);
  Put(blob, values, count * sizeof(float));
}

void Blob_Fixture(Blob* blob) {
  static const char* const names[] = {"p1", "p0", NULL};
  static const int64_t shape[1] = {6};
  static const float values[6] = {1, 2, 3, 4, 5, 6};
  static const float factor[1] = {2};
  Blob_Names(blob, names);
  Blob_Array(blob, 0, NULL, factor, 1);
  Blob_Array(blob, 1, shape, values, 6);
}
