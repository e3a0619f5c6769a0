//! Archives of all versions, made here by the format's description, and damaged ones.

use super::*;
use bytes::Bytes;
use mlc_ir::{Code, DType, Generator, TensorType};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A tar file of these entries.
fn tar_file(entries: &[(&str, &str)]) -> Bytes {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in entries {
        append(&mut builder, name, text.as_bytes(), tar::EntryType::Regular);
    }
    builder.into_inner().unwrap().into()
}

fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8], kind: tar::EntryType) {
    let mut header = tar::Header::new_ustar();
    // The crate's own function refuses names that lead out of the archive.
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

/// x: f32[2, 3] and w: f32[3] go into f, its result through a reshape in place into g, which has two results.
fn graph_json() -> Value {
    let call = |name: &str, function: &str, inputs: Value, results: usize| {
        let count = inputs.as_array().unwrap().len();
        let attributes = json!({"func_name": function, "num_inputs": count.to_string(),
            "num_outputs": results.to_string(), "flatten_data": "0", "hash": "77"});
        json!({"op": "tvm_op", "name": name, "attrs": attributes, "inputs": inputs})
    };
    json!({
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "p0", "inputs": []},
            call("tvmgen_default_f", "tvmgen_default_f", json!([[0, 0, 0], [1, 0]]), 1),
            call("reshape_nop", "__nop", json!([[2, 0, 0]]), 1),
            call("tvmgen_default_g", "tvmgen_default_g", json!([[3, 0, 0], [0, 0, 0]]), 2),
        ],
        "arg_nodes": [0, 1],
        "heads": [[4, 1, 0], [4, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4, 6],
        "attrs": {
            "dltype": ["list_str", ["float32", "float32", "float32", "float32", "float32", "int8"]],
            "storage_id": ["list_int", [0, 1, 2, 2, 3, 2]],
            "shape": ["list_shape", [[2, 3], [3], [2, 3], [6], [3], [30]]],
            "device_index": ["list_int", [1, 1, 1, 1, 1, 1]],
        },
    })
}

fn archive(files: &[(&str, String)]) -> Archive {
    let entries: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    Archive::read(&tar_file(&entries)).unwrap()
}

fn graph(json: &Value) -> Result<Graph, mlc_ir::Diagnostic> {
    Graph::read(&archive(&[("g", json.to_string())]), "g")
}

/// The metadata of a model as versions before 7 have it.
fn old_module(version: usize) -> Value {
    let sids = json!([{"storage_id": 0, "size_bytes": 24, "input_binding": "x"}]);
    let functions = json!({
        "main": [{"device": 1, "workspace_size_bytes": 100, "constants_size_bytes": 12, "io_size_bytes": 66}],
        "operator_functions": [
            {"function_name": "tvmgen_default_f", "workspace": [{"device": 1, "workspace_size_bytes": 64}]},
        ],
    });
    let mut module = json!({
        "model_name": "default",
        "export_datetime": "2021-06-01 10:00:00Z",
        "target": if version < 6 { json!({"1": "c -keys=cpu"}) } else { json!(["c -keys=cpu "]) },
        "memory": if version == 1 { sids } else { json!({"sids": sids, "functions": functions}) },
    });
    module[if version < 5 { "runtimes" } else { "executors" }] = json!(["graph"]);
    if version >= 4 {
        module["style"] = json!("full-model");
    }
    module
}

const RELAY: &str = "def @main(%x: Tensor[(2, 3), float32] /* ty=Tensor[(2, 3), float32] */, %w: Tensor[(3), float32]) -> \
                     (Tensor[(30), int8], Tensor[(3), float32]) {\n  f(%x)\n}\n";

#[test]
fn every_version_is_read_by_its_own_rules() {
    for version in 1..=7 {
        let metadata = if version == 7 {
            json!({"version": 7, "modules": {"default": old_module(7)}})
        } else {
            let mut metadata = old_module(version);
            metadata["version"] = json!(version);
            metadata
        };
        let graph_path = match version {
            1..=4 => "runtime-config/graph/graph.json",
            5 | 6 => "executor-config/graph/graph.json",
            _ => "executor-config/graph/default.graph",
        };
        let relay_path = match version {
            1..=3 => "relay.txt",
            4..=6 => "src/relay.txt",
            _ => "src/default.relay",
        };
        let archive = archive(&[
            ("./metadata.json", metadata.to_string()),
            (&format!("./{graph_path}"), graph_json().to_string()),
            (&format!("./{relay_path}"), RELAY.into()),
        ]);
        let metadata = Metadata::read(&archive).unwrap();
        assert_eq!(metadata.version, version);
        let [model] = metadata.models.as_slice() else { panic!("{metadata:?}") };
        assert_eq!((model.name.as_str(), model.style), ("default", Style::FullModel));
        assert_eq!(model.executors, [Executor::Graph], "{version}");
        assert_eq!(model.targets[0].trim_end(), "c -keys=cpu");
        assert_eq!(model.memory.sids.len(), 1);
        assert_eq!(model.memory.main.len(), usize::from(version > 1));
        assert_eq!(model.memory.operators.len(), usize::from(version > 1));
        assert_eq!(metadata.code_prefix(model), if version < 3 { "lib" } else { "default_lib" });
        let graph = Graph::read(&archive, &metadata.graph_path("default")).unwrap();
        assert_eq!(graph.nodes.len(), 5);
        let parameters = BTreeSet::from(["p0"]);
        let interface = Interface::of_graph(&archive, &metadata, model, &graph, &parameters);
        let names = |ports: &[Port]| ports.iter().map(|port| port.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&interface.inputs), ["x"]);
        assert_eq!(names(&interface.outputs), ["output0", "output1"]);
        assert_eq!(interface.outputs[0].ty, TensorType::new(DType::I8, [30]));
        // The order of an entry point's inputs is that of the text, which stands at the version's own place.
        let entry = Interface::of_entry_point(&archive, &metadata, model, None).unwrap();
        assert_eq!(names(&entry.inputs), ["x", "w"]);
        assert!(entry.inputs.iter().all(|port| port.shape_known));
    }
}

#[test]
fn single_operators_are_read() {
    let metadata = json!({"version": 7, "model_name": "default", "style": "operator", "executors": [],
        "export_datetime": "x", "target": ["c"], "unheard_of": {"a": []},
        "memory": {"add": [{"size_bytes": 8, "shape": [2], "dtype": "int32", "input_binding": "p0"}]}});
    let archive = archive(&[("metadata.json", metadata.to_string())]);
    let metadata = Metadata::read(&archive).unwrap();
    assert_eq!(metadata.models[0].style, Style::Operator);
    assert_eq!(metadata.models[0].memory.operators[0].function_name, "add");
    assert_eq!(metadata.code_prefix(&metadata.models[0]), "lib");
}

#[test]
fn several_models_and_later_keys_are_read() {
    let mut module = old_module(7);
    module["memory"]["functions"]["main"][0]["inputs"] = json!({"x:0": {"dtype": "float32", "size": 24}});
    module["memory"]["functions"]["main"][0]["outputs"] = json!({"y": {"dtype": "int8", "size": 30}});
    module["external_dependencies"] = json!([{"short_name": "tvm_standalone_crt", "version_spec": "0.14.0"}]);
    let metadata = json!({"version": 7, "modules": {"a": module, "b": old_module(7)}});
    let archive = archive(&[("metadata.json", metadata.to_string())]);
    let metadata = Metadata::read(&archive).unwrap();
    let names: Vec<&str> = metadata.models.iter().map(|model| model.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let a = &metadata.models[0];
    assert_eq!(a.dependencies, ["tvm_standalone_crt 0.14.0"]);
    let header = "struct tvmgen_a_inputs { void* x_0; }; struct tvmgen_a_outputs { void* y; };";
    let header = Header::parse(header, "a").unwrap();
    let interface = Interface::of_entry_point(&archive, &metadata, a, Some(&header)).unwrap();
    let x = &interface.inputs[0];
    assert_eq!((x.name.as_str(), x.field.as_str(), x.shape_known), ("x:0", "x_0", false));
    assert_eq!(x.ty, TensorType::new(DType::F32, [6]));
}

#[test]
fn headers_tell_order_and_pools() {
    let text = "/* struct tvmgen_net_inputs { void* no; }; */\n#define TVMGEN_NET_SRAM_WORKSPACE_POOL_SIZE 4096\n\
        #define TVMGEN_NET_FLASH_CONSTANT_POOL_SIZE 3 // bytes\n#define TVMGEN_NET_FLASH_CONSTANT_POOL_DATA 1, 2, 3\n\
        struct tvmgen_net_inputs {\n  void* b; // second\n  void *a;\n};\nstruct tvmgen_net_outputs { void* y; };\n\
        struct tvmgen_net_workspace_pools { void* sram; void* flash; };\n\
        int32_t tvmgen_net_run(struct tvmgen_net_inputs* inputs);\n";
    let header = Header::parse(text, "Net").unwrap();
    assert_eq!(
        (header.inputs.as_slice(), header.outputs.as_slice()),
        (&["b".into(), "a".into()][..], &["y".into()][..])
    );
    assert_eq!(header.pools, ["sram", "flash"]);
    assert_eq!((header.pool_bytes("sram"), header.pool_bytes("flash")), (Some(4096), Some(3)));
    assert_eq!(header.pool_data("flash").as_deref(), Some("TVMGEN_NET_FLASH_CONSTANT_POOL_DATA"));
    assert_eq!((header.pool_data("sram"), header.io_in_pool, header.devices.len()), (None, false, 0));
    for broken in [
        "struct tvmgen_a_inputs { void* x; ",
        "struct tvmgen_a_inputs { int x; };",
        "struct tvmgen_a_inputs { void* 1; };",
    ] {
        assert_eq!(Header::parse(broken, "a").unwrap_err().code, Code::Syntax);
    }
}

#[test]
fn heads_of_relay_functions_are_understood() {
    let text = "#[version = \"0.0.5\"]\ndef @main(%a:0: Tensor[(1, 2), int8] /* span=a:0:0 */, %s: float32, %w, \
        output_tensor_names=[\"y,z\", \"(\"]) {\n";
    let signature = signature::Signature::parse(text);
    let expected = [
        ("a:0".to_owned(), Some(TensorType::new(DType::I8, [1, 2]))),
        ("s".to_owned(), Some(TensorType::new(DType::F32, []))),
        ("w".to_owned(), None),
    ];
    assert_eq!(signature.parameters, expected);
    assert_eq!(signature.result_names, ["y,z", "("]);
    assert!(signature.results.is_empty());
    let signature = signature::Signature::parse("def @main() -> Tensor[(4), bool] {");
    assert_eq!(signature.results, [TensorType::new(DType::Bool, [4])]);
    for text in
        ["", "def @main(", "def @main(%x: Tensor[(99999999999, 99999999999), int8]", "def @main(]", "def @main(/*"]
    {
        assert!(signature::Signature::parse(text).results.is_empty());
    }
}

#[test]
fn sizes_of_blocks_follow_from_the_graph() {
    let graph = graph(&graph_json()).unwrap();
    let blocks = storage(&graph);
    let sizes: Vec<(usize, u64)> = blocks.iter().map(|block| (block.storage_id, block.size_bytes)).collect();
    assert_eq!(sizes, [(0, 24), (1, 12), (2, 30), (3, 12)]);
    assert_eq!(blocks[1].input_binding.as_deref(), Some("p0"));
    let results: Vec<bool> = blocks.iter().map(|block| block.holds_result).collect();
    assert_eq!(results, [false, false, true, true]);
    let told = |sizes: &[u64]| -> Vec<StorageEntry> {
        let entry = |(storage_id, &size_bytes)| StorageEntry { storage_id, size_bytes, input_binding: None };
        sizes.iter().enumerate().map(entry).collect()
    };
    assert_eq!(check_storage(&told(&[24, 12, 30, 12]), &blocks), None);
    assert_eq!(check_storage(&[], &blocks), None);
    let wrong = check_storage(&told(&[24, 12, 24, 24]), &blocks).unwrap();
    assert!(wrong.message.contains("2 of 4 blocks"), "{wrong}");
    assert!(
        check_storage(&told(&[24]), &blocks).unwrap().message.contains("lists 1 blocks of memory, the graph has 4")
    );
}

#[test]
fn broken_graphs_are_refused_with_their_place() {
    type Edit = fn(&mut Value);
    let cases: &[(Edit, Code, &str)] = &[
        (|g| g["nodes"][2]["inputs"][0][0] = json!(2), Code::UndefinedValue, "$.nodes[2].inputs[0]"),
        (|g| g["nodes"][2]["inputs"][0][0] = json!(4), Code::UndefinedValue, "$.nodes[2].inputs[0]"),
        (|g| g["nodes"][2]["inputs"][0][1] = json!(1), Code::UndefinedValue, "$.nodes[2].inputs[0]"),
        (|g| g["nodes"][2]["inputs"][0] = json!([0]), Code::Syntax, "$.nodes[2].inputs[0]"),
        (|g| g["nodes"][2]["inputs"][0][0] = json!(-1), Code::Syntax, "$.nodes[2].inputs[0][0]"),
        (|g| g["nodes"][2]["inputs"][0][0] = json!(0.5), Code::Syntax, "$.nodes[2].inputs[0][0]"),
        (|g| g["nodes"][2]["op"] = json!("tf_op"), Code::OperatorUnsupported, "$.nodes[2].op"),
        (|g| g["nodes"][2]["attrs"]["func_name"] = json!("f();"), Code::Syntax, "$.nodes[2].attrs.func_name"),
        (|g| g["nodes"][2]["attrs"]["num_inputs"] = json!("3"), Code::CountMismatch, "$.nodes[2].attrs"),
        (
            |g| g["nodes"][2]["attrs"]["num_outputs"] = json!("99999999999"),
            Code::NumberOutOfRange,
            "$.nodes[2].attrs.num_outputs",
        ),
        (|g| g["nodes"][2]["attrs"]["flatten_data"] = json!(0), Code::Syntax, "$.nodes[2].attrs.flatten_data"),
        (|g| g["nodes"][3]["attrs"]["num_outputs"] = json!("2"), Code::OperandCount, "$.nodes[3].attrs"),
        (|g| g["nodes"][1]["inputs"] = json!([[0, 0, 0]]), Code::OperandCount, "$.nodes[1].inputs[0]"),
        (|g| g["nodes"][1]["name"] = json!("x"), Code::DuplicateDefinition, "$.arg_nodes"),
        (|g| g["arg_nodes"] = json!([0, 2]), Code::CountMismatch, "$.arg_nodes"),
        (|g| g["node_row_ptr"][3] = json!(4), Code::CountMismatch, "$.node_row_ptr"),
        (|g| g["node_row_ptr"] = json!([0, 1]), Code::CountMismatch, "$.node_row_ptr"),
        (|g| g["heads"][0] = json!([4, 2, 0]), Code::UndefinedValue, "$.heads[0]"),
        (
            |g| g["attrs"]["shape"][1][5] = json!([1u64 << 40, 1u64 << 40]),
            Code::NumberOutOfRange,
            "$.attrs.shape[1][5]",
        ),
        (|g| g["attrs"]["shape"][0] = json!("list_int"), Code::Syntax, "$.attrs.shape[0]"),
        (|g| g["attrs"]["dltype"][1][0] = json!("float8"), Code::VariantUnsupported, "$.attrs.dltype[1][0]"),
        (|g| g["attrs"]["device_index"][1][0] = json!(2), Code::VariantUnsupported, "$.attrs.device_index[1][0]"),
        (|g| g["attrs"]["storage_id"][1] = json!([0]), Code::CountMismatch, "$.attrs.storage_id[1]"),
        (
            |g| g["attrs"]["storage_scope"] = json!(["list_str", ["x", "", "", "", "", ""]]),
            Code::VariantUnsupported,
            "$.attrs.storage_scope[1][0]",
        ),
        (
            |g| {
                g.as_object_mut().unwrap().remove("heads");
            },
            Code::ParameterMissing,
            "$",
        ),
        (|g| *g = json!([]), Code::Syntax, "$"),
    ];
    for (edit, code, place) in cases {
        let mut json = graph_json();
        edit(&mut json);
        let error = graph(&json).unwrap_err();
        assert_eq!((error.code, error.location.json_path.as_deref()), (*code, Some(*place)), "{error}");
    }
}

#[test]
fn broken_metadata_are_refused_with_their_place() {
    for (text, code, message) in [
        ("{", Code::Syntax, "isn't JSON"),
        ("[]", Code::Syntax, "an object expected"),
        ("{}", Code::ParameterMissing, "'version'"),
        ("{\"version\": 8}", Code::RelatedFormat, "version 8"),
        ("{\"version\": 0}", Code::RelatedFormat, "version 0"),
        ("{\"version\": \"7\"}", Code::Syntax, "$.version"),
        ("{\"version\": 5}", Code::ParameterMissing, "'executors'"),
        ("{\"version\": 5, \"executors\": [\"vm\"]}", Code::VariantUnsupported, "\"vm\""),
        ("{\"version\": 7, \"modules\": {\"a;system()\": {}}}", Code::Syntax, "C identifier"),
        (
            "{\"version\": 7, \"modules\": {\"a\": {\"executors\": [], \"style\": \"odd\"}}}",
            Code::ParameterInvalid,
            "odd",
        ),
        (
            "{\"version\": 2, \"runtimes\": [], \"memory\": {\"sids\": [{}]}}",
            Code::ParameterMissing,
            "$.memory.sids[0]",
        ),
        (
            "{\"version\": 2, \"runtimes\": [], \"memory\": {\"functions\": {\"main\": [{\"inputs\": {\"x\": {\"dtype\": \
             \"float32\", \"size\": 6}}}]}}}",
            Code::ParameterInvalid,
            "6 bytes",
        ),
    ] {
        let error = Metadata::read(&archive(&[("metadata.json", text.into())])).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    let deep = "[".repeat(100_000);
    assert!(Metadata::read(&archive(&[("metadata.json", deep)])).is_err());
}

#[test]
fn dangerous_and_damaged_archives_are_refused() {
    for (entries, message) in [
        (&[("../evil", "x")][..], "leads out"),
        (&[("/etc/evil", "x")], "leads out"),
        (&[("a/../../evil", "x")], "leads out"),
        (&[("a\\b", "x")], "leads out"),
        (&[("./a", "x"), ("a", "x")], "twice"),
        (&[], "no files"),
    ] {
        let error = Archive::read(&tar_file(entries)).unwrap_err();
        assert_eq!(error.code, Code::ArchiveDamaged);
        assert!(error.message.contains(message), "{error}");
    }
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Char, tar::EntryType::Fifo] {
        let mut builder = tar::Builder::new(Vec::new());
        append(&mut builder, "a", b"", kind);
        let error = Archive::read(&builder.into_inner().unwrap().into()).unwrap_err();
        assert!(error.message.contains("neither a file nor a folder"), "{error}");
    }
    let error = Archive::read(&Bytes::from_static(&[0x1f, 0x8b, 8, 0])).unwrap_err();
    assert!(error.message.contains("gzip") && error.help.is_some(), "{error}");
    let whole = tar_file(&[("a", &"x".repeat(2000))]);
    for end in [1, 511, 513, 1000, 2511] {
        assert!(Archive::read(&whole.slice(..end)).is_err(), "{end}");
    }
}

#[test]
fn extended_headers_and_folders_are_passed_over() {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "./", b"", tar::EntryType::Directory);
    append(&mut builder, "././@PaxHeader", b"30 mtime=1700000000.123456789\n", tar::EntryType::XHeader);
    append(&mut builder, "./metadata.json", b"{}", tar::EntryType::Regular);
    append(&mut builder, "./src/", b"", tar::EntryType::Directory);
    let archive = Archive::read(&builder.into_inner().unwrap().into()).unwrap();
    assert_eq!(archive.files().map(|(name, _)| name).collect::<Vec<_>>(), ["metadata.json"]);
}

#[test]
fn damage_anywhere_does_no_harm() {
    let metadata = json!({"version": 7, "modules": {"default": old_module(7)}}).to_string();
    let graph = graph_json().to_string();
    let good = tar_file(&[
        ("metadata.json", &metadata),
        ("executor-config/graph/default.graph", &graph),
        ("src/default.relay", RELAY),
    ]);
    let read = |bytes: Bytes| {
        let archive = Archive::read(&bytes)?;
        let metadata = Metadata::read(&archive)?;
        for model in &metadata.models {
            let graph = Graph::read(&archive, &metadata.graph_path(&model.name))?;
            storage(&graph);
            Interface::of_graph(&archive, &metadata, model, &graph, &BTreeSet::new());
            Interface::of_entry_point(&archive, &metadata, model, None)?;
        }
        Ok::<(), mlc_ir::Diagnostic>(())
    };
    read(good.clone()).unwrap();
    let mut generator = Generator::new(1);
    let mut refused = 0;
    for _ in 0..3000 {
        refused += usize::from(read(generator.damaged(&good).into()).is_err());
    }
    assert!(refused > 100, "{refused}");
}
