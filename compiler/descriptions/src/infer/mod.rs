//! Infers the types of an operator's results, and does its checks, by running the texts of its description.

mod checks;
mod host;
mod library;
mod operator;
mod parameters;
#[cfg(test)]
mod tests;

pub use operator::{OperatorInstance, TensorDescription};
pub use parameters::InferredParameter;

use crate::c::{ELEMENTS, Failure, Flow, Function, Host, Machine, Member, Memory, Pointer, Record, Stop, Value};
use crate::description::Description;
use crate::parameter::{Parameter, ParameterValue};
use crate::program::{Layout, Snippet, Step};
use crate::read::Library;
use host::{Known, ParameterRecord, Records, TensorRecord};
use mlc_ir::{Code, Diagnostic, Location};
use parameters::{convert_text, converted, final_values};

/// Steps that the texts of one operator may take: enough for any shape, and not a second's work.
const STEPS: usize = 4_000_000;

/// The most scalar operations of a run: a double counts them exactly.
const MOST_OPERATIONS: usize = 1 << 53;

/// The most bytes of scratch memory.
const MOST_WORKSPACE: usize = 1 << 31;

/// Names of the element types, by number.
pub const ELEMENT_TYPES: [&str; 11] = ELEMENTS;

impl Host for Records {
    fn member(&self, record: Record, number: usize, member: Member) -> Result<Value, String> {
        Records::member(self, record, number, member)
    }

    fn call(&mut self, memory: &mut Memory, function: Function, arguments: &[Value]) -> Result<Value, Failure> {
        match checks::check(self, memory, function, arguments) {
            Some(result) => result,
            None => library::call(self, memory, function, arguments).map_err(Failure::Fault),
        }
    }

    fn unsatisfied(&self, message: &str) -> String {
        format!("{}({}) should satisfy: \"{message}\"", self.operator_name, self.optype)
    }
}

/// An operator of a model whose checks are passed, with the types of its results.
#[derive(Debug, Clone)]
pub struct Inference {
    /// The results, in order.
    pub outputs: Vec<TensorDescription>,
    /// All parameters, in the order of the description.
    pub parameters: Vec<InferredParameter>,
    /// Scalar operations of a run; 0 if the description doesn't say.
    pub operations: usize,
    /// Bytes of scratch memory of a run.
    pub workspace: usize,
    memory: Memory,
    records: Records,
}

impl Library {
    /// Does the checks of an operator and infers its results.
    ///
    /// # Errors
    /// The first check that isn't met, or what can't be evaluated.
    pub fn infer(&self, description: &Description, operator: &OperatorInstance) -> Result<Inference, Diagnostic> {
        Run { library: self, description, operator }.infer()
    }

    /// How many bytes into its owner an output lies, when the owner lies at an offset in its pool.
    ///
    /// # Errors
    /// What can't be evaluated, or an output that isn't within its owner. Precondition: the output has an owner.
    pub fn view_offset(
        &self,
        description: &Description,
        operator: &OperatorInstance,
        inference: &Inference,
        output: usize,
        owner_offset: u64,
    ) -> Result<u64, Diagnostic> {
        Run { library: self, description, operator }.view_offset(inference, output, owner_offset)
    }
}

/// The evaluation of an operator.
struct Run<'a> {
    library: &'a Library,
    description: &'a Description,
    operator: &'a OperatorInstance,
}

impl Run<'_> {
    fn place(&self) -> Location {
        Location::default().at_operator(&self.description.optype, &self.operator.name)
    }

    /// A check that no text says.
    fn failed(&self, what: impl std::fmt::Display) -> Diagnostic {
        let message = format!("{}: `{}`{what}", self.description.optype, self.operator.name);
        Diagnostic::error(Code::CheckFailed, self.place(), message)
    }

    /// What a text couldn't do.
    fn fault(&self, snippet: &Snippet, at: usize, message: &str) -> Diagnostic {
        let Snippet { text, field, .. } = snippet;
        let line = if text.lines() > 1 { format!(", line {}", text.line(at)) } else { String::new() };
        let message = format!("{field}{line}: {message}");
        let diagnostic = Diagnostic::error(Code::SnippetFault, self.place(), message);
        self.related(diagnostic, snippet, at)
    }

    fn related(&self, diagnostic: Diagnostic, snippet: &Snippet, at: usize) -> Diagnostic {
        let Snippet { text, field, .. } = snippet;
        if text.as_str().is_empty() {
            return diagnostic;
        }
        diagnostic.with_related(self.library.sources.location(text.place(at)), format!("{field} says so"))
    }

    fn stopped(&self, snippet: &Snippet, stop: Stop) -> Diagnostic {
        match stop {
            Stop::Fault(fault) => self.fault(snippet, fault.at, &fault.message),
            Stop::Check(message) => {
                self.related(Diagnostic::error(Code::CheckFailed, self.place(), message), snippet, 0)
            }
        }
    }

    /// What went wrong before or between texts.
    fn prepared<T>(&self, result: Result<T, String>) -> Result<T, Diagnostic> {
        result.map_err(|message| Diagnostic::error(Code::SnippetFault, self.place(), message))
    }

    fn infer(&self) -> Result<Inference, Diagnostic> {
        let values = self.parameter_values()?;
        self.check_counts()?;
        let mut memory = Memory::new(STEPS);
        let records = self.records(&mut memory, &values);
        let records = self.prepared(records)?;
        let program = &self.description.program;
        let machine = Machine::new(program.names.slots(), &program.strings, memory, records);
        let mut machine = self.prepared(machine)?;
        let bound = bind_names(&mut machine, self.description);
        self.prepared(bound)?;
        for step in &program.steps {
            match step {
                Step::Input(number) => self.prepared(bind_tensor(&mut machine, &program.layout, *number))?,
                Step::Parameter(number) => {
                    self.prepared(bind_parameter(&mut machine, &program.layout, *number, self.description))?;
                }
                Step::Run(snippet) => {
                    for statement in &snippet.statements {
                        machine.run(statement).map_err(|stop| self.stopped(snippet, stop))?;
                    }
                }
                Step::Define(number) => self.define(&mut machine, *number)?,
            }
        }
        let operations = self.figure(&mut machine, "operations", program.operations, MOST_OPERATIONS)?;
        let workspace = self.figure(&mut machine, "workspace", program.workspace, MOST_WORKSPACE)?;
        let Machine { mut memory, host: records, .. } = machine;
        let known = records.tensors[self.description.inputs.len()..].iter().filter_map(|tensor| tensor.known.clone());
        let outputs = known.map(|known| known.ty).collect();
        let parameters = final_values(&mut memory, &records, &self.description.parameters, &values);
        let parameters = self.prepared(parameters)?;
        Ok(Inference { outputs, parameters, operations, workspace, memory, records })
    }

    /// The number that a field says; 0 if it isn't there.
    fn figure(
        &self,
        machine: &mut Machine<Records>,
        field: &str,
        slot: Option<usize>,
        most: usize,
    ) -> Result<usize, Diagnostic> {
        let Some(slot) = slot else { return Ok(0) };
        let value = machine.value(slot);
        let value = self.prepared(value)?.number().unwrap_or_default();
        if (0.0..=most as f64).contains(&value) {
            return Ok(value as usize);
        }
        Err(self.failed(format_args!("'s `{field}` is {value}, a number from 0 to {most} expected")))
    }

    /// The value of each parameter: the operator's, or the default.
    fn parameter_values(&self) -> Result<Vec<ParameterValue>, Diagnostic> {
        let Description { parameters, .. } = self.description;
        let given = &self.operator.parameters;
        for (name, _) in given {
            if !parameters.iter().any(|parameter| parameter.name == *name) {
                return Err(self.failed(format_args!(" has no `{name}` param")));
            }
        }
        let value = |parameter: &Parameter| {
            let found = given.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| value);
            let found = found.or(parameter.default.as_ref());
            let found = found.ok_or_else(|| self.failed(format_args!(" needs a `{}` param", parameter.name)))?;
            converted(parameter, found).ok_or_else(|| {
                self.failed(format_args!(
                    "'s `{}` param's value should be of type {}, but gets a {}",
                    parameter.name,
                    parameter.type_name(),
                    found.type_name()
                ))
            })
        };
        parameters.iter().map(value).collect()
    }

    fn check_counts(&self) -> Result<(), Diagnostic> {
        let Description { inputs, outputs, .. } = self.description;
        let counts = [
            ("input", inputs.len(), self.operator.inputs.len()),
            ("output", outputs.len(), self.operator.outputs.len()),
        ];
        for (what, expected, found) in counts {
            if expected != found {
                let message = format!(" needs {expected} {what} tensors, but gets {found} {what} tensors");
                return Err(self.failed(message));
            }
        }
        for input in &self.operator.inputs {
            if let Some(message) = unsuitable(&input.extents) {
                return Err(self
                    .failed(format_args!("'s tensor `{}` has the shape {:?}: {message}", input.name, input.extents)));
            }
        }
        Ok(())
    }

    fn records(&self, memory: &mut Memory, values: &[ParameterValue]) -> Result<Records, String> {
        let Description { optype, inputs, outputs, parameters, .. } = self.description;
        let mut tensors = Vec::new();
        for (input, ty) in inputs.iter().zip(&self.operator.inputs) {
            let dims = host::extents(memory, &ty.extents)?;
            let known = Some(Known { ty: ty.clone(), dims });
            tensors.push(tensor(memory, &input.name, &ty.name, known, None)?);
        }
        for (output, name) in outputs.iter().zip(&self.operator.outputs) {
            tensors.push(tensor(memory, &output.name, name, None, output.owner)?);
        }
        let parameters = parameters.iter().zip(values);
        let parameters = parameters
            .map(|(parameter, value)| ParameterRecord::new(memory, parameter, value))
            .collect::<Result<_, _>>()?;
        Ok(Records {
            optype: optype.clone(),
            operator_name: self.operator.name.clone(),
            optype_value: host::text(memory, optype)?,
            name_value: host::text(memory, &self.operator.name)?,
            tensors,
            parameters,
        })
    }

    /// Takes an output's type from its variables.
    fn define(&self, machine: &mut Machine<Records>, number: usize) -> Result<(), Diagnostic> {
        let output = &self.description.outputs[number];
        let slots = self.description.program.types[number];
        let mut value = |field: &str, slot| {
            let value = machine.value(slot);
            self.prepared(value.map_err(|message| format!("`{field}` of output '{}': {message}", output.name)))
        };
        let (rank, dims, element) =
            (value("ndim", slots.ndim)?, value("dims", slots.dims)?, value("dtype", slots.dtype)?);
        let ty = self.output_type(machine, number, [rank, dims, element]);
        let ty = self.prepared(ty.map_err(|message| format!("output '{}': {message}", output.name)))?;
        let dims = host::extents(&mut machine.memory, &ty.extents);
        let dims = self.prepared(dims)?;
        let tensor = self.description.inputs.len() + number;
        machine.host.tensors[tensor].known = Some(Known { ty, dims });
        self.prepared(bind_tensor(machine, &self.description.program.layout, tensor))
    }

    fn output_type(
        &self,
        machine: &mut Machine<Records>,
        number: usize,
        [rank, dims, element]: [Value; 3],
    ) -> Result<TensorDescription, String> {
        let output = &self.description.outputs[number];
        let rank = host::integer(rank)?;
        if !(1..=8).contains(&rank) {
            return Err(format!("it has {rank} dimensions, not 1 to 8"));
        }
        let extents = library::shape(&mut machine.memory, rank, host::pointer(dims)?)?;
        if let Some(message) = unsuitable(&extents) {
            return Err(format!("its shape is {extents:?}: {message}"));
        }
        let element = host::integer(element)?;
        let element = usize::try_from(element).ok().filter(|element| *element < ELEMENTS.len());
        Ok(TensorDescription {
            name: self.operator.outputs[number].clone(),
            element: element.ok_or("its dtype isn't one of the element types")?,
            extents,
            is_static: output.is_static,
            memory: output.memory,
        })
    }

    fn view_offset(&self, inference: &Inference, output: usize, owner_offset: u64) -> Result<u64, Diagnostic> {
        let Some(program) = &self.description.offset else { return Ok(0) };
        let mut records = inference.records.clone();
        let tensor = self.description.inputs.len() + output;
        let owner = self.description.outputs[output].owner.unwrap_or(0);
        records.tensors[owner].offset = owner_offset;
        let machine = Machine::new(program.names.slots(), &program.strings, inference.memory.clone(), records);
        let mut machine = self.prepared(machine)?;
        let bound = bind_all(&mut machine, &program.layout, program.wanted, tensor);
        self.prepared(bound)?;
        for statement in &program.snippet.statements {
            match machine.run(statement).map_err(|stop| self.stopped(&program.snippet, stop))? {
                Flow::Return(value) => {
                    let offset = host::count(value).map(|offset| offset as u64);
                    let offset = self.prepared(offset)?;
                    return self.check_view(&machine, (owner, tensor), offset, owner_offset);
                }
                _ => continue,
            }
        }
        Err(self.fault(&program.snippet, usize::MAX, "it ends without `return`"))
    }

    /// The difference of two offsets, if the view lies within its owner.
    fn check_view(
        &self,
        machine: &Machine<Records>,
        (owner, view): (usize, usize),
        offset: u64,
        owner_offset: u64,
    ) -> Result<u64, Diagnostic> {
        let bytes = |number: usize| {
            let known = machine.host.tensors[number].known.as_ref();
            known.map_or(0, |known| known.ty.bytes() as u64)
        };
        let relative = offset.checked_sub(owner_offset);
        let end = relative.and_then(|relative| relative.checked_add(bytes(view)));
        match (relative, end) {
            (Some(relative), Some(end)) if end <= bytes(owner) => Ok(relative),
            _ => {
                let [view, owner] = [view, owner].map(|number| &machine.host.tensors[number].name_text);
                Err(self.failed(format_args!("'s tensor `{view}` doesn't lie within `{owner}`, which it is a view of")))
            }
        }
    }
}

/// Why a shape can't be an operator's.
fn unsuitable(extents: &[i32]) -> Option<&'static str> {
    if !(1..=8).contains(&extents.len()) {
        return Some("tensors have 1 to 8 dimensions here");
    }
    if extents.iter().any(|extent| *extent <= 0) {
        return Some("extents must be positive");
    }
    let product = extents.iter().try_fold(1i32, |product, extent| product.checked_mul(*extent));
    product.is_none().then_some("it has more elements than an int can count")
}

fn tensor(
    memory: &mut Memory,
    argument: &str,
    name: &str,
    known: Option<Known>,
    owner: Option<usize>,
) -> Result<TensorRecord, String> {
    let (arg_name, value) = (host::text(memory, argument)?, host::text(memory, name)?);
    Ok(TensorRecord { arg_name, name_text: name.to_owned(), name: value, known, owner, offset: 0 })
}

/// Gives the variables their values that are known from the start.
fn bind_names(machine: &mut Machine<Records>, description: &Description) -> Result<(), String> {
    let program = &description.program;
    machine.assign(program.layout.operator, Value::Pointer(Pointer::record(Record::Operator, 0)))?;
    for (number, slots) in program.tensor_names.iter().enumerate() {
        machine.assign(slots.name, machine.host.tensors[number].name)?;
        machine.assign(slots.list_entry, Value::Pointer(Pointer::record(Record::ListEntry, number)))?;
    }
    Ok(())
}

fn bind_tensor(machine: &mut Machine<Records>, layout: &Layout, number: usize) -> Result<(), String> {
    let slots = layout.tensors[number];
    machine.assign(slots.entry, Value::Pointer(Pointer::record(Record::TensorEntry, number)))?;
    machine.assign(slots.tensor, Value::Pointer(Pointer::record(Record::Tensor, number)))
}

fn bind_parameter(
    machine: &mut Machine<Records>,
    layout: &Layout,
    number: usize,
    description: &Description,
) -> Result<(), String> {
    let (slots, parameter) = (layout.parameters[number], &description.parameters[number]);
    machine.assign(slots.entry, Value::Pointer(Pointer::record(Record::ParamEntry, number)))?;
    if let Some(name) = &parameter.from_function {
        let value = convert_text(machine, number, name, slots.ty)?;
        machine.host.parameters[number].set(value);
    }
    let record = &machine.host.parameters[number];
    machine.assign(slots.value, record.value(record.view))
}

/// Gives the variables of a later phase their values.
fn bind_all(machine: &mut Machine<Records>, layout: &Layout, wanted: usize, tensor: usize) -> Result<(), String> {
    machine.assign(layout.operator, Value::Pointer(Pointer::record(Record::Operator, 0)))?;
    for number in 0..layout.tensors.len() {
        bind_tensor(machine, layout, number)?;
    }
    for (number, slots) in layout.parameters.iter().enumerate() {
        machine.assign(slots.entry, Value::Pointer(Pointer::record(Record::ParamEntry, number)))?;
        let record = &machine.host.parameters[number];
        machine.assign(slots.value, record.value(record.view))?;
    }
    machine.assign(wanted, Value::Pointer(Pointer::record(Record::TensorEntry, tensor)))
}
