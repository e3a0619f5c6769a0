//! The functions of the graph executor: each kernel under the packed calling convention (Model Library Format, section 7.2).

use super::arguments::CallArgument;
use super::emitter::Emitter;
use crate::execution::Execution;
use crate::graph::{Call, ExecutorGraph, Place, Registry, build};
use crate::lower::{Program, Step};
use crate::module::Port;
use crate::names::PACKED_PARAMETERS;
use mlc_ir::{Attribute, Diagnostic};
use std::collections::BTreeSet;
use std::fmt::Write;

impl Registry for Emitter {
    fn parameter(&mut self, name: &str, value: &Attribute) -> Option<usize> {
        let Execution { aot, weights, .. } = self.execution;
        let linked = aot.is_some() && weights != crate::execution::WeightsAs::Binary;
        (!linked).then(|| self.constants.number(&mut self.names, name, value))
    }

    fn symbol(&mut self, step: &Step) -> String {
        self.names.packed(step.routine.name())
    }
}

impl Emitter {
    /// The executor's graph of a program, and the functions that it calls.
    pub(super) fn operators(
        &mut self,
        program: &Program,
        inputs: &[Port],
        outputs: &[Port],
    ) -> Result<(ExecutorGraph, String), Diagnostic> {
        let alignment = self.alignment;
        let (graph, calls) = build(program, inputs, outputs, alignment, self)?;
        let mut text = String::new();
        self.in_code_only = true;
        for (index, (step, call)) in program.steps.iter().zip(&calls).enumerate() {
            let bindings = step.bindings.iter().enumerate();
            let arguments: Vec<CallArgument> = bindings
                .map(|(number, binding)| self.argument(program, (index, number), binding, Some(call)))
                .collect();
            let begins = self.begins(program, index, Some(call), &mut BTreeSet::new());
            text += &function(step, call, &arguments, &begins);
        }
        self.in_code_only = false;
        Ok((graph, text))
    }
}

/// The function of a call, which passes its tensors on to a kernel.
fn function(step: &Step, call: &Call, arguments: &[CallArgument], begins: &str) -> String {
    let (kernel, can_fail) = (step.routine.name(), step.routine.can_fail());
    let Call { symbol, places, tensors, scratch } = call;
    let head = format!("int {symbol}(\n    {PACKED_PARAMETERS})");
    let mut text = format!("\n{head};\n\n{head} {{\n");
    let used = |tensor: &usize| places.iter().any(|place| matches!(place, Place::Tensor(number) if number == tensor));
    let used: Vec<usize> = (0..*tensors).filter(used).collect();
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
    let arguments: Vec<&str> = arguments.iter().map(|argument| &*argument.text).collect();
    let status = if can_fail { "status = " } else { "" };
    let _ = writeln!(text, "  {status}{kernel}({});", arguments.join(", "));
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
