//! [`Program`]: a model's operators with the tensors that they really read.
//!
//! Tensors share memory: one may be a view of another, and some operators write their results over what they take. In a graph
//! nothing is written over. So a name stands for a value of its own whenever the memory behind it was written to, its *version*,
//! and who reads a tensor after that gets the new value in the tensor's own shape.

use super::signature::{Memory, Signature, order};
use crate::model::{Argument, Model, Operator, ParameterValue};
use indexmap::{IndexMap, IndexSet};
use mlc_import::{Bindings, Fault};
use std::fmt;

/// A tensor at some point of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name<'m> {
    /// The tensor.
    pub tensor: &'m str,
    /// How often its memory had been written over.
    version: u32,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tensor)
    }
}

/// A tensor whose memory was written over.
#[derive(Debug)]
pub struct Refresh<'m> {
    /// The tensor from now on.
    pub name: Name<'m>,
    /// The tensor as it was defined, which has its shape.
    pub before: Name<'m>,
    /// What was written.
    pub written: Name<'m>,
}

/// An operator and the tensors that it reads and defines.
pub struct Step<'m> {
    pub operator: &'m Operator,
    /// Its type without the word for the target that all of mlc's code is for.
    pub kind: &'m str,
    pub signature: Option<&'static Signature>,
    /// What it takes, with what that is to it, in the signature's order.
    pub operands: Vec<(&'m str, Name<'m>)>,
    /// What it makes, likewise.
    pub results: Vec<Name<'m>>,
    /// What the results are to it.
    pub labels: Vec<&'m str>,
    /// Tensors that are read here and were written over before.
    pub refreshes: Vec<Refresh<'m>>,
    /// Whether its result comes from the caller.
    pub is_input: bool,
    /// Why what it does to memory can't be followed.
    memory_fault: Option<Fault>,
}

/// A model's operators and outputs.
pub struct Program<'m> {
    pub steps: Vec<Step<'m>>,
    /// Outputs that were written over after they were defined.
    pub refreshes: Vec<Refresh<'m>>,
    /// Tensors that come out, with their names outside: those that the user wants, or what no operator takes, in the order of
    /// their definition.
    pub outputs: Vec<(&'m str, Name<'m>)>,
    pub bindings: &'m Bindings,
}

impl Step<'_> {
    /// What is wrong with it, whatever its operands are.
    pub fn faults(&self) -> Vec<Fault> {
        let own = self.signature.map(|signature| signature.faults(self.operator)).unwrap_or_default();
        own.into_iter().chain(self.memory_fault.clone()).collect()
    }
}

impl<'m> Program<'m> {
    /// The program of a model, in which some tensors are inputs.
    pub fn of(model: &'m Model, bindings: &'m Bindings, known: &IndexMap<&'static str, &'static Signature>) -> Self {
        let mut memory = SharedMemory::default();
        let mut steps: Vec<Step<'m>> = Vec::new();
        let mut taken: IndexSet<&str> = IndexSet::new();
        for operator in &model.operators {
            let (kind, signature) = known_kind(&operator.kind, known);
            let step = memory.step(operator, kind, signature, is_input(operator, bindings));
            if !signature.is_some_and(Signature::only_prints) {
                taken.extend(operator.inputs.iter().map(|input| input.tensor.as_str()));
            }
            steps.push(step);
        }
        let defined = memory.tensors.keys().copied();
        let mut outputs: Vec<(&str, &str)> =
            defined.filter(|tensor| !taken.contains(tensor)).map(|tensor| (tensor, tensor)).collect();
        if !bindings.outputs.is_empty() {
            let chosen = bindings.outputs.iter();
            outputs = chosen.filter_map(|(name, place)| Some((name.as_str(), tensor_of(model, place)?))).collect();
        }
        let mut refreshes = Vec::new();
        let outputs = outputs.into_iter().map(|(name, tensor)| (name, memory.read(tensor, &mut refreshes))).collect();
        Program { steps, refreshes, outputs, bindings }
    }
}

/// An operator's type, and what is known of it.
fn known_kind<'m>(kind: &'m str, known: &IndexMap<&str, &'static Signature>) -> (&'m str, Option<&'static Signature>) {
    let bare = if CREATE.contains(&kind) { CREATE[0] } else { kind.strip_suffix("_cpu").unwrap_or(kind) };
    for kind in [kind, bare] {
        if let Some(signature) = known.get(kind) {
            return (kind, Some(*signature));
        }
    }
    (kind, None)
}

/// Whether an operator's result comes from the caller.
fn is_input(operator: &Operator, bindings: &Bindings) -> bool {
    let [result] = &operator.outputs[..] else { return false };
    let is_bound = |names: &[String]| names.contains(&result.tensor);
    is_created(operator)
        && (is_bound(&bindings.inputs) || is_from_file(operator) && !bindings.weights.contains_key(&result.tensor))
}

/// The tensor that the user means by `tensor:NAME`, or by `name:OPERATOR`, the first that the operator makes.
pub fn tensor_of<'m>(model: &'m Model, place: &str) -> Option<&'m str> {
    let mut operators = model.operators.iter();
    let (kind, name) = place.split_once(':')?;
    match kind {
        "tensor" => {
            let mut tensors = operators.flat_map(|operator| &operator.outputs).map(|output| output.tensor.as_str());
            tensors.find(|tensor| *tensor == name)
        }
        "name" => operators.find(|operator| operator.name == name)?.outputs.first().map(|output| &*output.tensor),
        _ => None,
    }
}

/// Types of operators that create a tensor of the data that the file has, or a caller gives.
const CREATE: [&str; 3] = ["create", "create_cpu", "create_cuda"];

/// Whether an operator creates a tensor.
pub fn is_created(operator: &Operator) -> bool {
    CREATE.contains(&&*operator.kind)
}

/// Whether the data of what an operator creates are in no model file.
pub fn is_from_file(operator: &Operator) -> bool {
    let mut parameters = operator.parameters.iter();
    parameters.any(|parameter| parameter.name == "from_file" && parameter.value == ParameterValue::Bool(true))
}

/// Memory that several tensors may share.
#[derive(Debug)]
struct Storage<'m> {
    /// How often it was written over.
    version: u32,
    /// What was written last.
    written: Option<Name<'m>>,
    /// Whether there are tensors that are a part of it.
    has_parts: bool,
}

/// A tensor's memory.
#[derive(Debug)]
struct Tensor<'m> {
    storage: usize,
    /// The name under which it was defined.
    defined: Name<'m>,
}

/// Which tensors share memory.
#[derive(Debug, Default)]
struct SharedMemory<'m> {
    storages: Vec<Storage<'m>>,
    tensors: IndexMap<&'m str, Tensor<'m>>,
    /// Tensors that were written over, as far as somebody has read them since.
    refreshed: IndexSet<Name<'m>>,
}

impl<'m> SharedMemory<'m> {
    fn step(
        &mut self,
        operator: &'m Operator,
        kind: &'m str,
        signature: Option<&'static Signature>,
        is_input: bool,
    ) -> Step<'m> {
        let sorted = |arguments: &'m [Argument], expected: &[&str]| -> Vec<&'m Argument> {
            let given: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
            order(expected, &given).into_iter().map(|place| &arguments[place]).collect()
        };
        let inputs = sorted(&operator.inputs, signature.map_or(&[], |signature| signature.inputs));
        let outputs = sorted(&operator.outputs, signature.map_or(&[], |signature| signature.outputs));
        let mut refreshes = Vec::new();
        let operands = inputs.iter().map(|input| (input.name.as_str(), self.read(&input.tensor, &mut refreshes)));
        let operands: Vec<(&str, Name<'m>)> = operands.collect();
        let memory = signature.map_or(Memory::Own, |signature| signature.memory);
        let memory_fault = self.fault(memory, &operands);
        let mut results = Vec::new();
        for (place, output) in outputs.iter().enumerate() {
            let owner = operands.get(place).filter(|_| memory_fault.is_none()).map(|(_, name)| *name);
            results.push(self.define(&output.tensor, memory, owner));
        }
        if memory == Memory::Parts {
            let tensors = operands.iter().map(|(_, name)| *name).chain(results.iter().copied());
            tensors.for_each(|name| self.divide(name));
        }
        let labels = outputs.iter().map(|output| output.name.as_str()).collect();
        Step { operator, kind, signature, operands, results, labels, refreshes, is_input, memory_fault }
    }

    /// The name that stands for what a tensor holds now.
    fn read(&mut self, tensor: &'m str, refreshes: &mut Vec<Refresh<'m>>) -> Name<'m> {
        let Some(found) = self.tensors.get(tensor) else { return Name { tensor, version: 0 } };
        let storage = &self.storages[found.storage];
        let name = Name { tensor, version: storage.version };
        if let Some(written) = storage.written
            && name != found.defined
            && self.refreshed.insert(name)
        {
            refreshes.push(Refresh { name, before: found.defined, written });
        }
        name
    }

    /// The name of a result. `owner` is the operand of the same number.
    fn define(&mut self, tensor: &'m str, memory: Memory, owner: Option<Name<'m>>) -> Name<'m> {
        if let Some(known) = self.tensors.get(tensor) {
            // It is defined twice, which the importer finds.
            return known.defined;
        }
        let shared = owner.filter(|_| matches!(memory, Memory::View | Memory::InPlace));
        let shared = shared.and_then(|owner| self.tensors.get(owner.tensor)).map(|owner| owner.storage);
        let storage = shared.unwrap_or_else(|| {
            self.storages.push(Storage { version: 0, written: None, has_parts: false });
            self.storages.len() - 1
        });
        let own = &mut self.storages[storage];
        if shared.is_some() && memory == Memory::InPlace {
            own.version += 1;
        }
        let name = Name { tensor, version: own.version };
        if shared.is_some() && memory == Memory::InPlace {
            own.written = Some(name);
        }
        self.tensors.insert(tensor, Tensor { storage, defined: name });
        name
    }

    fn storage_of(&self, name: Name<'m>) -> Option<usize> {
        self.tensors.get(name.tensor).map(|tensor| tensor.storage)
    }

    fn divide(&mut self, name: Name<'m>) {
        if let Some(storage) = self.storage_of(name) {
            self.storages[storage].has_parts = true;
        }
    }

    /// Why what an operator writes over can't be followed.
    fn fault(&self, memory: Memory, operands: &[(&'m str, Name<'m>)]) -> Option<Fault> {
        if memory != Memory::InPlace {
            return None;
        }
        let mut written = IndexSet::new();
        for &(label, name) in operands {
            let Some(storage) = self.storage_of(name) else { continue };
            if self.storages[storage].has_parts {
                let message = format!(
                    "`{label}` (`{name}`), which is written over, is a part of another tensor, or parts of it are others"
                );
                return Some(Fault::variant(message).with_help("take `gather` and `scatter`, which copy"));
            }
            if !written.insert(storage) {
                return Some(Fault::variant(format!(
                    "`{label}` (`{name}`) shares its memory with another tensor that is written over"
                )));
            }
        }
        None
    }
}
