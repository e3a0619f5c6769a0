/*
 * An allocator over one block of memory that hands out whole pages, in any order of allocating and freeing. The table
 * of pages is at the block's end, 4 bytes per page.
 */
#ifndef TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MemoryManagerInterface MemoryManagerInterface;

/* An allocator. vleak_size counts the allocations that were not freed yet. */
struct MemoryManagerInterface {
  tvm_crt_error_t (*Allocate)(MemoryManagerInterface* interface, size_t num_bytes, DLDevice dev, void** out_ptr);
  tvm_crt_error_t (*Free)(MemoryManagerInterface* interface, void* ptr, DLDevice dev);
  int vleak_size;
};

/*
 * Makes an allocator of pages of 1 << page_size_log2 bytes in a block of memory, which it fills with zeroes. Pages
 * start at multiples of 64 bytes, or of TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES if that is more, or of their size if that is
 * less; an unaligned block is shortened. Freed pages join their free neighbours. A pointer that is not one of its own
 * is refused by Free, kTvmErrorPlatformCheckFailure, and changes nothing.
 */
tvm_crt_error_t PageMemoryManagerCreate(MemoryManagerInterface** out_manager, uint8_t* memory_pool,
                                        size_t memory_pool_size_bytes, size_t page_size_bytes_log2);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PAGE_ALLOCATOR_H_ */
