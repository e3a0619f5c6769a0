//! What callers see of a model: gives its inputs and outputs the names, and makes of them what they want, before the optimiser runs.

mod inputs;
mod outputs;
mod rows;

pub use inputs::{Normalization, RAW, find_input, take_raw};
pub use outputs::{find_output, index_of_largest};
pub use rows::take_rows;

use crate::diagnostics::{Code, Diagnostic, Location};
use crate::graph::Graph;
use crate::operator::OperatorError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Gives inputs and outputs other names, all at once: two may swap theirs. An input and an output of one name both get the new one.
///
/// # Errors
/// `MLC0004` when there is nothing of an old name in the interface, or a new one would be that of two.
pub fn rename(graph: &mut Graph, names: &[(String, String)]) -> Result<(), Diagnostic> {
    let mut renamed: BTreeMap<&str, &str> = BTreeMap::new();
    for (old, new) in names {
        if renamed.insert(old, new).is_some() {
            return Err(mismatch(format!("'{old}' is given two names")));
        }
    }
    let ports = Ports::of(graph);
    for old in renamed.keys() {
        if !ports.all().any(|name| &**name == *old) {
            let message = format!("the model has no input and no output '{old}'");
            return Err(mismatch(message).with_note(ports.inputs.list()).with_note(ports.outputs.list()));
        }
    }
    refuse_doubles(graph, &ports, &renamed)?;
    for (number, old) in ports.inputs.named {
        if let Some(new) = renamed.get(&*old) {
            graph.rename(graph.inputs()[number], new);
        }
    }
    for (number, old) in ports.outputs.named {
        if let Some(new) = renamed.get(&*old) {
            graph.outputs[number].name = (*new).into();
        }
    }
    Ok(())
}

/// Refuses a new name that something else has, or gets, too.
fn refuse_doubles(graph: &Graph, ports: &Ports, renamed: &BTreeMap<&str, &str>) -> Result<(), Diagnostic> {
    let inputs = graph.inputs().iter().map(|&id| &graph.node(id).name);
    let all = inputs.chain(graph.outputs().iter().map(|output| &output.name));
    let kept = all.filter(|name| !(ports.all().any(|open| open == *name) && renamed.contains_key(&***name)));
    let mut owners: BTreeMap<&str, &str> = kept.map(|name| (&**name, &**name)).collect();
    for (old, new) in renamed {
        if let Some(other) = owners.insert(new, old) {
            let message = match renamed.contains_key(other) {
                true => format!("'{other}' and '{old}' can't both have the name '{new}'"),
                false => format!("'{old}' can't have the name '{new}', which another input or output has"),
            };
            return Err(mismatch(message).with_help("give that one another name, too"));
        }
    }
    Ok(())
}

/// The inputs and outputs that callers have to do with.
struct Ports {
    inputs: Side,
    outputs: Side,
}

/// Inputs or outputs: their numbers and names.
struct Side {
    kind: &'static str,
    named: Vec<(usize, Arc<str>)>,
}

impl Ports {
    fn of(graph: &Graph) -> Ports {
        let input = |number: usize| (number, graph.node(graph.inputs()[number]).name.clone());
        let output = |number: usize| (number, graph.outputs()[number].name.clone());
        Ports {
            inputs: Side { kind: "input", named: graph.open_inputs().into_iter().map(input).collect() },
            outputs: Side { kind: "output", named: graph.open_outputs().into_iter().map(output).collect() },
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<str>> {
        self.inputs.named.iter().chain(&self.outputs.named).map(|(_, name)| name)
    }
}

impl Side {
    /// Number of the one of a name, or of the only one.
    fn find(&self, name: Option<&str>) -> Result<usize, Diagnostic> {
        let message = match (name, &self.named[..]) {
            (None, [(number, _)]) => return Ok(*number),
            (None, all) => format!("the model has {} {}s, and none is named", all.len(), self.kind),
            (Some(name), all) => match all.iter().find(|(_, own)| **own == *name) {
                Some((number, _)) => return Ok(*number),
                None => format!("the model has no {} '{name}'", self.kind),
            },
        };
        Err(mismatch(message).with_note(self.list()))
    }

    fn list(&self) -> String {
        let names: Vec<&str> = self.named.iter().map(|(_, name)| &**name).collect();
        match names.is_empty() {
            true => format!("it has no {}s", self.kind),
            false => format!("its {}s are: {}", self.kind, names.join(", ")),
        }
    }
}

/// What a graph that can't be changed is told as, which is a defect.
fn defect(error: OperatorError) -> Diagnostic {
    Diagnostic::error(Code::InvalidGraph, Location::default(), error.to_string())
}

fn mismatch(message: String) -> Diagnostic {
    Diagnostic::option_mismatch(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{text, verify};

    fn graph() -> Graph {
        let text = "mlc 1
graph @g(%x: f32[2], %y: f32[2], %h: f32[2]) -> (\"p\": f32[2], \"x\": f32[2], \"h.next\": f32[2]) {
  %audio = binary %x, %y {function = add}
  %n = binary %audio, %h {function = multiply}
  return %audio, %x, %n
}
";
        let mut graph = text::parse(text, &()).unwrap_or_else(|faults| panic!("{faults:?}"));
        crate::stateful::tie(&mut graph, "h", "h.next").unwrap();
        graph
    }

    fn renamed(names: &[(&str, &str)]) -> Result<Vec<String>, Diagnostic> {
        let mut graph = graph();
        let names: Vec<_> = names.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned())).collect();
        rename(&mut graph, &names)?;
        verify(&graph).unwrap();
        let inputs = graph.inputs().iter().map(|&id| graph.node(id).name.to_string());
        Ok(inputs.chain(graph.outputs().iter().map(|output| output.name.to_string())).collect())
    }

    #[test]
    fn names_are_given_all_at_once() {
        assert_eq!(renamed(&[("y", "right")]).unwrap(), ["x", "right", "h", "p", "x", "h.next"]);
        // An input and an output of one name are both meant, and names may be swapped.
        assert_eq!(renamed(&[("x", "y"), ("y", "x")]).unwrap(), ["y", "x", "h", "p", "y", "h.next"]);
        // A node of the model that has the name gives way.
        assert_eq!(renamed(&[("x", "audio"), ("p", "p")]).unwrap(), ["audio", "y", "h", "p", "audio", "h.next"]);
    }

    #[test]
    fn names_that_are_unknown_or_not_free_are_refused() {
        for (names, message) in [
            (&[("z", "a")][..], "the model has no input and no output 'z'"),
            (&[("audio", "a")], "no output 'audio'"),
            (&[("h", "a")], "no output 'h'"),
            (&[("y", "a"), ("y", "b")], "'y' is given two names"),
            (&[("y", "p")], "'y' can't have the name 'p', which another input or output has"),
            (&[("y", "h")], "'y' can't have the name 'h'"),
            (&[("y", "a"), ("p", "a")], "'p' and 'y' can't both have the name 'a'"),
        ] {
            let error = renamed(names).unwrap_err();
            assert!(error.message.contains(message), "{error}");
            assert_eq!(error.code, Code::OptionMismatch);
        }
        let notes = renamed(&[("z", "a")]).unwrap_err().notes;
        assert_eq!(notes, ["its inputs are: x, y", "its outputs are: p, x"]);
    }
}
