//! External pools: memory that the caller of the C interface passes in (Model Library Format, sections 8.2 and 9).

use super::names::macro_prefix;
use crate::execution::{Interface, Pools, WeightsAs};
use crate::module::{Module, StatePlace};

/// Memory that the caller passes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pool {
    /// Its name in `struct tvmgen_<model>_workspace_pools`.
    pub name: String,
    /// The macro of its size.
    pub size_macro: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// What it is for, for a comment.
    pub purpose: &'static str,
    /// What the example calls its memory.
    pub memory: String,
}

impl Pool {
    /// The pools of intermediate results, if they are the caller's.
    pub fn workspaces(module: &Module) -> Vec<Pool> {
        let (execution, plan) = (module.execution, &module.plan);
        let is_external = execution.aot == Some(Interface::C) && execution.pools == Pools::External;
        if !is_external || plan.arena_bytes == 0 {
            return Vec::new();
        }
        let pool = |name: &str, bytes: usize, purpose: &'static str, memory: String| Pool {
            name: name.to_owned(),
            size_macro: format!("{}_{}_WORKSPACE_POOL_SIZE", macro_prefix(module), name.to_ascii_uppercase()),
            bytes,
            purpose,
            memory,
        };
        if plan.pools.is_empty() {
            return vec![pool("global_workspace", plan.arena_bytes, "intermediate results", "workspace".to_owned())];
        }
        let own = plan.pools.iter().enumerate().map(|(number, own)| {
            let purpose = match own.is_slow {
                true => "intermediate results that are accessed least; may be slow",
                false => "intermediate results that are accessed most",
            };
            pool(&own.name, own.bytes, purpose, format!("workspace{number}"))
        });
        own.collect()
    }

    /// The pool of constants, if the caller loads them.
    pub fn constants(module: &Module) -> Option<Pool> {
        let execution = module.execution;
        let wanted = execution.aot == Some(Interface::C) && execution.weights == WeightsAs::Binary;
        wanted.then(|| Pool {
            name: "global_const_workspace".to_owned(),
            size_macro: format!("{}_GLOBAL_CONST_WORKSPACE_CONSTANT_POOL_SIZE", macro_prefix(module)),
            bytes: module.constant_pool_bytes(),
            purpose: "the file of the constants, which are not changed",
            memory: "constants".to_owned(),
        })
    }

    /// The pool of states, if it is the caller's.
    pub fn states(module: &Module) -> Option<Pool> {
        let wanted = has_pool_of_states(module) && module.execution.states == Pools::External;
        wanted.then(|| Pool {
            name: "global_state_workspace".to_owned(),
            size_macro: format!("{}_GLOBAL_STATE_WORKSPACE_WORKSPACE_POOL_SIZE", macro_prefix(module)),
            bytes: module.state_bytes(),
            purpose: "states of one stream, kept between runs",
            memory: "states".to_owned(),
        })
    }

    /// All of them, in the order of the structure.
    pub fn external(module: &Module) -> Vec<Pool> {
        let others = [Pool::constants(module), Pool::states(module)].into_iter().flatten();
        Pool::workspaces(module).into_iter().chain(others).collect()
    }
}

/// Whether kernels get the memory of states by a pointer: the caller's, or where several levels share it.
pub(super) fn has_pool_of_states(module: &Module) -> bool {
    module.states.iter().any(|state| matches!(state.place, StatePlace::Offset(_)))
}
