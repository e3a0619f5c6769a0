#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t guard = GUARD;
enum { RUBBISH = 0x7f, OTHER_RUBBISH = 0xa5, MARK = 0x3c };

int posix_memalign(void **, size_t, size_t);

static void fail(const char *model, const char *what) {
  fprintf(stderr, "error: model %s: %s\n", model, what);
  exit(1);
}

/* An aligned buffer that ends with guard bytes. */
static unsigned char *reserve(const char *model, size_t bytes, size_t alignment) {
  void *buffer = NULL;
  if (posix_memalign(&buffer, alignment < 16 ? 16 : alignment, bytes + guard) != 0) fail(model, "no memory");
  memset((unsigned char *)buffer + bytes, MARK, guard);
  return buffer;
}

static void check(const char *model, const unsigned char *buffer, size_t bytes) {
  for (size_t k = 0; k < guard; ++k) {
    if (buffer[bytes + k] != MARK) fail(model, "something is written behind a buffer");
  }
}

static void run(const struct model *model, FILE *in, FILE *out) {
  const size_t count = model->inputs + model->outputs;
  void **buffers = malloc((count + 1) * sizeof *buffers);
  void **originals = malloc((count + 1) * sizeof *buffers);
  unsigned char *arena = reserve(model->name, model->arena, model->alignment);
  if (!buffers || !originals) fail(model->name, "no memory");
  for (size_t k = 0; k < count; ++k) {
    buffers[k] = reserve(model->name, model->sizes[k], 16);
    originals[k] = reserve(model->name, model->sizes[k], 16);
    if (k < model->inputs) {
      if (fread(buffers[k], 1, model->sizes[k], in) != model->sizes[k]) fail(model->name, "the inputs are too short");
      memcpy(originals[k], buffers[k], model->sizes[k]);
    } else {
      memset(buffers[k], RUBBISH, model->sizes[k]);
    }
  }
  memset(arena, RUBBISH, model->arena);
  if (model->run(buffers, arena) != 0) fail(model->name, "the first run fails");
  for (size_t k = model->inputs; k < count; ++k) {
    memcpy(originals[k], buffers[k], model->sizes[k]);
    memset(buffers[k], OTHER_RUBBISH, model->sizes[k]);
  }
  memset(arena, OTHER_RUBBISH, model->arena);
  if (model->run(buffers, arena) != 0) fail(model->name, "the second run fails");
  for (size_t k = 0; k < count; ++k) {
    if (memcmp(originals[k], buffers[k], model->sizes[k]) != 0) {
      fail(model->name, k < model->inputs ? "an input is changed" : "the second run gives another output");
    }
    check(model->name, buffers[k], model->sizes[k]);
    if (k >= model->inputs && fwrite(buffers[k], 1, model->sizes[k], out) != model->sizes[k]) {
      fail(model->name, "the outputs can't be written");
    }
    free(buffers[k]);
    free(originals[k]);
  }
  check(model->name, arena, model->arena);
  free(arena);
  free(buffers);
  free(originals);
}

int main(void) {
  FILE *in = fopen("inputs.bin", "rb");
  FILE *out = fopen("outputs.bin", "wb");
  if (!in || !out) return 2;
  for (size_t k = 0; k < sizeof models / sizeof models[0]; ++k) run(&models[k], in, out);
  fclose(in);
  return fclose(out) == 0 ? 0 : 2;
}
