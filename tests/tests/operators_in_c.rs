//! The C of described operators computes what the original computed: the models of the repository whose operators are all
//! described, as programs under sanitizers.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_descriptions::{CFile, Description, ELEMENT_TYPES, Library, ParameterValue, SUPPORT, TensorDescription};
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

/// The record of a parameter, after the arrays that it points to.
fn parameter(name: &str, value: &ParameterValue, converted: Option<&ParameterValue>, symbol: &str) -> String {
    let kind = value.type_name();
    let members = match (value, converted) {
        (ParameterValue::Number(number), _) | (_, Some(ParameterValue::Number(number))) => {
            format!(".value_double = {number:?}, .value_float = (float){number:?}, .value_int = {}", *number as i32)
        }
        (ParameterValue::Bool(truth), _) => format!(".value_bool = {}", i32::from(*truth)),
        (ParameterValue::Numbers(numbers), _) => {
            let ints = list(numbers.iter().map(|number| *number as i32));
            let doubles = list(numbers.iter());
            return format!(
                "static double {symbol}_double[] = {{{doubles}}};\nstatic int {symbol}_int[] = {{{ints}}};\n\
                 static ln_param_entry {symbol} = {{.arg_name = \"{name}\", .type = {kind}, .array_len = {}, \
                 .value_array_double = {symbol}_double, .value_array_int = {symbol}_int}};\n",
                numbers.len()
            );
        }
        (ParameterValue::Text(text), _) => format!(".value_string = {text:?}"),
        (value, _) => panic!("{value:?} isn't in these models"),
    };
    format!("static ln_param_entry {symbol} = {{.arg_name = \"{name}\", .type = {kind}, {members}}};\n")
}

/// The records of an operator.
fn operator(number: usize, call: &Call, description: &Description, symbol: impl Fn(&str) -> usize) -> String {
    let mut text = String::new();
    let mut members = Vec::new();
    for (tensor, given) in description.inputs.iter().zip(&call.instance.inputs) {
        members.push(format!(".{}_entry = &entry{}", tensor.name, symbol(&given.name)));
    }
    for (tensor, name) in description.outputs.iter().zip(&call.instance.outputs) {
        members.push(format!(".{}_entry = &entry{}", tensor.name, symbol(name)));
    }
    for (index, (described, inferred)) in description.parameters.iter().zip(&call.inference.parameters).enumerate() {
        let record = format!("op{number}_param{index}");
        text += &parameter(&described.name, &inferred.value, inferred.converted.as_ref(), &record);
        members.push(format!(".{}_entry = &{record}", described.name));
    }
    let optype = &description.optype;
    let _ = write!(
        text,
        "static struct {optype}_priv op{number}_priv = {{{}}};\nstatic ln_op_arg op{number} = {{.name = {:?}, .optype = \"{optype}\", \
         .arch = \"cpu\", .priv = &op{number}_priv}};\n",
        members.join(", "),
        call.instance.name
    );
    text
}

/// A program that reads the inputs from standard input, runs the model twice, and writes the outputs to standard output.
fn program(library: &Library, model: &Described, inputs: &[String], outputs: &[String]) -> String {
    let symbol = |name: &str| model.tensors.keys().position(|known| known == name).unwrap();
    let mut text = String::from("#include <stdio.h>\n");
    let mut types: Vec<&str> = model.calls.iter().map(|call| runner(library, &call.optype).optype.as_str()).collect();
    types.sort_unstable();
    types.dedup();
    types.iter().for_each(|optype| text += &format!("#include \"{optype}.h\"\n"));
    for (number, (name, tensor)) in model.tensors.iter().enumerate() {
        let (ty, rank) = (tensor_type(tensor), tensor.extents.len());
        let bytes = ty.bytes();
        let _ = write!(
            text,
            "static int dims{number}[] = {{{}}};\nstatic union {{ double aligned; unsigned char bytes[{bytes}]; }} data{number};\n\
             static tl_tensor tensor{number} = {{{}, {}, {rank}, dims{number}, &data{number}, NULL, NULL}};\n\
             static ln_tensor_entry entry{number} = {{.name = {name:?}, .tensor = &tensor{number}, .mtype = LN_MEM_CPU}};\n",
            list(tensor.extents.iter()),
            ELEMENT_TYPES[tensor.element],
            tensor.length()
        );
    }
    for (number, call) in model.calls.iter().enumerate() {
        text += &operator(number, call, runner(library, &call.optype), symbol);
    }
    text += "\nint main(void) {\n";
    for (name, numbers) in model.numbers.iter().filter(|(_, numbers)| **numbers != [0.0]) {
        let number = symbol(name);
        let _ = write!(
            text,
            "  {{\n    static const double numbers[] = {{{}}};\n    for (int i = 0; i < {}; i++) {{\n      \
             TL_TENSOR_DATA_FROM(&tensor{number}, i, numbers[i], TL_DOUBLE);\n    }}\n  }}\n",
            list(numbers.iter()),
            numbers.len()
        );
    }
    for name in inputs {
        let number = symbol(name);
        let _ = writeln!(
            text,
            "  if (fread(tensor{number}.data, 1, sizeof data{number}.bytes, stdin) != sizeof data{number}.bytes) return 1;"
        );
    }
    for call in &model.calls {
        for (name, view) in call.instance.outputs.iter().zip(&call.views) {
            if let Some((owner, offset)) = view {
                let _ =
                    writeln!(text, "  tensor{}.data = (char *)tensor{}.data + {offset};", symbol(name), symbol(owner));
            }
        }
    }
    let mut phase = |name: &str, times: usize| {
        let mut calls = String::new();
        for (number, call) in model.calls.iter().enumerate() {
            let description = runner(library, &call.optype);
            let body = match name {
                "static_run" => &description.static_run,
                "run" => &description.run,
                _ => &description.post_run,
            };
            if body.is_some() {
                let _ = writeln!(
                    calls,
                    "  {}_{name}(&op{number});\n  if (op{number}.status != 0) return 2;",
                    description.optype
                );
            }
        }
        text += &calls.repeat(times);
    };
    phase("static_run", 1);
    phase("run", 2);
    phase("post_run", 1);
    for name in outputs {
        let number = symbol(name);
        let _ = writeln!(
            text,
            "  if (fwrite(tensor{number}.data, 1, sizeof data{number}.bytes, stdout) != sizeof data{number}.bytes) return 3;"
        );
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
    let mut command = Command::new(c_compiler());
    command.args(["-std=c99", "-Wall", "-Wextra", "-Werror"]).args(SANITIZERS);
    command.args(sources).args(["main.c", "-o", "model", "-lm"]).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
