/* Runs the model "@MODEL@" once on zeros: put your data into the inputs before infer(), use the outputs after it. */
#include <stdint.h>
#include <stdio.h>
#include "tvmgen_@MODEL@.h"

#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(16)))
#else
#define ALIGNED
#endif

/* The caller owns this memory; the model keeps none of it between two runs. */
@BUFFERS@
@INFER@
@ENTRY@ {
  const int32_t status = infer();
  if (status != 0) {
    printf("the model failed with status %ld\n", (long)status);
    @LEAVE@;
  }
@FIRMWARE_PRINT@  @LEAVE@;
}
