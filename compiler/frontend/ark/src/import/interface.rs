//! Inputs and outputs of a model, by the format's rules and by what the user says beyond them.

use super::call::Importer;
use super::place::{Place, mismatch};
use super::weights::{names_of, weight_of};
use crate::memory::{self, External, Program, ValueId};
use crate::model::{Model, Tensor};
use indexmap::{IndexMap, IndexSet};
use mlc_import::{Bindings, Fault, Findings, Item, Operand, Update};
use mlc_ir::{Location, TensorType};

/// What goes into a model and comes out of it.
#[derive(Debug)]
pub struct Interface {
    /// Memory that gets its content from outside.
    pub externals: Vec<External>,
    /// What is read when the run is over: name and window.
    pub outputs: Vec<(String, Tensor)>,
}

impl Interface {
    /// Those of a model. What the user says that doesn't fit becomes a finding.
    pub fn of(model: &Model, bindings: &Bindings, findings: &mut Findings) -> Interface {
        let mut places = |places: &IndexMap<String, String>| -> Vec<(String, Place)> {
            let parse = |(name, text): (&String, &String)| match Place::parse(model, text) {
                Ok(place) => Some((name.clone(), place)),
                Err(fault) => {
                    report(findings, name, fault);
                    None
                }
            };
            places.iter().filter_map(parse).collect()
        };
        let bound = places(&bindings.places);
        let chosen = places(&bindings.outputs);
        let externals = externals(model, &bound);
        let mut outputs: Vec<(String, Tensor)> = match bindings.outputs.is_empty() {
            true => {
                let found = memory::outputs(model).into_iter();
                found.map(|(name, tensor)| (name, model.tensor(tensor).clone())).collect()
            }
            false => chosen.into_iter().map(|(name, place)| (name, place.window)).collect(),
        };
        for name in &bindings.updated {
            match externals.iter().find(|external| names_of(model, external).contains(name)) {
                Some(external) => outputs.push((next(&external.name), external.window.clone())),
                None => report(findings, name, unknown_external(name, &externals)),
            }
        }
        for name in &bindings.inputs {
            if !externals.iter().any(|external| names_of(model, external).contains(name)) {
                report(findings, name, unknown_external(name, &externals));
            }
        }
        let mut interface = Interface { externals, outputs };
        interface.check_names(findings);
        interface.keep_weights(model, bindings);
        interface
    }

    /// Reports names that several inputs or several outputs have.
    fn check_names(&self, findings: &mut Findings) {
        let inputs = self.externals.iter().map(|external| &external.name);
        let outputs = self.outputs.iter().map(|(name, _)| name);
        for (what, names) in [("inputs", inputs.collect::<Vec<_>>()), ("outputs", outputs.collect())] {
            let mut seen = IndexSet::new();
            for name in names {
                if !seen.insert(name) {
                    report(findings, name, mismatch(format!("two {what} are called '{name}'")));
                }
            }
        }
    }

    /// Adds what becomes of weights that the model writes to: they are the first values of what it keeps.
    fn keep_weights(&mut self, model: &Model, bindings: &Bindings) {
        for external in self.externals.iter().filter(|external| external.is_written) {
            let output = next(&external.name);
            let is_weight = matches!(weight_of(model, external, bindings), Ok(Some(_)));
            if is_weight && !self.outputs.iter().any(|(name, _)| *name == output) {
                self.outputs.push((output, external.window.clone()));
            }
        }
    }
}

/// The name of what an external buffer holds after the run.
fn next(name: &str) -> String {
    format!("{name}.next")
}

/// The model's external buffers, with the names and windows that the user gives.
fn externals(model: &Model, bound: &[(String, Place)]) -> Vec<External> {
    let buffers: Vec<_> = bound.iter().map(|(_, place)| place.buffer()).collect();
    let mut externals = memory::externals(model, &buffers);
    for (name, place) in bound {
        for external in externals.iter_mut().filter(|external| external.buffer == place.buffer()) {
            (external.name, external.window, external.tensor) = (name.clone(), place.window.clone(), place.tensor);
        }
    }
    externals
}

fn report(findings: &mut Findings, name: &str, fault: Fault) {
    findings.report(Location { node: Some(name.to_owned()), ..Location::default() }, fault);
}

fn unknown_external(name: &str, externals: &[External]) -> Fault {
    let known: Vec<String> = externals.iter().map(|external| format!("'{}'", external.name)).collect();
    let known = if known.is_empty() { "there is none".into() } else { format!("they are {}", known.join(", ")) };
    mismatch(format!("no memory that gets its content from outside is called '{name}'")).with_help(known)
}

/// Makes inputs and constants of the external buffers. Gives other names of inputs, and inputs that are updated.
pub fn import_externals(
    importer: &mut Importer<'_>,
    model: &Model,
    externals: &[(External, ValueId)],
    bindings: &Bindings,
) -> (IndexMap<String, String>, Vec<Update>) {
    let (mut aliases, mut updates) = (IndexMap::new(), Vec::new());
    let mut used = IndexSet::new();
    for (external, value) in externals {
        let weight = match weight_of(model, external, bindings) {
            Ok(weight) => weight,
            Err(fault) => {
                importer.report_value(&external.name, fault);
                continue;
            }
        };
        let name = &external.name;
        let constant = match weight {
            Some((given, constant)) => {
                used.insert(given);
                Some(constant)
            }
            None => None,
        };
        let item = match constant {
            Some(constant) if !external.is_written => importer.builder.named_constant(name, constant),
            initial => {
                let ty = TensorType::new(external.window.data_type.dtype(), &external.window.shape[..]);
                let others = names_of(model, external).into_iter().skip(1);
                aliases.extend(others.map(|other| (other, name.clone())));
                let output = next(name);
                updates.extend(initial.map(|initial| Update { input: name.clone(), output, initial }));
                importer.builder.input(name, ty)
            }
        };
        if let Err(fault) = importer.define(*value, Operand::Tensor(item)) {
            importer.report_value(name, fault);
        }
    }
    let help = "'mlc inspect' lists what the model wants; --bind gives it names";
    importer.report_unused_weights(bindings, &used, help);
    (aliases, updates)
}

/// Makes outputs of what is read when the run is over.
pub fn import_outputs(importer: &mut Importer<'_>, program: &Program<'_>) {
    for output in &program.outputs {
        match importer.resolve(output.value).map(|item| item.tensor()) {
            Ok(Some(value)) => importer.builder.output(&output.name, value),
            Ok(None) => {}
            Err(fault) => importer.report_value(&output.name, fault),
        }
    }
}
