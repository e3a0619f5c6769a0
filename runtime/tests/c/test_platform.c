/* The platform of the tests. */
#include "expect.h"

#include <tvm/runtime/crt/platform.h>

int test_allocations = 0;
int test_allocations_left = -1;

tvm_crt_error_t TVMPlatformInitialize(void) { return kTvmErrorNoError; }

void TVMPlatformAbort(tvm_crt_error_t code) {
  printf("aborted: 0x%x\n", (unsigned)code);
  exit(1);
}

void TVMLogf(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  (void)vprintf(fmt, args);
  va_end(args);
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr) {
  void* memory;
  (void)dev;
  if (test_allocations_left == 0 || num_bytes > (size_t)1 << 26U) {
    return kTvmErrorPlatformNoMemory;
  }
  memory = malloc(num_bytes);
  if (memory == NULL) {
    return kTvmErrorPlatformNoMemory;
  }
  /* What is read without having been written should not look like zeroes. */
  memset(memory, 0xa5, num_bytes);
  if (test_allocations_left > 0) {
    --test_allocations_left;
  }
  ++test_allocations;
  *out_ptr = memory;
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev) {
  (void)dev;
  free(ptr);
  --test_allocations;
  return kTvmErrorNoError;
}

static int running = 0;

tvm_crt_error_t TVMPlatformTimerStart(void) {
  if (running) {
    return kTvmErrorPlatformTimerBadState;
  }
  running = 1;
  return kTvmErrorNoError;
}

/* Every measurement takes a quarter of a second. */
tvm_crt_error_t TVMPlatformTimerStop(double* elapsed_time_seconds) {
  if (!running) {
    return kTvmErrorPlatformTimerBadState;
  }
  running = 0;
  *elapsed_time_seconds = 0.25;
  return kTvmErrorNoError;
}
