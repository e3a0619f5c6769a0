//! The way from a model file to an archive: load, optimise, generate, pack. No step keeps state outside of its values, so
//! that tests and other programs can call them side by side.

mod compile;
mod failure;
mod from_relay;
mod load;
mod model;

pub use compile::{CompileOptions, Compiled, compile, files_of, model_name, write_archive, write_files};
pub use failure::Failure;
pub use load::{RawPnnx, detect, load, read_onnx, read_pnnx};
pub use model::{LoadOptions, Loaded};
