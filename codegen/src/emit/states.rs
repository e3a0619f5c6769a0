//! States: values that the generated code keeps from one run to the next, in static memory or in a pool of the caller's.

use super::emitter::Emitter;
use crate::constants::values;
use crate::execution::{Execution, Pools};
use crate::loops::spelling::{c_type, harmless};
use crate::module::{KeptState, StatePlace};
use crate::names::Names;
use mlc_ir::Graph;
use std::fmt::Write;

/// The states of a graph, each with a place.
pub(super) fn kept_states(graph: &Graph, execution: Execution, names: &mut Names) -> Vec<KeptState> {
    let mut end = 0_usize;
    let mut kept = Vec::new();
    for state in &graph.states {
        let ty = state.initial.ty();
        let place = match execution.states {
            Pools::Internal => StatePlace::Symbol(names.symbol(&format!("state_{}", state.name))),
            Pools::External => {
                let offset = end.next_multiple_of(ty.dtype.size());
                end = offset + ty.bytes();
                StatePlace::Offset(offset)
            }
        };
        kept.push(KeptState { place, name: state.name.to_string(), initial: state.initial.clone() });
    }
    kept
}

impl Emitter {
    /// The memory of the states, right before the first run unless it is the caller's, and the function that makes it so again.
    pub(super) fn state_memory(&mut self, model: &str) -> String {
        if self.states.is_empty() {
            return String::new();
        }
        let (mut memory, mut body) = (String::new(), String::new());
        let (mut function, mut parameter) = ("reset", "void");
        for state in self.states.clone() {
            let (element, elements) = (c_type(state.initial.ty().dtype), state.initial.ty().elements());
            let has_values = state.initial.bytes().iter().any(|&byte| byte != 0);
            let address = match &state.place {
                StatePlace::Symbol(symbol) => {
                    memory += &array(&state, symbol, has_values);
                    symbol.clone()
                }
                StatePlace::Offset(offset) => {
                    (function, parameter) = ("reset_states", "uint8_t *state_pool");
                    format!("(({element} *)(state_pool + {offset}))")
                }
            };
            if elements > 0 {
                let value = match has_values {
                    true => {
                        let number = self.constants.number(&mut self.names, &state.name, &state.initial);
                        format!("{}[k]", self.linked(number))
                    }
                    false => "0".to_owned(),
                };
                let _ =
                    writeln!(body, "  for (size_t k = 0; k < {elements}; ++k) {{\n    {address}[k] = {value};\n  }}");
            }
        }
        if parameter != "void" && body.is_empty() {
            body += "  (void)state_pool;\n";
        }
        let head = format!("int32_t tvmgen_{model}_{function}({parameter})");
        format!(
            "{memory}\n{head};\n\n/* Makes all states what they were before the first run. Returns 0. */\n{head} {{\n{body}  return 0;\n}}\n"
        )
    }
}

/// The static array of a state. What its first values are stands in the program twice: a first run needs no call before it.
fn array(state: &KeptState, symbol: &str, has_values: bool) -> String {
    let ty = state.initial.ty();
    let extent = ty.elements().max(1);
    let head = format!("\n/* {} {ty} */\nstatic {} {symbol}[{extent}]", harmless(&state.name), c_type(ty.dtype));
    match has_values {
        true => format!("{head} = {{\n{}}};\n", values(&state.initial)),
        false => head + ";\n",
    }
}
