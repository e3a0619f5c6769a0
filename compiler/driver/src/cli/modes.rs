//! What the user says of generated code in a word.

use clap::ValueEnum;
use mlc_codegen::FloatingPoint;
use mlc_ir::{DType, Objective};
use mlc_passes::Reference;

/// How closely code keeps to floating-point operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Fp {
    /// No rewriting that rounds otherwise, sums in the order of their elements, every step rounded to its type, functions of
    /// the C library, no contraction to multiply-adds
    Strict,
    /// Whatever is faster and differs in rounding only
    #[default]
    Fast,
}

impl From<Fp> for FloatingPoint {
    fn from(fp: Fp) -> FloatingPoint {
        match fp {
            Fp::Strict => FloatingPoint::Strict,
            Fp::Fast => FloatingPoint::Fast,
        }
    }
}

/// What defines how the sums of quantised operators are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Int8Reference {
    /// Reference kernels of TensorFlow Lite Micro: factors in fixed point, rounded twice
    Tflm,
    /// The same, built to round once, halves upwards
    TfliteSingleRounding,
    /// The ONNX standard: factors in single precision, halves to even
    Onnx,
}

impl From<Int8Reference> for Reference {
    fn from(reference: Int8Reference) -> Reference {
        match reference {
            Int8Reference::Tflm => Reference::Tflm,
            Int8Reference::TfliteSingleRounding => Reference::TfliteSingleRounding,
            Int8Reference::Onnx => Reference::Onnx,
        }
    }
}

/// What code is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Optimize {
    /// Speed, whatever memory it takes
    Speed,
    /// Small code, at up to 1.6 times the time
    Size,
    /// Little memory that can be written
    Ram,
    /// Speed, and small code and little memory where they cost next to nothing
    Balanced,
}

/// What constant weights are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WeightsType {
    /// Halves, with 11 bits of precision and numbers up to 65504
    F16,
    /// The upper halves of singles, with 8 bits of precision
    Bf16,
}

impl From<WeightsType> for DType {
    fn from(weights_type: WeightsType) -> DType {
        match weights_type {
            WeightsType::F16 => DType::F16,
            WeightsType::Bf16 => DType::Bf16,
        }
    }
}

impl From<Optimize> for Objective {
    fn from(optimize: Optimize) -> Objective {
        match optimize {
            Optimize::Speed => Objective::Speed,
            Optimize::Size => Objective::Size,
            Optimize::Ram => Objective::Ram,
            Optimize::Balanced => Objective::Balanced,
        }
    }
}

/// A picture of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// The optimised graph
    Graph,
    /// The memory plan
    Memory,
    /// Kernels beside what the machine can do
    Roofline,
}

/// What `mlc compile` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// The archive
    Tar,
    /// The archive's files in a folder
    Dir,
    /// The optimised graph as text
    Ir,
    /// The generated C sources and header, in a folder
    C,
}

/// A file of an archive that says what the model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArchivePart {
    /// The Relay text; the parameters are bound to its variables, and checked by running the archive's code
    Relay,
}
