//! The C of described operators computes what the original computed: the models of the repository whose operators are all
//! described, as programs under sanitizers.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_descriptions::{CFile, Description, ELEMENT_TYPES, Implementation, Library, SUPPORT, TensorDescription};
use mlc_ir::{DType, Tensor, TensorType};
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::described::{Call, Described, text};
use mlc_tests::program::{SANITIZERS, c_compiler};
use mlc_tests::{array, paths};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn element(tensor: &TensorDescription) -> DType {
    let types = [
        DType::F64,
        DType::F32,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::I32,
    ];
    types[tensor.element]
}

/// The type of a tensor as the evaluator has it; truth values are integers here.
fn tensor_type(tensor: &TensorDescription) -> TensorType {
    let extents: Vec<usize> = tensor.extents.iter().map(|extent| *extent as usize).collect();
    TensorType::new(element(tensor), extents)
}

/// The description whose C an operator type is run by.
fn runner<'a>(library: &'a Library, optype: &str) -> &'a Description {
    library.get(&format!("{optype}_cpu")).or_else(|| library.get(optype)).unwrap()
}

fn list<T: std::fmt::Debug>(values: impl Iterator<Item = T>) -> String {
    values.map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ")
}

/// How the model's code runs an operator that has code; views have none.
fn implementation(library: &Library, call: &Call) -> Option<Implementation> {
    let description = runner(library, &call.optype);
    if description.outputs.iter().all(|output| description.is_view(output)) {
        return None;
    }
    let offsets: Vec<u64> = call.views.iter().map(|view| view.as_ref().map_or(0, |(_, offset)| *offset)).collect();
    Some(description.implementation(&call.instance, &call.inference, &offsets).unwrap())
}

/// A program that reads the inputs from standard input, runs the model twice, and writes the outputs to standard output.
fn program(library: &Library, model: &Described, inputs: &[String], outputs: &[String]) -> String {
    let symbol = |name: &str| model.tensors.keys().position(|known| known == name).unwrap();
    let implementations: Vec<_> = model.calls.iter().map(|call| implementation(library, call)).collect();
    let mut text = String::from("#include <stdio.h>\n#include \"mlc_operator.h\"\n");
    let mut headers: Vec<&str> =
        implementations.iter().flatten().flat_map(|found| &found.files).map(|f| &*f.name).collect();
    headers.sort_unstable();
    headers.dedup();
    headers.iter().filter(|name| name.ends_with(".h")).for_each(|name| text += &format!("#include \"{name}\"\n"));
    for (number, tensor) in model.tensors.values().enumerate() {
        let bytes = tensor_type(tensor).bytes();
        let _ = writeln!(
            text,
            "static union {{ double aligned; unsigned char bytes[{bytes}]; }} memory{number};\n\
             static unsigned char *data{number} = memory{number}.bytes;"
        );
    }
    for (number, found) in implementations.iter().enumerate() {
        if let Some(Implementation { structure, initialiser, .. }) = found {
            let _ = writeln!(text, "static struct {structure} op{number} = {initialiser};");
        }
    }
    text += "\nint main(void) {\n";
    for (name, numbers) in model.numbers.iter().filter(|(_, numbers)| **numbers != [0.0]) {
        let (number, tensor) = (symbol(name), &model.tensors[name]);
        let element = ELEMENT_TYPES[tensor.element];
        let _ = write!(
            text,
            "  {{\n    static const double numbers[] = {{{}}};\n    for (int i = 0; i < {}; i++) {{\n      \
             tl_convert(tl_pointer_add(data{number}, i, {element}), {element}, &numbers[i], TL_DOUBLE);\n    }}\n  }}\n",
            list(numbers.iter()),
            numbers.len()
        );
    }
    for name in inputs {
        let number = symbol(name);
        let bytes = format!("sizeof memory{number}.bytes");
        let _ = writeln!(text, "  if (fread(data{number}, 1, {bytes}, stdin) != {bytes}) return 1;");
    }
    for (call, found) in model.calls.iter().zip(&implementations) {
        for (name, view) in call.instance.outputs.iter().zip(&call.views) {
            if let (Some((owner, offset)), None) = (view, found) {
                let _ = writeln!(text, "  data{} = data{} + {offset};", symbol(name), symbol(owner));
            }
        }
    }
    let mut phase = |function: fn(&Implementation) -> Option<&String>, times: usize| {
        let mut calls = String::new();
        for (number, (call, found)) in model.calls.iter().zip(&implementations).enumerate() {
            let Some(function) = found.as_ref().and_then(function) else { continue };
            let names = call.instance.inputs.iter().map(|input| &input.name).chain(&call.instance.outputs);
            let arguments: String = names.map(|name| format!(", data{}", symbol(name))).collect();
            let _ = writeln!(calls, "  if ({function}(&op{number}{arguments}) != 0) return 2;");
        }
        text += &calls.repeat(times);
    };
    phase(|found| found.begin.as_ref(), 1);
    phase(|found| Some(&found.call), 2);
    phase(|found| found.end.as_ref(), 1);
    for name in outputs {
        let number = symbol(name);
        let bytes = format!("sizeof memory{number}.bytes");
        let _ = writeln!(text, "  if (fwrite(data{number}, 1, {bytes}, stdout) != {bytes}) return 3;");
    }
    text + "  return 0;\n}\n"
}

/// What the program of a case writes.
fn run(folder: &Path, files: &[CFile], main: &str, inputs: &[u8]) -> Vec<u8> {
    for file in files {
        std::fs::write(folder.join(&*file.name), file.text.as_bytes()).unwrap();
    }
    std::fs::write(folder.join("main.c"), main).unwrap();
    std::fs::write(folder.join("inputs"), inputs).unwrap();
    let sources = files.iter().filter(|file| file.name.ends_with(".c")).map(|file| file.name.to_string());
    let sources: Vec<String> = sources.collect();
    let build = |compiler: &str, options: &[&str]| {
        let mut command = Command::new(compiler);
        command.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]).args(&sources).arg("main.c");
        let output = command.args(options).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    };
    build(&c_compiler(), &[&SANITIZERS[..], &["-o", "model", "-lm"]].concat());
    if Command::new("arm-none-eabi-gcc").arg("--version").output().is_ok() {
        build("arm-none-eabi-gcc", &["--specs=picolibc.specs", "-mcpu=cortex-m4", "-mthumb", "-O2", "-fsyntax-only"]);
    }
    let input = std::fs::File::open(folder.join("inputs")).unwrap();
    let output = Command::new("./model").current_dir(folder).stdin(input).output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Runs a case; false if the model has other operators.
fn check(case: &Path) -> bool {
    let description = json(&case.join("case.json"));
    if text(&description, "expect") != "ok" {
        return false;
    }
    let bytes = std::fs::read(case.join(text(&description, "description"))).unwrap();
    let library = Library::read(&[("op", &bytes)]).unwrap_or_else(|errors| panic!("{errors:?}"));
    let model = Described::infer(&library, &json(&case.join("model.json"))).unwrap();
    if !model.complete {
        return false;
    }
    let files = library.iter().flat_map(|description| description.definition().unwrap()).chain(SUPPORT);
    let files: Vec<CFile> = files.collect();
    let named = |key: &str| -> Vec<(String, Tensor)> {
        let list = description[key].as_array().unwrap();
        list.iter()
            .map(|entry| (text(entry, "name").to_owned(), array::read(&case.join(text(entry, "file")), false).unwrap()))
            .collect()
    };
    let (inputs, outputs) = (named("inputs"), named("outputs"));
    let names = |list: &[(String, Tensor)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<String>>();
    let main = program(&library, &model, &names(&inputs), &names(&outputs));
    let given: Vec<u8> = inputs.iter().flat_map(|(_, tensor)| tensor.to_le_bytes()).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut written = &run(folder.path(), &files, &main, &given)[..];
    let number = |key: &str| description[key].as_f64().unwrap();
    let tolerance = Tolerance { absolute: number("atol"), relative: number("rtol") };
    for (name, golden) in &outputs {
        let ty = tensor_type(&model.tensors[name]);
        let (bytes, rest) = written.split_at(ty.bytes());
        written = rest;
        let tensor = Tensor::from_le_bytes(ty, bytes);
        compare(&tensor, golden, tolerance).unwrap_or_else(|error| panic!("{}: {name}: {error}", case.display()));
    }
    true
}

#[test]
fn c_compiler_runs_described_operators() {
    let cases = paths::subfolders(&paths::data().join("lightnet-opdesc")).unwrap();
    let run = cases.iter().filter(|case| check(case)).count();
    assert!(run >= 7, "{run} models are run");
}
