use super::*;

const METADATA: &str = r#"{"modules": {"tiny": {"executors": ["aot"]}}, "version": 7}"#;
const HEADER: &str = "struct tvmgen_tiny_inputs { void* x; }; struct tvmgen_tiny_outputs { void *none; };";
const DESCRIPTION: &str = r#"{"inputs": [{"dtype": "f32", "field": "x", "name": "x", "shape": [2]}], "outputs": [],
    "target": "generic", "kernels": []}"#;

const PLAN: &str = r#""plan": {"arena_bytes": 8, "alignment": 8, "liveness_bound_bytes": 8,
    "buffers": [{"values": ["y"], "offset": 0, "bytes": 8, "first": 0, "last": 0}]}, "kernels""#;

fn archive(entries: &[(&str, &str)]) -> Bytes {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(text.len() as u64);
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().into()
}

#[test]
fn our_archives_are_read_back() {
    let bytes = archive(&[
        ("./metadata.json", METADATA),
        ("./src/tiny.json", DESCRIPTION),
        ("./codegen/host/include/tvmgen_tiny.h", HEADER),
        ("./codegen/host/src/tiny_lib1.c", "1"),
        ("./codegen/host/src/tiny_lib0.c", "0"),
    ]);
    let bundle = Bundle::parse(&bytes).unwrap();
    assert_eq!(bundle.model.name, "tiny");
    assert_eq!(bundle.origin.as_ref().unwrap().target, "generic");
    assert!(matches!(bundle.call, Call::CInterface(_)));
    assert_eq!(bundle.inputs[0].ty, TensorType::new(DType::F32, [2]));
    assert_eq!(bundle.sources().unwrap(), ["codegen/host/src/tiny_lib0.c", "codegen/host/src/tiny_lib1.c"]);
    let folder = tempfile::tempdir().unwrap();
    bundle.unpack(folder.path()).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("codegen/host/src/tiny_lib1.c")).unwrap(), "1");
}

#[test]
fn dangerous_and_damaged_archives_are_refused() {
    let good = [("./metadata.json", METADATA), ("./src/tiny.json", DESCRIPTION)];
    for (entries, message) in [
        (&[("../evil", "x")][..], "leads out"),
        (&[("a", "x")], "no 'metadata.json'"),
        (&[good[0]], "tells too little"),
        (&[good[0], ("src/tiny.json", "{}")], "missing field"),
        (&[good[0], ("src/tiny.json", &DESCRIPTION.replace("\"x\", \"name\"", "\"x;\", \"name\""))], "C identifier"),
        (&[good[0], ("src/tiny.json", &DESCRIPTION.replace("[2]", "[9999999999999]"))], "too large"),
        (&[good[0], ("src/tiny.json", &DESCRIPTION.replace("\"kernels\"", PLAN))], "doesn't fit the memory plan"),
    ] {
        let error = Bundle::parse(&archive(entries)).unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn damage_anywhere_does_no_harm() {
    let good = archive(&[("./metadata.json", METADATA), ("./src/tiny.json", DESCRIPTION)]);
    let mut generator = mlc_ir::Generator::new(1);
    let mut refused = 0;
    for _ in 0..2000 {
        let mut bytes = generator.damaged(&good);
        bytes.truncate(generator.range(0, 2 * bytes.len()));
        refused += usize::from(Bundle::parse(&bytes.into()).is_err());
    }
    assert!(refused > 0);
}
