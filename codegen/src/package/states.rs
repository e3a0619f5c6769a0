//! States in the entry point's file: the memory that several levels share, and the function that begins a stream.

use super::levels;
use super::pools::{Pool, has_pool_of_states};
use crate::module::{Module, StatePlace};
use std::fmt::Write;

/// The memory of states that several levels share.
pub(super) const SHARED: &str = "shared_states";

/// The static memory of states that several levels share, with what they are before the first run; nothing where it is the caller's, or
/// where there is one level, which has it in the kernels' file.
pub(super) fn shared(module: &Module) -> String {
    if !has_pool_of_states(module) || Pool::states(module).is_some() {
        return String::new();
    }
    // Machines of several levels are little-endian.
    let mut bytes = Vec::new();
    for state in &module.states {
        if let StatePlace::Offset(offset) = state.place {
            bytes.resize(offset, 0);
            bytes.extend_from_slice(state.initial.bytes());
        }
    }
    let mut values = String::new();
    if bytes.iter().any(|&byte| byte != 0) {
        values += " = {";
        for (number, byte) in bytes.iter().enumerate() {
            let separator = if number % 16 == 0 { "\n  " } else { " " };
            // No formatting of a String fails.
            let _ = write!(values, "{separator}{byte},");
        }
        values += "\n}";
    }
    format!(
        "static uint8_t {SHARED}[{}] __attribute__((aligned({}))){values};\n\n",
        bytes.len().max(1),
        module.plan.alignment.max(1)
    )
}

/// The function that begins a stream where kernels get the memory of states by a pointer. That of static states is in the kernels' file.
pub(super) fn reset(module: &Module) -> String {
    if !has_pool_of_states(module) {
        return String::new();
    }
    let model = &module.model_name;
    let parts = levels::parts(module);
    let prototypes: String =
        parts.iter().map(|part| format!("int32_t {}(uint8_t* state_pool);\n\n", part.symbol(RESET))).collect();
    let Some(pool) = Pool::states(module) else {
        let call = levels::call(module, RESET, &levels::in_use(module), &|_| vec![SHARED.to_owned()]);
        return format!("{prototypes}int32_t tvmgen_{model}_reset(void) {{\n{call}}}\n\n");
    };
    let states = format!("(uint8_t*)workspace_pools->{}", pool.name);
    let call = match &parts[..] {
        [one] if module.levels.is_empty() => format!("  return {}({states});\n", one.symbol(RESET)),
        _ => levels::call(module, RESET, &levels::in_use(module), &|_| vec![states.clone()]),
    };
    format!(
        "{prototypes}int32_t tvmgen_{model}_reset(struct tvmgen_{model}_workspace_pools* workspace_pools) {{\n{call}}}\n\n"
    )
}

/// What the name of the function ends with that makes states in a pool what they are before the first run.
const RESET: &str = "reset_states";
