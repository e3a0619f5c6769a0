//! The buffers whose content comes from outside: inputs and weights. The file doesn't say which they are; what reads memory that
//! nothing has written does.

use super::access::{is_active, operands, written};
use super::content::Content;
use crate::model::{BufferIndex, Extents, Model, Operation, Tensor, TensorIndex};
use indexmap::IndexMap;

/// A buffer whose content comes from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct External {
    /// Its name.
    pub name: String,
    /// The memory.
    pub buffer: BufferIndex,
    /// The window that what comes from outside fills; the rest is zeros.
    pub window: Tensor,
    /// The tensor of the file that is that window; `None` when it is the whole buffer.
    pub tensor: Option<u64>,
    /// Whether the program writes to it.
    pub is_written: bool,
}

impl External {
    /// The name that is always understood: by the tensor's number in the file, or the buffer's.
    pub fn number_name(&self, model: &Model) -> String {
        match self.tensor {
            Some(id) => format!("tensor.{id}"),
            None => self.buffer_name(model),
        }
    }

    /// The name by the number of the buffer.
    pub fn buffer_name(&self, model: &Model) -> String {
        format!("buffer.{}", model.buffer(self.buffer).id)
    }
}

/// What a file says of its buffers.
struct Uses<'m> {
    /// The first declaration of each buffer: its name and its tensor.
    declarations: IndexMap<BufferIndex, (&'m Operation, TensorIndex)>,
    /// Tensors by buffer, in the order of execution.
    tensors: IndexMap<BufferIndex, Vec<TensorIndex>>,
    /// The tensor that is first read of each buffer.
    first_reads: IndexMap<BufferIndex, TensorIndex>,
}

impl<'m> Uses<'m> {
    fn of(model: &'m Model) -> Self {
        let mut uses = Uses { declarations: IndexMap::new(), tensors: IndexMap::new(), first_reads: IndexMap::new() };
        let buffer = |tensor: TensorIndex| model.tensor(tensor).buffer;
        for operation in model.operations() {
            if let (true, Some(&result)) = (operation.is_declaration(), operation.results.first()) {
                uses.declarations.entry(buffer(result)).or_insert((operation, result));
            }
            let all = operation.reads.iter().chain(&operation.writes).chain(&operation.results);
            for &tensor in all {
                uses.tensors.entry(buffer(tensor)).or_default().push(tensor);
            }
            for tensor in operands(model, operation).into_iter().filter(|_| is_active(operation)) {
                uses.first_reads.entry(buffer(tensor)).or_insert(tensor);
            }
        }
        uses
    }

    /// The window of a buffer that data from outside fill, and the tensor of the file that is that window.
    fn binding(&self, model: &Model, buffer: BufferIndex) -> Option<(Tensor, Option<u64>)> {
        if let Some(&(_, tensor)) = self.declarations.get(&buffer) {
            let tensor = model.tensor(tensor);
            return Some((tensor.clone(), Some(tensor.id)));
        }
        let tensors = self.tensors.get(&buffer)?;
        let first = model.tensor(*tensors.first()?);
        let alike = |&tensor: &TensorIndex| {
            let tensor = model.tensor(tensor);
            tensor.same_window(first) && tensor.data_type == first.data_type
        };
        if tensors.iter().all(alike) {
            return Some((first.clone(), Some(first.id)));
        }
        let read = self.first_reads.get(&buffer).map_or(first, |&tensor| model.tensor(tensor));
        let offsets = Extents::from_elem(0, read.rank());
        let shape = read.storage.clone();
        Some((Tensor { offsets, padded_shape: shape.clone(), shape, ..read.clone() }, None))
    }
}

/// The window that stands for all of a buffer, and the tensor of the file that is that window.
pub fn binding(model: &Model, buffer: BufferIndex) -> Option<(Tensor, Option<u64>)> {
    Uses::of(model).binding(model, buffer)
}

/// The buffers of this rank that come from outside, in the file's order; `further` ones are taken for such in any case.
pub fn externals(model: &Model, further: &[BufferIndex]) -> Vec<External> {
    let mut contents: Vec<Content<()>> = model.buffers.iter().map(|_| Content::default()).collect();
    let mut external: Vec<bool> = model.buffers.iter().map(|buffer| buffer.is_external).collect();
    let mut is_written = vec![false; model.buffers.len()];
    for operation in model.operations().filter(|operation| is_active(operation)) {
        for tensor in operands(model, operation) {
            let tensor = model.tensor(tensor);
            let buffer = tensor.buffer.0 as usize;
            external[buffer] = external[buffer] || !contents[buffer].is_written(tensor);
        }
        for tensor in written(model, operation) {
            let tensor = model.tensor(tensor);
            let buffer = tensor.buffer.0 as usize;
            contents[buffer].write(tensor.clone(), ());
            is_written[buffer] = true;
        }
    }
    for buffer in further {
        external[buffer.0 as usize] = true;
    }
    let uses = Uses::of(model);
    let indices = (0..model.buffers.len() as u32).map(BufferIndex);
    let found = indices.filter(|buffer| external[buffer.0 as usize] && model.buffer(*buffer).remote.is_none());
    let bound: Vec<External> = found
        .filter_map(|buffer| {
            let (window, tensor) = uses.binding(model, buffer)?;
            let name = uses.declarations.get(&buffer).map_or("", |(operation, _)| &operation.name);
            Some(External { name: name.to_owned(), buffer, window, tensor, is_written: is_written[buffer.0 as usize] })
        })
        .collect();
    let unique = |name: &str| bound.iter().filter(|external| external.name == name).count() == 1;
    let named = bound.iter().map(|external| match &*external.name {
        name if !name.is_empty() && unique(name) => external.clone(),
        _ => External { name: external.number_name(model), ..external.clone() },
    });
    named.collect()
}
