//! An operator of a model: what it is given, and what is inferred of it.

use crate::parameter::ParameterValue;

/// Bytes of an element, by its type's number.
pub(super) const ELEMENT_BYTES: [u8; 11] = [8, 4, 8, 4, 2, 1, 8, 4, 2, 1, 4];

/// The type of a tensor as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorDescription {
    /// Its name in the model.
    pub name: String,
    /// Number of its element type; [`ELEMENT_TYPES`](crate::ELEMENT_TYPES) has their names.
    pub element: usize,
    /// Its extents: 1 to 8 of them, all positive.
    pub extents: Vec<i32>,
    /// Whether it is known before the first run.
    pub is_static: bool,
    /// Number of its type of memory: 0 none, 1 that of a processor.
    pub memory: u8,
}

impl TensorDescription {
    /// Number of elements.
    pub fn length(&self) -> i32 {
        self.extents.iter().product()
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.length() as usize * usize::from(ELEMENT_BYTES[self.element])
    }
}

/// An operator of a model.
#[derive(Debug, Clone)]
pub struct OperatorInstance {
    /// Its name in the model.
    pub name: String,
    /// The tensors that go in, in the order of the description.
    pub inputs: Vec<TensorDescription>,
    /// Names of the tensors that come out, in the order of the description.
    pub outputs: Vec<String>,
    /// Values of parameters by name; those that have a default can be left out.
    pub parameters: Vec<(String, ParameterValue)>,
}
