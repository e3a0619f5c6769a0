use super::*;
use crate::choice::Choice;
use crate::module::{ConstantForm, KernelSummary, MemoryPlan, PackedConstant, PlannedBuffer, SourceFile};
use crate::price::Price;
use crate::{Module, Port};
use mlc_ir::{Attribute, DType, TensorType};
use std::path::Path;
use std::process::Command;

/// Two inputs, two outputs with awkward names, one constant, an arena: `sum = (x + x) + 1`, `copy = y`.
fn module() -> Module {
    let port = |name: &str, field: &str, dtype, shape: &[usize]| Port {
        name: name.into(),
        field: field.into(),
        ty: TensorType::new(dtype, shape),
        quantization: None,
    };
    let lib1 = "#include <stdint.h>\n#include <string.h>\n\
        #ifdef __cplusplus\nextern \"C\" {\n#endif\n\
        extern const float tvmgen_tiny_one[1];\n\
        int32_t tvmgen_tiny___tvm_main__(const void* x, const void* y, void* sum, void* copy, uint8_t* workspace);\n\
        int32_t tvmgen_tiny___tvm_main__(const void* x, const void* y, void* sum, void* copy, uint8_t* workspace) {\n\
        \x20 float* twice = (float*)(void*)workspace;\n  int32_t i;\n\
        \x20 if ((uintptr_t)workspace % 64U != 0U) {\n    return -1;\n  }\n\
        \x20 for (i = 0; i < 4; ++i) {\n    twice[i] = 2.0F * ((const float*)x)[i];\n  }\n\
        \x20 for (i = 0; i < 4; ++i) {\n    ((float*)sum)[i] = twice[i] + tvmgen_tiny_one[0];\n  }\n\
        \x20 memcpy(copy, y, 2);\n  return 0;\n}\n\
        #ifdef __cplusplus\n}\n#endif\n";
    let lib2 = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\
        extern const float tvmgen_tiny_one[1];\nconst float tvmgen_tiny_one[1] = { 1.0F };\n\
        #ifdef __cplusplus\n}\n#endif\n";
    Module {
        model_name: "tiny".into(),
        inputs: vec![port("x", "x", DType::F32, &[1, 4]), port("in/put:\"0\"", "in_put_0", DType::Bool, &[2])],
        outputs: vec![port("sum", "X", DType::F32, &[1, 4]), port("100%", "_100_", DType::Bool, &[2])],
        kernels: vec![KernelSummary {
            function: "tvmgen_tiny_add".into(),
            node: "add".into(),
            operator: "map".into(),
            origins: vec!["add_0".into(), "add_1".into()],
            inside: 0,
            macs: 0,
            bytes: 0,
            workspace_bytes: 0,
            results: Vec::new(),
            laid_over: Vec::new(),
            parallel_turns: 1,
            split: None,
            branch: None,
            price: Price::default(),
            choice: Choice::default(),
        }],
        considered: crate::lower::Considered::default(),
        plan: MemoryPlan {
            arena_bytes: 64,
            alignment: 64,
            buffers: vec![PlannedBuffer { values: vec!["twice".into()], offset: 0, bytes: 16, first: 0, last: 0 }],
            liveness_bound_bytes: 16,
            pools: Vec::new(),
        },
        constants: vec![PackedConstant {
            symbol: "tvmgen_tiny_one".into(),
            name: "one".into(),
            value: Attribute::from_f32(&[1], &[1.0]).unwrap(),
            form: ConstantForm::Numbers,
            in_code: true,
            pool_offset: None,
        }],
        sources: vec![
            SourceFile { name: "tiny_lib1.c".into(), text: lib1.into() },
            SourceFile { name: "tiny_lib2.c".into(), text: lib2.into() },
        ],
        ..Module::default()
    }
}

fn package<'a>(module: &'a Module, target: &'a Target) -> Package<'a> {
    Package { modified: 1_697_621_400, ..Package::of(module, target, "mlc 1\n") }
}

fn files(module: &Module, target: &Target) -> IndexMap<String, Vec<u8>> {
    package(module, target).files().unwrap()
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../snapshots/package");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn the_archive_has_sorted_entries_with_fixed_owner_mode_and_time() {
    let archive = package(&module(), &Target::generic()).archive().unwrap();
    let mut listing = String::new();
    for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        // The raw name: paths of the tar crate drop the leading dot.
        let ustar = header.as_ustar().unwrap();
        let name = String::from_utf8_lossy(&ustar.name).trim_end_matches('\0').to_owned();
        listing += &format!(
            "{:o} {}/{} {}/{} {} {name}\n",
            header.mode().unwrap(),
            header.username().unwrap().unwrap(),
            header.groupname().unwrap().unwrap(),
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap(),
        );
    }
    snapshot("archive", &listing);
}

#[test]
fn the_same_module_gives_the_same_bytes() {
    let target = Target::generic();
    assert_eq!(package(&module(), &target).archive().unwrap(), package(&module(), &target).archive().unwrap());
}

#[test]
fn texts_are_as_reviewed() {
    let files = files(&module(), &Target::generic());
    for (name, path) in [
        ("metadata", "metadata.json"),
        ("header", "codegen/host/include/tvmgen_tiny.h"),
        ("entry", "codegen/host/src/tiny_lib0.c"),
        ("description", "src/tiny.json"),
        ("makefile", "Makefile"),
        ("cmake_lists", "CMakeLists.txt"),
        ("example", "example/main.c"),
    ] {
        snapshot(name, std::str::from_utf8(&files[path]).unwrap());
    }
}

#[test]
fn build_files_of_a_cross_compiler_are_as_reviewed() {
    let target = Target::embedded().into_iter().find(|target| target.name == "cortex-m4").unwrap();
    let files = files(&module(), &target);
    for (name, path) in [("makefile_cross", "Makefile"), ("cmake_lists_cross", "CMakeLists.txt")] {
        snapshot(name, std::str::from_utf8(&files[path]).unwrap());
    }
}

#[test]
fn cross_compilers_build_the_package() {
    for target in Target::embedded() {
        let compiler = target.tools.as_ref().unwrap().compiler.clone();
        if Command::new(&compiler).arg("--version").output().is_err() {
            eprintln!("skipped: there is no {compiler}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in files(&module(), &target) {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        // The C library's headers are the user's choice.
        let mut make = Command::new("make");
        make.args(["-C", folder.path().to_str().unwrap(), "CPPFLAGS=--specs=picolibc.specs -Werror"]);
        succeed(make.env_remove("CC").env_remove("AR"));
        assert!(folder.path().join("build/libtiny.a").is_file());
    }
}

#[test]
fn parameters_are_an_empty_list() {
    let files = files(&module(), &Target::generic());
    let mut expected = vec![0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7];
    expected.resize(32, 0);
    assert_eq!(files["parameters/tiny.params"], expected);
}

fn unpack(module: &Module, folder: &Path) {
    for (path, bytes) in files(module, &Target::generic()) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn c_compiler_builds_the_package_and_its_example_runs() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&module(), folder.path());
    succeed(Command::new("make").args(["-C", folder.path().to_str().unwrap(), "example"]));
    let printed = succeed(&mut Command::new(folder.path().join("build/example")));
    assert_eq!(printed, "sum: 1 1 1 1\n100%: 0 0\n");
}

#[test]
fn c_compiler_finds_nothing_to_warn_of_in_any_dialect() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&module(), folder.path());
    let strict = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-fsyntax-only"];
    for dialect in [["-x", "c", "-std=c99"], ["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++11"]] {
        for source in ["codegen/host/src/tiny_lib0.c", "example/main.c"] {
            succeed(
                Command::new("cc")
                    .args(dialect)
                    .args(strict)
                    .args(["-Icodegen/host/include", "-Iruntime/include", source])
                    .current_dir(folder.path()),
            );
        }
    }
}

#[test]
fn c_compiler_without_gnu_extensions_aligns_the_arena() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&module(), folder.path());
    // As a plain C99 compiler sees it; undefining the macro itself would upset the system's headers.
    let entry = folder.path().join("codegen/host/src/tiny_lib0.c");
    let text = std::fs::read_to_string(&entry).unwrap();
    assert!(text.contains("defined(__GNUC__)"));
    std::fs::write(&entry, text.replace("defined(__GNUC__)", "0")).unwrap();
    let arguments = "-std=c99 -Icodegen/host/include -o program example/main.c \
        codegen/host/src/tiny_lib0.c codegen/host/src/tiny_lib1.c codegen/host/src/tiny_lib2.c";
    succeed(Command::new("cc").args(arguments.split_whitespace()).current_dir(folder.path()));
    assert!(succeed(&mut Command::new(folder.path().join("program"))).starts_with("sum: 1 1 1 1\n"));
}

#[test]
fn a_model_without_inputs_arena_or_constants_is_valid_c() {
    let folder = tempfile::tempdir().unwrap();
    let mut module = module();
    module.inputs.clear();
    module.outputs.truncate(1);
    module.plan = MemoryPlan::default();
    module.constants.clear();
    unpack(&module, folder.path());
    let strict = "-std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -Icodegen/host/include \
        codegen/host/src/tiny_lib0.c example/main.c";
    succeed(Command::new("cc").args(strict.split_whitespace()).current_dir(folder.path()));
}

#[test]
fn c_compiler_takes_strings_for_the_numbers_that_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut generator = mlc_ir::Generator::new(3);
    let bytes: Vec<u8> = (0..8192).map(|_| generator.range(0, 255) as u8).collect();
    let constant = |symbol: &str, dtype: DType| {
        let value = Attribute::new(TensorType::new(dtype, [bytes.len() / dtype.size()]), bytes.clone()).unwrap();
        let form = crate::constants::form(&value, true);
        assert_eq!(form, ConstantForm::String);
        PackedConstant { symbol: symbol.into(), name: symbol.into(), value, form, in_code: true, pool_offset: None }
    };
    let constants: Vec<PackedConstant> =
        [("a", DType::F32), ("b", DType::I8), ("c", DType::I64)].map(|(symbol, dtype)| constant(symbol, dtype)).into();
    let write = |constant: &PackedConstant| {
        let array = crate::constants::array(constant);
        format!(
            "{};\n#define WRITE_{} fwrite({array}, sizeof({array}), 1, stdout)\n",
            crate::constants::declaration(constant),
            constant.symbol
        )
    };
    let main = format!(
        "#include <stdint.h>\n#include <stdio.h>\n{}int main(void) {{\n  return WRITE_a == 1 && WRITE_b == 1 && WRITE_c == 1 ? 0 : 1;\n}}\n",
        constants.iter().map(write).collect::<String>()
    );
    std::fs::write(folder.path().join("main.c"), main).unwrap();
    let mut text = Vec::new();
    crate::constants::write_constants(&Module { constants, ..module() }, &mut text).unwrap();
    std::fs::write(folder.path().join("constants.c"), text).unwrap();
    for options in ["-std=c99", "-std=gnu11 -O3 -flto"] {
        let strict = "-pedantic -Wall -Wextra -Werror -Wconversion -o program main.c constants.c";
        let arguments = options.split(' ').chain(strict.split(' '));
        succeed(Command::new("cc").args(arguments).current_dir(folder.path()));
        let written = Command::new(folder.path().join("program")).output().unwrap();
        assert!(written.status.success() && written.stdout == bytes.repeat(3), "{options}");
    }
}
