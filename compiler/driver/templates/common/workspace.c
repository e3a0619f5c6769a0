/*
 * Scratch memory for code that asks for it at run time: a stack over one static array of the size that the archive's header
 * says.
 */
#include <stdint.h>
#include "tvm/runtime/c_backend_api.h"
#include "tvm/runtime/crt/stack_allocator.h"
#include "tvmgen_@MODEL@.h"

#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(16)))
#else
#define ALIGNED
#endif

/* The figure doesn't count that every block is rounded up to 16 bytes. */
static uint8_t memory[@MACRO@_WORKSPACE_SIZE + 1024] ALIGNED;
static tvm_workspace_t workspace;

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint, int dtype_bits_hint) {
  void* block = NULL;
  (void)device_type;
  (void)device_id;
  (void)dtype_code_hint;
  (void)dtype_bits_hint;
  if (workspace.workspace == NULL) {
    (void)StackMemoryManager_Init(&workspace, memory, sizeof(memory));
  }
  return StackMemoryManager_Allocate(&workspace, (int32_t)nbytes, &block) == kTvmErrorNoError ? block : NULL;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr) {
  (void)device_type;
  (void)device_id;
  return StackMemoryManager_Free(&workspace, ptr) == kTvmErrorNoError ? 0 : -1;
}
