/*
 * Runs the model "@MODEL@". Without arguments the inputs are zeros, and the start of every output is printed. With arguments,
 * raw tensors are read from and written to files: the inputs' first, then the outputs', in the order of the header.
 */
#include <stdint.h>
#include <stdio.h>
#include "tvmgen_@MODEL@.h"

#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(64)))
#else
#define ALIGNED
#endif

/* The caller owns this memory; the model keeps none of it between two runs. */
@BUFFERS@
static const struct {
  const char* name;
  void* data;
  size_t bytes;
} tensors[] = {
@TENSORS@};

#define INPUTS @INPUT_COUNT@
#define TENSORS @TENSOR_COUNT@

@INFER@
static int transfer(const char* path, const char* mode, void* data, size_t bytes) {
  FILE* const file = fopen(path, mode);
  size_t done = 0;
  if (file != NULL) {
    done = mode[0] == 'r' ? fread(data, 1, bytes, file) : fwrite(data, 1, bytes, file);
    if (fclose(file) != 0) {
      done = 0;
    }
  }
  if (file == NULL || done != bytes) {
    fprintf(stderr, "%s: %lu bytes expected\n", path, (unsigned long)bytes);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  int number;
  int32_t status;
  const int files = argc > 1;
  if (files && argc != TENSORS + 1) {
    fprintf(stderr, "usage: %s [INPUT... OUTPUT...], %d files of raw tensors\n", argv[0], TENSORS);
    return 2;
  }
  for (number = 0; files && number < INPUTS; ++number) {
    if (transfer(argv[number + 1], "rb", tensors[number].data, tensors[number].bytes) != 0) {
      return 1;
    }
  }
  status = infer();
  if (status != 0) {
    fprintf(stderr, "the model failed with status %ld\n", (long)status);
    return 1;
  }
  for (number = INPUTS; files && number < TENSORS; ++number) {
    if (transfer(argv[number + 1], "wb", tensors[number].data, tensors[number].bytes) != 0) {
      return 1;
    }
  }
  if (!files) {
@PRINT@  }
  return 0;
}
