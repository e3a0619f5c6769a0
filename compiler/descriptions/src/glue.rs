//! The functions by which a model's code runs an operator: they put the tensors where their elements are, and do a phase.

use crate::description::Description;
use std::fmt::Write;

/// A function of the model's code.
struct Entry {
    name: &'static str,
    /// The phase that it does.
    phase: &'static str,
    comment: &'static str,
}

const ENTRIES: [Entry; 3] = [
    Entry { name: "begin", phase: "static_run", comment: "What is done once, before the first run" },
    Entry { name: "call", phase: "run", comment: "A run" },
    Entry { name: "end", phase: "post_run", comment: "What is done at the end" },
];

impl Description {
    /// The structure of all that an operator keeps.
    pub(crate) fn structure(&self) -> String {
        format!("{}_instance", self.optype)
    }

    /// The function that a model's code calls at each run.
    pub(crate) fn call_symbol(&self) -> String {
        format!("{}_call", self.optype)
    }

    /// The function that it calls before the first run, if the operator needs that.
    pub(crate) fn begin_symbol(&self) -> Option<String> {
        self.static_run.as_ref().map(|_| format!("{}_begin", self.optype))
    }

    /// The function that it calls at the end, if the operator needs that.
    pub(crate) fn end_symbol(&self) -> Option<String> {
        self.post_run.as_ref().map(|_| format!("{}_end", self.optype))
    }

    /// The functions that there are.
    fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        ENTRIES.iter().filter(|entry| entry.name == "call" || self.phases().any(|phase| phase.name == entry.phase))
    }

    /// The operands and the results, each by a pointer to its elements, and scratch memory if any is asked for.
    fn arguments(&self) -> String {
        let mut text = format!("struct {} *self", self.structure());
        (0..self.inputs.len()).for_each(|number| text += &format!(", const void *x{number}"));
        (0..self.outputs.len()).for_each(|number| text += &format!(", void *y{number}"));
        if self.has_workspace() {
            text += ", void *scratch";
        }
        text
    }

    /// What a header says of them.
    pub(crate) fn glue_header(&self) -> String {
        let Description { optype, .. } = self;
        let arguments = self.arguments();
        let mut text = format!(
            "\n/* An operator of this type in a model, with all that it keeps. */\nstruct {} {{\n  ln_op_arg op_arg;\n}};\n",
            self.structure()
        );
        for Entry { name, comment, .. } in self.entries() {
            // No formatting of a String fails.
            let _ = write!(
                text,
                "\n/* {comment}: operands and results by their elements; 0, or the status of an error. */\n\
                 int32_t {optype}_{name}({arguments});\n"
            );
        }
        text
    }

    /// Their definitions.
    pub(crate) fn glue_source(&self) -> String {
        let Description { optype, inputs, outputs, .. } = self;
        let arguments = self.arguments();
        let mut text =
            format!("\n/* Puts the tensors where their elements are. */\nstatic void {optype}_place({arguments}) {{\n");
        if self.tensors().next().is_some() {
            text += "  struct priv_s *priv = self->op_arg.priv;\n";
        }
        for (number, input) in inputs.iter().enumerate() {
            let _ = writeln!(text, "  priv->{}_entry->tensor->data = (void *)(uintptr_t)x{number};", input.name);
        }
        for (number, output) in outputs.iter().enumerate() {
            let _ = writeln!(text, "  priv->{}_entry->tensor->data = y{number};", output.name);
        }
        if self.has_workspace() {
            text += "  self->op_arg.workspace = scratch;\n";
        }
        text += "  self->op_arg.status = 0;\n}\n";
        self.entries().for_each(|entry| text += &self.entry(entry));
        text
    }

    fn entry(&self, &Entry { name, phase, .. }: &Entry) -> String {
        let Description { optype, inputs, outputs, .. } = self;
        let mut text = format!("\nint32_t {optype}_{name}({}) {{\n  {optype}_place(self", self.arguments());
        (0..inputs.len()).for_each(|number| text += &format!(", x{number}"));
        (0..outputs.len()).for_each(|number| text += &format!(", y{number}"));
        text += if self.has_workspace() { ", scratch);\n" } else { ");\n" };
        if name == "call" && self.run.is_some() {
            for (output, owner) in outputs.iter().filter_map(|output| Some((output, output.owner?))) {
                let _ = writeln!(
                    text,
                    "  mlc_operator_share(((struct priv_s *)self->op_arg.priv)->{}_entry, \
                     ((struct priv_s *)self->op_arg.priv)->{}_entry);",
                    inputs[owner].name, output.name
                );
            }
        }
        if self.phases().any(|found| found.name == phase) {
            let _ = writeln!(text, "  {optype}_{phase}(&self->op_arg);");
        }
        text + "  return self->op_arg.status;\n}\n"
    }
}
