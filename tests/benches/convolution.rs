//! How near the generated 3×3 convolution, 64→64 channels on 56×56 pixels, comes to what the core can do at all.
//!
//! One program holds the generated model and a loop of independent multiply-adds in registers; it times both in interleaved
//! bursts and prints the rates of the fastest bursts and their ratio. `--bursts N` sets the number of bursts (default 200).
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc_codegen::Target;
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, Generator, Graph, TensorType};
use mlc_tests::compile;
use mlc_tests::mode::host_target;
use mlc_tests::program::{Build, Unpacked, c_compiler};
use std::process::{Command, ExitCode};

const PIXELS: usize = 56;
const CHANNELS: usize = 64;

fn graph() -> Result<Graph, String> {
    let mut generator = Generator::new(1);
    let mut graph = Graph::new("convolution");
    let x = graph.add_input("x", TensorType::new(DType::F32, [1, PIXELS, PIXELS, CHANNELS]));
    let weights = generator.tensor(&TensorType::new(DType::F32, [3, 3, CHANNELS, CHANNELS]));
    let weights = graph.add_constant("weights", Attribute::from_tensor(&weights));
    let convolution = Convolution {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: vec![(1, 1), (1, 1)],
        groups: 1,
        border: 0,
        sums: None,
    };
    let y = graph.add(convolution, &[x, weights], "convolution").map_err(|error| error.to_string())?;
    graph.add_output("y", y.into());
    Ok(graph)
}

fn main_source(target: &Target, bursts: usize) -> String {
    let flops = 2 * PIXELS * PIXELS * CHANNELS * CHANNELS * 9;
    include_str!("convolution.c")
        .replace("@VECTOR_BYTES@", &target.vector_bytes.to_string())
        .replace("@ELEMENTS@", &(PIXELS * PIXELS * CHANNELS).to_string())
        .replace("@FLOPS@", &format!("{flops}.0"))
        .replace("@BURSTS@", &bursts.to_string())
}

fn run(bursts: usize) -> Result<String, String> {
    let target = host_target();
    let compiled = compile::compile_graph(&graph()?, "convolution", &target)
        .map_err(|findings| findings.first().map_or_else(String::new, ToString::to_string))?;
    let unpacked = Unpacked::new(&compiled.archive)?;
    let build = Build { compiler: c_compiler(), flags: target.c_flags.clone() };
    let program = unpacked.build(&main_source(&target, bursts), &build)?;
    let output = Command::new(program.path()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("the program ends with {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip_while(|word| word != "--bursts").skip(1);
    let bursts = words.next().and_then(|word| word.parse().ok()).unwrap_or(200);
    match run(bursts) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("convolution: {message}");
            ExitCode::FAILURE
        }
    }
}
