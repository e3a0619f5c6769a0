//! What a model's file says of its interface without a word of the user's.

use crate::memory::{self, External};
use crate::model::{DataType, Extents, Model, Tensor};

/// Memory of a model that data go into, or come out of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The place that it is: `tensor:ID` or `buffer:ID`.
    pub place: String,
    /// Type of the elements.
    pub data_type: DataType,
    /// Extents.
    pub shape: Extents,
    /// What the elements take.
    pub bytes: usize,
    /// Whether the program writes to it.
    pub is_written: bool,
}

impl Port {
    fn of(name: String, place: String, window: &Tensor, is_written: bool) -> Port {
        let (data_type, shape, bytes) = (window.data_type, window.shape.clone(), window.bytes());
        Port { name, place, data_type, shape, bytes, is_written }
    }
}

/// The buffers of a model that get their content from outside.
pub fn external_ports(model: &Model) -> Vec<Port> {
    let port = |external: External| {
        let place = external.number_name(model).replacen('.', ":", 1);
        Port::of(external.name, place, &external.window, external.is_written)
    };
    memory::externals(model, &[]).into_iter().map(port).collect()
}

/// The tensors of a model that are outputs if the user names no others.
pub fn output_ports(model: &Model) -> Vec<Port> {
    let port = |(name, tensor)| {
        let window = model.tensor(tensor);
        Port::of(name, format!("tensor:{}", window.id), window, false)
    };
    memory::outputs(model).into_iter().map(port).collect()
}
