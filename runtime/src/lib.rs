//! The C runtime that archives carry, as embedded text: headers and sources that code of the C interface compiles against.
//!
//! The files are the ones beside this crate's manifest, written in strict C99. This crate only embeds them; it never
//! changes or chooses among them.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod params;

/// A file of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeFile {
    /// Path below `runtime/`, or below `templates/`, with `/` between folders.
    pub path: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! embedded {
    ($folder:literal: $($path:literal,)+) => {
        &[$(RuntimeFile { path: $path, text: include_str!(concat!("../", $folder, $path)) },)+]
    };
}

/// What goes into an archive's folder `runtime/`, sorted by path.
pub const FILES: &[RuntimeFile] = embedded! { "":
    "CMakeLists.txt",
    "include/dlpack/dlpack.h",
    "include/tvm/runtime/c_backend_api.h",
    "include/tvm/runtime/c_runtime_api.h",
    "include/tvm/runtime/crt/error_codes.h",
    "include/tvm/runtime/crt/platform.h",
    "include/tvm/runtime/crt/stack_allocator.h",
    "src/runtime/crt/common/crt_backend_api.c",
    "src/runtime/crt/memory/stack_allocator.c",
};

/// What goes into an archive's folder `templates/`: files that a project copies and edits. Sorted by path.
pub const TEMPLATES: &[RuntimeFile] = embedded! { "templates/":
    "crt_config.h.template",
    "platform.c.template",
};
