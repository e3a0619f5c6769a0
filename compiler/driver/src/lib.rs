//! The driver: the way from a model file to a compiled archive, programs that run it, and the command line over both.
//!
//! [`pipeline`] loads and compiles, [`toolchain`] builds and runs what was compiled, [`cli`] is the command `mlc`. This is the
//! only crate that reads files, prints, starts programs or knows the command line; it holds no knowledge of models itself.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod arrays;
pub mod bundle;
mod calibration;
pub mod cli;
pub mod compare;
pub mod conditioning;
pub mod descriptions;
#[cfg(feature = "onnx")]
mod external;
pub mod files;
#[cfg(any(feature = "lightnet", feature = "onnx"))]
mod folder;
pub mod format;
pub mod functions;
pub mod inputs;
pub mod kernel;
pub mod layers;
pub mod npy;
pub mod pipeline;
pub mod project;
pub mod render;
pub mod report;
mod signatures;
pub mod simulation;
mod steps;
pub mod targets;
pub mod toolchain;
pub mod tuning;
pub mod weights;
