//! The embedded files are all the files there are, each is of the library that its place says, and headers compile alone.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use mlc_runtime::{FILES, Library, TEMPLATES, files};
use std::path::Path;
use std::process::Command;

const STRICT: [&str; 7] =
    ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wmissing-prototypes"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn walk(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
}

#[test]
fn every_file_is_embedded() {
    let mut found = vec!["CMakeLists.txt".to_owned()];
    for folder in ["crt_config", "include", "platform", "src/runtime", "threads", "transport"] {
        walk(&root().join(folder), &mut found);
    }
    found.sort();
    assert_eq!(found, FILES.iter().map(|file| file.path).collect::<Vec<_>>());
    let mut templates = Vec::new();
    walk(&root().join("templates"), &mut templates);
    templates.sort();
    assert_eq!(templates, TEMPLATES.iter().map(|file| format!("templates/{}", file.path)).collect::<Vec<_>>());
}

#[test]
fn libraries_are_what_their_programs_need() {
    let paths = |libraries: &[Library]| files(libraries).map(|file| file.path).collect::<Vec<_>>();
    assert!(paths(&[]).iter().all(|path| !path.ends_with(".c")));
    let small = paths(&[Library::Common, Library::Memory]);
    // It would be a second definition beside a model's.
    assert!(!small.contains(&"platform/no_system_lib/system_lib_stub.c"));
    assert!(small.contains(&"src/runtime/crt/common/crt_backend_api.c"));
    assert!(small.contains(&"src/runtime/crt/memory/stack_allocator.c"));
    assert!(small.iter().all(|path| !path.contains("executor") && !path.contains("platform/posix")));
    assert!(small.iter().all(|path| !path.contains("transport")));
    // Every source finds its headers among the files of its selection.
    for libraries in [
        &[Library::Common, Library::Memory, Library::Platform][..],
        &[Library::Common, Library::Memory, Library::Platform, Library::GraphExecutor],
    ] {
        let folder = tempfile::tempdir().unwrap();
        for file in files(libraries) {
            let path = folder.path().join(file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file.text).unwrap();
        }
        let sources = files(libraries).filter(|file| file.path.ends_with(".c") && !file.path.contains("semihosting"));
        let built = Command::new("cc")
            .args(STRICT)
            .args(["-Iinclude", "-Icrt_config", "-fsyntax-only"])
            .args(sources.map(|file| file.path))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
}

#[test]
fn c_compiler_takes_every_header_alone() {
    let folder = tempfile::tempdir().unwrap();
    for header in FILES.iter().filter_map(|file| file.path.strip_prefix("include/")) {
        let source = folder.path().join("source.c");
        std::fs::write(&source, format!("#include <{header}>\ntypedef int not_empty;\n")).unwrap();
        for dialect in ["c", "c++"] {
            let strict = if dialect == "c" { &STRICT[..] } else { &STRICT[1..6] };
            let output = Command::new("cc")
                .args(["-x", dialect, "-Iinclude", "-Icrt_config", "-fsyntax-only"])
                .arg(&source)
                .args(strict)
                .current_dir(root())
                .output()
                .unwrap();
            assert!(output.status.success(), "{header}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn generated_code_needs_no_configuration() {
    for header in [
        "tvm/runtime/c_runtime_api.h",
        "tvm/runtime/c_backend_api.h",
        "tvm/runtime/crt/module.h",
        "tvm/runtime/metadata_types.h",
    ] {
        let output = Command::new("cc")
            .args(["-Iinclude", "-fsyntax-only", &format!("include/{header}")])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{header}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn cmake_builds_the_libraries_that_are_asked_for() {
    let runs = Command::new("cmake").arg("--version").output().is_ok_and(|output| output.status.success());
    if !runs {
        eprintln!("skipped: cmake is not installed");
        return;
    }
    let configure = |folder: &Path, option: &str| {
        let mut command = Command::new("cmake");
        command
            .args(["-S", root().to_str().unwrap(), "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror", option, "-B"])
            .arg(folder);
        command.output().unwrap().status.success()
    };
    let folder = tempfile::tempdir().unwrap();
    assert!(configure(folder.path(), "-DCRT_LIBS=memory;common;graph_executor"));
    assert!(Command::new("cmake").arg("--build").arg(folder.path()).output().unwrap().status.success());
    for (library, is_there) in [("memory", true), ("common", true), ("graph_executor", true), ("aot_executor", false)] {
        assert_eq!(folder.path().join(format!("lib{library}.a")).exists(), is_there, "{library}");
    }
    for wrong in ["-DCRT_LIBS=common;memories", "-DCRT_CONFIG_PATH=/nowhere"] {
        assert!(!configure(tempfile::tempdir().unwrap().path(), wrong), "{wrong}");
    }
}

#[test]
fn no_file_is_unwieldy() {
    let mut paths = Vec::new();
    for folder in ["crt_config", "include", "platform", "src", "tests"] {
        walk(&root().join(folder), &mut paths);
    }
    for path in paths {
        let lines = std::fs::read_to_string(root().join(&path)).unwrap().lines().count();
        assert!(lines < 500, "{path} has {lines} lines");
    }
}
