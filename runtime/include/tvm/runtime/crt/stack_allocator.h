/*
 * An allocator over one block of memory whose allocations are freed in reverse order. No tables, no search: two
 * additions per call. Every allocation is aligned to TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES. With
 * TVM_CRT_STACK_ALLOCATOR_ENABLE_LIFO_CHECK every allocation carries a tag of 4 bytes behind it, which makes a free
 * out of order an error instead of a corruption; the block must then be larger by the tags.
 */
#ifndef TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/internal/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The block: next_alloc is where the next allocation starts, workspace where the block does. */
typedef struct {
  uint8_t* next_alloc;
  uint8_t* workspace;
  size_t workspace_size;
} tvm_workspace_t;

/* Takes a block of memory. An unaligned start is rounded up and shortens the block: align the block. */
tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t* tvm_runtime_workspace, uint8_t* g_aot_memory,
                                        size_t workspace_size);

/* Allocates; kTvmErrorPlatformNoMemory when nothing is left. */
tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t* tvm_runtime_workspace, int32_t nbytes,
                                            void** current_alloc);

/* Frees the latest allocation that was not freed yet. */
tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t* tvm_runtime_workspace, void* ptr);

/* The same two with the check of the order chosen by the caller; all calls on one block must agree on it. */
tvm_crt_error_t StackMemoryManager_Allocate_Body(tvm_workspace_t* tvm_runtime_workspace, int32_t nbytes,
                                                 void** current_alloc, uint8_t do_lifo_check);
tvm_crt_error_t StackMemoryManager_Free_Body(tvm_workspace_t* tvm_runtime_workspace, void* ptr,
                                             uint8_t do_lifo_check);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_ */
