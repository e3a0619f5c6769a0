//! Element types in which a kernel computes. Elements in half precision are widened to single precision when they are loaded
//! and rounded when they are stored, to the nearest, ties to even.
//!
//! Sums stay in single precision, and so do the steps of an expression unless code must be strict. A step is rounded before
//! that where its value decides: where it is compared, converted, or rounded to an integer. So a result differs from that of
//! an evaluation which rounds every step by no more than the roundings that are left out make.

use super::KernelWriter;
use super::vectors::moved_dtype;
use crate::loops::halves::{arithmetic_dtype, is_half};
use mlc_ir::ops::{Map, PadMode, ResizeMode};
use mlc_ir::scalar::{BinaryFunction, Expression, ExpressionBuilder, ScalarId, ScalarNode, UnaryFunction};
use mlc_ir::{DType, Literal, Op};

/// Gives the kernel's arguments the types of its arithmetic, and the operator to schedule in terms of them.
pub fn in_arithmetic(op: &Op, kernel: &mut KernelWriter<'_>) -> Op {
    if let Some(sums) = wide_sums(op) {
        kernel.operands.iter_mut().for_each(|operand| operand.view.dtype = sums);
        if sums.is_integer() {
            return op.clone();
        }
    }
    let arguments = kernel.operands.iter().chain(&kernel.results);
    let arguments = arguments.chain(kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands));
    let halves = arguments.filter(|argument| is_half(argument.view.dtype)).count() > 0;
    if kernel.epilogue.is_none() && moves(op) {
        let moved = kernel.operands.iter_mut().take(1).chain(&mut kernel.results);
        moved.for_each(|argument| argument.view.dtype = moved_dtype(argument.view.dtype));
        return op.clone();
    }
    if !halves && !mentions_halves(op, kernel) {
        return op.clone();
    }
    let mut op = op.clone();
    if let Op::Map(map) = &op {
        let stored: Vec<DType> = kernel.operands.iter().map(|operand| operand.view.dtype).collect();
        op = Map { expression: of_expression(&map.expression, &stored, true, kernel.target.is_strict()) }.into();
    }
    let stored = epilogue_dtypes(&op, kernel);
    if let Some(epilogue) = &mut kernel.epilogue {
        epilogue.expression = of_expression(&epilogue.expression, &stored, false, kernel.target.is_strict());
        epilogue.operands.iter_mut().for_each(|operand| operand.view.dtype = arithmetic_dtype(operand.view.dtype));
    }
    for argument in kernel.operands.iter_mut().chain(&mut kernel.results) {
        argument.view.dtype = arithmetic_dtype(argument.view.dtype);
    }
    op
}

/// The type of an operator's sums where its operands are narrower: elements are widened as they are loaded.
fn wide_sums(op: &Op) -> Option<DType> {
    match op {
        Op::Convolution(op) => op.sums,
        Op::Matmul(op) => op.sums,
        Op::TransposedConvolution(op) => op.sums,
        _ => None,
    }
}

/// Types of what a kernel's epilogue reads: the anchor's element and the epilogue's operands.
pub fn epilogue_dtypes(op: &Op, kernel: &KernelWriter<'_>) -> Vec<DType> {
    let first = match (op, kernel.operands.first()) {
        (Op::ArgReduce(_), _) => DType::I64,
        (_, Some(operand)) => operand.view.dtype,
        (_, None) => return Vec::new(),
    };
    let others = kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands);
    std::iter::once(first).chain(others.map(|operand| operand.view.dtype)).collect()
}

/// Whether an operator only moves elements, so that their bits are enough.
fn moves(op: &Op) -> bool {
    match op {
        Op::Gather(_) => true,
        Op::Map(map) => map.expression.is_identity(),
        Op::Pad(pad) => pad.mode != PadMode::Constant,
        Op::Resize(resize) => resize.mode == ResizeMode::Nearest,
        _ => false,
    }
}

/// Whether an expression passes through half precision.
fn mentions_halves(op: &Op, kernel: &KernelWriter<'_>) -> bool {
    let own = if let Op::Map(map) = op { Some(&map.expression) } else { None };
    let mut nodes = own.into_iter().chain(kernel.epilogue.iter().map(|epilogue| &epilogue.expression));
    nodes.any(|expression| {
        expression.nodes().iter().any(|node| match node {
            ScalarNode::Cast(dtype, _) | ScalarNode::BitCast(dtype, _) => is_half(*dtype),
            ScalarNode::Literal(literal) => is_half(literal.dtype()),
            _ => false,
        })
    })
}

/// An expression over operands of the types `stored` as one over values of their arithmetic types. Operand 0 is a value in
/// half precision if `loaded`, else the anchor's, which isn't rounded yet. With `strict`, every step is rounded.
fn of_expression(expression: &Expression, stored: &[DType], loaded: bool, strict: bool) -> Expression {
    let Ok(dtypes) = expression.dtypes(stored) else { return expression.clone() };
    Expression::build(|b| {
        let mut steps = Steps { b, dtypes: &dtypes, ids: Vec::new(), exact: Vec::new() };
        for (place, node) in expression.nodes().iter().enumerate() {
            steps.add(place, *node, loaded);
            if strict {
                steps.round_last();
            }
        }
        steps.ids.last().copied().unwrap_or(0)
    })
}

struct Steps<'a> {
    b: &'a mut ExpressionBuilder,
    /// Types of the source's steps.
    dtypes: &'a [DType],
    /// The step that each step of the source became.
    ids: Vec<ScalarId>,
    /// Whether its value is one of the source step's type.
    exact: Vec<bool>,
}

impl Steps<'_> {
    fn add(&mut self, place: usize, node: ScalarNode, loaded: bool) {
        let half = is_half(self.dtypes[place]);
        let inexact = node.children().any(|child| !self.exact[child as usize]);
        let (id, exact) = match node {
            ScalarNode::Operand(k) => (self.b.operand(k), !half || loaded || k > 0),
            ScalarNode::Literal(literal) if half => {
                (self.b.literal(Literal::float(DType::F32, literal.to_f64())), true)
            }
            ScalarNode::Cast(to, x) => (self.cast(to, x), true),
            ScalarNode::BitCast(to, x) => (self.bit_cast(to, x), true),
            node => {
                let ids = self.ids.clone();
                let node = if decides(&node) {
                    node.map_children(|child| self.rounded(child))
                } else {
                    node.map_children(|child| ids[child as usize])
                };
                (self.b.push(node), !half || (chooses(&node) && !inexact) || rounds_to_integer(&node))
            }
        };
        self.ids.push(id);
        self.exact.push(exact);
    }

    /// Rounds the last step to its type.
    fn round_last(&mut self) {
        let Some(last) = self.ids.len().checked_sub(1) else { return };
        self.ids[last] = self.rounded(last as ScalarId);
        self.exact[last] = true;
    }

    /// The step's value, rounded to its type.
    fn rounded(&mut self, step: ScalarId) -> ScalarId {
        let (id, dtype) = (self.ids[step as usize], self.dtypes[step as usize]);
        if self.exact[step as usize] { id } else { self.round(id, dtype) }
    }

    fn round(&mut self, id: ScalarId, half: DType) -> ScalarId {
        let bits = self.b.cast(half, id);
        self.b.cast(DType::F32, bits)
    }

    /// A conversion by way of a type that holds the values of the step: single precision, or double precision for wide types.
    fn cast(&mut self, to: DType, x: ScalarId) -> ScalarId {
        let from = self.dtypes[x as usize];
        let value = self.rounded(x);
        if !is_half(to) {
            return if arithmetic_dtype(from) == to { value } else { self.b.cast(to, value) };
        }
        let value = match from {
            _ if from == to => return value,
            _ if arithmetic_dtype(from) == DType::F32 || from == DType::F64 => value,
            _ if from.size() >= 4 => self.b.cast(DType::F64, value),
            _ => self.b.cast(DType::F32, value),
        };
        self.round(value, to)
    }

    /// The bits of the step, those of a half where it is one.
    fn bit_cast(&mut self, to: DType, x: ScalarId) -> ScalarId {
        let (value, from) = (self.rounded(x), self.dtypes[x as usize]);
        let value = if is_half(from) { self.b.cast(from, value) } else { value };
        let bits = self.b.bit_cast(to, value);
        if is_half(to) { self.b.cast(DType::F32, bits) } else { bits }
    }
}

/// Whether a small difference of an operand may make a large one of the result.
fn decides(node: &ScalarNode) -> bool {
    use BinaryFunction as B;
    use UnaryFunction as U;
    match node {
        ScalarNode::Unary(function, _) => {
            matches!(
                function,
                U::IsNan | U::IsInfinite | U::Ceil | U::Floor | U::Round | U::Truncate | U::RoundToInteger | U::Sign
            )
        }
        ScalarNode::Binary(function, ..) => {
            function.is_comparison() || matches!(function, B::FloorDivide | B::Modulo | B::Remainder)
        }
        _ => false,
    }
}

/// Whether the result is an operand, but for its sign.
fn chooses(node: &ScalarNode) -> bool {
    use BinaryFunction as B;
    use UnaryFunction as U;
    match node {
        ScalarNode::Unary(function, _) => matches!(function, U::Negate | U::Absolute | U::Relu),
        ScalarNode::Binary(function, ..) => matches!(function, B::Maximum | B::Minimum),
        ScalarNode::Select(..) => true,
        _ => false,
    }
}

fn rounds_to_integer(node: &ScalarNode) -> bool {
    use UnaryFunction as U;
    matches!(node, ScalarNode::Unary(U::Ceil | U::Floor | U::Round | U::Truncate | U::Sign, _))
}
