//! The way from a model file to an archive: load, optimise, generate, pack. No step keeps state outside of its values, so
//! that tests and other programs can call them side by side.

mod compile;
mod failure;
mod fit;
#[cfg(feature = "relay")]
mod from_relay;
pub mod frontends;
mod levels;
mod load;
mod model;
mod optimized;
mod options;

pub use compile::{Compiled, compile, files_of, model_name, write_archive, write_files};
pub use failure::Failure;
pub use fit::explore;
pub use load::{detect, load};
pub use model::{LoadOptions, Loaded};
pub use options::CompileOptions;
