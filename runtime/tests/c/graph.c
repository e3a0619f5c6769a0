/* The graph executor: results, and what it refuses, with nothing left allocated. */
#include "expect.h"

#include <tvm/runtime/crt/internal/graph_executor/graph_executor.h>

#include "graph_fixture.h"

static const DLDevice device = {kDLCPU, 0};
static TVMModuleHandle module;

static float x_values[6] = {1, 1, 1, 1, 1, 10};
static int64_t x_shape[2] = {2, 3};

static TVMGraphExecutor* Create(const char* text) {
  TVMGraphExecutor* graph = NULL;
  EXPECT_OK(TVMGraphExecutor_Create(text, module, &device, &graph));
  return graph;
}

static void ExpectOutput(TVMGraphExecutor* graph, int index, float a, float b, float c) {
  float values[3] = {0, 0, 0};
  int64_t shape[1] = {3};
  DLTensor output = FloatTensor(values, shape, 1);
  EXPECT_OK(TVMGraphExecutor_GetOutput(graph, index, &output));
  EXPECT(values[0] == a && values[1] == b && values[2] == c);
}

static void TestRun(void) {
  TVMGraphExecutor* graph = Create(fixture_graph);
  DLTensor x = FloatTensor(x_values, x_shape, 2);
  Blob blob;
  int i;
  Blob_Fixture(&blob);
  EXPECT(TVMGraphExecutor_GetNumInputs(graph) == 3 && TVMGraphExecutor_GetNumOutputs(graph) == 2);
  EXPECT(TVMGraphExecutor_GetInputIndex(graph, "x") == 0 && TVMGraphExecutor_GetInputIndex(graph, "p1") == 2);
  EXPECT(TVMGraphExecutor_GetInputIndex(graph, "p") == -1 && TVMGraphExecutor_GetInputIndex(graph, "") == -1);
  EXPECT_OK(TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size));
  EXPECT_OK(TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size));
  TVMGraphExecutor_SetInput(graph, "x", &x);
  for (i = 0; i < 2; ++i) {
    TVMGraphExecutor_Run(graph);
    EXPECT_OK(TVMGraphExecutor_GetStatus(graph));
    /* The view of the input shows the caller's data. */
    ExpectOutput(graph, 0, -4, -6, -8);
    ExpectOutput(graph, 1, -10, -12, -32);
  }
  x_values[0] = 5;
  TVMGraphExecutor_Run(graph);
  ExpectOutput(graph, 0, -12, -6, -8);
  x_values[0] = 1;
  EXPECT(TVMGraphExecutor_GetOutputTensor(graph, 1)->ndim == 2);
  EXPECT(TVMGraphExecutor_GetOutputTensor(graph, 2) == NULL && TVMGraphExecutor_GetInputTensor(graph, -1) == NULL);
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
  EXPECT(graph == NULL && test_allocations == 0);
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
}

static void TestOwnedInput(void) {
  TVMGraphExecutor* graph = Create(fixture_graph);
  Blob blob;
  Blob_Fixture(&blob);
  EXPECT_OK(TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size));
  TVMGraphExecutor_Run(graph);
  EXPECT_CODE(TVMGraphExecutor_GetStatus(graph), kTvmErrorExecutorModuleNoSuchInput);
  memcpy(TVMGraphExecutor_GetInputTensor(graph, 0)->data, x_values, sizeof(x_values));
  TVMGraphExecutor_Run(graph);
  EXPECT_OK(TVMGraphExecutor_GetStatus(graph));
  ExpectOutput(graph, 1, -10, -12, -32);
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
  EXPECT(test_allocations == 0);
}

static void TestLinked(void) {
  TVMModuleHandle linked = NULL;
  TVMGraphExecutor* graph = NULL;
  DLTensor x = FloatTensor(x_values, x_shape, 2);
  Blob blob;
  EXPECT_OK(TVMModCreateFromCModule(&fixture_linked_module, &linked));
  EXPECT_OK(TVMGraphExecutor_Create(fixture_graph, linked, &device, &graph));
  TVMGraphExecutor_SetInput(graph, "x", &x);
  TVMGraphExecutor_Run(graph);
  ExpectOutput(graph, 0, -22, -42, -62);
  /* Parameters that are loaded replace linked ones, which are never written to. */
  Blob_Fixture(&blob);
  EXPECT_OK(TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size));
  TVMGraphExecutor_Run(graph);
  ExpectOutput(graph, 0, -4, -6, -8);
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
  EXPECT_OK(TVMModFree(linked));
  EXPECT(test_allocations == 0);
}

static void TestBadInputs(void) {
  TVMGraphExecutor* graph = Create(fixture_graph);
  DLTensor x = FloatTensor(x_values, x_shape, 2);
  DLTensor bad;
  int64_t strides[2] = {1, 2};
  float values[6];
  int64_t six[1] = {6};
  Blob blob;
  Blob_Fixture(&blob);
  EXPECT_OK(TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size));
  TVMGraphExecutor_SetInput(graph, "x", &x);
  TVMGraphExecutor_Run(graph);
  EXPECT_OK(TVMGraphExecutor_GetStatus(graph));

  TVMGraphExecutor_SetInput(graph, "y", &x);
  EXPECT_CODE(TVMGraphExecutor_GetStatus(graph), kTvmErrorExecutorModuleNoSuchInput);
  EXPECT(strcmp(TVMGetLastError(), "the graph has no such input: 'y'") == 0);
  TVMGraphExecutor_Run(graph);
  bad = FloatTensor(values, six, 1);
  EXPECT_CODE(TVMGraphExecutor_GetOutput(graph, 0, &bad), kTvmErrorExecutorModuleNoSuchInput);
  TVMGraphExecutor_Run(graph);
  EXPECT_OK(TVMGraphExecutor_GetStatus(graph));
  EXPECT_CODE(TVMGraphExecutor_GetOutput(graph, 0, &bad), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(TVMGraphExecutor_GetOutput(graph, 2, &bad), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(TVMGraphExecutor_GetOutput(graph, -1, &bad), kTvmErrorFunctionCallInvalidArg);

  bad = x;
  bad.dtype.code = kDLInt;
  TVMGraphExecutor_SetInput(graph, "x", &bad);
  EXPECT_CODE(TVMGraphExecutor_GetStatus(graph), kTvmErrorFunctionCallWrongArgType);
  TVMGraphExecutor_Run(graph);
  bad = x;
  bad.ndim = 1;
  TVMGraphExecutor_SetInput(graph, "x", &bad);
  EXPECT_CODE(TVMGraphExecutor_GetStatus(graph), kTvmErrorFunctionCallWrongArgType);
  TVMGraphExecutor_Run(graph);
  EXPECT_CODE(TVMGraphExecutor_GetStatus(graph), kTvmErrorFunctionCallInvalidArg);
  bad = x;
  bad.strides = strides;
  TVMGraphExecutor_SetInput(graph, "x", &bad);
  TVMGraphExecutor_SetInput(graph, "x", NULL);
  TVMGraphExecutor_Run(graph);
  EXPECT_CODE(TVMGraphExecutor_GetStatus(graph), kTvmErrorFunctionCallInvalidArg);
  TVMGraphExecutor_Run(graph);
  ExpectOutput(graph, 0, -4, -6, -8);
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
}

/* Every allocation fails once. */
static void TestNoMemory(void) {
  Blob blob;
  int allowed;
  int done = 0;
  Blob_Fixture(&blob);
  for (allowed = 0; !done; ++allowed) {
    TVMGraphExecutor* graph = NULL;
    int status;
    test_allocations_left = allowed;
    status = TVMGraphExecutor_Create(fixture_graph, module, &device, &graph);
    if (status == 0) {
      status = TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size);
    }
    if (status == 0) {
      status = TVMGraphExecutor_GetInputTensor(graph, 0) == NULL ? (int)kTvmErrorPlatformNoMemory : 0;
    }
    done = status == 0;
    EXPECT(done || status == (int)kTvmErrorPlatformNoMemory);
    EXPECT_OK(TVMGraphExecutor_Release(&graph));
    EXPECT(test_allocations == 0);
  }
  test_allocations_left = -1;
  EXPECT(allowed == 8);
}

/* The graph with the first occurrence of a text replaced. */
static int CreateWith(const char* old, const char* replacement) {
  const char* const found = strstr(fixture_graph, old);
  char* const text = (char*)malloc(strlen(fixture_graph) + strlen(replacement) + 1U);
  TVMGraphExecutor* graph = NULL;
  int status;
  EXPECT(found != NULL);
  memcpy(text, fixture_graph, (size_t)(found - fixture_graph));
  strcpy(text + (found - fixture_graph), replacement);
  strcat(text, found + strlen(old));
  TVMAPISetLastError("");
  status = TVMGraphExecutor_Create(text, module, &device, &graph);
  EXPECT((status == 0) == (graph != NULL));
  EXPECT(status == 0 || TVMGetLastError()[0] != '\0');
  if (status == 0) {
    DLTensor x = FloatTensor(x_values, x_shape, 2);
    Blob blob;
    Blob_Fixture(&blob);
    TVMGraphExecutor_SetInput(graph, "x", &x);
    status = TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size);
    if (status == 0) {
      TVMGraphExecutor_Run(graph);
      status = TVMGraphExecutor_GetStatus(graph);
    }
  }
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
  EXPECT(test_allocations == 0);
  free(text);
  return status;
}

static void TestBadGraphs(void) {
  static const struct {
    const char* old;
    const char* replacement;
    int code;
  } kCases[] = {
      {"\"hash\"", "\"hash\"", kTvmErrorNoError},
      {"\"add\", \"num", "\"fail\", \"num", 0x1234},
      {"\"func_name\": \"add\"", "\"func_name\": \"sum\"", kTvmErrorFunctionNameNotFound},
      {"\"func_name\": \"add\"", "\"func_name\": \"__copy\"", kTvmErrorFunctionCallNotImplemented},
      {"\"func_name\": \"add\",", "", kTvmErrorFunctionCallInvalidArg},
      {"\"num_inputs\": \"2\"", "\"num_inputs\": \"3\"", kTvmErrorFunctionCallInvalidArg},
      {"\"num_inputs\": \"2\"", "\"num_inputs\": \"2x\"", kTvmErrorFunctionCallInvalidArg},
      {"\"num_inputs\": \"2\"", "\"num_inputs\": \"\"", kTvmErrorFunctionCallInvalidArg},
      {"\"num_inputs\": \"2\"", "\"num_inputs\": 2", kTvmErrorFunctionCallInvalidArg},
      {"\"num_outputs\": \"2\"", "\"num_outputs\": \"3\"", kTvmErrorFunctionCallInvalidArg},
      {"\"num_outputs\": \"2\"", "\"num_outputs\": \"999999\"", kTvmErrorFunctionCallNumArguments},
      {"\"flatten_data\": \"0\"", "\"flatten_data\": \"1\"", kTvmErrorFunctionCallNotImplemented},
      {"\"op\": \"null\"", "\"op\": \"nil\"", kTvmErrorFunctionCallInvalidArg},
      {"\"op\": \"null\"", "\"op\": \"tvm_op\"", kTvmErrorFunctionCallInvalidArg},
      {"\"name\": \"x\"", "\"name\": \"\"", kTvmErrorFunctionCallInvalidArg},
      {"[[1, 0], [2", "[[1, 1], [2", kTvmErrorFunctionCallInvalidArg},
      {"[[1, 0], [2", "[[3, 0], [2", kTvmErrorFunctionCallInvalidArg},
      {"[[1, 0], [2", "[[1], [2", kTvmErrorFunctionCallInvalidArg},
      {"[[1, 0], [2", "[[1, 0, 0, 0], [2", kTvmErrorFunctionCallInvalidArg},
      {"[[1, 0], [2", "[[1, -1], [2", kTvmErrorFunctionCallInvalidArg},
      {"[[1, 0], [2", "[[99999999999, 0], [2", kTvmErrorFunctionCallInvalidArg},
      {"[0, 2, 5]", "[0, 2, 4]", kTvmErrorFunctionCallInvalidArg},
      {"[0, 2, 5]", "[0, 2, 9]", kTvmErrorFunctionCallInvalidArg},
      {"[0, 2, 5]", "[0, 2]", kTvmErrorExecutorModuleNoSuchInput},
      {"[8, 0]", "[8, 1]", kTvmErrorFunctionCallInvalidArg},
      {"[8, 0]", "[9, 0]", kTvmErrorFunctionCallInvalidArg},
      {"\"dltype\"", "\"dtype\"", kTvmErrorFunctionCallInvalidArg},
      {"\"list_str\"", "\"list_int\"", kTvmErrorFunctionCallInvalidArg},
      {"[\"list_str\", [", "[\"list_str\", [\"int8\", ", kTvmErrorFunctionCallInvalidArg},
      {"[\"float32\", ", "[\"float99999\", ", kTvmErrorBufferTooSmall},
      {"[\"float32\", ", "[\"quux\", ", kTvmErrorFunctionCallWrongArgType},
      {"[\"float32\", ", "[\"int8\", ", kTvmErrorFunctionCallInvalidArg},
      {"[1, 1, 1,", "[1, 2, 1,", kTvmErrorExecutorModuleBadContext},
      {"\"other\": [\"size_t\", 7]", "\"storage_scope\": [\"list_str\", [\"global\"]]", kTvmErrorNoError},
      {"\"other\": [\"size_t\", 7]", "\"storage_scope\": [\"list_str\", [\"texture\"]]",
       kTvmErrorFunctionCallNotImplemented},
      {"\"other\": [\"size_t\", 7]", "\"shape\": [\"list_shape\", []]", kTvmErrorFunctionCallInvalidArg},
      {"[[2, 3], [6]", "[[2, 3, 1, 1, 1, 1, 1], [6]", kTvmErrorFunctionCallInvalidArg},
      {"[[2, 3], [6]", "[[2, 4], [6]", kTvmErrorFunctionCallInvalidArg},
      {"[6], [3]", "[4294967296, 4294967296], [3]", kTvmErrorFunctionCallInvalidArg},
      {"[6], [3]", "[99999999999], [3]", kTvmErrorPlatformNoMemory},
      {"[6], [3]", "[7], [3]", 2},
      {"[0, 0, 1, 2, 3", "[0, 0, 99, 2, 3", kTvmErrorGeneratedInvalidStorageId},
      {"[0, 0, 1, 2, 3", "[0, 0, 0, 2, 3", kTvmErrorGeneratedInvalidStorageId},
      {"[0, 0, 1, 2, 3", "[0, 0, 1, 1, 3", kTvmErrorGeneratedInvalidStorageId},
      {"[0, 0, 1, 2, 3", "[0, 9, 1, 2, 3", kTvmErrorNoError},
      {"5, 3, 3]", "5, 3, 2]", kTvmErrorGeneratedInvalidStorageId},
      {"[0, 1, 2, 3, 4, 5, 6, 7, 9, 10]", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 10]", kTvmErrorFunctionCallInvalidArg},
      {"[0, 1, 2, 3, 4, 5, 6, 7, 9, 10]", "[0, 1, 2, 3, 4, 5, 6, 7, 9]", kTvmErrorFunctionCallInvalidArg},
      {"[0, 1, 2, 3, 4, 5, 6, 7, 9, 10]", "[]", kTvmErrorFunctionCallInvalidArg},
      {"\"heads\"", "\"tails\"", kTvmErrorFunctionCallInvalidArg},
      {"\"metadata\": {\"signature\": \"none\"}", "\"nodes\": []", kTvmErrorFunctionCallInvalidArg},
      {"}}\n", "}", kTvmErrorFunctionCallInvalidArg},
      {"}}\n", "}} x", kTvmErrorFunctionCallInvalidArg},
  };
  size_t i;
  for (i = 0; i < sizeof(kCases) / sizeof(kCases[0]); ++i) {
    const int status = CreateWith(kCases[i].old, kCases[i].replacement);
    if (status != kCases[i].code) {
      printf("'%s' for '%s': 0x%x, %s\n", kCases[i].replacement, kCases[i].old, (unsigned)status, TVMGetLastError());
      exit(1);
    }
  }
}

/* Every beginning of the graph is refused. */
static void TestCutGraphs(void) {
  size_t length;
  for (length = 0; length < strlen(fixture_graph) - 1U; ++length) {
    char* const text = (char*)malloc(length + 1U);
    TVMGraphExecutor* graph = NULL;
    memcpy(text, fixture_graph, length);
    text[length] = '\0';
    EXPECT_CODE(TVMGraphExecutor_Create(text, module, &device, &graph), kTvmErrorFunctionCallInvalidArg);
    EXPECT(graph == NULL && test_allocations == 0);
    free(text);
  }
}

static int Load(TVMGraphExecutor* graph, const Blob* blob, size_t size) {
  char* const copy = (char*)malloc(size == 0U ? 1U : size);
  int status;
  memcpy(copy, blob->bytes, size);
  status = TVMGraphExecutor_LoadParams(graph, copy, (uint32_t)size);
  free(copy);
  return status;
}

static void TestParams(void) {
  static const char* const none[] = {NULL};
  static const char* const p0[] = {"p0", NULL};
  static const char* const p1[] = {"p1", NULL};
  static const char* const both[] = {"p0", "p1", NULL};
  static const char* const unknown[] = {"p2", NULL};
  static const int64_t six[1] = {6};
  static const int64_t rows[2] = {2, 3};
  static const int64_t one[1] = {1};
  static const float values[6] = {1, 2, 3, 4, 5, 6};
  TVMGraphExecutor* graph = Create(fixture_graph);
  const int allocations = test_allocations;
  Blob blob;
  size_t size;
  Blob_Fixture(&blob);
  for (size = 0; size < blob.size; ++size) {
    EXPECT_CODE(Load(graph, &blob, size), kTvmErrorFunctionCallInvalidArg);
  }
  EXPECT_CODE(Load(graph, &blob, blob.size + 1U), kTvmErrorFunctionCallInvalidArg);
  /* The first magic, the second one, and the device. */
  blob.bytes[0] ^= 1U;
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorFunctionCallInvalidArg);
  Blob_Names(&blob, p0);
  size = blob.size;
  Blob_Array(&blob, 1, six, values, 6);
  blob.bytes[size] ^= 1U;
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorFunctionCallInvalidArg);
  blob.bytes[size] ^= 1U;
  blob.bytes[size + 16U] = 2;
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorExecutorModuleBadContext);
  blob.bytes[size + 16U] = 1;
  blob.bytes[size + 28U] = kDLInt;
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorFunctionCallWrongArgType);
  Blob_Names(&blob, unknown);
  Blob_Array(&blob, 1, six, values, 6);
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorExecutorModuleNoSuchInput);
  Blob_Names(&blob, p0);
  Blob_Array(&blob, 2, rows, values, 6);
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorFunctionCallInvalidArg);
  Blob_Names(&blob, p0);
  Blob_Array(&blob, 1, six, values, 5);
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorFunctionCallInvalidArg);
  Blob_Names(&blob, both);
  Blob_Array(&blob, 1, six, values, 6);
  EXPECT_CODE(Load(graph, &blob, blob.size), kTvmErrorFunctionCallInvalidArg);
  EXPECT(test_allocations == allocations);
  Blob_Names(&blob, none);
  EXPECT(blob.size == 32U);
  EXPECT_OK(Load(graph, &blob, blob.size));
  /* A scalar may be written with one axis. */
  Blob_Names(&blob, p1);
  Blob_Array(&blob, 1, one, values, 1);
  EXPECT_OK(Load(graph, &blob, blob.size));
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
  EXPECT(test_allocations == 0);
}

static void TestBadContext(void) {
  const DLDevice other = {kDLCUDA, 0};
  TVMGraphExecutor* graph = NULL;
  EXPECT_CODE(TVMGraphExecutor_Create(fixture_graph, module, &other, &graph), kTvmErrorExecutorModuleBadContext);
  EXPECT_CODE(TVMGraphExecutor_Create(fixture_graph, NULL, &device, &graph), kTvmErrorFunctionCallInvalidArg);
  EXPECT(graph == NULL && test_allocations == 0);
}

int main(void) {
  EXPECT_OK(TVMModCreateFromCModule(&fixture_module, &module));
  TestRun();
  TestOwnedInput();
  TestLinked();
  TestBadInputs();
  TestNoMemory();
  TestBadGraphs();
  TestCutGraphs();
  TestParams();
  TestBadContext();
  puts("done");
  return 0;
}
