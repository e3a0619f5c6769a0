//! Operators that the user describes.

use super::*;
use mlc_descriptions::Library;
use mlc_import::{CustomOperators, Renamed};
use mlc_ir::{Graph, Op, ops};
use std::sync::Arc;

/// `clip`, with and without its code; `halves`, a view and a copy; `keep`, with a table and an effect; `Relu`, which mlc has.
const DESCRIPTIONS: &str = r##"
{"ops": [
    {"optype": "clip", "author": "a", "arch": "none",
     "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_NONE", "dtype": "TL_FLOAT"}],
     "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_NONE", "ndim": "src->ndim", "dims": "src->dims", "dtype": "src->dtype"}],
     "params": [{"arg_name": "limit", "ptype": "LN_PARAM_NUMBER", "realtype": "float", "gt": 0, "default": 3}]},
    {"optype": "clip_cpu", "author": "a", "arch": "cpu", "operations": "2 * src->len", "workspace": "src->len * 4", "alignment": 16,
     "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU", "dtype": "TL_FLOAT"}],
     "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_CPU", "ndim": "src->ndim", "dims": "src->dims", "dtype": "src->dtype",
                      "overwrites": "src"}],
     "params": [{"arg_name": "limit", "ptype": "LN_PARAM_NUMBER", "realtype": "float"}],
     "run": "((float *)dst->data)[0] = limit; (void)workspace;"},
    {"optype": "Lost", "author": "a", "arch": "none",
     "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_NONE"}],
     "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_NONE", "ndim": 1, "dims": [1], "dtype": "src->dtype"}],
     "params": []},
    {"optype": "Second_cpu", "author": "a", "arch": "cpu",
     "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU"}],
     "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_CPU", "owner": "src", "ndim": 1, "dims": ["src->len / 2"], "dtype": "src->dtype"}],
     "params": [], "calc_offset": "return src_entry->offset + tl_tensor_size(src) / 2;"},
    {"optype": "Table_cpu", "author": "a", "arch": "cpu", "pure": false,
     "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU", "dtype": "TL_BOOL"}],
     "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_CPU", "static": true, "ndim": 1, "dims": [3], "dtype": "TL_BOOL"},
                     {"arg_name": "new", "mtype": "LN_MEM_CPU", "ndim": 1, "dims": [2], "dtype": "TL_UINT8"}],
     "params": [{"arg_name": "names", "ptype": "LN_PARAM_ARRAY_STRING"}],
     "static_run": "memset(dst->data, 0, tl_tensor_size(dst));", "run": "memset(new->data, 1, 2);"},
    {"optype": "Relu_cpu", "author": "a", "arch": "cpu",
     "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU"}],
     "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_CPU", "ndim": 1, "dims": [1], "dtype": "src->dtype"}],
     "params": [], "run": ""}
]}"##;

fn operators() -> CustomOperators {
    let library = Library::read(&[("operators.json", DESCRIPTIONS.as_bytes())]);
    CustomOperators::new(library.unwrap_or_else(|problems| panic!("{problems:?}")))
}

fn options(operators: CustomOperators) -> ImportOptions {
    ImportOptions { custom: Some(Arc::new(operators)), ..ImportOptions::default() }
}

/// A model of one operator of a set of its own.
fn of(op_type: &str, attribute: Vec<AttributeProto>, outputs: &[&str]) -> ModelProto {
    let node = NodeProto { domain: "acme".into(), name: "n0".into(), attribute, ..node(op_type, &["x"], outputs) };
    let mut model = model(vec![input("x", &["2", "4"])], vec![node], outputs);
    model.opset_import.push(opset("acme", 1));
    model
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { name: name.into(), f: Some(value), r#type: 1, ..AttributeProto::default() }
}

fn graph(model: &ModelProto, operators: CustomOperators) -> Graph {
    let graph = import_with(model, &options(operators)).unwrap_or_else(|errors| panic!("{errors:?}")).graph;
    mlc_ir::verify(&graph).unwrap();
    graph
}

fn error(model: &ModelProto, operators: CustomOperators) -> String {
    messages(import_with(model, &options(operators))).join("\n")
}

fn calls(graph: &Graph) -> Vec<&ops::Extern> {
    let ops = graph.node_ids().filter_map(|id| match &graph.node(id).op {
        Op::Extern(op) => Some(op),
        _ => None,
    });
    ops.collect()
}

#[test]
fn a_described_operator_is_a_call_of_its_code() {
    let graph = graph(&of("clip", vec![float("limit", 0.5)], &["y"]), operators());
    let calls = calls(&graph);
    let [call] = calls[..] else { panic!("{} calls", calls.len()) };
    assert_eq!((call.symbol.as_str(), call.operations, call.workspace, call.alignment), ("clip_cpu_call", 16, 32, 16));
    assert_eq!((&call.overwrites[..], call.effect, &call.begin, &call.end), (&[(0, 0)][..], 0, &None, &None));
    let initialiser = &call.instance.as_ref().unwrap().initialiser;
    assert!(initialiser.contains(".value_float = 0.5f"), "{}", &**initialiser);
    assert!(!initialiser.contains("n0"), "equal operators differ by their names: {}", &**initialiser);
    let names: Vec<&str> = call.sources.iter().map(|file| &*file.name).collect();
    assert_eq!(names, ["clip_cpu.h", "clip_cpu.c", "mlc_operator.h", "mlc_operator.c"]);
    assert_eq!(graph.ty(graph.outputs()[0].value), &TensorType::new(DType::F32, [2, 4]));
}

#[test]
fn a_default_stands_for_an_attribute_that_is_missing() {
    let graph = graph(&of("clip", vec![], &["y"]), operators());
    assert!(calls(&graph)[0].instance.as_ref().unwrap().initialiser.contains(".value_float = 3.0f"));
}

#[test]
fn truth_values_tables_and_effects_keep_their_kinds() {
    let words = ["a", "b\"c"].map(|word| word.as_bytes().to_vec().into()).to_vec();
    let names = AttributeProto { name: "names".into(), strings: words, r#type: 8, ..AttributeProto::default() };
    let mut model = of("Table", vec![names], &["t", "n"]);
    let graph_proto = model.graph.as_mut().unwrap();
    graph_proto.node.insert(0, node("Greater", &["x", "x"], &["b"]));
    graph_proto.node[1].input[0] = "b".into();
    let graph = graph(&model, operators());
    let call = calls(&graph)[0];
    assert_eq!((call.persistent.as_slice(), call.effect), (&[0][..], 1));
    assert_eq!(call.begin.as_deref(), Some("Table_cpu_begin"));
    assert_eq!(call.operands, [TensorType::new(DType::I32, [2, 4])]);
    assert!(call.instance.as_ref().unwrap().initialiser.contains(r#"(char *[]){"a", "b\"c"}"#));
    let types: Vec<DType> = graph.outputs().iter().map(|output| graph.ty(output.value).dtype).collect();
    assert_eq!(types, [DType::Bool, DType::U8]);
}

#[test]
fn a_view_is_a_part_of_its_owner_and_no_call() {
    let graph = graph(&of("Second", vec![], &["y"]), operators());
    assert!(calls(&graph).is_empty());
    let numbers = (0..8).map(f64::from).collect::<Vec<_>>();
    let input = mlc_ir::Tensor::from_floats(TensorType::new(DType::F32, [2, 4]), numbers);
    let found = mlc_ir::evaluate(&graph, &[input]).unwrap();
    assert_eq!((found[0].to_floats(), found[0].ty().shape.to_vec()), (vec![4.0, 5.0, 6.0, 7.0], vec![4]));
}

#[test]
fn what_does_not_fit_is_said_with_the_operator_and_the_parameter() {
    let word = AttributeProto {
        name: "limit".into(),
        s: Some("high".as_bytes().to_vec().into()),
        r#type: 3,
        ..AttributeProto::default()
    };
    for (attributes, expected) in [
        (vec![float("limit", -1.0)], "clip: `n0`'s `limit` param's value should be > 0"),
        (vec![int("limits", 1)], "clip: `n0` has no `limits` param"),
        (
            vec![word],
            "clip: `n0`'s `limit` param's value should be of type LN_PARAM_NUMBER, but gets a LN_PARAM_STRING",
        ),
    ] {
        let found = error(&of("clip", attributes, &["y"]), operators());
        assert!(found.contains(expected), "{found}");
    }
    let found = error(&of("Lost", vec![], &["y"]), operators());
    assert!(found.contains("the description of `Lost` is for no processor"), "{found}");
    let errors = import_with(&of("Lost", vec![], &["y"]), &options(operators())).unwrap_err();
    assert_eq!(errors[0].help.as_deref(), Some("describe its code as `Lost_cpu`"));
    let mut two = of("clip", vec![], &["y"]);
    two.graph.as_mut().unwrap().node[0].input.push("x".into());
    assert!(error(&two, operators()).contains("needs 1 input tensors, but gets 2 input tensors"));
    let found = error(&of("Tailor", vec![], &["y"]), operators());
    assert!(found.contains("Tailor"), "{found}");
}

#[test]
fn surplus_attributes_are_ignored_when_the_user_says_so() {
    let model = of("clip", vec![int("axis", 1)], &["y"]);
    let lenient = options(CustomOperators { ignore_attributes: true, ..operators() });
    let warnings = import_with(&model, &lenient).unwrap().warnings;
    assert!(warnings[0].message.contains("attribute `axis` isn't in the description"), "{warnings:?}");
}

#[test]
fn names_of_operators_and_attributes_can_be_mapped() {
    let model = of("Limit", vec![float("max", 0.5)], &["y"]);
    assert!(error(&model, operators()).contains("Limit"));
    for name in ["Limit", "acme::Limit"] {
        let parameters = [("max".to_owned(), "limit".to_owned())].into();
        let renamed = [(name.to_owned(), Renamed { optype: "clip".into(), parameters })].into();
        let graph = graph(&model, CustomOperators { renamed, ..operators() });
        assert_eq!(calls(&graph)[0].symbol, "clip_cpu_call");
    }
}

#[test]
fn an_own_operator_gives_way_only_when_the_user_says_so() {
    let relu = model(vec![input("x", &["2"])], vec![node("Relu", &["x"], &["y"])], &["y"]);
    assert!(error(&relu, operators()).contains("it is described, and mlc has an operator of that name"));
    let replaced = error(&relu, CustomOperators { replace_own: true, ..operators() });
    assert!(replaced.contains("the `run` of 'Relu_cpu' is empty"), "{replaced}");
}
