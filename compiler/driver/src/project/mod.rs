//! Ready projects around an archive: the archive as it is in `model/`, and the few files that a build system wants.
//!
//! The templates are the files below `compiler/driver/templates/`, with words in `@…@` that [`Values`] fills in.

mod crate_values;
mod firmware;
mod machines;
mod python;
mod steps;
mod template;
mod values;

pub use steps::next_commands;
pub use template::Template;

#[cfg(test)]
mod structures;
#[cfg(test)]
mod tests;

use crate::bundle::{Bundle, Call};
use indexmap::IndexMap;
use machines::template_name;
use mlc_codegen::levels::expect_one;
use mlc_ir::Diagnostic;
use values::Values;

/// The files of a project, by path.
///
/// # Errors
/// `MLC0006` when the archive has another interface than C's, leaves its constants to the caller, is for several threads, or for a
/// machine that the template has no place for.
pub fn project(bundle: &Bundle, template: Template) -> Result<IndexMap<String, Vec<u8>>, Diagnostic> {
    let Call::CInterface(header) = &bundle.call else {
        return Err(unsuitable("projects call the C interface, which this archive doesn't have")
            .with_help("compile the model with '--executor aot --interface-api c'"));
    };
    if header.io_in_pool {
        return Err(unsuitable(
            "inputs and outputs of this archive lie in its memory pool, which projects don't support",
        ));
    }
    let loaded = |pool: &&String| header.is_constant(pool) && header.pool_data(pool).is_none();
    if let Some(pool) = header.pools.iter().find(loaded) {
        let message = format!("the constants of this archive are to be loaded into the pool '{pool}' by the program");
        return Err(unsuitable(&message).with_help("compile the model with '--weights-as c', 'incbin' or 'object'"));
    }
    if bundle.is_threaded() {
        return Err(unsuitable(
            "kernels of this archive are computed by several threads, and projects have no pool of them",
        )
        .with_help(
            "compile the model without '--threads', or build the archive with its own Makefile or CMakeLists.txt",
        ));
    }
    if template == Template::Cargo && !header.pools.is_empty() {
        return Err(unsuitable("the crate has no place for memory pools of the caller")
            .with_help("compile the model with '--workspace-pools internal' and '--state-pool internal'"));
    }
    if template == Template::Arduino && !bundle.objects().is_empty() {
        return Err(unsuitable("Arduino compiles sources, this archive holds object files")
            .with_help("compile the model with '--weights-as c' and without '--emit-lib'"));
    }
    let board = machines::board(bundle.target().as_ref(), template)?;
    if let Some(target) = bundle.target().filter(|_| !matches!(template, Template::Posix | Template::Cmake)) {
        let what = format!("the template '{}' compiles all files with the same options, for", template_name(template));
        expect_one(&target, &what)?;
    }
    let values = Values::new(bundle, header, template, board)?;
    let mut files = IndexMap::new();
    if template == Template::Arduino {
        arduino_library(bundle, &values, &mut files)?;
    } else {
        archive(bundle, &values, &mut files);
    }
    for (path, text) in template.files(board) {
        files.insert(values.fill(path), values.fill(text).into_bytes());
    }
    files.sort_unstable_keys();
    Ok(files)
}

fn unsuitable(message: &str) -> Diagnostic {
    Diagnostic::option_mismatch(message)
}

/// The archive as it is, and beside it what its code needs and it doesn't hold.
fn archive(bundle: &Bundle, values: &Values, files: &mut IndexMap<String, Vec<u8>>) {
    for (path, bytes) in bundle.archive().files() {
        files.insert(format!("model/{path}"), bytes.to_vec());
    }
    if !values.has_runtime {
        for file in mlc_runtime::FILES {
            files.insert(format!("runtime/{}", file.path), file.text.as_bytes().to_vec());
        }
    }
    if values.needs_workspace {
        files.insert("workspace.c".into(), values.fill(WORKSPACE).into_bytes());
    }
}

/// Scratch memory for code of other generators.
const WORKSPACE: &str = include_str!("../../templates/common/workspace.c");

/// Arduino compiles whatever is in `src/`, and finds headers there and nowhere else: the archive's files, moved.
fn arduino_library(bundle: &Bundle, values: &Values, files: &mut IndexMap<String, Vec<u8>>) -> Result<(), Diagnostic> {
    for (path, bytes) in bundle.archive().files() {
        let moved = ["codegen/host/include/", "codegen/host/src/"].iter().find_map(|folder| path.strip_prefix(folder));
        if let Some(name) = moved {
            files.insert(format!("src/{name}"), bytes.to_vec());
        }
    }
    for file in mlc_runtime::FILES {
        let header = file.path.strip_prefix("include/").or(file.path.strip_prefix("crt_config/"));
        if let Some(name) = header {
            files.insert(format!("src/{name}"), file.text.as_bytes().to_vec());
        }
    }
    if values.needs_workspace {
        files.insert("src/workspace.c".into(), values.fill(WORKSPACE).into_bytes());
        let allocator = "src/runtime/crt/memory/stack_allocator.c";
        let text = mlc_runtime::FILES.iter().find(|file| file.path == allocator).map_or("", |file| file.text);
        files.insert("src/stack_allocator.c".into(), text.as_bytes().to_vec());
    }
    Ok(())
}
