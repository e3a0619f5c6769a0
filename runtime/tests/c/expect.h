/* Assertions of the tests, and the platform they run on: it counts allocations and can refuse one. */
#ifndef TESTS_EXPECT_H_
#define TESTS_EXPECT_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>

/* Ends the program with what was expected where. */
#define EXPECT(condition)                                                                              \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      printf("%s:%d: expected %s; last error: %s\n", __FILE__, __LINE__, #condition, TVMGetLastError()); \
      exit(1);                                                                                         \
    }                                                                                                  \
  } while (0)

/* Expects a call to return a code. */
#define EXPECT_CODE(call, code)                                                                    \
  do {                                                                                             \
    const int got_ = (int)(call);                                                                  \
    if (got_ != (int)(code)) {                                                                     \
      printf("%s:%d: %s returned 0x%x; last error: %s\n", __FILE__, __LINE__, #call, (unsigned)got_, \
             TVMGetLastError());                                                                   \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

#define EXPECT_OK(call) EXPECT_CODE(call, 0)

/* Allocations that were not freed yet. */
extern int test_allocations;

/* How many allocations still succeed; negative for all. */
extern int test_allocations_left;

#endif /* TESTS_EXPECT_H_ */
