/* Times a model and the peak of the core side by side; see convolution.rs, which fills in the names between at signs. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "tvmgen_convolution.h"

#define LANES (@VECTOR_BYTES@ / 4)
typedef float vector __attribute__((vector_size(@VECTOR_BYTES@)));

static float x[@ELEMENTS@] __attribute__((aligned(64)));
static float y[@ELEMENTS@] __attribute__((aligned(64)));

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Twelve independent chains of multiply-adds hide the latency of each; the empty assembly keeps them in registers. */
static double peak_flops(int steps) {
  vector a[12], m, c;
  memset(&m, 0, sizeof m);
  memset(&c, 0, sizeof c);
  memset(a, 0, sizeof a);
  __asm__ volatile("" : "+m"(m), "+m"(c));
  vector a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4], a5 = a[5];
  vector a6 = a[6], a7 = a[7], a8 = a[8], a9 = a[9], a10 = a[10], a11 = a[11];
  for (int i = 0; i < steps; ++i) {
    a0 = a0 * m + c; a1 = a1 * m + c; a2 = a2 * m + c; a3 = a3 * m + c;
    a4 = a4 * m + c; a5 = a5 * m + c; a6 = a6 * m + c; a7 = a7 * m + c;
    a8 = a8 * m + c; a9 = a9 * m + c; a10 = a10 * m + c; a11 = a11 * m + c;
  }
  a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  __asm__ volatile("" : : "m"(a0));
  return 2.0 * 12.0 * LANES * (double)steps;
}

int main(void) {
  struct tvmgen_convolution_inputs inputs = {x};
  struct tvmgen_convolution_outputs outputs = {y};
  double peak = 0.0, model = 0.0;
  for (int i = 0; i < @ELEMENTS@; ++i) x[i] = (float)(i % 17) * 0.125f - 1.0f;
  for (int burst = 0; burst < @BURSTS@; ++burst) {
    double start = now();
    double flops = peak_flops(200000);
    double rate = flops / (now() - start);
    if (rate > peak) peak = rate;
    start = now();
    if (tvmgen_convolution_run(&inputs, &outputs) != 0) return 1;
    rate = @FLOPS@ / (now() - start);
    if (rate > model) model = rate;
  }
  printf("convolution 3x3, 64 to 64 channels, 56x56, f32, vectors of %d bytes: %.1f GFLOP/s\n", @VECTOR_BYTES@, model * 1e-9);
  printf("peak of the core, multiply-adds in registers: %.1f GFLOP/s\n", peak * 1e-9);
  printf("ratio: %.3f\n", model / peak);
  return 0;
}
