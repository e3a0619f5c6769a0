use super::*;
use crate::element_type::ElementType;
use crate::import::import;
use crate::model::Quantization;
use crate::test_models::{operator, subgraph, tensor};
use mlc_import::{ImportOptions, Imported};
use mlc_ir::{DType, Tensor as Value, TensorType};

fn handle_of(name: &str, result: usize) -> Operator {
    operator("VAR_HANDLE", &[], &[result], &[("shared_name", Setting::Text(name.into()))])
}

/// `y = x + total; total = y`, which begins as a subgraph says.
fn totals(beginning: Vec<Operator>, first: Option<&[f32]>) -> Model {
    let names = ["x", "handle", "read", "y"];
    let tensors = names.iter().map(|name| tensor(name, &[2], None)).collect();
    let main = vec![
        operator("CALL_ONCE", &[], &[], &[("init_subgraph_index", Setting::Int(1))]),
        handle_of("total", 1),
        operator("READ_VARIABLE", &[1], &[2], &[]),
        operator("ADD", &[0, 2], &[3], &[]),
        operator("ASSIGN_VARIABLE", &[1, 3], &[], &[]),
    ];
    let called = vec![tensor("handle", &[], None), tensor("first", &[2], first)];
    Model { subgraphs: vec![subgraph(tensors, &[0], &[3], main), subgraph(called, &[], &[], beginning)] }
}

fn assigned() -> Vec<Operator> {
    vec![handle_of("total", 0), operator("ASSIGN_VARIABLE", &[0, 1], &[], &[])]
}

/// What a model gives in several runs, from the first output.
fn runs(model: &Model, inputs: &[Value]) -> Vec<Value> {
    let Imported { mut graph, updates, .. } = import(model, &ImportOptions::default()).unwrap();
    for update in updates {
        mlc_ir::stateful::tie_from(&mut graph, &update.input, &update.output, Some(update.initial)).unwrap();
    }
    mlc_ir::verify(&graph).unwrap();
    let inputs: Vec<Vec<Value>> = inputs.iter().map(|input| vec![input.clone()]).collect();
    mlc_ir::evaluate_runs(&graph, &inputs).unwrap().into_iter().map(|mut outputs| outputs.swap_remove(0)).collect()
}

fn floats(shape: &[usize], numbers: &[f64]) -> Value {
    Value::from_floats(TensorType::new(DType::F32, shape), numbers.to_vec())
}

#[test]
fn variables_live_from_run_to_run() {
    let model = totals(assigned(), Some(&[10.0, 20.0]));
    let outputs = runs(&model, &[floats(&[2], &[1.0, 2.0]), floats(&[2], &[0.5, 0.0]), floats(&[2], &[0.0, 1.0])]);
    assert_eq!(outputs, [floats(&[2], &[11.0, 22.0]), floats(&[2], &[11.5, 22.0]), floats(&[2], &[11.5, 23.0])]);
}

#[test]
fn a_variable_that_is_only_read_is_a_constant() {
    let mut model = totals(assigned(), Some(&[10.0, 20.0]));
    model.subgraphs[0].operators.pop();
    let imported = import(&model, &ImportOptions::default()).unwrap();
    assert!(imported.updates.is_empty() && imported.graph.inputs().len() == 1);
    assert_eq!(runs(&model, &[floats(&[2], &[1.0, 2.0])]), [floats(&[2], &[11.0, 22.0])]);
}

#[test]
fn what_is_assigned_before_it_is_read_is_kept_for_nobody() {
    let mut model = totals(assigned(), Some(&[10.0, 20.0]));
    let operators = &mut model.subgraphs[0].operators;
    operators.insert(2, operator("ASSIGN_VARIABLE", &[1, 0], &[], &[]));
    let imported = import(&model, &ImportOptions::default()).unwrap();
    assert!(imported.updates.is_empty());
    assert_eq!(runs(&model, &[floats(&[2], &[1.0, 2.0])]), [floats(&[2], &[2.0, 4.0])]);
}

#[test]
fn first_values_that_nothing_says_are_refused_by_name() {
    let refused =
        |model: &Model| expand(model).unwrap_err().iter().map(|fault| fault.message.clone()).collect::<String>();
    let text = refused(&totals(Vec::new(), None));
    assert_eq!(text, "the variable `total` is read, and nothing says its first value");
    let text = refused(&totals(assigned(), None));
    assert_eq!(text, "the first value `first` isn't a constant");
    let text = refused(&totals(vec![operator("FILL", &[], &[1], &[])], None));
    assert_eq!(text, "the subgraph that it calls computes FILL, only constants are assigned");
    let mut model = totals(assigned(), Some(&[1.0]));
    model.subgraphs[1].tensors[1].shape = vec![1];
    assert_eq!(refused(&model), "the variable `total` begins as FLOAT32 of [1], and is read as FLOAT32 of [2]");
    let mut model = totals(assigned(), Some(&[1.0, 2.0]));
    model.subgraphs[0].operators.remove(1);
    assert!(refused(&model).starts_with("operand 0 is no result of a VAR_HANDLE"));
    model.subgraphs.pop();
    assert!(refused(&model).starts_with("there is no subgraph 1"), "{}", refused(&model));
}

const FEATURES: usize = 3;
const FILTERS: usize = 4;
const MEMORY: usize = 5;
const RANK: usize = 2;

/// Numbers that look like no pattern.
fn scattered(count: usize, seed: usize) -> Vec<i64> {
    (0..count).map(|place| (((place + seed) * 7919 + 104_729 * seed) % 201) as i64 - 100).collect()
}

/// An SVDF of integers of 8 bits with its memory in 16, of scales that are powers of two but for one.
fn filters_of_integers() -> Model {
    let quantized =
        |name: &str, shape: &[usize], element: i8, scale: f32, zero_point: i64, data: Option<Vec<u8>>| Tensor {
            element_type: ElementType(element),
            data: data.map(Bytes::from),
            quantization: Some(Quantization { scales: vec![scale], zero_points: vec![zero_point], axis: 0 }),
            ..tensor(name, shape, None)
        };
    let bytes = |numbers: Vec<i64>| numbers.into_iter().map(|number| number as i8 as u8).collect();
    let words = |numbers: Vec<i64>| numbers.into_iter().flat_map(|number| (number as i16 * 90).to_le_bytes()).collect();
    let wide = |numbers: Vec<i64>| numbers.into_iter().flat_map(|number| (number as i32 * 40).to_le_bytes()).collect();
    let (int8, int16, int32) = (9, 7, 2);
    let units = FILTERS / RANK;
    let mut tensors = vec![
        quantized("x", &[1, FEATURES], int8, 0.5, 3, None),
        quantized("features", &[FILTERS, FEATURES], int8, 0.25, 0, Some(bytes(scattered(FILTERS * FEATURES, 1)))),
        quantized("time", &[FILTERS, MEMORY], int16, 0.001, 0, Some(words(scattered(FILTERS * MEMORY, 2)))),
        quantized("bias", &[units], int32, 1.0, 0, Some(wide(scattered(units, 3)))),
        quantized("memory", &[1, FILTERS * MEMORY], int16, 0.125, 0, None),
        quantized("y", &[1, units], int8, 900.0, -7, None),
    ];
    tensors[4].is_variable = true;
    let options = [("rank", Setting::Int(RANK as i64)), ("fused_activation_function", Setting::Int(1))];
    let own = operator("SVDF", &[0, 1, 2, 3, 4], &[5], &options);
    Model { subgraphs: vec![subgraph(tensors, &[0], &[5], vec![own])] }
}

/// `round(x * factor)` of the micro reference: twice.
fn scaled(x: i64, factor: f64) -> i64 {
    let exponent = factor.log2().floor() as i32 + 1;
    let number = (factor / 2f64.powi(exponent) * 2f64.powi(31)).round() as i64;
    let (left, right) = (exponent.max(0), (-exponent).max(0));
    let product = (x << left) * number;
    let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
    let high = (product + nudge) / (1 << 31);
    let (mask, half) = ((1i64 << right) - 1, ((1i64 << right) - 1) >> 1);
    (high >> right) + i64::from((high & mask) > half + i64::from(high < 0))
}

#[test]
fn filters_of_integers_are_those_of_the_reference_bit_for_bit() {
    let model = filters_of_integers();
    let inputs: Vec<Vec<i64>> = (0..7).map(|run| scattered(FEATURES, 10 + run)).collect();
    let (features, time) = (scattered(FILTERS * FEATURES, 1), scattered(FILTERS * MEMORY, 2));
    let bias = scattered(FILTERS / RANK, 3);
    let mut memory = [[0i64; MEMORY]; FILTERS];
    let mut expected = Vec::new();
    for x in &inputs {
        for (filter, memory) in memory.iter_mut().enumerate() {
            let sum: i64 = (0..FEATURES).map(|own| (x[own] - 3) * features[filter * FEATURES + own]).sum();
            memory.rotate_left(1);
            memory[MEMORY - 1] = scaled(sum, 1.0).clamp(-32768, 32767);
        }
        let sum = |filter: usize| -> i64 {
            (0..MEMORY).map(|step| memory[filter][step] * time[filter * MEMORY + step] * 90).sum()
        };
        let unit = |unit: usize| {
            let sum: i64 = (0..RANK).map(|own| sum(unit * RANK + own)).sum();
            let factor = 0.125 * f64::from(0.001f32) / 900.0;
            (scaled(sum + bias[unit] * 40, factor) - 7).clamp(-7, 127)
        };
        expected.push((0..FILTERS / RANK).map(unit).collect::<Vec<i64>>());
    }
    let integers =
        |numbers: &Vec<i64>| Value::from_integers(TensorType::new(DType::I8, [1, numbers.len()]), numbers.clone());
    let inputs: Vec<Value> = inputs.iter().map(integers).collect();
    let expected: Vec<Value> = expected.iter().map(integers).collect();
    assert!(expected.windows(2).any(|pair| pair[0] != pair[1]));
    assert_eq!(runs(&model, &inputs), expected);
}

#[test]
fn filters_of_real_numbers_remember_their_steps() {
    let numbers = |count: usize, seed: usize| -> Vec<f32> {
        scattered(count, seed).into_iter().map(|number| number as f32 / 64.0).collect()
    };
    let (features, time, bias) = (numbers(FILTERS * FEATURES, 1), numbers(FILTERS * MEMORY, 2), numbers(2, 3));
    let mut tensors = vec![
        tensor("x", &[1, FEATURES], None),
        tensor("features", &[FILTERS, FEATURES], Some(&features)),
        tensor("time", &[FILTERS, MEMORY], Some(&time)),
        tensor("bias", &[FILTERS / RANK], Some(&bias)),
        tensor("memory", &[1, FILTERS * MEMORY], None),
        tensor("y", &[1, FILTERS / RANK], None),
    ];
    tensors[4].is_variable = true;
    let own = operator("SVDF", &[0, 1, 2, 3, 4], &[5], &[("rank", Setting::Int(RANK as i64))]);
    let model = Model { subgraphs: vec![subgraph(tensors, &[0], &[5], vec![own])] };
    let inputs: Vec<Vec<f32>> = (0..7).map(|run| numbers(FEATURES, 10 + run)).collect();
    let values: Vec<Value> =
        inputs.iter().map(|x| floats(&[1, FEATURES], &x.iter().map(|&x| x.into()).collect::<Vec<_>>())).collect();
    let dot = |x: &[f32], filter: usize| -> f64 {
        (0..FEATURES).map(|own| f64::from(x[own]) * f64::from(features[filter * FEATURES + own])).sum()
    };
    for (run, output) in runs(&model, &values).into_iter().enumerate() {
        let mlc_ir::Values::Float(output) = output.values() else { panic!("{output:?}") };
        for (unit, &found) in output.iter().enumerate() {
            let of_filter = |filter: usize| -> f64 {
                let steps = (0..MEMORY).filter(|step| run + step + 1 >= MEMORY);
                let weighed = steps.map(|step| {
                    dot(&inputs[run + step + 1 - MEMORY], filter) * f64::from(time[filter * MEMORY + step])
                });
                weighed.sum()
            };
            let expected = (0..RANK).map(|own| of_filter(unit * RANK + own)).sum::<f64>() + f64::from(bias[unit]);
            assert!(
                (found - expected).abs() < 1e-4 * (1.0 + expected.abs()),
                "run {run}: {found}, {expected} expected"
            );
        }
    }
}
