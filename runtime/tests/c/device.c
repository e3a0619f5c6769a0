/* Runs the tests' graph on a device: memory, messages and the end of the program come from the semihosting platform. */
#include <string.h>
#include <tvm/runtime/crt/platform.h>

#include "../../platform/semihosting/semihosting.h"
#include "graph_fixture.h"

#define EXPECT(condition)                           \
  do {                                              \
    if (!(condition)) {                             \
      TVMLogf("line %d: %s\n", __LINE__, #condition); \
      SemihostingExit(1);                           \
    }                                               \
  } while (0)

static size_t Format(char* buffer, size_t bytes, const char* format, ...) {
  va_list args;
  size_t length;
  va_start(args, format);
  length = TVMPlatformFormatMessage(buffer, bytes, format, args);
  va_end(args);
  return length;
}

static void TestFormats(void) {
  char text[80];
  EXPECT(Format(text, sizeof(text), "%d|%5d|%-5d|%05d|%i", -7, 42, 42, -42, 0) == 22U);
  EXPECT(strcmp(text, "-7|   42|42   |-0042|0") == 0);
  (void)Format(text, sizeof(text), "%u|%x|%X|%08lx|%zu", 4000000000U, 0xbeefU, 0xbeefU, 0xbeefUL, (size_t)9);
  EXPECT(strcmp(text, "4000000000|beef|BEEF|0000beef|9") == 0);
  (void)Format(text, sizeof(text), "%lld|%s|%.2s|%4s|%c|%%", -5000000000LL, "a", "long", "b", 'c');
  EXPECT(strcmp(text, "-5000000000|a|lo|   b|c|%") == 0);
  (void)Format(text, sizeof(text), "%f|%.2f|%.0f|%8.3f|%f", 1.5, -2.999, 7.6, 3.14159, 1e30);
  EXPECT(strcmp(text, "1.500000|-3.00|8|   3.142|large") == 0);
  EXPECT(Format(text, 4, "abcdef") == 6U && strcmp(text, "abc") == 0);
}

int main(void) {
  static float x_values[6] = {1, 1, 1, 1, 1, 10};
  static int64_t x_shape[2] = {2, 3};
  static int64_t three[1] = {3};
  static Blob blob;
  const DLDevice device = {kDLCPU, 0};
  TVMModuleHandle module = NULL;
  TVMGraphExecutor* graph = NULL;
  float values[3] = {0, 0, 0};
  DLTensor x;
  DLTensor output;
  memset(&x, 0, sizeof(x));
  x.data = x_values;
  x.device = device;
  x.ndim = 2;
  x.dtype.code = kDLFloat;
  x.dtype.bits = 32;
  x.dtype.lanes = 1;
  x.shape = x_shape;
  output = x;
  output.data = values;
  output.ndim = 1;
  output.shape = three;
  TestFormats();
  Blob_Fixture(&blob);
  EXPECT(TVMPlatformInitialize() == kTvmErrorNoError);
  EXPECT(TVMModCreateFromCModule(&fixture_module, &module) == kTvmErrorNoError);
  EXPECT(TVMGraphExecutor_Create(fixture_graph, module, &device, &graph) == 0);
  EXPECT(TVMGraphExecutor_LoadParams(graph, (const char*)blob.bytes, (uint32_t)blob.size) == 0);
  TVMGraphExecutor_SetInput(graph, "x", &x);
  TVMGraphExecutor_Run(graph);
  EXPECT(TVMGraphExecutor_GetOutput(graph, 1, &output) == 0);
  EXPECT(values[0] == -10.0F && values[1] == -12.0F && values[2] == -32.0F);
  EXPECT(TVMGraphExecutor_Release(&graph) == 0);
  TVMLogf("outputs: %d %d %d\n", (int)values[0], (int)values[1], (int)values[2]);
  SemihostingExit(7);
}
