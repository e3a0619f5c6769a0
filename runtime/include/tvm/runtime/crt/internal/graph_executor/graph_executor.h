/* What a graph executor consists of. Everything but the tensors' memory is one allocation. */
#ifndef TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_
#define TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/graph_executor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a node does. */
typedef enum {
  kGraphNodeArgument = 0, /* holds an input or parameter */
  kGraphNodeCall = 1,     /* calls a function with its inputs, then its outputs */
  kGraphNodeView = 2      /* __nop: shows its input with another shape */
} GraphNodeKind;

/* A node. Its outputs are the entries from first_entry on. */
typedef struct {
  TVMFunctionHandle function;
  const char* name; /* of an argument */
  GraphNodeKind kind;
  uint32_t first_entry;
  uint32_t output_count;
  uint32_t first_input; /* in inputs */
  uint32_t input_count;
} GraphNode;

/* A block of memory that entries share. */
typedef struct {
  void* data;
  size_t bytes;
  int owned;       /* whether the executor allocated it */
  int is_written;  /* whether an operator writes to it */
  int is_argument; /* whether it is that of an input or parameter */
} GraphStorage;

/* How much of everything a graph has. */
typedef struct {
  uint32_t nodes;
  uint32_t inputs;    /* of all nodes together */
  uint32_t arguments; /* arg_nodes */
  uint32_t heads;
  uint32_t rows; /* node_row_ptr */
  uint32_t entries;
  uint32_t extents; /* of all shapes together */
  size_t name_bytes;
} GraphCounts;

struct TVMGraphExecutor {
  TVMModuleHandle module;
  DLDevice device;
  GraphCounts counts;
  int status; /* of the last run */
  int input_status;
  GraphNode* nodes;
  uint32_t* inputs;      /* entries */
  uint32_t* arguments;   /* nodes */
  uint32_t* heads;       /* entries */
  uint32_t* rows;
  uint32_t* storage_ids; /* of the entries */
  DLTensor* entries;
  int64_t* extents;
  GraphStorage* storages; /* as many as entries; unused ones have no bytes */
  char* names;
};

/* Counts what a text describes, or reads it into an executor with room for what was counted: graph may be NULL. */
tvm_crt_error_t TVMGraph_Parse(const char* text, size_t bytes, GraphCounts* counts, TVMGraphExecutor* graph);

/* Checks what was read as a whole, and finds out how large the storages must be. */
tvm_crt_error_t TVMGraph_Check(TVMGraphExecutor* graph);

/* The position among the arguments of a name that needs no terminator; -1 when there is none. */
int32_t TVMGraph_FindArgument(const TVMGraphExecutor* graph, const char* name, size_t length);

/* The entry of an argument. */
uint32_t TVMGraph_ArgumentEntry(const TVMGraphExecutor* graph, int32_t position);

/* Gives an argument memory of its own, unless it has some. */
tvm_crt_error_t TVMGraph_OwnArgument(TVMGraphExecutor* graph, uint32_t entry);

/* Makes views show what their inputs hold; to be called when an argument's data changed. */
void TVMGraph_UpdateViews(TVMGraphExecutor* graph);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_GRAPH_EXECUTOR_GRAPH_EXECUTOR_H_ */
