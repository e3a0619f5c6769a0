//! Networks on machines of Linux class and in WebAssembly, under emulators: golden outputs. What lacks its tools here is skipped,
//! and says so.

use mlc::toolchain::{Toolchain, guests};
use mlc_ir::parallel;
use mlc_tests::case::Case;
use mlc_tests::firmware::{Built, build, find, lacking, missing, run};
use mlc_tests::paths;

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

#[test]
fn networks_compute_golden_outputs() {
    for (number, guest) in guests().enumerate() {
        let machine = guest.target;
        if let Some(reason) = lacking(guest) {
            eprintln!("skipped on {machine}: {reason}");
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

/// Products of bytes in tiles and by channels, rescaled, added to others, limited, and through tables.
const OF_BYTES: [&str; 6] = [
    "conv2d_same_3x3_s2_even_int8",
    "depthwise_valid_3x3_s2_int8",
    "fully_connected_3d_int8",
    "add_relu6_int8",
    "mul_bcast_both_int8",
    "hard_swish_int8",
];

#[test]
fn bytes_compute_golden_outputs_by_instructions_for_them() {
    let instructions = [
        ("aarch64", "vpadalq_s16("),
        ("cortex-a76", "vdotq_s32("),
        ("armv7-neon", "vpadalq_s16("),
        ("wasm32-simd128", "wasm_i32x4_dot_i16x8("),
    ];
    for (machine, instruction) in instructions {
        let guest = guests().find(|guest| guest.target == machine).unwrap();
        if let Some(reason) = lacking(guest) {
            eprintln!("skipped on {machine}: {reason}");
            continue;
        }
        for name in OF_BYTES {
            let case = Case::read(&paths::data().join("tflite").join(name)).unwrap();
            let Built { program, compiled, .. } = build(&case, machine, machine).unwrap();
            run(&case, machine, &program).unwrap_or_else(|fault| panic!("{fault}"));
            let text: String = compiled.module.sources.iter().map(|source| source.text.as_str()).collect();
            let is_dense = name.starts_with("conv2d") || name.starts_with("fully");
            assert!(!is_dense || text.contains(instruction), "{machine} {name}");
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
