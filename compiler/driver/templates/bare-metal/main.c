/*
 * Runs the model "@MODEL@" on zeros, several times, and switches a light after every run: put your data into the inputs before
 * infer(), use the outputs after it, and let the light say what they mean.
 */
#include <stdint.h>
#include <stdio.h>
#include "tvmgen_@MODEL@.h"

#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(16)))
#else
#define ALIGNED
#endif

/* Firmware of a product never ends; under an emulator it does. */
#ifndef RUNS
#define RUNS 4
#endif

/* The caller owns this memory; the model keeps none of it between two runs. */
@BUFFERS@
@INFER@
/* LIGHT is the register whose lowest bit is the light, if the board has one. */
static void set_light(int on) {
#ifdef LIGHT
  *(volatile uint32_t*)LIGHT = on ? 1U : 0U;
#endif
  printf("light %s\n", on ? "on" : "off");
}

int main(void) {
  int32_t status = 0;
  int run;
  for (run = 0; run < RUNS; ++run) {
    status = infer();
    if (status != 0) {
      printf("the model failed with status %ld\n", (long)status);
      return 1;
    }
    set_light(run % 2 == 0);
  }
@FIRMWARE_PRINT@  return 0;
}
