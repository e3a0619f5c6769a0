//! Programs that keep to little memory: [`within_limits`] finds one where the usual program doesn't, [`explore`] lists those that there are.
//!
//! How buffers fit together isn't known before they are planned, so that the graphs of all objectives are lowered.

use super::optimized::{Optimized, compiled_for, generator_options, optimized_for};
use super::options::CompileOptions;
use mlc_codegen::levels::expect_one;
use mlc_codegen::{Module, Point, ram_bytes};
use mlc_ir::{Code, Diagnostic, Graph, Objective};

/// The objectives whose graphs are tried, those that run fastest first.
const OBJECTIVES: [Objective; 3] = [Objective::Speed, Objective::Balanced, Objective::Size];

/// Those whose graphs are weighed against each other where nothing is to be the least of all.
const EITHER: [Objective; 2] = [Objective::Balanced, Objective::Speed];

/// The stages of the optimiser: the name of each, and what it made.
type Stages = Vec<(String, Graph)>;

/// Told of each stage of the optimiser.
type Observer<'a> = &'a mut dyn FnMut(&str, &Graph);

/// The program for the options' objective; where that needs more RAM than the limit, the fastest one that doesn't, and where it needs more flash,
/// one without schedules that are fast for a multiple of the weights, with the options that it was made by.
///
/// # Errors
/// What stands in the way of any program, or `MLC0402` for each memory that is exceeded: of RAM by the least program that there is.
pub(super) fn within_limits(
    graph: &Graph,
    options: &CompileOptions,
    observer: Observer<'_>,
) -> Result<(Option<CompileOptions>, Optimized), Vec<Diagnostic>> {
    let found = within_ram(graph, options, observer);
    let is_exceeded = |faults: &[Diagnostic]| faults.iter().any(|fault| fault.code == Code::MemoryExceeded);
    match found {
        Err(faults) if options.limits.flash_bytes.is_some() && is_exceeded(&faults) => {
            let sparing = CompileOptions { spares_flash: true, ..options.clone() };
            let (fitted, optimized) = within_ram(graph, &sparing, observer)?;
            Ok((Some(fitted.unwrap_or(sparing)), optimized))
        }
        found => found,
    }
}

/// The same with the schedules that the options leave.
fn within_ram(
    graph: &Graph,
    options: &CompileOptions,
    observer: Observer<'_>,
) -> Result<(Option<CompileOptions>, Optimized), Vec<Diagnostic>> {
    let usual = match options.target.objective {
        Objective::Ram => {
            best(graph, options, &OBJECTIVES, observer, |module| (module.plan.arena_bytes, time(module)))?
        }
        Objective::Balanced => match best(graph, options, &EITHER, observer, balance) {
            Err(faults) if is_of_graph(&faults) => usual(graph, options, observer)?,
            own => own?,
        },
        _ => usual(graph, options, observer)?,
    };
    let exceeded = options.limits.ram_bytes.filter(|&limit| ram_bytes(&usual.module) > limit);
    // States, inputs and outputs are what they are.
    let rest = ram_bytes(&usual.module) - usual.module.plan.arena_bytes;
    let Some(arena) = exceeded.and_then(|limit| limit.checked_sub(rest)) else {
        options.limits.check(&[&usual.module])?;
        return Ok((None, usual));
    };
    let target = options.target.clone().with_objective(Objective::Ram);
    let fitted = CompileOptions { target, arena_bytes: Some(arena), ..options.clone() };
    let smaller = best(graph, &fitted, &OBJECTIVES, observer, |module| {
        let (own, time) = (module.plan.arena_bytes, time(module));
        if own <= arena { (0, time) } else { (own, time) }
    })?;
    options.limits.check(&[&smaller.module]).map_err(|faults| {
        let more = 100.0 * (time(&smaller.module) as f64 / time(&usual.module).max(1) as f64 - 1.0);
        let least =
            format!("no program needs less; this one is predicted to take {more:.0} % more time than without a limit");
        faults.into_iter().map(|fault| fault.with_note(least.clone())).collect::<Vec<_>>()
    })?;
    Ok((Some(fitted), smaller))
}

/// The programs of which none has both a smaller arena and less predicted time than another one, those of least memory first.
///
/// # Errors
/// What stands in the way of any program.
pub fn explore(graph: &Graph, options: &CompileOptions) -> Result<Vec<Point>, Vec<Diagnostic>> {
    expect_one(&options.target, "programs are looked for on").map_err(|error| vec![error])?;
    let target = options.target.clone().with_objective(Objective::Ram);
    let options = CompileOptions { target, ..options.clone() };
    let (mut points, mut known) = (Vec::new(), Vec::new());
    for objective in OBJECTIVES {
        let (graph, ..) = optimized_for(graph, &options, objective, &mut |_, _| {})?;
        if is_new(&graph, &mut known) {
            points.extend(mlc_codegen::explore(&graph, &generator_options(&options))?);
        }
    }
    Ok(mlc_codegen::front(points))
}

/// The program for the options' objective. Where its graph takes no input row by row that is to be, or doesn't fit the pools, it is that of
/// another one.
fn usual(graph: &Graph, options: &CompileOptions, observer: Observer<'_>) -> Result<Optimized, Vec<Diagnostic>> {
    let own = compiled_for(graph, options, options.target.objective, observer);
    own.or_else(|faults| {
        let others = OBJECTIVES.iter().filter(|_| is_of_graph(&faults));
        let mut others = others.filter_map(|&other| compiled_for(graph, options, other, &mut |_, _| {}).ok());
        others.next().ok_or(faults)
    })
}

/// Whether nothing stands in the way but what may be otherwise with another graph of the same model: that an input isn't read by rows, or
/// that the arena doesn't fit the pools.
fn is_of_graph(faults: &[Diagnostic]) -> bool {
    faults.iter().all(|fault| matches!(fault.code, Code::InputNotFed | Code::MemoryExceeded))
}

/// The program of least cost among those of the graphs of some objectives; of several, that of the objective which comes first.
fn best<T: Ord>(
    graph: &Graph,
    options: &CompileOptions,
    objectives: &[Objective],
    observer: Observer<'_>,
    cost: impl Fn(&Module) -> T,
) -> Result<Optimized, Vec<Diagnostic>> {
    let mut least: Option<(T, Stages, Optimized)> = None;
    let (mut refused, mut known) = (Vec::new(), Vec::new());
    for &objective in objectives {
        let mut stages = Stages::new();
        let mut kept = |name: &str, graph: &Graph| stages.push((name.to_owned(), graph.clone()));
        let made = optimized_for(graph, options, objective, &mut kept).and_then(|(graph, report, narrowed)| {
            let is_new = is_new(&graph, &mut known);
            let module = is_new.then(|| mlc_codegen::generate(&graph, &generator_options(options))).transpose()?;
            Ok(module.map(|module| Optimized { graph, report, narrowed, module }))
        });
        let optimized = match made {
            Ok(Some(optimized)) => optimized,
            Ok(None) => continue,
            Err(faults) if is_of_graph(&faults) => {
                refused.push(faults);
                continue;
            }
            Err(faults) => return Err(faults),
        };
        let own = cost(&optimized.module);
        if least.as_ref().is_none_or(|(least, ..)| own < *least) {
            least = Some((own, stages, optimized));
        }
    }
    let Some((_, stages, optimized)) = least else { return Err(refused.into_iter().next().unwrap_or_default()) };
    stages.iter().for_each(|(name, graph)| observer(name, graph));
    Ok(optimized)
}

/// Whether a graph isn't among those that are known; adds it. Objectives often agree.
fn is_new(graph: &Graph, known: &mut Vec<Graph>) -> bool {
    let is_new = !known.iter().any(|other| other.structurally_equal(graph));
    if is_new {
        known.push(graph.clone());
    }
    is_new
}

/// Predicted time of all kernels.
fn time(module: &Module) -> u64 {
    module.kernels.iter().map(|kernel| kernel.price.time).fold(0, u64::saturating_add)
}

/// What `balanced` makes least: RAM times flash times the fourth power of time, as an integer of the same order. Graphs are chosen by time and
/// flash, before anybody knows how their buffers fit together.
fn balance(module: &Module) -> u64 {
    let flash = (module.constants_bytes() as u64).saturating_add(module.code_bytes());
    let [ram, flash, time] = [ram_bytes(module) as u64, flash, time(module)].map(|part| part.max(1) as f64);
    (ram * flash * time * time * time * time).to_bits()
}
