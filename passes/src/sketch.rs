//! [`Sketch`]: quick construction of the small random graphs that rules are checked on, and shorthands for operators.

use mlc_ir::ops::{
    AveragePool, Binary, Broadcast, Cast, Clamp, Concat, Convolution, Matmul, MaxPool, Pad, PadMode, Reshape, Slice,
    Transpose, Unary,
};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Attribute, DType, Float, Generator, Graph, Literal, Op, Tensor, TensorType, Value};

/// A graph being drawn.
pub(crate) struct Sketch<'g> {
    graph: Graph,
    /// Where random numbers come from.
    pub(crate) random: &'g mut Generator,
}

impl<'g> Sketch<'g> {
    /// An empty graph.
    pub(crate) fn new(random: &'g mut Generator) -> Self {
        Sketch { graph: Graph::new("sample"), random }
    }

    /// An input of f32.
    pub(crate) fn input(&mut self, shape: &[usize]) -> Value {
        self.input_of(DType::F32, shape)
    }

    /// An input of any type.
    pub(crate) fn input_of(&mut self, dtype: DType, shape: &[usize]) -> Value {
        self.graph.add_input("x", TensorType::new(dtype, shape))
    }

    /// A random constant of f32.
    pub(crate) fn constant(&mut self, shape: &[usize]) -> Value {
        self.constant_of(DType::F32, shape)
    }

    /// A random constant.
    pub(crate) fn constant_of(&mut self, dtype: DType, shape: &[usize]) -> Value {
        let tensor = self.random.tensor(&TensorType::new(dtype, shape));
        self.graph.add_constant("c", Attribute::from_tensor(&tensor))
    }

    /// A constant of equal elements.
    pub(crate) fn splat(&mut self, dtype: DType, shape: &[usize], value: f64) -> Value {
        let tensor = Tensor::splat(TensorType::new(dtype, shape), Literal::of(dtype, value));
        self.graph.add_constant("c", Attribute::from_tensor(&tensor))
    }

    /// A constant of these elements.
    pub(crate) fn known(&mut self, tensor: &Tensor) -> Value {
        self.graph.add_constant("c", Attribute::from_tensor(tensor))
    }

    /// Applies an operator; where it doesn't accept the operands, the first operand stays as it is.
    pub(crate) fn apply(&mut self, op: impl Into<Op>, operands: &[Value]) -> Value {
        self.graph.add(op, operands, "n").map_or(operands[0], Value::from)
    }

    /// The shape of a value.
    pub(crate) fn shape(&self, value: Value) -> Vec<usize> {
        self.graph.ty(value).shape.to_vec()
    }

    /// The graph with this output.
    pub(crate) fn finish(self, output: Value) -> Graph {
        self.finish_with(&[output])
    }

    /// The graph with these outputs.
    pub(crate) fn finish_with(mut self, outputs: &[Value]) -> Graph {
        for &output in outputs {
            self.graph.add_output("y", output);
        }
        self.graph
    }

    /// A random permutation of `rank` axes.
    pub(crate) fn permutation(&mut self, rank: usize) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..rank).collect();
        for index in (1..rank).rev() {
            let other = self.random.range(0, index);
            axes.swap(index, other);
        }
        axes
    }

    /// A shape of a rank in the range.
    pub(crate) fn random_shape(&mut self, low: usize, high: usize) -> Vec<usize> {
        self.random.shape(low, high).to_vec()
    }

    /// A convolution and weights for an input of this shape [N, spatial…, C], with any geometry that fits.
    pub(crate) fn convolution(&mut self, shape: &[usize], padded: bool) -> (Convolution, Vec<usize>) {
        let spatial = shape.len() - 2;
        let channels = shape[spatial + 1];
        let divisors: Vec<usize> = (1..=channels).filter(|&groups| channels.is_multiple_of(groups)).collect();
        let groups = self.random.choose(&divisors);
        let window: Vec<usize> = (0..spatial).map(|axis| self.random.range(1, shape[axis + 1].min(3))).collect();
        let outputs = groups * self.random.range(1, 3);
        let pads =
            window.iter().map(|&taps| if padded && taps > 1 { (taps / 2, self.random.range(0, 1)) } else { (0, 0) });
        let pads = pads.collect();
        let op = Convolution {
            strides: (0..spatial).map(|_| self.random.range(1, 2)).collect(),
            dilations: vec![1; spatial],
            pads,
            groups,
            border: 0,
            sums: None,
        };
        let mut weights = window;
        weights.extend([channels / groups, outputs]);
        (op, weights)
    }

    /// A matrix product and shapes of its operands.
    pub(crate) fn matmul(&mut self) -> (Matmul, Vec<usize>, Vec<usize>) {
        let (rows, inner, columns) = (self.random.range(1, 4), self.random.range(1, 4), self.random.range(1, 4));
        let mut left = self.random_shape(0, 2);
        let mut right = if self.random.one_in(2) { Vec::new() } else { left.clone() };
        let (transpose_left, transpose_right) = (self.random.one_in(3), self.random.one_in(2));
        left.extend(if transpose_left { [inner, rows] } else { [rows, inner] });
        right.extend(if transpose_right { [columns, inner] } else { [inner, columns] });
        (Matmul { transpose_left, transpose_right, sums: None }, left, right)
    }

    /// A shape [N, spatial…, C] for convolutions and pools.
    pub(crate) fn image(&mut self) -> Vec<usize> {
        let mut shape = vec![self.random.range(1, 2)];
        for _ in 0..self.random.range(1, 2) {
            shape.push(self.random.range(1, 6));
        }
        shape.push(self.random.choose(&[1, 2, 3, 4, 6]));
        shape
    }
}

/// `unary`
pub(crate) fn unary(function: UnaryFunction) -> Op {
    Unary { function }.into()
}

/// `binary`
pub(crate) fn binary(function: BinaryFunction) -> Op {
    Binary { function }.into()
}

/// `transpose`
pub(crate) fn transpose(permutation: &[usize]) -> Op {
    Transpose { permutation: permutation.to_vec() }.into()
}

/// `reshape`
pub(crate) fn reshape(shape: &[usize]) -> Op {
    Reshape { shape: shape.into() }.into()
}

/// `broadcast`
pub(crate) fn broadcast(shape: &[usize]) -> Op {
    Broadcast { shape: shape.into() }.into()
}

/// `cast`
pub(crate) fn cast(dtype: DType) -> Op {
    Cast { dtype }.into()
}

/// `clamp`
pub(crate) fn clamp(low: f64, high: f64) -> Op {
    Clamp { low: Float(low), high: Float(high) }.into()
}

/// `concat`
pub(crate) fn concat(axis: usize) -> Op {
    Concat { axis }.into()
}

/// `slice` of step 1 along one axis.
pub(crate) fn slice(shape: &[usize], axis: usize, start: usize, size: usize) -> Op {
    let mut starts = vec![0; shape.len()];
    let mut sizes = shape.to_vec();
    starts[axis] = start;
    sizes[axis] = size;
    Slice { starts, sizes, steps: vec![1; shape.len()] }.into()
}

/// `pad` with a constant.
pub(crate) fn pad(pads: Vec<(usize, usize)>, value: Literal) -> Op {
    Pad { pads, mode: PadMode::Constant, value }.into()
}

/// `max_pool` without dilation.
pub(crate) fn max_pool(window: Vec<usize>, strides: Vec<usize>, pads: Vec<(usize, usize)>) -> Op {
    MaxPool { dilations: vec![1; window.len()], window, strides, pads }.into()
}

/// `average_pool` without dilation.
pub(crate) fn average_pool(
    window: Vec<usize>,
    strides: Vec<usize>,
    pads: Vec<(usize, usize)>,
    counted_pads: Vec<(usize, usize)>,
) -> Op {
    AveragePool { dilations: vec![1; window.len()], window, strides, pads, counted_pads }.into()
}
