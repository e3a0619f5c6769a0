/* The tables of tvm/runtime/crt/func_registry.h. */
#include <string.h>
#include <tvm/runtime/crt/func_registry.h>

#define COUNT_BYTES sizeof(uint16_t)

uint16_t TVMFuncRegistry_GetNumFuncs(const TVMFuncRegistry* reg) {
  uint16_t count;
  memcpy(&count, reg->names, sizeof(count));
  return count;
}

int TVMFuncRegistry_SetNumFuncs(const TVMFuncRegistry* reg, const uint16_t num_funcs) {
  /* The structure is that of tables in flash; those that are counted up are in a buffer. */
  union {
    const char* read;
    char* write;
  } names;
  names.read = reg->names;
  memcpy(names.write, &num_funcs, sizeof(num_funcs));
  return 0;
}

const char* TVMFuncRegistry_Get0thFunctionName(const TVMFuncRegistry* reg) { return reg->names + COUNT_BYTES; }

/* Finds a name, or where the next name goes: *end, behind the last one. */
static tvm_crt_error_t Find(const TVMFuncRegistry* reg, const char* name, tvm_function_index_t* index,
                            const char** end) {
  const uint16_t count = TVMFuncRegistry_GetNumFuncs(reg);
  const char* cursor = TVMFuncRegistry_Get0thFunctionName(reg);
  uint16_t i;
  for (i = 0; i < count; ++i) {
    if (strcmp(cursor, name) == 0) {
      *index = i;
      return kTvmErrorNoError;
    }
    cursor += strlen(cursor) + 1U;
  }
  *end = cursor;
  return kTvmErrorFunctionNameNotFound;
}

tvm_crt_error_t TVMFuncRegistry_Lookup(const TVMFuncRegistry* reg, const char* name,
                                       tvm_function_index_t* function_index) {
  const char* end = NULL;
  return Find(reg, name, function_index, &end);
}

tvm_crt_error_t TVMFuncRegistry_GetByIndex(const TVMFuncRegistry* reg, tvm_function_index_t function_index,
                                           TVMBackendPackedCFunc* out_func) {
  if (function_index >= TVMFuncRegistry_GetNumFuncs(reg)) {
    return kTvmErrorFunctionIndexInvalid;
  }
  *out_func = reg->funcs[function_index];
  return kTvmErrorNoError;
}

/* Where the pointers of a table start: at the buffer's back, aligned. NULL when they don't fit. */
static uint8_t* Pointers(uint8_t* buffer, size_t bytes, size_t functions) {
  const size_t size = functions * sizeof(TVMBackendPackedCFunc);
  const size_t misaligned = (size_t)((uintptr_t)(buffer + bytes) % sizeof(TVMBackendPackedCFunc));
  if (bytes < size + misaligned + COUNT_BYTES + 1U) {
    return NULL;
  }
  return buffer + (bytes - misaligned - size);
}

tvm_crt_error_t TVMMutableFuncRegistry_Create(TVMMutableFuncRegistry* reg, uint8_t* buffer,
                                              size_t buffer_size_bytes) {
  size_t functions = buffer_size_bytes / kTvmAverageFuncEntrySizeBytes;
  uint8_t* pointers;
  if (functions > 0x7fffU) {
    functions = 0x7fffU;
  }
  pointers = functions == 0U ? NULL : Pointers(buffer, buffer_size_bytes, functions);
  if (pointers == NULL) {
    return kTvmErrorBufferTooSmall;
  }
  memset(buffer, 0, COUNT_BYTES + 1U);
  reg->registry.names = (const char*)buffer;
  reg->registry.funcs = (const TVMBackendPackedCFunc*)(const void*)pointers;
  reg->max_functions = functions;
  return kTvmErrorNoError;
}

static void Store(TVMMutableFuncRegistry* reg, size_t index, TVMBackendPackedCFunc func) {
  union {
    const TVMBackendPackedCFunc* read;
    TVMBackendPackedCFunc* write;
  } funcs;
  funcs.read = reg->registry.funcs;
  funcs.write[index] = func;
}

tvm_crt_error_t TVMMutableFuncRegistry_Set(TVMMutableFuncRegistry* reg, const char* name, TVMBackendPackedCFunc func,
                                           int override_existing) {
  const uint16_t count = TVMFuncRegistry_GetNumFuncs(&reg->registry);
  const char* const limit = (const char*)(const void*)reg->registry.funcs;
  const size_t bytes = strlen(name) + 1U;
  tvm_function_index_t index = 0;
  union {
    const char* read;
    char* write;
  } end;
  if (Find(&reg->registry, name, &index, &end.read) == kTvmErrorNoError) {
    if (!override_existing) {
      return kTvmErrorFunctionAlreadyDefined;
    }
    Store(reg, index, func);
    return kTvmErrorNoError;
  }
  if (count >= reg->max_functions || (size_t)(limit - end.read) < bytes + 1U) {
    return kTvmErrorFunctionRegistryFull;
  }
  memcpy(end.write, name, bytes);
  end.write[bytes] = '\0';
  Store(reg, count, func);
  (void)TVMFuncRegistry_SetNumFuncs(&reg->registry, (uint16_t)(count + 1U));
  return kTvmErrorNoError;
}
