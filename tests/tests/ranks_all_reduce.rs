//! Sums over all ranks of ARK models: every rank comes to the same sum, in the order of ranks, whatever the form of the operation.

use mlc::toolchain::{RanksRun, Toolchain, Transport};
use mlc_codegen::Target;
use mlc_import::ImportOptions;
use mlc_ir::ranks::{evaluate_ranks, schedule};
use mlc_ir::{DType, Graph, Tensor};
use mlc_tests::compile::compile_graph;
use mlc_tests::ranks;
use serde_json::{Value, json};
use std::time::Duration;

/// How the operation names the other ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Not at all.
    Bare,
    /// By memory without tags.
    Memory,
    /// By memory, with a tag for each way.
    Tagged,
}

const FORMS: [Form; 3] = [Form::Bare, Form::Memory, Form::Tagged];
const EXTENT: usize = 6;

fn window(id: usize, data_type: &str, extent: usize, buffer: Value) -> Value {
    json!({
        "Id": id, "DataType": data_type, "Shape": [extent], "Strides": [extent], "Offsets": [0],
        "PaddedShape": [extent], "Buffer": buffer, "Location": 0
    })
}

fn memory(id: usize, rank: i64, sent: Value, received: Value) -> Value {
    json!({"Id": id, "Rank": rank, "IsExternal": false, "SendTags": sent, "RecvTags": received})
}

fn operation(kind: &str, name: &str, reads: &[&Value], writes: &[&Value], result: Option<Value>, args: Value) -> Value {
    json!({
        "Type": kind, "Name": name, "IsVirtual": kind == "Tensor", "ReadTensors": reads, "WriteTensors": writes,
        "ResultTensors": result.into_iter().collect::<Vec<_>>(), "Args": args
    })
}

/// The next version of a tensor.
fn next(tensor: &Value, id: usize) -> Option<Value> {
    let mut next = tensor.clone();
    next["Id"] = id.into();
    Some(next)
}

/// The text of one rank: `sum` of all `x`, `twice` of all `x + x`, in place, and `neighbour`, the `x` of the rank before under the
/// highest tag that there is.
fn model(rank: usize, count: usize, data_type: &str, form: Form) -> String {
    let (after, before) = ((rank + 1) % count, (rank + count - 1) % count);
    let highest = i32::MAX;
    let x = window(0, data_type, EXTENT, memory(0, -1, json!([[after, highest]]), json!([])));
    let sum = window(1, data_type, EXTENT, memory(1, -1, json!([]), json!([])));
    let twice = window(2, data_type, EXTENT, memory(2, -1, json!([]), json!([])));
    let neighbour = window(3, data_type, EXTENT, memory(3, -1, json!([]), json!([[before, highest]])));
    let to = window(4, data_type, EXTENT, memory(4, after as i64, json!([]), json!([[-1, highest]])));
    let from = window(5, data_type, EXTENT, memory(5, before as i64, json!([[-1, highest]]), json!([])));
    let mut operations = vec![operation("Tensor", "x", &[], &[], Some(x.clone()), json!({}))];
    operations.push(operation("Send", "send", &[&x], &[&to], next(&to, 14), json!({})));
    let others: Vec<usize> = (0..count).filter(|&other| other != rank).collect();
    let mut sum_up = |from: &Value, to: &Value, result: usize, name: &str| {
        let id = 100 * result;
        let tags = |list: Vec<Value>| if form == Form::Tagged { list.into() } else { json!([]) };
        let received = tags(others.iter().map(|other| json!([other, other])).collect());
        let scratch = window(id, "UINT8", 96, memory(id, rank as i64, json!([]), received));
        let stand_in = |(place, &other): (usize, &usize)| {
            let buffer = memory(id + 1 + place, other as i64, json!([]), tags(vec![json!([-1, rank])]));
            window(id + 1 + place, "UINT8", 96, buffer)
        };
        let stand_ins: Vec<Value> = others.iter().enumerate().map(stand_in).collect();
        let (mut reads, mut writes, mut arguments) = (vec![from], vec![to], json!({}));
        if form != Form::Bare {
            reads.push(&scratch);
            writes.extend(&stand_ins);
            arguments = json!({"Flag": {"UINT32": 1}, "NPeers": {"UINT32": count - 1}, "Rank": {"INT": rank}});
        }
        operations.push(operation("AllReducePacketFused", name, &reads, &writes, next(to, result), arguments));
    };
    sum_up(&x, &sum, 11, "sum");
    sum_up(&twice, &twice, 22, "twice");
    let double = operation("Add", "double", &[&x, &x], &[&twice], next(&twice, 12), json!({}));
    operations.insert(operations.len() - 1, double);
    operations.push(operation("Recv", "neighbour", &[&from], &[&neighbour], next(&neighbour, 13), json!({})));
    let node = |(id, operation): (usize, Value)| json!({"Id": id, "ProducerNodeIds": [], "ConsumerNodeIds": [], "Op": operation});
    let nodes: Vec<Value> = operations.into_iter().enumerate().map(node).collect();
    json!({"Rank": rank, "WorldSize": count, "Nodes": nodes}).to_string()
}

fn graphs(count: usize, data_type: &str, form: Form) -> Vec<Graph> {
    let graph = |rank| {
        let model = mlc_ark::read(model(rank, count, data_type, form).as_bytes()).unwrap_or_else(|e| panic!("{e:?}"));
        mlc_ark::import(&model, &ImportOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}")).graph
    };
    (0..count).map(graph).collect()
}

/// What every rank must find: the values of all ranks added up in their order, in single precision, and rounded once.
fn sum(values: &[&Tensor]) -> Tensor {
    let columns: Vec<Vec<f64>> = values.iter().map(|value| value.to_floats()).collect();
    let add =
        |place: usize| columns.iter().map(|column| column[place] as f32).reduce(|sum, value| sum + value).unwrap();
    let (ty, sums) = (values[0].ty().clone(), (0..EXTENT).map(add));
    match ty.dtype.is_float() {
        true => Tensor::from_floats(ty, sums.map(f64::from).collect()),
        false => Tensor::from_integers(ty, sums.map(|sum| sum as i64).collect()),
    }
}

/// Sum, sum of twice the values, and the value of the rank before, for each rank.
fn expected(inputs: &[Vec<Tensor>]) -> Vec<[Tensor; 3]> {
    let values: Vec<&Tensor> = inputs.iter().map(|inputs| &inputs[0]).collect();
    let once = sum(&values);
    let doubled: Vec<Tensor> = values.iter().map(|value| sum(&[value, value])).collect();
    let twice = sum(&doubled.iter().collect::<Vec<_>>());
    let neighbour = |rank: usize| values[(rank + values.len() - 1) % values.len()].clone();
    (0..values.len()).map(|rank| [once.clone(), twice.clone(), neighbour(rank)]).collect()
}

fn places(graph: &Graph) -> [usize; 3] {
    ["sum", "twice", "neighbour"].map(|name| graph.outputs().iter().position(|output| &*output.name == name).unwrap())
}

fn check(graphs: &[Graph], outputs: &[Vec<Tensor>], expected: &[[Tensor; 3]], what: &str) {
    for (rank, ((graph, outputs), expected)) in graphs.iter().zip(outputs).zip(expected).enumerate() {
        for (place, expected) in places(graph).into_iter().zip(expected) {
            assert_eq!(outputs[place], *expected, "{what}: {} of rank {rank}", graph.outputs()[place].name);
        }
    }
}

#[test]
fn every_form_gives_every_rank_the_same_sum() {
    for (count, data_type) in [(2, "FP32"), (4, "FP32"), (4, "FP16"), (3, "BF16"), (3, "INT32")] {
        for form in FORMS {
            let graphs = graphs(count, data_type, form);
            let all: Vec<&Graph> = graphs.iter().collect();
            let events = schedule(&all).unwrap_or_else(|faults| panic!("{faults:?}"));
            assert_eq!(events.len(), 2 * count * (2 * (count - 1) + 1), "every message is sent and received");
            let inputs = ranks::inputs(&graphs, 7);
            let outputs = evaluate_ranks(&all, &inputs).unwrap();
            check(&graphs, &outputs, &expected(&inputs), &format!("{count} {data_type} {form:?}"));
        }
    }
}

#[test]
fn ranks_with_tags_and_without_do_not_fit() {
    let mut mixed = graphs(2, "FP32", Form::Memory);
    mixed[1] = graphs(2, "FP32", Form::Tagged).remove(1);
    assert!(schedule(&mixed.iter().collect::<Vec<_>>()).is_err());
}

fn run(count: usize, transport: Transport) {
    let graphs = graphs(count, "FP32", Form::Memory);
    let bundle = |(rank, graph): (usize, &Graph)| {
        let compiled = compile_graph(graph, &format!("all_reduce_rank{rank}"), &Target::generic()).unwrap();
        mlc::bundle::Bundle::parse(&compiled.archive.into()).unwrap()
    };
    let bundles: Vec<_> = graphs.iter().enumerate().map(bundle).collect();
    let program = Toolchain::default().build_ranks(&bundles, transport, false).unwrap();
    let inputs = ranks::inputs(&graphs, 5);
    assert_eq!(inputs[0][0].ty().dtype, DType::F32);
    let (outputs, _) = program.run(&inputs, RanksRun { runs: 3, patience: Duration::from_secs(60) }).unwrap();
    // What the caller gets: the model's own outputs, without what only other ranks do.
    let outputs_of = |graph: &Graph| -> Vec<String> {
        graph.open_outputs().into_iter().map(|place| graph.outputs()[place].name.to_string()).collect()
    };
    for (rank, (graph, (found, expected))) in graphs.iter().zip(outputs.iter().zip(expected(&inputs))).enumerate() {
        assert_eq!(outputs_of(graph), ["sum", "twice", "neighbour"]);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "rank {rank} of {count}, {transport:?}");
        }
    }
}

#[test]
fn programs_sum_up_as_threads() {
    run(2, Transport::Threads);
    run(4, Transport::Threads);
}

#[test]
fn programs_sum_up_under_mpi() {
    if ranks::has_mpi() {
        run(2, Transport::Mpi);
        run(4, Transport::Mpi);
    }
}
