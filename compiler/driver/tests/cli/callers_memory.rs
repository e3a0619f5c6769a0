//! Inputs that are given row by row, and working memory in several pieces, on the command line.

use super::Folder;

/// Two convolutions whose results are averaged, of an image whose channels come first.
const IMAGE: &str = r#"mlc 1
graph @g(%image: f32[1, 3, 8, 6], %gain: f32[1, 4]) -> ("y": f32[1, 4]) {
  %t = transpose %image {permutation = [0, 2, 3, 1]} : f32[1, 8, 6, 3]
  %w0 = constant f32[3, 3, 3, 8] random(seed = 1)
  %c0 = convolution %t, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w1 = constant f32[3, 3, 8, 4] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [0, 1]], groups = 1}
  %s = reduce %c1 {function = sum, axes = [1, 2], keep_axes = false}
  %y = binary %s, %gain {function = multiply}
  return %y
}
"#;

fn header(folder: &Folder, path: &str) -> String {
    std::fs::read_to_string(folder.path().join(path).join("tvmgen_default.h")).unwrap()
}

#[test]
fn rows_are_told_of_and_given() {
    let folder = Folder::new();
    folder.write("image.mlc", IMAGE);
    folder.mlc(&["compile", "image.mlc", "--feed=image", "--emit", "c", "-o", "c"]).success();
    let text = header(&folder, "c");
    for line in [
        "  const void* image; /* \"image\": f32[1, 8, 6, 3] */",
        "#define TVMGEN_DEFAULT_FEED_ROWS 8",
        "#define TVMGEN_DEFAULT_FEED_ROW_SIZE 72",
        "#define TVMGEN_DEFAULT_FEED_SAVED_SIZE 504",
        "int32_t tvmgen_default_feed(struct tvmgen_default_feeding* feeding, const void* rows, size_t count);",
    ] {
        assert!(text.contains(line), "{text}");
    }
    folder.mlc(&["compile", "image.mlc", "--feed=image", "-o", "fed.tar"]).success();
    folder.mlc(&["compile", "image.mlc", "-o", "whole.tar"]).success();
    let pixels: Vec<f64> = (0..144u16).map(|number| f64::from(number % 17) - 8.0).collect();
    let first = |channel: usize, pixel: usize| pixels[pixel * 3 + channel];
    let channels: Vec<f64> = (0..144).map(|place| first(place / 48, place % 48)).collect();
    folder.write_array("pixels.npy", &[1, 8, 6, 3], &pixels);
    folder.write_array("channels.npy", &[1, 3, 8, 6], &channels);
    folder.write_array("gain.npy", &[1, 4], &[1.0, 2.0, 0.5, -1.0]);
    let run = |archive: &str, image: &str, to: &str| {
        folder.mlc(&["run", archive, "--input", image, "--input", "gain=gain.npy", "--output-dir", to]).success();
        folder.read_array(&format!("{to}/y.npy"), &[1, 4])
    };
    let (fed, whole) = (run("fed.tar", "image=pixels.npy", "fed"), run("whole.tar", "image=channels.npy", "whole"));
    assert!(
        fed.iter().zip(&whole).all(|(fed, whole)| (fed - whole).abs() <= 1e-4 * whole.abs().max(1.0)),
        "{fed:?} {whole:?}"
    );
    let feed = ["compile", "image.mlc", "--feed"];
    folder.mlc(&feed).failure(2, &["the model has 2 inputs", "image, gain"]);
    folder.mlc(&["compile", "image.mlc", "--feed=gain"]).failure(1, &["MLC0405", "the input 'gain' has no rows"]);
    folder.mlc(&["compile", "image.mlc", "--feed=z"]).failure(2, &["no input 'z'"]);
    let packed = ["compile", "image.mlc", "--feed=image", "--interface-api", "packed"];
    folder.mlc(&packed).failure(2, &["only the C interface takes an input row by row"]);
}

#[test]
fn pools_are_told_of() {
    let folder = Folder::new();
    folder.write("image.mlc", IMAGE);
    let compile = ["compile", "image.mlc", "--pool", "psram=1M,slow", "--pool", "dtcm=2K"];
    folder.mlc(&[&compile[..], &["--emit", "c", "-o", "c"]].concat()).success();
    let text = header(&folder, "c");
    for part in ["  void* psram; /* ", "  void* dtcm; /* ", "accessed most */", "_DTCM_WORKSPACE_POOL_SIZE "] {
        assert!(text.contains(part), "{text}");
    }
    let told = folder.mlc(&[&compile[..], &["-o", "pools.tar"]].concat()).success();
    assert!(told.err.contains("in psram") && told.err.contains("in dtcm"), "{}", told.err);
    let small = ["compile", "image.mlc", "--pool", "dtcm=64"];
    folder.mlc(&small).failure(1, &["MLC0402", "don't fit the pools: 'dtcm' has 64"]);
    for (pools, part) in [
        (&["dtcm=1K", "dtcm=1M"][..], "there is another pool 'dtcm'"),
        (&["global_workspace=1M"], "there is another pool 'global_workspace'"),
        (&["int=1M"], "isn't a name in C"),
        (&["a=1M,fast"], "'fast' is no property of a pool"),
    ] {
        let options: Vec<&str> = pools.iter().flat_map(|pool| ["--pool", *pool]).collect();
        folder.mlc(&[&["compile", "image.mlc"][..], &options].concat()).failure(2, &[part]);
    }
    let graph = ["--executor", "graph"];
    folder.mlc(&[&compile[..], &graph].concat()).failure(2, &["only the C interface takes memory", "--pool"]);
}
