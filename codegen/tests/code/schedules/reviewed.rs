//! The C of one small kernel per family, as reviewed.

use super::case::{Case, Layout, build, schedules};
use mlc_codegen::Target;
use mlc_codegen::kernels::{self, Argument, KernelWriter};
use mlc_codegen::loops::{Function, Holds, Intrinsics, LoopBuilder, Overlaps, Parameter, print};
use mlc_codegen::lower::view::View;
use mlc_ir::ops::{
    ArgFunction, ArgReduce, AveragePool, Cumulative, CumulativeFunction, Gather, GatherElements, Map, Matmul, MaxPool,
    Normalize, Pad, PadMode, Recurrent, RecurrentCell, RecurrentOperand, Reduce, ReduceFunction, Resize,
    ResizeCoordinates, ResizeMode, Scatter, ScatterReduction, Softmax, Sort,
};
use mlc_ir::scalar::Expression;
use mlc_ir::{DType, Float, Generator, Literal, Objective, Op, TensorType};

fn text(op: impl Into<Op>, shapes: &[&[usize]], target: &Target) -> String {
    let types: Vec<TensorType> = shapes.iter().map(|&shape| TensorType::new(DType::F32, shape)).collect();
    typed_text(op.into(), &types, target)
}

fn typed_text(op: Op, types: &[TensorType], target: &Target) -> String {
    text_by("", op, types, target)
}

/// The text of the first schedule of a kind; of the first of all where none is given.
fn text_by(kind: &str, op: Op, types: &[TensorType], target: &Target) -> String {
    let mut case = Case::new(op, types, Layout::Dense, &mut Generator::new(1));
    case.constants = (0..types.len()).map(|operand| operand == 1).collect();
    let mut all = schedules(&case, target).unwrap().into_iter();
    let schedule = all.find(|own| kind.is_empty() || own.is_named(kind)).unwrap();
    let mut function = build(&case, &schedule, target).unwrap().function;
    function.comment = Vec::new();
    print::function(&function, false, &mut Intrinsics::default())
}

/// The text with the helpers that it calls.
fn text_with_helpers(op: impl Into<Op>, shapes: &[&[usize]], target: &Target) -> String {
    let types: Vec<TensorType> = shapes.iter().map(|&shape| TensorType::new(DType::F32, shape)).collect();
    let case = Case::new(op.into(), &types, Layout::Dense, &mut Generator::new(1));
    let schedule = schedules(&case, target).unwrap().remove(0);
    let mut function = build(&case, &schedule, target).unwrap().function;
    function.comment = Vec::new();
    let mut helpers = Intrinsics::new(target);
    let text = print::function(&function, false, &mut helpers);
    format!("{}\n{text}", helpers.prelude())
}

fn reviewed(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../../snapshots/kernels");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// The text of the last schedule there is where memory counts, with its loops downwards.
fn text_downwards(op: impl Into<Op>, shapes: &[&[usize]], kind: &str) -> String {
    let target = Target::embedded().into_iter().find(|target| target.name == "cortex-m4").unwrap();
    let target = target.with_objective(Objective::Ram);
    let types: Vec<TensorType> = shapes.iter().map(|&shape| TensorType::new(DType::F32, shape)).collect();
    let mut case = Case::new(op.into(), &types, Layout::Dense, &mut Generator::new(1));
    case.constants = (0..types.len()).map(|operand| operand == 1).collect();
    let schedule =
        schedules(&case, &target).unwrap().into_iter().rfind(|own| kind.is_empty() || own.is_named(kind)).unwrap();
    let mut built = build(&case, &schedule, &target).unwrap().downwards().unwrap();
    built.function.comment = Vec::new();
    print::function(&built.function, false, &mut Intrinsics::default())
}

#[test]
fn kernels_that_go_downwards_are_as_reviewed() {
    let pool = MaxPool { window: vec![2, 3], strides: vec![2, 1], dilations: vec![1, 1], pads: vec![(0, 0), (1, 1)] };
    reviewed("max_pool_downwards", &text_downwards(pool, &[&[1, 8, 6, 4]], ""));
    let product = Matmul { transpose_left: false, transpose_right: false, sums: None };
    reviewed("pixels_downwards", &text_downwards(product, &[&[8, 6], &[6, 12]], "rolled:order=pixels"));
}

#[test]
fn reductions_are_as_reviewed() {
    let mean = Reduce { function: ReduceFunction::Mean, axes: vec![1, 2], keep_axes: false };
    reviewed("mean_of_pixels", &text(mean, &[&[1, 7, 7, 24]], &Target::host(32)));
    let sum = Reduce { function: ReduceFunction::Sum, axes: vec![1], keep_axes: true };
    reviewed("sum_of_rows", &text(sum, &[&[5, 75]], &Target::host(32)));
    let largest = ArgReduce { function: ArgFunction::Maximum, axis: 1, keep_axis: false, last: false };
    reviewed("arg_maximum", &text(largest, &[&[1, 10]], &Target::generic()));
    let total = Cumulative { function: CumulativeFunction::Sum, axis: 1, exclusive: true, reverse: true };
    reviewed("running_sum", &text(total, &[&[3, 10]], &Target::generic()));
}

#[test]
fn softmax_and_normalisation_are_as_reviewed() {
    let softmax = Softmax { axis: 1, logarithm: false };
    reviewed("softmax_of_rows", &text(softmax, &[&[4, 12]], &Target::generic()));
    let softmax = Softmax { axis: 1, logarithm: true };
    reviewed("log_softmax_of_channels", &text(softmax, &[&[1, 5, 16]], &Target::host(32)));
    let normalize = Normalize { axes: vec![1], epsilon: Float(1e-5), center: true };
    reviewed("normalized_rows", &text(normalize, &[&[4, 32]], &Target::host(32)));
}

#[test]
fn arms_vectors_are_as_reviewed() {
    let helium = Target::embedded().into_iter().find(|target| target.name == "cortex-m55").unwrap();
    let softmax = Softmax { axis: 1, logarithm: false };
    reviewed("helium_softmax_of_rows", &text_with_helpers(softmax, &[&[4, 12]], &helium));
    let expression = Expression::parse("relu6(add(x0, x1))").unwrap();
    reviewed("helium_relu6", &text_with_helpers(Map { expression }, &[&[4, 12], &[4, 12]], &helium));
    let matmul = Matmul { transpose_left: false, transpose_right: true, sums: None };
    reviewed("helium_matmul_of_columns", &text_with_helpers(matmul, &[&[2, 3], &[5, 3]], &helium));
}

#[test]
fn pools_are_as_reviewed() {
    let pool = MaxPool { window: vec![3; 2], strides: vec![2; 2], dilations: vec![1; 2], pads: vec![(0, 1); 2] };
    reviewed("max_pool", &text(pool, &[&[1, 8, 8, 16]], &Target::host(32)));
    let (pads, counted_pads) = (vec![(3, 3)], vec![(0, 0)]);
    let pool = AveragePool { window: vec![7], strides: vec![1], dilations: vec![1], pads, counted_pads };
    reviewed("average_pool_with_wide_border", &text(pool, &[&[1, 16, 4]], &Target::generic()));
}

#[test]
fn gathers_pads_and_resizes_are_as_reviewed() {
    let types = [TensorType::new(DType::F32, [20, 8]), TensorType::new(DType::I64, [3])];
    reviewed("gather", &typed_text(Gather { axis: 0 }.into(), &types, &Target::host(32)));
    let pads = vec![(0, 0), (2, 2), (1, 1)];
    let pad = Pad { pads, mode: PadMode::Reflect, value: Literal::of(DType::F32, 0.0) };
    reviewed("reflect", &text(pad, &[&[2, 6, 6]], &Target::generic()));
    let resize = |mode| Resize {
        axes: vec![1, 2],
        sizes: vec![8, 8],
        ratios: vec![Float(0.5); 2],
        mode,
        coordinates: ResizeCoordinates::HalfPixel,
    };
    reviewed("nearest", &text(resize(ResizeMode::Nearest), &[&[1, 4, 4, 8]], &Target::host(32)));
    reviewed("linear", &text(resize(ResizeMode::Linear), &[&[1, 4, 4, 8]], &Target::host(32)));
}

#[test]
fn sorts_and_scatters_are_as_reviewed() {
    let sort = |count| Sort { axis: 1, count, descending: true };
    reviewed("sort", &text(sort(100), &[&[2, 100]], &Target::generic()));
    reviewed("top_of_many", &text(sort(5), &[&[2, 100]], &Target::generic()));
    let scatter = Scatter { axis: 0, reduction: ScatterReduction::Sum };
    let types = [
        TensorType::new(DType::F32, [20, 8]),
        TensorType::new(DType::I64, [3, 1]),
        TensorType::new(DType::F32, [3, 8]),
    ];
    reviewed("scatter_of_rows", &typed_text(scatter.into(), &types, &Target::host(32)));
    let types = [TensorType::new(DType::F32, [3, 12]), TensorType::new(DType::I64, [2, 4])];
    reviewed("gather_elements", &typed_text(GatherElements { axis: 1 }.into(), &types, &Target::generic()));
}

#[test]
fn recurrent_layers_are_as_reviewed() {
    let lstm = Recurrent { with: vec![RecurrentOperand::Projection], ..Recurrent::new(RecurrentCell::Lstm) };
    let shapes: [&[usize]; 6] = [&[9, 1, 64], &[8, 64], &[64], &[1, 8], &[1, 16], &[16, 8]];
    reviewed("lstm_with_projection", &text(lstm, &shapes, &Target::host(32)));
    let gru = Recurrent { reverse: true, ..Recurrent::new(RecurrentCell::Gru) };
    let shapes: [&[usize]; 4] = [&[9, 1, 18], &[6, 18], &[18], &[1, 6]];
    reviewed("gru", &text(gru, &shapes, &Target::generic()));
    let gru = Recurrent { with: vec![RecurrentOperand::Lengths], ..Recurrent::new(RecurrentCell::ResetFirstGru) };
    let types = gru.operand_types(DType::F32, DType::I64, [9, 2, 8, 8]);
    reviewed("reset_first_gru_with_lengths", &typed_text(gru.into(), &types, &Target::host(32)));
    let with = vec![RecurrentOperand::Peepholes];
    let lstm = Recurrent { reverse: true, with, ..Recurrent::new(RecurrentCell::CoupledLstm) };
    let types = lstm.operand_types(DType::F32, DType::I32, [9, 1, 4, 4]);
    reviewed("coupled_lstm_with_peepholes", &typed_text(lstm.into(), &types, &Target::generic()));
    let gru = Recurrent::new(RecurrentCell::Gru);
    let types = gru.operand_types(DType::F32, DType::I32, [9, 1, 32, 32]);
    reviewed("gru_pipelined", &text_by("pipelined-steps", gru.into(), &types, &Target::host(32)));
}

#[test]
fn transposed_copies_are_as_reviewed() {
    for (name, target) in [("transposed", Target::host(32)), ("transposed_in_c99", Target::generic())] {
        let mut b = LoopBuilder::new();
        let argument = |name, holds, view: View, b: &mut LoopBuilder| Argument {
            pointer: b.parameter(name, DType::F32, holds),
            view,
            constant: None,
            operand: None,
        };
        let x = argument("x", Holds::Operand, View::dense(DType::F32, &[2, 303, 905]).transpose(&[0, 2, 1]), &mut b);
        let y = argument("y", Holds::Result, View::dense(DType::F32, &[2, 905, 303]), &mut b);
        let parameters = [&x, &y]
            .map(|argument| Parameter { var: argument.pointer, restrict: true, overlaps: Overlaps::Never })
            .to_vec();
        let mut kernel = KernelWriter {
            b,
            target: &target,
            operands: vec![x],
            results: vec![y],
            epilogue: None,
            packed: Vec::new(),
            scratch: Vec::new(),
            scalar: false,
            halves: false,
            bounds: Vec::new(),
        };
        let copy: Op = Map { expression: Expression::operand(0) }.into();
        let schedule = kernels::schedules(&copy, &kernel).unwrap().remove(0);
        assert_eq!(schedule.to_string(), "blocks");
        kernels::write(&copy, &schedule, &mut kernel).unwrap();
        let (vars, body) = kernel.b.finish();
        let function = Function { name: name.into(), comment: Vec::new(), parameters, vars, body };
        reviewed(name, &print::function(&function, false, &mut Intrinsics::default()));
    }
}
