//! Models as texts, to graphs and their values.

mod interface;
mod memory;
mod operators;

use super::import;
use crate::includes::NoIncludes;
use crate::read::read;
use mlc_import::{ImportOptions, Imported};
use mlc_ir::{Diagnostic, Tensor, evaluate, verify};

/// A tensor of data that the file has.
fn data(name: &str, dtype: &str, dims: &str, data: &str) -> String {
    format!("create(| dst={name} | dtype={dtype}, dims={dims}, ran=[0, 0], data={data}, from_file=false);\n")
}

/// A tensor of data that the file doesn't have.
fn input(name: &str, dtype: &str, dims: &str) -> String {
    format!("create(| dst={name} | dtype={dtype}, dims={dims}, ran=[0, 0], data=[0], from_file=true);\n")
}

fn imported(text: &str, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let (model, _) = read(text.as_bytes(), &NoIncludes).unwrap();
    let imported = import(&model, options)?;
    verify(&imported.graph).unwrap();
    Ok(imported)
}

/// The outputs of a model without inputs: name, shape and numbers.
fn outputs(text: &str) -> Vec<(String, Vec<usize>, Vec<f64>)> {
    let graph = imported(text, &ImportOptions::default()).unwrap().graph;
    let values = evaluate(&graph, &[]).unwrap();
    let output = |(value, output): (&Tensor, &mlc_ir::Output)| {
        (output.name.to_string(), value.shape().to_vec(), value.to_floats())
    };
    values.iter().zip(graph.outputs()).map(output).collect()
}

/// The numbers of the only output of a model without inputs.
fn numbers(text: &str) -> Vec<f64> {
    let mut outputs = outputs(text);
    assert_eq!(outputs.len(), 1, "{outputs:?}");
    outputs.remove(0).2
}

/// All errors of a model.
fn refusals(text: &str, options: &ImportOptions) -> Vec<Diagnostic> {
    imported(text, options).map(|_| ()).unwrap_err().into_iter().filter(Diagnostic::is_error).collect()
}

/// The only error of a model.
fn refusal(text: &str) -> Diagnostic {
    let mut found = refusals(text, &ImportOptions::default());
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found.remove(0)
}
