use super::*;
use crate::proto::{
    AttributeProto, DimensionProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    OptionalTypeProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use crate::read;
use indexmap::IndexMap;
use mlc_ir::{Attribute, DType, TensorType};
use prost::Message;

pub(super) fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    NodeProto { op_type: op_type.into(), input: strings(inputs), output: strings(outputs), ..NodeProto::default() }
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i: Some(value), r#type: 2, ..AttributeProto::default() }
}

/// An f32 input; a dimension is a number, a name, or `?`.
pub(super) fn input(name: &str, dimensions: &[&str]) -> ValueInfoProto {
    let dimension = |text: &&str| DimensionProto {
        dim_value: text.parse().ok(),
        dim_param: (text.parse::<i64>().is_err() && *text != "?").then(|| text.to_string()),
    };
    let shape = TensorShapeProto { dim: dimensions.iter().map(dimension).collect() };
    let ty =
        TypeProto { tensor_type: Some(TensorTypeProto { elem_type: 1, shape: Some(shape) }), ..TypeProto::default() };
    ValueInfoProto { name: name.into(), r#type: Some(ty) }
}

pub(super) fn output(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.into(), r#type: None }
}

pub(super) fn opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: domain.into(), version }
}

pub(super) fn model(inputs: Vec<ValueInfoProto>, node: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    let output = outputs.iter().map(|name| output(name)).collect();
    let graph = GraphProto { node, input: inputs, output, ..GraphProto::default() };
    ModelProto { ir_version: 8, graph: Some(graph), opset_import: vec![opset("", 17)], ..ModelProto::default() }
}

pub(super) fn import_with(model: &ModelProto, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    import(&read(&model.encode_to_vec().into())?, &(), options)
}

pub(super) fn messages(result: Result<Imported, Vec<Diagnostic>>) -> Vec<String> {
    result.unwrap_err().into_iter().map(|error| error.message).collect()
}

/// The value of the only output, which must be a constant.
fn folded(model: &ModelProto) -> Vec<i64> {
    let graph = import_with(model, &ImportOptions::default()).unwrap().graph;
    graph.constant(graph.outputs()[0].value).unwrap().to_tensor().to_integers()
}

#[test]
fn all_unsupported_operators_are_reported_at_once() {
    let nodes = vec![
        node("Foo", &["x"], &["a"]),
        node("Identity", &["a"], &["b"]),
        node("Foo", &["b"], &["c"]),
        node("Identitty", &["c"], &["d"]),
        node("RandomNormal", &[], &["e"]),
    ];
    let errors = import_with(&model(vec![input("x", &["2"])], nodes, &["d"]), &ImportOptions::default()).unwrap_err();
    let texts: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        texts,
        [
            "operator Foo (opset 17), used 2 times, isn't supported",
            "operator Identitty (opset 17), used once, isn't supported",
            "operator RandomNormal (opset 17), used once, isn't supported: its result is random",
        ]
    );
    assert_eq!(errors[0].location.node.as_deref(), Some("a"));
    assert_eq!(errors[0].related[0].1, "`c`, too");
    assert_eq!(errors[1].notes, ["the nearest supported operator is Identity"]);
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    let mut constant = node("Constant", &[], &["y"]);
    constant.attribute =
        vec![AttributeProto { ref_attr_name: "number".into(), name: "value_int".into(), r#type: 2, ..int("", 0) }];
    let function = |default| FunctionProto {
        name: "Number".into(),
        domain: "own".into(),
        output: vec!["y".into()],
        node: vec![constant.clone()],
        opset_import: vec![opset("", 17)],
        attribute_proto: default,
        ..FunctionProto::default()
    };
    let mut call = NodeProto { domain: "own".into(), ..node("Number", &[], &["z"]) };
    let mut own = model(vec![], vec![call.clone()], &["z"]);
    own.opset_import.push(opset("own", 1));
    own.functions = vec![function(vec![int("number", 5)])];
    assert_eq!(folded(&own), [5]);
    call.attribute = vec![int("number", 7)];
    own.graph.as_mut().unwrap().node = vec![call];
    assert_eq!(folded(&own), [7]);
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let call = NodeProto { domain: "own".into(), ..node("Again", &["x"], &["y"]) };
    let function = FunctionProto {
        name: "Again".into(),
        domain: "own".into(),
        input: vec!["x".into()],
        output: vec!["y".into()],
        node: vec![call.clone()],
        opset_import: vec![opset("own", 1)],
        ..FunctionProto::default()
    };
    let mut own = model(vec![input("x", &["2"])], vec![call], &["y"]);
    own.opset_import.push(opset("own", 1));
    own.functions = vec![function];
    let texts = messages(import_with(&own, &ImportOptions::default()));
    assert!(texts.iter().any(|text| text.contains("more than 100 levels deep")), "{texts:?}");
}

#[test]
fn a_name_must_be_defined_before_and_once() {
    let x = || vec![input("x", &["2"])];
    for (nodes, expected) in [
        (vec![node("Identity", &["b"], &["a"]), node("Identity", &["a"], &["b"])], "`b` is used, but nothing before"),
        (vec![node("Identity", &["x"], &["b"]), node("Identity", &["x"], &["b"])], "`b` is defined twice"),
        (vec![node("Identity", &["x"], &["x"])], "`x` is defined twice"),
        (vec![node("Identity", &["x", "x"], &["b"])], "doesn't take an operand 1"),
        (vec![node("Shape", &["x"], &["b", "c"])], "gives 1 results, the model names 2"),
    ] {
        let texts = messages(import_with(&model(x(), nodes, &["b"]), &ImportOptions::default()));
        assert!(texts[0].contains(expected), "{texts:?}");
    }
}

#[test]
fn open_dimensions_are_bound_by_options() {
    let inputs = || vec![input("x", &["batch", "3"]), input("y", &["batch", "length"])];
    let shape = |options: &ImportOptions| -> Result<Vec<Vec<usize>>, Vec<String>> {
        let model = model(inputs(), vec![node("Identity", &["x"], &["z"])], &["z"]);
        let imported = import_with(&model, options).map_err(|errors| {
            let help = |error: Diagnostic| format!("{} ({})", error.message, error.help.unwrap_or_default());
            errors.into_iter().map(help).collect::<Vec<_>>()
        })?;
        let shape = |&node: &mlc_ir::NodeId| imported.graph.node(node).results[0].shape.to_vec();
        Ok(imported.graph.inputs().iter().map(shape).collect())
    };
    let mut options = ImportOptions::default();
    let error = shape(&options).unwrap_err();
    assert!(error[0].contains("--input-shape 'y=1,1', or by name: --dim length=N"), "{error:?}");
    options.dimensions.insert("length".into(), 5);
    assert_eq!(shape(&options), Ok(vec![vec![1, 3], vec![1, 5]]));
    options.dimensions.insert("batch".into(), 2);
    assert_eq!(shape(&options), Ok(vec![vec![2, 3], vec![2, 5]]));
    options.dimensions.insert("width".into(), 2);
    assert!(shape(&options).unwrap_err()[0].contains("the named dimensions are: batch, length"));
    let shapes = [("y".to_owned(), vec![4, 6])];
    let options = ImportOptions { input_shapes: shapes.into_iter().collect(), ..ImportOptions::default() };
    assert_eq!(shape(&options), Ok(vec![vec![4, 3], vec![4, 6]]));
    let shapes = [("x".to_owned(), vec![4, 4])];
    let options = ImportOptions { input_shapes: shapes.into_iter().collect(), ..ImportOptions::default() };
    assert!(shape(&options).unwrap_err()[0].contains("the file says [batch, 3]"));
}

#[test]
fn what_an_input_always_is_decides_on_shapes() {
    let mut shape = input("shape", &["rank"]);
    shape.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap().elem_type = 7;
    let model = model(vec![shape], vec![node("ConstantOfShape", &["shape"], &["y"])], &["y"]);
    let shapes = || ImportOptions { input_shapes: [("shape".to_owned(), vec![2])].into(), ..ImportOptions::default() };
    let unknown = import_with(&model, &shapes()).unwrap_err();
    assert!(unknown[0].help.as_ref().unwrap().contains("--input-value NAME=FILE"), "{unknown:?}");
    let values = |values: &[i64]| -> IndexMap<String, Attribute> {
        [("shape".to_owned(), Attribute::from_i64(&[values.len()], values).unwrap())].into()
    };
    let options = ImportOptions { input_values: values(&[2, 3]), ..ImportOptions::default() };
    let graph = import_with(&model, &options).unwrap().graph;
    assert_eq!((graph.inputs().len(), graph.ty(graph.outputs()[0].value).shape.to_vec()), (1, vec![2, 3]));
    let wrong = import_with(&model, &ImportOptions { input_values: values(&[2]), ..shapes() }).unwrap_err();
    let message = "the value i64[1] is given for the input `shape`, which is i64[2]";
    assert!(wrong[0].to_string().contains(message), "{wrong:?}");
}

#[test]
fn an_initialised_input_is_a_constant() {
    let mut model = model(vec![input("x", &["2"]), input("w", &["2"])], vec![node("Identity", &["w"], &["y"])], &["y"]);
    let tensor = TensorProto { name: "w".into(), dims: vec![2], data_type: 1, ..TensorProto::default() };
    let graph = model.graph.as_mut().unwrap();
    graph.initializer = vec![TensorProto { float_data: vec![1.0, 2.0], ..tensor }];
    let graph = import_with(&model, &ImportOptions::default()).unwrap().graph;
    assert_eq!(graph.inputs().len(), 1);
    let output = &graph.outputs()[0];
    assert_eq!((&*output.name, graph.ty(output.value)), ("y", &TensorType::new(DType::F32, [2])));
    assert_eq!(&*graph.node(output.value.node).name, "w");
}

#[test]
fn sequences_are_taken_apart_while_importing() {
    let position = NodeProto { attribute: vec![int("value_int", -1)], ..node("Constant", &[], &["last"]) };
    let nodes = vec![
        position,
        node("SequenceConstruct", &["x", "y"], &["s"]),
        node("SequenceAt", &["s", "last"], &["e"]),
        node("Shape", &["e"], &["z"]),
    ];
    assert_eq!(folded(&model(vec![input("x", &["2"]), input("y", &["3"])], nodes, &["z"])), [3]);
}

#[test]
fn optional_values_are_what_they_hold_or_nothing() {
    let asks = |operand: &str| {
        let nodes = vec![
            node("Optional", &["x"], &["present"]),
            node("Optional", &[], &["absent"]),
            node("OptionalHasElement", &[operand], &["y"]),
        ];
        folded(&model(vec![input("x", &["2"])], nodes, &["y"]))
    };
    assert_eq!(asks("present"), [1]);
    assert_eq!(asks("x"), [1]);
    assert_eq!(asks("absent"), [0]);
    assert_eq!(asks(""), [0]);
    let nodes = vec![node("Optional", &[], &["absent"]), node("OptionalGetElement", &["absent"], &["y"])];
    let texts = messages(import_with(&model(vec![], nodes, &["y"]), &ImportOptions::default()));
    assert!(texts[0].contains("the optional value is absent, it has no element"), "{texts:?}");
}

#[test]
fn an_input_that_may_be_absent_is_given() {
    let mut x = input("x", &["2"]);
    let ty = x.r#type.as_mut().unwrap();
    let elem_type = Some(Box::new(std::mem::take(ty)));
    ty.optional_type = Some(OptionalTypeProto { elem_type });
    let nodes = vec![node("OptionalGetElement", &["x"], &["y"])];
    let graph = import_with(&model(vec![x], nodes, &["y"]), &ImportOptions::default()).unwrap().graph;
    assert_eq!(graph.ty(graph.outputs()[0].value), &TensorType::new(DType::F32, [2]));
}

#[test]
fn what_every_model_needs_is_demanded() {
    let whole = model(vec![input("x", &["2"])], vec![node("Identity", &["x"], &["y"])], &["y"]);
    let newer = ModelProto { opset_import: vec![opset("", 9999)], ..whole.clone() };
    let none = ModelProto { opset_import: vec![], ..whole.clone() };
    let elsewhere = ModelProto { opset_import: vec![opset("own", 1)], ..whole.clone() };
    let empty = ModelProto { graph: None, ..whole.clone() };
    for (model, expected) in [
        (newer, "version 9999 of the standard operators, versions 1 to 28 are known"),
        (none, "doesn't say which version of the operators"),
        (elsewhere, "doesn't say which version of the standard operators"),
        (empty, "has no graph"),
    ] {
        let texts = messages(import_with(&model, &ImportOptions::default()));
        assert!(texts[0].contains(expected), "{texts:?}");
    }
    assert!(read(&vec![0xff; 9].into()).is_err());
}

#[path = "network_tests.rs"]
mod networks;

#[path = "classical_tests.rs"]
mod classical;

#[path = "described_tests.rs"]
mod described;
