//! Archives of other generators, made here by the format's description: `mlc` inspects them, runs their C, and compiles graphs.

use mlc::npy;
use mlc_ir::{DType, Tensor, TensorType};
use mlc_runtime::params::{self, Array, ElementType, Named};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// y = x + w, by a loop through scratch memory; the packed convention.
const OPERATORS: &str = r#"// made by hand
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
TVM_DLL int32_t tvmgen_default_add(void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle) {
  float* x = (float*)((DLTensor*)(((TVMValue*)args)[0].v_handle))[0].data;
  float* w = (float*)((DLTensor*)(((TVMValue*)args)[1].v_handle))[0].data;
  float* y = (float*)((DLTensor*)(((TVMValue*)args)[2].v_handle))[0].data;
  int32_t dev_id = 0;
  void* sum = TVMBackendAllocWorkspace(1, dev_id, (uint64_t)100, 2, 32);
  if (sum == NULL) {
    return -1;
  }
  for (int32_t i = 0; i < 6; ++i) {
    ((float*)sum)[i] = x[i] + w[i % 3];
  }
  for (int32_t i = 0; i < 6; ++i) {
    y[i] = ((float*)sum)[i];
  }
  if (TVMBackendFreeWorkspace(1, dev_id, sum) != 0) {
    return -1;
  }
  return 0;
}
TVM_DLL int32_t tvmgen_default_two(void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle) {
  float* x = (float*)((DLTensor*)(((TVMValue*)args)[0].v_handle))[0].data;
  float* y = (float*)((DLTensor*)(((TVMValue*)args)[1].v_handle))[0].data;
  float* z = (float*)((DLTensor*)(((TVMValue*)args)[2].v_handle))[0].data;
  for (int32_t i = 0; i < 6; ++i) {
    y[i] = 2 * x[i];
    z[i] = -x[i];
  }
  return 0;
}
"#;

/// The list of functions; until version 5, one byte counts them.
fn registry(version: usize) -> String {
    let count = if version <= 5 { r"\002" } else { r"\002\000" };
    let prototype = |name: &str| {
        format!(
            "int32_t tvmgen_default_{name}(TVMValue* args, int* types, int count, TVMValue* out, int* type, void* handle);\n"
        )
    };
    format!(
        "#include <tvm/runtime/crt/module.h>\n{}{}\
         static const TVMBackendPackedCFunc functions[] = {{\n  \
         (TVMBackendPackedCFunc)tvmgen_default_add, (TVMBackendPackedCFunc)tvmgen_default_two}};\n\
         static const TVMFuncRegistry registry = {{\"{count}tvmgen_default_add\\000tvmgen_default_two\\000\", functions}};\n\
         static const TVMModule module = {{&registry}};\n\
         const TVMModule* TVMSystemLibEntryPoint(void) {{ return &module; }}\n;",
        prototype("add"),
        prototype("two"),
    )
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tar(&self, name: &str, files: &[(&str, &[u8])]) {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, bytes) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            builder.append_data(&mut header, format!("./{path}"), *bytes).unwrap();
        }
        std::fs::write(self.path(name), builder.into_inner().unwrap()).unwrap();
    }

    fn write_array(&self, name: &str, shape: &[usize], values: &[f64]) {
        let tensor = Tensor::from_floats(TensorType::new(DType::F32, shape), values.to_vec());
        std::fs::write(self.path(name), npy::format(&tensor)).unwrap();
    }

    fn read_array(&self, name: impl AsRef<Path>, shape: &[usize]) -> Vec<f64> {
        npy::read_tensor(&self.0.path().join(name), &TensorType::new(DType::F32, shape)).unwrap().to_floats()
    }

    /// Runs the command; its status, and what it printed.
    fn mlc(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = crate::common::output(self.0.path(), arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn success(&self, arguments: &[&str]) -> String {
        let (status, out, err) = self.mlc(arguments);
        assert_eq!(status, 0, "{arguments:?}: {out}{err}");
        out
    }

    fn failure(&self, arguments: &[&str], texts: &[&str]) {
        let (status, out, err) = self.mlc(arguments);
        assert!(status == 1 || status == 2, "{arguments:?}: {out}{err}");
        for text in texts {
            assert!(err.contains(text), "'{text}' isn't in: {err}");
        }
        assert!(!err.contains("defect"), "{err}");
    }
}

fn module(executor: &str) -> Value {
    json!({
        "model_name": "default",
        "style": "full-model",
        "target": ["c -keys=cpu "],
        "executors": [executor],
        "memory": {"functions": {
            "main": [{"device": 1, "workspace_size_bytes": 160, "constants_size_bytes": 12, "io_size_bytes": 72,
                "inputs": {"x:0": {"dtype": "float32", "size": 24}},
                "outputs": {"output": {"dtype": "float32", "size": 24}}}],
            "operator_functions": [
                {"function_name": "tvmgen_default_add", "workspace": [{"device": 1, "workspace_size_bytes": 112}]},
            ],
        }},
    })
}

/// x:0 + p0, its double through a view, and its negation, which nothing uses.
fn graph() -> Value {
    let call = |name: &str, function: &str, inputs: Value, results: usize| {
        let count = inputs.as_array().unwrap().len().to_string();
        json!({"op": "tvm_op", "name": name, "inputs": inputs, "attrs": {"func_name": function,
            "num_inputs": count, "num_outputs": results.to_string(), "flatten_data": "0"}})
    };
    json!({
        "nodes": [
            {"op": "null", "name": "x:0", "inputs": []},
            {"op": "null", "name": "p0", "inputs": []},
            call("add", "tvmgen_default_add", json!([[0, 0, 0], [1, 0, 0]]), 1),
            call("reshape_nop", "__nop", json!([[2, 0, 0]]), 1),
            call("two", "tvmgen_default_two", json!([[3, 0, 0]]), 2),
            call("unused", "tvmgen_default_two", json!([[4, 0, 0]]), 2),
        ],
        "arg_nodes": [0, 1],
        "heads": [[4, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4, 6, 8],
        "attrs": {
            "dltype": ["list_str", ["float32", "float32", "float32", "float32", "float32", "float32", "float32", "float32"]],
            "storage_id": ["list_int", [0, 1, 2, 2, 3, 4, 5, 6]],
            "shape": ["list_shape", [[2, 3], [3], [2, 3], [6], [6], [6], [6], [6]]],
        },
    })
}

fn parameters() -> Vec<u8> {
    let data: Vec<u8> = [10f32, 20.0, 30.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let array = Array { element: ElementType::new(params::FLOAT, 32), shape: vec![3], data: data.into() };
    let mut bytes = Vec::new();
    params::write_list(&[Named { name: "p0".into(), array }], &mut bytes).unwrap();
    bytes
}

const X: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// 2 (x + p0).
const Y: [f64; 6] = [22.0, 44.0, 66.0, 28.0, 50.0, 72.0];

/// A graph archive of a version.
fn graph_archive(folder: &Folder, name: &str, version: usize, graph: &Value) {
    let mut metadata = json!({"version": version, "modules": {"default": module("graph")}});
    if version < 7 {
        metadata = module("graph");
        metadata["version"] = json!(version);
        metadata[if version < 5 { "runtimes" } else { "executors" }] = json!(["graph"]);
    }
    let path = match version {
        1..=4 => "runtime-config/graph/graph.json",
        5 | 6 => "executor-config/graph/graph.json",
        _ => "executor-config/graph/default.graph",
    };
    let prefix = if version < 3 { "lib" } else { "default_lib" };
    folder.tar(
        name,
        &[
            ("metadata.json", metadata.to_string().as_bytes()),
            (path, graph.to_string().as_bytes()),
            ("parameters/default.params", &parameters()),
            (&format!("codegen/host/src/{prefix}0.c"), registry(version).as_bytes()),
            (&format!("codegen/host/src/{prefix}1.c"), OPERATORS.as_bytes()),
        ],
    );
}

#[test]
fn graph_archives_of_all_versions_compile_to_archives_without_an_interpreter() {
    let folder = Folder::new();
    folder.write_array("x.npy", &[2, 3], &X);
    for version in 1..=7 {
        graph_archive(&folder, "old.tar", version, &graph());
        let report: Value = serde_json::from_str(&folder.success(&["inspect", "old.tar", "--json"])).unwrap();
        assert_eq!((&report["version"], &report["models"][0]["interface"]), (&json!(version), &json!("graph")));
        assert_eq!(report["models"][0]["storage"][2]["size_bytes"], 24);
        folder.success(&["run", "old.tar", "--input", "x:0=x.npy", "--output-dir", "out"]);
        assert_eq!(folder.read_array("out/output.npy", &[6]), Y, "{version}");
        for executor in if version == 7 { &["aot", "graph", "aot,graph"][..] } else { &["aot"] } {
            folder.success(&["compile", "old.tar", "--executor", executor, "-o", "new.tar"]);
            folder.success(&["run", "new.tar", "--input", "x:0=x.npy", "--output-dir", "out"]);
            assert_eq!(folder.read_array("out/output.npy", &[6]), Y, "{version} {executor}");
        }
    }
    let verified = folder.success(&["verify", "old.tar"]);
    assert!(verified.contains("output: ok, 6 elements against the evaluator"), "{verified}");
    // The old code as it was, but for the list of functions; one function for each node, and none that nothing uses.
    folder.success(&["compile", "old.tar", "--emit", "dir", "-o", "new"]);
    let read = |name: &str| std::fs::read_to_string(folder.path("new/codegen/host/src").join(name));
    assert_eq!(read("default_extern0.c").unwrap(), OPERATORS);
    assert!(read("default_extern1.c").is_err());
    let calls = read("default_lib1.c").unwrap();
    assert_eq!((calls.matches("return tvmgen_default_two(").count(), calls.matches("scratch + 112").count()), (1, 1));
}

#[test]
fn entry_points_are_called_as_they_stand() {
    let folder = Folder::new();
    folder.write_array("x.npy", &[2, 3], &X);
    folder.write_array("y.npy", &[3, 2], &Y);
    let metadata = json!({"version": 7, "modules": {"default": module("aot")}}).to_string();
    let header = "#include <stdint.h>\n#define TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE 64\n\
        struct tvmgen_default_inputs { void* x_0; };\nstruct tvmgen_default_outputs { void* output; };\n\
        struct tvmgen_default_workspace_pools { void* sram; };\n\
        int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs, struct tvmgen_default_outputs* outputs, \
        struct tvmgen_default_workspace_pools* workspace_pools);\n";
    let entry = "#include <tvmgen_default.h>\n#include \"tvm/runtime/c_runtime_api.h\"\n\
        int32_t tvmgen_default_run(struct tvmgen_default_inputs* inputs, struct tvmgen_default_outputs* outputs, \
        struct tvmgen_default_workspace_pools* workspace_pools) {\n  float* sum = (float*)workspace_pools->sram;\n  \
        for (int i = 0; i < 6; ++i) sum[i] = ((float*)inputs->x_0)[i] + 10 * (i % 3 + 1);\n  \
        for (int i = 0; i < 6; ++i) ((float*)outputs->output)[i] = 2 * sum[i];\n  return 0;\n}\n";
    folder.tar(
        "c.tar",
        &[
            ("metadata.json", metadata.as_bytes()),
            ("codegen/host/include/tvmgen_default.h", header.as_bytes()),
            ("codegen/host/src/default_lib0.c", entry.as_bytes()),
        ],
    );
    let entry = format!(
        "{OPERATORS}\nint32_t tvmgen_default_run(TVMValue* args, int* codes, int count, TVMValue* out, int* code, void* handle) {{\n  \
         static float w[] = {{10, 20, 30}};\n  DLTensor constant = *(DLTensor*)args[0].v_handle;\n  TVMValue all[3];\n  \
         constant.data = w;\n  all[0] = args[0];\n  all[1].v_handle = &constant;\n  all[2] = args[1];\n  \
         if (codes[0] != 7 || count != 2 || tvmgen_default_add(all, codes, 3, out, code, 0) != 0) return -1;\n  \
         for (int i = 0; i < 6; ++i) ((float*)((DLTensor*)args[1].v_handle)->data)[i] *= 2;\n  return 0;\n}}\n"
    );
    folder.tar(
        "packed.tar",
        &[("metadata.json", metadata.as_bytes()), ("codegen/host/src/default_lib0.c", entry.as_bytes())],
    );
    for archive in ["c.tar", "packed.tar"] {
        // The archives don't say the shape, so that of the files is taken.
        folder.success(&["run", archive, "--input", "x.npy", "--output-dir", "out"]);
        assert_eq!(folder.read_array("out/output.npy", &[6]), Y, "{archive}");
        folder.success(&["verify", archive, "--input", "x:0=x.npy", "--expect", "output=y.npy"]);
        folder.failure(&["verify", archive, "--input", "x:0=x.npy", "--expect", "output=x.npy"], &["MLC0007"]);
        folder.failure(&["verify", archive], &["MLC0004", "--expect"]);
        folder.failure(&["bench", archive, "--per-kernel", "--runs", "1"], &["MLC0004", "told apart"]);
        folder.success(&["bench", archive, "--runs", "2", "--json"]);
        folder.failure(&["compile", archive], &["MLC0110", "ahead of time"]);
    }
    let report: Value = serde_json::from_str(&folder.success(&["inspect", "c.tar", "--json"])).unwrap();
    assert_eq!(report["models"][0]["pools"], json!([{"name": "sram", "size_bytes": 64}]));
    assert_eq!(report["models"][0]["inputs"], json!([{"name": "x:0", "dtype": "f32", "size_bytes": 24}]));
}

#[test]
fn every_form_of_our_own_archives_runs() {
    let folder = Folder::new();
    let model = "mlc 1\ngraph @g(%x: f32[6]) -> (\"y\": f32[6]) {\n  %y = unary %x {function = negate} : f32[6]\n  return %y\n}\n";
    std::fs::write(folder.path("m.mlc"), model).unwrap();
    folder.write_array("x.npy", &[6], &X);
    for form in [
        &["--executor", "graph"][..],
        &["--executor", "aot,graph"],
        &["--executor", "graph", "--mlf-version", "5"],
        &["--interface-api", "packed"],
        &["--workspace-pools", "external"],
    ] {
        folder.success(&[&["compile", "m.mlc", "-o", "m.tar"], form].concat());
        folder.success(&["run", "m.tar", "--input", "x.npy", "--output-dir", "out"]);
        assert_eq!(folder.read_array("out/y.npy", &[6]), X.map(|x| -x), "{form:?}");
    }
}

#[test]
fn one_of_several_models_is_chosen() {
    let folder = Folder::new();
    folder.write_array("x.npy", &[6], &X);
    let metadata = json!({"version": 7, "modules": {"one": module("aot"), "two": module("aot")}}).to_string();
    let entry = |model: &str, factor: i32| {
        format!(
            "#include \"tvm/runtime/c_runtime_api.h\"\n\
             int32_t tvmgen_{model}_run(TVMValue* args, int* codes, int count, TVMValue* out, int* code, void* handle) {{\n  \
             for (int i = 0; i < 6; ++i)\n    ((float*)((DLTensor*)args[1].v_handle)->data)[i] = \
             {factor} * ((float*)((DLTensor*)args[0].v_handle)->data)[i];\n  return 0;\n}}\n\
             const void* TVMSystemLibEntryPoint(void) {{ return 0; }}\n"
        )
    };
    folder.tar(
        "both.tar",
        &[
            ("metadata.json", metadata.as_bytes()),
            ("codegen/host/src/one_lib0.c", entry("one", 1).as_bytes()),
            ("codegen/host/src/two_lib0.c", entry("two", 2).as_bytes()),
        ],
    );
    folder.success(&["run", "both.tar", "--model-name", "two", "--input", "x.npy", "--output-dir", "out"]);
    assert_eq!(folder.read_array("out/output.npy", &[6]), X.map(|x| 2.0 * x));
    folder.failure(&["run", "both.tar"], &["MLC0004", "2 models", "one, two"]);
    assert!(folder.success(&["inspect", "both.tar"]).contains("model:   two"));
}

#[test]
fn graph_archives_that_can_not_be_compiled_say_why() {
    let folder = Folder::new();
    type Edit = fn(&mut Value);
    let cases: &[(Edit, &[&str])] = &[
        (
            |g| g["nodes"][2]["attrs"]["func_name"] = json!("tvmgen_default_missing"),
            &["MLC0103", "tvmgen_default_missing"],
        ),
        (|g| g["nodes"][2]["attrs"]["flatten_data"] = json!("1"), &["MLC0202", "flatten_data"]),
        (|g| g["attrs"]["shape"][1][1] = json!([4]), &["MLC0109", "p0"]),
        (|g| g["attrs"]["shape"][1][3] = json!([7]), &["reshape_nop"]),
        (|g| g["attrs"]["dltype"][1][3] = json!("int32"), &["MLC0109", "reshape_nop"]),
        (|g| g["nodes"][2]["inputs"][0][0] = json!(5), &["MLC0103", "$.nodes[2].inputs[0]"]),
        (|g| g["heads"] = json!([]), &["no output"]),
    ];
    for (edit, texts) in cases {
        let mut json = graph();
        edit(&mut json);
        graph_archive(&folder, "a.tar", 7, &json);
        folder.failure(&["compile", "a.tar", "-o", "b.tar"], texts);
    }
    graph_archive(&folder, "a.tar", 7, &graph());
    let whole = std::fs::read(folder.path("a.tar")).unwrap();
    for end in [700, whole.len() / 2, whole.len() - 2000] {
        std::fs::write(folder.path("cut.tar"), &whole[..end]).unwrap();
        folder.failure(&["compile", "cut.tar"], &["MLC0107", "cut.tar"]);
    }
    std::fs::write(folder.path("x.tar.gz"), [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]).unwrap();
    folder.failure(&["inspect", "x.tar.gz"], &["MLC0107", "gzip"]);
}
