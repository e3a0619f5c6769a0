//! Models in other builds: the CMake function and the crate for `build.rs`, each by a small project.

use std::path::Path;
use std::process::{Command, Output};

const BUILDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../builds");

/// y = x + 1 or what else is added.
fn model(added: f32) -> String {
    format!(
        "mlc 1\ngraph @g(%x: f32[4]) -> (\"y\": f32[4]) {{\n  %one = constant f32[] [{added:?}]\n  \
         %y = binary %x, %one {{function = add}} : f32[4]\n  return %y\n}}\n"
    )
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn output(command: &mut Command) -> Output {
    for variable in ["CC", "CFLAGS", "AR", "LDFLAGS"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

fn succeed(command: &mut Command) -> String {
    let output = output(command);
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {printed}\n{said}");
    printed
}

fn has_cmake() -> bool {
    let found = Command::new("cmake").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no cmake");
    }
    found
}

const MAIN: &str = "#include <stdio.h>\n#include \"tvmgen_adder.h\"\n#include \"tvmgen_other.h\"\n\
    static float x[4] __attribute__((aligned(16))) = {1, 2, 3, 4};\nstatic float y[4] __attribute__((aligned(16)));\n\
    int main(void) {\n  struct tvmgen_adder_inputs inputs = {x};\n  struct tvmgen_adder_outputs outputs = {y};\n  \
    struct tvmgen_other_inputs more = {x};\n  struct tvmgen_other_outputs rest = {y};\n  \
    int status = (int)tvmgen_adder_run(&inputs, &outputs);\n  printf(\"%g %g\", y[0], y[3]);\n  \
    status += (int)tvmgen_other_run(&more, &rest);\n  printf(\" %g\\n\", y[3]);\n  return status;\n}\n";

#[test]
fn a_cmake_project_has_models() {
    if !has_cmake() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lists = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(user LANGUAGES C)\ninclude({BUILDS}/mlc.cmake)\n\
         mlc_add_model(adder models/adder.mlc)\n\
         mlc_add_model(second models/other.mlc NAME other TARGET host OPTIONS --optimize size)\n\
         add_executable(user main.c)\ntarget_link_libraries(user PRIVATE adder second)\n"
    );
    write(folder, "CMakeLists.txt", &lists);
    write(folder, "main.c", MAIN);
    write(folder, "models/adder.mlc", &model(1.0));
    write(folder, "models/other.mlc", &model(10.0));
    let compiler = format!("-DMLC={}", env!("CARGO_BIN_EXE_mlc"));
    succeed(Command::new("cmake").args(["-B", "build", &compiler]).current_dir(folder));
    let build = || {
        succeed(Command::new("cmake").args(["--build", "build"]).current_dir(folder));
        succeed(&mut Command::new(folder.join("build/user")))
    };
    assert_eq!(build(), "2 5 14\n");
    // A model that has changed is compiled again, without being asked for.
    write(folder, "models/adder.mlc", &model(2.5));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
    std::fs::File::options().append(true).open(folder.join("models/adder.mlc")).unwrap().set_modified(later).unwrap();
    assert_eq!(build(), "3.5 6.5 14\n");
    // What mlc says of a model that it can't compile is seen.
    write(folder, "models/adder.mlc", "nonsense");
    let failed = output(Command::new("cmake").args(["-B", "build"]).current_dir(folder));
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && said.contains("error[MLC") && said.contains("adder.mlc"), "{said}");
}

#[test]
fn a_cmake_project_has_models_for_microcontrollers() {
    let is_missing = Command::new("arm-none-eabi-gcc").arg("--version").output().is_err();
    if is_missing || !has_cmake() {
        eprintln!("skipped: there is no compiler for Cortex-M");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lists = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(firmware LANGUAGES C)\ninclude({BUILDS}/mlc.cmake)\n\
         mlc_add_model(adder adder.mlc TARGET cortex-m4)\n\
         add_library(firmware STATIC main.c)\ntarget_link_libraries(firmware PRIVATE adder)\nadd_dependencies(firmware tvmgen_adder)\n"
    );
    write(folder, "CMakeLists.txt", &lists);
    write(folder, "main.c", "#include \"tvmgen_adder.h\"\nint size(void) { return TVMGEN_ADDER_X_SIZE; }\n");
    write(folder, "adder.mlc", &model(1.0));
    let compiler = format!("-DMLC={}", env!("CARGO_BIN_EXE_mlc"));
    let machine = [
        "-DCMAKE_SYSTEM_NAME=Generic",
        "-DCMAKE_C_COMPILER=arm-none-eabi-gcc",
        "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
    ];
    succeed(Command::new("cmake").args(["-B", "build", &compiler]).args(machine).current_dir(folder));
    succeed(Command::new("cmake").args(["--build", "build"]).current_dir(folder));
    assert!(folder.join("build/mlc/adder-build/libadder.a").is_file());
}

#[test]
fn a_build_script_has_models() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(
        folder,
        "Cargo.toml",
        &format!(
            "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[build-dependencies]\n\
             mlc-build = {{ path = {BUILDS:?} }}\n\n[workspace]\n"
        ),
    );
    write(
        folder,
        "build.rs",
        "fn main() {\n    mlc_build::Model::new(\"adder\", \"adder.mlc\").option(\"--optimize\", \"size\").build();\n}\n",
    );
    write(
        folder,
        "src/main.rs",
        "mod adder {\n    include!(concat!(env!(\"OUT_DIR\"), \"/adder.rs\"));\n}\n\nfn main() {\n    \
         let x = adder::Aligned([1.0, 2.0, 3.0, 4.0]);\n    let mut y = adder::Aligned([0.0; 4]);\n    \
         adder::run(&adder::Inputs { x: &x }, &mut adder::Outputs { y: &mut y }).unwrap();\n    println!(\"{:?}\", y.0);\n}\n",
    );
    write(folder, "adder.mlc", &model(1.0));
    let cargo = || {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "-q"]).current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
        // Variables of the run of this test aren't meant for another package.
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST"))
        {
            cargo.env_remove(name);
        }
        output(cargo.env("MLC", env!("CARGO_BIN_EXE_mlc")))
    };
    let built = cargo();
    assert_eq!(
        String::from_utf8_lossy(&built.stdout),
        "[2.0, 3.0, 4.0, 5.0]\n",
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    write(folder, "adder.mlc", "nonsense");
    let failed = cargo();
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && said.contains("error[MLC") && said.contains("adder.mlc"), "{said}");
}
