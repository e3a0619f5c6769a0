//! The `main` of a program that runs a compiled model on raw files.

use super::board::Board;
use super::watch::{self, Watch};
use super::{call, platform};
use crate::bundle::Bundle;
use std::fmt::Write;
use std::path::Path;

/// What doesn't depend on the model. Every buffer lies between two guards, whose bytes are checked afterwards. Without
/// timing, buffers are aligned to 16 bytes and not to more, which is all that the interface asks for.
pub(super) const COMMON: &str = r#"
#define GUARD 256
#define GUARD_BYTE 0xA5

typedef struct {
  unsigned char* block;
  unsigned char* data;
  size_t bytes;
} buffer_t;

static int make(buffer_t* buffer, size_t bytes, size_t offset) {
  const size_t total = bytes + 2 * GUARD + 128;
  buffer->block = (unsigned char*)malloc(total);
  buffer->bytes = bytes;
  if (buffer->block == NULL) {
    fprintf(stderr, "out of memory\n");
    return 1;
  }
  memset(buffer->block, GUARD_BYTE, total);
  buffer->data = buffer->block + GUARD;
  buffer->data += (64 - (size_t)((uintptr_t)buffer->data % 64)) % 64 + offset;
  return 0;
}

static int guarded(const buffer_t* buffer) {
  const unsigned char* byte = buffer->block;
  const unsigned char* const end = buffer->block + buffer->bytes + 2 * GUARD + 128;
  for (; byte != end; ++byte) {
    if (byte == buffer->data) {
      byte += buffer->bytes;
    }
    if (*byte != GUARD_BYTE) {
      return 0;
    }
  }
  return 1;
}

/* Reads the tensor of this number, counted from 0, of those that a file has. */
static int read_tensor(const char* path, buffer_t* buffer, unsigned long number) {
  FILE* const file = fopen(path, "rb");
  size_t got;
  if (file == NULL) {
    fprintf(stderr, "can't open an input\n");
    return 1;
  }
  if (number > 0 && fseek(file, (long)(number * buffer->bytes), SEEK_SET) != 0) {
    fprintf(stderr, "can't read an input\n");
    return 1;
  }
  got = fread(buffer->data, 1, buffer->bytes, file);
  (void)fclose(file);
  if (got != buffer->bytes) {
    fprintf(stderr, "an input is too short\n");
    return 1;
  }
  return 0;
}

static int read_file(const char* path, buffer_t* buffer) {
  return read_tensor(path, buffer, 0);
}

static int write_file(const char* path, const buffer_t* buffer, const char* how) {
  FILE* const file = fopen(path, how);
  size_t put;
  if (file == NULL) {
    fprintf(stderr, "can't open an output\n");
    return 1;
  }
  put = fwrite(buffer->data, 1, buffer->bytes, file);
  if (fclose(file) != 0 || put != buffer->bytes) {
    fprintf(stderr, "can't write an output\n");
    return 1;
  }
  return 0;
}

static unsigned long clamp(uint64_t value, unsigned long low, unsigned long high) {
  return value < low ? low : value > high ? high : (unsigned long)value;
}
"#;

/// Text of `main.c`: arguments are a mode, a number of runs, the files of all inputs and those of all outputs. `folder` is where
/// the archive is unpacked.
pub(super) fn main(bundle: &Bundle, watch: Watch, board: Option<&Board>, folder: &Path) -> String {
    let (inputs, outputs) = (bundle.inputs.len(), bundle.outputs.len());
    let mut text = format!(
        "#define _POSIX_C_SOURCE 200809L\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#include <time.h>\n{}{}{}{COMMON}\n#define INPUTS {inputs}\n#define OUTPUTS {outputs}\n\
         static buffer_t input[{}];\nstatic buffer_t output[{}];\n\n{}",
        call::includes(bundle),
        platform::text(board),
        watch::text(watch, bundle),
        inputs.max(1),
        outputs.max(1),
        call::functions(bundle, folder),
    );
    // No formatting of a String fails.
    let _ = writeln!(
        text,
        "int main(int argc, char** argv) {{\n  \
         static buffer_t copy[{}];\n  \
         static const size_t input_bytes[{0}] = {{ {} }};\n  static const size_t output_bytes[{}] = {{ {} }};\n  \
         int timing;\n  int each;\n  size_t i;",
        inputs.max(1),
        sizes(&bundle.inputs),
        outputs.max(1),
        sizes(&bundle.outputs),
    );
    let _ = write!(
        text,
        "  if (argc != {}) {{\n    fprintf(stderr, \"wrong number of arguments\\n\");\n    return 2;\n  }}\n  \
         each = strcmp(argv[1], \"each\") == 0;\n  \
         timing = strcmp(argv[1], \"run\") != 0 && strcmp(argv[1], \"row\") != 0 && !each;\n  start_clock();\n  \
         for (i = 0; i < {inputs}; ++i) {{\n    \
         if (make(&input[i], input_bytes[i], timing ? 0 : 16) || make(&copy[i], input_bytes[i], 0) ||\n        \
         read_file(argv[3 + i], &input[i])) {{\n      return 2;\n    }}\n    \
         memcpy(copy[i].data, input[i].data, input_bytes[i]);\n  }}\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    \
         if (make(&output[i], output_bytes[i], timing ? 0 : 16)) {{\n      return 2;\n    }}\n  }}\n  \
         if (prepare()) {{\n    return 2;\n  }}\n  set_tensors();\n",
        3 + inputs + outputs,
    );
    text + RUN + if watch == Watch::Times { REPORT } else { "" } + &checks(inputs, outputs)
}

pub(super) fn sizes(ports: &[crate::bundle::Port]) -> String {
    let mut sizes: Vec<String> = ports.iter().map(|port| port.ty.bytes().to_string()).collect();
    if sizes.is_empty() {
        sizes.push("0".into());
    }
    sizes.join(", ")
}

/// Prints the shortest time of each kernel.
const REPORT: &str = "  if (strcmp(argv[1], \"profile\") == 0) {
    if (told == 0) {
      fprintf(stderr, \"the code doesn't tell when its kernels end\\n\");
      return 2;
    }
    for (i = 0; i < KERNELS; ++i) {
      printf(\"%llu\\n\", (unsigned long long)shortest[i]);
    }
  }
";

/// One run after as many as the second argument says, each on inputs of its own and with outputs of its own if that is the mode; or a warm-up of one tenth of a second and then the timed runs.
const RUN: &str = "  if (!timing) {
    const unsigned long earlier = strtoul(argv[2], NULL, 10);
    unsigned long run;
    int32_t status = 0;
    for (run = 1; status == 0 && run <= earlier; ++run) {
      status = invoke();
      for (i = 0; i < OUTPUTS && each; ++i) {
        if (write_file(argv[3 + INPUTS + i], &output[i], \"ab\")) {
          return 2;
        }
      }
      for (i = 0; i < INPUTS && (each || strcmp(argv[1], \"row\") == 0); ++i) {
        if (read_tensor(argv[3 + i], &input[i], run)) {
          return 2;
        }
        memcpy(copy[i].data, input[i].data, input_bytes[i]);
      }
    }
    if (status == 0) {
      begin_watch();
      before_run();
      status = invoke();
      after_run();
    }
    if (status != 0) {
      fprintf(stderr, \"the model failed with status %ld\\n\", (long)status);
      return 2;
    }
  } else {
    const uint64_t start = now();
    uint64_t warm = 0;
    unsigned long run = 0;
    unsigned long runs = strtoul(argv[2], NULL, 10);
    do {
      const int32_t status = invoke();
      if (status != 0) {
        fprintf(stderr, \"the model failed with status %ld\\n\", (long)status);
        return 2;
      }
      ++run;
      warm = now() - start;
    } while (warm < WARM_UP);
    if (runs == 0) {
      runs = clamp(10 * (uint64_t)WARM_UP * (uint64_t)run / warm, 5, 1000);
    }
    for (run = 0; run < runs; ++run) {
      uint64_t before;
      uint64_t after;
      begin_kernels();
      before = now();
      (void)invoke();
      after = now();
      end_kernels(run);
      if (strcmp(argv[1], \"bench\") == 0) {
        printf(\"%llu\\n\", (unsigned long long)(after - before));
      }
    }
  }
";

fn checks(inputs: usize, outputs: usize) -> String {
    format!(
        "  for (i = 0; i < {inputs}; ++i) {{\n    if (!guarded(&input[i])) {{\n      \
         fprintf(stderr, \"the model wrote beyond input %lu\\n\", (unsigned long)i);\n      return 3;\n    }}\n    \
         if (memcmp(copy[i].data, input[i].data, input_bytes[i]) != 0) {{\n      \
         fprintf(stderr, \"the model changed input %lu\\n\", (unsigned long)i);\n      return 3;\n    }}\n  }}\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    if (!guarded(&output[i])) {{\n      \
         fprintf(stderr, \"the model wrote beyond output %lu\\n\", (unsigned long)i);\n      return 3;\n    }}\n    \
         if (write_file(argv[{} + i], &output[i], each ? \"ab\" : \"wb\")) {{\n      return 2;\n    }}\n  }}\n  return 0;\n}}\n",
        3 + inputs,
    )
}
