//! Networks on machines of Linux class and in WebAssembly, under emulators: golden outputs. What lacks its tools here is skipped,
//! and says so.

use mlc::toolchain::{Toolchain, guests};
use mlc_ir::parallel;
use mlc_tests::firmware::{Built, build, find, missing, run};
use std::process::Command;

/// Convolutions with and without vectors across channels, matrix products, attention, recurrence, windows with borders, resizing.
const NETWORKS: [&str; 8] = [
    "net_lenet5",
    "net_mlperftiny_dscnn_kws",
    "net_mlperftiny_resnet8",
    "net_mobilenet_v2_035",
    "net_transformer_encoder_mha",
    "net_lstm_classifier",
    "net_gru_classifier",
    "net_unet_transposed",
];

/// What the tools of a machine lack, if they start at all.
fn lacking(machine: &str) -> Option<String> {
    let has_runtime = || Command::new("python3").args(["-c", "import wasmtime"]).output().unwrap().status.success();
    missing(machine)
        .or_else(|| (machine.starts_with("wasm") && !has_runtime()).then(|| "there is no wasmtime".to_owned()))
}

#[test]
fn networks_compute_golden_outputs() {
    for (number, guest) in guests().enumerate() {
        let machine = guest.target;
        if let Some(reason) = lacking(machine) {
            eprintln!("skipped on {machine}: {reason}");
            continue;
        }
        if guest.is_beyond_emulator() {
            eprintln!("skipped on {machine}: the emulator has no AVX-512");
            continue;
        }
        // Each network on every third machine: those differ in lanes and registers.
        let cases: Vec<_> = NETWORKS.iter().skip(number % 3).step_by(3).filter_map(|name| find(name)).collect();
        assert!(!cases.is_empty());
        let results = parallel::map(&cases, 2, |case| {
            let Built { program, .. } = build(case, machine, machine)?;
            run(case, machine, &program)
        });
        for result in results {
            assert!(result.unwrap_or_else(|fault| panic!("{fault}")).is_none(), "no cost is told");
        }
    }
}

#[test]
fn code_without_vectors_runs_on_all_and_other_vectors_on_none() {
    let case = find("net_mlperftiny_dscnn_kws").unwrap();
    if missing("aarch64").is_some() {
        eprintln!("skipped: {}", missing("aarch64").unwrap());
        return;
    }
    let Built { program, .. } = build(&case, "generic", "aarch64").unwrap();
    run(&case, "aarch64", &program).unwrap();
    let fault = build(&case, "x86-64-v3", "aarch64").err().unwrap();
    assert!(fault.contains("the code is for 'x86-64-v3', which isn't 'aarch64'"), "{fault}");
}

#[test]
fn the_machines_tools_are_known() {
    let tools = |machine| Toolchain::emulated(machine).unwrap().tools();
    assert_eq!(tools("armv7-neon"), ["arm-linux-gnueabihf-gcc", "qemu-arm"]);
    assert_eq!(tools("cortex-m4"), ["arm-none-eabi-gcc", "qemu-system-arm"]);
    assert_eq!(tools("wasm32-simd128"), ["clang", "python3"]);
    assert!(Toolchain::emulated("pdp-11").is_none());
}
