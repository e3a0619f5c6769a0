/* Reads graph JSON: once to count, and once, with the same functions, to store. */
#include <string.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/internal/graph_executor/graph_executor.h>
#include <tvm/runtime/crt/internal/graph_executor/json_reader.h>

/* Longer keys are not known here. */
#define KEY_BYTES 20

/* A reader with what it counted so far; graph is NULL while it only counts. */
typedef struct {
  JsonReader json;
  GraphCounts counts;
  uint32_t types;
  uint32_t storages;
  TVMGraphExecutor* graph;
} Parser;

/* Members of a node, as they come. */
typedef struct {
  char operation[16];
  char name[TVM_CRT_MAX_STRLEN_PARAM_NAME];
  size_t name_length;
  char function[TVM_CRT_MAX_STRLEN_FUNCTION_NAME];
  size_t function_length;
  uint32_t stated_inputs;
  uint32_t stated_outputs;
  uint32_t first_input;
  uint32_t input_count;
} Draft;

/* Reads one element of a list; index counts from 0. */
typedef tvm_crt_error_t (*ReadElement)(Parser* parser, uint32_t index);

#define TRY(expression)                           \
  do {                                            \
    const tvm_crt_error_t status_ = (expression); \
    if (status_ != kTvmErrorNoError) {            \
      return status_;                             \
    }                                             \
  } while (0)

static tvm_crt_error_t Refuse(const char* text, const char* name) {
  return TVMCrtError(kTvmErrorFunctionCallInvalidArg, text, name);
}

static tvm_crt_error_t ReadList(Parser* parser, ReadElement read) {
  uint32_t index = 0;
  int more = 0;
  TRY(JsonReader_BeginArray(&parser->json));
  for (;; ++index) {
    TRY(JsonReader_NextElement(&parser->json, index, &more));
    if (!more) {
      return kTvmErrorNoError;
    }
    TRY(read(parser, index));
  }
}

static tvm_crt_error_t ReadIndex(Parser* parser, uint32_t* value) {
  uint64_t number = 0;
  TRY(JsonReader_Unsigned(&parser->json, &number));
  if (number > INT32_MAX) {
    return Refuse("the graph has a number that is too large", NULL);
  }
  *value = (uint32_t)number;
  return kTvmErrorNoError;
}

/* Reads [node, output] or [node, output, version]. */
static tvm_crt_error_t ReadReference(Parser* parser, uint32_t* node, uint32_t* output) {
  uint32_t numbers[3] = {0, 0, 0};
  uint32_t count = 0;
  int more = 0;
  TRY(JsonReader_BeginArray(&parser->json));
  for (;; ++count) {
    TRY(JsonReader_NextElement(&parser->json, count, &more));
    if (!more) {
      break;
    }
    if (count == 3U) {
      return Refuse("a reference of the graph has more than 3 numbers", NULL);
    }
    TRY(ReadIndex(parser, &numbers[count]));
  }
  if (count < 2U) {
    return Refuse("a reference of the graph has fewer than 2 numbers", NULL);
  }
  *node = numbers[0];
  *output = numbers[1];
  return kTvmErrorNoError;
}

/* The entry of an output of a node before the limit. */
static tvm_crt_error_t FindEntry(const TVMGraphExecutor* graph, uint32_t node, uint32_t output, uint32_t limit,
                                 uint32_t* entry) {
  if (node >= limit || output >= graph->nodes[node].output_count) {
    return Refuse("the graph refers to an output that is not there, or comes later", NULL);
  }
  *entry = graph->nodes[node].first_entry + output;
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadInput(Parser* parser, uint32_t index) {
  TVMGraphExecutor* const graph = parser->graph;
  uint32_t node = 0;
  uint32_t output = 0;
  (void)index;
  TRY(ReadReference(parser, &node, &output));
  if (graph != NULL) {
    TRY(FindEntry(graph, node, output, parser->counts.nodes, &graph->inputs[parser->counts.inputs]));
  }
  ++parser->counts.inputs;
  return kTvmErrorNoError;
}

/* Reads a number that is written as a string. */
static tvm_crt_error_t ReadQuoted(Parser* parser, uint32_t* value) {
  char text[8];
  size_t length = 0;
  size_t i;
  TRY(JsonReader_String(&parser->json, text, sizeof(text), &length));
  if (length == 0U || length >= sizeof(text)) {
    return Refuse("an attribute of a node is no number", text);
  }
  *value = 0;
  for (i = 0; i < length; ++i) {
    if (text[i] < '0' || text[i] > '9') {
      return Refuse("an attribute of a node is no number", text);
    }
    *value = *value * 10U + (uint32_t)(text[i] - '0');
  }
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadNodeAttributes(Parser* parser, Draft* draft) {
  char key[KEY_BYTES];
  uint32_t flatten = 0;
  uint32_t index = 0;
  int more = 0;
  TRY(JsonReader_BeginObject(&parser->json));
  for (;; ++index) {
    TRY(JsonReader_NextMember(&parser->json, index, key, sizeof(key), &more));
    if (!more) {
      break;
    }
    if (strcmp(key, "func_name") == 0) {
      TRY(JsonReader_String(&parser->json, draft->function, sizeof(draft->function), &draft->function_length));
    } else if (strcmp(key, "num_inputs") == 0) {
      TRY(ReadQuoted(parser, &draft->stated_inputs));
    } else if (strcmp(key, "num_outputs") == 0) {
      TRY(ReadQuoted(parser, &draft->stated_outputs));
    } else if (strcmp(key, "flatten_data") == 0) {
      TRY(ReadQuoted(parser, &flatten));
    } else {
      TRY(JsonReader_Skip(&parser->json));
    }
  }
  if (flatten != 0U) {
    return TVMCrtError(kTvmErrorFunctionCallNotImplemented, "flatten_data is not supported", NULL);
  }
  return kTvmErrorNoError;
}

/* Keeps the name of an argument, with its terminator. */
static tvm_crt_error_t FinishArgument(Parser* parser, const Draft* draft, GraphNode* node) {
  TVMGraphExecutor* const graph = parser->graph;
  if (draft->name_length == 0U) {
    return Refuse("an input of the graph has no name", NULL);
  }
  if (draft->name_length >= sizeof(draft->name)) {
    return TVMCrtError(kTvmErrorBufferTooSmall, "the name of an input is too long for TVM_CRT_MAX_STRLEN_PARAM_NAME",
                       NULL);
  }
  if (draft->input_count != 0U) {
    return Refuse("an input of the graph has inputs itself", draft->name);
  }
  if (graph != NULL) {
    char* const name = graph->names + parser->counts.name_bytes;
    memcpy(name, draft->name, draft->name_length + 1U);
    node->name = name;
    node->kind = kGraphNodeArgument;
    node->output_count = 1;
  }
  parser->counts.name_bytes += draft->name_length + 1U;
  return kTvmErrorNoError;
}

/* Finds the function of an operator. */
static tvm_crt_error_t FinishOperator(const Parser* parser, const Draft* draft, GraphNode* node) {
  if (draft->function_length == 0U) {
    return Refuse("an operator of the graph has no func_name", NULL);
  }
  if (draft->function_length >= sizeof(draft->function)) {
    return TVMCrtError(kTvmErrorBufferTooSmall, "a func_name is too long for TVM_CRT_MAX_STRLEN_FUNCTION_NAME", NULL);
  }
  if (draft->stated_inputs != draft->input_count || draft->stated_outputs == 0U) {
    return Refuse("the numbers of inputs and outputs of an operator are wrong", draft->function);
  }
  if (strcmp(draft->function, "__copy") == 0) {
    return TVMCrtError(kTvmErrorFunctionCallNotImplemented, "there is one device, so nothing copies between them",
                       draft->function);
  }
  if (parser->graph == NULL) {
    return kTvmErrorNoError;
  }
  node->output_count = draft->stated_outputs;
  if (strcmp(draft->function, "__nop") == 0) {
    node->kind = kGraphNodeView;
    return draft->input_count == 1U && draft->stated_outputs == 1U
               ? kTvmErrorNoError
               : Refuse("a view must have one input and one output", draft->function);
  }
  if (draft->input_count > TVM_CRT_MAX_ARGS || draft->stated_outputs > TVM_CRT_MAX_ARGS - draft->input_count) {
    return TVMCrtError(kTvmErrorFunctionCallNumArguments, "an operator has more than TVM_CRT_MAX_ARGS arguments",
                       draft->function);
  }
  node->kind = kGraphNodeCall;
  return (tvm_crt_error_t)TVMModGetFunction(parser->graph->module, draft->function, 0, &node->function);
}

static tvm_crt_error_t ReadNodeMembers(Parser* parser, Draft* draft) {
  char key[KEY_BYTES];
  uint32_t index = 0;
  size_t length = 0;
  int more = 0;
  TRY(JsonReader_BeginObject(&parser->json));
  for (;; ++index) {
    TRY(JsonReader_NextMember(&parser->json, index, key, sizeof(key), &more));
    if (!more) {
      return kTvmErrorNoError;
    }
    if (strcmp(key, "op") == 0) {
      TRY(JsonReader_String(&parser->json, draft->operation, sizeof(draft->operation), &length));
    } else if (strcmp(key, "name") == 0) {
      TRY(JsonReader_String(&parser->json, draft->name, sizeof(draft->name), &draft->name_length));
    } else if (strcmp(key, "attrs") == 0) {
      TRY(ReadNodeAttributes(parser, draft));
    } else if (strcmp(key, "inputs") == 0) {
      draft->first_input = parser->counts.inputs;
      TRY(ReadList(parser, ReadInput));
      draft->input_count = parser->counts.inputs - draft->first_input;
    } else {
      TRY(JsonReader_Skip(&parser->json));
    }
  }
}

static tvm_crt_error_t ReadNode(Parser* parser, uint32_t index) {
  Draft draft;
  GraphNode* const node = parser->graph == NULL ? NULL : &parser->graph->nodes[index];
  tvm_crt_error_t status;
  memset(&draft, 0, sizeof(draft));
  TRY(ReadNodeMembers(parser, &draft));
  if (strcmp(draft.operation, "null") == 0) {
    status = FinishArgument(parser, &draft, node);
  } else if (strcmp(draft.operation, "tvm_op") == 0) {
    status = FinishOperator(parser, &draft, node);
  } else {
    status = Refuse("a node of the graph has another op than null and tvm_op", draft.operation);
  }
  if (status == kTvmErrorNoError && node != NULL) {
    node->first_input = draft.first_input;
    node->input_count = draft.input_count;
    node->first_entry = index == 0U ? 0U : node[-1].first_entry + node[-1].output_count;
  }
  ++parser->counts.nodes;
  return status;
}

static tvm_crt_error_t ReadArgument(Parser* parser, uint32_t index) {
  uint32_t node = 0;
  TRY(ReadIndex(parser, &node));
  if (parser->graph != NULL) {
    parser->graph->arguments[index] = node;
  }
  ++parser->counts.arguments;
  return kTvmErrorNoError;
}

/* Keeps the node and the output, one behind the other, until all nodes are known. */
static tvm_crt_error_t ReadHead(Parser* parser, uint32_t index) {
  uint32_t node = 0;
  uint32_t output = 0;
  TRY(ReadReference(parser, &node, &output));
  if (parser->graph != NULL) {
    parser->graph->heads[2U * index] = node;
    parser->graph->heads[2U * index + 1U] = output;
  }
  ++parser->counts.heads;
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadRow(Parser* parser, uint32_t index) {
  uint32_t row = 0;
  TRY(ReadIndex(parser, &row));
  if (parser->graph != NULL) {
    parser->graph->rows[index] = row;
  }
  ++parser->counts.rows;
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadType(Parser* parser, uint32_t index) {
  char text[TVM_CRT_MAX_STRLEN_DLTYPE];
  size_t length = 0;
  DLDataType type;
  TRY(JsonReader_String(&parser->json, text, sizeof(text), &length));
  if (length >= sizeof(text)) {
    return TVMCrtError(kTvmErrorBufferTooSmall, "a data type is too long for TVM_CRT_MAX_STRLEN_DLTYPE", NULL);
  }
  TRY(TVMDataType_Parse(text, length, &type));
  if (parser->graph != NULL) {
    parser->graph->entries[index].dtype = type;
  }
  ++parser->types;
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadStorage(Parser* parser, uint32_t index) {
  uint32_t storage = 0;
  TRY(ReadIndex(parser, &storage));
  if (parser->graph != NULL) {
    parser->graph->storage_ids[index] = storage;
  }
  ++parser->storages;
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadExtent(Parser* parser, uint32_t index) {
  uint64_t extent = 0;
  if (index >= TVM_CRT_MAX_NDIM) {
    return Refuse("a tensor of the graph has more than TVM_CRT_MAX_NDIM axes", NULL);
  }
  TRY(JsonReader_Unsigned(&parser->json, &extent));
  if (parser->graph != NULL) {
    parser->graph->extents[parser->counts.extents] = (int64_t)extent;
  }
  ++parser->counts.extents;
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadShape(Parser* parser, uint32_t index) {
  const uint32_t first = parser->counts.extents;
  TRY(ReadList(parser, ReadExtent));
  if (parser->graph != NULL) {
    parser->graph->entries[index].shape = parser->graph->extents + first;
    parser->graph->entries[index].ndim = (int32_t)(parser->counts.extents - first);
  }
  ++parser->counts.entries;
  return kTvmErrorNoError;
}

static tvm_crt_error_t ReadDevice(Parser* parser, uint32_t index) {
  uint32_t device = 0;
  (void)index;
  TRY(ReadIndex(parser, &device));
  return device == (uint32_t)kDLCPU
             ? kTvmErrorNoError
             : TVMCrtError(kTvmErrorExecutorModuleBadContext, "the graph is not for the CPU", NULL);
}

static tvm_crt_error_t ReadScope(Parser* parser, uint32_t index) {
  char text[KEY_BYTES];
  size_t length = 0;
  (void)index;
  TRY(JsonReader_String(&parser->json, text, sizeof(text), &length));
  if (length != 0U && strcmp(text, "global") != 0) {
    return TVMCrtError(kTvmErrorFunctionCallNotImplemented, "storage scopes are not supported", text);
  }
  return kTvmErrorNoError;
}

/* Tables with one element per entry; the kind is how their first half calls them. */
static const struct {
  const char* key;
  const char* kind;
  ReadElement read;
} kTables[] = {
    {"dltype", "list_str", ReadType},        {"storage_id", "list_int", ReadStorage},
    {"shape", "list_shape", ReadShape},      {"device_index", "list_int", ReadDevice},
    {"storage_scope", "list_str", ReadScope},
};

/* Reads [kind, data]. */
static tvm_crt_error_t ReadTable(Parser* parser, size_t table) {
  char kind[KEY_BYTES];
  size_t length = 0;
  int more = 0;
  TRY(JsonReader_BeginArray(&parser->json));
  TRY(JsonReader_NextElement(&parser->json, 0, &more));
  TRY(JsonReader_String(&parser->json, kind, sizeof(kind), &length));
  if (strcmp(kind, kTables[table].kind) != 0) {
    return Refuse("a table of the graph is of another kind", kTables[table].key);
  }
  TRY(JsonReader_NextElement(&parser->json, 1, &more));
  if (!more) {
    return Refuse("a table of the graph has no data", kTables[table].key);
  }
  TRY(ReadList(parser, kTables[table].read));
  TRY(JsonReader_NextElement(&parser->json, 2, &more));
  return more ? Refuse("a table of the graph has too many parts", kTables[table].key) : kTvmErrorNoError;
}

static tvm_crt_error_t ReadTables(Parser* parser) {
  char key[KEY_BYTES];
  uint32_t seen = 0;
  uint32_t index = 0;
  int more = 0;
  TRY(JsonReader_BeginObject(&parser->json));
  for (;; ++index) {
    size_t table = 0;
    TRY(JsonReader_NextMember(&parser->json, index, key, sizeof(key), &more));
    if (!more) {
      return kTvmErrorNoError;
    }
    while (table < sizeof(kTables) / sizeof(kTables[0]) && strcmp(key, kTables[table].key) != 0) {
      ++table;
    }
    if (table == sizeof(kTables) / sizeof(kTables[0])) {
      TRY(JsonReader_Skip(&parser->json));
      continue;
    }
    if ((seen >> table & 1U) != 0U) {
      return Refuse("the graph has a table twice", key);
    }
    seen |= 1U << table;
    TRY(ReadTable(parser, table));
  }
}

static const struct {
  const char* key;
  ReadElement read;
} kLists[] = {
    {"nodes", ReadNode}, {"arg_nodes", ReadArgument}, {"heads", ReadHead}, {"node_row_ptr", ReadRow},
};

#define LIST_COUNT (sizeof(kLists) / sizeof(kLists[0]))

static tvm_crt_error_t ReadGraph(Parser* parser) {
  char key[KEY_BYTES];
  uint32_t seen = 0;
  uint32_t index = 0;
  int more = 0;
  TRY(JsonReader_BeginObject(&parser->json));
  for (;; ++index) {
    size_t list = 0;
    int tables;
    TRY(JsonReader_NextMember(&parser->json, index, key, sizeof(key), &more));
    if (!more) {
      break;
    }
    while (list < LIST_COUNT && strcmp(key, kLists[list].key) != 0) {
      ++list;
    }
    tables = list == LIST_COUNT && strcmp(key, "attrs") == 0;
    if (list == LIST_COUNT && !tables) {
      TRY(JsonReader_Skip(&parser->json));
      continue;
    }
    if ((seen >> list & 1U) != 0U) {
      return Refuse("the graph has a member twice", key);
    }
    seen |= 1U << list;
    TRY(tables ? ReadTables(parser) : ReadList(parser, kLists[list].read));
  }
  if (seen != (1U << (LIST_COUNT + 1U)) - 1U) {
    return Refuse("the graph lacks nodes, arg_nodes, heads, node_row_ptr or attrs", NULL);
  }
  return JsonReader_End(&parser->json);
}

tvm_crt_error_t TVMGraph_Parse(const char* text, size_t bytes, GraphCounts* counts, TVMGraphExecutor* graph) {
  Parser parser;
  tvm_crt_error_t status;
  memset(&parser, 0, sizeof(parser));
  parser.graph = graph;
  JsonReader_Init(&parser.json, text, bytes);
  status = ReadGraph(&parser);
  if (status == kTvmErrorNoError &&
      (parser.types != parser.counts.entries || parser.storages != parser.counts.entries)) {
    return Refuse("the tables dltype, storage_id and shape of the graph have different lengths", NULL);
  }
  *counts = parser.counts;
  return status;
}
