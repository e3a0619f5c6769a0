//! Reports: the data is that of the compiled model; pages and pictures are whole, the same whenever they are made, and safe from what models
//! are named.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use mlc::pipeline::{self, CompileOptions, Compiled, LoadOptions, Loaded};
use mlc_ir::{Objective, text};
use mlc_report::{Comparison, Diagram, Measured, Report, page, svg};
use std::path::PathBuf;
use std::process::{Command, Output};

fn network(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/data/pnnx/{name}/model.pnnx.param"))
}

fn compile(loaded: &Loaded, target: &str) -> Compiled {
    let target = mlc::targets::find(target).unwrap().with_objective(Objective::Speed);
    let options = CompileOptions { target, explain: true, ..CompileOptions::default() };
    pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap()
}

fn load(name: &str) -> Loaded {
    pipeline::load(&network(name), &LoadOptions::default()).unwrap_or_else(|failure| panic!("{failure:?}"))
}

fn report(name: &str, target: &str) -> Report {
    let loaded = load(name);
    mlc::report::report(name, &loaded, &compile(&loaded, target), None)
}

fn mlc(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mlc")).args(arguments).output().unwrap()
}

#[test]
fn a_report_says_what_the_compiled_model_is() {
    let loaded = load("net_mlperftiny_dscnn_kws");
    let compiled = compile(&loaded, "cortex-m4");
    let report = mlc::report::report("kws", &loaded, &compiled, None);
    let totals = &report.totals;
    assert_eq!(totals.arena_bytes, compiled.module.plan.arena_bytes);
    assert_eq!(totals.constants_bytes, compiled.module.constants_bytes());
    assert_eq!((totals.macs, totals.kernels, report.kernels.len()), (2_656_768, 12, 12));
    assert_eq!((report.unit, report.objective.as_str()), ("instructions", "speed"));
    assert_eq!(totals.time, report.kernels.iter().map(|kernel| kernel.time).sum::<u64>());
    let code: u64 = report.kernels.iter().map(|kernel| kernel.code_bytes).sum();
    assert!(totals.code_bytes < code, "four convolutions of this network are the same function");
    for kernel in &report.kernels {
        let head = format!(" {}(", kernel.function);
        assert!(kernel.source.contains(&head) && kernel.source.ends_with('}'), "{}", kernel.source);
        assert!(kernel.time > 0 && kernel.moved_bytes > 0, "{}", kernel.node);
    }
    assert_eq!(report.imported.nodes.iter().filter(|node| node.operator == "convolution").count(), 9);
    let convolutions = report.optimized.nodes.iter().filter(|node| node.operator == "convolution +");
    for (number, node) in convolutions.enumerate() {
        assert_eq!(node.kernels, [number], "{}", node.name);
        assert!(node.rules.iter().any(|rule| rule == "fuse-epilogue"), "{:?}", node.rules);
    }
}

#[test]
fn measured_times_take_the_place_of_predicted_ones() {
    let loaded = load("net_mlperftiny_dscnn_kws");
    let compiled = compile(&loaded, "cortex-m4");
    let kernels: Vec<u64> = (1..=12).collect();
    let measured = Measured { unit: "instructions", machine: "cortex-m4".into(), kernels };
    let report = mlc::report::report("kws", &loaded, &compiled, Some(&measured));
    assert_eq!(report.totals.measured, Some(78));
    assert_eq!(report.kernels[11].measured, Some(12));
    assert!(page::page(&[report]).contains("78 instructions on cortex-m4"));
}

#[test]
fn pages_and_pictures_are_whole_and_always_the_same() {
    let reports = || [report("net_mlperftiny_dscnn_kws", "cortex-m4"), report("net_lstm_streaming_state", "cortex-m4")];
    let [one, other] = reports();
    let page = page::page(&[one.clone(), other.clone()]);
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"),
        "a template has a fault: {page}"
    );
    for own in [&one, &other] {
        for kernel in &own.kernels {
            assert!(page.contains(&format!("<td class=\"wide\">{}</td>", kernel.node)), "{}", kernel.node);
        }
    }
    assert_eq!(page, page::page(&reports()));
    let graph = svg::graph(&one.optimized, "graph");
    assert_eq!(graph.matches("class=\"node ").count(), one.optimized.nodes.len());
    assert_eq!(graph.matches("class=\"edge\"").count(), one.optimized.edges.len());
    let memory = svg::memory(&one);
    assert_eq!(memory.matches("class=\"block\"").count(), one.memory.buffers.len());
    let roofline = svg::roofline(&one).unwrap();
    let multiplying = one.kernels.iter().filter(|kernel| kernel.macs > 0).count();
    assert_eq!(roofline.matches("class=\"dot\"").count(), multiplying);
    for picture in [graph, memory, roofline] {
        let alone = svg::alone(&picture);
        assert!(alone.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && alone.trim_end().ends_with("</svg>"));
    }
}

#[test]
fn names_of_models_are_text_and_nothing_else() {
    let source = "mlc 1\ngraph @\"</script><b>&\"(%\"<i>\\\"\": f32[2]) -> (\"</title>\": f32[2]) {\n  \
                  %\"</script>\" = unary %\"<i>\\\"\" {function = relu} : f32[2]\n  return %\"</script>\"\n}\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mlc");
    std::fs::write(&path, source).unwrap();
    let loaded = pipeline::load(&path, &LoadOptions::default()).unwrap_or_else(|failure| panic!("{failure:?}"));
    let report = mlc::report::report("</title><b>", &loaded, &compile(&loaded, "generic"), None);
    let page = page::page(&[report]);
    assert_eq!(page.matches("</script>").count(), 2, "the page's own scripts");
    assert_eq!((page.matches("</title><b>").count(), page.matches("<i>").count()), (0, 0));
}

#[test]
fn two_reports_are_compared_kernel_by_kernel() {
    let [fast, small] = ["cortex-m4", "cortex-m55"].map(|target| report("net_mlperftiny_dscnn_kws", target));
    let comparison = Comparison::new(&fast, &small);
    assert_eq!(comparison.kernels.len(), 12);
    let first = &comparison.kernels[0];
    assert_eq!(first.values, [Some(fast.kernels[0].time), Some(small.kernels[0].time)]);
    let time = comparison.totals.iter().find(|own| own.name == "time, instructions").unwrap();
    assert!(time.ratio.unwrap() < 0.5, "{time:?}");
    let host = report("net_mlperftiny_dscnn_kws", "generic");
    let other = Comparison::new(&fast, &host);
    assert!(other.kernels.is_empty(), "cycles and instructions are no numbers of the same thing");
    assert!(page::page(&[fast, host]).contains("they can't be compared"));
}

#[test]
fn the_command_writes_what_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let model = network("net_mlperftiny_dscnn_kws");
    let model = model.to_str().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let fast = ["report", model, "--target", "cortex-m4", "--optimize", "speed"];
    let versus = [&fast[..], &["--versus", "--target cortex-m4 --optimize size", "-q", "-o"]].concat();
    assert!(mlc(&[&versus[..], &[&file("both.html")]].concat()).status.success());
    let page = std::fs::read_to_string(file("both.html")).unwrap();
    assert!(page.contains("<h2>Comparison</h2>") && page.contains("for cortex-m4, size"));
    let json = mlc(&[&fast[..], &["--json", "-o", "-"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["version"], &json["totals"]["kernels"]), (&1.into(), &12.into()));
    let dot = mlc(&["inspect", model, "--dot"]);
    let nodes = Diagram::of(&load("net_mlperftiny_dscnn_kws").graph).nodes.len();
    assert_eq!(String::from_utf8(dot.stdout).unwrap().matches("[label=").count(), nodes);
    for (wrong, message) in [
        (vec!["report", model, "--versus", "--target pdp-11"], "there is no target 'pdp-11'"),
        (vec!["report", model, "--versus", "--fast"], "--versus '--fast': unexpected argument '--fast' found"),
        (vec!["report", model, model, "--svg", "graph"], "a picture alone is of one model"),
    ] {
        let output = mlc(&wrong);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn constants_are_told_of_the_nodes_that_read_them() {
    let graph = text::parse(
        "mlc 1\ngraph @g(%x: f32[2]) -> (\"y\": f32[2]) {\n  %c = constant f32[2] [1.0, 2.0]\n  \
         %y = binary %x, %c {function = add} : f32[2]\n  return %y\n}\n",
        &(),
    );
    let diagram = Diagram::of(&graph.unwrap());
    let names: Vec<&str> = diagram.nodes.iter().map(|node| node.operator.as_str()).collect();
    assert_eq!(names, ["input", "binary add", "output"]);
    assert_eq!(diagram.nodes[1].constants, ["c: f32[2]"]);
    assert_eq!(diagram.edges.len(), 2);
}
