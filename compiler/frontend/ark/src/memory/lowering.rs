//! From a file's operations on memory to operations on values: what an operation reads is found among what was written before,
//! what it writes is remembered under the window that it writes to.

use super::access::{is_active, operands, written};
use super::area::{Area, rows_around, rows_of, share_array};
use super::content::{Content, Extraction, Source, extraction};
use super::external::External;
use super::partition::Partition;
use super::program::{Action, Exchange, Output, Program, Step, ValueId, ValueType};
use crate::check::{Direction, Message, messages};
use crate::model::{DataType, Model, Operation, Tensor};
use mlc_import::Fault;
use mlc_ir::{Code, Diagnostic, Location};

/// Most arrays of different extents that a buffer is written through between two reads.
const MOST_ARRAYS: usize = 64;

/// Makes a program on values of a file. `outputs` are the windows that are read when the run is over.
///
/// # Errors
/// Every operation that can't be put on values, and why.
pub fn lower<'m>(
    model: &'m Model,
    externals: Vec<External>,
    outputs: &[(String, Tensor)],
) -> Result<Program<'m>, Vec<Diagnostic>> {
    let mut lowering = Lowering {
        contents: model.buffers.iter().map(|_| Content::default()).collect(),
        loaded: model.buffers.iter().map(|_| Vec::new()).collect(),
        program: Program::default(),
        operation: None,
        reader: String::new(),
    };
    for external in externals {
        let value = lowering.value(external.window.data_type, &external.window.shape);
        lowering.write(&external.window, value);
        lowering.program.externals.push((external, value));
    }
    let mut faults = Vec::new();
    for operation in model.operations().filter(|operation| is_active(operation)) {
        if let Err(fault) = lowering.lower(model, operation) {
            faults.push(fault);
        }
    }
    lowering.operation = None;
    for (name, window) in outputs {
        lowering.reader.clone_from(name);
        match lowering.read(window) {
            Ok(value) => lowering.program.outputs.push(Output { name: name.clone(), value }),
            Err(fault) => faults.push(told(Location { node: Some(name.clone()), ..Location::default() }, fault)),
        }
    }
    if faults.is_empty() { Ok(lowering.program) } else { Err(faults) }
}

/// A program while it is made.
struct Lowering<'m> {
    /// By buffer.
    contents: Vec<Content<ValueId>>,
    /// Windows that were read since they were last written, with their values; by buffer.
    loaded: Vec<Vec<(Tensor, ValueId)>>,
    program: Program<'m>,
    /// The operation that reads, and its name or that of the output that is read.
    operation: Option<&'m Operation>,
    reader: String,
}

impl<'m> Lowering<'m> {
    fn lower(&mut self, model: &'m Model, operation: &'m Operation) -> Result<(), Diagnostic> {
        self.operation = Some(operation);
        self.reader = operation.name.to_string();
        if matches!(&*operation.kind, "DeviceSync" | "SendDone") {
            // Data alone say in which order ranks go.
            return Ok(());
        }
        let messages = messages(model, operation)?;
        let reads = operands(model, operation).into_iter().map(|tensor| model.tensor(tensor));
        let values: Result<Vec<ValueId>, Fault> = reads.map(|window| self.read(window)).collect();
        // What reads of memory saw is fixed before the operation writes.
        let mut results = Vec::new();
        for tensor in written(model, operation) {
            let window = model.tensor(tensor);
            let value = self.value(window.data_type, &window.shape);
            self.write(window, value);
            results.push(value);
        }
        let mut operands = values.map_err(|fault| told(operation.location(), fault))?;
        match &*operation.kind {
            "Send" | "SendPacket" => self.exchange(&messages, &operands),
            "Recv" | "RecvPacket" => self.exchange(&messages, &results),
            _ => {
                let sends = messages.iter().take_while(|message| message.direction == Direction::Send).count();
                let (early, messages) = messages.split_at(sends);
                let own = operands.first().copied().unwrap_or_default();
                self.exchange(early, &vec![own; sends]);
                let receives = messages.iter().take_while(|message| message.direction == Direction::Receive).count();
                let (received, late) = messages.split_at(receives);
                let blocks: Vec<ValueId> = received
                    .iter()
                    .map(|message| model.tensor(message.tensor))
                    .map(|block| self.value(block.data_type, &block.shape))
                    .collect();
                self.exchange(received, &blocks);
                operands.extend(blocks);
                if &*operation.kind == "AllReducePacketFused" {
                    // In the order of ranks, so that all of them come to the same sum.
                    let lower = received.iter().filter(|message| message.peer < model.rank).count();
                    operands[..=lower].rotate_left(1);
                }
                let sent = vec![results.first().copied().unwrap_or_default(); late.len()];
                let (action, name) = (Action::Compute, self.reader.clone());
                self.program.steps.push(Step { action, operation: Some(operation), name, operands, results });
                self.exchange(late, &sent);
            }
        }
        Ok(())
    }

    /// Notes messages, each with its value.
    fn exchange(&mut self, messages: &[Message], values: &[ValueId]) {
        for (&message, &value) in messages.iter().zip(values) {
            self.program.exchanges.push(Exchange { message, value, name: self.reader.clone() });
        }
    }

    /// A value that nothing makes yet.
    fn value(&mut self, data_type: DataType, shape: &[usize]) -> ValueId {
        let value = ValueId(self.program.types.len() as u32);
        self.program.types.push(ValueType { data_type, shape: shape.into() });
        value
    }

    fn write(&mut self, window: &Tensor, value: ValueId) {
        let buffer = window.buffer.0 as usize;
        self.loaded[buffer].retain(|(loaded, _)| !loaded.overlaps(window));
        self.contents[buffer].write(window.clone(), value);
    }

    /// What a window holds now.
    fn read(&mut self, window: &Tensor) -> Result<ValueId, Fault> {
        let buffer = window.buffer.0 as usize;
        let same =
            |(loaded, _): &&(Tensor, ValueId)| loaded.same_window(window) && loaded.data_type == window.data_type;
        if let Some(&(_, value)) = self.loaded[buffer].iter().find(same) {
            return Ok(value);
        }
        let content = &self.contents[buffer];
        let source = content.source(window, content.len());
        let is_assembled = matches!(source, Source::Parts(..) | Source::Mixed(_));
        let value = self.assemble(window, source, 0)?;
        if is_assembled && self.contents[buffer].would_hide(window) {
            self.contents[buffer].write(window.clone(), value);
        } else {
            self.loaded[buffer].push((window.clone(), value));
        }
        Ok(value)
    }

    /// Puts the elements of a window together. `arrays` is through how many arrays the buffer was seen so far.
    fn assemble(&mut self, window: &Tensor, source: Source, arrays: usize) -> Result<ValueId, Fault> {
        match source {
            Source::Untouched => Ok(self.step(Action::Zeros, Vec::new(), window.data_type, &window.shape)),
            Source::One(number, extraction) => Ok(self.extract_write(window, number, extraction)),
            Source::Parts(partition, writes) => {
                let sources = self.writes(window, &writes);
                self.join(window, &partition, &sources)
            }
            Source::Mixed(visible) => self.assemble_mixed(window, visible[0], arrays),
        }
    }

    /// Puts the elements of a window together whose latest write went through a window of another array: all rows of that array
    /// around it, and out of them the window.
    fn assemble_mixed(&mut self, window: &Tensor, latest: usize, arrays: usize) -> Result<ValueId, Fault> {
        if arrays == MOST_ARRAYS {
            let message = format!("the memory is written through windows of more than {MOST_ARRAYS} arrays");
            return Err(Fault::new(Code::NumberOutOfRange, message));
        }
        let content = &self.contents[window.buffer.0 as usize];
        let array = &content.get(latest).window;
        let around = if share_array(array, window) { window.clone() } else { rows_around(array, &rows_of(window)) };
        let (mut writes, mut older) = (Vec::new(), 0);
        for number in (0..=latest).rev().filter(|&number| content.get(number).window.overlaps(&around)) {
            if !share_array(&content.get(number).window, &around) {
                older = number + 1;
                break;
            }
            writes.push(number);
        }
        let mut areas: Vec<Area> = writes.iter().map(|&number| Area::of(&content.get(number).window)).collect();
        let mut partition = Partition::of(&Area::of(&around), &areas).ok_or_else(too_many_parts)?;
        let mut sources = self.writes(window, &writes);
        if older > 0 && !partition.is_written() {
            let source = self.contents[window.buffer.0 as usize].source(&around, older);
            let below = self.assemble(&around, source, arrays + 1)?;
            areas.push(Area::of(&around));
            sources.push((around.clone(), below));
            partition = Partition::of(&Area::of(&around), &areas).ok_or_else(too_many_parts)?;
        }
        let value = self.join(&around, &partition, &sources)?;
        let extraction = extraction(&around, window).ok_or_else(too_many_parts)?;
        Ok(self.extract(window, &around, value, extraction))
    }

    /// Writes to the buffer of a window, by their numbers.
    fn writes(&self, window: &Tensor, numbers: &[usize]) -> Vec<(Tensor, ValueId)> {
        let content = &self.contents[window.buffer.0 as usize];
        let write = |&number: &usize| (content.get(number).window.clone(), content.get(number).value);
        numbers.iter().map(write).collect()
    }

    /// The elements of a window from the parts that others have of it.
    fn join(
        &mut self,
        window: &Tensor,
        partition: &Partition,
        sources: &[(Tensor, ValueId)],
    ) -> Result<ValueId, Fault> {
        match partition {
            Partition::Untouched(area) => Ok(self.step(Action::Zeros, Vec::new(), window.data_type, &area.sizes)),
            Partition::Written { write, area } => {
                let (outer, value) = &sources[*write];
                let (offsets, shape) = (area.starts.clone(), area.sizes.clone());
                let part = Tensor { offsets, padded_shape: shape.clone(), shape, ..window.clone() };
                let extraction = extraction(outer, &part).ok_or_else(too_many_parts)?;
                Ok(self.extract(&part, outer, *value, extraction))
            }
            Partition::Joined { axis, parts } => {
                let parts = parts.iter().map(|part| self.join(window, part, sources));
                let parts = parts.collect::<Result<Vec<_>, Fault>>()?;
                let mut shape = self.program.ty(parts[0]).shape.clone();
                shape[*axis] = parts.iter().map(|&part| self.program.ty(part).shape[*axis]).sum();
                Ok(self.step(Action::Join(*axis), parts, window.data_type, &shape))
            }
        }
    }

    fn extract_write(&mut self, window: &Tensor, number: usize, extraction: Extraction) -> ValueId {
        let write = self.contents[window.buffer.0 as usize].get(number);
        let (outer, value) = (write.window.clone(), write.value);
        self.extract(window, &outer, value, extraction)
    }

    /// The elements of a window out of those of another one of the same buffer.
    fn extract(&mut self, window: &Tensor, outer: &Tensor, value: ValueId, extraction: Extraction) -> ValueId {
        match extraction {
            Extraction::Whole => self.view(value, window.data_type, &window.shape),
            Extraction::Box(starts) => {
                let part = self.slice(value, starts, &window.shape);
                self.view(part, window.data_type, &window.shape)
            }
            Extraction::Rows => {
                let (bytes, rows) = (outer.interval(), rows_of(window));
                let size = outer.data_type.size();
                let is_whole = (rows.start - bytes.start) % size == 0 && rows.len() % size == 0;
                let unit = if is_whole { outer.data_type } else { DataType::Byte };
                let size = unit.size();
                let flat = self.view(value, unit, &[bytes.len() / size]);
                let part = self.slice(flat, vec![(rows.start - bytes.start) / size], &[rows.len() / size]);
                let mut extents = window.storage.clone();
                extents[0] = window.shape[0];
                let array = self.view(part, window.data_type, &extents);
                let mut starts = window.offsets.to_vec();
                starts[0] = 0;
                self.slice(array, starts, &window.shape)
            }
        }
    }

    fn view(&mut self, value: ValueId, data_type: DataType, shape: &[usize]) -> ValueId {
        let ty = self.program.ty(value);
        if ty.data_type == data_type && ty.shape[..] == *shape {
            return value;
        }
        self.step(Action::View, vec![value], data_type, shape)
    }

    fn slice(&mut self, value: ValueId, starts: Vec<usize>, sizes: &[usize]) -> ValueId {
        let ty = self.program.ty(value).clone();
        if ty.shape[..] == *sizes {
            return value;
        }
        self.step(Action::Slice(starts), vec![value], ty.data_type, sizes)
    }

    fn step(&mut self, action: Action, operands: Vec<ValueId>, data_type: DataType, shape: &[usize]) -> ValueId {
        let result = self.value(data_type, shape);
        let results = vec![result];
        let name = self.reader.clone();
        self.program.steps.push(Step { action, operation: self.operation, name, operands, results });
        result
    }
}

/// A finding at a place.
fn told(location: Location, fault: Fault) -> Diagnostic {
    Diagnostic::error(fault.code, location, fault.message)
}

fn too_many_parts() -> Fault {
    Fault::new(Code::NumberOutOfRange, "the memory is put together of too many parts")
}
