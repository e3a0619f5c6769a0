//! Branches that threads compute beside each other, as C: the task that computes shares, and its launch.

use super::arguments::parameter;
use super::emitter::{Emitter, Scope};
use super::sequence::Calls;
use super::stripes::indented;
use crate::loops::print::launches::task_of;
use crate::lower::Part;
use crate::threads::Branches;
use std::collections::BTreeSet;
use std::fmt::Write;

impl Emitter {
    /// The launch of branches among the outermost parts, with the hooks behind it of all that they compute: threads call none.
    pub(super) fn branches(&mut self, scope: Scope<'_>, parts: &[Part], branches: &Branches, calls: &mut Calls) {
        let mut used = BTreeSet::new();
        let mut hooks = Vec::new();
        let mut cases = String::new();
        for (number, share) in branches.shares.iter().enumerate() {
            let mut own = Calls::default();
            for (part, positions) in share {
                let hook = self.part(scope, &parts[*part], positions.start, 0, &mut own);
                hooks.push((positions.start, hook));
            }
            if share.is_empty() {
                continue;
            }
            used.extend(own.used);
            calls.functions += &own.functions;
            let _ =
                write!(cases, "      case {number}:\n{}        break;\n", indented(&indented(&indented(&own.text))));
        }
        hooks.sort();
        let (name, shares) = (&branches.name, branches.shares.len());
        let fields: Vec<String> = used.iter().map(|variable| parameter(variable)).collect();
        let before: String =
            used.iter().map(|variable| format!("  {} = data->{variable};\n", parameter(variable))).collect();
        let turn = format!("    switch (share) {{\n{cases}      default:\n        break;\n    }}\n");
        calls.functions += "\n/* Shares of branches that don't depend on each other. */";
        calls.functions += &task_of(name, &fields, &before, &turn, shares);
        let values: Vec<&str> = used.iter().map(String::as_str).collect();
        let values = if values.is_empty() { "0".to_owned() } else { values.join(", ") };
        let _ = write!(
            calls.text,
            "  {{\n    struct {name}_data mlc_data = {{ {values} }};\n    \
             (void)TVMBackendParallelLaunch({name}_task, &mlc_data, {shares});\n  }}\n"
        );
        hooks.into_iter().for_each(|(_, hook)| calls.text += &hook);
        calls.used.extend(used);
    }
}
