/* Layers as anybody would write them down: channels last, output channels innermost, a test for each border, and each sum where it is
   begun, added to and finished. What C compilers make of it is what code for `generic` is held against.

   It is compiled twice: with LAYER for the loops, and without for the program around them, so that nothing is known of one in the other.
   A program takes a mode, a number and the names of four files: `run` calls the layer once after so many times, `bench` times so many
   calls and prints the nanoseconds of the fastest. */
#include <stdint.h>

void layer(const float* restrict x, const float* restrict w, const float* restrict b, float* restrict y);

#define CONVOLUTION 1
#define DEPTHWISE 2
#define POINTWISE 3
#define DENSE 4
#define POOL 5

#ifdef LAYER

void layer(const float* restrict x, const float* restrict w, const float* restrict b, float* restrict y) {
#if LAYER == CONVOLUTION
  for (int32_t i = 0; i < ROWS; ++i) {
    for (int32_t j = 0; j < COLUMNS; ++j) {
      float sums[OUTPUTS];
      for (int32_t o = 0; o < OUTPUTS; ++o) {
        sums[o] = b[o];
      }
      for (int32_t r = 0; r < 3; ++r) {
        for (int32_t s = 0; s < 3; ++s) {
          const int32_t row = i * STEP + r - 1;
          const int32_t column = j * STEP + s - 1;
          if (row < 0 || row >= ROWS * STEP || column < 0 || column >= COLUMNS * STEP) {
            continue;
          }
          for (int32_t c = 0; c < INPUTS; ++c) {
            const float value = x[(row * COLUMNS * STEP + column) * INPUTS + c];
            for (int32_t o = 0; o < OUTPUTS; ++o) {
              sums[o] += value * w[((r * 3 + s) * INPUTS + c) * OUTPUTS + o];
            }
          }
        }
      }
      for (int32_t o = 0; o < OUTPUTS; ++o) {
        y[(i * COLUMNS + j) * OUTPUTS + o] = sums[o] > 0.0f ? sums[o] : 0.0f;
      }
    }
  }
#elif LAYER == DEPTHWISE
  for (int32_t i = 0; i < ROWS; ++i) {
    for (int32_t j = 0; j < COLUMNS; ++j) {
      float sums[OUTPUTS];
      for (int32_t c = 0; c < OUTPUTS; ++c) {
        sums[c] = b[c];
      }
      for (int32_t r = 0; r < 3; ++r) {
        for (int32_t s = 0; s < 3; ++s) {
          const int32_t row = i * STEP + r - 1;
          const int32_t column = j * STEP + s - 1;
          if (row < 0 || row >= ROWS * STEP || column < 0 || column >= COLUMNS * STEP) {
            continue;
          }
          for (int32_t c = 0; c < OUTPUTS; ++c) {
            sums[c] += x[(row * COLUMNS * STEP + column) * OUTPUTS + c] * w[(r * 3 + s) * OUTPUTS + c];
          }
        }
      }
      for (int32_t c = 0; c < OUTPUTS; ++c) {
        y[(i * COLUMNS + j) * OUTPUTS + c] = sums[c] > 0.0f ? sums[c] : 0.0f;
      }
    }
  }
#elif LAYER == POINTWISE || LAYER == DENSE
  for (int32_t i = 0; i < ROWS * COLUMNS; ++i) {
    float sums[OUTPUTS];
    for (int32_t o = 0; o < OUTPUTS; ++o) {
      sums[o] = b[o];
    }
    for (int32_t c = 0; c < INPUTS; ++c) {
      const float value = x[i * INPUTS + c];
      for (int32_t o = 0; o < OUTPUTS; ++o) {
        sums[o] += value * w[c * OUTPUTS + o];
      }
    }
    for (int32_t o = 0; o < OUTPUTS; ++o) {
      y[i * OUTPUTS + o] = sums[o] > 0.0f ? sums[o] : 0.0f;
    }
  }
#elif LAYER == POOL
  (void)w;
  (void)b;
  for (int32_t i = 0; i < ROWS; ++i) {
    for (int32_t j = 0; j < COLUMNS; ++j) {
      for (int32_t c = 0; c < OUTPUTS; ++c) {
        float sum = 0.0f;
        for (int32_t r = 0; r < 2; ++r) {
          for (int32_t s = 0; s < 2; ++s) {
            sum += x[((i * 2 + r) * COLUMNS * 2 + j * 2 + s) * OUTPUTS + c];
          }
        }
        y[(i * COLUMNS + j) * OUTPUTS + c] = sum * 0.25f;
      }
    }
  }
#endif
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Alignas(64) float x[1 << 16];
static _Alignas(64) float w[1 << 18];
static _Alignas(64) float b[1 << 10];
static _Alignas(64) float y[1 << 16];

static void read_file(const char* path, float* values, size_t most) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) {
    exit(2);
  }
  (void)fread(values, sizeof(float), most, file);
  (void)fclose(file);
}

static uint64_t now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(int argc, char** argv) {
  unsigned long calls;
  FILE* file;
  if (argc != 8) {
    return 2;
  }
  calls = strtoul(argv[2], NULL, 10);
  read_file(argv[4], x, sizeof x / sizeof *x);
  read_file(argv[5], w, sizeof w / sizeof *w);
  read_file(argv[6], b, sizeof b / sizeof *b);
  if (strcmp(argv[1], "bench") == 0) {
    uint64_t fastest = UINT64_MAX;
    for (unsigned long call = 0; call < calls; ++call) {
      const uint64_t before = now();
      layer(x, w, b, y);
      const uint64_t taken = now() - before;
      fastest = taken < fastest ? taken : fastest;
    }
    printf("%llu\n", (unsigned long long)fastest);
  } else {
    for (unsigned long call = 0; call <= calls; ++call) {
      layer(x, w, b, y);
    }
  }
  file = fopen(argv[7], "wb");
  if (file == NULL || fwrite(y, sizeof(float), strtoul(argv[3], NULL, 10), file) == 0) {
    return 2;
  }
  return fclose(file);
}

#endif
