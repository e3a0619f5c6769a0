//! Reports: the data is that of the compiled model; pages and pictures are whole, the same whenever they are made, and safe from what models
//! are named.

use mlc::bundle::Bundle;
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
    assert_eq!((totals.macs, totals.kernels, report.kernels.len()), (Some(2_656_768), 12, 12));
    assert_eq!((report.unit.as_deref(), report.objective.as_deref()), (Some("instructions"), Some("speed")));
    assert_eq!(totals.time, report.kernels.iter().map(|kernel| kernel.time).sum());
    let code: Option<u64> = report.kernels.iter().map(|kernel| kernel.code_bytes).sum();
    assert!(totals.code_bytes < code, "four convolutions of this network are the same function");
    for kernel in &report.kernels {
        let head = format!(" {}(", kernel.function);
        assert!(kernel.source.contains(&head) && kernel.source.ends_with('}'), "{}", kernel.source);
        assert!(kernel.time > Some(0) && kernel.moved_bytes > Some(0), "{}", kernel.node);
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
    let multiplying = one.kernels.iter().filter(|kernel| kernel.macs > Some(0)).count();
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
    assert_eq!(first.values, [fast.kernels[0].time, small.kernels[0].time]);
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

/// The bytes of an archive without some of its files.
fn without(archive: &[u8], left_out: &[&str]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let (mut header, path) = (entry.header().clone(), entry.path().unwrap().to_path_buf());
        if left_out.iter().all(|own| !path.ends_with(own)) {
            builder.append_data(&mut header, path, &mut entry).unwrap();
        }
    }
    builder.into_inner().unwrap()
}

#[test]
fn archives_say_what_the_compiler_knew() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let model = network("net_mlperftiny_dscnn_kws");
    let (model, archive) = (model.to_str().unwrap(), file("kws.tar"));
    let options = ["--target", "cortex-m4", "--optimize", "speed"];
    assert!(mlc(&[&["compile", model, "-q", "-o", &archive], &options[..]].concat()).status.success());
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = mlc(&[arguments, &["--json", "-o", "-"]].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let whole = json(&[&["report", model], &options[..]].concat());
    let read = json(&["report", &archive]);
    for same in ["totals", "inputs", "outputs", "memory", "ceilings", "unit", "objective", "target"] {
        assert_eq!(read[same], whole[same], "{same}");
    }
    for (read, whole) in read["kernels"].as_array().unwrap().iter().zip(whole["kernels"].as_array().unwrap()) {
        for (name, value) in whole.as_object().unwrap().iter().filter(|(name, _)| *name != "others") {
            assert_eq!(&read[name], value, "{name} of {}", whole["node"]);
        }
    }
    assert_eq!(read["optimized"]["edges"], whole["optimized"]["edges"]);
    let texts = |report: &serde_json::Value| {
        report["optimized"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| (node["text"].clone(), node["kernels"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&read), texts(&whole));
    assert_eq!((&read["imported"]["nodes"], &read["stages"]), (&serde_json::json!([]), &serde_json::json!([])));
    let both = json(&["report", &archive, model, "--target", "cortex-m7", "--optimize", "speed"]);
    assert_eq!(both["kernels"].as_array().unwrap().len(), 12);
    assert!(both["names"][0].as_str().unwrap().ends_with("for cortex-m4, speed"), "{both}");
    let refused = mlc(&["report", &archive, "--versus", "--optimize size"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the archive is compiled"));
}

#[test]
fn of_archives_of_others_is_said_what_can_be_said() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = compile(&load("net_mlperftiny_dscnn_kws"), "cortex-m4");
    let archive = compiled.archive().unwrap();
    let report_of = |left_out: &[&str]| {
        let bundle = Bundle::parse(&without(&archive, left_out).into()).unwrap();
        mlc::report::report_archive("kws", &bundle, None).unwrap()
    };
    let (report, warnings) = report_of(&["default.json", "default.mlc"]);
    assert!(warnings.is_empty());
    assert_eq!(report.totals.arena_bytes, compiled.module.plan.arena_bytes);
    assert_eq!(report.totals.constants_bytes, compiled.module.constants_bytes());
    assert_eq!((report.totals.time, report.totals.macs, report.unit.as_deref()), (None, None, None));
    assert_eq!(report.kernels.len(), 12);
    assert!(report.kernels.iter().all(|kernel| kernel.source.ends_with('}') && kernel.time.is_none()));
    let alone = page::page(std::slice::from_ref(&report));
    assert!(alone.contains("The archive has no graph") && !alone.contains("<h2>Memory</h2>"), "{alone}");
    let own = report_of(&[]).0;
    let comparison = Comparison::new(&own, &report);
    let macs = comparison.totals.iter().find(|own| own.name == "multiply-adds").unwrap();
    assert_eq!((macs.values, macs.ratio), ([Some(2_656_768), None], None));
    assert!(page::page(&[own, report]).contains("Times are known of one alone"));
    let text = folder.path().join("kws.tar");
    std::fs::write(&text, without(&archive, &["default.json", "default.mlc"])).unwrap();
    for (picture, message) in [("graph", "the archive has no graph"), ("memory", "where its values are in memory")] {
        let refused = mlc(&["report", text.to_str().unwrap(), "--svg", picture]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(message), "{said}");
    }
}

#[test]
fn graphs_of_the_graph_executor_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("kws.tar");
    let model = network("net_mlperftiny_dscnn_kws");
    let options = ["compile", model.to_str().unwrap(), "--executor", "graph", "-q", "-o", archive.to_str().unwrap()];
    assert!(mlc(&options).status.success());
    let other = without(&std::fs::read(archive).unwrap(), &["default.json", "default.mlc"]);
    let bundle = Bundle::parse(&other.into()).unwrap();
    let (report, _) = mlc::report::report_archive("kws", &bundle, None).unwrap();
    let functions = || report.optimized.nodes.iter().filter(|node| node.operator == "function");
    assert_eq!(functions().count(), report.kernels.len());
    for (number, node) in functions().enumerate() {
        assert_eq!((node.kernels.as_slice(), &node.text), (&[number][..], &report.kernels[number].function));
        assert!(report.optimized.edges.iter().any(|edge| report.optimized.nodes[edge.to].name == node.name));
    }
    let kinds = |kind: &str| report.optimized.nodes.iter().filter(|node| node.kind == kind).count();
    assert_eq!((kinds("source"), kinds("output")), (1, 1));
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
