/* Creation and release of a graph executor. */
#include <string.h>
#include <tvm/runtime/crt/graph_executor.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/internal/graph_executor/graph_executor.h>
#include <tvm/runtime/crt/platform.h>
#if TVM_CRT_DEBUG > 0
#include <tvm/runtime/crt/logging.h>
#endif

/* Parts of the allocation start at multiples of it. */
#define PART_ALIGNMENT sizeof(int64_t)

/* Adds a part of count elements; returns its offset. *total becomes SIZE_MAX when it overflows, and stays so. */
static size_t Reserve(size_t* total, size_t count, size_t size) {
  const size_t offset = *total;
  const size_t limit = SIZE_MAX - 2U * PART_ALIGNMENT;
  if (offset >= limit || count > (limit - offset) / size) {
    *total = SIZE_MAX;
    return 0;
  }
  *total = (offset + count * size + PART_ALIGNMENT - 1U) / PART_ALIGNMENT * PART_ALIGNMENT;
  return offset;
}

/* Allocates an executor with room for what a graph has. */
static tvm_crt_error_t Allocate(const GraphCounts* counts, DLDevice device, TVMGraphExecutor** out) {
  size_t total = 0;
  void* memory = NULL;
  uint8_t* base;
  TVMGraphExecutor* graph;
  tvm_crt_error_t status;
  const size_t executor = Reserve(&total, 1, sizeof(TVMGraphExecutor));
  const size_t nodes = Reserve(&total, counts->nodes, sizeof(GraphNode));
  const size_t entries = Reserve(&total, counts->entries, sizeof(DLTensor));
  const size_t storages = Reserve(&total, counts->entries, sizeof(GraphStorage));
  /* One more than there are, so that no scalar's shape lies behind the end. */
  const size_t extents = Reserve(&total, (size_t)counts->extents + 1U, sizeof(int64_t));
  const size_t inputs = Reserve(&total, counts->inputs, sizeof(uint32_t));
  const size_t arguments = Reserve(&total, counts->arguments, sizeof(uint32_t));
  const size_t heads = Reserve(&total, 2U * (size_t)counts->heads, sizeof(uint32_t));
  const size_t rows = Reserve(&total, counts->rows, sizeof(uint32_t));
  const size_t storage_ids = Reserve(&total, counts->entries, sizeof(uint32_t));
  const size_t names = Reserve(&total, counts->name_bytes, 1);
  if (total == SIZE_MAX) {
    return TVMCrtError(kTvmErrorPlatformNoMemory, "the graph is larger than the address space", NULL);
  }
  status = TVMPlatformMemoryAllocate(total, device, &memory);
  if (status != kTvmErrorNoError) {
    return TVMCrtError(status, "there is no memory for the graph", NULL);
  }
  memset(memory, 0, total);
  base = (uint8_t*)memory;
  graph = (TVMGraphExecutor*)(void*)(base + executor);
  graph->nodes = (GraphNode*)(void*)(base + nodes);
  graph->entries = (DLTensor*)(void*)(base + entries);
  graph->storages = (GraphStorage*)(void*)(base + storages);
  graph->extents = (int64_t*)(void*)(base + extents);
  graph->inputs = (uint32_t*)(void*)(base + inputs);
  graph->arguments = (uint32_t*)(void*)(base + arguments);
  graph->heads = (uint32_t*)(void*)(base + heads);
  graph->rows = (uint32_t*)(void*)(base + rows);
  graph->storage_ids = (uint32_t*)(void*)(base + storage_ids);
  graph->names = (char*)(base + names);
  graph->counts = *counts;
  graph->device = device;
  *out = graph;
  return kTvmErrorNoError;
}

/* Allocates what operators write to, and shows it in the entries. */
static tvm_crt_error_t AllocateStorages(TVMGraphExecutor* graph) {
  uint32_t i;
  for (i = 0; i < graph->counts.entries; ++i) {
    GraphStorage* const storage = &graph->storages[i];
    if (storage->is_written && storage->data == NULL) {
      const size_t bytes = storage->bytes == 0U ? 1U : storage->bytes;
      const tvm_crt_error_t status = TVMPlatformMemoryAllocate(bytes, graph->device, &storage->data);
      if (status != kTvmErrorNoError) {
        storage->data = NULL;
        return TVMCrtError(status, "there is no memory for the graph's tensors", NULL);
      }
#if TVM_CRT_DEBUG > 1
      LOG_DEBUG("graph executor: storage %u of %lu bytes\n", (unsigned)i, (unsigned long)bytes);
#endif
      storage->owned = 1;
    }
  }
  for (i = 0; i < graph->counts.entries; ++i) {
    graph->entries[i].device = graph->device;
    graph->entries[i].data = graph->storages[graph->storage_ids[i]].data;
  }
  TVMGraph_UpdateViews(graph);
  return kTvmErrorNoError;
}

/* Takes the constants that are linked into the module, where it has the function that knows them. */
static tvm_crt_error_t LookUpLinked(TVMGraphExecutor* graph) {
  TVMFunctionHandle lookup = NULL;
  uint32_t i;
  if (TVMModGetFunction(graph->module, "_lookup_linked_param", 0, &lookup) != kTvmErrorNoError) {
    return kTvmErrorNoError;
  }
  for (i = 0; i < graph->counts.entries; ++i) {
    TVMValue argument;
    TVMValue result;
    int argument_code = kTVMArgInt;
    int result_code = kTVMNullptr;
    int status;
    argument.v_int64 = i;
    result.v_handle = NULL;
    if (graph->storages[i].bytes == 0U) {
      continue;
    }
    status = TVMFuncCall(lookup, &argument, &argument_code, 1, &result, &result_code);
    if (status != kTvmErrorNoError) {
      return (tvm_crt_error_t)status;
    }
    if (result_code == kTVMOpaqueHandle) {
      graph->storages[i].data = result.v_handle;
    }
  }
  return kTvmErrorNoError;
}

/* The view's root is an argument that nothing overwrites, or the planner knows that the two share memory. */
static tvm_crt_error_t CheckView(const TVMGraphExecutor* graph, const GraphNode* node) {
  const uint32_t from = graph->inputs[node->first_input];
  const uint32_t to = node->first_entry;
  const DLTensor* const source = &graph->entries[from];
  const DLTensor* const view = &graph->entries[to];
  size_t source_bytes = 0;
  size_t view_bytes = 0;
  tvm_crt_error_t status = TVMTensor_Bytes(source->shape, source->ndim, source->dtype, &source_bytes);
  if (status == kTvmErrorNoError) {
    status = TVMTensor_Bytes(view->shape, view->ndim, view->dtype, &view_bytes);
  }
  if (status == kTvmErrorNoError && view_bytes != source_bytes) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "a view of the graph has another size than its input", NULL);
  }
  if (status == kTvmErrorNoError && graph->storage_ids[from] != graph->storage_ids[to] &&
      graph->storages[graph->storage_ids[from]].is_written) {
    return TVMCrtError(kTvmErrorGeneratedInvalidStorageId, "a view of the graph does not share its input's storage",
                       NULL);
  }
  return status;
}

/* Checks arg_nodes and heads, and makes entries of the latter. */
static tvm_crt_error_t CheckReferences(TVMGraphExecutor* graph) {
  uint32_t i;
  for (i = 0; i < graph->counts.arguments; ++i) {
    if (graph->arguments[i] >= graph->counts.nodes ||
        graph->nodes[graph->arguments[i]].kind != kGraphNodeArgument) {
      return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "arg_nodes of the graph holds what is no input", NULL);
    }
  }
  for (i = 0; i < graph->counts.heads; ++i) {
    const uint32_t node = graph->heads[2U * i];
    const uint32_t output = graph->heads[2U * i + 1U];
    if (node >= graph->counts.nodes || output >= graph->nodes[node].output_count) {
      return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "heads of the graph holds an output that is not there", NULL);
    }
    graph->heads[i] = graph->nodes[node].first_entry + output;
  }
  return kTvmErrorNoError;
}

/* Checks node_row_ptr: where the entries of every node start, and how many there are. */
static tvm_crt_error_t CheckRows(const TVMGraphExecutor* graph) {
  const uint32_t nodes = graph->counts.nodes;
  uint32_t entries = 0;
  uint32_t i;
  int agree = graph->counts.rows == nodes + 1U;
  for (i = 0; agree && i < nodes; ++i) {
    agree = graph->rows[i] == entries;
    entries += graph->nodes[i].output_count;
  }
  if (!agree || graph->rows[nodes] != entries || entries != graph->counts.entries) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "node_row_ptr of the graph disagrees with the nodes or tables",
                       NULL);
  }
  return kTvmErrorNoError;
}

/* Finds out who writes to each storage; inputs and parameters must have theirs to themselves. */
static tvm_crt_error_t CheckOwners(TVMGraphExecutor* graph) {
  uint32_t i;
  for (i = 0; i < graph->counts.nodes; ++i) {
    const GraphNode* const node = &graph->nodes[i];
    uint32_t output;
    for (output = 0; node->kind != kGraphNodeView && output < node->output_count; ++output) {
      GraphStorage* const storage = &graph->storages[graph->storage_ids[node->first_entry + output]];
      const int argument = node->kind == kGraphNodeArgument;
      if (storage->is_argument || (argument && storage->is_written)) {
        return TVMCrtError(kTvmErrorGeneratedInvalidStorageId, "an input or parameter shares its storage", NULL);
      }
      storage->is_argument = argument;
      storage->is_written = !argument;
    }
  }
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMGraph_Check(TVMGraphExecutor* graph) {
  uint32_t i;
  tvm_crt_error_t status = CheckRows(graph);
  if (status == kTvmErrorNoError) {
    status = CheckReferences(graph);
  }
  for (i = 0; status == kTvmErrorNoError && i < graph->counts.entries; ++i) {
    const DLTensor* const entry = &graph->entries[i];
    size_t bytes = 0;
    if (graph->storage_ids[i] >= graph->counts.entries) {
      return TVMCrtError(kTvmErrorGeneratedInvalidStorageId, "a storage_id of the graph is larger than any should be",
                         NULL);
    }
    status = TVMTensor_Bytes(entry->shape, entry->ndim, entry->dtype, &bytes);
    if (bytes > graph->storages[graph->storage_ids[i]].bytes) {
      graph->storages[graph->storage_ids[i]].bytes = bytes;
    }
  }
  if (status == kTvmErrorNoError) {
    status = CheckOwners(graph);
  }
  for (i = 0; status == kTvmErrorNoError && i < graph->counts.nodes; ++i) {
    if (graph->nodes[i].kind == kGraphNodeView) {
      status = CheckView(graph, &graph->nodes[i]);
    }
  }
  return status;
}

void TVMGraph_UpdateViews(TVMGraphExecutor* graph) {
  uint32_t i;
  for (i = 0; i < graph->counts.nodes; ++i) {
    const GraphNode* const node = &graph->nodes[i];
    if (node->kind == kGraphNodeView) {
      graph->entries[node->first_entry].data = graph->entries[graph->inputs[node->first_input]].data;
    }
  }
}

int TVMGraphExecutor_Create(const char* graph_json, TVMModuleHandle module_handle, const DLDevice* devices,
                            TVMGraphExecutor** out_graph_executor) {
  GraphCounts counts;
  TVMGraphExecutor* graph = NULL;
  size_t bytes;
  tvm_crt_error_t status;
  *out_graph_executor = NULL;
  if (graph_json == NULL || devices == NULL || devices[0].device_type != kDLCPU) {
    return TVMCrtError(kTvmErrorExecutorModuleBadContext, "a graph runs on the CPU", NULL);
  }
  bytes = strlen(graph_json);
  if (bytes > INT32_MAX) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the graph's text is too long", NULL);
  }
  status = TVMGraph_Parse(graph_json, bytes, &counts, NULL);
  if (status == kTvmErrorNoError) {
    status = Allocate(&counts, devices[0], &graph);
  }
  if (status != kTvmErrorNoError) {
    return status;
  }
  graph->module = module_handle;
  status = TVMGraph_Parse(graph_json, bytes, &counts, graph);
  if (status == kTvmErrorNoError) {
    status = TVMGraph_Check(graph);
  }
  if (status == kTvmErrorNoError) {
    status = LookUpLinked(graph);
  }
  if (status == kTvmErrorNoError) {
    status = AllocateStorages(graph);
  }
  if (status != kTvmErrorNoError) {
    (void)TVMGraphExecutor_Release(&graph);
    return status;
  }
  *out_graph_executor = graph;
  return kTvmErrorNoError;
}

int TVMGraphExecutor_Release(TVMGraphExecutor** graph_executor) {
  TVMGraphExecutor* const graph = *graph_executor;
  DLDevice device;
  tvm_crt_error_t status = kTvmErrorNoError;
  tvm_crt_error_t freed;
  uint32_t i;
  *graph_executor = NULL;
  if (graph == NULL) {
    return kTvmErrorNoError;
  }
  device = graph->device;
  for (i = graph->counts.entries; i > 0U; --i) {
    if (graph->storages[i - 1U].owned) {
      freed = TVMPlatformMemoryFree(graph->storages[i - 1U].data, device);
      status = status == kTvmErrorNoError ? freed : status;
    }
  }
  freed = TVMPlatformMemoryFree(graph, device);
  return status == kTvmErrorNoError ? freed : status;
}
