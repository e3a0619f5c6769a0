/*
 * What the embedding project supplies to the C runtime. platform/posix and platform/semihosting have implementations
 * that are ready to use, templates/platform.c.template has one to start from. A model compiled by mlc with the C
 * interface calls none of these functions.
 */
#ifndef TVM_RUNTIME_CRT_PLATFORM_H_
#define TVM_RUNTIME_CRT_PLATFORM_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets memory up; to be called first. */
tvm_crt_error_t TVMPlatformInitialize(void);

/* Ends the program, or resets the machine, after an error that nothing can be done about. Must not return. */
void TVMPlatformAbort(tvm_crt_error_t code);

/* Prints a message, formatted like printf. Used by logging.h and by nothing else. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void TVMLogf(const char* fmt, ...);

/* Formats a message like vsnprintf; returns its length. */
size_t TVMPlatformFormatMessage(char* out_buf, size_t out_buf_size_bytes, const char* fmt, va_list args);

/*
 * Allocates memory, aligned as the code needs (16 bytes unless it was generated otherwise). On failure *out_ptr stays.
 */
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr);

/* Frees memory of TVMPlatformMemoryAllocate. */
tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev);

/* Starts the timer; kTvmErrorPlatformTimerBadState when it runs already. */
tvm_crt_error_t TVMPlatformTimerStart(void);

/* Stops the timer and stores the seconds since its start; kTvmErrorPlatformTimerBadState when it does not run. */
tvm_crt_error_t TVMPlatformTimerStop(double* elapsed_time_seconds);

/* Called around every measurement, for example to fix the clock's frequency. The library common has defaults. */
tvm_crt_error_t TVMPlatformBeforeMeasurement(void);
tvm_crt_error_t TVMPlatformAfterMeasurement(void);

/*
 * Fills a buffer with random bytes, other ones after every reset. The default says
 * kTvmErrorFunctionCallNotImplemented.
 */
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t* buffer, size_t num_bytes);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_PLATFORM_H_ */
