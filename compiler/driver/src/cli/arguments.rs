//! The arguments of every command. Their documentation here is what `--help` prints.

use super::bindings::{Inputs, Output, OutputOptions, output};
use super::catalogue::{Completions, Explain, Listing, Manual, Ops};
use super::comparison::{LayerOptions, ToleranceOptions};
use super::console::Common;
use super::convert::Convert;
use super::explore::Explore;
use super::hardware::Machine;
use super::model::Model;
use super::modes::{Emit, Optimize, Picture, WeightsType};
use super::operators::OperatorOptions;
use super::opgen::Opgen;
use super::options::CodeOptions;
use super::packaging::Packaging;
use super::project::Project;
use super::quantize::options::{self, QuantizeOptions};
use super::ranks::options::RanksOptions;
use super::results::ResultOptions;
use super::tune::Tune;
use super::values::clock;
use crate::simulation::Link;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Compiles trained models to plain C for embedded systems
///
/// mlc turns a model file into a Model Library Format archive: C99 sources, a header, a Makefile and a description. The
/// archive builds with a C compiler and nothing else, needs no heap and no interpreter, and is the same byte for byte
/// whenever and wherever it is made.
#[derive(Debug, Parser)]
#[command(name = "mlc", version, max_term_width = 100, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of all commands.
    #[command(flatten)]
    pub common: Common,
}

const EXAMPLES: &str = "\
Examples:
  mlc compile model.pnnx.param -o model.tar      C for any machine
  mlc compile model.pnnx.param --target host     C for this machine and its vectors
  mlc run model.pnnx.param --input x.npy         compile, build, run, show outputs
  mlc verify model.pnnx.param                    is the generated code right?
  mlc inspect model.pnnx.param                   what is in the model

Exit status: 0 done; 1 the model or the data is at fault; 2 the command line is.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile a model to an archive of C
    Compile(Compile),
    /// Compile a model, build it, and run it, on this machine or under an emulator of another
    Run(Run),
    /// Measure how long a model takes on this machine
    Bench(Bench),
    /// Check the generated code against the reference evaluator, or against known outputs
    Verify(Verify),
    /// Replay a model of several ranks on paper: what each takes, what waits for what, what is sent
    Simulate(Simulate),
    /// Show what is in a model or an archive
    Inspect(Inspect),
    /// List programs that a model could become, between little memory and little time
    Explore(Explore),
    /// Measure the schedules of a model's kernels on this machine, for 'mlc compile --tuning'
    Tune(Tune),
    /// Make a page about a compiled model: its graph, its memory, its kernels; or compare two
    Report(Report),
    /// Make a model of 8-bit integers from one of floating point and typical inputs
    Quantize(Quantize),
    /// Make a project for a build system around an archive
    Project(Project),
    /// Rewrite a model file in the current form of its format, or as Relay text
    Convert(Convert),
    /// Check descriptions of operators, write them as C, or start a new one
    Opgen(Opgen),
    /// Explain an error code
    Explain(Explain),
    /// List the stages of the optimiser and their rules
    Passes(Listing),
    /// List the operators of the intermediate representation, or those of a format that can be compiled
    Ops(Ops),
    /// List the machines that code can be generated for
    Targets(Listing),
    /// Print what a shell needs to complete mlc's commands and options
    Completions(Completions),
    /// Write pages for 'man'
    Man(Manual),
}

impl Command {
    /// Puts the outputs that the user names to the model that they are of.
    pub(super) fn settle(&mut self) {
        match self {
            Command::Compile(command) => command.model.outputs = Output::places(&command.output),
            Command::Run(command) => command.model.outputs.clone_from(&command.named.outputs),
            Command::Bench(command) => command.model.outputs.clone_from(&command.named.outputs),
            Command::Verify(command) => command.model.outputs.clone_from(&command.named.outputs),
            Command::Inspect(command) => command.model.outputs.clone_from(&command.named.outputs),
            Command::Report(command) => command.model.outputs = Output::places(&command.output),
            _ => {}
        }
    }

    /// What the user says of operators that mlc doesn't have, of commands that read models.
    pub(super) fn operators(&mut self) -> Option<&mut OperatorOptions> {
        match self {
            Command::Compile(command) => Some(&mut command.model.operators),
            Command::Run(command) => Some(&mut command.model.operators),
            Command::Bench(command) => Some(&mut command.model.operators),
            Command::Verify(command) => Some(&mut command.model.operators),
            Command::Simulate(command) => Some(&mut command.model.operators),
            Command::Inspect(command) => Some(&mut command.model.operators),
            Command::Explore(command) => Some(&mut command.model.operators),
            Command::Tune(command) => Some(&mut command.model.operators),
            Command::Report(command) => Some(&mut command.model.operators),
            Command::Quantize(command) => Some(&mut command.model.operators),
            Command::Convert(command) => Some(&mut command.operators),
            _ => None,
        }
    }
}

/// `mlc compile`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc compile model.pnnx.param -o model.tar
  mlc compile model.pnnx.param --model-name keywords --emit dir -o keywords
  mlc compile model.pnnx.param --input-shape 0=1,3,224,224 --emit ir
  mlc compile model.onnx --executor graph --mlf-version 5
  mlc compile wake.onnx words.onnx --model-name wake --model-name words -o both.tar

The archive's time stamps are SOURCE_DATE_EPOCH, or 0 without that variable.")]
pub struct Compile {
    /// The model.
    #[command(flatten)]
    pub model: Model,
    /// Further models for the same archive, compiled with the same options; or those of ranks 1, 2, ..., which get an
    /// archive each in the folder OUT, beside dist.json
    #[arg(value_name = "MODEL")]
    pub further_models: Vec<PathBuf>,
    /// Where to write, '-' for standard output; without it, the model's name with .tar in this folder, and standard output for
    /// --emit ir. NAME=tensor:ID and the like name an output of the model instead, as for 'mlc run'
    #[arg(short, long, value_name = "OUT", value_parser = output)]
    pub output: Vec<Output>,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// How other code runs the model.
    #[command(flatten)]
    pub packaging: Packaging,
    /// What to write
    #[arg(long, value_enum, default_value_t = Emit::Tar)]
    pub emit: Emit,
    /// Write the graph after the import and after every stage of the optimiser into this folder
    #[arg(long, value_name = "DIR")]
    pub dump_ir: Option<PathBuf>,
    /// Print, for every changed operator, the rules that justify the change, and for every kernel its schedules
    #[arg(long)]
    pub explain: bool,
}

/// `mlc run`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc run model.pnnx.param --input image.npy
  mlc run model.tar --input image=image.npy --output-dir out
  mlc run model.pnnx.param --on cortex-m4 --input image.npy
  mlc run rank0.mlc rank1.mlc --input 0:x=x.npy --output-dir out

The C compiler is taken from the variable CC, else it is 'cc'. With --on, it is the cross
compiler of that machine, and QEMU runs the program; executed instructions, flash, static
memory and stack are printed after the outputs. With --output-dir,
every output is written to DIR/<output>.npy, and DIR/outputs.json lists them; bf16
outputs are stored as uint16.")]
pub struct Run {
    /// The model, or an archive made by mlc.
    #[command(flatten)]
    pub model: Model,
    /// The models, or archives, of ranks 1, 2, ... of a model that runs as several
    #[arg(value_name = "MODEL")]
    pub further_models: Vec<PathBuf>,
    /// The model's outputs.
    #[command(flatten)]
    pub named: OutputOptions,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// The machine that runs it.
    #[command(flatten)]
    pub machine: Machine,
    /// What it runs on.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Run once for each entry of an axis that the input files have in front of the inputs' own: states go on from one run to the
    /// next, and outputs get the axis, too. What lacks it is the same in all runs
    #[arg(long, conflicts_with_all = ["layers", "further_models"])]
    pub steps: bool,
    /// What becomes of what it computes.
    #[command(flatten)]
    pub results: ResultOptions,
    /// How several ranks run.
    #[command(flatten)]
    pub ranks: RanksOptions,
}

/// `mlc bench`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc bench model.pnnx.param
  mlc bench model.tar --runs 200 --json
  mlc bench model.pnnx.param --on cortex-m4 --per-kernel

The JSON object has the keys runs, min_ns, median_ns and ns_per_inference, the list
of all times; with --per-kernel also peak_gflops, what a core of this machine computes
at most in single precision, and kernels, a list of objects with function, node,
operator, macs, bytes (each element read or written once), min_ns, gigabytes_per_second
and, of multiply-adds in single precision, peak_share. The model runs for a tenth of a
second before the first measured run. With --on, executed instructions are counted instead, in the keys
min_instructions, median_instructions, instructions_per_inference.")]
pub struct Bench {
    /// The model, or an archive made by mlc.
    #[command(flatten)]
    pub model: Model,
    /// The model's outputs.
    #[command(flatten)]
    pub named: OutputOptions,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// The machine that runs it.
    #[command(flatten)]
    pub machine: Machine,
    /// What it runs on.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Number of measured runs; without it, as many as take about a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub runs: Option<u32>,
    /// Also measure every kernel
    #[arg(long)]
    pub per_kernel: bool,
    /// Print the times as JSON
    #[arg(long)]
    pub json: bool,
}

/// `mlc verify`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc verify model.pnnx.param
  mlc verify model.pnnx.param --input x.npy --expect y=y.npy

Without --expect, the program is compared with the evaluator, which computes the
graph as it was imported, before any optimisation, in double precision. With states,
that is done for three runs in a row; known outputs are those of the first. An element
passes when |actual - expected| <= atol + rtol * |expected|. Integers must be equal
unless a tolerance is given. Without a tolerance, an element further off passes where
noise of the size of rounding errors moves the evaluator's value as far.")]
pub struct Verify {
    /// The model.
    #[command(flatten)]
    pub model: Model,
    /// The model's outputs.
    #[command(flatten)]
    pub named: OutputOptions,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// The machine that runs it.
    #[command(flatten)]
    pub machine: Machine,
    /// What it runs on.
    #[command(flatten)]
    pub inputs: Inputs,
    /// A known output as a .npy file; NAME= can be left out for a model with one output; may be repeated
    #[arg(long, value_name = "[NAME=]FILE.npy")]
    pub expect: Vec<String>,
    /// What counts as equal.
    #[command(flatten)]
    pub tolerance: ToleranceOptions,
    /// What is compared beside the outputs.
    #[command(flatten)]
    pub layers: LayerOptions,
    /// Print the differences as JSON
    #[arg(long)]
    pub json: bool,
}

/// `mlc simulate`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc simulate rank0/model.json rank1/model.json --link 10GBps,5us
  mlc simulate rank0.mlc rank1.mlc rank2.mlc --link 1GBps,50us --clock 2.5 --json

Nothing is run: kernels take what the target's prices say, messages what the link allows. A
message starts when it was sent, its receive has begun, and its sender's earlier ones have left.")]
pub struct Simulate {
    /// The model of rank 0.
    #[command(flatten)]
    pub model: Model,
    /// The models of ranks 1, 2, ...
    #[arg(value_name = "MODEL")]
    pub further_models: Vec<PathBuf>,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// Rate and latency of the link between any two ranks
    #[arg(long, value_name = "RATE,LATENCY", value_parser = Link::parse)]
    pub link: Link,
    /// Units of the prices in a nanosecond: the processor's clock in GHz
    #[arg(long, value_name = "GHZ", default_value_t = 3.0, value_parser = clock)]
    pub clock: f64,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// `mlc inspect`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc inspect model.pnnx.param
  mlc inspect model.tar --json
  mlc inspect model.onnx --schedules --target cortex-m4")]
pub struct Inspect {
    /// The model, or an archive made by mlc.
    #[command(flatten)]
    pub model: Model,
    /// The model's outputs.
    #[command(flatten)]
    pub named: OutputOptions,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the graph, as it was imported, in Graphviz's language
    #[arg(long, conflicts_with_all = ["json", "schedules"])]
    pub dot: bool,
    /// List the schedules of every kernel with their prices, and say which is taken
    #[arg(long, conflicts_with = "json")]
    pub schedules: bool,
    /// The machine whose schedules are listed [default: generic]
    #[arg(long, requires = "schedules")]
    pub target: Option<String>,
    /// What the code is made for whose schedules are listed [default: balanced for microcontrollers, else speed]
    #[arg(long, value_enum, value_name = "OBJECTIVE", requires = "schedules")]
    pub optimize: Option<Optimize>,
    /// What constant weights are kept in by the code whose schedules are listed
    #[arg(long, value_enum, value_name = "TYPE", requires = "schedules")]
    pub weights_type: Option<WeightsType>,
}

/// `mlc report`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc report model.onnx -o report.html
  mlc report model.onnx --target cortex-m4 --json -o -
  mlc report model.onnx --target host --measure
  mlc report model.onnx --on cortex-m4 --measure
  mlc report model.onnx --svg memory -o memory.svg
  mlc report old.onnx new.onnx
  mlc report model.tar
  mlc report model.onnx --target cortex-m4 --versus '--target cortex-m4 --optimize size'

The page is one file, which needs no network. Times are predicted, unless they are
measured; they are cycles on machines that do several things at once, else executed
instructions.")]
pub struct Report {
    /// The model.
    #[command(flatten)]
    pub model: Model,
    /// Another model, compiled with the same options, or an archive, to compare with the first
    #[arg(value_name = "MODEL", conflicts_with = "versus")]
    pub other: Option<PathBuf>,
    /// Where to write, '-' for standard output [default: the model's name with .html in this folder]
    #[arg(short, long, value_name = "OUT", value_parser = output)]
    pub output: Vec<Output>,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// The machine that kernels are measured on.
    #[command(flatten)]
    pub machine: Machine,
    /// Compare with the same model by other options of the code
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub versus: Option<String>,
    /// Measure each kernel, on this machine or the one of --on
    #[arg(long)]
    pub measure: bool,
    /// Write what the report says as JSON; of two models what differs
    #[arg(long)]
    pub json: bool,
    /// Write a picture alone
    #[arg(long, value_enum, value_name = "PICTURE", conflicts_with = "json")]
    pub svg: Option<Picture>,
}

/// `mlc quantize`
#[derive(Debug, Args)]
#[command(after_help = options::EXAMPLES)]
pub struct Quantize {
    /// The model, of floating point.
    #[command(flatten)]
    pub model: Model,
    /// How it is quantised.
    #[command(flatten)]
    pub options: QuantizeOptions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }
}
