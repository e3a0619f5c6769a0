//! Code for `generic` against plain loops in C of the same layers (`plain.c`), each compiled by the same compiler with the same options.

use super::guests::{counts, instructions, machines};
use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::{Guest, Program, Toolchain};
use mlc_codegen::Target;
use mlc_ir::{DType, Generator, Tensor, TensorType, text};
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::firmware::lacking;
use mlc_tests::paths;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the page says of them.
pub const HEAD: &str = "
## Beside plain loops

The same of single layers with bias and ReLU, compiled for `generic` by gcc and by clang with the options of the machine, and behind the stroke those of
plain loops (`tests/benches/computers/plain.c`), written down as anybody would: channels last, output channels innermost, a test for each border. On
x86-64 and WebAssembly the figures are nanoseconds per thousand multiply-accumulates, the least of several runs that take turns.

| machine | compiler |";

/// Runs that time is the least of, and how often the two sides take turns.
const RUNS: u32 = 400;
const TURNS: usize = 5;

/// A layer, by the name that `plain.c` has for its kind.
struct Layer {
    name: &'static str,
    kind: &'static str,
    /// Rows and columns of the result, which are the same.
    rows: usize,
    step: usize,
    inputs: usize,
    outputs: usize,
}

const LAYERS: [Layer; 7] = [
    Layer { name: "3×3, 32 to 32", kind: "CONVOLUTION", rows: 16, step: 1, inputs: 32, outputs: 32 },
    Layer { name: "3×3, 3 to 16, step 2", kind: "CONVOLUTION", rows: 24, step: 2, inputs: 3, outputs: 16 },
    Layer { name: "1×1, 64 to 64", kind: "POINTWISE", rows: 12, step: 1, inputs: 64, outputs: 64 },
    Layer { name: "depthwise 3×3, 64", kind: "DEPTHWISE", rows: 16, step: 1, inputs: 64, outputs: 64 },
    Layer { name: "dense, 256 to 128", kind: "DENSE", rows: 1, step: 1, inputs: 256, outputs: 128 },
    Layer { name: "dense, 64 to 10", kind: "DENSE", rows: 1, step: 1, inputs: 64, outputs: 10 },
    Layer { name: "mean of 2×2, 32", kind: "POOL", rows: 16, step: 2, inputs: 32, outputs: 32 },
];

impl Layer {
    fn input(&self) -> TensorType {
        let Layer { rows, step, inputs, .. } = *self;
        let shape = if self.kind == "DENSE" { vec![1, inputs] } else { vec![1, rows * step, rows * step, inputs] };
        TensorType::new(DType::F32, shape)
    }

    fn output(&self) -> TensorType {
        let Layer { rows, outputs, .. } = *self;
        let shape = if self.kind == "DENSE" { vec![1, outputs] } else { vec![1, rows, rows, outputs] };
        TensorType::new(DType::F32, shape)
    }

    fn weights(&self) -> TensorType {
        let Layer { inputs, outputs, .. } = *self;
        let shape = match self.kind {
            "CONVOLUTION" => vec![3, 3, inputs, outputs],
            "DEPTHWISE" => vec![3, 3, 1, outputs],
            "POINTWISE" => vec![1, 1, inputs, outputs],
            _ => vec![inputs, outputs],
        };
        TensorType::new(DType::F32, shape)
    }

    fn bias(&self) -> TensorType {
        TensorType::new(DType::F32, [self.outputs])
    }

    fn macs(&self) -> usize {
        let pixels = self.rows * self.rows;
        match self.kind {
            "CONVOLUTION" => pixels * 9 * self.inputs * self.outputs,
            "DEPTHWISE" => pixels * 9 * self.outputs,
            "POOL" => pixels * 4 * self.outputs,
            _ => pixels * self.inputs * self.outputs,
        }
    }

    /// The layer as a graph; its weights have seed 1, its bias 2.
    fn graph(&self) -> String {
        let (input, output, weights, bias) = (self.input(), self.output(), self.weights(), self.bias());
        let Layer { step, outputs, .. } = *self;
        let pad = usize::from(self.kind != "POINTWISE");
        let groups = if self.kind == "DEPTHWISE" { outputs } else { 1 };
        let anchor = match self.kind {
            "POOL" => {
                let pool = "average_pool %x {window = [2, 2], strides = [2, 2], dilations = [1, 1], \
                            pads = [[0, 0], [0, 0]], counted_pads = [[0, 0], [0, 0]]}";
                return format!(
                    "mlc 1\ngraph @t(%x: {input}) -> (\"y\": {output}) {{\n  %y = {pool} : {output}\n  return %y\n}}\n"
                );
            }
            "DENSE" => "matmul {transpose_left = false, transpose_right = false}".to_owned(),
            _ => format!(
                "convolution {{strides = [{step}, {step}], dilations = [1, 1], pads = [[{pad}, {pad}], [{pad}, {pad}]], groups = {groups}}}"
            ),
        };
        format!(
            "mlc 1\ngraph @t(%x: {input}) -> (\"y\": {output}) {{\n  %w = constant {weights} random(seed = 1)\n  \
             %b = constant {bias} random(seed = 2)\n  \
             %y = kernel %x, %w, %b {{anchor = {anchor}, anchor_operands = 2, expression = relu(add(x0, x1))}} : {output}\n  return %y\n}}\n"
        )
    }
}

/// What computes a layer in plain C, as a program of its own.
struct Plain<'a> {
    guest: &'a Guest,
    folder: &'a Path,
    /// Elements of the result.
    elements: usize,
}

impl Plain<'_> {
    fn build<'a>(layer: &Layer, guest: &'a Guest, compiler: &[String], folder: &'a Path) -> Plain<'a> {
        let source = paths::repository().join("tests/benches/computers/plain.c");
        let flags = mlc::targets::find(guest.target).unwrap().c_flags;
        let compile = |more: &[String], out: &str| {
            let mut command = Command::new(&compiler[0]);
            command.args(&compiler[1..]).args(&flags).args(more).arg("-o").arg(folder.join(out));
            assert!(command.status().unwrap().success(), "{command:?}");
        };
        let source = source.to_str().unwrap().to_owned();
        let extents = [("ROWS", layer.rows), ("COLUMNS", layer.rows), ("STEP", layer.step)];
        let extents = extents.into_iter().chain([("INPUTS", layer.inputs), ("OUTPUTS", layer.outputs)]);
        let defined = extents.map(|(name, extent)| format!("-D{name}={extent}"));
        let loops = [format!("-DLAYER={}", layer.kind), "-c".into(), source.clone()];
        compile(&defined.chain(loops).collect::<Vec<_>>(), "layer.o");
        compile(&["-c".into(), source], "main.o");
        let objects = ["layer.o", "main.o"].map(|name| folder.join(name).to_str().unwrap().to_owned());
        let link = objects.into_iter().chain(guest.link_flags().iter().map(|&flag| flag.to_owned()));
        compile(&link.collect::<Vec<_>>(), "plain");
        Plain { guest, folder, elements: layer.output().elements() }
    }

    /// What it prints.
    fn run(&self, mode: &str, calls: u32) -> String {
        let (calls, elements) = (calls.to_string(), self.elements.to_string());
        let arguments = [mode, &calls, &elements, "x", "w", "b", "y"];
        let mut command = self.guest.command(&self.folder.join("plain"), &arguments);
        let output = command.current_dir(self.folder).output().unwrap();
        assert!(output.status.success(), "{command:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// A compiler for a machine by gcc or clang, if there is one: its command.
fn compilers(guest: &Guest) -> Vec<(&'static str, Vec<String>)> {
    let Some(toolchain) = Toolchain::emulated(guest.target) else { return Vec::new() };
    let own = toolchain.compiler;
    if own[0].contains("clang") {
        return vec![("clang", own)];
    }
    let mut clang = vec!["clang".to_owned()];
    if let Some(machine) = own[0].strip_suffix("-gcc") {
        // Not every clang finds the C library of a cross compiler by itself.
        let folder = |question: &str| {
            let output = Command::new(&own[0]).arg(question).output().unwrap();
            let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
            path.parent().unwrap().to_str().unwrap().to_owned()
        };
        let folders = [folder("-print-file-name=crt1.o"), folder("-print-libgcc-file-name")];
        clang.push(format!("--target={machine}"));
        clang.push("-Wno-unused-command-line-argument".into());
        clang.extend(["-isystem".into(), format!("{}/../include", folders[0])]);
        clang.extend(folders.iter().flat_map(|folder| [format!("-B{folder}"), format!("-L{folder}")]));
    }
    let mut all = vec![("gcc", own)];
    if Command::new("clang").arg("--version").output().is_ok() {
        all.push(("clang", clang));
    }
    all
}

/// Builds the code for `generic` of a layer.
fn generic(layer: &Layer, guest: &Guest, compiler: &[String]) -> Program {
    let graph = text::parse(&layer.graph(), &()).unwrap();
    let options = CompileOptions { target: Target::generic(), ..CompileOptions::default() };
    let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
    let toolchain = Toolchain { compiler: compiler.to_vec(), ..Toolchain::emulated(guest.target).unwrap() };
    toolchain.build(&compiled.bundle().unwrap()).unwrap()
}

/// What both sides take: executed instructions of a run, or nanoseconds.
fn measured(layer: &Layer, guest: &Guest, compiler: &[String], figures: &Path) -> [f64; 2] {
    let folder = tempfile::tempdir().unwrap();
    let program = generic(layer, guest, compiler);
    let plain = Plain::build(layer, guest, compiler, folder.path());
    let x = Generator::new(3).tensor(&layer.input());
    let values = [&x, &Generator::new(1).tensor(&layer.weights()), &Generator::new(2).tensor(&layer.bias())];
    for (name, values) in ["x", "w", "b"].into_iter().zip(values) {
        std::fs::write(folder.path().join(name), values.to_le_bytes()).unwrap();
    }
    let inputs = [x];
    let own = program.run(&inputs).unwrap();
    plain.run("run", 0);
    let bytes = std::fs::read(folder.path().join("y")).unwrap();
    let tolerance = Tolerance { absolute: 1e-3, relative: 1e-3 };
    compare(&own[0], &Tensor::from_le_bytes(layer.output(), &bytes), tolerance).unwrap();
    if counts(guest) {
        let own = instructions(figures, |earlier| drop(program.run_after(&inputs, earlier).unwrap()));
        let plain = instructions(figures, |earlier| drop(plain.run("run", earlier)));
        return [own, plain];
    }
    let mut least = [f64::INFINITY; 2];
    for _ in 0..TURNS {
        let own = program.bench(&inputs, RUNS).unwrap().into_iter().min().unwrap();
        let plain: u64 = plain.run("bench", RUNS).parse().unwrap();
        least = [least[0].min(own as f64), least[1].min(plain as f64)];
    }
    least.map(|time| time * 1000.0)
}

/// The table, of one machine or of all.
pub fn table(figures: &Path, only: Option<&str>) -> String {
    let names: Vec<&str> = LAYERS.iter().map(|layer| layer.name).collect();
    let mut text = format!("{HEAD} {} |\n|---|---|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    for guest in machines(only) {
        if let Some(reason) = lacking(guest) {
            eprintln!("left out: {}, {reason}", guest.target);
            continue;
        }
        for (name, compiler) in compilers(guest) {
            let cells = LAYERS.iter().map(|layer| {
                let [own, plain] = measured(layer, guest, &compiler, figures);
                let macs = layer.macs() as f64;
                format!("{:.2} / {:.2}", own / macs, plain / macs)
            });
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(text, "| {} | {name} | {} |", guest.target, cells.join(" | "));
            eprintln!("{}, {name}: {}", guest.target, cells.join(", "));
        }
    }
    text
}
