use crate::element_type::ElementType;
use crate::import::import;
use crate::model::{Model, Operator, Setting, Tensor};
use crate::test_models::{operator, subgraph, tensor};
use mlc_import::ImportOptions;
use mlc_ir::{DType, Graph, Op, Tensor as Value, TensorType, evaluate, verify};

fn whole(name: &str, value: Option<i32>) -> Tensor {
    let data = value.map(|value| value.to_le_bytes().to_vec().into());
    Tensor { element_type: ElementType(2), data, ..tensor(name, &[], None) }
}

fn truth(name: &str, value: Option<bool>) -> Tensor {
    let data = value.map(|value| vec![u8::from(value)].into());
    Tensor { element_type: ElementType(6), data, ..tensor(name, &[], None) }
}

fn running(kind: &'static str, inputs: &[usize], outputs: &[usize], subgraphs: [usize; 2]) -> Operator {
    let [first, second] = subgraphs.map(Setting::Subgraph);
    operator(kind, inputs, outputs, &[("first", first), ("second", second)])
}

/// `while i < limit { x = x + x * 0.5; i = i + 1 }` of x [2].
fn growth(limit: i32) -> Model {
    let main = vec![tensor("x", &[2], None), whole("zero", Some(0)), tensor("y", &[2], None), whole("turns", None)];
    let main = subgraph(main, &[0], &[2, 3], vec![running("WHILE", &[0, 1], &[2, 3], [1, 2])]);
    let condition =
        vec![tensor("x", &[2], None), whole("i", None), whole("limit", Some(limit)), truth("goes on", None)];
    let condition = subgraph(condition, &[0, 1], &[3], vec![operator("LESS", &[1, 2], &[3], &[])]);
    let body = vec![
        tensor("x", &[2], None),
        whole("i", None),
        tensor("half", &[], Some(&[0.5])),
        tensor("more", &[2], None),
        whole("one", Some(1)),
        tensor("next", &[2], None),
        whole("next i", None),
    ];
    let operators = vec![
        operator("MUL", &[0, 2], &[3], &[]),
        operator("ADD", &[0, 3], &[5], &[]),
        operator("ADD", &[1, 4], &[6], &[]),
    ];
    Model { subgraphs: vec![main, condition, subgraph(body, &[0, 1], &[5, 6], operators)] }
}

/// `if condition { x + x } else { x * 0.25 }`, of a condition that is a constant or an input.
fn choice(condition: Option<bool>) -> Model {
    let main = vec![tensor("x", &[2], None), truth("condition", condition), tensor("y", &[2], None)];
    let inputs: &[usize] = if condition.is_none() { &[0, 1] } else { &[0] };
    let main = subgraph(main, inputs, &[2], vec![running("IF", &[1, 0], &[2], [1, 2])]);
    let sides = || vec![tensor("x", &[2], None), tensor("quarter", &[], Some(&[0.25])), tensor("y", &[2], None)];
    let then = subgraph(sides(), &[0], &[2], vec![operator("ADD", &[0, 0], &[2], &[])]);
    let otherwise = subgraph(sides(), &[0], &[2], vec![operator("MUL", &[0, 1], &[2], &[])]);
    Model { subgraphs: vec![main, then, otherwise] }
}

fn graph(model: &Model) -> Graph {
    let graph = import(model, &ImportOptions::default()).unwrap().graph;
    verify(&graph).unwrap();
    graph
}

fn refused(model: &Model) -> Vec<String> {
    import(model, &ImportOptions::default()).unwrap_err().iter().map(|fault| fault.message.clone()).collect()
}

fn floats(numbers: &[f64]) -> Value {
    Value::from_floats(TensorType::new(DType::F32, [numbers.len()]), numbers.to_vec())
}

fn loops(graph: &Graph) -> usize {
    graph.node_ids().filter(|&id| matches!(graph.node(id).op, Op::Loop(_))).count()
}

#[test]
fn few_turns_are_written_out_and_many_are_a_loop() {
    for (limit, turns, expected) in [(-1, 0, 0), (0, 0, 0), (3, 3, 0), (40, 40, 1)] {
        let graph = graph(&growth(limit));
        assert_eq!(loops(&graph), expected, "{limit} turns");
        let found = evaluate(&graph, &[floats(&[1.0, -2.0])]).unwrap();
        let grown = (0..turns).fold(1f32, |x, _| x + x * 0.5);
        assert_eq!(found[0].to_floats(), [f64::from(grown), -2.0 * f64::from(grown)], "{limit} turns");
        assert_eq!(found[1].to_integers(), [turns], "{limit} turns");
    }
}

#[test]
fn constants_decide_on_a_branch_or_both_sides_are_computed() {
    let x = floats(&[1.0, -2.0]);
    for condition in [false, true] {
        let expected: &[f64] = if condition { &[2.0, -4.0] } else { &[0.25, -0.5] };
        let decided = graph(&choice(Some(condition)));
        assert!(!decided.node_ids().any(|id| matches!(decided.node(id).op, Op::Select(_))));
        assert_eq!(evaluate(&decided, std::slice::from_ref(&x)).unwrap()[0].to_floats(), expected);
        let truth = Value::from_integers(TensorType::new(DType::Bool, []), vec![condition.into()]);
        assert_eq!(evaluate(&graph(&choice(None)), &[x.clone(), truth]).unwrap()[0].to_floats(), expected);
    }
}

#[test]
fn data_decide_how_many_turns_there_are() {
    let mut model = growth(3);
    model.subgraphs[0].tensors[1].data = None;
    model.subgraphs[0].inputs.push(1);
    let graph = graph(&model);
    let unbounded = |id| matches!(&graph.node(id).op, Op::Loop(op) if op.trip_count.is_none());
    assert_eq!(graph.node_ids().filter(|&id| unbounded(id)).count(), 1);
    for (first, turns) in [(3, 0), (9, 0), (2, 1), (-40, 43)] {
        let first = Value::from_integers(TensorType::new(DType::I32, []), vec![first]);
        let found = evaluate(&graph, &[floats(&[1.0, -2.0]), first.clone()]).unwrap();
        let grown = (0..turns).fold(1f32, |x, _| x + x * 0.5);
        assert_eq!(found[0].to_floats(), [f64::from(grown), -2.0 * f64::from(grown)], "{turns} turns");
        assert_eq!(found[1].to_integers(), [first.to_integers()[0] + turns], "{turns} turns");
    }
}

#[test]
fn a_loop_without_an_end_is_imported_and_not_evaluated_for_ever() {
    let mut model = growth(3);
    model.subgraphs[2].operators[2] = operator("SUB", &[1, 4], &[6], &[]);
    let error = evaluate(&graph(&model), &[floats(&[1.0, -2.0])]).unwrap_err();
    assert!(error.message.contains("the loop hasn't ended after 262144 turns"), "{error}");
}

#[test]
fn values_that_grow_from_turn_to_turn_are_refused() {
    let mut model = growth(3);
    model.subgraphs[0].tensors[1].data = None;
    model.subgraphs[0].inputs.push(1);
    model.subgraphs[2].operators[1] = operator("CONCATENATION", &[0, 3], &[5], &[]);
    let message = "WHILE `y`: carried value 0 is f32[2] in the first turn and f32[4] behind it";
    assert_eq!(refused(&model), [message]);
}

#[test]
fn subgraphs_know_nothing_of_what_is_around_them() {
    let mut model = choice(Some(true));
    // Tensor 0 is the input of the first subgraph, and nothing in this one.
    model.subgraphs[1].inputs = vec![1];
    model.subgraphs[1].tensors[1].data = None;
    let message = "ADD `y.y`: `x` is used, but nothing before defines it";
    assert_eq!(refused(&model), [message]);
}

#[test]
fn what_a_body_lacks_is_told_once() {
    let mut model = growth(3);
    model.subgraphs[2].operators[0] = operator("UNIQUE", &[0], &[3], &[]);
    let found = refused(&model);
    assert!(found.len() == 1 && found[0].starts_with("operator UNIQUE, used once, isn't supported"), "{found:?}");
}

#[test]
fn integers_stand_for_the_same_numbers_inside_and_outside() {
    let mut model = choice(Some(true));
    for (number, scale) in [(0, 0.5), (1, 0.25), (2, 0.5)] {
        for tensor in model.subgraphs[number].tensors.iter_mut().filter(|tensor| tensor.shape == [2]) {
            tensor.element_type = ElementType(9);
            let own = crate::model::Quantization { scales: vec![scale], zero_points: vec![0], axis: 0 };
            tensor.quantization = Some(own);
        }
    }
    let message = "IF `y`: the integers of `x` stand for other numbers than those of `x` in the subgraph ``";
    assert_eq!(refused(&model), [message]);
}

#[test]
fn subgraphs_that_run_themselves_are_refused() {
    let check = |model: &Model| crate::read::nesting::check(model).unwrap_err().message;
    let mut model = choice(None);
    let again = running("IF", &[1, 0], &[2], [2, 1]);
    model.subgraphs[1].operators.push(again);
    assert!(check(&model).contains("more than 32 are within each other"), "{}", check(&model));
    // Each runs the next one twice.
    let link = |number: usize| running("IF", &[1, 0], &[2], [number + 1; 2]);
    let chain = |length: usize| {
        let own = choice(None).subgraphs.swap_remove(0);
        let mut subgraphs: Vec<_> =
            (0..length).map(|number| crate::model::Subgraph { operators: vec![link(number)], ..own.clone() }).collect();
        subgraphs[length - 1].operators.clear();
        Model { subgraphs }
    };
    assert!(crate::read::nesting::check(&chain(10)).is_ok());
    assert!(check(&chain(30)).contains("more than 131072 operators"), "{}", check(&chain(30)));
    assert!(check(&chain(40)).contains("more than 32"), "{}", check(&chain(40)));
    let mut model = choice(None);
    model.subgraphs.pop();
    assert_eq!(check(&model), "it runs subgraph 2 in subgraph 0, but there are 2");
}
