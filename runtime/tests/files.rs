//! The embedded files are all the files there are, and a C compiler accepts them.
#![allow(clippy::unwrap_used, missing_docs)]

use mlc_runtime::{FILES, TEMPLATES};
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
    walk(&root().join("include"), &mut found);
    walk(&root().join("src/runtime"), &mut found);
    found.sort();
    assert_eq!(found, FILES.iter().map(|file| file.path).collect::<Vec<_>>());
    let mut templates = Vec::new();
    walk(&root().join("templates"), &mut templates);
    templates.sort();
    assert_eq!(templates, TEMPLATES.iter().map(|file| format!("templates/{}", file.path)).collect::<Vec<_>>());
}

#[test]
fn c_compiler_takes_every_header_alone() {
    for file in FILES.iter().filter(|file| file.path.ends_with(".h")) {
        for dialect in ["c", "c++"] {
            let strict = if dialect == "c" { &STRICT[..] } else { &STRICT[1..6] };
            let output = Command::new("cc")
                .args(["-x", dialect, "-Iinclude", "-fsyntax-only", file.path])
                .args(strict)
                .current_dir(root())
                .output()
                .unwrap();
            // C++ warns about "pragma once in main file" and the like only; these headers have guards.
            assert!(output.status.success(), "{}: {}", file.path, String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// A program that allocates, frees in order and out of order, and runs out of memory.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/platform.h>
#include <tvm/runtime/crt/stack_allocator.h>

static int fail(int line) {
  printf("line %d\n", line);
  return 1;
}
#define CHECK(condition) if (!(condition)) return fail(__LINE__)

int main(void) {
  static uint8_t block[64 + 16];
  tvm_workspace_t workspace;
  void* first;
  void* second;
  double seconds = -1.0;
  CHECK(StackMemoryManager_Init(&workspace, block + 1, 64 + 15) == kTvmErrorNoError);
  CHECK(workspace.workspace_size >= 64);
  CHECK(StackMemoryManager_Allocate(&workspace, 20, &first) == kTvmErrorNoError);
  CHECK((uintptr_t)first % 16 == 0);
  CHECK(StackMemoryManager_Allocate(&workspace, 40, &second) == kTvmErrorPlatformNoMemory);
  CHECK(StackMemoryManager_Allocate(&workspace, -1, &second) == kTvmErrorPlatformNoMemory);
  CHECK(StackMemoryManager_Allocate(&workspace, 12, &second) == kTvmErrorNoError);
#ifdef TVM_CRT_STACK_ALLOCATOR_ENABLE_LIFO_CHECK
  CHECK(StackMemoryManager_Free(&workspace, first) == kTvmErrorPlatformStackAllocBadFree);
#endif
  CHECK(StackMemoryManager_Free(&workspace, second) == kTvmErrorNoError);
  CHECK(StackMemoryManager_Free(&workspace, first) == kTvmErrorNoError);
  CHECK(StackMemoryManager_Free(&workspace, block + 79) == kTvmErrorPlatformStackAllocBadFree);

  CHECK(TVMPlatformInitialize() == kTvmErrorNoError);
  first = TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32);
  second = TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32);
  CHECK(first != NULL && second != NULL && first != second);
  CHECK(TVMBackendFreeWorkspace(kDLCPU, 0, second) == 0);
  CHECK(TVMBackendFreeWorkspace(kDLCPU, 0, first) == 0);
  CHECK(TVMPlatformTimerStop(&seconds) == kTvmErrorPlatformTimerBadState);
  CHECK(TVMPlatformTimerStart() == kTvmErrorNoError);
  CHECK(TVMPlatformTimerStart() == kTvmErrorPlatformTimerBadState);
  CHECK(TVMPlatformTimerStop(&seconds) == kTvmErrorNoError && seconds >= 0.0);
  puts("done");
  return 0;
}
"#;

#[test]
fn c_compiler_builds_the_sources_and_they_keep_their_promises() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::write(folder.path().join("main.c"), PROGRAM).unwrap();
    std::fs::copy(root().join("templates/platform.c.template"), folder.path().join("platform.c")).unwrap();
    for check in [&[][..], &["-DTVM_CRT_STACK_ALLOCATOR_ENABLE_LIFO_CHECK"]] {
        let built = Command::new("cc")
            .args(STRICT)
            .args(check)
            .args(["-Iinclude", "-o"])
            .arg(&program)
            .args(FILES.iter().map(|file| file.path).filter(|path| path.ends_with(".c")))
            .args([folder.path().join("main.c"), folder.path().join("platform.c")])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let ran = Command::new(&program).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "done\n");
    }
}
