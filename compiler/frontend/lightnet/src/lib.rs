//! LightNet models: JSON, as LightNet's compiler reads and writes it, and the intermediate language (IL), a text with macros that
//! stands for such a JSON file.
//!
//! [`read()`] takes a file of either form apart and checks what can be checked without knowing the operators. [`write()`] writes
//! the JSON of a model. [`import`] makes a graph of it; it alone knows what operators mean. Nothing here opens a file: what a
//! text includes, a caller hands over ([`Includes`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod import;
mod includes;
mod model;
mod place;
mod read;
mod text;
mod write;

pub use import::{Port, import, model_inputs, operator_support};
pub use includes::{Included, Includes, NoIncludes};
pub use model::{Argument, Model, Operator, Parameter, ParameterValue};
pub use place::{Expansion, Place, Spot};
pub use read::read;
pub use write::{Form, write};
