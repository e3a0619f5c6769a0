//! Which step made a wrong output: the import, a stage of the optimiser, or the code generator.

use crate::case::Case;
use crate::compare::compare;
use crate::compile::load;
use mlc_ir::{Graph, Tensor, evaluate};
use mlc_passes::OptimizeOptions;

/// The first step after which the evaluator no longer gives the golden outputs, in words.
pub(super) fn blame(case: &Case) -> String {
    let Ok(loaded) = load(case) else { return "the model no longer loads".into() };
    if let Err(message) = agrees(&loaded.graph, case) {
        return format!("the import is wrong: {message}");
    }
    let mut found = None;
    let mut observe = |stage: &str, graph: &Graph| {
        if found.is_none()
            && let Err(message) = agrees(graph, case)
        {
            found = Some(format!("stage {stage} is wrong: {message}"));
        }
    };
    let done = mlc_passes::optimize(loaded.graph, &OptimizeOptions::default(), &mut observe);
    match (found, done) {
        (Some(found), _) => found,
        (None, Err(error)) => error.to_string(),
        (None, Ok(_)) => "the optimised graph is right, so the code is wrong".into(),
    }
}

fn agrees(graph: &Graph, case: &Case) -> Result<(), String> {
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let outputs = evaluate(graph, &inputs).map_err(|error| error.to_string())?;
    for (output, golden) in outputs.iter().zip(&case.outputs) {
        compare(output, &golden.value, case.tolerance_of(&golden.value))
            .map_err(|error| format!("output {}: {error}", golden.name))?;
    }
    Ok(())
}
