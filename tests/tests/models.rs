//! Whole networks at every step of their way, as reviewed snapshots: `snapshots/models/<name>/`.
//!
//! The target is the generic one, so that the snapshots are the same on every machine. `INSTA_UPDATE=always` rewrites them:
//! read the difference before committing it.

use mlc::pipeline::{self, CompileOptions, LoadOptions, Loaded};
use mlc_codegen::Module;
use mlc_ir::text;
use mlc_tests::case::Case;
use mlc_tests::{compile, paths};
use std::fmt::Write as _;

/// Graphs of more lines, but for the first and the last, are shown as what changed since the stage before.
const WHOLE_GRAPH_LINES: usize = 80;

/// A PNNX model at every step.
fn snapshot_all(model: &str) {
    snapshot_file(model, &format!("pnnx/net_{model}/model.pnnx.param"));
}

/// A model of the repository at every step.
fn snapshot_file(model: &str, file: &str) {
    let loaded = pipeline::load(&paths::data().join(file), &LoadOptions::default());
    snapshot_loaded(model, &loaded.unwrap_or_else(|failure| panic!("{failure:?}")));
}

/// A model that is loaded, at every step.
fn snapshot_loaded(model: &str, loaded: &Loaded) {
    let mut stages = vec![("import".to_owned(), text::print(&loaded.graph))];
    let options = CompileOptions::default();
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |stage, graph| {
        stages.push((stage.to_owned(), text::print(graph)));
    });
    let compiled = compiled.unwrap_or_else(|findings| panic!("{findings:?}"));

    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(paths::repository().join("snapshots/models").join(model));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        let mut previous = String::new();
        for (number, (stage, graph)) in stages.iter().enumerate() {
            let rim = number == 0 || number + 1 == stages.len();
            let shown = if rim || graph.lines().count() <= WHOLE_GRAPH_LINES {
                graph.clone()
            } else {
                similar::TextDiff::from_lines(&previous, graph).unified_diff().context_radius(1).to_string()
            };
            insta::assert_snapshot!(format!("{number}0-{stage}.mlc"), shown);
            previous.clone_from(graph);
        }
        insta::assert_snapshot!("plan.txt", plan(&compiled.module));
        insta::assert_snapshot!("model.c", compiled.module.sources[0].text);
        insta::assert_snapshot!("constants.txt", constants(&compiled.module));
        let files = compiled.files().unwrap();
        let metadata = files.get("metadata.json").expect("the archive has metadata");
        insta::assert_snapshot!("metadata.json", String::from_utf8_lossy(metadata));
        insta::assert_snapshot!("archive.txt", listing(&compiled.archive().unwrap()));
    });
}

/// The memory plan as a picture: a row per buffer, a column per kernel.
fn plan(module: &Module) -> String {
    let plan = &module.plan;
    let mut text = format!(
        "arena {} bytes, largest sum of live buffers {} bytes, {} kernels\n\n",
        plan.arena_bytes,
        plan.liveness_bound_bytes,
        module.kernels.len()
    );
    for buffer in &plan.buffers {
        let life: String = (0..module.kernels.len())
            .map(|kernel| if (buffer.first..=buffer.last).contains(&kernel) { '#' } else { '.' })
            .collect();
        let end = buffer.offset + buffer.bytes;
        let _ = writeln!(text, "{:>8}..{end:<8} {life} {}", buffer.offset, buffer.values.join(", "));
    }
    text.push('\n');
    for (number, kernel) in module.kernels.iter().enumerate() {
        let scratch =
            if kernel.workspace_bytes > 0 { format!(", scratch {}", kernel.workspace_bytes) } else { String::new() };
        let _ = writeln!(text, "{number:>3} {} {} ({} MACs{scratch})", kernel.node, kernel.operator, kernel.macs);
    }
    text
}

/// The constants by what they are: nobody reads weights.
fn constants(module: &Module) -> String {
    let line = |constant: &mlc_codegen::PackedConstant| {
        format!(
            "{} {} #{:016x} ({})\n",
            constant.symbol,
            constant.value.ty(),
            constant.value.content_hash(),
            constant.name
        )
    };
    module.constants.iter().map(line).collect()
}

/// The archive's entries.
fn listing(archive: &[u8]) -> String {
    let mut text = String::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        let (path, size) = (entry.path().unwrap().display().to_string(), header.size().unwrap());
        // The sources' sizes change with every change of the code generator, the runtime's with every one of its own;
        // the other snapshots and the runtime's tests show that.
        let varies =
            ["./codegen/", "./src/", "./runtime/", "./templates/"].iter().any(|folder| path.starts_with(folder))
                || path.ends_with("metadata.json");
        let size = if varies { String::new() } else { format!(" {size}") };
        let _ = writeln!(text, "{:o} {} {path}{size}", header.mode().unwrap(), header.mtime().unwrap());
    }
    text
}

#[test]
fn resnet8() {
    snapshot_all("mlperftiny_resnet8");
}

#[test]
fn keyword_spotting() {
    snapshot_all("mlperftiny_dscnn_kws");
}

#[test]
fn vision_transformer() {
    snapshot_all("vit_tiny_separate_qkv");
}

#[test]
fn lenet() {
    snapshot_all("lenet_relu_maxpool");
}

#[test]
fn gru_classifier() {
    snapshot_all("gru_classifier");
}

#[test]
fn lenet_of_tennis() {
    snapshot_file("tennis_lenet", "tennis/net_lenet/model.tsm");
}

#[test]
fn squeezenet_of_lightnets_language() {
    let case = Case::read(&paths::data().join("lightnet/il_squeezenet_toy")).unwrap();
    snapshot_loaded("lightnet_squeezenet", &compile::load(&case.as_text().unwrap()).unwrap());
}

#[test]
fn llama_block_of_ark() {
    let case = Case::read(&paths::data().join("ark/llama_block_fp32")).unwrap();
    snapshot_loaded("ark_llama_block", &compile::load(&case).unwrap());
}
