//! Models of several ranks: the program computes what the evaluator computes of all of them together, and every rank ends with an
//! error that names it and the tensor when another one doesn't do its part.

use bytes::Bytes;
use mlc::bundle::Bundle;
use mlc::toolchain::{RanksProgram, RanksRun, Toolchain, Transport};
use mlc_codegen::Target;
use mlc_ir::ranks::evaluate_ranks;
use mlc_ir::{Code, Diagnostic, Generator, Graph, text, verify};
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::{compile_graph, compile_kernels};
use mlc_tests::mode::host_target;
use mlc_tests::program::{STRICT, Unpacked, c_compiler, hasty};
use mlc_tests::{paths, ranks};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const TOLERANCE: Tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };

fn bundles(graphs: &[Graph], target: &Target, optimise: bool) -> Vec<Bundle> {
    let compile = if optimise { compile_graph } else { compile_kernels };
    let bundle = |(rank, graph): (usize, &Graph)| {
        let compiled = compile(graph, &format!("m_rank{rank}"), target).unwrap();
        Bundle::parse(&Bytes::from(compiled.archive)).unwrap()
    };
    graphs.iter().enumerate().map(bundle).collect()
}

fn build(graphs: &[Graph], target: &Target, transport: Transport) -> RanksProgram {
    hasty(Toolchain::default()).build_ranks(&bundles(graphs, target, true), transport, false).unwrap()
}

fn patience(seconds: f64) -> RanksRun {
    RanksRun { runs: 1, patience: Duration::from_secs_f64(seconds) }
}

/// Runs the program three times in a row, and compares what it gives with the evaluator.
fn check(graphs: &[Graph], program: &RanksProgram, seed: u64) {
    let inputs = ranks::inputs(graphs, seed);
    let expected = evaluate_ranks(&graphs.iter().collect::<Vec<_>>(), &inputs).unwrap();
    let (outputs, _) = program.run(&inputs, RanksRun { runs: 3, ..patience(60.0) }).unwrap();
    for (rank, (outputs, expected)) in outputs.iter().zip(&expected).enumerate() {
        assert_eq!(outputs.len(), expected.len());
        for (output, expected) in outputs.iter().zip(expected) {
            compare(output, expected, TOLERANCE).unwrap_or_else(|error| panic!("rank {rank}: {error}"));
        }
    }
}

fn ring() -> Vec<Graph> {
    ranks::read(&paths::data().join("ranks/ring")).unwrap()
}

#[test]
fn ranks_run_as_threads() {
    let graphs = ring();
    for target in [Target::generic(), host_target()] {
        check(&graphs, &build(&graphs, &target, Transport::Threads), 1);
    }
}

#[test]
fn ranks_run_under_mpi() {
    if ranks::has_mpi() {
        let graphs = ring();
        check(&graphs, &build(&graphs, &host_target(), Transport::Mpi), 2);
    }
}

/// Whatever is sent when: no rank waits for ever, and none writes to what is under way.
#[test]
fn random_ranks_agree_with_the_evaluator() {
    for seed in 0..12 {
        let graphs = ranks::random(&mut Generator::new(seed));
        graphs.iter().for_each(|graph| verify(graph).unwrap_or_else(|faults| panic!("{faults:?}")));
        let target = Target::generic();
        let program = hasty(Toolchain::default());
        let program =
            program.build_ranks(&bundles(&graphs, &target, seed % 2 == 0), Transport::Threads, false).unwrap();
        check(&graphs, &program, seed);
    }
}

#[test]
fn generated_code_is_strict_and_as_it_was_reviewed() {
    let compiled = compile_graph(&ring()[1], "ring_rank1", &Target::generic()).unwrap();
    let unpacked = Unpacked::new(&compiled.archive).unwrap();
    let folder = unpacked.path().join("codegen/host");
    for source in ["ring_rank1_lib0.c", "ring_rank1_lib1.c", "ring_rank1_lib2.c"] {
        let mut command = Command::new(c_compiler());
        command
            .args(STRICT)
            .arg("-I")
            .arg(folder.join("include"))
            .arg("-I")
            .arg(unpacked.path().join("runtime/include"));
        let output = command.arg("-fsyntax-only").arg(folder.join("src").join(source)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let header = std::fs::read_to_string(folder.join("include/tvmgen_ring_rank1.h")).unwrap();
    let metadata = std::fs::read_to_string(unpacked.path().join("metadata.json")).unwrap();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(paths::repository().join("snapshots/ranks"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!("ring_rank1.c", compiled.module.sources[0].text);
        insta::assert_snapshot!("tvmgen_ring_rank1.h", header);
        insta::assert_snapshot!("metadata.json", metadata);
    });
}

/// Two ranks: the first sends nothing or `sent`, the second receives what it calls `late`.
fn pair(messages: [&str; 2], work: &str) -> Vec<Graph> {
    let first = format!(
        "mlc 1\ngraph @a(%x: f32[8]) -> (\"sent\": f32[8]) {{\n  {work}\n  rank 0 of 2\n  {}\n  return %s\n}}\n",
        messages[0]
    );
    let second = format!(
        "mlc 1\ngraph @b(%late: f32[8]) -> (\"y\": f32[8]) {{\n  %y = unary %late {{function = tanh}}\n  rank 1 of 2\n  {}\n  return %y\n}}\n",
        messages[1]
    );
    [first, second].iter().map(|text| text::parse(text, &()).unwrap_or_else(|faults| panic!("{faults:?}"))).collect()
}

const PLAIN: &str = "%s = unary %x {function = tanh}";
const SEND: &str = "send \"sent\" to 1 tag 0";
const RECEIVE: &str = "receive %late from 0 tag 0";

/// A computation of many seconds.
const SLOW: &str = "%w = constant f32[1024, 1024] random(seed = 1)
  %v = constant f32[1024, 1024] random(seed = 2)
  %m = broadcast %x {shape = [1024, 8]}
  %t = loop %m, %w {trip_count = 10000, body = graph @body(%k: i64[], %m: f32[1024, 8], %w: f32[1024, 1024]) -> (\"m\": f32[1024, 8]) {
    %p = matmul %w, %m {transpose_left = false, transpose_right = false}
    %q = unary %p {function = tanh}
    return %q
  }, carried = 1, scanned = [], stacked = [], conditional = false}
  %s1 = slice %t {starts = [0, 0], sizes = [1, 8], steps = [1, 1]}
  %s = reshape %s1 {shape = [8]}";

/// What the program says of ranks that don't fit, and that it said so in a few seconds.
fn failure(graphs: &[Graph], transport: Transport, seconds: f64) -> Diagnostic {
    let program = build(graphs, &Target::generic(), transport);
    let began = Instant::now();
    let inputs = ranks::inputs(graphs, 1);
    let fault = program.run(&inputs, patience(seconds)).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(30), "{fault}");
    assert_eq!(fault.code, Code::ToolFailed);
    fault
}

fn transports() -> Vec<Transport> {
    if ranks::has_mpi() { vec![Transport::Threads, Transport::Mpi] } else { vec![Transport::Threads] }
}

/// All that was said.
fn words(fault: &Diagnostic) -> String {
    std::iter::once(&fault.message).chain(&fault.notes).cloned().collect::<Vec<_>>().join("\n")
}

#[test]
fn a_message_that_never_comes_is_named() {
    let graphs = pair(["", RECEIVE], PLAIN);
    for transport in transports() {
        let fault = words(&failure(&graphs, transport, 1.0));
        assert!(fault.contains("rank 1") && fault.contains("\"late\"") && fault.contains("rank 0"), "{fault}");
        assert!(fault.contains("1 seconds"), "{fault}");
    }
}

#[test]
fn a_message_of_another_size_is_named() {
    for (size, what) in [(4, "shorter"), (16, "longer")] {
        let mut graphs = pair([SEND, RECEIVE], PLAIN);
        graphs[0] = text::parse(&text::print(&graphs[0]).replace("f32[8]", &format!("f32[{size}]")), &()).unwrap();
        for transport in transports() {
            let fault = words(&failure(&graphs, transport, 10.0));
            assert!(
                fault.contains("\"late\"") && fault.contains("rank 1") && fault.contains("bytes"),
                "{what}: {fault}"
            );
        }
    }
}

#[test]
fn a_slow_rank_is_waited_for_only_so_long() {
    let graphs = pair([SEND, RECEIVE], SLOW);
    for transport in transports() {
        let fault = words(&failure(&graphs, transport, 0.3));
        assert!(fault.contains("\"late\"") && fault.contains("0.3 seconds"), "{fault}");
    }
}

/// The processes of a program, by rank.
fn processes(executable: &std::path::Path, rank: usize) -> Option<u32> {
    let variable = format!("OMPI_COMM_WORLD_RANK={rank}");
    let is_rank = |folder: &PathBuf| {
        let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
        std::fs::read_link(folder.join("exe")).is_ok_and(|path| path == executable)
            && environment.split(|&byte| byte == 0).any(|entry| entry == variable.as_bytes())
    };
    let folders = std::fs::read_dir("/proc").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(is_rank).find_map(|folder| folder.file_name()?.to_str()?.parse().ok())
}

#[test]
fn a_killed_rank_ends_all() {
    if !ranks::has_mpi() {
        return;
    }
    let graphs = pair([SEND, RECEIVE], SLOW);
    let program = build(&graphs, &Target::generic(), Transport::Mpi);
    let executable = program.executable().canonicalize().unwrap();
    let began = Instant::now();
    let killer = std::thread::spawn(move || {
        while began.elapsed() < Duration::from_secs(20) {
            if let Some(process) = processes(&executable, 0) {
                // Time enough for the other one to wait.
                std::thread::sleep(Duration::from_secs(2));
                return Command::new("kill")
                    .args(["-KILL", &process.to_string()])
                    .status()
                    .is_ok_and(|status| status.success());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    });
    let fault = words(&program.run(&ranks::inputs(&graphs, 1), patience(60.0)).unwrap_err());
    assert!(killer.join().unwrap(), "the rank wasn't found");
    assert!(began.elapsed() < Duration::from_secs(30), "{fault}");
    assert!(fault.contains("rank 1 was stopped while it waited for \"late\" from rank 0"), "{fault}");
    assert!(fault.contains("process rank 0") && fault.contains("signal 9"), "{fault}");
}

#[test]
fn missing_ranks_are_told() {
    let bundles = bundles(&ring(), &Target::generic(), true);
    let fault = Toolchain::default().build_ranks(&bundles[..2], Transport::Threads, false).unwrap_err();
    assert_eq!(fault.to_string(), "error[MLC0113]: rank 0 of 3 is in the place of rank 0 of 2");
    let fault = Toolchain::default().build(&bundles[0]).unwrap_err();
    assert!(fault.message.contains("rank 0 of 3"), "{fault}");
}

/// The archives' own example programs, started together.
#[test]
fn examples_of_archives_run_together_under_mpi() {
    if !ranks::has_mpi() {
        return;
    }
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--allow-run-as-root"]);
    let mut folders = Vec::new();
    for (rank, graph) in ring().iter().enumerate() {
        let compiled = compile_graph(graph, &format!("ring_rank{rank}"), &Target::generic()).unwrap();
        let unpacked = Unpacked::new(&compiled.archive).unwrap();
        let made = Command::new("make").arg("-C").arg(unpacked.path()).arg("example").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        if rank > 0 {
            command.arg(":");
        }
        command.args(["-n", "1"]).arg(unpacked.path().join("build/example"));
        folders.push(unpacked);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let zeroes = format!("sum:{} ...\n", " 0".repeat(8));
    assert_eq!(String::from_utf8_lossy(&output.stdout), zeroes.repeat(3));
}
