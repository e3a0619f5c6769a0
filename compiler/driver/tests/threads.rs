//! Threads as users meet them: in the archive, in what is told of kernels, and refused.

use crate::common::mlc;
use std::process::Command;
use tempfile::TempDir;

/// A convolution that two threads are worth it for, and a softmax that is too short for them.
const MODEL: &str = r#"mlc 1
graph @net(%x: f32[1, 66, 66, 32]) -> ("y": f32[1, 64, 64, 48], "z": f32[2, 3]) {
  %w = constant f32[3, 3, 32, 48] random(seed = 1)
  %y = convolution %x, %w {strides = [1, 1], pads = [[0, 0], [0, 0]], dilations = [1, 1], groups = 1} : f32[1, 64, 64, 48]
  %b = constant f32[2, 3] random(seed = 2)
  %s = binary %b, %b {function = add} : f32[2, 3]
  %z = softmax %s {axis = 1, logarithm = false} : f32[2, 3]
  return %y, %z
}
"#;

/// A folder with the model.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("net.mlc"), MODEL).unwrap();
    folder
}

#[test]
fn an_archive_for_threads_says_so_and_builds_with_a_pool() {
    let folder = folder();
    let compile = ["compile", "net.mlc", "--threads", "2", "--explain", "--emit", "dir", "-o", "net"];
    let text = mlc(folder.path(), 0, &compile);
    assert!(text.contains(", 2 threads") && text.contains("2 threads compute 100 % of it in one launch"), "{text}");
    let read = |path: &str| std::fs::read_to_string(folder.path().join("net").join(path)).unwrap();
    assert!(read("codegen/host/include/tvmgen_default.h").contains("#define TVMGEN_DEFAULT_THREADS 2"));
    assert!(read("metadata.json").contains("\"threads\": 2"), "{}", read("metadata.json"));
    assert!(read("runtime/threads/posix.c").contains("TVMBackendParallelLaunch"));
    assert!(read("runtime/threads/freertos.c.template").contains("TVMBackendParallelLaunch"));
    let make = |more: &[&str]| {
        let folder = folder.path().join("net");
        let output = Command::new("make").arg("example").args(more).current_dir(folder).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (made, said) = make(&["CFLAGS=-std=c99 -O1 -Wall -Wextra -Werror"]);
    assert!(made, "{said}");
    // A project that has no threads gives a function of its own.
    let own = "#include <tvm/runtime/c_backend_api.h>\n\
               int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void* cdata, int num_task) {\n  \
               TVMParallelGroupEnv alone = {0, 1};\n  (void)num_task;\n  return flambda(0, &alone, cdata);\n}\n";
    std::fs::write(folder.path().join("net/own.c"), own).unwrap();
    let (made, said) = make(&["POOL=own.c", "BUILD=other"]);
    assert!(made, "{said}");
    for program in ["build/example", "other/example"] {
        assert!(Command::new(folder.path().join("net").join(program)).output().unwrap().status.success());
    }
}

#[test]
fn the_same_comes_of_two_threads() {
    let folder = folder();
    for threads in ["1", "2"] {
        let run = ["run", "net.mlc", "--fp", "strict", "--threads", threads, "--output-dir", threads];
        mlc(folder.path(), 0, &run);
    }
    for name in ["y.npy", "z.npy"] {
        let read = |threads: &str| std::fs::read(folder.path().join(threads).join(name)).unwrap();
        assert!(read("1") == read("2"), "{name}");
    }
    mlc(folder.path(), 0, &["verify", "net.mlc", "--threads", "2"]);
}

#[test]
fn where_nothing_could_start_threads_they_are_refused() {
    let folder = folder();
    for (more, message) in [
        (&["--executor", "graph"][..], "only code with the C interface is computed by 2 threads"),
        (&["--executor", "aot,graph"], "only code with the C interface is computed by 2 threads"),
        (&["--interface-api", "packed"], "only code with the C interface is computed by 2 threads"),
        (&["--target", "cortex-m4"], "code for 'cortex-m4' is computed by one thread"),
        (&["--target", "wasm32-simd128"], "code for 'wasm32-simd128' is computed by one thread"),
    ] {
        let text = mlc(folder.path(), 2, &[&["compile", "net.mlc", "--threads", "2"], more].concat());
        assert!(text.contains("MLC0004") && text.contains(message), "{more:?}: {text}");
    }
    mlc(folder.path(), 0, &["compile", "net.mlc", "--threads", "2", "-o", "net.tar"]);
    let text = mlc(folder.path(), 2, &["bench", "net.tar", "--threads", "2"]);
    assert!(text.contains("how many threads compute it, were decided then"), "{text}");
    let text = mlc(folder.path(), 2, &["project", "net.tar", "--template", "posix", "-o", "project"]);
    assert!(text.contains("are computed by several threads"), "{text}");
    for threads in ["0", "65", "two"] {
        mlc(folder.path(), 2, &["compile", "net.mlc", "--threads", threads]);
    }
}
