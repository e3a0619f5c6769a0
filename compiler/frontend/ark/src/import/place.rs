//! What the user's words for memory mean: `buffer:3`, `tensor:17`, `name:softmax`.

use crate::memory::binding;
use crate::model::{BufferIndex, Model, Operation, Tensor, TensorIndex};
use mlc_import::Fault;
use mlc_ir::Code;

/// A window of memory that the user means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub window: Tensor,
    /// The tensor of the file that it is; `None` for a whole buffer.
    pub tensor: Option<u64>,
}

impl Place {
    /// The memory.
    pub fn buffer(&self) -> BufferIndex {
        self.window.buffer
    }

    /// The place that a text means.
    ///
    /// # Errors
    /// When the text has another form, or the model doesn't have that memory, or it is another rank's.
    pub fn parse(model: &Model, text: &str) -> Result<Place, Fault> {
        let (kind, what) = text.split_once(':').unwrap_or(("", text));
        let number = || {
            what.parse::<u64>().map_err(|_| mismatch(format!("the place '{text}' must have a number behind the colon")))
        };
        let place = match kind {
            "buffer" => Self::of_buffer(model, number()?),
            "tensor" => Self::of_tensor(model, number()?),
            "name" => return Self::of_name(model, what).and_then(Self::local(model)),
            _ => {
                return Err(mismatch(format!("'{text}' is no place of memory"))
                    .with_help("it has the form buffer:ID, tensor:ID or name:NAME"));
            }
        };
        let place = place.ok_or_else(|| mismatch(format!("the model has no {kind} {what}")))?;
        Self::local(model)(place)
    }

    fn local(model: &Model) -> impl Fn(Place) -> Result<Place, Fault> {
        |place| match model.buffer(place.buffer()).remote {
            None => Ok(place),
            Some(rank) => Err(mismatch(format!("that memory is rank {rank}'s"))),
        }
    }

    fn of_buffer(model: &Model, id: u64) -> Option<Place> {
        let buffer = model.buffers.iter().position(|buffer| buffer.id == id)?;
        let (window, tensor) = binding(model, BufferIndex(buffer as u32))?;
        Some(Place { window, tensor })
    }

    fn of_tensor(model: &Model, id: u64) -> Option<Place> {
        let window = model.tensors.iter().find(|tensor| tensor.id == id)?.clone();
        Some(Place { window, tensor: Some(id) })
    }

    /// The first result of the operation of a name.
    fn of_name(model: &Model, name: &str) -> Result<Place, Fault> {
        let named = model.operations().filter(|operation| &*operation.name == name);
        let found: Vec<(&Operation, TensorIndex)> =
            named.filter_map(|operation| Some((operation, *operation.results.first()?))).collect();
        match found[..] {
            [(_, result)] => {
                let window = model.tensor(result).clone();
                Ok(Place { tensor: Some(window.id), window })
            }
            [] => Err(mismatch(format!("no operation that has a result is called '{name}'"))),
            _ => {
                let places: Vec<String> =
                    found.iter().map(|(_, result)| format!("tensor:{}", model.tensor(*result).id)).collect();
                Err(mismatch(format!("{} operations are called '{name}'", found.len()))
                    .with_help(format!("name the tensor: {}", places.join(", "))))
            }
        }
    }
}

pub fn mismatch(message: String) -> Fault {
    Fault::new(Code::OptionMismatch, message)
}
