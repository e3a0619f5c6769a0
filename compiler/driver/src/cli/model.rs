//! The model that a command works on, and what the user says of it.

use super::bindings::{BindingOptions, NamedPlace};
use super::interface::InterfaceOptions;
use super::modes::ArchivePart;
use super::operators::OperatorOptions;
use super::values::{dimension, input_dtype, input_shape, input_value};
use crate::format::Format;
use clap::Args;
use mlc_ir::DType;
use std::path::PathBuf;

/// A model file.
#[derive(Debug, Clone, Args)]
pub struct Model {
    /// The model file; a PNNX model is given by its .param file
    #[arg(value_name = "MODEL")]
    pub path: PathBuf,
    /// Format of the model, if its content doesn't tell
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// File of the weights, if it isn't beside the model; with several ranks R:FILE for rank R, may be repeated then
    #[arg(long, value_name = "FILE")]
    pub weights: Vec<PathBuf>,
    /// File of the parameters of a Relay text (.params), bound to the variables of @main by name
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Take the model of an archive from this file in it, instead of from its code
    #[arg(long, value_enum, value_name = "FILE")]
    pub from: Option<ArchivePart>,
    /// Shape of an input that the model leaves open, such as 'image=1,3,224,224'; may be repeated
    #[arg(long, value_name = "NAME=d,d,...", value_parser = input_shape)]
    pub input_shape: Vec<(String, Vec<usize>)>,
    /// Data type of what an input is given, such as 'image=uint8', for models that take any; may be repeated
    #[arg(long, value_name = "NAME=TYPE", value_parser = input_dtype)]
    pub input_dtype: Vec<(String, DType)>,
    /// Array of what an input always is, such as 'size=size.npy', for models whose shapes depend on it; it needs no --input then; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = input_value)]
    pub input_value: Vec<(String, PathBuf)>,
    /// Extent of a dimension that the model leaves open by name, such as 'batch=1'; may be repeated
    #[arg(long = "dim", value_name = "NAME=N", value_parser = dimension)]
    pub dimensions: Vec<(String, usize)>,
    /// What the model's file leaves out.
    #[command(flatten)]
    pub bindings: BindingOptions,
    /// What becomes of its inputs and outputs.
    #[command(flatten)]
    pub interface: InterfaceOptions,
    /// Operators that mlc doesn't have.
    #[command(flatten)]
    pub operators: OperatorOptions,
    /// Outputs that the user names: the command's own option has them.
    #[arg(skip)]
    pub outputs: Vec<NamedPlace>,
}
