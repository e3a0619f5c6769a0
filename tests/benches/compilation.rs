//! What a compilation costs: seconds and peak memory of networks of 20 linear layers, against the size of their weights, and the seconds that the C
//! compiler takes for these.
//!
//! Each network is written as a PNNX model and compiled to a tarball by a process of its own, which reports the largest memory
//! that the system ever saw it use.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc::pipeline::{self, CompileOptions, LoadOptions};
use mlc_codegen::constants::write_constants;
use mlc_ir::Generator;
use mlc_tests::mode::host_target;
use mlc_tests::program::c_compiler;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;
use zip::write::SimpleFileOptions;

const LAYERS: usize = 20;
/// Features of each layer: weights of 80 KB, 5 MB and 104 MB in all.
const WIDTHS: [usize; 3] = [32, 256, 1160];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Writes a network of linear layers with activations; returns the bytes of its weights.
fn write_model(folder: &Path, width: usize) -> Outcome<usize> {
    let mut archive = zip::ZipWriter::new(File::create(folder.join("model.pnnx.bin"))?);
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut generator = Generator::new(1);
    let mut lines = format!("pnnx.Input pnnx_input_0 0 1 0 #0=(1,{width})f32\n");
    let mut bytes = 0;
    for layer in 0..LAYERS {
        let (input, middle, output) = (2 * layer, 2 * layer + 1, 2 * layer + 2);
        writeln!(
            lines,
            "nn.Linear fc{layer} 1 1 {input} {middle} bias=True in_features={width} out_features={width} \
             @bias=({width})f32 @weight=({width},{width})f32"
        )?;
        writeln!(lines, "nn.ReLU act{layer} 1 1 {middle} {output}")?;
        for (key, elements) in [("bias", width), ("weight", width * width)] {
            let values: Vec<u8> = (0..elements).flat_map(|_| (generator.unit() as f32 * 0.05).to_le_bytes()).collect();
            archive.start_file(format!("fc{layer}.{key}"), options)?;
            archive.write_all(&values)?;
            bytes += values.len();
        }
    }
    archive.finish()?;
    let text = format!(
        "7767517\n{} {}\n{lines}pnnx.Output pnnx_output_0 1 0 {}\n",
        2 * LAYERS + 2,
        2 * LAYERS + 1,
        2 * LAYERS
    );
    std::fs::write(folder.join("model.pnnx.param"), text)?;
    Ok(bytes)
}

/// Compiles the model of a folder; prints seconds, peak memory in KiB, and the seconds of the C compiler for the constants.
fn compile(folder: &Path) -> Outcome<()> {
    let text = |failure: pipeline::Failure| failure.diagnostics.first().map_or_else(String::new, ToString::to_string);
    let start = Instant::now();
    let loaded = pipeline::load(&folder.join("model.pnnx.param"), &LoadOptions::default()).map_err(text)?;
    let options = CompileOptions { target: host_target(), ..CompileOptions::default() };
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {})
        .map_err(|errors| errors.first().map_or_else(String::new, ToString::to_string))?;
    pipeline::write_archive(std::slice::from_ref(&compiled), &folder.join("model.tar"))?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.split_whitespace().next()).ok_or("the system doesn't tell the peak memory")?;
    let own = folder.join("constants.c");
    write_constants(&compiled.module, &mut File::create(&own)?)?;
    let start = Instant::now();
    let status =
        Command::new(c_compiler()).args(["-O3", "-c", "-o"]).arg(own.with_extension("o")).arg(&own).status()?;
    if !status.success() {
        return Err(format!("the C compiler refuses {}", own.display()).into());
    }
    println!("{seconds} {peak} {}", start.elapsed().as_secs_f64());
    Ok(())
}

fn measure() -> Outcome<()> {
    println!("{:>12} {:>10} {:>12} {:>8} {:>14}", "weights, KiB", "seconds", "memory, KiB", "ratio", "C compiler, s");
    for width in WIDTHS {
        let folder = tempfile::tempdir()?;
        let weights = write_model(folder.path(), width)? / 1024;
        let output = Command::new(std::env::current_exe()?).arg("--compile").arg(folder.path()).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let figures: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [seconds, peak, of_c] = figures[..] else { return Err("no figures".into()) };
        println!("{weights:>12} {seconds:>10.3} {peak:>12} {:>8.2} {of_c:>14.2}", peak / weights as f64);
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip_while(|word| word != "--compile").skip(1);
    let outcome = match words.next() {
        Some(folder) => compile(Path::new(&folder)),
        None => measure(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
