//! Launches: the calls by which a kernel has threads compute a phase, and the functions that these threads run.

use super::{Launched, Printer};
use crate::loops::spelling::declared;
use crate::loops::{Function, Var, VarInfo};
use std::fmt::Write;

impl Printer<'_> {
    /// A launch. What all shares get is in a structure.
    pub(super) fn launch(&mut self, phase: usize, arguments: &[Var]) {
        let Launched { name, shares } = &self.phases[phase];
        let (name, shares) = (name.clone(), *shares);
        self.line("{");
        self.depth += 1;
        let values: Vec<&str> = arguments.iter().map(|&var| self.name(var)).collect();
        let values = if values.is_empty() { "0".to_owned() } else { values.join(", ") };
        self.line(&format!("struct {name}_data mlc_data = {{ {values} }};"));
        self.line(&format!("(void)TVMBackendParallelLaunch({name}_task, &mlc_data, {shares});"));
        self.depth -= 1;
        self.line("}");
    }
}

/// What stands behind the function of a share, which has the share's number as its last parameter: the structure of what it gets else, and the
/// task that computes shares. There may be fewer tasks than shares.
pub fn task(function: &Function, shares: usize) -> String {
    let name = &function.name;
    let infos: Vec<&VarInfo> =
        function.parameters.iter().map(|parameter| &function.vars[parameter.var as usize]).collect();
    let given = infos.split_last().map_or(&[][..], |(_, given)| given);
    let fields: Vec<String> = given.iter().map(|info| declared(info, "")).collect();
    let arguments = given.iter().map(|info| format!("data->{}", info.name)).chain(["share".into()]);
    let turn = format!("    {name}({});\n", arguments.collect::<Vec<String>>().join(", "));
    task_of(name, &fields, "", &turn, shares)
}

/// The structure of what a task gets, and the task: behind the statements `before`, it runs `turn` for each of its shares.
pub fn task_of(name: &str, fields: &[String], before: &str, turn: &str, shares: usize) -> String {
    let mut text = format!("\nstruct {name}_data {{\n");
    for field in fields {
        let _ = writeln!(text, "  {field};");
    }
    if fields.is_empty() {
        text += "  char none;\n";
    }
    let unused = if fields.is_empty() { "  (void)data;\n" } else { "" };
    text += &format!(
        "}};\n\nstatic int {name}_task(int task_id, TVMParallelGroupEnv* penv, void* cdata) {{\n  \
         const struct {name}_data *const data = (const struct {name}_data *)cdata;\n  int32_t share;\n{unused}{before}  \
         for (share = task_id; share < {shares}; share += penv->num_task) {{\n{turn}  }}\n  return 0;\n}}\n",
    );
    text
}
