//! States: values that the generated code keeps from one run to the next.

use super::emitter::Emitter;
use crate::constants::values;
use crate::loops::spelling::{c_type, harmless};
use std::fmt::Write;

impl Emitter {
    /// The memory of the states, right before the first run, and the function that makes it so again.
    pub(super) fn state_memory(&mut self, model: &str) -> String {
        if self.states.is_empty() {
            return String::new();
        }
        let (mut memory, mut body) = (String::new(), String::new());
        for state in self.states.clone() {
            let (ty, symbol) = (state.initial.ty(), &state.symbol);
            let (element, elements) = (c_type(ty.dtype), ty.elements());
            let _ = write!(
                memory,
                "\n/* {} {ty} */\nstatic {element} {symbol}[{}]",
                harmless(&state.name),
                elements.max(1)
            );
            let mut value = "0".to_owned();
            if state.initial.bytes().iter().any(|&byte| byte != 0) {
                // Both are numbers of the program: a first run needs no call before it.
                memory += " = {\n";
                memory += &values(&state.initial);
                memory += "}";
                let number = self.constants.number(&mut self.names, &state.name, &state.initial);
                value = format!("{}[k]", self.linked(number));
            }
            memory += ";\n";
            if elements > 0 {
                let _ =
                    writeln!(body, "  for (size_t k = 0; k < {elements}; ++k) {{\n    {symbol}[k] = {value};\n  }}");
            }
        }
        let head = format!("int32_t tvmgen_{model}_reset(void)");
        format!(
            "{memory}\n{head};\n\n/* Makes all states what they were before the first run. Returns 0. */\n{head} {{\n{body}  return 0;\n}}\n"
        )
    }
}
