//! [`Optimized`]: an optimised graph and its C.

use super::options::CompileOptions;
use mlc_codegen::{Module, ScheduleOptions, TargetPrices};
use mlc_ir::{Code, Diagnostic, Graph, Location, Objective, OperatorError};
use mlc_passes::{NarrowedWeights, OptimizeOptions, OptimizeReport, Reference};
use std::rc::Rc;

/// The graph with the rounding of another reference, if one is named.
fn referenced(graph: Graph, reference: Option<Reference>) -> Result<Graph, Diagnostic> {
    let Some(reference) = reference else { return Ok(graph) };
    mlc_passes::reference::with_reference(&graph, reference).map_err(|error| {
        let message = format!("another rounding gives a graph in which {error}");
        Diagnostic::error(Code::InvalidGraph, Location::default(), message)
    })
}

/// The graph with an input in the order in which its rows are read, if these are given one after the other.
fn fed(mut graph: Graph, input: Option<usize>) -> Result<Graph, Diagnostic> {
    if let Some(input) = input.and_then(|input| graph.open_inputs().get(input).copied()) {
        mlc_ir::interface::take_rows(&mut graph, input)?;
    }
    Ok(graph)
}

fn defect(error: &OperatorError) -> Diagnostic {
    Diagnostic::error(Code::InvalidGraph, Location::default(), error.to_string())
}

/// A graph that was optimised, what was done to it, and its C.
pub(super) struct Optimized {
    pub graph: Graph,
    pub report: OptimizeReport,
    pub narrowed: NarrowedWeights,
    pub module: Module,
}

/// An optimised graph, and what was done to it.
pub(super) type Graphs = (Graph, OptimizeReport, NarrowedWeights);

/// Optimises a graph by what things are worth to an objective, and generates C of it.
///
/// # Errors
/// When the optimiser breaks the graph, which is a defect, or the target can't run it.
pub(super) fn compiled_for(
    graph: &Graph,
    options: &CompileOptions,
    objective: Objective,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<Optimized, Vec<Diagnostic>> {
    let (graph, report, narrowed) = optimized_for(graph, options, objective, observer)?;
    let module = mlc_codegen::generate(&graph, &generator_options(options))?;
    Ok(Optimized { graph, report, narrowed, module })
}

/// Optimises a graph by what things are worth to an objective.
///
/// # Errors
/// When the optimiser breaks the graph, which is a defect, or an input has no rows that could be given one after the other.
pub(super) fn optimized_for(
    graph: &Graph,
    options: &CompileOptions,
    objective: Objective,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<Graphs, Vec<Diagnostic>> {
    let target = options.target.clone().with_objective(objective);
    let optimize_options = OptimizeOptions {
        prices: Rc::new(TargetPrices::new(&target, graph)),
        weights: objective.of_graphs(),
        explain: options.explain,
        exact: options.target.is_strict(),
        ..OptimizeOptions::default()
    };
    let (graph, report) =
        mlc_passes::optimize(graph.clone(), &optimize_options, observer).map_err(|error| vec![error])?;
    let graph = referenced(graph, options.reference).map_err(|error| vec![error])?;
    let graph = fed(graph, options.execution.feed).map_err(|error| vec![error])?;
    let (graph, narrowed) = match options.weights_type {
        Some(half) => {
            let narrowed = mlc_passes::weights::narrow(graph, half).map_err(|error| vec![defect(&error)])?;
            mlc_ir::verify(&narrowed.0)?;
            narrowed
        }
        None => (graph, NarrowedWeights::default()),
    };
    Ok((graph, report, narrowed))
}

/// What the code generator takes of the options.
pub(super) fn generator_options(options: &CompileOptions) -> mlc_codegen::Options {
    let CompileOptions { model_name, target, execution, schedules: forced, measured, explain: tell_all, .. } =
        options.clone();
    let (arena_bytes, extra_work, pools) = (options.arena_bytes, options.extra_work, options.pools.clone());
    let (fetched_bytes, spares_flash) = (options.fetched_bytes, options.spares_flash);
    let schedules =
        ScheduleOptions { forced, measured, tell_all, arena_bytes, extra_work, pools, fetched_bytes, spares_flash };
    mlc_codegen::Options { model_name, target, execution, schedules }
}
