/* The executors behind packed functions, and the ahead-of-time executor. */
#include "expect.h"

#include <tvm/runtime/crt/aot_executor.h>
#include <tvm/runtime/crt/aot_executor_module.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/graph_executor_module.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/packed_func.h>

#include "graph_fixture.h"

static const DLDevice device = {kDLCPU, 0};

/* A model of the packed interface: the sum of its inputs, or an error where the first one is negative. */
static const int64_t shape[1] = {4};
static const struct TVMTensorInfo inputs[2] = {{"a", shape, 1, {kDLFloat, 32, 1}}, {"b", shape, 1, {kDLFloat, 32, 1}}};
static const struct TVMTensorInfo outputs[1] = {{"output", shape, 1, {kDLFloat, 32, 1}}};
static struct TVMMetadata metadata = {1, inputs, 2, outputs, 1, NULL, 0, NULL, 0, "tvmgen_model"};

static int GetMetadata(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  (void)args;
  (void)codes;
  (void)count;
  (void)resource;
  result->v_handle = &metadata;
  *result_code = kTVMOpaqueHandle;
  return 0;
}

static int RunModel(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  const float* const a = (const float*)((const DLTensor*)args[0].v_handle)->data;
  const float* const b = (const float*)((const DLTensor*)args[1].v_handle)->data;
  float* const sum = (float*)((const DLTensor*)args[2].v_handle)->data;
  int i;
  (void)result;
  (void)result_code;
  (void)resource;
  if (count != 3 || codes[0] != kTVMDLTensorHandle || codes[2] != kTVMDLTensorHandle || a[0] < 0.0F) {
    return -1;
  }
  for (i = 0; i < 4; ++i) {
    sum[i] = a[i] + b[i];
  }
  return 0;
}

static const TVMBackendPackedCFunc functions[] = {RunModel, GetMetadata};
static const TVMFuncRegistry registry = {"\002\000tvmgen_model_run\000tvmgen_model_get_c_metadata\000", functions};
static const TVMModule module = {&registry};

/* A packed function with its arguments. */
static TVMValue values[8];
static int codes[8];
static int count;

static void AddInt(int64_t value) {
  values[count].v_int64 = value;
  codes[count++] = kTVMArgInt;
}

static void AddString(const char* value) {
  values[count].v_str = value;
  codes[count++] = kTVMStr;
}

static void AddHandle(void* value, int code) {
  values[count].v_handle = value;
  codes[count++] = code;
}

/* Calls with what was added; NULL for the module means a global function. */
static int Call(TVMModuleHandle in, const char* name, TVMValue* result, int* result_code) {
  TVMFunctionHandle function = NULL;
  const int arguments = count;
  count = 0;
  if (in == NULL) {
    EXPECT_OK(TVMFuncGetGlobal(name, &function));
    EXPECT(function != NULL);
  } else {
    EXPECT_OK(TVMModGetFunction(in, name, 0, &function));
  }
  return TVMFuncCall(function, values, codes, arguments, result, result_code);
}

static int64_t CallInt(TVMModuleHandle in, const char* name) {
  TVMValue result;
  int code = 0;
  EXPECT_OK(Call(in, name, &result, &code));
  EXPECT(code == kTVMArgInt);
  return result.v_int64;
}

static DLTensor* CallTensor(TVMModuleHandle in, const char* name) {
  TVMValue result;
  int code = 0;
  EXPECT_OK(Call(in, name, &result, &code));
  EXPECT(code == kTVMNDArrayHandle);
  return (DLTensor*)result.v_handle;
}

static void ExpectError(TVMModuleHandle in, const char* name, int expected) {
  TVMValue result;
  int code = 0;
  EXPECT_CODE(Call(in, name, &result, &code), expected);
}

static TVMModuleHandle Create(const char* name) {
  TVMValue result;
  int code = 0;
  EXPECT_OK(Call(NULL, name, &result, &code));
  EXPECT(code == kTVMModuleHandle);
  return result.v_handle;
}

static void TestExecutor(TVMModuleHandle model) {
  TVMAotExecutor* executor = NULL;
  const char* name = NULL;
  const int before = test_allocations;
  int allowed;
  int i;
  for (allowed = 0; executor == NULL; ++allowed) {
    test_allocations_left = allowed;
    (void)TVMAotExecutor_Create(model, device, &executor, "model");
    EXPECT(executor != NULL || test_allocations == before);
  }
  test_allocations_left = -1;
  EXPECT(allowed == 8 && executor->num_args == 3);
  EXPECT(TVMAotExecutor_GetNumInputs(executor) == 2 && TVMAotExecutor_GetNumOutputs(executor) == 1);
  EXPECT(TVMAotExecutor_GetInputIndex(executor, "b") == 1 && TVMAotExecutor_GetInputIndex(executor, "output") == -1);
  EXPECT_OK(TVMAotExecutor_GetInputName(executor, 0, &name));
  EXPECT(strcmp(name, "a") == 0);
  EXPECT_CODE(TVMAotExecutor_GetInputName(executor, 2, &name), kTvmErrorExecutorModuleNoSuchInput);
  for (i = 0; i < 4; ++i) {
    ((float*)executor->args[0].dl_tensor.data)[i] = (float)i;
    ((float*)executor->args[1].dl_tensor.data)[i] = 0.5F;
  }
  EXPECT_OK(TVMAotExecutor_Run(executor));
  EXPECT(((const float*)executor->args[2].dl_tensor.data)[3] == 3.5F);
  ((float*)executor->args[0].dl_tensor.data)[0] = -1.0F;
  EXPECT_CODE(TVMAotExecutor_Run(executor), -1);
  EXPECT_OK(TVMAotExecutor_Release(executor, device));
  EXPECT(test_allocations == before);
}

static void TestBadMetadata(TVMModuleHandle model) {
  static const struct TVMTensorInfo deep[1] = {{"a", shape, TVM_CRT_MAX_NDIM + 1, {kDLFloat, 32, 1}}};
  static const struct TVMTensorInfo empty[1] = {{"a", NULL, 1, {kDLFloat, 32, 1}}};
  static const struct TVMTensorInfo untyped[1] = {{"a", shape, 1, {kDLFloat, 0, 1}}};
  const struct TVMMetadata good = metadata;
  const DLDevice other = {kDLCUDA, 0};
  TVMAotExecutor* executor = NULL;
  char name[2 * TVM_CRT_MAX_STRLEN_FUNCTION_NAME];
  const int before = test_allocations;
  metadata.version = 2;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "model"), kTvmErrorFunctionCallInvalidArg);
  metadata = good;
  metadata.num_inputs = TVM_CRT_MAX_ARGS;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "model"), kTvmErrorFunctionCallNumArguments);
  metadata.num_inputs = -1;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "model"), kTvmErrorFunctionCallNumArguments);
  metadata = good;
  metadata.outputs = NULL;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "model"), kTvmErrorFunctionCallInvalidArg);
  metadata.outputs = deep;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "model"), kTvmErrorFunctionCallInvalidArg);
  metadata.outputs = empty;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "model"), kTvmErrorFunctionCallInvalidArg);
  metadata.outputs = untyped;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "model"), kTvmErrorFunctionCallWrongArgType);
  metadata = good;
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, "other"), kTvmErrorFunctionNameNotFound);
  EXPECT_CODE(TVMAotExecutor_Create(model, other, &executor, "model"), kTvmErrorExecutorModuleBadContext);
  memset(name, 'x', sizeof(name));
  name[sizeof(name) - 1U] = '\0';
  EXPECT_CODE(TVMAotExecutor_Create(model, device, &executor, name), kTvmErrorBufferTooSmall);
  EXPECT(executor == NULL && test_allocations == before);
  EXPECT_OK(TVMAotExecutor_Release(NULL, device));
}

static float a_values[4] = {1, 2, 3, 4};
static float b_values[4] = {10, 20, 30, 40};

static void TestAotModule(TVMModuleHandle model) {
  int64_t four[1] = {4};
  int64_t two[2] = {2, 1};
  float copied[4] = {0, 0, 0, 0};
  DLTensor a = FloatTensor(a_values, four, 1);
  DLTensor b = FloatTensor(b_values, four, 1);
  DLTensor out = FloatTensor(copied, four, 1);
  DLTensor small = FloatTensor(copied, two, 2);
  TVMModuleHandle executor;
  TVMValue result;
  int code = 0;
  EXPECT_OK(TVMAotExecutorModule_Register());
  AddHandle(model, kTVMModuleHandle);
  AddString("model");
  AddInt(kDLCUDA);
  AddInt(0);
  ExpectError(NULL, "tvm.aot_executor.create", kTvmErrorExecutorModuleBadContext);
  AddHandle(model, kTVMModuleHandle);
  ExpectError(NULL, "tvm.aot_executor.create", kTvmErrorFunctionCallNumArguments);
  AddHandle(model, kTVMModuleHandle);
  AddString("model");
  AddInt(kDLCPU);
  AddInt(0);
  executor = Create("tvm.aot_executor.create");
  AddHandle(model, kTVMModuleHandle);
  AddString("model");
  AddInt(kDLCPU);
  AddInt(0);
  ExpectError(NULL, "tvm.aot_executor.create", kTvmErrorExecutorModuleAlreadyCreated);
  EXPECT(CallInt(executor, "get_num_inputs") == 2 && CallInt(executor, "get_num_outputs") == 1);
  AddString("b");
  EXPECT(CallInt(executor, "get_input_index") == 1);
  AddInt(1);
  EXPECT_OK(Call(executor, "get_input_name", &result, &code));
  EXPECT(code == kTVMStr && strcmp(result.v_str, "b") == 0);
  AddInt(2);
  ExpectError(executor, "get_input_name", kTvmErrorExecutorModuleNoSuchInput);
  AddString("a");
  AddHandle(&a, kTVMDLTensorHandle);
  ExpectError(executor, "set_input", 0);
  AddInt(1);
  AddHandle(&b, kTVMNDArrayHandle);
  ExpectError(executor, "set_input", 0);
  AddInt(2);
  AddHandle(&b, kTVMNDArrayHandle);
  ExpectError(executor, "set_input", kTvmErrorExecutorModuleNoSuchInput);
  AddInt(1);
  AddHandle(&small, kTVMNDArrayHandle);
  ExpectError(executor, "set_input", kTvmErrorFunctionCallInvalidArg);
  ExpectError(executor, "run", 0);
  AddInt(0);
  AddHandle(&out, kTVMDLTensorHandle);
  ExpectError(executor, "get_output", 0);
  EXPECT(copied[0] == 11.0F && copied[3] == 44.0F);
  AddInt(0);
  EXPECT(((const float*)CallTensor(executor, "get_output")->data)[1] == 22.0F);
  AddInt(1);
  ExpectError(executor, "get_output", kTvmErrorFunctionCallInvalidArg);
  AddString("b");
  EXPECT(((const float*)CallTensor(executor, "get_input")->data)[2] == 30.0F);
  ExpectError(executor, "load_params", kTvmErrorFunctionCallNotImplemented);
  EXPECT_OK(TVMModFree(executor));
}

static void TestGraphModule(TVMModuleHandle operators) {
  float x_values[6] = {1, 1, 1, 1, 1, 10};
  int64_t rows[2] = {2, 3};
  int64_t three[1] = {3};
  float copied[3] = {0, 0, 0};
  DLTensor x = FloatTensor(x_values, rows, 2);
  DLTensor out = FloatTensor(copied, three, 1);
  TVMModuleHandle executor;
  TVMByteArray bytes;
  Blob blob;
  Blob_Fixture(&blob);
  bytes.data = (const char*)blob.bytes;
  bytes.size = blob.size;
  EXPECT_OK(TVMGraphExecutorModule_Register());
  AddString("{");
  AddHandle(operators, kTVMModuleHandle);
  AddInt(kDLCPU);
  AddInt(0);
  ExpectError(NULL, "tvm.graph_executor.create", kTvmErrorFunctionCallInvalidArg);
  AddString(fixture_graph);
  AddHandle(operators, kTVMModuleHandle);
  AddInt(kDLCPU);
  AddInt(0);
  executor = Create("tvm.graph_executor.create");
  EXPECT(CallInt(executor, "get_num_inputs") == 3 && CallInt(executor, "get_num_outputs") == 2);
  AddString("p1");
  EXPECT(CallInt(executor, "get_input_index") == 2);
  AddString("x");
  AddHandle(&x, kTVMDLTensorHandle);
  ExpectError(executor, "set_input", 0);
  AddString("y");
  AddHandle(&x, kTVMDLTensorHandle);
  ExpectError(executor, "set_input", kTvmErrorExecutorModuleNoSuchInput);
  ExpectError(executor, "run", kTvmErrorExecutorModuleNoSuchInput);
  AddHandle(&bytes, kTVMBytes);
  ExpectError(executor, "load_params", 0);
  AddString("params");
  ExpectError(executor, "load_params", kTvmErrorFunctionCallWrongArgType);
  ExpectError(executor, "run", 0);
  AddInt(1);
  AddHandle(&out, kTVMNDArrayHandle);
  ExpectError(executor, "get_output", 0);
  EXPECT(copied[0] == -10.0F && copied[2] == -32.0F);
  AddInt(0);
  EXPECT(((const float*)CallTensor(executor, "get_output")->data)[2] == -8.0F);
  AddInt(-1);
  ExpectError(executor, "get_output", kTvmErrorFunctionCallInvalidArg);
  AddInt(INT64_MAX);
  ExpectError(executor, "get_output", kTvmErrorFunctionCallInvalidArg);
  AddString("x");
  EXPECT(((const float*)CallTensor(executor, "get_input")->data)[5] == 10.0F);
  ExpectError(executor, "share_params", kTvmErrorFunctionCallNotImplemented);
}

int main(void) {
  TVMModuleHandle model = NULL;
  EXPECT_OK(TVMInitializeRuntime());
  EXPECT_OK(TVMModCreateFromCModule(&module, &model));
  TestExecutor(model);
  TestBadMetadata(model);
  TestAotModule(model);
  EXPECT_OK(TVMModFree(model));
  EXPECT_OK(TVMModCreateFromCModule(&fixture_module, &model));
  TestGraphModule(model);
  puts("done");
  return 0;
}
