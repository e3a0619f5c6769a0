//! One module of several: a machine of several levels has kernels for each, that were generated as those of a model of their own.

use crate::execution::{Execution, Interface, Pools, refused};
use crate::module::{Level, MemoryPlan, Module, PlannedBuffer, PlannedPool};
use crate::target::Target;
use mlc_ir::{Diagnostic, Graph};

/// How the kernels of one level run: whatever the user wants of states, all levels work on the same.
pub fn execution_of_level(execution: Execution, graph: &Graph) -> Execution {
    let states = if graph.states.is_empty() { execution.states } else { Pools::External };
    Execution { states, ..execution }
}

/// What stands in the names of a level's functions in the place of the model's name.
pub fn name_of_level(model_name: &str, level: &Target) -> String {
    format!("{model_name}_{}", level.identifier())
}

/// Checks that a model can have code for several levels of a machine.
///
/// # Errors
/// `MLC0004` when the interface has no place for them.
pub fn check(graph: &Graph, execution: Execution, target: &Target) -> Result<(), Diagnostic> {
    if execution.aot != Some(Interface::C) || execution.graph {
        let message = format!("'{}' has several levels, and only the C interface picks one of them", target.name);
        return refused(message, &format!("give '--executor aot --interface-api c', or {}", one_of(target)));
    }
    if graph.distribution.is_some() {
        let message = format!("'{}' has several levels, and a model that is one of several ranks has one", target.name);
        return refused(message, &one_of(target));
    }
    Ok(())
}

/// Refuses a machine of several levels for what is of one.
///
/// # Errors
/// `MLC0004` when it has several.
pub fn expect_one(target: &Target, what: &str) -> Result<(), Diagnostic> {
    if target.levels.is_empty() {
        return Ok(());
    }
    let message = format!("{what} one level of a machine, and '{}' has {}", target.name, target.levels.len());
    refused(message, &one_of(target))
}

/// What to give instead of a machine of several levels.
fn one_of(target: &Target) -> String {
    let names: Vec<String> = target.levels.iter().map(|level| format!("'{}'", level.name)).collect();
    format!("take one level as the target: {}", names.join(", "))
}

/// The module of a model for all levels of a target, of the modules that were generated for each, in their order.
///
/// # Errors
/// `MLC0004` when they bring files along that can't be together, or states or memories aren't the same for all.
pub fn join(
    model_name: &str,
    execution: Execution,
    target: &Target,
    modules: Vec<Module>,
) -> Result<Module, Diagnostic> {
    let mut joined = Module { model_name: model_name.to_owned(), execution, ..Module::default() };
    if let Some(first) = modules.first() {
        (joined.inputs, joined.outputs) = (first.inputs.clone(), first.outputs.clone());
        joined.states = first.states.clone();
    }
    joined.plan = join_plans(&modules);
    for (level, module) in target.levels.iter().zip(modules) {
        check_level(&joined, target, level, &module)?;
        add(&mut joined, level, module);
    }
    Ok(joined)
}

/// Checks that the code of a level takes the same memory from its caller as the other levels', and can be beside it.
///
/// # Errors
/// `MLC0004` when it doesn't, or can't.
fn check_level(joined: &Module, target: &Target, level: &Target, module: &Module) -> Result<(), Diagnostic> {
    let is_numbered = |name: &str| name.starts_with(&module.model_name) && !name.ends_with(&level.level_files());
    if let Some(file) = module.sources.iter().find(|file| is_numbered(&file.name)) {
        let message = format!("'{}' has several levels, and '{}' can be in an archive once", target.name, file.name);
        refused(message, &one_of(target))?;
    }
    let own = (&module.inputs, &module.outputs, &module.states, module.plan.pools.len());
    if own != (&joined.inputs, &joined.outputs, &joined.states, joined.plan.pools.len()) {
        let message = format!("the code for '{}' takes other memory than that for another level", level.name);
        refused(message, &one_of(target))?;
    }
    Ok(())
}

/// Adds the code of a level.
fn add(joined: &mut Module, level: &Target, module: Module) {
    let pool_offset = joined.constant_pool_bytes().next_multiple_of(joined.plan.alignment.max(1));
    joined.levels.push(Level {
        target: level.name.clone(),
        summary: level.summary.clone(),
        processor: level.processor.unwrap_or_default(),
        arena_bytes: module.plan.arena_bytes,
        constants_bytes: module.constants_bytes(),
        pool_offset,
        kernels: module.kernels.len(),
        ends: module.kept.ends,
        model_name: module.model_name,
    });
    joined.kept.bytes += module.kept.bytes;
    joined.kept.ends |= module.kept.ends;
    joined.kept.is_shared |= module.kept.is_shared;
    joined.kernels.extend(module.kernels);
    joined.constants.extend(module.constants.into_iter().map(|mut constant| {
        constant.pool_offset = constant.pool_offset.map(|offset| pool_offset + offset);
        constant
    }));
    for source in module.sources {
        // What functions that aren't mlc's own are defined in is the same for all.
        if !joined.sources.contains(&source) {
            joined.sources.push(source);
        }
    }
}

/// The plan of all levels, as if their kernels ran one level after the other, in the same memory.
fn join_plans(modules: &[Module]) -> MemoryPlan {
    let mut joined = MemoryPlan::default();
    let mut pools: Vec<PlannedPool> = modules.first().map_or_else(Vec::new, |first| first.plan.pools.clone());
    for plan in modules.iter().map(|module| &module.plan) {
        joined.arena_bytes = joined.arena_bytes.max(plan.arena_bytes);
        joined.alignment = joined.alignment.max(plan.alignment);
        joined.liveness_bound_bytes = joined.liveness_bound_bytes.max(plan.liveness_bound_bytes);
        for (pool, own) in pools.iter_mut().zip(&plan.pools) {
            pool.bytes = pool.bytes.max(own.bytes);
        }
    }
    if !pools.is_empty() {
        joined.arena_bytes = 0;
        for pool in &mut pools {
            pool.offset = joined.arena_bytes;
            joined.arena_bytes = (pool.offset + pool.bytes).next_multiple_of(joined.alignment.max(1));
        }
    }
    let mut kernels = 0;
    for module in modules {
        // Of pools without bytes, the last that begins there holds the buffer, or none does.
        let place = |offset: usize| {
            let own = module.plan.pools.iter().rposition(|pool| pool.offset <= offset);
            own.and_then(|own| Some(pools.get(own)?.offset + offset - module.plan.pools[own].offset)).unwrap_or(offset)
        };
        joined.buffers.extend(module.plan.buffers.iter().map(|buffer| PlannedBuffer {
            offset: place(buffer.offset),
            first: buffer.first + kernels,
            last: buffer.last + kernels,
            ..buffer.clone()
        }));
        kernels += module.kernels.len();
    }
    joined.pools = pools;
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(arena_bytes: usize, pools: [usize; 2], buffer: usize) -> Module {
        let pool = |name: &str, offset, bytes| PlannedPool { name: name.into(), offset, bytes, is_slow: false };
        let values = vec!["x".to_owned()];
        let buffers = vec![PlannedBuffer { values, offset: buffer, bytes: 64, first: 0, last: 0 }];
        let pools = vec![pool("a", 0, pools[0]), pool("b", pools[0], pools[1])];
        let plan = MemoryPlan { arena_bytes, alignment: 64, buffers, liveness_bound_bytes: 64, pools };
        Module { plan, ..Module::default() }
    }

    #[test]
    fn each_pool_is_the_largest_of_the_levels() {
        let plan = join_plans(&[module(192, [64, 128], 64), module(192, [128, 64], 128)]);
        assert_eq!((plan.arena_bytes, plan.pools[0].bytes, plan.pools[1].bytes), (256, 128, 128));
        // Both are at the start of the second pool.
        assert!(plan.buffers.iter().all(|buffer| buffer.offset == 128), "{plan:?}");
    }
}
