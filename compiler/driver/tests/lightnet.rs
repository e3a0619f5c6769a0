//! LightNet models on the command line.

use crate::common::mlc;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/lightnet");

#[test]
fn models_are_written_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for case in ["il_basic", "il_squeezenet_toy"] {
        for (model, written) in [("model.il", "a.json"), ("model.json", "b.json")] {
            mlc(folder.path(), 0, &["convert", &format!("{DATA}/{case}/{model}"), written]);
        }
        assert_eq!(read("a.json"), read("b.json"), "{case}");
        mlc(folder.path(), 0, &["convert", "--compact", "a.json", "c.json"]);
        assert!(!read("c.json").contains('\n'), "{case}");
        mlc(folder.path(), 0, &["convert", "c.json", "c.json"]);
        assert_eq!(read("a.json"), read("c.json"), "{case}");
    }
    let said = mlc(folder.path(), 1, &["convert", "a.json", "a.tsm"]);
    assert!(said.contains("MLC0110") && said.contains("LightNet can't be written as TenniS"), "{said}");
}

#[test]
fn weights_and_outputs_are_given_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("{DATA}/weights_file_float_int8/{name}");
    let (model, weights, input) = (file("model.json"), file("weights.wts"), file("input_0.npy"));
    let expected = [format!("y={}", file("output_0.npy")), format!("qmax={}", file("output_1.npy"))];
    let given = ["verify", &model, "--weights", &weights, "--input", &input];
    let said = mlc(folder.path(), 0, &[&given[..], &["--expect", &expected[0], "--expect", &expected[1]]].concat());
    assert!(said.contains("'unused_weight' is for nothing"), "{said}");
    let said = mlc(folder.path(), 0, &["inspect", &model]);
    assert!(said.contains("\"w\"") || said.contains(" w"), "{said}");
    let said = mlc(folder.path(), 2, &["compile", &model, "--inputs", "nobody", "-o", "a.tar"]);
    assert!(said.contains("MLC0004") && said.contains("'nobody'"), "{said}");
    let said = mlc(folder.path(), 2, &["compile", &model, "--bind", "x=buffer:0", "-o", "a.tar"]);
    assert!(said.contains("--bind isn't for it"), "{said}");
    mlc(folder.path(), 0, &["compile", &model, "--output", "product=tensor:xw", "-o", "a.tar"]);
}

#[test]
fn texts_include_files_of_their_folder_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir_all(inner.join("parts")).unwrap();
    std::fs::write(folder.path().join("secret.il"), "relu(src=x | dst=y |);").unwrap();
    std::fs::write(inner.join("parts/a.il"), "#include \"b.il\"\n").unwrap();
    let create = "create(| dst=x | dtype=TL_FLOAT, dims=[2], ran=[0, 0], data=[0], from_file=true);\n";
    std::fs::write(inner.join("parts/b.il"), format!("#define layer(a, b) relu(src=a | dst=b, |)\n{create}")).unwrap();
    std::fs::write(inner.join("net.il"), "#include \"parts/a.il\"\nlayer(x, y);\n").unwrap();
    mlc(&inner, 0, &["compile", "net.il", "-o", "a.tar"]);
    std::fs::write(inner.join("net.il"), "#include \"parts/a.il\"\nlayer(ghost, y);\n").unwrap();
    let said = mlc(&inner, 1, &["compile", "net.il", "-o", "a.tar"]);
    let wanted = ["MLC0103", "parts/b.il:1:21", "#define layer(a, b)", "net.il:2:1", "the macro `layer` is used here"];
    assert!(wanted.iter().all(|words| said.contains(words)), "{said}");
    for name in ["../secret.il", "none.il"] {
        std::fs::write(inner.join("net.il"), format!("{create}#include \"{name}\"\n")).unwrap();
        let said = mlc(&inner, 1, &["compile", "net.il", "-o", "a.tar"]);
        assert!(said.contains("MLC0001") && said.contains("net.il:2:10"), "{said}");
    }
}

#[test]
fn a_text_that_stands_for_too_much_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bomb: String = (0..64).map(|n| format!("#define a{} a{n}; a{n}\n", n + 1)).collect();
    std::fs::write(folder.path().join("bomb.il"), bomb + "create(| dst=x || );\na64").unwrap();
    let said = mlc(folder.path(), 1, &["compile", "bomb.il"]);
    assert!(said.contains("MLC0108") && said.contains("stand for more than"), "{said}");
}
