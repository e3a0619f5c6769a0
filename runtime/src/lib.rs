//! The C runtime that archives carry, as embedded text: what generated code compiles against, and what runs it.
//!
//! The files are the ones beside this crate's manifest, written in strict C99; `docs/runtime.md` says what they do. This
//! crate only embeds them and says which ones a program needs.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod params;

/// A part of the runtime: mostly a folder of sources that becomes a library, with the headers that declare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// The build script, the default configuration, and headers that any code may include; in every selection.
    Base,
    /// Function registry, modules, packed calls, tensors, backend functions.
    Common,
    /// What stands in for the registry of a model in programs that have `Common` but no such model.
    Stub,
    /// Stack and page allocators.
    Memory,
    /// Runs a graph; needs `Common`.
    GraphExecutor,
    /// The graph executor behind packed functions.
    GraphExecutorModule,
    /// Runs a model of the packed ahead-of-time interface; needs `Common`.
    AotExecutor,
    /// That executor behind packed functions.
    AotExecutorModule,
    /// Implementations of the platform functions that are ready to use; they need `Memory`.
    Platform,
    /// Pools of threads for code that several threads compute: one for POSIX systems, and a template of one for tasks of an RTOS.
    Threads,
    /// What ranks exchange messages by: the interface, and its implementations by threads and by MPI.
    Transport,
}

/// A file of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeFile {
    /// Path below `runtime/`, or below `templates/`, with `/` between folders.
    pub path: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl RuntimeFile {
    /// The part that the file belongs to, which its path says.
    pub fn library(&self) -> Library {
        let source = self.path.strip_prefix("src/runtime/crt/").and_then(|path| path.split('/').next());
        let header = self.path.strip_prefix("include/tvm/runtime/crt/").unwrap_or_default();
        match source {
            Some("memory") => Library::Memory,
            Some("graph_executor") => Library::GraphExecutor,
            Some("graph_executor_module") => Library::GraphExecutorModule,
            Some("aot_executor") => Library::AotExecutor,
            Some("aot_executor_module") => Library::AotExecutorModule,
            Some(_) => Library::Common,
            None if self.path.starts_with("platform/no_system_lib/") => Library::Stub,
            None if self.path.starts_with("platform/") => Library::Platform,
            None if self.path.starts_with("threads/") => Library::Threads,
            None if ["transport/", "include/mlc/"].iter().any(|folder| self.path.starts_with(folder)) => {
                Library::Transport
            }
            None if header == "graph_executor.h" || header.starts_with("internal/graph_executor/") => {
                Library::GraphExecutor
            }
            None if header == "graph_executor_module.h" => Library::GraphExecutorModule,
            None if header == "aot_executor.h" => Library::AotExecutor,
            None if header == "aot_executor_module.h" => Library::AotExecutorModule,
            None => Library::Base,
        }
    }
}

/// The files of some libraries, sorted by path, always with [`Library::Base`]. What the libraries need must be among them.
pub fn files(libraries: &[Library]) -> impl Iterator<Item = &'static RuntimeFile> {
    FILES.iter().filter(move |file| file.library() == Library::Base || libraries.contains(&file.library()))
}

macro_rules! embedded {
    ($folder:literal: $($path:literal,)+) => {
        &[$(RuntimeFile { path: $path, text: include_str!(concat!("../", $folder, $path)) },)+]
    };
}

/// What goes into an archive's folder `runtime/`, sorted by path.
pub const FILES: &[RuntimeFile] = embedded! { "":
    "CMakeLists.txt",
    "crt_config/crt_config.h",
    "include/dlpack/dlpack.h",
    "include/mlc/transport.h",
    "include/tvm/runtime/c_backend_api.h",
    "include/tvm/runtime/c_runtime_api.h",
    "include/tvm/runtime/crt/aot_executor.h",
    "include/tvm/runtime/crt/aot_executor_module.h",
    "include/tvm/runtime/crt/crt.h",
    "include/tvm/runtime/crt/error_codes.h",
    "include/tvm/runtime/crt/func_registry.h",
    "include/tvm/runtime/crt/graph_executor.h",
    "include/tvm/runtime/crt/graph_executor_module.h",
    "include/tvm/runtime/crt/internal/common/arguments.h",
    "include/tvm/runtime/crt/internal/common/errors.h",
    "include/tvm/runtime/crt/internal/common/ndarray.h",
    "include/tvm/runtime/crt/internal/common/runtime_functions.h",
    "include/tvm/runtime/crt/internal/config.h",
    "include/tvm/runtime/crt/internal/graph_executor/graph_executor.h",
    "include/tvm/runtime/crt/internal/graph_executor/json_reader.h",
    "include/tvm/runtime/crt/logging.h",
    "include/tvm/runtime/crt/module.h",
    "include/tvm/runtime/crt/packed_func.h",
    "include/tvm/runtime/crt/page_allocator.h",
    "include/tvm/runtime/crt/platform.h",
    "include/tvm/runtime/crt/stack_allocator.h",
    "include/tvm/runtime/metadata_types.h",
    "platform/no_system_lib/system_lib_stub.c",
    "platform/posix/platform.c",
    "platform/semihosting/platform.c",
    "platform/semihosting/semihosting.h",
    "src/runtime/crt/aot_executor/aot_executor.c",
    "src/runtime/crt/aot_executor_module/aot_executor_module.c",
    "src/runtime/crt/common/arguments.c",
    "src/runtime/crt/common/crt_backend_api.c",
    "src/runtime/crt/common/crt_runtime_api.c",
    "src/runtime/crt/common/func_registry.c",
    "src/runtime/crt/common/last_error.c",
    "src/runtime/crt/common/ndarray.c",
    "src/runtime/crt/common/packed_func.c",
    "src/runtime/crt/common/runtime_functions.c",
    "src/runtime/crt/common/time_evaluator.c",
    "src/runtime/crt/graph_executor/graph_executor.c",
    "src/runtime/crt/graph_executor/graph_params.c",
    "src/runtime/crt/graph_executor/graph_parser.c",
    "src/runtime/crt/graph_executor/graph_run.c",
    "src/runtime/crt/graph_executor/json_reader.c",
    "src/runtime/crt/graph_executor_module/graph_executor_module.c",
    "src/runtime/crt/memory/page_allocator.c",
    "src/runtime/crt/memory/stack_allocator.c",
    "threads/freertos.c.template",
    "threads/posix.c",
    "transport/mpi.c",
    "transport/threads.c",
    "transport/transport_mpi.h",
    "transport/transport_threads.h",
};

/// What goes into an archive's folder `templates/`: files that a project copies and edits. Sorted by path.
pub const TEMPLATES: &[RuntimeFile] = embedded! { "templates/":
    "crt_config.h.template",
    "platform.c.template",
};
