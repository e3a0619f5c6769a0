//! Vectors that several products take: what gcc makes of them where instructions take vectors from memory.

use crate::common::{computer, text_of};
use crate::dense::{convolution, graph_of, product};
use mlc_codegen::{Execution, Options, ScheduleOptions, Target, generate};
use mlc_ir::{Generator, Op, TensorType};
use std::process::Command;

/// A processor for which gcc takes vectors from memory wherever it can.
const PROCESSOR: &str = "-march=znver3";

/// What is in the helper that keeps it from doing so.
const BARRIER: &str = "__asm__(\"\" : \"+v\"(x));";

/// A product of matrices, and a convolution with a group per channel.
fn operators() -> [(&'static str, Op, Vec<TensorType>); 2] {
    let (product, convolution) = (product(1, 48, 64, 32, false), convolution([16, 16, 32], [3, 3], 32, 1, 32));
    [("product", product.0, product.1), ("depthwise", convolution.0, convolution.1)]
}

fn code(target: &Target, (name, op, types): &(&str, Op, Vec<TensorType>)) -> String {
    let graph = graph_of(name, op.clone(), types, true, false, &mut Generator::new(3));
    let (execution, schedules) = (Execution::default(), ScheduleOptions::default());
    let options = Options { model_name: "m".into(), target: target.clone(), execution, schedules };
    text_of(&generate(&graph, &options).unwrap())
}

#[test]
fn vectors_that_products_share_are_held_where_instructions_take_them_from_memory() {
    for case in operators() {
        for target in [computer("x86-64-v3"), Target::host(32)] {
            let is_held = code(&target, &case).contains("= mlc_held_f32x8(*(const f32x8_unaligned *)(");
            assert_eq!(is_held, target.memory_operands, "{} on {}", case.0, target.name);
        }
        let others = ["x86-64-v2", "x86-64-v4", "cortex-a76", "riscv64"].map(computer);
        for target in others.iter().chain([&Target::generic()]) {
            assert!(!code(target, &case).contains("mlc_held"), "{} on {}", case.0, target.name);
        }
    }
    assert!(computer("x86-64-v3").memory_operands);
}

/// Multiply-adds that the C compiler makes of a text, and those of them that take a vector from memory.
fn multiply_adds(text: &str) -> Result<(usize, usize), String> {
    let folder = tempfile::tempdir().unwrap();
    let [source, result] = ["x.c", "x.s"].map(|name| folder.path().join(name));
    std::fs::write(&source, text).unwrap();
    let flags = computer("x86-64-v3").c_flags.into_iter().filter(|flag| !flag.starts_with("-march="));
    let mut command = Command::new("cc");
    command.args(flags).args([PROCESSOR, "-Wall", "-Wextra", "-Werror", "-S"]).arg(&source).arg("-o").arg(&result);
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let assembly = std::fs::read_to_string(&result).unwrap();
    let all: Vec<&str> = assembly.lines().filter(|line| line.trim_start().starts_with("vfmadd")).collect();
    Ok((all.len(), all.iter().filter(|line| line.contains('(')).count()))
}

#[test]
fn gcc_reads_vectors_once_that_products_share() {
    if let Err(fault) = multiply_adds("void f(void);\nvoid f(void) {}\n") {
        return eprintln!("skipped: the C compiler knows no {PROCESSOR}: {fault}");
    }
    let case = &operators()[0];
    let text = code(&computer("x86-64-v3"), case);
    assert!(text.contains(BARRIER), "{text}");
    let (all, from_memory) = multiply_adds(&text).unwrap();
    assert!(all >= 24 && from_memory * 4 <= all, "{from_memory} of {all} take a vector from memory");
}
