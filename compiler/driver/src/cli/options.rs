//! What commands that make code of a model take: what the code is for.

use super::hardware::Memory;
use super::modes::{Fp, Int8Reference, Optimize, WeightsType};
use super::values::{percent, schedule, state};
use clap::Args;
use std::path::PathBuf;

/// What the code is for.
#[derive(Debug, Clone, Args)]
pub struct CodeOptions {
    /// The machine to generate code for; 'mlc targets' lists them [default: generic to compile, else that of --on, or host]
    #[arg(long)]
    pub target: Option<String>,
    /// Limits of the machine's memory.
    #[command(flatten)]
    pub memory: Memory,
    /// How closely the code keeps to the model's floating-point operations
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub fp: Fp,
    /// What defines how sums of 8-bit operators are rounded [default: as the model's format does, tflm for TFLite, else onnx]
    #[arg(long, value_enum, value_name = "REFERENCE")]
    pub int8_reference: Option<Int8Reference>,
    /// What the code is made for [default: balanced for microcontrollers, else speed]
    #[arg(long, value_enum, value_name = "OBJECTIVE")]
    pub optimize: Option<Optimize>,
    /// With --optimize ram, take the smallest program of those that are predicted to take at most so much more time than the fastest
    /// one, such as '10%' [default: the smallest of all]
    #[arg(long, value_name = "P%", value_parser = percent)]
    pub extra_work: Option<u64>,
    /// Have so many threads compute each kernel that is worth it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: u8,
    /// Keep the constant weights of convolutions and matrix products on f32 in half precision; sums stay f32
    #[arg(long, value_enum, value_name = "TYPE")]
    pub weights_type: Option<WeightsType>,
    /// Name of the model in the C interface, such as in tvmgen_NAME_run; repeated for several models
    /// [default: default; for several models the names of their files]
    #[arg(long = "model-name", value_name = "NAME")]
    pub model_names: Vec<String>,
    /// Keep the states of recurrent operators from one run to the next; tvmgen_NAME_reset starts anew
    #[arg(long)]
    pub stateful: bool,
    /// Give an input what an output was at the run before, and zeros at the first; both leave the interface; may be repeated.
    /// The name alone of memory that the model itself updates keeps that from one run to the next
    #[arg(long = "state", value_name = "INPUT[=OUTPUT]", value_parser = state)]
    pub states: Vec<(String, Option<String>)>,
    /// Have a kernel computed by a schedule that 'mlc inspect --schedules' lists, such as 'conv1=tiles' or
    /// 'conv1=tiles:vectors=2', whatever its price; may be repeated
    #[arg(long = "schedule", value_name = "NODE=KIND", value_parser = schedule)]
    pub schedules: Vec<(String, String)>,
    /// Have kernels computed by the schedules that 'mlc tune' has found to be the fastest; those of --schedule go before
    #[arg(long, value_name = "FILE")]
    pub tuning: Option<PathBuf>,
}
