//! Machines of several levels: each gets a program of its own, and one module has them all.

use super::fit::within_limits;
use super::optimized::Optimized;
use super::options::CompileOptions;
use mlc_codegen::levels::{check, execution_of_level, join, name_of_level};
use mlc_ir::{Diagnostic, Graph};

/// The program within the limits, and the options that it was made by where these are others; of a machine of several levels the programs
/// for all of them, with what is known of the last.
///
/// # Errors
/// What stands in the way of a program, `MLC0402` for each memory that one exceeds, or all do together, and `MLC0004` where they can't be
/// together.
pub(super) fn all_levels(
    graph: &Graph,
    options: &CompileOptions,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<(Option<CompileOptions>, Optimized), Vec<Diagnostic>> {
    let target = &options.target;
    let Some((last, before)) = target.levels.split_last() else { return within_limits(graph, options, observer) };
    check(graph, options.execution, target).map_err(|error| vec![error])?;
    let mut compiled = |level| {
        let own = CompileOptions {
            model_name: name_of_level(&options.model_name, level),
            execution: execution_of_level(options.execution, graph),
            target: level.clone(),
            ..options.clone()
        };
        within_limits(graph, &own, &mut *observer).map(|(_, compiled)| compiled)
    };
    let mut modules = Vec::new();
    for level in before {
        modules.push(compiled(level)?.module);
    }
    let Optimized { graph, report, narrowed, module } = compiled(last)?;
    modules.push(module);
    let module = join(&options.model_name, options.execution, target, modules).map_err(|error| vec![error])?;
    options.limits.check(&[&module])?;
    Ok((None, Optimized { graph, report, narrowed, module }))
}
