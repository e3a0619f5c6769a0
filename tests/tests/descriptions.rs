//! Descriptions of operators, those of the repository and of the whole collection where it is at hand: what is wrong with them is
//! told with kind and place, the models' operators get the types that the original gave them, or are refused as they should be, and damaged
//! files are read or refused.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_descriptions::{Library, TensorDescription};
use mlc_ir::{Diagnostic, Generator};
use mlc_tests::described::{Described, text};
use mlc_tests::{array, paths};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

const FORMAT: &str = "lightnet-opdesc";

fn cases() -> Vec<PathBuf> {
    let collection = paths::conformance().map(|folder| folder.join(FORMAT)).filter(|folder| folder.is_dir());
    let folders = std::iter::once(paths::data().join(FORMAT)).chain(collection);
    folders.flat_map(|folder| paths::subfolders(&folder).unwrap()).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn mentions(case: &Value) -> Vec<&str> {
    case["mentions"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Name and contents of a case's description.
fn description(folder: &Path, case: &Value) -> (String, Vec<u8>) {
    let name = text(case, "description");
    (name.to_owned(), std::fs::read(folder.join(name)).unwrap())
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

/// What is wrong with the answer to a case.
fn fault(folder: &Path) -> Option<String> {
    let case = json(&folder.join("case.json"));
    let (name, bytes) = description(folder, &case);
    let library = Library::read(&[(&name, &bytes)]);
    let library = match (library, text(&case, "expect")) {
        (Err(problems), "description_error") => {
            let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return (!problems.iter().any(|problem| fits(problem, &case))).then(|| said.join("\n"));
        }
        (Ok(_), "description_error") => return Some("it is accepted".into()),
        (Err(problems), _) => return Some(problems[0].to_string()),
        (Ok(library), _) => library,
    };
    let tensors = Described::infer(&library, &json(&folder.join("model.json"))).map(|model| model.tensors);
    match (tensors, text(&case, "expect")) {
        (Err(error), "model_error") => {
            let said = error.to_string();
            let right = error.location.node.as_deref() == Some(text(&case, "at"))
                && mentions(&case).iter().all(|text| said.contains(text));
            (!right).then_some(said)
        }
        (Ok(_), "model_error") => Some("the model is accepted".into()),
        (Err(error), _) => Some(error.to_string()),
        (Ok(tensors), _) => wrong_shape(folder, &case, &tensors),
    }
}

/// A known output whose shape isn't that of the file.
fn wrong_shape(folder: &Path, case: &Value, tensors: &BTreeMap<String, TensorDescription>) -> Option<String> {
    case["outputs"].as_array().unwrap().iter().find_map(|output| {
        let found = &tensors.get(text(output, "name"))?.extents;
        let expected = array::read(&folder.join(text(output, "file")), false).unwrap().ty().shape.clone();
        let same = found.iter().map(|extent| *extent as usize).eq(expected.iter().copied());
        (!same).then(|| format!("{} is {found:?}, not {expected:?}", text(output, "name")))
    })
}

#[test]
fn all_cases_are_answered_as_they_should_be() {
    let cases = cases();
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let faults = cases.iter().filter_map(|case| fault(case).map(|fault| format!("{}: {fault}", case.display())));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn damaged_descriptions_are_read_or_refused() {
    let sound: Vec<(Vec<u8>, Option<Value>)> = paths::subfolders(&paths::data().join(FORMAT))
        .unwrap()
        .iter()
        .filter(|folder| text(&json(&folder.join("case.json")), "expect") != "description_error")
        .map(|folder| {
            let model = folder.join("model.json");
            let (_, bytes) = description(folder, &json(&folder.join("case.json")));
            (bytes, model.is_file().then(|| json(&model)))
        })
        .collect();
    let mut generator = Generator::new(9);
    let (mut accepted, mut refused) = (0, 0);
    for turn in 0..5000 {
        let (bytes, model) = &sound[turn % sound.len()];
        let mut bytes = generator.damaged(bytes);
        if turn % 2 == 0 {
            // Text that isn't text is found out at once.
            bytes.iter_mut().for_each(|byte| *byte &= 0x7f);
        }
        let start = Instant::now();
        match Library::read(&[("damaged", &bytes)]) {
            Ok(library) => {
                accepted += 1;
                if let Some(model) = model {
                    // Whatever comes of it: it comes, and soon.
                    drop(Described::infer(&library, model));
                }
            }
            Err(problems) => {
                refused += 1;
                assert!(problems.iter().any(Diagnostic::is_error));
                assert!(problems.iter().all(|problem| problem.location.line.is_some()), "{problems:?}");
            }
        }
        assert!(start.elapsed().as_secs() < 5, "{}", String::from_utf8_lossy(&bytes));
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
}
