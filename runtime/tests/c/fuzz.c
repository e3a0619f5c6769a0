/*
 * Feeds damaged graphs and parameters files to the graph executor: valid ones with bytes changed, cut out, doubled, or
 * spliced from elsewhere. Whatever is refused must leave nothing allocated; whatever is accepted must run. To be built
 * with sanitizers. Arguments: the first seed and the number of cases; the same numbers always give the same cases.
 */
#include "expect.h"

#include <tvm/runtime/crt/internal/graph_executor/graph_executor.h>

#include "graph_fixture.h"

#define MOST_BYTES 16384

static const DLDevice device = {kDLCPU, 0};

/* A text or file that is being damaged. */
typedef struct {
  char bytes[MOST_BYTES];
  size_t size;
} Document;

static uint64_t state;

/* The next number of a fixed sequence (xorshift*), below a limit. */
static size_t Random(size_t limit) {
  state ^= state >> 12U;
  state ^= state << 25U;
  state ^= state >> 27U;
  return limit == 0U ? 0U : (size_t)((state * UINT64_C(2685821657736338717)) >> 33U) % limit;
}

/* Puts bytes in the place of others. */
static void Replace(Document* document, size_t at, size_t removed, const char* inserted, size_t count) {
  if (at + removed > document->size || document->size - removed + count > MOST_BYTES) {
    return;
  }
  memmove(document->bytes + at + count, document->bytes + at + removed, document->size - at - removed);
  memcpy(document->bytes + at, inserted, count);
  document->size = document->size - removed + count;
}

/* What graph readers look at. */
static const char* const kWords[] = {
    "[",         "]",       "{",          "}",       ",",         ":",          "\"",           "\\u0000", "null",
    "-1",        "0",       "1",          "2",       "255",       "2147483647", "4294967296",   "1e9",    "\"\"",
    "\"__nop\"", "\"add\"", "\"tvm_op\"", "\"null\"", "\"__copy\"", "[0,0]",      "[[0,0,0]]",    "\"fail\"", "[]",
    "99999999999999999999", "\"nodes\":", "\"inputs\":[[1,0]],", "\"attrs\":{},", "9223372036854775807", "\\",
};

static void DamageOnce(Document* document) {
  char piece[64];
  const size_t at = Random(document->size);
  const size_t count = Random(sizeof(piece)) < document->size - at ? Random(sizeof(piece)) : 1U;
  const size_t length = at + count <= document->size ? count : 0U;
  switch (Random(8)) {
    case 0:
      if (document->size > 0U) {
        document->bytes[at] = (char)(unsigned char)Random(256);
      }
      break;
    case 1:
      if (document->size > 0U) {
        document->bytes[at] = (char)(document->bytes[at] ^ (char)(1U << Random(7)));
      }
      break;
    case 2:
      Replace(document, at, length, piece, 0);
      break;
    case 3:
      memcpy(piece, document->bytes + at, length);
      Replace(document, Random(document->size), 0, piece, length);
      break;
    case 4:
      memcpy(piece, document->bytes + at, length);
      Replace(document, Random(document->size), length, piece, length);
      break;
    case 5:
      document->size = Random(20) == 0U ? at : document->size;
      break;
    default: {
      const char* const word = kWords[Random(sizeof(kWords) / sizeof(kWords[0]))];
      Replace(document, at, Random(4), word, strlen(word));
    }
  }
}

/* Changes a number of the text to another one, which leaves it well-formed: such damage gets farther. */
static void ChangeNumber(Document* document) {
  size_t at = Random(document->size);
  while (at < document->size && (document->bytes[at] < '0' || document->bytes[at] > '9')) {
    ++at;
  }
  if (at < document->size) {
    document->bytes[at] = (char)('0' + (int)Random(10));
  }
}

static void Damage(Document* document, int textual) {
  size_t times = 1U + Random(4);
  while (times > 0U) {
    if (textual && Random(2) == 0U) {
      ChangeNumber(document);
    } else {
      DamageOnce(document);
    }
    --times;
  }
}

static long accepted = 0;
static long finished = 0;

/* Creates, loads, sets, runs and reads; a copy in a block of its own size shows reading beyond the end. */
static void Exercise(const Document* text, const Document* params, TVMModuleHandle module) {
  char* const graph_copy = (char*)malloc(text->size + 1U);
  char* const params_copy = (char*)malloc(params->size == 0U ? 1U : params->size);
  TVMGraphExecutor* graph = NULL;
  int32_t i;
  memcpy(graph_copy, text->bytes, text->size);
  graph_copy[text->size] = '\0';
  memcpy(params_copy, params->bytes, params->size);
  if (TVMGraphExecutor_Create(graph_copy, module, &device, &graph) == 0) {
    ++accepted;
    (void)TVMGraphExecutor_LoadParams(graph, params_copy, (uint32_t)params->size);
    for (i = 0; i < TVMGraphExecutor_GetNumInputs(graph); ++i) {
      DLTensor* const input = TVMGraphExecutor_GetInputTensor(graph, i);
      if (input != NULL) {
        DLTensor set = *input;
        TVMGraphExecutor_SetInput(graph, graph->nodes[graph->arguments[i]].name, &set);
      }
    }
    TVMGraphExecutor_Run(graph);
    finished += TVMGraphExecutor_GetStatus(graph) == 0 ? 1 : 0;
    for (i = 0; i < TVMGraphExecutor_GetNumOutputs(graph); ++i) {
      const DLTensor* const output = TVMGraphExecutor_GetOutputTensor(graph, i);
      DLTensor same = *output;
      (void)TVMGraphExecutor_GetOutput(graph, i, &same);
    }
  }
  EXPECT_OK(TVMGraphExecutor_Release(&graph));
  EXPECT(test_allocations == 0);
  free(graph_copy);
  free(params_copy);
}

int main(int count, char** arguments) {
  const unsigned long first = count > 1 ? strtoul(arguments[1], NULL, 10) : 1U;
  const unsigned long cases = count > 2 ? strtoul(arguments[2], NULL, 10) : 4000U;
  static Document text;
  static Document params;
  TVMModuleHandle module = NULL;
  Blob blob;
  unsigned long i;
  EXPECT_OK(TVMModCreateFromCModule(&fixture_module, &module));
  Blob_Fixture(&blob);
  for (i = 0; i < cases; ++i) {
    state = (first + i) * UINT64_C(0x9e3779b97f4a7c15) + 1U;
    text.size = strlen(fixture_graph);
    memcpy(text.bytes, fixture_graph, text.size);
    params.size = blob.size;
    memcpy(params.bytes, blob.bytes, blob.size);
    if (i % 3U != 1U) {
      Damage(&text, 1);
    }
    if (i % 3U != 0U) {
      Damage(&params, 0);
    }
    /* Now and then memory ends in the midst. */
    test_allocations_left = Random(10) == 0U ? (int)Random(8) : -1;
    Exercise(&text, &params, module);
  }
  /* If nearly everything or nearly nothing got through, the cases would test little. */
  EXPECT(cases < 1000U || (accepted > (long)cases / 20 && finished > (long)cases / 100 && finished < (long)cases / 2));
  puts("done");
  return 0;
}
