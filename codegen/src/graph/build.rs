//! From a lowered program to the executor's graph, and how the arguments of each call become those of its kernels. A part of the program
//! that isn't inside of another one is a call: a kernel, or a loop or a stripe with all that it runs.

use super::storage::{Life, assign};
use super::{Entry, ExecutorGraph, ExecutorNode};
use crate::lower::homes::{BufferId, BufferKind};
use crate::lower::{Binding, Group, Layout, Part, Program, entries};
use crate::module::Port;
use mlc_ir::{Attribute, Code, DType, Diagnostic, Location};
use std::collections::{BTreeMap, BTreeSet};

/// What a parameter of a kernel or a loop is, in a function of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The data of a tensor argument.
    Tensor(usize),
    /// Something that the code itself holds: a constant, a state or a variable of a loop.
    Own,
    /// An offset in the function's scratch memory in bytes.
    Scratch(usize),
    /// Nothing: a packed function takes its scratch memory from the runtime by itself.
    Nothing,
}

/// A function of the graph: a part of the program under the packed calling convention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// C symbol.
    pub symbol: String,
    /// For each binding of the part and those inside of it, by position and number, what it is.
    pub places: BTreeMap<(usize, usize), Place>,
    /// Number of tensors that it takes, inputs before outputs.
    pub tensors: usize,
    /// Bytes of scratch memory.
    pub scratch: usize,
}

/// Gives names and numbers to what a graph refers to.
pub(crate) trait Registry {
    /// The number of a constant that is a parameter of the graph; `None` where constants are part of the code.
    fn parameter(&mut self, name: &str, value: &Attribute) -> Option<usize>;
    /// A new symbol for the function of a part.
    fn symbol(&mut self, part: &Part) -> String;
}

/// Builds the graph of a program. Every part is a call, in the order of the parts.
///
/// # Errors
/// When an output has no elements, so that nothing computes it.
pub(crate) fn build(
    program: &Program,
    inputs: &[Port],
    outputs: &[Port],
    alignment: usize,
    registry: &mut dyn Registry,
) -> Result<(ExecutorGraph, Vec<Call>), Diagnostic> {
    let mut builder = GraphBuilder::new(program, alignment);
    for port in inputs {
        builder.given(&port.name, port.ty.dtype, &port.ty.shape);
    }
    builder.parameters(registry);
    let (mut position, mut calls) = (0, Vec::new());
    for part in program.parts.iter().filter(|part| part.positions() > 0) {
        calls.push(builder.call(position, part, outputs, registry));
        position += part.positions();
    }
    for (number, port) in outputs.iter().enumerate() {
        let written = builder.latest.iter().find(|(id, _)| program.buffers[**id].kind == BufferKind::Output(number));
        let Some((_, &entry)) = written else {
            let message = format!("the output '{}' has no elements, which the graph executor can't express", port.name);
            return Err(Diagnostic::error(Code::TargetLimit, Location::default(), message)
                .with_help("compile the model for the executor 'aot'"));
        };
        builder.graph.heads.push(entry);
    }
    Ok((builder.graph, calls))
}

struct GraphBuilder<'a> {
    program: &'a Program,
    alignment: usize,
    graph: ExecutorGraph,
    entries: usize,
    storages: usize,
    /// Block of each buffer of the arena.
    blocks: BTreeMap<BufferId, usize>,
    /// The entry that holds what was written into a buffer last.
    latest: BTreeMap<BufferId, usize>,
    /// Entry of each parameter, by the number of its constant.
    parameters: BTreeMap<usize, usize>,
    /// Number of the constant of each binding that is a parameter, by position and number.
    constants: BTreeMap<(usize, usize), usize>,
}

impl<'a> GraphBuilder<'a> {
    fn new(program: &'a Program, alignment: usize) -> GraphBuilder<'a> {
        let local = |group: &&Group| {
            let is_local = |locals: &BTreeSet<BufferId>| group.members.iter().all(|member| locals.contains(member));
            program.parts.iter().filter_map(Part::locals).any(is_local)
        };
        let groups: Vec<&Group> = program.layout.groups.iter().filter(|group| !local(group)).collect();
        let lives: Vec<Life> =
            groups.iter().map(|group| Life { bytes: group.bytes, first: group.first, last: group.last }).collect();
        let numbers = assign(&lives);
        let members = groups.iter().zip(&numbers).flat_map(|(group, &number)| {
            let members = group.members.iter();
            members.map(move |&member| (member, number))
        });
        let blocks = members.collect();
        let storages = numbers.iter().max().map_or(0, |largest| largest + 1);
        let graph = ExecutorGraph::default();
        let (latest, parameters, constants) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        GraphBuilder { program, alignment, graph, entries: 0, storages, blocks, latest, parameters, constants }
    }

    fn new_storage(&mut self) -> usize {
        self.storages += 1;
        self.storages - 1
    }

    /// An input or a parameter; returns its entry.
    fn given(&mut self, name: &str, dtype: DType, shape: &[usize]) -> usize {
        let storage = self.new_storage();
        let outputs = vec![Entry { dtype, shape: extents(shape), storage }];
        self.graph.nodes.push(ExecutorNode { name: name.to_owned(), calls: false, inputs: Vec::new(), outputs });
        self.entries += 1;
        self.entries - 1
    }

    fn parameters(&mut self, registry: &mut dyn Registry) {
        for entry in self.program.entries() {
            for (number, binding) in entry.part.bindings().iter().enumerate() {
                let Some((name, value)) = self.constant(binding) else { continue };
                let Some(constant) = registry.parameter(&name, &value) else { continue };
                self.constants.insert((entry.first, number), constant);
                if !self.parameters.contains_key(&constant) {
                    let name = format!("p{}", self.parameters.len());
                    let entry = self.given(&name, value.ty().dtype, &value.ty().shape);
                    self.parameters.insert(constant, entry);
                    self.graph.parameters.push(constant);
                }
            }
        }
    }

    fn constant(&self, binding: &Binding) -> Option<(String, Attribute)> {
        match binding {
            Binding::Packed { name, value } => Some((name.clone(), value.values()?.clone())),
            Binding::Buffer { buffer, .. } => {
                let buffer = &self.program.buffers[*buffer];
                let BufferKind::Constant(value) = &buffer.kind else { return None };
                Some((buffer.values.first().cloned().unwrap_or_default(), value.clone()))
            }
            Binding::Scratch { .. } => None,
        }
    }

    fn call(&mut self, position: usize, part: &Part, ports: &[Port], registry: &mut dyn Registry) -> Call {
        let mut arguments = Arguments::default();
        let own = Layout::within(part, position, &self.program.buffers, self.alignment);
        let scratch = own.plan.arena_bytes;
        let mut packed_scratch = 0;
        // An output's place among the tensors is known when all inputs are.
        let mut places = Vec::new();
        for entry in entries([part], position) {
            for (number, binding) in entry.part.bindings().iter().enumerate() {
                let key = (entry.first, number);
                let place = match binding {
                    Binding::Scratch { bytes, .. } => match own.scratch.get(&key) {
                        Some(&offset) => Slot::Place(Place::Scratch(offset)),
                        None => {
                            packed_scratch = packed_scratch.max(*bytes);
                            Slot::Place(Place::Nothing)
                        }
                    },
                    _ if self.constants.contains_key(&key) => {
                        Slot::Input(arguments.read(self.parameters[&self.constants[&key]]))
                    }
                    Binding::Buffer { buffer, offset, dtype, .. } if own.offsets.contains_key(buffer) => {
                        Slot::Place(Place::Scratch(own.offsets[buffer] + *offset as usize * dtype.size()))
                    }
                    Binding::Buffer { buffer, constant, dtype, .. } if self.is_tensor(*buffer) => {
                        match (constant, self.source(*buffer)) {
                            (true, Some(entry)) => Slot::Input(arguments.read(entry)),
                            (_, earlier) => {
                                arguments.after(earlier);
                                Slot::Output(arguments.write(*buffer, *dtype))
                            }
                        }
                    }
                    _ => Slot::Place(Place::Own),
                };
                places.push((key, place));
            }
        }
        let inputs = arguments.inputs.len();
        let mut outputs = Vec::new();
        for &(buffer, dtype) in &arguments.written {
            outputs.push(self.entry(buffer, dtype, part, ports));
            self.latest.insert(buffer, self.entries + outputs.len() - 1);
        }
        if outputs.is_empty() {
            // A call that only keeps a state; the format knows no call without a result.
            let storage = self.new_storage();
            outputs.push(Entry { dtype: DType::U8, shape: vec![1], storage });
        }
        self.entries += outputs.len();
        self.graph.workspace_bytes = self.graph.workspace_bytes.max(scratch + packed_scratch);
        let tensors = inputs + outputs.len();
        let symbol = registry.symbol(part);
        self.graph.nodes.push(ExecutorNode { name: symbol.clone(), calls: true, inputs: arguments.inputs, outputs });
        let places = places.into_iter().map(|(key, argument)| match argument {
            Slot::Place(place) => (key, place),
            Slot::Input(number) => (key, Place::Tensor(number)),
            Slot::Output(number) => (key, Place::Tensor(inputs + number)),
        });
        Call { symbol, places: places.collect(), tensors, scratch }
    }

    fn is_tensor(&self, buffer: BufferId) -> bool {
        matches!(self.program.buffers[buffer].kind, BufferKind::Input(_) | BufferKind::Output(_) | BufferKind::Arena)
    }

    /// The entry that holds a buffer's contents at this step.
    fn source(&self, buffer: BufferId) -> Option<usize> {
        match self.program.buffers[buffer].kind {
            // Inputs are the first nodes, with one entry each.
            BufferKind::Input(number) => Some(number),
            _ => self.latest.get(&buffer).copied(),
        }
    }

    fn entry(&mut self, buffer: BufferId, dtype: DType, part: &Part, ports: &[Port]) -> Entry {
        let bytes = self.program.buffers[buffer].bytes;
        let storage = match (self.program.buffers[buffer].kind.clone(), self.latest.get(&buffer)) {
            (BufferKind::Arena, _) => self.blocks[&buffer],
            (_, Some(&earlier)) => self.graph.entries().nth(earlier).map_or(0, |entry| entry.storage),
            _ => self.new_storage(),
        };
        if let BufferKind::Output(number) = self.program.buffers[buffer].kind {
            let ty = &ports[number].ty;
            return Entry { dtype: ty.dtype, shape: extents(&ty.shape), storage };
        }
        let results = part.label().into_iter().flat_map(|label| &label.results);
        let whole = results.into_iter().find(|ty| ty.dtype == dtype && ty.bytes() == bytes);
        let shape = whole.map_or_else(|| vec![bytes / dtype.size()], |ty| extents(&ty.shape));
        Entry { dtype, shape, storage }
    }
}

/// Runtimes know no tensors of rank 0.
fn extents(shape: &[usize]) -> Vec<usize> {
    if shape.is_empty() { vec![1] } else { shape.to_vec() }
}

/// What an argument of a kernel is made from.
enum Slot {
    Input(usize),
    Output(usize),
    Place(Place),
}

/// The tensors of a call.
#[derive(Default)]
struct Arguments {
    inputs: Vec<usize>,
    written: Vec<(BufferId, DType)>,
}

impl Arguments {
    /// The number of an entry among the inputs.
    fn read(&mut self, entry: usize) -> usize {
        let known = self.inputs.iter().position(|&input| input == entry);
        known.unwrap_or_else(|| {
            self.inputs.push(entry);
            self.inputs.len() - 1
        })
    }

    /// Makes the call come after the one that made an entry.
    fn after(&mut self, entry: Option<usize>) {
        if let Some(entry) = entry {
            self.read(entry);
        }
    }

    /// The number of a buffer among the outputs.
    fn write(&mut self, buffer: BufferId, dtype: DType) -> usize {
        let known = self.written.iter().position(|&(written, _)| written == buffer);
        known.unwrap_or_else(|| {
            self.written.push((buffer, dtype));
            self.written.len() - 1
        })
    }
}
