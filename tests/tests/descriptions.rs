//! Descriptions of operators, those of the repository and of the whole collection where it is at hand: what is wrong with them is
//! told with kind and place, the models compute what the original computed, on this machine under sanitizers, under every executor, and on
//! an emulated board, or are refused as they should be, and damaged files are compiled or refused.

use mlc::descriptions::Described;
use mlc::pipeline::{self, CompileOptions, LoadOptions, Loaded};
use mlc::targets;
use mlc::toolchain::Toolchain;
use mlc_codegen::{Execution, Interface, Target};
use mlc_descriptions::Library;
use mlc_import::{Bindings, CustomOperators, ImportOptions};
use mlc_ir::parallel;
use mlc_ir::{Diagnostic, Generator, Tensor};
use mlc_lightnet::{Model, NoIncludes};
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::compile_graph;
use mlc_tests::described::described;
use mlc_tests::mode::Mode;
use mlc_tests::program::{Unpacked, hasty, main_source};
use mlc_tests::{array, firmware, paths};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The machine whose emulated board runs the models, too.
const BOARD: &str = "cortex-m4";

const FORMAT: &str = "lightnet-opdesc";

fn cases() -> Vec<PathBuf> {
    let collection = paths::conformance().map(|folder| folder.join(FORMAT)).filter(|folder| folder.is_dir());
    let folders = std::iter::once(paths::data().join(FORMAT)).chain(collection);
    folders.flat_map(|folder| paths::subfolders(&folder).unwrap()).collect()
}

/// A member of an object that is a string, or nothing.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn mentions(case: &Value) -> Vec<&str> {
    case["mentions"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Whether a problem is of the kind, at the place, and says all that it should.
fn fits(diagnostic: &Diagnostic, case: &Value) -> bool {
    let location = &diagnostic.location;
    let at = text(case, "at");
    let placed = match at.strip_prefix("line ") {
        Some(line) => location.line == line.parse().ok(),
        None => location.json_path.as_deref() == Some(at),
    };
    let said = diagnostic.to_string();
    let kind = said.contains(&format!("({})", text(case, "kind")));
    placed
        && kind
        && location.line.is_some()
        && location.column.is_some()
        && mentions(case).iter().all(|text| said.contains(text))
}

/// What is wrong with the answer to a case that is to be refused, or can't be read.
fn fault(folder: &Path) -> Option<String> {
    let case = json(&folder.join("case.json"));
    let described = match (described(&folder.join("model.json"), |_| ()), text(&case, "expect")) {
        (Err(problems), "description_error") => {
            let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return (!problems.iter().any(|problem| fits(problem, &case))).then(|| said.join("\n"));
        }
        (Ok(_), "description_error") => return Some("it is accepted".into()),
        (Err(problems), _) => return Some(problems[0].to_string()),
        (Ok(described), _) => described,
    };
    match (load(folder, &case, described), text(&case, "expect")) {
        (Err(errors), "model_error") => {
            let right = |error: &Diagnostic| {
                let said = error.to_string();
                error.location.node.as_deref() == Some(text(&case, "at"))
                    && mentions(&case).iter().all(|text| said.contains(text))
            };
            (!errors.iter().any(right)).then(|| format!("{errors:?}"))
        }
        (Ok(_), "model_error") => Some("the model is accepted".into()),
        (Err(errors), _) => Some(format!("{errors:?}")),
        (Ok(_), _) => None,
    }
}

/// A case's model, with the outputs that the case knows.
fn load(folder: &Path, case: &Value, described: Described) -> Result<Loaded, Vec<Diagnostic>> {
    let outputs = case["outputs"].as_array().into_iter().flatten().map(|output| text(output, "name").to_owned());
    let outputs = outputs.map(|name| (name.clone(), format!("tensor:{name}"))).collect();
    let bindings = Bindings { outputs, ..Bindings::default() };
    let options = LoadOptions { described: Some(described), bindings, ..LoadOptions::default() };
    pipeline::load(&folder.join("model.json"), &options).map_err(|failure| failure.diagnostics)
}

/// The arrays of a case by their names.
fn arrays(folder: &Path, case: &Value, key: &str) -> BTreeMap<String, Tensor> {
    let list = case[key].as_array().unwrap().iter();
    let array = |entry: &Value| array::read(&folder.join(text(entry, "file")), false).unwrap();
    list.map(|entry| (text(entry, "name").to_owned(), array(entry))).collect()
}

/// Builds and runs a case that is to be accepted in every way that code is run: its outputs are those of the original.
fn run(folder: &Path) {
    let case = json(&folder.join("case.json"));
    let loaded = load(folder, &case, described(&folder.join("model.json"), |_| ()).unwrap()).unwrap();
    let (given, golden) = (arrays(folder, &case, "inputs"), arrays(folder, &case, "outputs"));
    let inputs = loaded.graph.inputs().iter().map(|&input| given[&*loaded.graph.node(input).name].clone());
    let inputs: Vec<Tensor> = inputs.collect();
    let number = |key: &str| case[key].as_f64().unwrap();
    let tolerance = Tolerance { absolute: number("atol"), relative: number("rtol") };
    let compare_all = |found: &[Tensor], how: &str| {
        for (port, found) in loaded.graph.outputs().iter().zip(found) {
            compare(found, &golden[&*port.name], tolerance)
                .unwrap_or_else(|error| panic!("{}, {how}: {}: {error}", folder.display(), port.name));
        }
        assert_eq!(found.len(), golden.len());
    };
    for mode in [Mode::generic(true), Mode::host(true)] {
        // The original's texts convert numbers without a word.
        let mode = mode.with_flags(["-Wno-conversion"]);
        let compiled = compile_graph(&loaded.graph, "default", &mode.target).unwrap();
        let unpacked = Unpacked::new(&compiled.archive).unwrap();
        let program = unpacked.build(&main_source(&compiled.module), &mode.build);
        let program = program.unwrap_or_else(|error| panic!("{}, {}: {error}", folder.display(), mode.name));
        compare_all(&program.run(&inputs, &compiled.module.outputs).unwrap(), &mode.name);
    }
    let graph = Execution { aot: None, graph: true, ..Execution::default() };
    let packed = Execution { aot: Some(Interface::Packed), ..Execution::default() };
    for execution in [graph, packed] {
        let options = CompileOptions { execution, ..CompileOptions::default() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
        let program =
            hasty(Toolchain::default()).build(&compiled.bundle().unwrap()).unwrap_or_else(|e| panic!("{e:?}"));
        compare_all(&program.run(&inputs).unwrap_or_else(|error| panic!("{error:?}")), &format!("{execution:?}"));
    }
    if firmware::missing(BOARD).is_none() {
        let options = CompileOptions { target: targets::find(BOARD).unwrap(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
        let toolchain = hasty(Toolchain::emulated(BOARD).unwrap());
        let program = toolchain.build(&compiled.bundle().unwrap()).unwrap_or_else(|e| panic!("{e:?}"));
        compare_all(&program.run(&inputs).unwrap_or_else(|error| panic!("{error:?}")), BOARD);
    }
}

#[test]
fn c_compiler_runs_models_with_described_operators() {
    let own = paths::subfolders(&paths::data().join(FORMAT)).unwrap();
    let accepted: Vec<PathBuf> =
        own.into_iter().filter(|folder| text(&json(&folder.join("case.json")), "expect") == "ok").collect();
    assert!(accepted.len() >= 11, "{} models are run", accepted.len());
    parallel::map(&accepted, 2, |folder| run(folder));
}

#[test]
fn all_cases_are_answered_as_they_should_be() {
    let cases = cases();
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let faults = cases.iter().filter_map(|case| fault(case).map(|fault| format!("{}: {fault}", case.display())));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Whether a model is compiled with a description.
fn is_compiled(model: &Model, library: Library) -> bool {
    let custom = Some(CustomOperators::new(library).into());
    let imported = mlc_lightnet::import(model, &ImportOptions { custom, ..ImportOptions::default() });
    imported.and_then(|imported| compile_graph(&imported.graph, "default", &Target::generic())).is_ok()
}

#[test]
fn damaged_descriptions_and_models_are_refused_or_compiled() {
    let folders = paths::subfolders(&paths::data().join(FORMAT)).unwrap().into_iter();
    let sound: Vec<(Vec<u8>, Vec<u8>)> = folders
        .filter_map(|folder| {
            let file = ["op.json", "op.op"].map(|name| folder.join(name)).into_iter().find(|file| file.is_file())?;
            Some((std::fs::read(file).unwrap(), std::fs::read(folder.join("model.json")).ok()?))
        })
        .collect();
    let mut generator = Generator::new(9);
    let (mut compiled, mut refused) = (0, 0);
    for turn in 0..5000 {
        let (description, model) = &sound[turn % sound.len()];
        let (mut description, mut model) = (description.clone(), model.clone());
        let damaged = if turn % 5 == 0 { &mut model } else { &mut description };
        if turn % 2 == 0 {
            *damaged = generator.damaged(damaged);
        } else {
            // What is still a text may be a description, too.
            let place = generator.range(0, damaged.len() - 1);
            damaged[place] = generator.range(32, 126) as u8;
        }
        if turn % 4 == 0 {
            // Text that isn't text is found out at once.
            damaged.iter_mut().for_each(|byte| *byte &= 0x7f);
        }
        match (Library::read(&[("damaged", &description)]), mlc_lightnet::read(&model, &NoIncludes)) {
            // Whatever comes of it: it comes, and soon.
            (Ok(library), Ok((model, _))) => compiled += usize::from(is_compiled(&model, library)),
            (Err(problems), _) => {
                refused += 1;
                assert!(problems.iter().any(Diagnostic::is_error));
                assert!(problems.iter().all(|problem| problem.location.line.is_some()), "{problems:?}");
            }
            (_, Err(problems)) => {
                refused += 1;
                assert!(problems.iter().any(Diagnostic::is_error));
            }
        }
    }
    assert!(compiled > 100 && refused > 100, "{compiled} compiled, {refused} refused");
}
