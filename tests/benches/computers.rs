//! What code for machines of Linux class takes, against code for `generic` that is compiled with the same options:
//! `cargo bench -p mlc-tests --bench computers`. Executed instructions of a run under QEMU, or, where the machine is this one's
//! kind, its time; then the same of single layers against plain loops in C. With `--write` it writes the tables of `docs/computers.md`, with
//! `--machine NAME` it looks at one machine only, with `--layers` or `--networks` at those only.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "a benchmark prints its figures")]

#[path = "computers/guests.rs"]
mod guests;
#[path = "computers/layers.rs"]
mod layers;

use guests::{counts, instructions, machines};
use mlc::toolchain::Guest;
use mlc_ir::Tensor;
use mlc_tests::case::Case;
use mlc_tests::firmware::{build, find, lacking, run};
use mlc_tests::{micro, paths};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const NETWORKS: [(&str, &str); 5] = [
    ("DS-CNN", "net_mlperftiny_dscnn_kws"),
    ("ResNet-8", "net_mlperftiny_resnet8"),
    ("MobileNetV2 0.35", "net_mobilenet_v2_035"),
    ("transformer", "net_transformer_encoder_mha"),
    ("LSTM", "net_lstm_classifier"),
];

/// What the tables begin with, on the page and here.
const TABLE: &str = "\n| machine |";

/// What the page says of networks of bytes.
const OF_BYTES: &str = "
The same of networks whose numbers are bytes, those of MLPerf Tiny in `int8`:
";

/// Names the file that the plugin adds its counts to.
const FIGURES: &str = "MLC_INSTRUCTIONS";

fn main() {
    match std::env::var(FIGURES) {
        Ok(figures) => report(Path::new(&figures)),
        Err(_) => run_with_plugin(),
    }
}

/// Runs this program again, with what has the emulators count.
fn run_with_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("instructions.so");
    let source = paths::repository().join("tests/benches/instructions.c");
    let made = Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&plugin).arg(source).status().unwrap();
    assert!(made.success(), "the plugin can't be compiled");
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(std::env::args_os().skip(1)).env("QEMU_PLUGIN", &plugin).env(FIGURES, folder.path().join("figures"));
    assert!(again.status().unwrap().success());
}

fn report(figures: &Path) {
    let arguments: Vec<String> = std::env::args().collect();
    let only = arguments.iter().position(|argument| argument == "--machine").and_then(|at| arguments.get(at + 1));
    let only = only.map(String::as_str);
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let mut text = String::new();
    if !has("--layers") {
        let of_floats = NETWORKS.iter().filter_map(|&(name, folder)| Some((name, find(folder)?)));
        let of_bytes = micro::NETWORKS.iter().filter_map(|network| Some((network.name(), micro::find(network)?)));
        text += &networks(&of_floats.collect::<Vec<_>>(), figures, only);
        text += OF_BYTES;
        text += &networks(&of_bytes.collect::<Vec<_>>(), figures, only);
    }
    if !has("--networks") {
        text += &layers::table(figures, only);
    }
    print!("{text}");
    if has("--write") {
        let page = paths::repository().join("docs/computers.md");
        let head = std::fs::read_to_string(&page).unwrap();
        let head = head.split(if has("--layers") { layers::HEAD } else { TABLE }).next().unwrap();
        std::fs::write(&page, format!("{head}{text}")).unwrap();
    }
}

/// The table of whole networks.
fn networks(networks: &[(&str, Case)], figures: &Path, only: Option<&str>) -> String {
    let mut text = String::new();
    let names: Vec<&str> = networks.iter().map(|(name, _)| *name).collect();
    let _ = writeln!(text, "{TABLE} {} |\n|---|{}", names.join(" | "), "---:|".repeat(names.len()));
    for guest in machines(only) {
        if let Some(reason) = lacking(guest) {
            eprintln!("left out: {}, {reason}", guest.target);
            continue;
        }
        let cells: Vec<String> = networks
            .iter()
            .map(|(_, case)| {
                let [own, plain] = [guest.target, "generic"].map(|target| measured(case, target, guest, figures));
                format!("{own:.2} / {plain:.2}")
            })
            .collect();
        let _ = writeln!(text, "| {} | {} |", guest.target, cells.join(" | "));
        eprintln!("{}: {}", guest.target, cells.join(", "));
    }
    text
}

/// Instructions per multiply-accumulate, or nanoseconds per thousand of them.
fn measured(case: &Case, target: &str, guest: &Guest, figures: &Path) -> f64 {
    let built = build(case, target, guest.target).unwrap();
    run(case, guest.target, &built.program).unwrap();
    let macs: u64 = built.compiled.module.kernels.iter().map(|kernel| kernel.macs).sum();
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    if !counts(guest) {
        let times = built.program.bench(&inputs, 0).unwrap();
        return times.into_iter().min().unwrap() as f64 * 1000.0 / macs as f64;
    }
    instructions(figures, |earlier| drop(built.program.run_after(&inputs, earlier).unwrap())) / macs as f64
}
