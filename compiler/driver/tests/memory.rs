//! Programs within a limit of memory: `--ram`, `--extra-work` and `mlc explore`.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::mlc;
use serde_json::Value;
use std::path::Path;

/// A chain of convolutions whose whole results take far more memory than some rows of each.
const MODEL: &str = r#"mlc 1
graph @chain(%x: f32[1, 40, 12, 2]) -> ("y": f32[1, 20, 6, 4]) {
  %w0 = constant f32[3, 3, 2, 8] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %r0 = unary %c0 {function = absolute}
  %w1 = constant f32[3, 3, 8, 8] random(seed = 2)
  %c1 = convolution %r0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %r1 = unary %c1 {function = absolute}
  %w2 = constant f32[3, 3, 8, 4] random(seed = 3)
  %y = convolution %r1, %w2 {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [0, 1]], groups = 1}
  return %y
}
"#;

/// Bytes of the input and the output.
const REST: u64 = 4 * (40 * 12 * 2 + 20 * 6 * 4);

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.mlc"), MODEL).unwrap();
    folder
}

/// The programs that `mlc explore` lists, as bytes of working memory and time.
fn programs(folder: &Path) -> Vec<(u64, u64)> {
    let said = mlc(folder, 0, &["explore", "model.mlc", "--target", "cortex-m4", "--json", "--quiet"]);
    let front: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((front["target"].as_str(), front["unit"].as_str()), (Some("cortex-m4"), Some("instructions")));
    let figure = |program: &Value, name: &str| program[name].as_u64().unwrap();
    let programs = front["programs"].as_array().unwrap().iter();
    programs.map(|program| (figure(program, "arena_bytes"), figure(program, "time"))).collect()
}

/// Bytes of working memory that the archive of [`MODEL`] says.
fn compiled(folder: &Path, options: &[&str]) -> u64 {
    archived(folder, "model.mlc", options)
}

/// Bytes of working memory that the archive of a model says.
fn archived(folder: &Path, model: &str, options: &[&str]) -> u64 {
    let target = if options.contains(&"--target") { &[][..] } else { &["--target", "cortex-m4"] };
    mlc(folder, 0, &[&["compile", model, "-o", "m.tar", "--quiet"], target, options].concat());
    let said = mlc(folder, 0, &["inspect", "m.tar", "--json", "--quiet"]);
    let archive: Value = serde_json::from_str(&said).unwrap();
    archive["models"][0]["memory"][0]["workspace_size_bytes"].as_u64().unwrap()
}

#[test]
fn programs_lie_between_little_memory_and_little_time() {
    let folder = folder();
    let programs = programs(folder.path());
    assert!(programs.len() > 1, "{programs:?}");
    assert!(programs.is_sorted_by(|one, next| one.0 < next.0 && one.1 > next.1), "{programs:?}");
    assert!(programs[0].0 * 3 < programs[programs.len() - 1].0, "{programs:?}");
    let said = mlc(folder.path(), 0, &["explore", "model.mlc", "--target", "cortex-m4", "--svg", "front.svg"]);
    assert!(said.contains("working memory") && said.contains(" 0.0 %"), "{said}");
    let picture = std::fs::read_to_string(folder.path().join("front.svg")).unwrap();
    assert_eq!(picture.matches("<circle").count(), programs.len());
}

#[test]
fn a_budget_gets_the_fastest_program_within_it() {
    let folder = folder();
    let programs = programs(folder.path());
    let (least, most) = (programs[0].0, programs[programs.len() - 1].0);
    // The usual program's results lie over no operands; one for a budget is the fastest, and takes less where that costs no time.
    let usual = compiled(folder.path(), &["--optimize", "speed"]);
    assert!(most <= usual, "{most} of {usual} bytes");
    let ram = (most + REST).to_string();
    assert_eq!(compiled(folder.path(), &["--optimize", "speed", "--ram", &ram]), most);
    for &(bytes, _) in &programs {
        let ram = (bytes + REST).to_string();
        let own = compiled(folder.path(), &["--optimize", "speed", "--ram", &ram]);
        assert!(own <= bytes, "{own} bytes within {bytes}");
    }
    // One byte less than the least program needs is refused with what that needs and takes.
    let ram = (least + REST - 1).to_string();
    let refused = ["compile", "model.mlc", "--target", "cortex-m4", "--ram", &ram, "-o", "none.tar"];
    let said = mlc(folder.path(), 1, &refused);
    assert!(said.contains(&format!("{} bytes of RAM are needed, 1 more than the limit", least + REST)), "{said}");
    assert!(said.contains("no program needs less") && said.contains("% more time"), "{said}");
    assert!(!folder.path().join("none.tar").exists());
}

#[test]
fn extra_work_buys_memory() {
    let folder = folder();
    let programs = programs(folder.path());
    let of = |share: &str| compiled(folder.path(), &["--optimize", "ram", "--extra-work", share]);
    assert_eq!((of("10000%"), of("0%")), (programs[0].0, programs[programs.len() - 1].0));
    assert!(compiled(folder.path(), &["--optimize", "ram"]) <= programs[0].0);
    let compile = ["compile", "model.mlc", "--target", "cortex-m4"];
    let wrong = |options: &[&str]| mlc(folder.path(), 2, &[&compile, options].concat());
    assert!(wrong(&["--optimize", "ram", "--extra-work", "10"]).contains("such as '10%'"));
    let said = mlc(folder.path(), 2, &[&compile[..], &["--extra-work", "10%"]].concat());
    assert!(said.contains("--extra-work goes with --optimize ram"), "{said}");
}

#[test]
fn rings_are_taken_where_they_cost_next_to_no_time() {
    let folder = folder();
    // With more channels there are more products for each row that is moved.
    let wide = MODEL.replace(" 8]", " 24]").replace(" 8, ", " 24, ");
    std::fs::write(folder.path().join("model.mlc"), wide).unwrap();
    let programs = programs(folder.path());
    let fastest = programs[programs.len() - 1];
    let balanced = compiled(folder.path(), &[]);
    let of_it = programs.iter().filter(|program| program.0 <= balanced).map(|program| program.1).min().unwrap();
    assert!(balanced * 2 < fastest.0, "{balanced} bytes in {programs:?}");
    assert!(of_it * 100 <= fastest.1 * 105, "{balanced} bytes in {programs:?}");
    // Whole tensors are read from a cache, and prices don't know vectors well enough.
    for target in ["cortex-m55", "aarch64"] {
        let [usual, fast] = [&["--optimize", "balanced"][..], &["--optimize", "speed"]]
            .map(|options| compiled(folder.path(), &[&["--target", target], options].concat()));
        assert_eq!(usual, fast, "{target}");
    }
}

#[test]
fn nothing_takes_less_memory_than_what_is_made_for_that() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["net_coord_attention", "net_lenet_relu_maxpool", "net_mlperftiny_dscnn_kws"] {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pnnx").join(name);
        for extension in ["param", "bin"] {
            let file = format!("model.pnnx.{extension}");
            std::fs::copy(model.join(&file), folder.path().join(&file)).unwrap();
        }
        let [ram, others @ ..] = ["ram", "speed", "balanced", "size"]
            .map(|objective| archived(folder.path(), "model.pnnx.param", &["--optimize", objective]));
        assert!(others.iter().all(|&other| ram <= other), "{name}: {ram} bytes, and {others:?}");
    }
}
