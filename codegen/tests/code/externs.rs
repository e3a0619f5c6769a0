//! Functions in C that aren't mlc's own, in every form of an archive: built with a C compiler under sanitizers and without a
//! warning. Needs make and a C compiler.

use super::executors::{example, executions, unpack};
#[cfg(target_arch = "x86_64")]
use mlc_codegen::levels;
use mlc_codegen::package::{Package, PackageModel};
use mlc_codegen::{Execution, Module, Options, Pools, ScheduleOptions, Target, generate};
use mlc_ir::{Code, Diagnostic, Graph};
use std::process::Command;

/// What the function keeps, and the declarations of a user.
const HEADER: &str = "#ifndef ADDER_H\n#define ADDER_H\n#include <stdint.h>\n\
    struct adder { int32_t begun; float step; };\n#endif\n";

/// `y0 = x0 + y1 + step` by way of scratch memory, where `y1 = 2 * x1` has been computed at the begin. It counts calls, and checks
/// what it is given.
const SOURCE: &str = r#"#include "adder.h"
#include <stddef.h>
int adder_begins, adder_runs, adder_ends;
int32_t adder_begin(struct adder *self, const void *x0, const void *x1, void *y0, void *y1, void *scratch);
int32_t adder_run(struct adder *self, const void *x0, const void *x1, void *y0, void *y1, void *scratch);
int32_t adder_end(struct adder *self, const void *x0, const void *x1, void *y0, void *y1, void *scratch);
static int aligned(const void *p) { return p != NULL && (uintptr_t)p % 32 == 0; }
int32_t adder_begin(struct adder *self, const void *x0, const void *x1, void *y0, void *y1, void *scratch) {
  if (x0 != NULL || y0 != NULL || scratch != NULL || !aligned(x1) || !aligned(y1)) return 40;
  for (int i = 0; i < 6; ++i) ((float *)y1)[i] = 2 * ((const float *)x1)[i];
  self->begun += 1;
  adder_begins += 1;
  return self->begun == 1 ? 0 : 41;
}
int32_t adder_run(struct adder *self, const void *x0, const void *x1, void *y0, void *y1, void *scratch) {
  if (!aligned(x0) || !aligned(x1) || !aligned(y0) || !aligned(y1) || !aligned(scratch)) return 42;
  adder_runs += 1;
  for (int i = 0; i < 6; ++i) ((float *)scratch)[i] = ((const float *)x0)[i] + self->step;
  for (int i = 0; i < 6; ++i) ((float *)y0)[i] = ((float *)scratch)[i] + ((float *)y1)[i];
  return ((float *)y0)[0] > 100 ? 43 : self->begun == 1 ? 0 : 44;
}
int32_t adder_end(struct adder *self, const void *x0, const void *x1, void *y0, void *y1, void *scratch) {
  if (x0 != NULL || y0 != NULL || scratch != NULL || !aligned(x1) || !aligned(y1)) return 45;
  self->begun -= 1;
  adder_ends += 1;
  return 0;
}
"#;

/// A call of the function, with these operands and results.
fn adder(fields: &str) -> String {
    format!(
        "{{symbol = adder_run, convention = unpacked, operands = [f32[6], f32[6]], results = [f32[6], f32[6]], workspace = 24, \
         alignment = 32, operations = 18, overwrites = [[0, 0]], persistent = [1], effect = 0, begin = adder_begin, \
         end = adder_end, instance = [adder, \"adder.h\", \"{{0, 0.5f}}\"], sources = [[\"adder.h\", {HEADER:?}], \
         [\"adder.c\", {SOURCE:?}]]{fields}}}"
    )
}

/// Inputs and outputs that the function touches itself, kernels around it, and a loop that calls it.
fn graph() -> Graph {
    let call = adder("");
    let text = format!(
        "mlc 1
graph @g(%x: f32[6]) -> (\"y\": f32[6], \"table\": f32[6], \"first\": f32[6]) {{
  %w = constant f32[6] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  %o = extern %x, %w {call}
  %a = map %x {{expression = add(x0, 1.0_f32)}}
  %e = extern %a, %w {call}
  %b = map %e, %e:1 {{expression = add(x0, x1)}}
  %l = loop %b {{body = graph @body(%turn: i64[], %h: f32[6]) -> (\"h\": f32[6]) {{
    %v = constant f32[6] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    %f = extern %h, %v {call}
    return %f
  }}, trip_count = 3, carried = 1, scanned = [], stacked = [], conditional = false}}
  return %l, %e:1, %o
}}
"
    );
    parsed(&text)
}

fn parsed(text: &str) -> Graph {
    let graph = mlc_ir::text::parse(text, &()).unwrap();
    mlc_ir::verify(&graph).unwrap();
    graph
}

fn generated(graph: &Graph, name: &str, execution: Execution, target: &Target) -> Result<Module, Vec<Diagnostic>> {
    generate(
        graph,
        &Options { model_name: name.into(), target: target.clone(), execution, schedules: ScheduleOptions::default() },
    )
}

/// What the example prints of zeroes.
const PRINTED: &str = "y: 13 23 33 43 53 63\ntable: 2 4 6 8 10 12\nfirst: 2.5 4.5 6.5 8.5 10.5 12.5\n";

#[test]
fn every_form_calls_functions_over_memory_as_they_want_it() {
    for target in [Target::generic(), Target::host(16)] {
        for execution in executions() {
            let module = generated(&graph(), "net", execution, &target).unwrap();
            let flags = if target.name == "generic" { "-std=c99 -Wconversion -pedantic" } else { "-std=gnu99" };
            assert_eq!(example(&Package::of(&module, &target, ""), flags), PRINTED, "{execution:?}");
        }
    }
}

#[test]
fn two_models_share_the_files_and_keep_apart_what_they_keep() {
    let target = Target::generic();
    let [first, second] =
        ["first", "second"].map(|name| generated(&graph(), name, Execution::default(), &target).unwrap());
    let models = [&first, &second].map(|module| PackageModel { module, graph_text: "", relay: None }).to_vec();
    let package = Package { models, ..Package::of(&first, &target, "") };
    assert_eq!(example(&package, "-std=c99"), PRINTED.repeat(2));
    let mut other = second.clone();
    other.sources.iter_mut().for_each(|source| source.text += " ");
    let models = [&first, &other].map(|module| PackageModel { module, graph_text: "", relay: None }).to_vec();
    let error = Package { models, ..Package::of(&first, &target, "") }.files().unwrap_err();
    assert_eq!(error.to_string(), "two models bring along different files of the name 'adder.h'");
}

/// Runs the model twice, ends, runs it again, and then on an input that the function refuses.
const MAIN: &str = r#"#include <stdio.h>
#include "tvmgen_net.h"
extern int adder_begins, adder_runs, adder_ends;
int main(void) {
  static float x[6] __attribute__((aligned(16))), out[3][6] __attribute__((aligned(16)));
  struct tvmgen_net_inputs inputs = {x};
  struct tvmgen_net_outputs outputs = {out[0], out[1], out[2]};
  for (int run = 0; run < 2; ++run) {
    if (tvmgen_net_run(&inputs, &outputs) != 0) return 1;
  }
  printf("%d %d %d\n", adder_begins, adder_runs, adder_ends);
  if (tvmgen_net_end() != 0 || tvmgen_net_end() != 0) return 1;
  printf("%d\n", adder_ends);
  if (tvmgen_net_run(&inputs, &outputs) != 0) return 1;
  printf("%d %g\n", adder_begins, (double)out[0][0]);
  x[0] = 1e6f;
  printf("%ld\n", (long)tvmgen_net_run(&inputs, &outputs));
  return 0;
}
"#;

/// Builds a module's archive with [`MAIN`] and options of the C compiler, and holds the program to what it is to tell.
fn begins_once(module: &Module, target: &Target, flags: &str) {
    let folder = tempfile::tempdir().unwrap();
    unpack(&Package::of(module, target, ""), folder.path());
    std::fs::write(folder.path().join("example/main.c"), MAIN).unwrap();
    let mut make = Command::new("make");
    let flags = format!("CFLAGS={flags} -Wall -Wextra -Werror -fsanitize=address,undefined");
    make.args(["-s", "-C", folder.path().to_str().unwrap(), "example", &flags]);
    let built = make.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(folder.path().join("build/example")).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "3 10 0\n3\n6 13\n43\n",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn what_begins_does_so_once_and_errors_are_returned() {
    let target = Target::generic();
    let module = generated(&graph(), "net", Execution::default(), &target).unwrap();
    begins_once(&module, &target, "-std=c99");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_begins_on_a_level_ends_with_all() {
    let target = crate::common::computer("x86-64");
    let of_level = |level: &Target| {
        let name = levels::name_of_level("net", level);
        generated(&graph(), &name, Execution::default(), level).unwrap()
    };
    let modules = target.levels.iter().map(of_level).collect();
    let module = levels::join("net", Execution::default(), &target, modules).unwrap();
    assert_eq!(module.state_bytes(), 3 * 3 * 24);
    assert_eq!(module.sources.iter().filter(|file| file.name == "adder.c").count(), 1);
    begins_once(&module, &target, "-std=gnu99");
}

#[test]
fn what_functions_keep_is_memory_of_the_model() {
    let target = Target::generic();
    let module = generated(&graph(), "net", Execution::default(), &target).unwrap();
    assert_eq!(module.state_bytes(), 3 * 24);
    assert_eq!(module.plan.alignment, 32);
    // The result is written over the operand that dies with the call, and nothing else is kept for it.
    let shared = module
        .plan
        .buffers
        .iter()
        .filter(|buffer| buffer.values.starts_with(&["a", "e", "b"].map(String::from)))
        .count();
    assert_eq!(shared, 1, "{:?}", module.plan);
    let header = &Package::of(&module, &target, "").files().unwrap()["codegen/host/include/tvmgen_net.h"];
    let header = std::str::from_utf8(header).unwrap();
    assert!(
        header.contains("int32_t tvmgen_net_end(void);") && header.contains("Not reentrant: functions"),
        "{header}"
    );
}

#[test]
fn functions_touch_what_kernels_would_and_nothing_is_copied() {
    // The caller's memory is as aligned as the header demands, and no more.
    for (alignment, kernels) in [(1, 1), (16, 1), (32, 3)] {
        let graph = parsed(&format!(
            "mlc 1\ngraph @g(%x: f32[6]) -> (\"y\": f32[6]) {{\n  %y = extern %x {{symbol = f, convention = unpacked, operands = [f32[6]], \
             results = [f32[6]], workspace = 0, alignment = {alignment}, operations = 0, overwrites = [[0, 0]], persistent = [], \
             effect = 0, begin = none, end = none, instance = none, sources = []}}\n  return %y\n}}\n"
        ));
        let module = generated(&graph, "net", Execution::default(), &Target::generic()).unwrap();
        let names: Vec<&str> = module.kernels.iter().map(|kernel| kernel.operator.as_str()).collect();
        assert_eq!(names.len(), kernels, "{names:?}");
        assert!(alignment > 16 || module.plan.arena_bytes == 0, "{:?}", module.plan);
    }
}

#[test]
fn effects_keep_their_order() {
    // By size alone, the second would come first.
    let call = |symbol: &str, ty: &str, effect: usize| {
        format!(
            "{{symbol = {symbol}, convention = unpacked, operands = [{ty}], results = [{ty}], workspace = 0, alignment = 1, \
             operations = 0, overwrites = [], persistent = [], effect = {effect}, begin = none, end = none, instance = none, sources = []}}"
        )
    };
    for (first, second) in [(1, 2), (2, 1)] {
        let graph = parsed(&format!(
            "mlc 1\ngraph @g(%x: f32[6]) -> (\"a\": f32[6], \"b\": f32[6]) {{\n  %p = extern %x {}\n  %q = extern %x {}\n  \
             %b = map %q {{expression = exp(x0)}}\n  return %p, %b\n}}\n",
            call("p", "f32[6]", first),
            call("q", "f32[6]", second),
        ));
        let module = generated(&graph, "net", Execution::default(), &Target::generic()).unwrap();
        let order: Vec<&str> =
            module.kernels.iter().map(|kernel| kernel.node.as_str()).filter(|&node| node != "b").collect();
        assert_eq!(order, if first < second { ["p", "q"] } else { ["q", "p"] });
    }
}

#[test]
fn what_cannot_be_called_is_refused_by_name() {
    let refused = |text: String, execution: Execution| -> (Code, String) {
        let faults = generated(&parsed(&text), "net", execution, &Target::generic()).unwrap_err();
        (faults[0].code, faults[0].to_string())
    };
    let graph = |first: &str, second: &str| {
        format!(
            "mlc 1\ngraph @g(%x: f32[6]) -> (\"a\": f32[6], \"b\": f32[6]) {{\n  %p = extern %x, %x {first}\n  \
             %q = extern %x, %x {second}\n  return %p, %q\n}}\n"
        )
    };
    let graph_executor = Execution { aot: None, graph: true, ..Execution::default() };
    let far = adder("").replace("alignment = 32", "alignment = 128");
    let (code, text) = refused(graph(&far, &far), graph_executor);
    assert_eq!(code, Code::TargetLimit);
    assert!(text.contains("aligned to 128 bytes"), "{text}");
    let keeping = Execution { states: Pools::External, ..Execution::default() };
    let (code, text) = refused(graph(&adder(""), &adder("")), keeping);
    assert_eq!(code, Code::TargetLimit);
    assert!(text.contains("which all streams would share") && text.contains("adder_run"), "{text}");
    let other = adder("").replace("workspace = 24", "workspace = 0");
    let (code, text) = refused(graph(&adder(""), &other), Execution::default());
    assert_eq!(code, Code::DuplicateDefinition);
    assert!(text.contains("adder_run is called with different arguments"), "{text}");
    let other = adder("").replace("adder_runs, ", "").replace("adder_run,", "adder_run2,");
    let (code, text) = refused(graph(&adder(""), &other), Execution::default());
    assert_eq!(code, Code::DuplicateDefinition);
    assert!(text.contains("two C files of the model have the name 'adder.c'"), "{text}");
    let other = adder("").replace("adder.c", "net_lib1.c");
    let (code, text) = refused(graph(&other, &other), Execution::default());
    assert_eq!(code, Code::DuplicateDefinition);
    assert!(text.contains("'net_lib1.c', which is one of the archive's own"), "{text}");
}
