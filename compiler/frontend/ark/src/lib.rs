//! The ARK format: JSON texts in which operations read and write windows of buffers, one file for each rank of a program.
//!
//! [`read()`] makes a [`Model`] of a file of any dialect and checks all that the format demands, [`import`] makes a graph of a model,
//! and [`write()`] a file. Nothing here opens one.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod check;
mod import;
mod memory;
pub mod model;
mod overlap;
mod read;
mod window;
mod write;

pub use check::{Direction, Message, messages};
pub use import::{Port, external_ports, import, operator_support, output_ports};
pub use model::{Dialect, Model};
pub use read::{read, read_with};
pub use write::{Form, write};
