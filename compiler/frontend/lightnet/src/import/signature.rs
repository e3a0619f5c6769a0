//! [`Signature`]: the tensors and parameters that an operator has. All of them are mandatory.

use crate::model::{Operator, Parameter, ParameterValue};
use mlc_import::Fault;
use mlc_ir::Code;
use std::collections::BTreeSet;

/// What a parameter must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Bool,
    Number,
    Numbers,
    Text,
}

/// Where results lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// In memory of their own.
    Own,
    /// The first result is the first operand under another shape.
    View,
    /// Each result is written over the operand of the same number.
    InPlace,
    /// Operands are parts of results, or results of operands.
    Parts,
}

/// An operator type and what it has.
pub struct Signature {
    pub kind: &'static str,
    /// Names of the tensors that it takes; one that ends in `*` stands for any number of them, numbered from 1.
    pub inputs: &'static [&'static str],
    /// Names of the tensors that it makes, likewise.
    pub outputs: &'static [&'static str],
    pub parameters: &'static [(&'static str, Type)],
    pub memory: Memory,
}

impl Type {
    fn description(self) -> &'static str {
        match self {
            Type::Bool => "true or false",
            Type::Number => "a number",
            Type::Numbers => "a list of numbers",
            Type::Text => "a text",
        }
    }

    fn has(self, value: &ParameterValue) -> bool {
        match self {
            Type::Bool => matches!(value, ParameterValue::Bool(_)),
            Type::Number => matches!(value, ParameterValue::Number(_)),
            Type::Numbers => matches!(value, ParameterValue::Numbers(_)),
            Type::Text => matches!(value, ParameterValue::Text(_)),
        }
    }
}

/// Numbers of an argument of which there are any number: `src` 3 for `src3`. Only the usual way to write them counts.
fn number_of(name: &str, stem: &str) -> Option<usize> {
    let digits = name.strip_prefix(stem)?;
    digits.parse().ok().filter(|number: &usize| number.to_string() == digits)
}

/// Places of an operator's tensors, in the order in which the signature has them; tensors that it doesn't have come last.
pub fn order(expected: &[&str], given: &[&str]) -> Vec<usize> {
    let rank = |&place: &usize| {
        let name = given[place];
        let group = expected.iter().position(|expected| match expected.strip_suffix('*') {
            Some(stem) => number_of(name, stem).is_some(),
            None => *expected == name,
        });
        let number = group.and_then(|group| expected[group].strip_suffix('*')).and_then(|stem| number_of(name, stem));
        (group.unwrap_or(usize::MAX), number, place)
    };
    let mut places: Vec<usize> = (0..given.len()).collect();
    places.sort_by_key(rank);
    places
}

impl Signature {
    /// An operator whose results lie in memory of their own.
    pub const fn new(
        kind: &'static str,
        inputs: &'static [&'static str],
        outputs: &'static [&'static str],
        parameters: &'static [(&'static str, Type)],
    ) -> Self {
        Signature { kind, inputs, outputs, parameters, memory: Memory::Own }
    }

    /// The same with results that lie elsewhere.
    pub const fn lying(self, memory: Memory) -> Self {
        Signature { memory, ..self }
    }

    /// Whether it makes nothing.
    pub fn only_prints(&self) -> bool {
        self.outputs.is_empty()
    }

    /// What an operator has besides, and what it lacks.
    pub fn faults(&self, operator: &Operator) -> Vec<Fault> {
        let names = |arguments: &[crate::model::Argument]| -> Vec<String> {
            arguments.iter().map(|argument| argument.name.clone()).collect()
        };
        let parameters: Vec<&str> = self.parameters.iter().map(|(name, _)| *name).collect();
        let given: Vec<String> = operator.parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let mut faults = Vec::new();
        for (what, expected, given, code) in [
            ("input tensor", self.inputs, names(&operator.inputs), Code::OperandCount),
            ("output tensor", self.outputs, names(&operator.outputs), Code::OperandCount),
            ("parameter", &parameters[..], given, Code::ParameterMissing),
        ] {
            faults.extend(compare(what, expected, &given).map(|message| Fault::new(code, message)));
        }
        faults.extend(operator.parameters.iter().filter_map(|parameter| self.type_fault(parameter)));
        faults
    }

    fn type_fault(&self, parameter: &Parameter) -> Option<Fault> {
        let (name, expected) = self.parameters.iter().find(|(name, _)| *name == parameter.name)?;
        if expected.has(&parameter.value) {
            return None;
        }
        let (expected, found) = (expected.description(), parameter.value.description());
        Some(Fault::parameter(format!("parameter `{name}` must be {expected}, found {found}")))
    }
}

/// What is wrong with the names of an operator's tensors or parameters.
fn compare(what: &str, expected: &[&str], given: &[String]) -> Option<String> {
    let wanted: Vec<String> = match expected {
        [one] => match one.strip_suffix('*') {
            Some(stem) => (1..=given.len().max(1)).map(|number| format!("{stem}{number}")).collect(),
            None => vec![(*one).to_owned()],
        },
        names => names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let (wanted_set, given_set): (BTreeSet<&String>, BTreeSet<&String>) =
        (wanted.iter().collect(), given.iter().collect());
    if wanted_set == given_set && given_set.len() == given.len() {
        return None;
    }
    let mut message = format!("{} expected, {} found", counted(what, &wanted), given.len());
    for (label, names) in
        [("missing", wanted_set.difference(&given_set)), ("not known", given_set.difference(&wanted_set))]
    {
        let names: Vec<String> = names.take(5).map(|name| format!("`{}`", mlc_json::shortened(name))).collect();
        if !names.is_empty() {
            message += &format!("; {label}: {}", names.join(", "));
        }
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = given.iter().find(|name| !seen.insert(*name)) {
        message += &format!("; twice: `{}`", mlc_json::shortened(twice));
    }
    Some(message)
}

/// `3 parameters (`axis`, `start`, `len`)`
fn counted(what: &str, names: &[String]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    let listed: Vec<String> = names.iter().take(12).map(|name| format!("`{name}`")).collect();
    let listed = if listed.is_empty() { String::new() } else { format!(" ({})", listed.join(", ")) };
    format!("{} {what}{plural}{listed}", names.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_come_in_the_order_of_the_signature() {
        assert_eq!(order(&["src", "weight", "bias"], &["bias", "src", "weight"]), [1, 2, 0]);
        assert_eq!(order(&["src*"], &["src10", "src2", "src1"]), [2, 1, 0]);
        assert_eq!(order(&["src"], &["x", "src"]), [1, 0]);
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_is_named() {
        let given = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        assert_eq!(compare("parameter", &["axis", "len"], &given(&["len", "axis"])), None);
        let message = compare("parameter", &["axis", "start", "len"], &given(&["axis", "start"])).unwrap();
        assert_eq!(message, "3 parameters (`axis`, `start`, `len`) expected, 2 found; missing: `len`");
        let message = compare("input tensor", &["src"], &given(&["x", "src", "src"])).unwrap();
        assert_eq!(message, "1 input tensor (`src`) expected, 3 found; not known: `x`; twice: `src`");
        assert_eq!(compare("input tensor", &["src*"], &given(&["src2", "src1"])), None);
        let message = compare("input tensor", &["src*"], &given(&["src2", "src3"])).unwrap();
        assert_eq!(message, "2 input tensors (`src1`, `src2`) expected, 2 found; missing: `src1`; not known: `src3`");
        assert_eq!(
            compare("parameter", &[], &given(&["a"])).unwrap(),
            "0 parameters expected, 1 found; not known: `a`"
        );
    }
}
