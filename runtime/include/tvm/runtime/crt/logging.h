/* Messages and checks. Both print through TVMLogf, which the platform supplies. */
#ifndef TVM_RUNTIME_CRT_LOGGING_H_
#define TVM_RUNTIME_CRT_LOGGING_H_

#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/platform.h>

#define TVM_CRT_LOG(level, ...)           \
  do {                                    \
    if ((level) <= (TVM_CRT_LOG_LEVEL)) { \
      TVMLogf(__VA_ARGS__);               \
    }                                     \
  } while (0)

/* A message of a level, formatted like printf. */
#define LOG_ERROR(...) TVM_CRT_LOG(TVM_CRT_LOG_LEVEL_ERROR, __VA_ARGS__)
#define LOG_WARN(...) TVM_CRT_LOG(TVM_CRT_LOG_LEVEL_WARN, __VA_ARGS__)
#define LOG_INFO(...) TVM_CRT_LOG(TVM_CRT_LOG_LEVEL_INFO, __VA_ARGS__)
#define LOG_DEBUG(...) TVM_CRT_LOG(TVM_CRT_LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Ends the program, by TVMPlatformAbort, unless a condition holds. */
#ifndef CHECK
#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      TVMLogf("%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);        \
      TVMPlatformAbort(kTvmErrorPlatformCheckFailure);                             \
    }                                                                              \
  } while (0)
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_NE(a, b) CHECK((a) != (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#endif

#endif /* TVM_RUNTIME_CRT_LOGGING_H_ */
