//! Small networks for the optimiser's tests, and the comparison of graphs before and after.
#![allow(dead_code, clippy::unwrap_used)]

pub mod deep;
pub mod random;

use mlc_ir::evaluator::evaluate;
use mlc_ir::ops::{Binary, Convolution, Matmul, Reshape, Transpose, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Generator, Graph, Op, OpKind, Tensor, TensorType, Value, text};
use mlc_passes::{OptimizeOptions, OptimizeReport, optimize};
use std::fmt::Write;

/// A network being drawn, with random weights.
pub struct Network {
    pub graph: Graph,
    pub random: Generator,
}

impl Network {
    pub fn new() -> Self {
        Network { graph: Graph::new("network"), random: Generator::new(7) }
    }

    pub fn input(&mut self, shape: &[usize]) -> Value {
        self.graph.add_input("x", TensorType::new(DType::F32, shape))
    }

    pub fn constant(&mut self, name: &str, shape: &[usize]) -> Value {
        let tensor = self.random.tensor(&TensorType::new(DType::F32, shape));
        self.graph.add_constant(name, Attribute::from_tensor(&tensor))
    }

    pub fn apply(&mut self, name: &str, op: impl Into<Op>, operands: &[Value]) -> Value {
        self.graph.add(op, operands, name).unwrap().into()
    }

    pub fn shape(&self, value: Value) -> Vec<usize> {
        self.graph.ty(value).shape.to_vec()
    }

    pub fn unary(&mut self, name: &str, function: U, x: Value) -> Value {
        self.apply(name, Unary { function }, &[x])
    }

    pub fn binary(&mut self, name: &str, function: B, x: Value, y: Value) -> Value {
        self.apply(name, Binary { function }, &[x, y])
    }

    pub fn transpose(&mut self, name: &str, permutation: &[usize], x: Value) -> Value {
        self.apply(name, Transpose { permutation: permutation.to_vec() }, &[x])
    }

    pub fn reshape(&mut self, name: &str, shape: &[usize], x: Value) -> Value {
        self.apply(name, Reshape { shape: shape.into() }, &[x])
    }

    /// A 2-D convolution of a channels-last tensor.
    pub fn convolution(
        &mut self,
        name: &str,
        x: Value,
        outputs: usize,
        window: usize,
        stride: usize,
        groups: usize,
    ) -> Value {
        let channels = self.shape(x)[3];
        let weights = self.constant(&format!("{name}.weight"), &[window, window, channels / groups, outputs]);
        let pad = window / 2;
        let op = Convolution {
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            pads: vec![(pad, pad); 2],
            groups,
            border: 0,
            sums: None,
        };
        self.apply(name, op, &[x, weights])
    }

    /// Batch normalisation as the importers leave it: scale and shift of channels along `axis`.
    pub fn batch_norm(&mut self, name: &str, x: Value, axis: usize) -> Value {
        let shape = self.shape(x);
        let mut vector = vec![1; shape.len() - axis];
        vector[0] = shape[axis];
        let scale = self.constant(&format!("{name}.scale"), &vector);
        let shift = self.constant(&format!("{name}.shift"), &vector);
        let scaled = self.binary(&format!("{name}.mul"), B::Multiply, x, scale);
        self.binary(name, B::Add, scaled, shift)
    }

    /// x w + b
    pub fn linear(&mut self, name: &str, x: Value, outputs: usize) -> Value {
        let inner = self.shape(x).last().copied().unwrap();
        let weights = self.constant(&format!("{name}.weight"), &[outputs, inner]);
        let bias = self.constant(&format!("{name}.bias"), &[outputs]);
        let op = Matmul { transpose_left: false, transpose_right: true, sums: None };
        let product = self.apply(name, op, &[x, weights]);
        self.binary(&format!("{name}.add"), B::Add, product, bias)
    }

    pub fn finish(mut self, outputs: &[Value]) -> Graph {
        for (number, &output) in outputs.iter().enumerate() {
            self.graph.add_output(&format!("y{number}"), output);
        }
        self.graph
    }
}

/// Random inputs of a graph.
pub fn inputs(graph: &Graph, seed: u64) -> Vec<Tensor> {
    let mut random = Generator::new(seed);
    graph.inputs().iter().map(|&input| random.tensor(&graph.node(input).results[0])).collect()
}

/// The largest difference of two lists of tensors, relative to the first one's magnitude.
pub fn difference(left: &[Tensor], right: &[Tensor]) -> f64 {
    assert_eq!(left.len(), right.len());
    let mut largest: f64 = 0.0;
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left.ty(), right.ty());
        let left_type = left.ty().clone();
        let (left, right) = (left.to_floats(), right.to_floats());
        let unit = unit(left_type.dtype);
        let scale = left.iter().filter(|x| x.is_finite()).fold(1.0, |scale: f64, x| scale.max(x.abs()));
        for (&x, &y) in left.iter().zip(&right) {
            let equal = x == y || (x.is_nan() && y.is_nan());
            let error = if equal { 0.0 } else { (x - y).abs() / scale / unit };
            largest = if error.is_nan() { f64::INFINITY } else { largest.max(error) };
        }
    }
    largest
}

/// What a difference counts less in half precision, whose results are rounded that much coarser than single ones are judged.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 8.0,
        DType::Bf16 => 64.0,
        _ => 1.0,
    }
}

/// What a failing test shows: the graphs before and after, and the rules that fired in each stage.
pub fn report_of(before: &Graph, after: &Graph, report: &OptimizeReport) -> String {
    let mut shown = format!("before\n{}after\n{}", text::print(before), text::print(after));
    for stage in &report.stages {
        let fired: Vec<String> = stage.fired.iter().map(|(rule, count)| format!("{rule} {count} times")).collect();
        writeln!(shown, "{}: {}", stage.name, fired.join(", ")).unwrap();
    }
    shown
}

/// An optimised graph.
pub struct Optimized {
    /// The graph.
    pub graph: Graph,
    /// What was done.
    pub report: OptimizeReport,
    /// The graph as it was.
    source: Graph,
}

impl Optimized {
    /// For messages: see [`report_of`].
    pub fn shown(&self) -> String {
        report_of(&self.source, &self.graph, &self.report)
    }

    /// Checks what computes in the graph.
    pub fn expect_kernels(&self, expected: &[&str]) {
        let found = kernels(&self.graph);
        assert!(found == expected, "{expected:?} expected, found {found:?}\n{}", self.shown());
    }
}

/// Optimises a graph and checks that it computes the same.
pub fn optimized(source: Graph) -> Optimized {
    let options = OptimizeOptions { explain: true, ..OptimizeOptions::default() };
    let (graph, report) = optimize(source.clone(), &options, &mut |_, _| {}).unwrap();
    let result = Optimized { graph, report, source };
    for seed in 0..2 {
        let values = inputs(&result.source, seed);
        let expected = evaluate(&result.source, &values).unwrap();
        let error = difference(&expected, &evaluate(&result.graph, &values).unwrap());
        assert!(error < 1e-4, "the optimised graph differs by {error}\n{}", result.shown());
    }
    result
}

/// What computes in a graph: kinds of its nodes but inputs and constants, with the kinds of kernels' anchors.
pub fn kernels(graph: &Graph) -> Vec<String> {
    let mut list = Vec::new();
    for id in graph.topological_order() {
        match &graph.node(id).op {
            Op::Kernel(kernel) => list.push(format!("kernel({})", kernel.anchor.name())),
            op if matches!(op.kind(), OpKind::Input | OpKind::Constant) => {}
            op => list.push(op.name().to_owned()),
        }
    }
    list
}
