//! External pools: memory that the caller of the C interface passes in (Model Library Format, sections 8.2 and 9).

use super::names::macro_prefix;
use crate::execution::{Interface, Pools, WeightsAs};
use crate::module::{Module, StatePlace};

/// Memory that the caller passes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pool {
    /// Its name in `struct tvmgen_<model>_workspace_pools`.
    pub name: &'static str,
    /// The macro of its size.
    pub size_macro: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// What it is for, for a comment.
    pub purpose: &'static str,
    /// What the example calls its memory.
    pub memory: &'static str,
}

impl Pool {
    /// The pool of intermediate results, if it is the caller's.
    pub fn workspace(module: &Module) -> Option<Pool> {
        let execution = module.execution;
        let wanted = execution.aot == Some(Interface::C) && execution.pools == Pools::External;
        (wanted && module.plan.arena_bytes > 0).then(|| Pool {
            name: "global_workspace",
            size_macro: format!("{}_GLOBAL_WORKSPACE_WORKSPACE_POOL_SIZE", macro_prefix(module)),
            bytes: module.plan.arena_bytes,
            purpose: "intermediate results",
            memory: "workspace",
        })
    }

    /// The pool of constants, if the caller loads them.
    pub fn constants(module: &Module) -> Option<Pool> {
        let execution = module.execution;
        let wanted = execution.aot == Some(Interface::C) && execution.weights == WeightsAs::Binary;
        wanted.then(|| Pool {
            name: "global_const_workspace",
            size_macro: format!("{}_GLOBAL_CONST_WORKSPACE_CONSTANT_POOL_SIZE", macro_prefix(module)),
            bytes: module.constant_pool_bytes(),
            purpose: "the file of the constants, which are not changed",
            memory: "constants",
        })
    }

    /// The pool of states, if it is the caller's.
    pub fn states(module: &Module) -> Option<Pool> {
        let wanted = module.states.iter().any(|state| matches!(state.place, StatePlace::Offset(_)));
        wanted.then(|| Pool {
            name: "global_state_workspace",
            size_macro: format!("{}_GLOBAL_STATE_WORKSPACE_WORKSPACE_POOL_SIZE", macro_prefix(module)),
            bytes: module.state_bytes(),
            purpose: "states of one stream, kept between runs",
            memory: "states",
        })
    }

    /// All of them, in the order of the structure.
    pub fn external(module: &Module) -> Vec<Pool> {
        [Pool::workspace(module), Pool::constants(module), Pool::states(module)].into_iter().flatten().collect()
    }
}
