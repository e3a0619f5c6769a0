//! TenniS modules on the command line.

use crate::common::mlc;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/tennis");

#[test]
fn modules_are_written_in_one_form() {
    let folder = tempfile::tempdir().unwrap();
    for case in ["quirk_forward_reference", "quirk_trailing_bytes", "graph_cpp_writer", "net_lenet"] {
        let model = format!("{DATA}/{case}/model.tsm");
        mlc(folder.path(), 0, &["convert", &model, "a.tsm"]);
        mlc(folder.path(), 0, &["convert", "a.tsm", "b.tsm"]);
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert!(read("a.tsm") == read("b.tsm"), "{case}");
        // In place, too.
        mlc(folder.path(), 0, &["convert", "b.tsm", "b.tsm"]);
        assert!(read("a.tsm") == read("b.tsm"), "{case}");
        // What the old file has besides is told, and isn't in the new one.
        let graph = |model: &str| {
            let said = mlc(folder.path(), 0, &["inspect", model]);
            said.split("note[").next().unwrap().to_owned()
        };
        assert_eq!(graph(&model), graph("a.tsm"), "{case}");
    }
    let said = mlc(folder.path(), 1, &["convert", &format!("{DATA}/../onnx/abs/model.onnx"), "c.tsm"]);
    assert!(said.contains("MLC0110") && said.contains("can't be written as TenniS"), "{said}");
    assert!(!folder.path().join("c.tsm").exists());
}

#[test]
fn containers_and_encrypted_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let noise: Vec<u8> = (0..400u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (name, bytes, words) in [
        ("face.sta", b"\x29\x09\x91\x19\0\0\0\0".to_vec(), "MLC0110|(.sta)|byte 0"),
        ("face.csta", noise.clone(), "MLC0110|encrypted|(.csta)"),
        ("face.tsm", noise, "MLC0101|byte 4|looks encrypted"),
        ("empty.tsm", Vec::new(), "MLC0101|byte 0|header"),
        ("text.tsm", b"a text that is long enough for a code".to_vec(), "MLC0101|byte 4|0x19910929 expected"),
    ] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let said = mlc(folder.path(), 1, &["compile", name]);
        assert!(words.split('|').all(|word| said.contains(word)), "{name}: {said}");
    }
}

#[test]
fn inputs_take_what_the_files_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = |case: &str, name: &str| format!("{DATA}/{case}/{name}");
    // Neither shape nor data type is in the file.
    let open = "graph_param_no_shape_no_dtype";
    let (model, input) = (file(open, "model.tsm"), file(open, "input_0.npy"));
    let said = mlc(folder.path(), 1, &["compile", &model]);
    assert!(said.contains("MLC0207") && said.contains("--input-shape"), "{said}");
    let expected = format!("r={}", file(open, "output_0.npy"));
    mlc(folder.path(), 0, &["verify", &model, "--input", &input, "--expect", &expected]);
    // The file says a data type, the caller has another one.
    let cast = "graph_param_dtype_cast";
    let (model, input, expected) =
        (file(cast, "model.tsm"), file(cast, "input_0.npy"), format!("m={}", file(cast, "output_0.npy")));
    let said = mlc(folder.path(), 1, &["verify", &model, "--input", &input, "--expect", &expected]);
    assert!(said.contains("MLC0006"), "{said}");
    let bytes = ["verify", &model, "--input", &input, "--expect", &expected, "--input-dtype", "x=uint8"];
    mlc(folder.path(), 0, &bytes);
    // A shape is what the input says.
    let shape = "constant_of_shape";
    let (model, value) = (file(shape, "model.tsm"), format!("input0={}", file(shape, "input_0.npy")));
    let said = mlc(folder.path(), 1, &["compile", &model]);
    assert!(said.contains("MLC0208"), "{said}");
    mlc(folder.path(), 0, &["compile", &model, "--input-value", &value, "-o", "a.tar"]);
    // Its file is its input, too.
    let output = format!("k={}", file(shape, "output_0.npy"));
    let said = mlc(folder.path(), 0, &["verify", &model, "--input-value", &value, "--expect", &output]);
    assert!(!said.contains("random inputs"), "{said}");
    let onnx = file("../onnx/abs", "model.onnx");
    let said = mlc(folder.path(), 2, &["compile", &onnx, "--input-dtype", "x=uint8"]);
    assert!(said.contains("--input-dtype"), "{said}");
    let tflite = file("../tflite/add_relu6_int8", "model.tflite");
    let said = mlc(folder.path(), 2, &["compile", &tflite, "--input-value", &value]);
    assert!(said.contains("--input-value is for ONNX and TenniS"), "{said}");
}
