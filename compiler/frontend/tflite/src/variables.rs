//! What a model keeps between two runs, written out: variables (`VAR_HANDLE`, `READ_VARIABLE`, `ASSIGN_VARIABLE`, first values from the
//! subgraph of `CALL_ONCE`) and tensors that an operator updates in place (the state of `SVDF`) become inputs and outputs of the first
//! subgraph, so that an import has to know neither.

use crate::model::{Model, Operator, Setting, Subgraph, Tensor};
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};

/// Operand of `SVDF` that it updates.
const SVDF_STATE: usize = 4;

/// A value that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// Its name.
    pub name: String,
    /// The input that it is, by its place among the inputs.
    pub input: usize,
    /// The output that is its next value, by its place among the outputs.
    pub output: usize,
    /// A tensor with its first value.
    pub initial: Tensor,
}

/// The first subgraph with its variables as inputs and outputs.
#[derive(Debug)]
pub(crate) struct Expanded {
    /// The subgraph: behind its own inputs and outputs come those of the values that are kept.
    pub subgraph: Subgraph,
    /// The values that are kept.
    pub kept: Vec<Kept>,
}

/// What tells variables apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// Container and name.
    Resource(String, String),
    /// A tensor that is updated in place.
    InPlace(usize),
}

/// A variable while its operators are walked.
struct Variable {
    /// The tensor that it is at first, once that has been asked for.
    first: Option<usize>,
    /// The tensor that it is now.
    now: Option<usize>,
}

/// Writes out what a model keeps.
///
/// # Errors
/// What can't be written out, by the operator.
pub(crate) fn expand(model: &Model) -> Result<Expanded, Vec<Diagnostic>> {
    let mut expansion = Expansion {
        model,
        subgraph: Subgraph { operators: Vec::new(), ..model.subgraphs[0].clone() },
        handles: IndexMap::new(),
        initial: IndexMap::new(),
        variables: IndexMap::new(),
        same: IndexMap::new(),
    };
    let faults: Vec<Diagnostic> =
        model.subgraphs[0].operators.iter().filter_map(|operator| expansion.operator(operator).err()).collect();
    if faults.is_empty() { expansion.finish() } else { Err(faults) }
}

struct Expansion<'m> {
    model: &'m Model,
    subgraph: Subgraph,
    /// Variables by the tensors that refer to them.
    handles: IndexMap<usize, Key>,
    initial: IndexMap<Key, Tensor>,
    variables: IndexMap<Key, Variable>,
    /// Tensors that were read from variables, and what those were.
    same: IndexMap<usize, usize>,
}

fn fault(operator: &Operator, message: impl Into<String>) -> Diagnostic {
    let location = Location::default().at_operator(&*operator.kind, format!("#{}", operator.index));
    Diagnostic::error(Code::VariantUnsupported, location, message)
}

fn operand(operator: &Operator, number: usize) -> Result<usize, Diagnostic> {
    let found = operator.inputs.get(number).copied().flatten();
    found.ok_or_else(|| fault(operator, format!("operand {number} is missing")))
}

fn text(operator: &Operator, name: &str) -> String {
    match operator.options.get(name) {
        Some(Setting::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

/// The variable that a `VAR_HANDLE` refers to, and the tensor that does from there on.
fn handle(operator: &Operator) -> Result<(usize, Key), Diagnostic> {
    let key = Key::Resource(text(operator, "container"), text(operator, "shared_name"));
    let result = operator.outputs.first().ok_or_else(|| fault(operator, "it has no result"))?;
    Ok((*result, key))
}

/// The variable that the first operand refers to.
fn variable(operator: &Operator, handles: &IndexMap<usize, Key>) -> Result<Key, Diagnostic> {
    let found = handles.get(&operand(operator, 0)?).cloned();
    found.ok_or_else(|| fault(operator, "operand 0 is no result of a VAR_HANDLE of the same subgraph"))
}

impl Expansion<'_> {
    fn operator(&mut self, operator: &Operator) -> Result<(), Diagnostic> {
        match &*operator.kind {
            "CALL_ONCE" => self.call_once(operator)?,
            "VAR_HANDLE" => {
                let (result, key) = handle(operator)?;
                self.handles.insert(result, key);
            }
            "READ_VARIABLE" => {
                let key = variable(operator, &self.handles)?;
                let result = *operator.outputs.first().ok_or_else(|| fault(operator, "it has no result"))?;
                let now = self.read(key, result);
                self.same.insert(result, now);
            }
            "ASSIGN_VARIABLE" => {
                let key = variable(operator, &self.handles)?;
                let value = self.known(operand(operator, 1)?);
                self.assign(key, value);
            }
            _ => {
                let mut own = operator.clone();
                own.inputs.iter_mut().flatten().for_each(|input| *input = self.known(*input));
                if own.kind == "SVDF" {
                    self.update_in_place(&mut own, SVDF_STATE)?;
                }
                self.subgraph.operators.push(own);
            }
        }
        Ok(())
    }

    /// What a tensor that was read from a variable was there.
    fn known(&self, tensor: usize) -> usize {
        self.same.get(&tensor).copied().unwrap_or(tensor)
    }

    /// The tensor that a variable is now; at first it is a new input, like this tensor.
    fn read(&mut self, key: Key, like: usize) -> usize {
        let name = match &key {
            Key::Resource(_, name) if !name.is_empty() => name.clone(),
            _ => self.subgraph.tensors[like].name.clone(),
        };
        let next = self.subgraph.tensors.len();
        let variable = self.variables.entry(key).or_insert(Variable { first: None, now: None });
        if let Some(now) = variable.now {
            return now;
        }
        (variable.first, variable.now) = (Some(next), Some(next));
        let tensor = Tensor { name, data: None, is_variable: false, ..self.subgraph.tensors[like].clone() };
        self.subgraph.tensors.push(tensor);
        next
    }

    fn assign(&mut self, key: Key, value: usize) {
        self.variables.entry(key).or_insert(Variable { first: None, now: None }).now = Some(value);
    }

    /// First values: the subgraph may do nothing but assign constants.
    fn call_once(&mut self, operator: &Operator) -> Result<(), Diagnostic> {
        let Some(Setting::Int(number)) = operator.options.get("init_subgraph_index") else {
            return Err(fault(operator, "it doesn't say which subgraph it calls"));
        };
        let model = self.model;
        let called =
            usize::try_from(*number).ok().filter(|&number| number > 0).and_then(|own| model.subgraphs.get(own));
        let called = called.ok_or_else(|| fault(operator, format!("there is no subgraph {number} to be called")))?;
        let mut handles = IndexMap::new();
        for inner in &called.operators {
            match &*inner.kind {
                "VAR_HANDLE" => {
                    let (result, key) = handle(inner)?;
                    handles.insert(result, key);
                }
                "ASSIGN_VARIABLE" => {
                    let value = &called.tensors[operand(inner, 1)?];
                    if value.data.is_none() {
                        return Err(fault(inner, format!("the first value `{}` isn't a constant", value.name)));
                    }
                    self.initial.insert(variable(inner, &handles)?, value.clone());
                }
                kind => {
                    let message = format!("the subgraph that it calls computes {kind}, only constants are assigned");
                    return Err(fault(operator, message));
                }
            }
        }
        Ok(())
    }

    /// Gives an operator that updates an operand in place another result for it.
    fn update_in_place(&mut self, operator: &mut Operator, number: usize) -> Result<(), Diagnostic> {
        let tensor = operand(operator, number)?;
        if !self.subgraph.tensors[tensor].is_variable {
            return Err(fault(operator, format!("operand {number} isn't a tensor that is kept")));
        }
        let key = Key::InPlace(tensor);
        let first = zeros(&self.subgraph.tensors[tensor]);
        self.initial.entry(key.clone()).or_insert(first);
        operator.inputs[number] = Some(self.read(key.clone(), tensor));
        let next = self.subgraph.tensors.len();
        let own = &self.subgraph.tensors[tensor];
        let name = format!("{}_next", own.name);
        self.subgraph.tensors.push(Tensor { name, data: None, is_variable: false, ..own.clone() });
        operator.outputs.push(next);
        self.assign(key, next);
        Ok(())
    }

    fn finish(mut self) -> Result<Expanded, Vec<Diagnostic>> {
        for output in &mut self.subgraph.outputs {
            *output = self.same.get(output).copied().unwrap_or(*output);
        }
        let (mut kept, mut faults) = (Vec::new(), Vec::new());
        for (key, variable) in self.variables {
            let Some(first) = variable.first else { continue };
            let name = self.subgraph.tensors[first].name.clone();
            let place = Location { node: Some(name.clone()), ..Location::default() };
            let fault = |message: String| Diagnostic::error(Code::VariantUnsupported, place, message);
            let Some(initial) = self.initial.get(&key) else {
                faults.push(fault(format!("the variable `{name}` is read, and nothing says its first value")));
                continue;
            };
            let own = &self.subgraph.tensors[first];
            if (&initial.shape, initial.element_type) != (&own.shape, own.element_type) {
                let (given, read) = ((initial.element_type, &initial.shape), (own.element_type, &own.shape));
                let message =
                    format!("begins as {} of {:?}, and is read as {} of {:?}", given.0, given.1, read.0, read.1);
                faults.push(fault(format!("the variable `{name}` {message}")));
                continue;
            }
            match variable.now {
                Some(now) if now != first => {
                    let (input, output) = (self.subgraph.inputs.len(), self.subgraph.outputs.len());
                    self.subgraph.inputs.push(first);
                    self.subgraph.outputs.push(now);
                    kept.push(Kept { name, input, output, initial: initial.clone() });
                }
                // It is never assigned: a constant.
                _ => self.subgraph.tensors[first].data.clone_from(&initial.data),
            }
        }
        if faults.is_empty() { Ok(Expanded { subgraph: self.subgraph, kept }) } else { Err(faults) }
    }
}

/// A tensor of integers that stand for 0, or of zeros.
fn zeros(like: &Tensor) -> Tensor {
    let size = like.element_type.dtype().map_or(0, mlc_ir::DType::size);
    let zero_point = like.quantization.as_ref().and_then(|own| own.zero_points.first()).copied().unwrap_or(0);
    let bytes = like.shape.iter().try_fold(size, |product, &extent| product.checked_mul(extent)).unwrap_or(0);
    let zero = zero_point.to_le_bytes();
    let element = zero.iter().take(size).copied();
    // The limit of what can be kept is looked at later; a file that claims more gets no memory for it here.
    let elements = if bytes > MOST_BYTES { 0 } else { bytes / size.max(1) };
    let data: Vec<u8> = (0..elements).flat_map(|_| element.clone()).collect();
    Tensor { data: Some(Bytes::from(data)), is_variable: false, ..like.clone() }
}

/// Most bytes of a tensor that is updated in place.
const MOST_BYTES: usize = 1 << 28;

#[cfg(test)]
mod tests;
