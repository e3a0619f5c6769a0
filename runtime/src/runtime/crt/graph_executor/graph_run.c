/* Inputs, outputs and runs of a graph executor. */
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

int32_t TVMGraph_FindArgument(const TVMGraphExecutor* graph, const char* name, size_t length) {
  uint32_t i;
  for (i = 0; i < graph->counts.arguments; ++i) {
    const char* const candidate = graph->nodes[graph->arguments[i]].name;
    if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) {
      return (int32_t)i;
    }
  }
  return -1;
}

uint32_t TVMGraph_ArgumentEntry(const TVMGraphExecutor* graph, int32_t position) {
  return graph->nodes[graph->arguments[position]].first_entry;
}

tvm_crt_error_t TVMGraph_OwnArgument(TVMGraphExecutor* graph, uint32_t entry) {
  GraphStorage* const storage = &graph->storages[graph->storage_ids[entry]];
  tvm_crt_error_t status;
  if (!storage->owned) {
    const size_t bytes = storage->bytes == 0U ? 1U : storage->bytes;
    void* memory = NULL;
    status = TVMPlatformMemoryAllocate(bytes, graph->device, &memory);
    if (status != kTvmErrorNoError) {
      return TVMCrtError(status, "there is no memory for an input", NULL);
    }
#if TVM_CRT_DEBUG > 1
    LOG_DEBUG("graph executor: input or parameter of %lu bytes\n", (unsigned long)bytes);
#endif
    memset(memory, 0, bytes);
    storage->data = memory;
    storage->owned = 1;
  }
  graph->entries[entry].data = storage->data;
  TVMGraph_UpdateViews(graph);
  return kTvmErrorNoError;
}

int TVMGraphExecutor_GetInputIndex(TVMGraphExecutor* graph_executor, const char* name) {
  return TVMGraph_FindArgument(graph_executor, name, strlen(name));
}

int TVMGraphExecutor_GetNumInputs(TVMGraphExecutor* graph_executor) {
  return (int)graph_executor->counts.arguments;
}

int TVMGraphExecutor_GetNumOutputs(TVMGraphExecutor* graph_executor) { return (int)graph_executor->counts.heads; }

/* Whether a tensor can stand for an argument of the graph. */
static tvm_crt_error_t CheckInput(const DLTensor* wanted, const DLTensor* given, const char* name) {
  size_t wanted_bytes = 0;
  size_t given_bytes = 0;
  tvm_crt_error_t status;
  if (given == NULL || given->data == NULL || !TVMTensor_IsCompact(given)) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the tensor has no data, or is not compact", name);
  }
  if (!TVMDataType_Alike(wanted->dtype, given->dtype)) {
    return TVMCrtError(kTvmErrorFunctionCallWrongArgType, "the input has another type than the tensor", name);
  }
  status = TVMTensor_Bytes(wanted->shape, wanted->ndim, wanted->dtype, &wanted_bytes);
  if (status == kTvmErrorNoError) {
    status = TVMTensor_Bytes(given->shape, given->ndim, given->dtype, &given_bytes);
  }
  if (status == kTvmErrorNoError && wanted_bytes != given_bytes) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the input has another size than the tensor", name);
  }
  return status;
}

void TVMGraphExecutor_SetInput(TVMGraphExecutor* graph_executor, const char* name, DLTensor* data_in) {
  const int index = TVMGraphExecutor_GetInputIndex(graph_executor, name);
  tvm_crt_error_t status;
  if (index < 0) {
    status = TVMCrtError(kTvmErrorExecutorModuleNoSuchInput, "the graph has no such input", name);
  } else {
    DLTensor* const entry = &graph_executor->entries[TVMGraph_ArgumentEntry(graph_executor, index)];
    status = CheckInput(entry, data_in, name);
    if (status == kTvmErrorNoError) {
      entry->data = (uint8_t*)data_in->data + data_in->byte_offset;
      TVMGraph_UpdateViews(graph_executor);
    }
  }
  if (graph_executor->input_status == kTvmErrorNoError) {
    graph_executor->input_status = status;
  }
}

/* Adds an entry to the arguments of a call. */
static tvm_crt_error_t Pass(const TVMGraphExecutor* graph, uint32_t entry, TVMValue* value, int* code) {
  DLTensor* const tensor = &graph->entries[entry];
  if (tensor->data == NULL) {
    return TVMCrtError(kTvmErrorExecutorModuleNoSuchInput, "an input was not set, or a parameter not loaded", NULL);
  }
  value->v_handle = tensor;
  *code = kTVMNDArrayHandle;
  return kTvmErrorNoError;
}

static int RunNode(const TVMGraphExecutor* graph, const GraphNode* node) {
  TVMValue values[TVM_CRT_MAX_ARGS];
  int codes[TVM_CRT_MAX_ARGS];
  TVMValue result;
  int result_code = kTVMNullptr;
  uint32_t count = 0;
  uint32_t i;
  tvm_crt_error_t status = kTvmErrorNoError;
  for (i = 0; status == kTvmErrorNoError && i < node->input_count; ++i, ++count) {
    status = Pass(graph, graph->inputs[node->first_input + i], &values[count], &codes[count]);
  }
  for (i = 0; status == kTvmErrorNoError && i < node->output_count; ++i, ++count) {
    status = Pass(graph, node->first_entry + i, &values[count], &codes[count]);
  }
  if (status != kTvmErrorNoError) {
    return status;
  }
  return TVMFuncCall(node->function, values, codes, (int)count, &result, &result_code);
}

void TVMGraphExecutor_Run(TVMGraphExecutor* graph_executor) {
  uint32_t i;
  int status = graph_executor->input_status;
  graph_executor->input_status = kTvmErrorNoError;
  for (i = 0; status == kTvmErrorNoError && i < graph_executor->counts.nodes; ++i) {
    const GraphNode* const node = &graph_executor->nodes[i];
    if (node->kind == kGraphNodeCall) {
#if TVM_CRT_DEBUG > 0
      LOG_DEBUG("graph executor: node %u\n", (unsigned)i);
#endif
      status = RunNode(graph_executor, node);
    }
  }
  graph_executor->status = status;
}

int TVMGraphExecutor_GetStatus(const TVMGraphExecutor* graph_executor) {
  return graph_executor->status != kTvmErrorNoError ? graph_executor->status : graph_executor->input_status;
}

DLTensor* TVMGraphExecutor_GetOutputTensor(TVMGraphExecutor* graph_executor, int32_t index) {
  if (index < 0 || (uint32_t)index >= graph_executor->counts.heads) {
    return NULL;
  }
  return &graph_executor->entries[graph_executor->heads[index]];
}

DLTensor* TVMGraphExecutor_GetInputTensor(TVMGraphExecutor* graph_executor, int32_t index) {
  uint32_t entry;
  if (index < 0 || (uint32_t)index >= graph_executor->counts.arguments) {
    return NULL;
  }
  entry = TVMGraph_ArgumentEntry(graph_executor, index);
  if (graph_executor->entries[entry].data == NULL &&
      TVMGraph_OwnArgument(graph_executor, entry) != kTvmErrorNoError) {
    return NULL;
  }
  return &graph_executor->entries[entry];
}

int TVMGraphExecutor_GetOutput(TVMGraphExecutor* graph_executor, const int32_t index, DLTensor* out) {
  const DLTensor* const output = TVMGraphExecutor_GetOutputTensor(graph_executor, index);
  if (output == NULL || out == NULL) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the graph has no such output", NULL);
  }
  if (graph_executor->status != kTvmErrorNoError) {
    return graph_executor->status;
  }
  return TVMTensor_Copy(output, out);
}
