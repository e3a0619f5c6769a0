//! [`CFunctions`]: functions in C where the driver evaluates a graph. Each is compiled by itself for this machine, as a model of one
//! node, and runs in a process of its own: by the code that every model is made of, and no other.

use crate::pipeline::{self, CompileOptions};
use crate::toolchain::{Program, Toolchain};
use mlc_codegen::Target;
use mlc_ir::ops::Extern;
use mlc_ir::{Attribute, Code, Diagnostic, Foreign, Graph, Location, Tensor, Value};
use std::cell::RefCell;
use std::time::Duration;

/// How long a function may run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs functions in C. What a function with effects keeps from one call to the next is there again at the next: all of its calls since
/// the first are repeated.
#[derive(Debug)]
pub struct CFunctions {
    toolchain: Toolchain,
    built: RefCell<Vec<Built>>,
}

/// A function that has been compiled.
#[derive(Debug)]
struct Built {
    op: Extern,
    /// For each operand its value, if that is the same at every call.
    known: Vec<Option<Attribute>>,
    program: Result<Program, String>,
    /// What it was called with so far, if it has effects.
    calls: Vec<Vec<Tensor>>,
}

impl Default for CFunctions {
    fn default() -> Self {
        CFunctions::new(Toolchain::default())
    }
}

impl CFunctions {
    /// Functions that a C compiler of this machine compiles.
    pub fn new(toolchain: Toolchain) -> Self {
        let limit = Some(toolchain.limit.unwrap_or(PATIENCE));
        CFunctions { toolchain: Toolchain { board: None, guest: None, limit, ..toolchain }, built: RefCell::default() }
    }

    fn build(&self, op: &Extern, known: &[Option<Attribute>]) -> Result<Program, Diagnostic> {
        let options = CompileOptions { target: Target::generic(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&graph(op, known)?, &options, &mut |_, _| {});
        let first = |faults: Vec<Diagnostic>| faults.into_iter().next().unwrap_or_else(|| invalid("no reason given"));
        self.toolchain.build(&compiled.map_err(first)?.bundle()?)
    }
}

/// A model of one call: operands that are known are constants, all others inputs; the results are the outputs.
fn graph(op: &Extern, known: &[Option<Attribute>]) -> Result<Graph, Diagnostic> {
    let mut graph = Graph::new("function");
    let operands: Vec<Value> = known
        .iter()
        .zip(&op.operands)
        .enumerate()
        .map(|(number, (known, ty))| match known {
            Some(value) => graph.add_constant(&format!("x{number}"), value.clone()),
            None => graph.add_input(&format!("x{number}"), ty.clone()),
        })
        .collect();
    let node = graph.add(op.clone(), &operands, "call").map_err(|error| invalid(&error.to_string()))?;
    for slot in 0..op.results.len() as u32 {
        graph.add_output(&format!("y{slot}"), Value { node, slot });
    }
    Ok(graph)
}

fn invalid(message: &str) -> Diagnostic {
    Diagnostic::error(Code::InvalidGraph, Location::default(), message)
}

impl Foreign for CFunctions {
    fn call(&self, op: &Extern, operands: &[&Tensor], known: &[bool]) -> Result<Vec<Tensor>, String> {
        let is_known = |number: usize| known.get(number).copied().unwrap_or(false);
        let values = operands.iter().enumerate();
        let values: Vec<Option<Attribute>> =
            values.map(|(number, operand)| is_known(number).then(|| Attribute::from_tensor(operand))).collect();
        let inputs = operands.iter().enumerate().filter(|(number, _)| !is_known(*number));
        let inputs: Vec<Tensor> = inputs.map(|(_, &operand)| operand.clone()).collect();
        let mut built = self.built.borrow_mut();
        let place = built.iter().position(|built| built.op == *op && built.known == values).unwrap_or_else(|| {
            let program = self.build(op, &values).map_err(|fault| described(op, &fault));
            built.push(Built { op: op.clone(), known: values, program, calls: Vec::new() });
            built.len() - 1
        });
        let Built { program, calls, .. } = &mut built[place];
        let program = program.as_ref().map_err(String::clone)?;
        let runs: Vec<&[Tensor]> = calls.iter().map(Vec::as_slice).chain([inputs.as_slice()]).collect();
        let outputs = program.run_in_a_row(&runs).map_err(|fault| described(op, &fault))?;
        if op.effect > 0 {
            calls.push(inputs);
        }
        let typed = outputs.iter().zip(&op.results);
        Ok(typed.map(|(output, ty)| Tensor::from_values(ty.clone(), output.values().clone())).collect())
    }

    fn restart(&self) {
        self.built.borrow_mut().iter_mut().for_each(|built| built.calls.clear());
    }
}

/// What is said of a function that fails.
fn described(op: &Extern, fault: &Diagnostic) -> String {
    let notes = fault.notes.iter().map(|note| format!(": {note}"));
    format!("{} as a model by itself: {}{}", op.symbol, fault.message, notes.collect::<String>())
}
