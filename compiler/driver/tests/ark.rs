//! ARK models by the command: what is said of a file, and other forms of it.

use std::io::Write;
use std::path::Path;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ark");

/// Whether the command succeeds, and what it says and prints.
fn mlc(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let (status, said) = crate::common::said(folder, arguments);
    (status == 0, said)
}

#[test]
fn models_are_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for case in ["math_exp", "seed_matmul_nt", "v2024a_softmax_composite__compressed"] {
        let model = format!("{DATA}/{case}/model.json");
        for (arguments, end) in [(&["a.json"][..], "}\n"), (&["--compact", "b.json"], "]}")] {
            let (success, said) = mlc(folder, &[&["convert", &model], arguments].concat());
            assert!(success && said.contains("wrote"), "{said}");
            assert!(read(arguments.last().unwrap()).ends_with(end), "{case}");
        }
        assert!(mlc(folder, &["convert", "b.json", "c.json"]).0);
        assert_eq!(read("a.json"), read("c.json"), "{case}");
        assert!(!read("b.json").contains([' ', '\n']), "{case}");
    }
    assert_eq!(std::fs::read_to_string(format!("{DATA}/math_exp/model.json")).unwrap(), {
        assert!(mlc(folder, &["convert", &format!("{DATA}/math_exp/model.json"), "d.json"]).0);
        read("d.json")
    });
    std::fs::write(folder.join("x.mlc"), "mlc 1\n").unwrap();
    let (success, said) = mlc(folder, &["convert", "x.mlc", "y.json"]);
    assert!(!success && said.contains("can't be written as ARK"), "{said}");
}

#[test]
fn files_are_inspected() {
    let (success, said) = mlc(Path::new(DATA), &["inspect", "seed_matmul_nt/model.json"]);
    assert!(success, "{said}");
    for line in ["format:  ARK", "dialect: seed", "rank:    0 of 1", "buffers: 3 (284 bytes here)", "      1  Matmul"] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    let (_, said) = mlc(Path::new(DATA), &["inspect", "--json", "seed_matmul_nt/model.json"]);
    assert!(said.contains("\"dialect\": \"seed\""), "{said}");
}

/// Runs a model with a cache that it writes to, and gives the bytes of its output.
fn attend(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let model = format!("{DATA}/kv_cache_append/model.json");
    let (success, said) = mlc(folder, &[&["run", &model, "--output-dir", "out"], arguments].concat());
    assert!(success, "{arguments:?}: {said}");
    std::fs::read(folder.join("out/matmul_1.npy")).unwrap()
}

fn given(name: &str, place: usize) -> String {
    format!("{name}={DATA}/kv_cache_append/input_{place}.npy")
}

#[test]
fn inputs_have_other_names_by_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let golden = std::fs::read(format!("{DATA}/kv_cache_append/output_0.npy")).unwrap();
    for names in [["cache", "new_row", "q"], ["tensor.0", "tensor.1", "tensor.2"], ["buffer.0", "new_row", "buffer.2"]]
    {
        let [cache, row, q] = [0, 1, 2].map(|place| given(names[place], place));
        let found = attend(folder.path(), &["--input", &cache, "--input", &row, "--input", &q]);
        assert_eq!(found, golden, "{names:?}");
    }
    let model = format!("{DATA}/kv_cache_append/model.json");
    let (success, said) = mlc(folder.path(), &["run", &model, "--input", &given("tensor.9", 0)]);
    assert!(!success && said.contains("tensor.9"), "{said}");
}

/// An archive of arrays as `numpy.savez_compressed` writes it.
fn archive(folder: &Path, files: &[(&str, &str)]) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(folder.join("weights.npz")).unwrap());
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, file) in files {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&std::fs::read(format!("{DATA}/kv_cache_append/{file}")).unwrap()).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn weights_and_states_are_what_the_first_run_begins_with() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let golden = std::fs::read(format!("{DATA}/kv_cache_append/output_0.npy")).unwrap();
    let rest = [given("new_row", 1), given("q", 2)];
    let rest = ["--input", &rest[0], "--input", &rest[1]];
    archive(folder, &[("tensor.0", "input_0.npy")]);
    let weights = ["--weights", "weights.npz"];
    for further in [&[][..], &["--state", "cache"], &["--state", "buffer.0"], &["--inputs", "q,tensor.1"]] {
        assert_eq!(attend(folder, &[&weights, &rest[..], further].concat()), golden, "{further:?}");
    }
    archive(folder, &[("cache", "input_0.npy"), ("q", "input_2.npy")]);
    assert_eq!(attend(folder, &[&weights, &rest[..], &["--inputs", "q"]].concat()), golden);
    assert_eq!(attend(folder, &[&weights[..], &rest[..2]].concat()), golden, "q is a constant");

    // Without a weight, a state begins as zeros.
    let zeros = mlc_ir::Tensor::from_floats(mlc_ir::TensorType::new(mlc_ir::DType::F32, [8, 4]), vec![0.0; 32]);
    std::fs::write(folder.join("zeros.npy"), mlc::npy::format(&zeros)).unwrap();
    let from_zeros = attend(folder, &[&["--input", "cache=zeros.npy"], &rest[..]].concat());
    assert_eq!(attend(folder, &[&["--state", "cache"], &rest[..]].concat()), from_zeros);
    assert_ne!(from_zeros, golden);
    let model = format!("{DATA}/kv_cache_append/model.json");
    let (success, said) = mlc(folder, &["run", &model, "--state", "nobody"]);
    assert!(!success && said.contains("'nobody'") && said.contains("'cache', 'new_row', 'q'"), "{said}");
}

#[test]
fn options_about_weights_are_not_for_formats_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pnnx = format!("{DATA}/../pnnx/op_bmm/model.pnnx.param");
    for option in ["--cast-weights", "--require-all-weights"] {
        let (success, said) = mlc(folder, &["compile", &pnnx, option, "-o", "model.tar"]);
        assert!(
            !success && said.contains("MLC0004") && said.contains("--cast-weights and --require-all-weights"),
            "{said}"
        );
    }
    assert!(mlc(folder, &["compile", &pnnx, "-o", "model.tar"]).0);
    for option in ["--cast-weights", "--require-all-weights"] {
        let (success, said) = mlc(folder, &["run", "model.tar", option]);
        assert!(!success && said.contains("the archive is compiled"), "{said}");
    }
}

#[test]
fn files_of_ranks_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) =
        (format!("{DATA}/d_send_recv/rank0/model.json"), format!("{DATA}/d_send_recv/rank1/model.json"));
    let (success, said) = mlc(folder.path(), &["compile", &second, &first, "-o", "out"]);
    assert!(!success, "{said}");
    for file in [&first, &second] {
        assert!(said.lines().any(|line| line.contains("-->") && line.contains(&**file)), "{file}: {said}");
    }
    let other = format!("{DATA}/d_all_reduce_2/rank1/model.json");
    let (success, said) = mlc(folder.path(), &["compile", &first, &other, "-o", "out"]);
    assert!(!success && said.contains("MLC0113"), "{said}");
    assert!(said.lines().filter(|line| line.contains("-->")).all(|line| line.contains("/model.json")), "{said}");
}
