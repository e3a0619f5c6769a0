//! Operators that no case of the collection has, and numerics at the rim.

use crate::{import, read, read_with};
use mlc_descriptions::Library;
use mlc_import::{Bindings, CustomOperators, ImportOptions};
use mlc_ir::{DType, Graph, Op, Tensor, TensorType, evaluate};
use serde_json::{Value, json};

/// A tensor that is all of a buffer of its own number.
fn tensor(id: u32, data_type: &str, shape: &[usize]) -> Value {
    json!({
        "Id": id, "DataType": data_type, "Shape": shape, "Strides": shape, "Offsets": vec![0; shape.len()],
        "PaddedShape": shape, "Buffer": {"Id": id % 100, "Rank": -1, "SendTags": [], "RecvTags": []}
    })
}

/// The next version of a tensor.
fn next(tensor: &Value) -> Value {
    let mut next = tensor.clone();
    next["Id"] = json!(tensor["Id"].as_u64().unwrap() + 100);
    next
}

fn operation(kind: &str, reads: &[Value], writes: &[Value], results: &[Value], arguments: Value) -> Value {
    json!({
        "Type": kind, "Name": kind.to_lowercase(), "IsVirtual": false, "ReadTensors": reads, "WriteTensors": writes,
        "ResultTensors": results, "Args": arguments
    })
}

/// An operation that writes one tensor.
fn written(kind: &str, reads: &[Value], result: &Value, arguments: Value) -> Value {
    operation(kind, reads, std::slice::from_ref(result), &[next(result)], arguments)
}

/// The text of a model of these operations.
fn model(operations: &[Value]) -> String {
    let node = |(id, operation): (usize, &Value)| json!({"Id": id, "ProducerNodeIds": [], "ConsumerNodeIds": [], "Op": operation});
    let nodes: Vec<Value> = operations.iter().enumerate().map(node).collect();
    json!({"Rank": 0, "WorldSize": 1, "Nodes": nodes}).to_string()
}

fn try_graph(operations: &[Value], updated: &[&str]) -> Result<Graph, Vec<String>> {
    let text = model(operations);
    let updated = updated.iter().map(ToString::to_string).collect();
    let options = ImportOptions { bindings: Bindings { updated, ..Bindings::default() }, ..ImportOptions::default() };
    let told = |errors: Vec<mlc_ir::Diagnostic>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let model = read(text.as_bytes()).map_err(told)?;
    import(&model, &options).map(|imported| imported.graph).map_err(told)
}

fn graph(operations: &[Value], updated: &[&str]) -> Graph {
    try_graph(operations, updated).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn floats(dtype: DType, values: &[f64]) -> Tensor {
    Tensor::from_floats(TensorType::new(dtype, [values.len()]), values.to_vec())
}

/// What one operation of one operand gives.
fn computed(kind: &str, from: &str, to: &str, arguments: Value, x: Tensor) -> Tensor {
    let extent = [x.ty().elements()];
    let (x_tensor, y) = (tensor(0, from, &extent), tensor(1, to, &extent));
    let graph = graph(&[written(kind, &[x_tensor], &y, arguments)], &[]);
    evaluate(&graph, &[x]).unwrap().remove(0)
}

#[test]
fn casts_round_as_the_types_demand() {
    let numbers = [1.5, 2.5, -1.5, -0.75, 3.0];
    let cast = |from, to, dtype| computed("Cast", from, to, json!({}), floats(dtype, &numbers));
    assert_eq!(cast("FP32", "INT32", DType::F32).to_integers(), [1, 2, -1, 0, 3]);
    assert_eq!(cast("FP16", "INT32", DType::F16).to_integers(), [2, 2, -2, -1, 3]);
    assert_eq!(cast("BF16", "INT32", DType::Bf16).to_integers(), [2, 2, -2, -1, 3]);
    assert_eq!(cast("FP16", "INT8", DType::F16).to_integers(), [1, 2, -1, 0, 3]);
    let wide = computed(
        "Cast",
        "INT32",
        "INT8",
        json!({}),
        Tensor::from_integers(TensorType::new(DType::I32, [2]), vec![300, -129]),
    );
    assert_eq!(wide.to_integers(), [44, 127]);
}

#[test]
fn relu_loses_nan() {
    let y = computed("Relu", "FP32", "FP32", json!({}), floats(DType::F32, &[f64::NAN, -1.0, 2.0]));
    assert_eq!(y.to_floats(), [0.0, 0.0, 2.0]);
}

#[test]
fn scalars_take_the_type_of_the_tensor() {
    let factor = json!({"Factor": {"FLOAT": 2.75}});
    let x = Tensor::from_integers(TensorType::new(DType::I32, [2]), vec![3, -4]);
    assert_eq!(computed("ScalarMul", "INT32", "INT32", factor.clone(), x).to_integers(), [6, -8]);
    let y = computed("ScalarAdd", "FP32", "FP32", factor, floats(DType::F32, &[0.25]));
    assert_eq!(y.to_floats(), [3.0]);
    assert_eq!(computed("Store", "FP32", "FP32", json!({}), floats(DType::F32, &[0.25])).to_floats(), [0.25]);
}

#[test]
fn products_are_scaled_by_an_argument() {
    let (a, b, y) = (tensor(0, "FP32", &[1, 2]), tensor(1, "FP32", &[1, 2]), tensor(2, "FP32", &[1, 1]));
    let arguments =
        json!({"TransposeInput": {"BOOL": false}, "TransposeOther": {"BOOL": true}, "Scale": {"FLOAT": 0.5}});
    let graph = graph(&[written("MatmulScale", &[a, b], &y, arguments)], &[]);
    let row = |values: &[f64]| Tensor::from_floats(TensorType::new(DType::F32, [1, 2]), values.to_vec());
    assert_eq!(evaluate(&graph, &[row(&[1.0, 2.0]), row(&[3.0, 5.0])]).unwrap()[0].to_floats(), [6.5]);
}

#[test]
fn a_cache_is_written_where_its_counter_says() {
    let (row, place) = (tensor(0, "FP32", &[1, 2]), tensor(1, "INT32", &[1]));
    let (cache, out) = (tensor(2, "FP32", &[3, 2]), tensor(3, "FP32", &[1, 2]));
    let slot = operation(
        "KvCacheSlot",
        &[row.clone(), place.clone()],
        &[cache.clone(), place.clone(), out.clone()],
        &[next(&out)],
        json!({}),
    );
    let graph = graph(&[slot], &["buffer.1", "buffer.2"]);
    let names: Vec<&str> = graph.outputs().iter().map(|output| &*output.name).collect();
    assert_eq!(names, ["kvcacheslot", "tensor.1.next", "tensor.2.next"]);
    let run = |place: i64| {
        let row = Tensor::from_floats(TensorType::new(DType::F32, [1, 2]), vec![7.0, 8.0]);
        let place = Tensor::from_integers(TensorType::new(DType::I32, [1]), vec![place]);
        let cache = Tensor::from_floats(TensorType::new(DType::F32, [3, 2]), vec![1.0; 6]);
        evaluate(&graph, &[row, place, cache]).unwrap()
    };
    let found = run(1);
    assert_eq!(found[0].to_floats(), [7.0, 8.0]);
    assert_eq!(found[1].to_integers(), [2]);
    assert_eq!(found[2].to_floats(), [1.0, 1.0, 7.0, 8.0, 1.0, 1.0]);
    for beyond in [-1, 3] {
        assert_eq!(run(beyond)[2].to_floats(), [1.0; 6]);
    }
}

#[test]
fn the_sum_over_one_rank_is_its_value() {
    let (x, y) = (tensor(0, "FP32", &[2]), tensor(1, "FP32", &[2]));
    let sum = graph(&[written("AllReducePacketFused", &[x], &y, json!({}))], &[]);
    assert_eq!(evaluate(&sum, &[floats(DType::F32, &[1.5, 2.0])]).unwrap(), [floats(DType::F32, &[1.5, 2.0])]);
    assert_eq!(sum.distribution, None);
}

#[test]
fn operators_that_the_user_describes_are_called() {
    let description = r#"{"optype": "Clip_cpu", "author": "a", "arch": "cpu",
        "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU", "dtype": "TL_FLOAT"}],
        "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_CPU", "ndim": 1, "dims": "src->dims", "dtype": "src->dtype"}],
        "params": [{"arg_name": "Limit", "ptype": "LN_PARAM_NUMBER", "realtype": "float"}], "run": "(void)0;"}"#;
    let (x, y) = (tensor(0, "FP32", &[4]), tensor(1, "FP32", &[4]));
    let text = model(&[written("Clip", &[x], &y, json!({"Limit": {"FLOAT": 0.5}}))]);
    let unknown = read(text.as_bytes()).unwrap_err();
    assert!(unknown[0].message.contains("the operator \"Clip\" isn't known"), "{unknown:?}");
    let library = Library::read(&[("clip", description.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    let operators = CustomOperators::new(library);
    let known = read_with(text.as_bytes(), &|kind| operators.knows("", kind)).unwrap_or_else(|e| panic!("{e:#?}"));
    let options = ImportOptions { custom: Some(operators.into()), ..ImportOptions::default() };
    let graph = import(&known, &options).unwrap_or_else(|errors| panic!("{errors:#?}")).graph;
    let call = graph.node_ids().find_map(|id| match &graph.node(id).op {
        Op::Extern(call) => Some(call.clone()),
        _ => None,
    });
    assert!(call.unwrap().instance.unwrap().initialiser.contains(".value_float = 0.5f"));
}
