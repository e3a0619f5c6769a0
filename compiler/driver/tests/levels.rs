//! A machine of several levels as users meet it: what is in the archive, how it builds, which level is picked, and what is refused.

use crate::common::mlc;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A convolution and a matrix product.
const NET: &str = r#"mlc 1
graph @net(%x: f32[1, 10, 10, 16]) -> ("y": f32[1, 8, 8, 20]) {
  %w = constant f32[3, 3, 16, 24] random(seed = 1)
  %c = convolution %x, %w {strides = [1, 1], pads = [[0, 0], [0, 0]], dilations = [1, 1], groups = 1} : f32[1, 8, 8, 24]
  %m = constant f32[24, 20] random(seed = 2)
  %y = matmul %c, %m {transpose_left = false, transpose_right = false}
  return %y
}
"#;

/// A recurrence from a state that isn't 0.
const STREAM: &str = r#"mlc 1
graph @stream(%x: f32[2, 1, 9]) -> ("y": f32[2, 1, 3]) {
  %s = constant f32[3, 9] random(seed = 6)
  %c = constant f32[9] random(seed = 7)
  %h = constant f32[1, 3] random(seed = 4)
  %y = recurrent %x, %s, %c, %h {cell = gru, activations = [sigmoid(x0), tanh(x0)], reverse = false, with = []}
  return %y
}
"#;

/// Tells the level, and what a run returns.
const TELL: &str = r#"#include <stdio.h>
#include "tvmgen_net.h"
static float x[1600] __attribute__((aligned(64))), y[1280] __attribute__((aligned(64)));
int main(void) {
  struct tvmgen_net_inputs inputs = { x };
  struct tvmgen_net_outputs outputs = { y };
  int32_t status = tvmgen_net_run(&inputs, &outputs);
  printf("%d %d\n", (int)tvmgen_net_level(), (int)status);
  return 0;
}
"#;

/// Runs a stream on one level, and one whose level changes from run to run, on one memory of states each.
const STATES: &str = r#"#include <stdio.h>
#include <math.h>
#include "tvmgen_net.h"
#define RUN(level) int32_t tvmgen_net_x86_64_##level##___tvm_main__(const void*, void*, uint8_t*, uint8_t*)
RUN(v2);
RUN(v3);
static float x[18] __attribute__((aligned(64))), y[2][6] __attribute__((aligned(64)));
static uint8_t work[TVMGEN_NET_WORKSPACE_SIZE + 64] __attribute__((aligned(64)));
static uint8_t states[2][64] __attribute__((aligned(64)));
int main(void) {
  int run, k;
  for (k = 0; k < 2; ++k) {
    struct tvmgen_net_workspace_pools pools = { work, states[k] };
    if (tvmgen_net_reset(&pools) != 0) return 1;
  }
  for (run = 0; run < 6; ++run) {
    for (k = 0; k < 18; ++k) x[k] = (float)((run * 18 + k) % 7) * 0.25f - 0.75f;
    if (tvmgen_net_x86_64_v2___tvm_main__(x, y[0], work, states[0]) != 0) return 1;
    if ((run % 2 ? tvmgen_net_x86_64_v2___tvm_main__ : tvmgen_net_x86_64_v3___tvm_main__)(x, y[1], work, states[1]) != 0) return 1;
    for (k = 0; k < 6; ++k) if (!(fabsf(y[0][k] - y[1][k]) < 1e-5f)) return 2 + run;
  }
  return 0;
}
"#;

/// Threads that run the model, and find the level out, at the same time.
const THREADS: &str = r#"#include <pthread.h>
#include "tvmgen_net.h"
static float x[1600] __attribute__((aligned(64)));
static float y[2][1280] __attribute__((aligned(64)));
static uint8_t work[2][TVMGEN_NET_WORKSPACE_SIZE] __attribute__((aligned(64)));
static int32_t status[2];
static void* run(void* argument) {
  int k = *(int*)argument;
  struct tvmgen_net_inputs inputs = { x };
  struct tvmgen_net_outputs outputs = { y[k] };
  struct tvmgen_net_workspace_pools pools = { work[k] };
  status[k] = tvmgen_net_run(&inputs, &outputs, &pools);
  return 0;
}
int main(void) {
  pthread_t threads[2];
  int k, numbers[2] = { 0, 1 };
  for (k = 0; k < 2; ++k) pthread_create(&threads[k], 0, run, &numbers[k]);
  for (k = 0; k < 2; ++k) pthread_join(threads[k], 0);
  return status[0] != 0 || status[1] != 0;
}
"#;

/// The targets of the levels.
const LEVELS: [&str; 3] = ["x86-64-v2", "x86-64-v3", "x86-64-v4"];

/// How the files of each level are compiled, for all of them without a warning.
const FLAGS: &str = "CFLAGS=-std=gnu99 -O1 -march=x86-64 -Wall -Wextra -Werror";

/// A folder with the models, and an unpacked archive of one of them for all levels.
fn archive(model: &str, more: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("net.mlc", NET), ("stream.mlc", STREAM)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let compile = ["compile", model, "--model-name", "net", "--target", "x86-64", "--emit", "dir", "-o", "a"];
    mlc(folder.path(), 0, &[&compile, more].concat());
    folder
}

fn succeeds(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Builds an archive's library with its Makefile, and a program of a text with it; gives where the program is.
fn program(folder: &Path, text: &str, flags: &[&str], variables: &[&str]) -> std::path::PathBuf {
    let archive = folder.join("a");
    std::fs::write(archive.join("main.c"), text).unwrap();
    let make = ["-s", "clean", "all"];
    succeeds(&Command::new("make").args(make).args(variables).current_dir(&archive).output().unwrap());
    let compile = ["main.c", "build/libnet.a", "-Icodegen/host/include", "-lm", "-pthread", "-o", "program"];
    succeeds(&Command::new("cc").args(flags).args(compile).current_dir(&archive).output().unwrap());
    archive.join("program")
}

/// The number of the last level that this machine has; `None` where it is none of them.
#[cfg(target_arch = "x86_64")]
fn last_level() -> Option<i32> {
    use std::arch::is_x86_feature_detected as has;
    let levels = [
        has!("sse4.2") && has!("popcnt"),
        has!("avx2") && has!("fma") && has!("bmi2") && has!("f16c") && has!("lzcnt"),
        has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("avx512cd"),
    ];
    let count = levels.iter().take_while(|has| **has).count();
    i32::try_from(count).ok()?.checked_sub(1)
}

#[cfg(not(target_arch = "x86_64"))]
fn last_level() -> Option<i32> {
    None
}

#[test]
fn an_archive_has_kernels_for_all_levels_and_says_so() {
    let folder = archive("net.mlc", &[]);
    let read = |path: &str| std::fs::read_to_string(folder.path().join("a").join(path)).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&read("metadata.json")).unwrap();
    let module = &metadata["modules"]["net"];
    let levels = module["levels"].as_array().unwrap();
    let names: Vec<&str> = levels.iter().map(|level| level["target"].as_str().unwrap()).collect();
    assert_eq!(names, LEVELS);
    let main = &module["memory"]["functions"]["main"][0];
    let figures = |key: &str| levels.iter().map(|level| level[key].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(main["workspace_size_bytes"].as_u64(), figures("workspace_size_bytes").into_iter().max());
    assert_eq!(main["constants_size_bytes"].as_u64(), Some(figures("constants_size_bytes").iter().sum()));
    assert!(read("codegen/host/include/tvmgen_net.h").contains("#define TVMGEN_NET_LEVEL_COUNT 3"));
    for (level, vector) in [("v2", 16), ("v3", 32), ("v4", 64)] {
        let text = read(&format!("codegen/host/src/net_x86_64_{level}_lib1.c"));
        assert!(text.contains(&format!("vector_size({vector})")), "{level}");
    }
    let again = archive("net.mlc", &[]);
    let list = |folder: &TempDir| {
        mlc(folder.path(), 0, &["compile", "net.mlc", "--target", "x86-64", "-o", "net.tar"]);
        std::fs::read(folder.path().join("net.tar")).unwrap()
    };
    assert!(list(&folder) == list(&again), "the same model gives another archive");
}

#[test]
fn the_last_level_that_the_machine_has_is_picked() {
    let Some(last) = last_level() else { return };
    let folder = archive("net.mlc", &[]);
    let program = program(folder.path(), TELL, &["-static"], &[FLAGS]);
    let tell = |command: &mut Command| succeeds(&command.output().unwrap());
    assert_eq!(tell(&mut Command::new(&program)), format!("{last} 0\n"));
    let emulator = "qemu-x86_64";
    if Command::new(emulator).arg("--version").output().is_err() {
        eprintln!("skipped for other processors: there is no {emulator}");
        return;
    }
    for (processor, told) in [("core2duo", "-1 -4053\n"), ("Nehalem", "0 0\n"), ("Haswell", "1 0\n")] {
        assert_eq!(tell(Command::new(emulator).args(["-cpu", processor]).arg(&program)), told, "{processor}");
    }
}

#[test]
fn a_level_can_be_chosen_if_the_machine_has_it() {
    let Some(last) = last_level() else { return };
    let folder = archive("net.mlc", &[]);
    for level in 0..3 {
        let chosen = format!("CPPFLAGS=-DTVMGEN_NET_LEVEL={level}");
        let program = program(folder.path(), TELL, &[], &[FLAGS, &chosen]);
        let told = if level <= last { format!("{level} 0\n") } else { "-1 -4053\n".to_owned() };
        assert_eq!(succeeds(&Command::new(&program).output().unwrap()), told);
    }
}

#[test]
fn states_are_of_no_level() {
    if last_level().is_none_or(|last| last < 1) {
        return;
    }
    let more = ["--stateful", "--state-pool", "external", "--workspace-pools", "external"];
    let folder = archive("stream.mlc", &more);
    let program = program(folder.path(), STATES, &[], &[FLAGS]);
    succeeds(&Command::new(&program).output().unwrap());
}

#[test]
fn static_states_are_kept_and_reset() {
    if last_level().is_none() {
        return;
    }
    let folder = archive("stream.mlc", &["--stateful"]);
    for target in ["x86-64", "host", "generic"] {
        mlc(folder.path(), 0, &["verify", "stream.mlc", "--stateful", "--target", target]);
    }
    let header = std::fs::read_to_string(folder.path().join("a/codegen/host/include/tvmgen_net.h")).unwrap();
    assert!(header.contains("int32_t tvmgen_net_reset(void);") && !header.contains("workspace_pools"), "{header}");
    let entry = std::fs::read_to_string(folder.path().join("a/codegen/host/src/net_lib0.c")).unwrap();
    assert!(entry.contains("static uint8_t shared_states[12]"), "{entry}");
}

#[test]
fn threads_find_the_level_out_without_a_race() {
    if last_level().is_none() {
        return;
    }
    let folder = archive("net.mlc", &["--workspace-pools", "external"]);
    let sanitized = "-fsanitize=thread";
    let program = program(folder.path(), THREADS, &[sanitized], &[&format!("{FLAGS} {sanitized}")]);
    // Addresses that change from run to run can be where the sanitizer has none.
    succeeds(&Command::new("setarch").arg("-R").arg(&program).output().unwrap());
}

#[test]
fn all_ways_to_build_take_the_options_of_each_level() {
    let Some(last) = last_level() else { return };
    let folder = archive("net.mlc", &[]);
    let path = folder.path();
    let level = LEVELS[usize::try_from(last).unwrap()];
    let run = |model: &str, target: &[&str], to: &str| {
        mlc(path, 0, &[&["run", model, "--output-dir", to], target].concat());
        std::fs::read(path.join(to).join("y.npy")).unwrap()
    };
    let alone = run("net.mlc", &["--target", level], "alone");
    assert!(alone == run("net.mlc", &["--target", "x86-64"], "all"));
    assert!(alone == run("net.mlc", &["--on", "x86-64"], "on"));
    let forms: [&[&str]; 6] = [
        &["--emit-lib"],
        &["--weights-as", "binary"],
        &["--weights-as", "incbin"],
        &["--weights-as", "object"],
        &["--workspace-pools", "external"],
        &["--mlf-version", "5"],
    ];
    for more in forms {
        let compile = ["compile", "net.mlc", "--model-name", "net", "--target", "x86-64", "-o", "net.tar"];
        mlc(path, 0, &[&compile, more].concat());
        assert!(alone == run("net.tar", &[], "archive"), "{more:?}");
    }
    let compile = ["compile", "net.mlc", "--model-name", "net", "--target", "x86-64", "-o", "net.tar"];
    mlc(path, 0, &compile);
    for template in ["posix", "cmake"] {
        mlc(path, 0, &["project", "net.tar", "--template", template, "-o", template]);
    }
    succeeds(&Command::new("make").arg("-s").current_dir(path.join("posix")).output().unwrap());
    let prepare = ["-S", "cmake", "-B", "built", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"];
    succeeds(&Command::new("cmake").args(prepare).current_dir(path).output().unwrap());
    let own = ["-S", "a", "-B", "own", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"];
    succeeds(&Command::new("cmake").args(own).current_dir(path).output().unwrap());
    for build in ["built", "own"] {
        let commands = std::fs::read_to_string(path.join(build).join("compile_commands.json")).unwrap();
        for level in ["v2", "v3", "v4"] {
            let file = format!("net_x86_64_{level}_lib1.c");
            let command = commands.lines().find(|line| line.contains("\"command\"") && line.contains(&file)).unwrap();
            // The last one counts.
            let march = command.rmatch_indices("-march=").next().map(|(at, _)| &command[at..]).unwrap();
            assert!(march.starts_with(&format!("-march=x86-64-{level} ")), "{command}");
        }
        succeeds(&Command::new("cmake").args(["--build", build]).current_dir(path).output().unwrap());
    }
}

#[test]
fn rows_that_come_one_by_one_are_computed_on_each_level() {
    let Some(last) = last_level() else { return };
    let folder = archive("net.mlc", &["--feed"]);
    let header = std::fs::read_to_string(folder.path().join("a/codegen/host/include/tvmgen_net.h")).unwrap();
    assert!(header.contains("int32_t level; /* whose kernels run */"), "{header}");
    let path = folder.path();
    let run = |target: &str| {
        mlc(path, 0, &["compile", "net.mlc", "--feed", "--target", target, "-o", "fed.tar"]);
        mlc(path, 0, &["run", "fed.tar", "--output-dir", target]);
        std::fs::read(path.join(target).join("y.npy")).unwrap()
    };
    assert!(run("x86-64") == run(LEVELS[usize::try_from(last).unwrap()]));
}

#[test]
fn several_models_have_levels_beside_each_other() {
    let folder = archive("net.mlc", &[]);
    let path = folder.path();
    let compile = ["compile", "net.mlc", "stream.mlc", "--target", "x86-64", "--emit", "dir", "-o", "both"];
    mlc(path, 0, &compile);
    let make = Command::new("make").args(["-s", FLAGS]).current_dir(path.join("both")).output().unwrap();
    succeeds(&make);
    let names = ["--model-name", "a", "--model-name", "a_x86_64_v3"];
    let text = mlc(path, 2, &[&compile[..], &names].concat());
    assert!(text.contains("MLC0004") && text.contains("two have the same name"), "{text}");
}

#[test]
fn what_is_of_one_level_is_refused() {
    let folder = archive("net.mlc", &[]);
    let path = folder.path();
    mlc(path, 0, &["compile", "net.mlc", "--target", "x86-64", "-o", "net.tar"]);
    let one = "one level of a machine, and 'x86-64' has 3";
    for (arguments, message) in [
        (&["compile", "net.mlc", "--executor", "graph"][..], "only the C interface picks one"),
        (&["compile", "net.mlc", "--executor", "aot,graph"], "only the C interface picks one"),
        (&["compile", "net.mlc", "--interface-api", "packed"], "only the C interface picks one"),
        (&["explore", "net.mlc"], one),
        (&["report", "net.mlc"], one),
        (&["bench", "net.mlc", "--per-kernel"], one),
        (&["verify", "net.mlc", "--per-layer"], one),
        (&["tune", "net.mlc", "--budget", "1s", "-o", "t.json"], one),
    ] {
        let text = mlc(path, 2, &[arguments, &["--target", "x86-64"]].concat());
        assert!(text.contains("MLC0004") && text.contains(message), "{arguments:?}: {text}");
        assert!(text.contains("'x86-64-v2', 'x86-64-v3', 'x86-64-v4'"), "{text}");
    }
    for template in ["cargo", "python"] {
        let text = mlc(path, 2, &["project", "net.tar", "--template", template, "-o", "project"]);
        assert!(text.contains("MLC0004") && text.contains(one), "{template}: {text}");
    }
    let text = mlc(path, 2, &["report", "net.tar"]);
    assert!(text.contains("MLC0004") && text.contains(one), "{text}");
}
