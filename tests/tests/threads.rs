//! Code that several threads compute: the same bits as by one, and no races. Threads are as cheap here as they can be, so that kernels of
//! small models are split, too.

use mlc::pipeline::{self, CompileOptions, Compiled};
use mlc::targets;
use mlc::toolchain::Toolchain;
use mlc_codegen::target::ThreadCost;
use mlc_codegen::{Execution, FloatingPoint, Target};
use mlc_ir::parallel;
use mlc_ir::{Graph, Tensor};
use mlc_tests::case::Case;
use mlc_tests::compile::load;
use mlc_tests::firmware::find;
use mlc_tests::paths;
use mlc_tests::program::hasty;

/// A target on which any launch is worth it.
fn target(name: &str) -> Target {
    let mut target = targets::find(name).unwrap();
    target.machine.threads = Some(ThreadCost { launch: 1.0, wake: 0.0 });
    target
}

/// The same, where the C compiler rounds products before it adds them. Where it may leave that out, it does so in some functions and not
/// in others, and what it makes one of is others where threads are launched in between.
fn strict(name: &str) -> Target {
    target(name).with_floating_point(FloatingPoint::Strict)
}

fn compiled(graph: &Graph, target: &Target, threads: usize) -> Compiled {
    let execution = Execution { threads, ..Execution::default() };
    let options = CompileOptions { execution, target: target.clone(), ..CompileOptions::default() };
    pipeline::compile(graph, &options, &mut |_, _| {}).unwrap()
}

fn launches(compiled: &Compiled) -> u64 {
    compiled.module.kernels.iter().filter_map(|kernel| kernel.split).map(|split| split.launches).sum()
}

/// Whether some of it is computed in branches beside each other.
fn branches(compiled: &Compiled) -> bool {
    compiled.module.kernels.iter().any(|kernel| kernel.branch.is_some())
}

fn outputs(compiled: &Compiled, case: &Case, toolchain: &Toolchain) -> Vec<Vec<u8>> {
    let program =
        toolchain.build(&compiled.bundle().unwrap()).unwrap_or_else(|error| panic!("{}: {error:?}", case.name));
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let outputs = program.run(&inputs).unwrap_or_else(|error| panic!("{}: {error:?}", case.name));
    outputs.iter().map(Tensor::to_le_bytes).collect()
}

/// Whether threads have something to do in a case; its outputs are the same bits then.
fn is_same(case: &Case, target: &Target, counts: &[usize]) -> bool {
    let Ok(loaded) = load(case) else { return false };
    let many: Vec<Compiled> = counts.iter().map(|&threads| compiled(&loaded.graph, target, threads)).collect();
    if many.iter().all(|compiled| launches(compiled) == 0 && !branches(compiled)) {
        return false;
    }
    let expected = outputs(&compiled(&loaded.graph, target, 1), case, &hasty(Toolchain::default()));
    for (threads, compiled) in counts.iter().zip(&many) {
        let found = outputs(compiled, case, &hasty(Toolchain::default()));
        assert!(found == expected, "{} on {} with {threads} threads", case.name, target.name);
    }
    true
}

/// How many of every so many cases of a format have something for threads to do.
fn split_cases(format: &str, every: usize, target: &Target, counts: &[usize]) -> usize {
    let folders = paths::subfolders(&paths::data().join(format)).unwrap();
    let cases: Vec<Case> = folders.iter().step_by(every).map(|folder| Case::read(folder).unwrap()).collect();
    parallel::map(&cases, 2, |case| is_same(case, target, counts)).into_iter().filter(|&split| split).count()
}

#[test]
fn two_threads_compute_the_bits_of_one_on_the_host() {
    let formats =
        [("pnnx", 4, 10), ("tflite", 4, 5), ("onnx", 16, 5), ("relay", 1, 1), ("lightnet", 1, 1), ("tennis", 4, 1)];
    for (format, every, least) in formats {
        let found = split_cases(format, every, &strict("host"), &[2]);
        assert!(found >= least, "{format}: {found} cases");
    }
}

#[test]
fn three_threads_compute_the_bits_of_one_without_vectors() {
    let found = split_cases("pnnx", 6, &strict("generic"), &[3]);
    assert!(found >= 5, "{found} cases");
}

/// Convolutions, recurrences, attention, integers.
const NETWORKS: [&str; 5] = [
    "net_coord_attention",
    "net_gru_classifier",
    "net_mlperftiny_dscnn_kws",
    "net_mlperftiny_resnet8",
    "net_vit_tiny_separate_qkv",
];

#[test]
fn thread_sanitizer_finds_no_races() {
    let toolchain = hasty(Toolchain::from_variable(Some("cc -fsanitize=thread")));
    let mut seen = 0;
    for case in NETWORKS.iter().filter_map(|name| find(name)) {
        let loaded = load(&case).unwrap();
        for (name, threads) in [("host", 2), ("generic", 4)] {
            let target = target(name);
            let many = compiled(&loaded.graph, &target, threads);
            assert!(launches(&many) > 0, "{}", case.name);
            // A race ends the program with a status of its own.
            let found = outputs(&many, &case, &toolchain);
            assert!(found == outputs(&compiled(&loaded.graph, &target, 1), &case, &toolchain), "{}", case.name);
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen} programs");
}

/// Recurrences in both directions, heads of attention, trees: the same bits, as products are rounded before they are added to, and no races.
#[test]
fn branches_beside_each_other_give_the_bits_of_one_thread() {
    let toolchain = hasty(Toolchain::from_variable(Some("cc -fsanitize=thread")));
    let folders = ["pnnx", "onnx"].map(|format| paths::subfolders(&paths::data().join(format)).unwrap()).concat();
    let folders: Vec<_> = folders.into_iter().step_by(3).collect();
    let check = |folder: &std::path::PathBuf| {
        let case = Case::read(folder).unwrap();
        let Ok(loaded) = load(&case) else { return false };
        let target = strict("host");
        let many = compiled(&loaded.graph, &target, 3);
        if !branches(&many) {
            return false;
        }
        let found = outputs(&many, &case, &toolchain);
        assert!(found == outputs(&compiled(&loaded.graph, &target, 1), &case, &toolchain), "{}", case.name);
        true
    };
    let seen = parallel::map(&folders, 2, check).into_iter().filter(|&seen| seen).count();
    assert!(seen >= 6, "{seen} cases");
}

#[test]
fn one_thread_leaves_no_trace() {
    let case = find(NETWORKS[3]).unwrap();
    let loaded = load(&case).unwrap();
    let target = target("host");
    let usual = CompileOptions { target: target.clone(), ..CompileOptions::default() };
    let usual = pipeline::compile(&loaded.graph, &usual, &mut |_, _| {}).unwrap().archive().unwrap();
    let one = compiled(&loaded.graph, &target, 1);
    assert!(one.archive().unwrap() == usual);
    for (path, bytes) in one.files().unwrap() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!path.contains("threads"), "{path}");
        let is_ours = path.starts_with("codegen") || path.starts_with("example") || !path.contains('/');
        assert!(!is_ours || !["ParallelLaunch", "pthread", "THREADS"].iter().any(|word| text.contains(word)), "{path}");
    }
}
