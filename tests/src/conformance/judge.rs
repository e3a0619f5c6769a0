//! Judging one case.

use super::blame::blame;
use crate::batch::{self, Job};
use crate::case::{Case, Expectation};
use crate::compare::compare;
use crate::compile::{Compiled, compile_as, load};
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

/// Takes a case the whole way, by its own archive, and says what became of it.
pub fn judge(case: &Case, mode: &Mode) -> Status {
    match prepare(case, "default", mode) {
        Ok(code) => code.judged(code.outputs(mode)),
        Err(status) => status,
    }
}

/// The same for many cases, whose code becomes one program where it can: most of a C compiler's time for a small model is the start.
/// Where that goes wrong, it is found out which cases are at fault.
pub(super) fn judge_together(cases: &[Case], mode: &Mode) -> Vec<Status> {
    let prepared: Vec<_> =
        cases.iter().enumerate().map(|(number, case)| prepare(case, &format!("m{number}"), mode)).collect();
    let together = || prepared.iter().flatten().filter(|code| code.is_plain());
    let inputs: Vec<Vec<Tensor>> = together().map(Code::inputs).collect();
    let jobs = together().zip(&inputs).map(|(code, inputs)| Job { module: &code.compiled.module, inputs });
    let mut outputs = batch::run_each(&jobs.collect::<Vec<_>>(), mode).into_iter();
    let mut judged = |code: &Code| {
        let own = if code.is_plain() { outputs.next() } else { None };
        code.judged(own.unwrap_or_else(|| code.outputs(mode)))
    };
    prepared.iter().map(|prepared| prepared.as_ref().map_or_else(Status::clone, &mut judged)).collect()
}

/// Code of a model, and what it is to compute.
struct Code {
    /// With the outputs that the file holds, where they aren't the golden ones.
    case: Case,
    compiled: Compiled,
    excuse: Option<&'static str>,
}

impl Code {
    fn inputs(&self) -> Vec<Tensor> {
        self.case.inputs.iter().map(|input| input.value.clone()).collect()
    }

    /// Whether it is mlc's alone, and computes its outputs of its inputs and nothing else.
    fn is_plain(&self) -> bool {
        let module = &self.compiled.module;
        module.states.is_empty() && module.sources.len() == 1
    }

    /// What a program of its own computes.
    fn outputs(&self, mode: &Mode) -> Result<Vec<Tensor>, String> {
        let module = &self.compiled.module;
        let unpacked = Unpacked::new(&self.compiled.archive)?;
        unpacked.build(&main_source(module), &mode.build)?.run(&self.inputs(), &module.outputs)
    }

    fn judged(&self, outputs: Result<Vec<Tensor>, String>) -> Status {
        match outputs.and_then(|outputs| self.compared(&outputs)) {
            Ok(()) => self.excuse.map_or(Status::Passed, Status::Excused),
            Err(message) => Status::Wrong(message),
        }
    }

    fn compared(&self, outputs: &[Tensor]) -> Result<(), String> {
        for (output, golden) in outputs.iter().zip(&self.case.outputs) {
            compare(output, &golden.value, self.case.tolerance_of(&golden.value))
                .map_err(|error| format!("output {}: {error}; {}", golden.name, blame(&self.case)))?;
        }
        Ok(())
    }
}

/// The code of a case by a name; what became of the case where there is none to be run.
fn prepare(case: &Case, name: &str, mode: &Mode) -> Result<Code, Status> {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| compile_as(case, name, &mode.target)));
    let time = start.elapsed();
    let Ok(result) = result else { return Err(Status::Wrong("the compiler panics".into())) };
    let of = |result: Result<(), String>| result.map_or_else(Status::Wrong, |()| Status::Passed);
    Err(match (case.expectation, result) {
        (Expectation::Accept, Ok(compiled)) => return accepted(case, compiled).map_err(Status::Wrong),
        (Expectation::Accept, Err(findings)) => well_formed(&findings).map_or_else(Status::Wrong, Status::Refused),
        (Expectation::NoCrash, Ok(_)) => Status::Passed,
        (Expectation::ErrorOrWarn, Ok(compiled)) => {
            let warned = compiled.findings.iter().any(|finding| finding.severity == Severity::Warning);
            if warned { Status::Passed } else { Status::Wrong("neither an error nor a warning".into()) }
        }
        (Expectation::Error, Ok(_)) => Status::Wrong("a damaged file is accepted".into()),
        (_, Err(_)) if time > REFUSAL_TIME => Status::Wrong(format!("the refusal takes {} ms", time.as_millis())),
        (_, Err(findings)) => of(well_formed(&findings).and_then(|_| mentioned(case, &findings))),
    })
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

/// The code of an accepted model, whose inputs and outputs must be of the golden ones' types.
fn accepted(case: &Case, compiled: Compiled) -> Result<Code, String> {
    let mut code = Code { case: case.clone(), compiled, excuse: None };
    if let Some((_, reason)) = EXCUSED.iter().find(|(name, _)| *name == case.name) {
        let graph = load(case).map_err(|_| "the model no longer loads")?.graph;
        let values = evaluate(&graph, &code.inputs()).map_err(|error| error.to_string())?;
        for (output, value) in code.case.outputs.iter_mut().zip(values) {
            output.value = value;
        }
        code.excuse = Some(reason);
    }
    let module = &code.compiled.module;
    expect_types("input", &module.inputs, &code.inputs())?;
    if module.outputs.len() != case.outputs.len() {
        return Err(format!("{} outputs instead of {}", module.outputs.len(), case.outputs.len()));
    }
    Ok(code)
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
