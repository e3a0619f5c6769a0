//! The options of `mlc quantize`.

use crate::cli::values::tolerance;
use clap::{Args, ValueEnum};
use mlc_quantize::{Interface, Method};
use std::path::PathBuf;

/// What `mlc quantize --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  mlc quantize model.onnx --calibration inputs -o model.int8.mlc
  mlc quantize model.onnx --calibration inputs --equalise --bias-correction --report report.json
  mlc quantize model.tflite --calibration inputs --max-error 0.02 --interface int8
  mlc compile model.int8.mlc --target cortex-m4

DIR holds the inputs of several runs: .npz archives with an array for each input by its
name; or, for each input, a folder of its name with .npy files, or NAME.npy; or, for a
model with one input, .npy files of any names. An array is one run's, or several runs'
along a leading axis.";

/// How ranges follow from what calibration has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum MethodName {
    /// From the smallest number to the largest
    #[default]
    MinMax,
    /// Without the outermost ten-thousandth of the numbers on either side
    Percentile,
    /// Whatever range keeps the distribution of the numbers best, by relative entropy
    Entropy,
}

impl From<MethodName> for Method {
    fn from(name: MethodName) -> Method {
        match name {
            MethodName::MinMax => Method::MinMax,
            MethodName::Percentile => Method::Percentile,
            MethodName::Entropy => Method::Entropy,
        }
    }
}

/// What the model's inputs and outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum InterfaceName {
    /// Real numbers, as in the model
    #[default]
    Float,
    /// Integers of 8 bits; the archive's header has their scales and zero points
    Int8,
}

impl From<InterfaceName> for Interface {
    fn from(name: InterfaceName) -> Interface {
        match name {
            InterfaceName::Float => Interface::Float,
            InterfaceName::Int8 => Interface::Integers,
        }
    }
}

/// How a model is quantised, and what is written.
#[derive(Debug, Clone, Args)]
pub struct QuantizeOptions {
    /// Folder of typical inputs
    #[arg(long, value_name = "DIR")]
    pub calibration: PathBuf,
    /// Where to write the quantised graph, '-' for standard output [default: the model's name with .int8.mlc in this folder]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// How the range of a tensor follows from what calibration has seen
    #[arg(long, value_enum, default_value_t, value_name = "METHOD")]
    pub method: MethodName,
    /// Even out the channels between two layers first
    #[arg(long)]
    pub equalise: bool,
    /// Let biases make up for the mean error of rounded weights
    #[arg(long)]
    pub bias_correction: bool,
    /// Keep a layer in floating point; a name of the report, or of an operator of the model; may be repeated
    #[arg(long, value_name = "NAME")]
    pub keep: Vec<String>,
    /// Keep as many of the worst layers in floating point as it takes for each output's root mean square of errors to be at most
    /// X times that of its numbers
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub max_error: Option<f64>,
    /// What the inputs and outputs are
    #[arg(long, value_enum, default_value_t, value_name = "TYPE")]
    pub interface: InterfaceName,
    /// Write the model as ONNX, too, with pairs of QuantizeLinear and DequantizeLinear around what is computed with integers
    #[arg(long, value_name = "FILE.onnx")]
    pub qdq: Option<PathBuf>,
    /// Write the report as JSON, too
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}
