/* Platforms of one's own: the template and the ready ones for POSIX systems. */
#include "expect.h"

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/platform.h>

static size_t Format(char* buffer, size_t bytes, const char* format, ...) {
  va_list args;
  size_t length;
  va_start(args, format);
  length = TVMPlatformFormatMessage(buffer, bytes, format, args);
  va_end(args);
  return length;
}

int main(void) {
  const DLDevice device = {kDLCPU, 0};
  void* first;
  void* second;
  uint8_t random[2][16];
  double seconds = -1.0;
  char text[32];
  EXPECT_OK(TVMPlatformInitialize());
  first = TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32);
  second = TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32);
  EXPECT(first != NULL && second != NULL && first != second);
  EXPECT((uintptr_t)first % 16U == 0U && (uintptr_t)second % 16U == 0U);
  memset(first, 1, 1000);
  memset(second, 2, 1000);
  EXPECT_OK(TVMBackendFreeWorkspace(kDLCPU, 0, second));
  EXPECT_OK(TVMBackendFreeWorkspace(kDLCPU, 0, first));
  second = random;
  EXPECT(TVMPlatformMemoryAllocate(SIZE_MAX / 2U, device, &second) == kTvmErrorPlatformNoMemory);
  EXPECT(second == random);
  EXPECT_CODE(TVMPlatformTimerStop(&seconds), kTvmErrorPlatformTimerBadState);
  EXPECT_OK(TVMPlatformTimerStart());
  EXPECT_CODE(TVMPlatformTimerStart(), kTvmErrorPlatformTimerBadState);
  EXPECT_OK(TVMPlatformTimerStop(&seconds));
  EXPECT(seconds >= 0.0);
  EXPECT_OK(TVMPlatformBeforeMeasurement());
  EXPECT_OK(TVMPlatformAfterMeasurement());
  EXPECT_OK(TVMPlatformGenerateRandom(random[0], 16));
  EXPECT_OK(TVMPlatformGenerateRandom(random[1], 16));
  EXPECT(memcmp(random[0], random[1], 16) != 0);
  EXPECT(Format(text, sizeof(text), "%d %s", 42, "x") == 4U && strcmp(text, "42 x") == 0);
  LOG_ERROR("error %d\n", 1);
  LOG_DEBUG("debug %d\n", 2);
  CHECK_EQ(1 + 1, 2);
  puts("done");
  return 0;
}
