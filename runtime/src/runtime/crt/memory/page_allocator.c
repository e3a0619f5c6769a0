/* The page allocator of tvm/runtime/crt/page_allocator.h. */
#include <string.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/page_allocator.h>

/* Set in the table's entry of the first page of a run that is allocated. The other bits are the run's pages. */
#define USED 0x80000000U

/* Most that pages are aligned to: what vector units and caches like. */
#define MOST_ALIGNMENT \
  ((size_t)(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES > 64 ? TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES : 64))

/*
 * Runs of pages tile the block: runs[first] says how long the run of page first is and whether it is allocated, and the
 * next run starts behind it. Entries of pages inside runs are 0, so a pointer into the middle of a run is recognised.
 */
typedef struct {
  MemoryManagerInterface interface;
  uint8_t* pages;
  uint32_t* runs;
  uint32_t count;
  unsigned page_log2;
} PageManager;

/* Lengthens the free run of page first by the free runs behind it. */
static uint32_t Join(PageManager* manager, uint32_t first) {
  uint32_t length = manager->runs[first];
  while (first + length < manager->count && (manager->runs[first + length] & USED) == 0U) {
    const uint32_t next = first + length;
    length += manager->runs[next];
    manager->runs[next] = 0;
  }
  manager->runs[first] = length;
  return length;
}

static tvm_crt_error_t Allocate(MemoryManagerInterface* interface, size_t num_bytes, DLDevice dev, void** out_ptr) {
  PageManager* const manager = (PageManager*)interface;
  const size_t page_bytes = (size_t)1 << manager->page_log2;
  const size_t wanted = (num_bytes >> manager->page_log2) + ((num_bytes & (page_bytes - 1U)) != 0U ? 1U : 0U);
  const size_t pages = wanted == 0U ? 1U : wanted;
  uint32_t first = 0;
  (void)dev;
  while (first < manager->count) {
    const uint32_t run = manager->runs[first];
    uint32_t length = run & ~USED;
    if ((run & USED) == 0U) {
      length = Join(manager, first);
      if (length >= pages) {
        if (length > pages) {
          manager->runs[first + (uint32_t)pages] = length - (uint32_t)pages;
        }
        manager->runs[first] = (uint32_t)pages | USED;
        *out_ptr = manager->pages + ((size_t)first << manager->page_log2);
        ++manager->interface.vleak_size;
        return kTvmErrorNoError;
      }
    }
    first += length;
  }
  return kTvmErrorPlatformNoMemory;
}

static tvm_crt_error_t Free(MemoryManagerInterface* interface, void* ptr, DLDevice dev) {
  PageManager* const manager = (PageManager*)interface;
  const uintptr_t start = (uintptr_t)manager->pages;
  const uintptr_t offset = (uintptr_t)ptr - start;
  const uintptr_t page = offset >> manager->page_log2;
  (void)dev;
  if ((uintptr_t)ptr < start || page >= manager->count || page << manager->page_log2 != offset ||
      (manager->runs[page] & USED) == 0U) {
    return kTvmErrorPlatformCheckFailure;
  }
  manager->runs[page] &= ~USED;
  --manager->interface.vleak_size;
  return kTvmErrorNoError;
}

/* Bytes from an address up to the next multiple of a power of two. */
static size_t Gap(const uint8_t* address, size_t alignment) {
  return (size_t)(0U - (uintptr_t)address) & (alignment - 1U);
}

tvm_crt_error_t PageMemoryManagerCreate(MemoryManagerInterface** out_manager, uint8_t* memory_pool,
                                        size_t memory_pool_size_bytes, size_t page_size_bytes_log2) {
  size_t bytes = memory_pool_size_bytes;
  size_t page_bytes;
  size_t gap;
  size_t count;
  uint8_t* table;
  PageManager* manager;
  if (out_manager == NULL || memory_pool == NULL || page_size_bytes_log2 >= sizeof(size_t) * 8U - 1U) {
    return kTvmErrorFunctionCallInvalidArg;
  }
  *out_manager = NULL;
  page_bytes = (size_t)1 << page_size_bytes_log2;
  gap = Gap(memory_pool, page_bytes < MOST_ALIGNMENT ? page_bytes : MOST_ALIGNMENT);
  if (bytes < gap + sizeof(PageManager) + 2U * sizeof(void*)) {
    return kTvmErrorPlatformNoMemory;
  }
  bytes -= gap + sizeof(PageManager) + 2U * sizeof(void*);
  count = bytes / (page_bytes + sizeof(uint32_t));
  if (count == 0U || count >= USED) {
    return kTvmErrorPlatformNoMemory;
  }
  memset(memory_pool, 0, memory_pool_size_bytes);
  table = memory_pool + gap + count * page_bytes;
  table += Gap(table, sizeof(void*));
  manager = (PageManager*)(void*)table;
  table += sizeof(PageManager);
  manager->interface.Allocate = Allocate;
  manager->interface.Free = Free;
  manager->interface.vleak_size = 0;
  manager->pages = memory_pool + gap;
  manager->runs = (uint32_t*)(void*)table;
  manager->count = (uint32_t)count;
  manager->page_log2 = (unsigned)page_size_bytes_log2;
  manager->runs[0] = (uint32_t)count;
  *out_manager = &manager->interface;
  return kTvmErrorNoError;
}
