//! Judging one case.

use super::blame::blame;
use crate::case::{Case, Expectation};
use crate::compare::compare;
use crate::compile::{Compiled, compile, load};
use crate::mode::Mode;
use crate::program::{Unpacked, main_source};
use mlc_codegen::Port;
use mlc_ir::{Diagnostic, Severity, Tensor, evaluate};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A file that must be refused may not keep its user waiting.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// Cases whose file lacks a part of what their golden outputs were computed with, with what it lacks: no compiler can pass
/// them. They are held to the evaluator's outputs instead.
const EXCUSED: [(&str, &str); 2] = [
    ("op_LSTMCell_unrolled", "the one step in the file doesn't give the outputs, which are the source module's"),
    ("up_F_gelu", "the exporter lost approximate=tanh of the fourth operator"),
];

/// What became of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The outputs agree, or the refusal was right.
    Passed,
    /// The file doesn't hold what the golden outputs were computed with; the code agrees with the file.
    Excused(&'static str),
    /// The compiler refuses a model that it should compile one day; the first error's text.
    Refused(String),
    /// Anything else, with what went wrong.
    Wrong(String),
}

/// Takes a case the whole way and says what became of it.
pub fn judge(case: &Case, mode: &Mode) -> Status {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| compile(case, &mode.target)));
    let time = start.elapsed();
    let Ok(result) = result else { return Status::Wrong("the compiler panics".into()) };
    match (case.expectation, result) {
        (Expectation::Accept, Ok(compiled)) => match accepted(case, mode, &compiled) {
            Ok(status) => status,
            Err(message) => Status::Wrong(message),
        },
        (Expectation::Accept, Err(findings)) => match well_formed(&findings) {
            Ok(message) => Status::Refused(message),
            Err(message) => Status::Wrong(message),
        },
        (Expectation::NoCrash, Ok(_)) => Status::Passed,
        (Expectation::ErrorOrWarn, Ok(compiled)) => {
            let warned = compiled.findings.iter().any(|finding| finding.severity == Severity::Warning);
            if warned { Status::Passed } else { Status::Wrong("neither an error nor a warning".into()) }
        }
        (Expectation::Error, Ok(_)) => Status::Wrong("a damaged file is accepted".into()),
        (_, Err(_)) if time > REFUSAL_TIME => Status::Wrong(format!("the refusal takes {} ms", time.as_millis())),
        (_, Err(findings)) => match well_formed(&findings).and_then(|_| mentioned(case, &findings)) {
            Ok(()) => Status::Passed,
            Err(message) => Status::Wrong(message),
        },
    }
}

/// The first error of a refusal; an error must say what and where.
fn well_formed(findings: &[Diagnostic]) -> Result<String, String> {
    let Some(error) = findings.iter().find(|finding| finding.is_error()) else {
        return Err("a refusal without an error".into());
    };
    if error.message.is_empty() || error.location.to_string().is_empty() {
        return Err(format!("an error without message or location: {error}"));
    }
    Ok(format!("{}: {}", error.code, error.message))
}

/// Whether a refusal says what it must.
fn mentioned(case: &Case, findings: &[Diagnostic]) -> Result<(), String> {
    let said: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    match case.mentions.iter().find(|words| !said.contains(words.as_str())) {
        Some(words) => Err(format!("the refusal doesn't mention `{words}`: {said}")),
        None => Ok(()),
    }
}

/// Judges the code of an accepted model.
fn accepted(case: &Case, mode: &Mode, compiled: &Compiled) -> Result<Status, String> {
    let Some((_, reason)) = EXCUSED.iter().find(|(name, _)| *name == case.name) else {
        return execute(case, mode, compiled).map(|()| Status::Passed);
    };
    let graph = load(case).map_err(|_| "the model no longer loads")?.graph;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let values = evaluate(&graph, &inputs).map_err(|error| error.to_string())?;
    let mut case = case.clone();
    for (output, value) in case.outputs.iter_mut().zip(values) {
        output.value = value;
    }
    execute(&case, mode, compiled).map(|()| Status::Excused(reason))
}

fn execute(case: &Case, mode: &Mode, compiled: &Compiled) -> Result<(), String> {
    let module = &compiled.module;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    expect_types("input", &module.inputs, &inputs)?;
    if module.outputs.len() != case.outputs.len() {
        return Err(format!("{} outputs instead of {}", module.outputs.len(), case.outputs.len()));
    }
    let unpacked = Unpacked::new(&compiled.archive)?;
    let main = main_source(module);
    let outputs = unpacked.build(&main, &mode.build)?.run(&inputs, &module.outputs)?;
    for (output, golden) in outputs.iter().zip(&case.outputs) {
        compare(output, &golden.value, case.tolerance_of(&golden.value))
            .map_err(|error| format!("output {}: {error}; {}", golden.name, blame(case)))?;
    }
    Ok(())
}

fn expect_types(what: &str, ports: &[Port], tensors: &[Tensor]) -> Result<(), String> {
    if ports.len() != tensors.len() {
        return Err(format!("{} {what}s instead of {}", ports.len(), tensors.len()));
    }
    for (port, tensor) in ports.iter().zip(tensors) {
        if (port.ty.dtype, &port.ty.shape) != (tensor.ty().dtype, &tensor.ty().shape) {
            return Err(format!("{what} {} is {} instead of {}", port.name, port.ty, tensor.ty()));
        }
    }
    Ok(())
}
