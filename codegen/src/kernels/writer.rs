//! [`KernelWriter`]: a kernel under construction, with what schedules load, store and ask for.

use super::bounds::{self, Bounds};
use super::packed::Packed;
use super::vectors::{self, moved_dtype};
use crate::loops::halves::is_half;
use crate::loops::{Expr, Holds, Index, Known, LoopBuilder, Nest, Rescaling, Stmt, ValueType, Var, mask_dtype};
use crate::lower::view::View;
use crate::target::{ByteDots, Target};
use mlc_ir::scalar::{BinaryFunction, Expression, ScalarNode, UnaryFunction};
use mlc_ir::{Attribute, DType, Literal, TensorType};

/// A tensor that a kernel reads or writes: a pointer to its element 0 and how its elements lie from there.
#[derive(Debug, Clone)]
pub struct Argument {
    /// The pointer.
    pub pointer: Var,
    /// Shape and strides; the offset is in the pointer already.
    pub view: View,
    /// Its values when it is a constant, in the order of the view.
    pub constant: Option<Attribute>,
    /// Which of the kernel's operands it is; `None` for results.
    pub operand: Option<usize>,
}

impl Argument {
    /// Elements between the pointer and the element at some indices, right-aligned: leading axes that the indices have more
    /// are skipped, axes of one element don't move.
    pub fn address(&self, indices: &[Index]) -> Index {
        let skipped = indices.len() - self.view.rank();
        let mut address = Index::default();
        for axis in 0..self.view.rank() {
            if self.view.shape[axis] != 1 {
                address = address.plus(&indices[axis + skipped].times(self.view.strides[axis]));
            }
        }
        address
    }

    /// Stride of an axis of a result of `rank` axes that this operand broadcasts to.
    pub fn stride(&self, axis: usize, rank: usize) -> i64 {
        match (axis + self.view.rank()).checked_sub(rank) {
            Some(own) if self.view.shape[own] != 1 => self.view.strides[own],
            _ => 0,
        }
    }
}

/// What is computed from each element of the anchor's result before it is stored.
#[derive(Debug, Clone)]
pub struct Epilogue {
    /// The expression; x0 is the anchor's element.
    pub expression: Expression,
    /// Operands x1, x2, …
    pub operands: Vec<Argument>,
}

/// A constant in the layout that a kernel wants, asked for by a schedule.
#[derive(Debug, Clone)]
pub struct PackedOperand {
    /// The pointer parameter that stands for it.
    pub pointer: Var,
    /// Which operand it was made of; `None` for a table that only the operator's fields determine.
    pub operand: Option<usize>,
    /// The values.
    pub value: Packed,
}

/// A kernel under construction.
#[derive(Clone)]
pub struct KernelWriter<'a> {
    /// Writes the loops.
    pub b: LoopBuilder,
    /// The machine.
    pub target: &'a Target,
    /// Operands in order, without the epilogue's.
    pub operands: Vec<Argument>,
    /// Results in order.
    pub results: Vec<Argument>,
    /// The epilogue of the first result.
    pub epilogue: Option<Epilogue>,
    /// Constants that were packed.
    pub packed: Vec<PackedOperand>,
    /// Scratch memory asked for: pointer, bytes, type of the elements.
    pub scratch: Vec<(Var, usize, DType)>,
    /// Whether it does without the machine's vectors, which have no instructions for its steps.
    pub scalar: bool,
    /// Whether it computes with halves, in the machine's vectors of them.
    pub halves: bool,
    /// What is known of the operands of the epilogue, or of those of a kernel without one.
    pub bounds: Vec<Bounds>,
}

/// Bytes of scratch memory that are an array on the stack. More is in the arena, where it is planned and counted: stacks of
/// microcontrollers are small, and static memory would be there all the time and make functions that can't be called twice at once.
const MOST_ARRAY_BYTES: usize = 64;

impl Nest for KernelWriter<'_> {
    fn builder(&mut self) -> &mut LoopBuilder {
        &mut self.b
    }
}

impl KernelWriter<'_> {
    /// Asks for a constant operand in another layout; the values are used in place of the operand's.
    pub fn pack(
        &mut self,
        operand: usize,
        name: &str,
        ty: TensorType,
        values: impl Fn() -> Option<Attribute> + Send + Sync + 'static,
    ) -> Var {
        self.constant(name, Some(operand), Packed::new(ty, values))
    }

    /// Asks for a constant that only the operator's fields determine.
    pub fn table(&mut self, name: &str, value: Attribute) -> Var {
        self.constant(name, None, value.into())
    }

    fn constant(&mut self, name: &str, operand: Option<usize>, value: Packed) -> Var {
        let dtype = value.ty().dtype;
        let pointer = self.b.parameter(name, dtype, Holds::Constants);
        if self.target.half_pairs && dtype == DType::F16 {
            self.b.pair_halves(pointer);
        }
        self.packed.push(PackedOperand { pointer, operand, value });
        pointer
    }

    /// Names what several products take. Where instructions take vectors from memory, one is kept from being read for each of them.
    pub fn shared(&mut self, name: &str, value: Expr) -> Expr {
        let is_read = matches!(&value, Expr::Load { ty, .. } if ty.lanes > 1);
        let value = if is_read && self.target.memory_operands { Expr::Held(Box::new(value)) } else { value };
        self.b.define(name, value)
    }

    /// Asks for scratch memory that lives during this kernel, or while the block lives that is being written: a few bytes are on the stack.
    pub fn scratch(&mut self, name: &str, dtype: DType, elements: usize) -> Var {
        self.memory(name, dtype, elements, Holds::Result)
    }

    /// The same for what each turn of a loop that writes results [gathers](Holds::Gathered) for itself.
    pub fn gathered(&mut self, name: &str, dtype: DType, elements: usize) -> Var {
        self.memory(name, dtype, elements, Holds::Gathered)
    }

    fn memory(&mut self, name: &str, dtype: DType, elements: usize, holds: Holds) -> Var {
        if elements * dtype.size() <= MOST_ARRAY_BYTES {
            return self.b.array(name, dtype, elements, holds);
        }
        let pointer = self.b.parameter(name, dtype, holds);
        self.scratch.push((pointer, elements * dtype.size(), dtype));
        pointer
    }

    /// Loads an operand's element, or `lanes` of them along the last axis of the indices, of which `valid` exist. Vectors of
    /// truth values are their bytes.
    pub fn load(&self, argument: &Argument, indices: &[Index], lanes: usize, valid: usize) -> Expr {
        let dtype = argument.view.dtype;
        let ty = ValueType::vector(if lanes == 1 { dtype } else { moved_dtype(dtype) }, lanes);
        let pointer = argument.pointer;
        let index = argument.address(indices);
        let stride = if indices.is_empty() { 0 } else { argument.stride(indices.len() - 1, indices.len()) };
        if lanes == 1 {
            return Expr::Load { pointer, index, ty };
        }
        if stride == 0 {
            return Expr::Splat(Box::new(Expr::Load { pointer, index, ty: ValueType::scalar(ty.dtype) }), lanes);
        }
        if stride == 1 && valid == lanes {
            return Expr::Load { pointer, index, ty };
        }
        Expr::Gather { pointer, index, stride, valid, ty }
    }

    /// The same for an operand of an expression that is computed in vectors of `dtype`: truth values become masks of such
    /// vectors.
    pub fn load_beside(
        &self,
        dtype: DType,
        argument: &Argument,
        indices: &[Index],
        lanes: usize,
        valid: usize,
    ) -> Expr {
        let value = self.load(argument, indices, lanes, valid);
        if lanes == 1 || argument.view.dtype != DType::Bool {
            return value;
        }
        let mask = mask_dtype(dtype);
        let wide = if mask.size() == 1 { value } else { Expr::Cast(mask, Box::new(value)) };
        Expr::Cast(DType::Bool, Box::new(wide))
    }

    /// Computes the epilogue of the anchor's value at some indices of the first result and stores it. `value` is a scalar,
    /// or a vector along the last axis of which `valid` lanes exist.
    pub fn finish(&mut self, value: Expr, indices: &[Index], valid: usize) {
        let value = match self.epilogue.clone() {
            Some(epilogue) => self.apply(&epilogue, value, indices, valid),
            None => value,
        };
        let result = self.results[0].clone();
        self.store(&result, value, indices, valid);
    }

    /// Stores a value into a result at some indices.
    pub fn store(&mut self, result: &Argument, value: Expr, indices: &[Index], valid: usize) {
        let index = result.address(indices);
        let stride = if indices.is_empty() { 1 } else { result.stride(indices.len() - 1, indices.len()) };
        let ValueType { dtype, lanes } = self.b.ty(&value);
        let is_mask = lanes > 1 && dtype == DType::Bool;
        let value = if is_mask { Expr::Cast(moved_dtype(dtype), Box::new(value)) } else { value };
        // Lanes that are stored one by one are those of a variable, so that the value is computed once.
        let value = if lanes > 1 && (stride != 1 || valid < lanes) { self.b.define("lanes", value) } else { value };
        self.b.push(Stmt::Store { pointer: result.pointer, index, stride, valid, value });
    }

    fn apply(&mut self, epilogue: &Epilogue, value: Expr, indices: &[Index], valid: usize) -> Expr {
        let ValueType { dtype, lanes } = self.b.ty(&value);
        let mut operands = vec![value];
        for argument in &epilogue.operands {
            operands.push(self.load_beside(dtype, argument, indices, lanes, valid));
        }
        self.known_expression(&epilogue.expression, operands, lanes)
    }

    /// Writes an expression over values; steps that are used several times get names.
    pub fn expression(&mut self, expression: &Expression, operands: Vec<Expr>, lanes: usize) -> Expr {
        self.expression_within(expression, operands, lanes, &[])
    }

    /// The same of the expression whose operands' bounds the kernel knows.
    pub fn known_expression(&mut self, expression: &Expression, operands: Vec<Expr>, lanes: usize) -> Expr {
        let bounds = self.bounds.clone();
        self.expression_within(expression, operands, lanes, &bounds)
    }

    fn expression_within(
        &mut self,
        expression: &Expression,
        operands: Vec<Expr>,
        lanes: usize,
        bounds: &[Bounds],
    ) -> Expr {
        let dtypes: Vec<DType> = operands.iter().map(|operand| self.b.ty(operand).dtype).collect();
        let expression = if self.target.is_strict() {
            expression.primitive_except(&dtypes, is_in_library)
        } else {
            expression.primitive(&dtypes)
        };
        let nodes = expression.nodes();
        let saturates = self.target.byte_dots != ByteDots::None;
        let types = expression.dtypes(&dtypes).unwrap_or_default();
        let bounds = bounds::of_steps(&expression, &types, bounds);
        let mut uses = vec![0; nodes.len()];
        nodes.iter().flat_map(ScalarNode::children).for_each(|child| uses[child as usize] += 1);
        let kept: Vec<Option<u32>> = nodes
            .iter()
            .map(|node| match *node {
                ScalarNode::Cast(_, x) if lanes > 1 => bounds::kept(nodes, &types, &bounds, x),
                _ => None,
            })
            .collect();
        let mut values = Steps::new(&uses, &kept);
        for (id, node) in nodes.iter().enumerate() {
            let mut child = |k: u32| values.take(k);
            let value = match *node {
                ScalarNode::Operand(k) => operands[k as usize].clone(),
                ScalarNode::Literal(literal) => Expr::Literal(literal),
                ScalarNode::Unary(function, x) => Expr::unary(function, child(x)),
                ScalarNode::Binary(function, x, y) => {
                    let x = child(x);
                    summed(function, x, child(y))
                }
                ScalarNode::Cast(dtype, x) if lanes == 1 => saturated(dtype, child(x)),
                ScalarNode::Select(c, x, y) => {
                    let [c, x, y] = [c, x, y].map(child).map(Box::new);
                    Expr::Select(c, x, y)
                }
                ScalarNode::Cast(dtype, x) => match kept[id] {
                    Some(inner) if types[inner as usize] == dtype => child(inner),
                    Some(inner) if dtype == DType::F32 => Expr::Cast(dtype, Box::new(child(inner))),
                    _ if saturates => saturated_lanes(dtype, child(x)),
                    _ => Expr::Cast(dtype, Box::new(child(x))),
                },
                ScalarNode::BitCast(dtype, x) => Expr::BitCast(dtype, Box::new(child(x))),
                ScalarNode::Rescale(rounding, children) => {
                    let own = children.map(|child| bounds.get(child as usize).copied().unwrap_or(bounds::ANYTHING));
                    let is_middle = lanes > 1 && saturates && types[id] == DType::I32 && own[2] == (31, 31);
                    let known = match bounds::known(rounding, types[id], own) {
                        _ if is_middle => Known::Middle,
                        Known::Small if lanes > 1 && saturates && bounds::is_near(own) => Known::Near,
                        known => known,
                    };
                    let rescaling = Rescaling { rounding, known, added: 0 };
                    let children = children.map(child);
                    let halved = if is_middle { halved(&children[0], own) } else { None };
                    halved.unwrap_or_else(|| Expr::Rescale(rescaling, Box::new(children)))
                }
            };
            let value = if uses[id] > 1 { self.b.define("t", value) } else { value };
            values.list.push(value);
        }
        let result = values.list.pop().unwrap_or(Expr::Literal(Literal::float(DType::F32, 0.0)));
        match self.b.ty(&result) {
            ValueType { lanes: own, .. } if own == lanes => result,
            ValueType { dtype: DType::Bool, .. } => {
                let byte = Expr::Cast(moved_dtype(DType::Bool), Box::new(result));
                Expr::Cast(DType::Bool, Box::new(Expr::Splat(Box::new(byte), lanes)))
            }
            _ => Expr::Splat(Box::new(result), lanes),
        }
    }

    /// Lanes that kernels on elements of a type use when every value in them is of that type.
    pub fn lanes(&self, dtype: DType) -> usize {
        match dtype {
            DType::F16 if self.halves => self.target.vector_bytes / dtype.size(),
            _ if self.scalar || !vectors::has_lanes(self.target, dtype) => 1,
            _ => self.target.lanes(dtype.size()),
        }
    }

    /// Lanes that allow the epilogue: 1 when it has values of other types than `dtype` and bool.
    pub fn epilogue_lanes(&self, dtype: DType) -> usize {
        self.lanes_beside_epilogue(dtype, dtype)
    }

    /// The same where the anchor's elements are of the type `element`: truth values beside vectors of `dtype`.
    pub fn lanes_beside_epilogue(&self, dtype: DType, element: DType) -> usize {
        let lanes = self.lanes(dtype);
        let Some(epilogue) = &self.epilogue else { return lanes };
        let mut dtypes = vec![element];
        dtypes.extend(epilogue.operands.iter().map(|operand| operand.view.dtype));
        if self.vector_dtype(&epilogue.expression, &dtypes) == Some(dtype) { lanes } else { 1 }
    }

    /// The type in whose vectors the machine can compute an expression over operands of some types; bytes may be converted to it, and
    /// the result to bytes.
    pub fn vector_dtype(&self, expression: &Expression, operands: &[DType]) -> Option<DType> {
        vector_dtype(expression, operands)
            .filter(|_| vectors::has_steps(self.target, expression, operands))
            .or_else(|| vectors::widens_bytes(self.target, expression, operands).then_some(DType::I32))
    }
}

/// Whether the C library has a function that the expression for it would only approach.
fn is_in_library(function: UnaryFunction) -> bool {
    matches!(function, UnaryFunction::Exp2 | UnaryFunction::Log2 | UnaryFunction::Log10)
}

/// The type in whose vectors an expression can be computed: that of its numbers, beside which there may be truth values, or that
/// of bytes when all are truth values. Singles may be rounded to halves on the way, and bits may be taken as another type's.
pub fn vector_dtype(expression: &Expression, operands: &[DType]) -> Option<DType> {
    let steps = expression.dtypes(operands).ok()?;
    let mut numbers = operands.iter().chain(steps.last()).chain(&steps).filter(|&&dtype| dtype != DType::Bool);
    let Some(&dtype) = numbers.next() else { return Some(moved_dtype(DType::Bool)) };
    let is_whole = |step: DType| step == DType::Bool || step.size() == dtype.size();
    let is_rounded = |step: DType| dtype == DType::F32 && is_half(step);
    let converts = |from: DType, to: DType| match (from, to) {
        (DType::F32, to) if is_rounded(to) => true,
        (from, DType::F32) if is_rounded(from) => true,
        _ => from == to || [from, to].contains(&DType::Bool) && !is_half(from) && !is_half(to),
    };
    let fits = operands.iter().chain(steps.last()).all(|&dtype| is_whole(dtype))
        && expression.nodes().iter().zip(&steps).all(|(node, &step)| match *node {
            ScalarNode::Cast(to, x) => converts(steps[x as usize], to) && (is_whole(step) || is_rounded(step)),
            _ => is_whole(step) || is_rounded(step),
        });
    fits.then_some(dtype)
}

/// The values of an expression's steps. One that is read once is given away: copies of what is copied again take time that grows as the
/// square of the steps.
struct Steps {
    list: Vec<Expr>,
    is_read_once: Vec<bool>,
}

impl Steps {
    /// Steps of which each is read so often, and these by others than the steps that name them.
    fn new(uses: &[usize], kept: &[Option<u32>]) -> Steps {
        let mut is_read_once: Vec<bool> = uses.iter().map(|&uses| uses <= 1).collect();
        kept.iter().flatten().for_each(|&kept| is_read_once[kept as usize] = false);
        Steps { list: Vec::with_capacity(uses.len()), is_read_once }
    }

    fn take(&mut self, step: u32) -> Expr {
        let value = &mut self.list[step as usize];
        match self.is_read_once[step as usize] {
            true => std::mem::replace(value, Expr::Literal(Literal::Integer(DType::Bool, 0))),
            false => value.clone(),
        }
    }
}

/// A function of two values; a small number that is added to a rescaled one is a part of that.
fn summed(function: BinaryFunction, x: Expr, y: Expr) -> Expr {
    if let (BinaryFunction::Add, Expr::Rescale(rescaling, children), Expr::Literal(Literal::Integer(_, added))) =
        (function, &x, &y)
        && rescaling.known.takes_added()
        && let Some(added) =
            i32::try_from(*added).ok().filter(|added| added.unsigned_abs() <= most_added(rescaling.known))
        && rescaling.added == 0
    {
        return Expr::Rescale(Rescaling { added, ..*rescaling }, children.clone());
    }
    Expr::binary(function, x, y)
}

/// The largest number that a rescaling can take to be added to its result.
fn most_added(known: Known) -> u32 {
    if known == Known::Small { 0xffff } else { 256 }
}

/// Half of a number that has been shifted to the left without a bit lost, if it is rescaled by a half.
fn halved(shifted: &Expr, [own, multiplier, _]: [Bounds; 3]) -> Option<Expr> {
    let Expr::Binary(BinaryFunction::ShiftLeft, x, bits) = shifted else { return None };
    let Expr::Literal(Literal::Integer(DType::I32, bits)) = **bits else { return None };
    let is_half = multiplier == (1 << 30, 1 << 30) && own.0 > i64::from(i32::MIN) && bits > 0;
    let less = Expr::Literal(Literal::integer(DType::I32, bits - 1));
    is_half.then(|| Expr::binary(BinaryFunction::ShiftLeft, (**x).clone(), less))
}

/// A conversion of lanes; to bytes, a saturation of numbers that have been limited to the largest of these, and to none below the least.
fn saturated_lanes(dtype: DType, x: Expr) -> Expr {
    let (least, most) = dtype.integer_range(8);
    if dtype.is_byte()
        && let Expr::Binary(BinaryFunction::Minimum, inner, high) = &x
        && let Expr::Binary(BinaryFunction::Maximum, value, low) = &**inner
        && number_of(high) == Some(most)
        && let Some(low) = number_of(low).filter(|&low| low >= least)
    {
        let value = if low == least { cut(value, least) } else { (**inner).clone() };
        return Expr::Saturate(dtype, Box::new(value));
    }
    Expr::Cast(dtype, Box::new(x))
}

/// A value of which all below `least` is that in the end: a rescaled number needs no care then where it would be below.
fn cut(value: &Expr, least: f64) -> Expr {
    match value {
        Expr::Rescale(own, children) if own.known == Known::Near && f64::from(own.added) <= least => {
            Expr::Rescale(Rescaling { known: Known::Cut, ..*own }, children.clone())
        }
        other => other.clone(),
    }
}

/// A literal of 32 bits.
fn number_of(literal: &Expr) -> Option<f64> {
    match literal {
        Expr::Literal(Literal::Integer(DType::I32, number)) => Some(*number as f64),
        _ => None,
    }
}

/// A conversion to another type; of a number within limits that are near the ends of a narrow type's range, a saturation.
fn saturated(dtype: DType, x: Expr) -> Expr {
    use BinaryFunction::{Maximum, Minimum};
    if dtype.is_integer()
        && dtype.size() <= 2
        && let Expr::Binary(Minimum, inner, high) = &x
        && let Expr::Binary(Maximum, value, low) = &**inner
        && let (Some(low), Some(high)) = (number_of(low), number_of(high))
        && (low, high) == dtype.integer_range(8 * dtype.size())
    {
        return Expr::Saturate(dtype, value.clone());
    }
    Expr::Cast(dtype, Box::new(x))
}
