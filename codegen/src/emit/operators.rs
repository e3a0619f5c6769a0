//! The functions of the graph executor: each kernel under the packed calling convention (Model Library Format, section 7.2).

use super::emitter::{Emitter, Scope};
use super::sequence::Calls;
use crate::execution::Execution;
use crate::graph::{Call, ExecutorGraph, Registry, build};
use crate::lower::{Part, Program};
use crate::module::Port;
use crate::names::PACKED_PARAMETERS;
use mlc_ir::{Attribute, Diagnostic};
use std::fmt::Write;

impl Registry for Emitter {
    fn parameter(&mut self, name: &str, value: &Attribute) -> Option<usize> {
        let Execution { aot, weights, .. } = self.execution;
        let linked = aot.is_some() && weights != crate::execution::WeightsAs::Binary;
        (!linked).then(|| self.constants.number(&mut self.names, name, value))
    }

    fn symbol(&mut self, part: &Part) -> String {
        self.names.packed(part.name())
    }
}

impl Emitter {
    /// The executor's graph of a program, and the functions that it calls.
    pub(super) fn operators(
        &mut self,
        program: &Program,
        model: &str,
        inputs: &[Port],
        outputs: &[Port],
    ) -> Result<(ExecutorGraph, String), Diagnostic> {
        let alignment = self.alignment;
        let (graph, calls) = build(program, inputs, outputs, alignment, self)?;
        let mut text = String::new();
        let mut position = 0;
        self.in_code_only = true;
        let parts = program.parts.iter().filter(|part| part.positions() > 0);
        for (part, call) in parts.zip(&calls) {
            let scope = Scope { program, model, call: Some(call) };
            let part = std::slice::from_ref(part);
            let mut body = self.sequence(scope, part, position, 0);
            let begins = self.begins(scope, part, position, &mut body.used);
            text += &body.functions;
            text += &function(call, part[0].can_fail(), &begins, &body);
            position += part[0].positions();
        }
        self.in_code_only = false;
        Ok((graph, text))
    }
}

/// The function of a call, which passes its tensors on to a part of the program.
fn function(call: &Call, can_fail: bool, begins: &str, body: &Calls) -> String {
    let Call { symbol, tensors, scratch, .. } = call;
    let head = format!("int {symbol}(\n    {PACKED_PARAMETERS})");
    let mut text = format!("\n{head};\n\n{head} {{\n");
    let used: Vec<usize> = (0..*tensors).filter(|tensor| body.used.contains(&format!("tensor{tensor}"))).collect();
    if used.is_empty() {
        text += "  (void)args;\n";
    }
    for number in used {
        let _ = writeln!(text, "  void *const tensor{number} = ((const DLTensor *)args[{number}].v_handle)->data;");
    }
    if *scratch > 0 {
        let _ = writeln!(text, "  uint8_t *workspace;");
    }
    if can_fail {
        text += "  int32_t status;\n";
    }
    text += "  (void)arg_type_ids;\n  (void)out_ret_value;\n  (void)out_ret_tcode;\n  (void)resource_handle;\n";
    let _ = writeln!(text, "  if (num_args != {tensors}) {{\n    return -1;\n  }}");
    text += begins;
    if *scratch > 0 {
        let _ = writeln!(
            text,
            "  workspace = (uint8_t *)TVMBackendAllocWorkspace(1, 0, {scratch}, 1, 8);\n  if (workspace == NULL) {{\n    \
             return -1;\n  }}"
        );
    }
    text += &body.text;
    let end = match (scratch, can_fail) {
        (0, false) => "  return 0;\n}\n",
        (0, true) => "  return status;\n}\n",
        (_, false) => "  return TVMBackendFreeWorkspace(1, 0, workspace) == 0 ? 0 : -1;\n}\n",
        (_, true) => {
            "  if (TVMBackendFreeWorkspace(1, 0, workspace) != 0 && status == 0) {\n    return -1;\n  }\n  return status;\n}\n"
        }
    };
    text + end
}
