//! Programs within a limit of memory: `--ram`, `--extra-work` and `mlc explore`.

use crate::common::mlc;
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
    // Nothing is computed twice unless that is allowed.
    assert!(compiled(folder.path(), &["--optimize", "ram"]) >= programs[0].0);
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

#[test]
fn what_rows_in_rings_save_and_where_they_end_is_shown() {
    let folder = folder();
    let compile = ["compile", "model.mlc", "--target", "cortex-m4", "-o", "m.tar", "--optimize"];
    let said = mlc(folder.path(), 0, &[&compile[..], &["ram", "--explain"]].concat());
    let programs: Vec<&str> = said
        .lines()
        .skip_while(|line| !line.starts_with("nodes that are computed row by row"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .collect();
    assert!(programs[0].starts_with("    whole results: 15.6 KiB of working memory, time "), "{said}");
    let taken: Vec<&&str> = programs.iter().filter(|line| line.starts_with("  * ")).collect();
    assert!(taken.len() == 1 && taken[0].starts_with("  * 'c0' to 'y' ("), "{programs:?}");
    assert!(said.contains("rows in rings: 15.6 KiB with whole results, "), "{said}");
    let said = mlc(folder.path(), 0, &[&compile[..], &["speed", "--explain"]].concat());
    assert!(!said.contains("row by row") && !said.contains("rows in rings"), "{said}");

    mlc(folder.path(), 0, &[&compile[..], &["ram", "--quiet"]].concat());
    let mut archive = tar::Archive::new(std::fs::File::open(folder.path().join("m.tar")).unwrap());
    archive.unpack(folder.path().join("m")).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join("m").join(name)).unwrap();
    let header = read("codegen/host/include/tvmgen_default.h");
    assert!(header.contains("Rows of results lie in rings,\n * which is predicted to take "), "{header}");
    assert!(header.contains(" % more time than whole results in 15952 bytes. */\n#define"), "{header}");
    let considered = &serde_json::from_str::<Value>(&read("src/default.json")).unwrap()["considered"];
    let taken = &considered["programs"][considered["taken"].as_u64().unwrap() as usize];
    assert_eq!((taken["stripes"][0]["first"].as_str(), taken["stripes"][0]["last"].as_str()), (Some("c0"), Some("y")));
    assert_eq!(considered["programs"][0]["arena_bytes"], 15952);
}

#[test]
fn patches_need_less_than_rings_and_tell_what_they_compute_twice() {
    let folder = tempfile::tempdir().unwrap();
    // Rows are wide, and the result is small.
    let wide = MODEL.replace("40, 12, 2]", "24, 96, 2]").replace("20, 6, 4]", "12, 48, 4]");
    std::fs::write(folder.path().join("model.mlc"), wide).unwrap();
    let rest = 4 * (24 * 96 * 2 + 12 * 48 * 4);
    let rings = compiled(folder.path(), &["--optimize", "ram"]);
    let said = mlc(folder.path(), 0, &["explore", "model.mlc", "--target", "cortex-m4", "--json", "--quiet"]);
    let front: Value = serde_json::from_str(&said).unwrap();
    let twice: Vec<u64> =
        front["programs"].as_array().unwrap().iter().map(|program| program["twice"].as_u64().unwrap()).collect();
    let least = front["programs"][0]["arena_bytes"].as_u64().unwrap();
    assert!(twice[0] > 0 && twice.last() == Some(&0), "{twice:?}");
    assert!(least * 2 < rings, "{least} of {rings} bytes");

    let within = |bytes: u64| {
        let ram = (bytes + rest).to_string();
        let compile = ["compile", "model.mlc", "--target", "cortex-m4", "--ram", &ram, "--explain", "-o", "m.tar"];
        let said = mlc(folder.path(), 0, &compile);
        let taken = said.lines().find(|line| line.starts_with("  * ")).unwrap().to_owned();
        (said, taken)
    };
    // What is kept is faster, what is computed twice is smaller.
    let (said, taken) = within(rings * 3 / 4);
    assert!(taken.contains(" patches that keep rows for each other)"), "{said}");
    let (said, taken) = within(rings / 4);
    assert!(taken.contains(" patches that compute ") && taken.contains(" operations twice"), "{said}");
    assert!(said.contains("; patches compute "), "{said}");
    let mut archive = tar::Archive::new(std::fs::File::open(folder.path().join("m.tar")).unwrap());
    archive.unpack(folder.path().join("m")).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join("m").join(name)).unwrap();
    assert!(read("codegen/host/include/tvmgen_default.h").contains("Patches of rows compute "));
    let considered = &serde_json::from_str::<Value>(&read("src/default.json")).unwrap()["considered"];
    let taken = &considered["programs"][considered["taken"].as_u64().unwrap() as usize];
    assert!(taken["stripes"][0]["patches"].as_u64() > Some(1) && taken["stripes"][0]["twice"].as_u64() > Some(0));
    // The same command makes the same bytes.
    let first = std::fs::read(folder.path().join("m.tar")).unwrap();
    within(rings / 4);
    assert!(first == std::fs::read(folder.path().join("m.tar")).unwrap());
    for bytes in [rings * 3 / 4, rings / 4] {
        let ram = (bytes + rest).to_string();
        mlc(folder.path(), 0, &["verify", "model.mlc", "--target", "generic", "--ram", &ram, "--quiet"]);
    }

    let said = mlc(
        folder.path(),
        1,
        &["compile", "model.mlc", "--target", "cortex-m4", "--ram", &(least + rest - 1).to_string()],
    );
    assert!(said.contains(&format!("{} bytes of RAM are needed, 1 more than the limit", least + rest)), "{said}");
}

/// Windows over more and more rows, so that stripes save less and less.
const WINDOWS: &str = r#"mlc 1
graph @windows(%x: f32[1, 30, 1, 8]) -> ("y": f32[1, 6, 1, 32]) {
  %w0 = constant f32[5, 1, 1, 8] random(seed = 1)
  %d0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 8}
  %v0 = constant f32[1, 1, 8, 32] random(seed = 2)
  %p0 = convolution %d0, %v0 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w1 = constant f32[9, 1, 1, 32] random(seed = 3)
  %d1 = convolution %p0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 32}
  %v1 = constant f32[1, 1, 32, 32] random(seed = 4)
  %p1 = convolution %d1, %v1 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w2 = constant f32[13, 1, 1, 32] random(seed = 5)
  %d2 = convolution %p1, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 32}
  %v2 = constant f32[1, 1, 32, 32] random(seed = 6)
  %y = convolution %d2, %v2 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  return %y
}
"#;

/// Few rows of many channels behind many rows of few: two stripes take less than one.
const NARROWING: &str = r#"mlc 1
graph @narrowing(%x: f32[1, 48, 48, 3]) -> ("y": f32[1, 12, 12, 24]) {
  %w0 = constant f32[3, 3, 3, 16] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w1 = constant f32[3, 3, 16, 4] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [4, 4], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w2 = constant f32[1, 1, 4, 64] random(seed = 3)
  %c2 = convolution %c1, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w3 = constant f32[7, 7, 1, 64] random(seed = 4)
  %c3 = convolution %c2, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[3, 3], [3, 3]], groups = 64}
  %w4 = constant f32[1, 1, 64, 24] random(seed = 5)
  %y = convolution %c3, %w4 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  return %y
}
"#;

#[test]
fn why_stripes_end_is_told_by_operator_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let of = |model: &str, more: &[&str]| {
        let arguments = ["compile", model, "--target", "cortex-m4", "--optimize", "ram", "--explain", "-o", "m.tar"];
        let said = mlc(folder.path(), 0, &[&arguments[..], more].concat());
        said.lines().filter(|line| line.starts_with("  cut between ")).map(str::to_owned).collect::<Vec<String>>()
    };
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/pnnx");
    let cuts = of(&format!("{data}/net_mlperftiny_dscnn_kws/model.pnnx.param"), &[]);
    assert_eq!(cuts, ["  cut between 'body.14' and 'body.16': matmul isn't computed row by row there"]);
    std::fs::write(folder.path().join("windows.mlc"), WINDOWS).unwrap();
    assert_eq!(of("windows.mlc", &[]), [""; 0]);
    std::fs::write(folder.path().join("narrowing.mlc"), NARROWING).unwrap();
    let together = "  cut between 'c1' and 'c2': together they would need about 34.7 KiB, of 26.2 KiB for all";
    assert_eq!(of("narrowing.mlc", &[]), [together]);
}

/// Windows over few rows that need all of them: their results lie over them at a distance.
#[test]
fn an_executor_without_distances_says_what_it_takes_instead() {
    let folder = tempfile::tempdir().unwrap();
    let model = r#"mlc 1
graph @flat(%x: f32[1, 3, 40, 2]) -> ("y": f32[1, 3, 40, 16]) {
  %w0 = constant f32[1, 1, 2, 16] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w1 = constant f32[3, 3, 1, 16] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 16}
  %w2 = constant f32[3, 3, 1, 16] random(seed = 3)
  %c2 = convolution %c1, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 16}
  %w3 = constant f32[1, 1, 16, 16] random(seed = 4)
  %y = convolution %c2, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  return %y
}
"#;
    std::fs::write(folder.path().join("model.mlc"), model).unwrap();
    let compile = ["compile", "model.mlc", "--target", "cortex-m4", "--optimize", "ram", "-o", "m.tar", "--executor"];
    let of = |executor: &str| mlc(folder.path(), 0, &[&compile[..], &[executor]].concat());
    let (plain, blocks) = (of("aot"), of("graph"));
    assert!(plain.contains(" of working memory, ") && !plain.contains("in blocks"), "{plain}");
    assert!(
        blocks.contains(" of working memory in blocks (") && blocks.contains(" with --executor aot), "),
        "{blocks}"
    );
}

/// Three layers whose whole results are far larger than the caches near to a core.
const WIDE_MODEL: &str = r#"mlc 1
graph @wide(%x: f32[1, 128, 128, 4]) -> ("y": f32[1, 128, 128, 4]) {
  %w0 = constant f32[1, 1, 4, 64] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w1 = constant f32[3, 3, 1, 64] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 64}
  %w2 = constant f32[1, 1, 64, 4] random(seed = 3)
  %y = convolution %c1, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  return %y
}
"#;

#[test]
fn results_stay_in_a_cache_where_that_takes_little_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("wide.mlc"), WIDE_MODEL).unwrap();
    let arena = |options: &[&str]| archived(folder.path(), "wide.mlc", &[&["--target", "x86-64-v3"], options].concat());
    let (whole, rows) = (arena(&["--optimize", "size"]), arena(&["--optimize", "balanced"]));
    assert!(whole > 4 << 20 && rows < 1 << 20, "{whole} and {rows} bytes");
    // Threads share kernels of whole results.
    assert!(arena(&["--optimize", "balanced", "--threads", "2"]) > 4 << 20);
    mlc(folder.path(), 0, &["verify", "wide.mlc", "--target", "host", "--optimize", "balanced", "--quiet"]);
}

/// Two convolutions of bytes, whose sums are rescaled: of little memory they are fast with weights of two bytes each.
const BYTES: &str = r#"mlc 1
graph @bytes(%x: i8[1, 24, 12, 16]) -> ("y": i8[1, 24, 12, 16]) {
  %w0 = constant i8[3, 3, 16, 16] random(seed = 1)
  %c0 = kernel %x, %w0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, border = 0, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(rescale_twice(x0, 1200000000_i32, 38_i32), -128_i32), 127_i32))}
  %w1 = constant i8[3, 3, 16, 16] random(seed = 2)
  %y = kernel %c0, %w1 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, border = 0, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(rescale_twice(x0, 1200000000_i32, 38_i32), -128_i32), 127_i32))}
  return %y
}
"#;

#[test]
fn weights_of_two_bytes_are_for_flash_that_there_is() {
    let folder = folder();
    std::fs::write(folder.path().join("bytes.mlc"), BYTES).unwrap();
    // Bytes of working memory and of constants.
    let needed = |options: &[&str]| {
        let arena = archived(folder.path(), "bytes.mlc", options);
        let said = mlc(folder.path(), 0, &["inspect", "m.tar", "--json", "--quiet"]);
        let archive: Value = serde_json::from_str(&said).unwrap();
        (arena, archive["models"][0]["memory"][0]["constants_size_bytes"].as_u64().unwrap())
    };
    let (arena, wide) = needed(&["--optimize", "ram"]);
    let weights = 2 * 9 * 16 * 16;
    assert!(wide > 2 * weights, "{wide} bytes of constants");
    let limit = (wide - 1).to_string();
    let (sparing_arena, sparing) = needed(&["--optimize", "ram", "--flash", &limit]);
    assert!(sparing_arena <= arena && sparing < wide && sparing < 2 * weights, "{sparing_arena} {sparing}");
    // Whoever has that little for both is told of what both need.
    let refused = mlc(folder.path(), 1, &["compile", "bytes.mlc", "--target", "cortex-m4", "--flash", "4K"]);
    assert!(refused.contains("MLC0402") && refused.contains(&format!("{sparing} bytes of flash")), "{refused}");
}
