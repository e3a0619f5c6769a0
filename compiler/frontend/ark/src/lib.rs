//! The ARK format: JSON texts in which operations read and write windows of buffers, one file for each rank of a program.
//!
//! [`read()`] makes a [`Model`] of a file of any dialect and checks all that the format demands. [`import`] makes a graph of
//! one. Nothing here opens a file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod check;
mod import;
mod memory;
pub mod model;
mod read;
mod window;

pub use check::{Direction, Message, messages};
pub use import::{import, operator_support};
pub use model::{Dialect, Model};
pub use read::read;
