//! The unit tests of the C sources, which are C programs themselves: as strict C99 under the sanitizers, and as plain C.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

const STRICT: &[&str] =
    &["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wmissing-prototypes", "-g"];
const SANITIZED: &[&str] = &["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const PLAIN: &[&str] = &["-O2"];
const DEFAULTS: &str = "crt_config";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}

/// All sources of the runtime but the platforms, as a static library `libcrt.a` in a folder. The entry point of programs
/// without generated code is a member of its own, so it takes no other's place.
fn build_library(options: &[&str], configuration: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = vec![root().join("platform/no_system_lib/system_lib_stub.c")];
    for library in std::fs::read_dir(root().join("src/runtime/crt")).unwrap() {
        for source in std::fs::read_dir(library.unwrap().path()).unwrap() {
            sources.push(source.unwrap().path());
        }
    }
    let mut command = Command::new("cc");
    for include in [root().join("include"), root().join(configuration)] {
        command.arg("-I").arg(include);
    }
    succeed(command.args(STRICT).args(options).arg("-c").args(&sources).current_dir(folder.path()));
    let objects = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    succeed(Command::new("ar").arg("rcs").arg(folder.path().join("libcrt.a")).args(objects.collect::<Vec<_>>()));
    folder
}

/// The library with default configuration, built once.
fn library(options: &'static [&'static str]) -> &'static Path {
    static BUILT: [OnceLock<TempDir>; 2] = [OnceLock::new(), OnceLock::new()];
    BUILT[usize::from(options == SANITIZED)].get_or_init(|| build_library(options, DEFAULTS)).path()
}

/// Builds a program of tests with a library and runs it.
fn run(options: &[&str], configuration: &str, library: &Path, files: &[PathBuf], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let mut command = Command::new("cc");
    command.args(STRICT).args(options).args(["-Iinclude", "-I", configuration, "-o"]).arg(&program);
    succeed(command.args(files).arg(library.join("libcrt.a")).current_dir(root()));
    // Requests that can't be met are answered as the C library would.
    succeed(Command::new(&program).args(arguments).env("ASAN_OPTIONS", "allocator_may_return_null=1"))
}

fn tests(files: &[&str]) -> Vec<PathBuf> {
    files.iter().map(|file| root().join("tests/c").join(file)).collect()
}

/// Builds and runs tests in both ways.
fn test(files: &[&str]) {
    for options in [SANITIZED, PLAIN] {
        assert_eq!(run(options, DEFAULTS, library(options), &tests(files), &[]), "done\n", "{options:?}");
    }
}

#[test]
fn registry() {
    test(&["registry.c", "test_platform.c"]);
}

#[test]
fn a_registry_in_a_static_library_is_found() {
    // Objects of the runtime come first, as in archives' Makefiles: nothing in them may stand in for the model's registry.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(
        path("model.c"),
        "#include <tvm/runtime/crt/module.h>\n\
         static const TVMFuncRegistry registry = {\"\\000\\000\", NULL};\n\
         static const TVMModule module = {&registry};\n\
         const TVMModule* TVMSystemLibEntryPoint(void) { return &module; }\n",
    )
    .unwrap();
    std::fs::write(
        path("main.c"),
        "#include <stdio.h>\n#include <tvm/runtime/crt/module.h>\n\
         int main(void) { puts(TVMSystemLibEntryPoint() == NULL ? \"none\" : \"found\"); return 0; }\n",
    )
    .unwrap();
    let include = format!("-I{}", root().join("include").display());
    succeed(Command::new("cc").args([&include, "-c", "model.c"]).current_dir(folder.path()));
    succeed(Command::new("ar").args(["rcs", "libmodel.a", "model.o"]).current_dir(folder.path()));
    let common = std::fs::read_dir(root().join("src/runtime/crt/common")).unwrap().map(|entry| entry.unwrap().path());
    let mut command = Command::new("cc");
    command.arg(&include).arg("-I").arg(root().join(DEFAULTS)).arg("main.c").args(common);
    command.arg(root().join("tests/c/test_platform.c")).args(["libmodel.a", "-o", "program"]);
    succeed(command.current_dir(folder.path()));
    assert_eq!(succeed(&mut Command::new(path("program"))), "found\n");
}

#[test]
fn memory() {
    test(&["memory.c", "test_platform.c"]);
}

#[test]
fn json() {
    test(&["json.c", "test_platform.c"]);
}

#[test]
fn graph() {
    test(&["graph.c", "graph_fixture.c", "test_platform.c"]);
}

#[test]
fn modules() {
    // What the modules hold is still reachable at the end, so it counts as no leak.
    test(&["modules.c", "graph_fixture.c", "test_platform.c"]);
}

#[test]
fn damaged_graphs_and_parameters() {
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let (seed, cases) = (setting("MLC_FUZZ_SEED", "1"), setting("MLC_FUZZ_CASES", "6000"));
    let files = tests(&["fuzz.c", "graph_fixture.c", "test_platform.c"]);
    let printed = run(SANITIZED, DEFAULTS, library(SANITIZED), &files, &[seed.as_str(), cases.as_str()]);
    assert_eq!(printed, "done\n");
}

#[test]
fn configuration_of_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join("templates/crt_config.h.template")).unwrap();
    let check = "/* #define TVM_CRT_STACK_ALLOCATOR_ENABLE_LIFO_CHECK */";
    let debug = "#define TVM_CRT_DEBUG 0";
    assert!(text.contains(check) && text.contains(debug));
    let text = text.replace(check, "#define TVM_CRT_STACK_ALLOCATOR_ENABLE_LIFO_CHECK");
    std::fs::write(folder.path().join("crt_config.h"), text.replace(debug, "#define TVM_CRT_DEBUG 2")).unwrap();
    let configuration = folder.path().to_str().unwrap();
    let library = build_library(SANITIZED, configuration);
    let memory = tests(&["memory.c", "test_platform.c"]);
    assert_eq!(run(SANITIZED, configuration, library.path(), &memory, &[]), "done\n");
    let graph = tests(&["graph.c", "graph_fixture.c", "test_platform.c"]);
    let printed = run(SANITIZED, configuration, library.path(), &graph, &[]);
    assert!(printed.starts_with("graph executor: storage 2 of 24 bytes\n"), "{printed}");
    for line in ["input or parameter of 4 bytes", "node 3\ngraph executor: node 4"] {
        assert!(printed.contains(&format!("\ngraph executor: {line}\n")), "{printed}");
    }
    assert!(printed.ends_with("done\n"));
    let modules = tests(&["modules.c", "graph_fixture.c", "test_platform.c"]);
    let printed = run(SANITIZED, configuration, library.path(), &modules, &[]);
    assert!(printed.starts_with("aot executor: tvmgen_model\n"), "{printed}");
}

#[test]
fn platforms_of_posix_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("platform.c");
    std::fs::copy(root().join("templates/platform.c.template"), &template).unwrap();
    let ready = root().join("platform/posix/platform.c");
    for (platform, way, define) in [
        (&template, SANITIZED, &[][..]),
        (&template, PLAIN, &[]),
        (&ready, SANITIZED, &[]),
        (&ready, SANITIZED, &["-DTVM_WORKSPACE_SIZE_BYTES=65536"]),
    ] {
        let files = [root().join("tests/c/platform.c"), platform.clone()];
        assert_eq!(
            run(&[way, define].concat(), DEFAULTS, library(way), &files, &[]),
            "done\n",
            "{}",
            platform.display()
        );
    }
}
