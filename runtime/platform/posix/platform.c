/*
 * The platform of POSIX hosts, ready to use. Memory comes from a static pool of TVM_WORKSPACE_SIZE_BYTES where that is
 * defined, as on a device, and else from the heap; both are aligned to 64 bytes.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/platform.h>

#define ALIGNMENT ((size_t)(TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES > 64 ? TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES : 64))

#ifdef TVM_WORKSPACE_SIZE_BYTES

/* Pages of 256 bytes. */
#define PAGE_LOG2 8

static uint8_t pool[TVM_WORKSPACE_SIZE_BYTES];
static MemoryManagerInterface* manager = NULL;

tvm_crt_error_t TVMPlatformInitialize(void) {
  return PageMemoryManagerCreate(&manager, pool, sizeof(pool), PAGE_LOG2);
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr) {
  return manager == NULL ? kTvmErrorPlatformNoMemory : manager->Allocate(manager, num_bytes, dev, out_ptr);
}

tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev) {
  return manager == NULL ? kTvmErrorPlatformCheckFailure : manager->Free(manager, ptr, dev);
}

#else

tvm_crt_error_t TVMPlatformInitialize(void) { return kTvmErrorNoError; }

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr) {
  void* memory = NULL;
  (void)dev;
  if (posix_memalign(&memory, ALIGNMENT, num_bytes == 0U ? 1U : num_bytes) != 0) {
    return kTvmErrorPlatformNoMemory;
  }
  *out_ptr = memory;
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev) {
  (void)dev;
  free(ptr);
  return kTvmErrorNoError;
}

#endif

void TVMPlatformAbort(tvm_crt_error_t code) {
  fprintf(stderr, "aborted: error 0x%03x\n", (unsigned)code);
  abort();
}

size_t TVMPlatformFormatMessage(char* out_buf, size_t out_buf_size_bytes, const char* fmt, va_list args) {
  const int length = vsnprintf(out_buf, out_buf_size_bytes, fmt, args);
  return length < 0 ? 0U : (size_t)length;
}

void TVMLogf(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  (void)vfprintf(stderr, fmt, args);
  va_end(args);
}

static struct timespec timer_start;
static int timer_running = 0;

tvm_crt_error_t TVMPlatformTimerStart(void) {
  if (timer_running) {
    return kTvmErrorPlatformTimerBadState;
  }
  timer_running = clock_gettime(CLOCK_MONOTONIC, &timer_start) == 0;
  return timer_running ? kTvmErrorNoError : kTvmErrorPlatformTimerBadState;
}

tvm_crt_error_t TVMPlatformTimerStop(double* elapsed_time_seconds) {
  struct timespec now;
  if (!timer_running || clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
    return kTvmErrorPlatformTimerBadState;
  }
  timer_running = 0;
  *elapsed_time_seconds =
      (double)(now.tv_sec - timer_start.tv_sec) + 1e-9 * (double)(now.tv_nsec - timer_start.tv_nsec);
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t* buffer, size_t num_bytes) {
  FILE* const source = fopen("/dev/urandom", "rb");
  size_t got;
  if (source == NULL) {
    return kTvmErrorFunctionCallNotImplemented;
  }
  got = fread(buffer, 1, num_bytes, source);
  (void)fclose(source);
  return got == num_bytes ? kTvmErrorNoError : kTvmErrorFunctionCallNotImplemented;
}
