//! C text of the program of several ranks: a file for each rank, which runs its model on raw files, and the table of them.

use crate::bundle::Bundle;
use crate::toolchain::{call, harness};
use std::fmt::Write;
use std::path::Path;

/// The file of a rank, whose archive is unpacked in a folder.
pub(super) fn rank(bundle: &Bundle, rank: usize, folder: &Path) -> String {
    let (inputs, outputs) = (bundle.inputs.len(), bundle.outputs.len());
    format!(
        "#define _POSIX_C_SOURCE 200809L\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <string.h>\n#include \"mlc/transport.h\"\n{}{}\n\
         static buffer_t input[{input_room}];\nstatic buffer_t output[{output_room}];\n\
         static const mlc_transport* transport;\n\n{}\n\
         int mlc_rank_{rank}(const mlc_transport* given, const char* folder, unsigned long runs, void (*begin)(void));\n\n\
         int mlc_rank_{rank}(const mlc_transport* given, const char* folder, unsigned long runs, void (*begin)(void)) {{\n  \
         static buffer_t copy[{input_room}];\n  static const size_t input_bytes[{input_room}] = {{ {} }};\n  \
         static const size_t output_bytes[{output_room}] = {{ {} }};\n  char path[4096];\n  size_t i;\n  \
         transport = given;\n  \
         for (i = 0; i < {inputs}; ++i) {{\n    \
         (void)snprintf(path, sizeof path, \"%s/rank{rank}.input%lu\", folder, (unsigned long)i);\n    \
         if (make(&input[i], input_bytes[i], 0) || make(&copy[i], input_bytes[i], 0) || read_file(path, &input[i])) {{\n      \
         return 2;\n    }}\n    memcpy(copy[i].data, input[i].data, input_bytes[i]);\n  }}\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    if (make(&output[i], output_bytes[i], 0)) {{\n      return 2;\n    }}\n  }}\n  \
         if (prepare()) {{\n    return 2;\n  }}\n  set_tensors();\n  \
         for (; runs > 0; --runs) {{\n    int32_t status;\n    begin();\n    status = invoke();\n    \
         if (status != 0) {{\n      return (int)status;\n    }}\n  }}\n{}  return 0;\n}}\n",
        call::includes(bundle),
        harness::COMMON,
        call::functions(bundle, folder),
        harness::sizes(&bundle.inputs),
        harness::sizes(&bundle.outputs),
        checks(rank, inputs, outputs),
        input_room = inputs.max(1),
        output_room = outputs.max(1),
    )
}

/// Whether the model kept to its buffers; then its outputs are written.
fn checks(rank: usize, inputs: usize, outputs: usize) -> String {
    format!(
        "  for (i = 0; i < {inputs}; ++i) {{\n    \
         if (!guarded(&input[i]) || memcmp(copy[i].data, input[i].data, input_bytes[i]) != 0) {{\n      \
         fprintf(stderr, \"rank {rank}: the model wrote into or beyond input %lu\\n\", (unsigned long)i);\n      return 3;\n    }}\n  }}\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    if (!guarded(&output[i])) {{\n      \
         fprintf(stderr, \"rank {rank}: the model wrote beyond output %lu\\n\", (unsigned long)i);\n      return 3;\n    }}\n    \
         (void)snprintf(path, sizeof path, \"%s/rank{rank}.output%lu\", folder, (unsigned long)i);\n    \
         if (write_file(path, &output[i], \"wb\")) {{\n      return 2;\n    }}\n  }}\n"
    )
}

/// The table of all ranks.
pub(super) fn table(messages: impl Iterator<Item = usize>) -> String {
    let mut text = "#include \"program.h\"\n\n".to_owned();
    let mut rows = String::new();
    let mut count = 0;
    for messages in messages {
        // No formatting of a String fails.
        let _ = writeln!(
            text,
            "int mlc_rank_{count}(const mlc_transport* given, const char* folder, unsigned long runs, void (*begin)(void));"
        );
        let _ = writeln!(rows, "  {{ {messages}, mlc_rank_{count} }},");
        count += 1;
    }
    text + &format!("\nconst rank_t ranks[] = {{\n{rows}}};\nconst size_t rank_count = {count};\n")
}
