//! What C is compiled by so that it stops at undefined behaviour.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Flags that make a program stop at undefined behaviour. Without optimisation, which takes half of the compiler's time and hides
/// accesses, and without `-g`, which makes compilation four times as slow: what the sanitizers say names the line, or the
/// function, all the same. Accesses are checked by calls, and other undefined behaviour is a trap without a text
/// (what ends by it says so), which together take a third of the compiler's time. Clang doesn't know how to be told the former. What is read or written
/// through a null pointer, or one that was moved too far, is found as an access; checks of the pointers themselves take half of what is left.
pub const SANITIZERS: [&str; 7] = [
    "-O0",
    "-fsanitize=address,undefined",
    "-fno-sanitize=null,object-size,pointer-overflow",
    "-fno-sanitize-recover=all",
    "-fsanitize-undefined-trap-on-error",
    "--param=asan-instrumentation-with-call-threshold=0",
    "-Wno-unused-command-line-argument",
];

/// The C compiler: `CC`, or `cc`.
pub fn c_compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".into())
}

/// What compiles and links under [`SANITIZERS`], and an option for it: clang, in half of the time that gcc takes, where it is there with their
/// library and a quick linker, and nobody has named another one by `CC`.
pub fn sanitizing_compiler() -> (&'static str, Option<&'static str>) {
    const LINKER: &str = "-fuse-ld=lld";
    static COMPILER: LazyLock<(String, bool)> = LazyLock::new(|| {
        let is_quick = std::env::var_os("CC").is_none() && links("clang", LINKER);
        (if is_quick { "clang".into() } else { c_compiler() }, is_quick)
    });
    (&COMPILER.0, COMPILER.1.then_some(LINKER))
}

/// Whether a compiler makes a program of nothing under sanitizers.
fn links(compiler: &str, option: &str) -> bool {
    let Ok(folder) = tempfile::tempdir() else { return false };
    let source = folder.path().join("empty.c");
    if std::fs::write(&source, "int main(void) { return 0; }\n").is_err() {
        return false;
    }
    let mut command = Command::new(compiler);
    command.args(SANITIZERS).arg(option).arg(&source).arg("-o").arg(folder.path().join("empty"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
