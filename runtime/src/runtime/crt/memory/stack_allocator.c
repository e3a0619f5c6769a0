/* The stack allocator of tvm/runtime/crt/stack_allocator.h. */
#include <string.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/stack_allocator.h>

#define ALIGNMENT ((size_t)TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES)

/* Mixed into the tag, so that left-over zeroes and small numbers do not look like one. */
static const uint32_t kTag = 0xabcd1234U;

#ifdef TVM_CRT_STACK_ALLOCATOR_ENABLE_LIFO_CHECK
static const uint8_t kLifoCheck = 1;
#else
static const uint8_t kLifoCheck = 0;
#endif

static size_t RoundUp(size_t bytes) { return (bytes + ALIGNMENT - 1U) & ~(ALIGNMENT - 1U); }

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t* tvm_runtime_workspace, uint8_t* g_aot_memory,
                                        size_t workspace_size) {
  const size_t misaligned = (size_t)((uintptr_t)g_aot_memory & (ALIGNMENT - 1U));
  size_t skipped = misaligned == 0U ? 0U : ALIGNMENT - misaligned;
  if (skipped > workspace_size) {
    skipped = workspace_size;
  }
  tvm_runtime_workspace->workspace = g_aot_memory + skipped;
  tvm_runtime_workspace->next_alloc = tvm_runtime_workspace->workspace;
  tvm_runtime_workspace->workspace_size = workspace_size - skipped;
  return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Allocate_Body(tvm_workspace_t* tvm_runtime_workspace, int32_t nbytes,
                                                 void** current_alloc, uint8_t do_lifo_check) {
  const size_t used = (size_t)(tvm_runtime_workspace->next_alloc - tvm_runtime_workspace->workspace);
  const size_t left = tvm_runtime_workspace->workspace_size - used;
  const size_t tag_bytes = do_lifo_check != 0U ? sizeof(uint32_t) : 0U;
  size_t total;
  *current_alloc = NULL;
  if (nbytes < 0) {
    return kTvmErrorPlatformNoMemory;
  }
  total = RoundUp((size_t)nbytes + tag_bytes);
  if (total < (size_t)nbytes || total > left) {
    return kTvmErrorPlatformNoMemory;
  }
  *current_alloc = tvm_runtime_workspace->next_alloc;
  tvm_runtime_workspace->next_alloc += total;
  if (do_lifo_check != 0U) {
    const uint32_t tag = (uint32_t)total ^ kTag;
    memcpy(tvm_runtime_workspace->next_alloc - sizeof(tag), &tag, sizeof(tag));
  }
  return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Free_Body(tvm_workspace_t* tvm_runtime_workspace, void* ptr,
                                             uint8_t do_lifo_check) {
  uint8_t* const start = (uint8_t*)ptr;
  if (start < tvm_runtime_workspace->workspace || start > tvm_runtime_workspace->next_alloc) {
    return kTvmErrorPlatformStackAllocBadFree;
  }
  if (do_lifo_check != 0U) {
    const size_t total = (size_t)(tvm_runtime_workspace->next_alloc - start);
    uint32_t tag = 0;
    if (total < sizeof(tag)) {
      return kTvmErrorPlatformStackAllocBadFree;
    }
    memcpy(&tag, tvm_runtime_workspace->next_alloc - sizeof(tag), sizeof(tag));
    if ((tag ^ kTag) != (uint32_t)total) {
      return kTvmErrorPlatformStackAllocBadFree;
    }
  }
  tvm_runtime_workspace->next_alloc = start;
  return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t* tvm_runtime_workspace, int32_t nbytes,
                                            void** current_alloc) {
  return StackMemoryManager_Allocate_Body(tvm_runtime_workspace, nbytes, current_alloc, kLifoCheck);
}

tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t* tvm_runtime_workspace, void* ptr) {
  return StackMemoryManager_Free_Body(tvm_runtime_workspace, ptr, kLifoCheck);
}
