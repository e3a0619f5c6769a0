//! What functions that run kernels take: their declarations, and the arguments for the memory that they work in.

use super::arena;
use super::levels::Part;
use super::pools::{Pool, has_pool_of_states};
use super::states;
use crate::module::Module;

/// The declaration of a function that runs kernels, which takes `more` than all of them do.
pub(super) fn prototype(symbol: &str, module: &Module, more: &[&str]) -> String {
    let inputs = (0..module.inputs.len()).map(|index| format!("const void* input{index}"));
    let outputs = (0..module.outputs.len()).map(|index| format!("void* output{index}"));
    let mut parameters: Vec<String> = inputs.chain(outputs).collect();
    match module.plan.pools.len() {
        0 => parameters.push("uint8_t* workspace".to_owned()),
        pools => parameters.extend((0..pools).map(|k| format!("uint8_t* workspace{k}"))),
    }
    parameters.extend(Pool::constants(module).map(|_| "const uint8_t* constants".to_owned()));
    parameters.extend(has_pool_of_states(module).then(|| "uint8_t* state_pool".to_owned()));
    parameters.extend(module.ranks.iter().map(|_| "const mlc_transport* transport".to_owned()));
    parameters.extend(more.iter().map(|&parameter| parameter.to_owned()));
    format!("int32_t {symbol}(\n  {}\n);\n\n", parameters.join(",\n  "))
}

/// The arguments for the memory that kernels of a part work in, with the caller's pools in a structure that an expression points at.
pub(super) fn memories(module: &Module, part: &Part<'_>, pools: &str) -> Vec<String> {
    let external = |pool: Option<Pool>| pool.map(|pool| format!("{pools}->{}", pool.name));
    let mut arguments: Vec<String> = match &module.plan.pools[..] {
        [] => {
            let own = Pool::workspaces(module).into_iter().next();
            vec![external(own).unwrap_or_else(|| arena::argument(module).to_owned())]
        }
        several => several.iter().map(|pool| format!("(uint8_t*){pools}->{}", pool.name)).collect(),
    };
    let behind = if part.pool_offset == 0 { String::new() } else { format!(" + {}", part.pool_offset) };
    arguments.extend(external(Pool::constants(module)).map(|pool| format!("(const uint8_t*){pool}{behind}")));
    if has_pool_of_states(module) {
        let own = external(Pool::states(module)).map(|pool| format!("(uint8_t*){pool}"));
        arguments.push(own.unwrap_or_else(|| states::SHARED.to_owned()));
    }
    arguments
}
