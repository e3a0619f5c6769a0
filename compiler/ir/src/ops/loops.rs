//! `loop`: Runs a graph a constant number of times, or until it says so itself. Operands: the first values of what turns hand on (carried values), tensors of which each turn gets the next slice (scanned), and values that are the same in every turn (captured). The body's inputs are the number of the turn (i64[]), the carried values, a slice of each scanned tensor without its axis, and the captured values; its outputs are the next carried values and a slice of each stacked result. Results: the last carried values, then the stacked ones.

use crate::evaluator;
use crate::fields::{Field, FieldValue};
use crate::foreign::{Foreign, Nobody};
use crate::generator::Generator;
use crate::graph::Graph;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work};
use crate::ops::{Binary, Cast, Unary};
use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::subgraph::Subgraph;
use crate::tensor::{Tensor, Values};
use crate::types::{DType, Shape, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// A graph that runs again and again.
    pub struct Loop {
        /// What each turn computes.
        pub body: Subgraph,
        /// The number of turns, at most if the loop is conditional; none where nothing but its condition bounds it.
        pub trip_count: Option<usize>,
        /// How many values turns hand on.
        pub carried: usize,
        /// For each scanned operand the axis that is walked, and whether it is walked backwards.
        pub scanned: Vec<SliceAxis>,
        /// For each stacked result the axis along which slices are put, and whether the first comes last.
        pub stacked: Vec<SliceAxis>,
        /// Whether the first carried value, a bool of one element, ends the loop before the turn that finds it false. Nothing is stacked then.
        pub conditional: bool,
    }
}

/// An axis that a loop walks, one slice in each turn. Prints as `[axis, reverse]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SliceAxis {
    /// The axis of the whole tensor.
    pub axis: usize,
    /// Whether the first turn has the last slice.
    pub reverse: bool,
}

impl SliceAxis {
    /// The slice that a turn has.
    pub fn place(self, turn: usize, trip_count: usize) -> usize {
        if self.reverse { trip_count - 1 - turn } else { turn }
    }
}

impl Field for SliceAxis {
    fn to_value(&self) -> FieldValue {
        FieldValue::List(vec![self.axis.to_value(), self.reverse.to_value()])
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        let FieldValue::List(values) = value else { return None };
        let [axis, reverse] = &values[..] else { return None };
        Some(SliceAxis { axis: usize::from_value(axis)?, reverse: bool::from_value(reverse)? })
    }
}

/// Largest number of turns that a loop can have as its bound: its counter is a 32-bit integer on small machines.
pub const MAXIMUM_TRIP_COUNT: usize = i32::MAX as usize;

/// Turns that are counted, for prices and operations, where nothing bounds their number.
const ASSUMED_TURNS: usize = 16;

/// Most turns that the evaluator takes until a condition must have ended them: a loop without an end mustn't hang who compiles it.
const MOST_EVALUATED_TURNS: usize = 1 << 18;

fn same(left: &TensorType, right: &TensorType) -> bool {
    left.dtype == right.dtype && left.shape == right.shape
}

fn plain(ty: &TensorType) -> TensorType {
    TensorType::new(ty.dtype, &ty.shape)
}

fn expect(what: &str, number: usize, found: &TensorType, expected: &TensorType) -> Result<(), OperatorError> {
    if same(found, expected) {
        return Ok(());
    }
    Err(OperatorError::types(format!("{what} {number} is {}, the body has {}", plain(found), plain(expected))))
}

impl Loop {
    /// How many operands are captured. Precondition: the body has the inputs that the fields ask for.
    pub fn captured(&self) -> usize {
        self.body.inputs().len() - 1 - self.carried - self.scanned.len()
    }

    /// The number of turns to count with: the most that there may be, or 16 where nothing bounds them.
    pub fn counted_turns(&self) -> usize {
        self.trip_count.unwrap_or(ASSUMED_TURNS)
    }

    /// Checks the bound of the turns.
    fn check_trip_count(&self) -> Result<(), OperatorError> {
        match self.trip_count {
            Some(turns) if turns > MAXIMUM_TRIP_COUNT => {
                Err(OperatorError::field(format!("{turns} turns, at most {MAXIMUM_TRIP_COUNT} are possible")))
            }
            None if !self.conditional => {
                Err(OperatorError::field("a loop without a number of turns must be conditional, or it never ends"))
            }
            _ => Ok(()),
        }
    }

    /// The number of slices of what is walked or stacked.
    fn slices(&self) -> Result<usize, OperatorError> {
        let missing = || OperatorError::field("a loop without a number of turns neither scans nor stacks anything");
        self.trip_count.ok_or_else(missing)
    }

    /// Types of the body's inputs and outputs.
    fn body_types(&self) -> Result<(Vec<TensorType>, Vec<TensorType>), OperatorError> {
        let inputs = self.body.inputs().iter().map(|&input| self.body.checked_ty(input.into()).cloned());
        let outputs = self.body.outputs().iter().map(|output| self.body.checked_ty(output.value).cloned());
        let missing = || OperatorError::field("an input or output of the body doesn't exist");
        let inputs: Vec<TensorType> = inputs.collect::<Option<_>>().ok_or_else(missing)?;
        let outputs: Vec<TensorType> = outputs.collect::<Option<_>>().ok_or_else(missing)?;
        let least = self.carried.saturating_add(self.scanned.len()).saturating_add(1);
        if inputs.len() < least {
            return Err(OperatorError::field(format!("the body has {} inputs, at least {least} expected", inputs.len())));
        }
        if Some(outputs.len()) != self.carried.checked_add(self.stacked.len()) {
            let message = format!("{} carried and {} stacked ones expected", self.carried, self.stacked.len());
            return Err(OperatorError::field(format!("the body has {} outputs, {message}", outputs.len())));
        }
        expect("the number of the turn", 0, &TensorType::new(DType::I64, []), &inputs[0])?;
        Ok((inputs, outputs))
    }

    fn check_condition(&self, inputs: &[TensorType]) -> Result<(), OperatorError> {
        let condition = inputs.get(1).filter(|_| self.carried > 0);
        if condition.is_none_or(|ty| ty.dtype != DType::Bool || ty.elements() != 1) {
            return Err(OperatorError::field("a conditional loop carries a bool of one element first"));
        }
        if !self.stacked.is_empty() {
            return Err(OperatorError::field("a conditional loop stacks no results: their size isn't known"));
        }
        Ok(())
    }

    /// The slice type of a scanned operand.
    fn slice_type(&self, number: usize, operand: &TensorType) -> Result<TensorType, OperatorError> {
        let (axis, slices) = (self.scanned[number].axis, self.slices()?);
        if operand.shape.get(axis) != Some(&slices) {
            let message = format!("scanned operand {number} {operand} has no axis {axis} of {slices}");
            return Err(OperatorError::types(message));
        }
        let mut slice = plain(operand);
        slice.shape.remove(axis);
        Ok(slice)
    }

    fn stacked_type(&self, number: usize, slice: &TensorType) -> Result<TensorType, OperatorError> {
        let axis = self.stacked[number].axis;
        if axis > slice.rank() {
            return Err(OperatorError::field(format!("slices {} can't be stacked along axis {axis}", plain(slice))));
        }
        let mut stacked = plain(slice);
        stacked.shape.insert(axis, self.slices()?);
        Ok(stacked)
    }
}

/// Slice `place` of an axis, without the axis.
fn slice(tensor: &Tensor, axis: usize, place: usize, ty: &TensorType) -> Tensor {
    let (extent, inner) = (tensor.shape()[axis], tensor.shape()[axis + 1..].iter().product::<usize>().max(1));
    tensor.rearrange(ty.clone(), |index| (index / inner * extent + place) * inner + index % inner)
}

/// Slices in the order of the turns, put along an axis of a tensor.
fn stack(slices: &[Tensor], way: SliceAxis, ty: &TensorType) -> Tensor {
    let values = if ty.dtype.is_float() {
        Values::Float(slices.iter().flat_map(Tensor::to_floats).collect())
    } else {
        Values::Integer(slices.iter().flat_map(Tensor::to_integers).collect())
    };
    let size = slices.first().map_or(1, |slice| slice.ty().elements());
    let flat = Tensor::from_values(TensorType::new(ty.dtype, [size * slices.len()]), values);
    let inner = ty.shape[way.axis + 1..].iter().product::<usize>().max(1);
    flat.rearrange(ty.clone(), |index| {
        let (outer, place) = (index / inner / slices.len(), index / inner % slices.len());
        way.place(place, slices.len()) * size + outer * inner + index % inner
    })
}

impl Operator for Loop {
    const NAME: &'static str = "loop";
    const CATEGORY: Category = Category::Control;

    fn roles(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::None
    }

    fn by_rows(&self, _operands: &[TensorType]) -> Option<(Self, RowReads)> {
        None
    }

    fn patch(&self, _operands: &[TensorType], _rows: Range<usize>) -> Option<(Self, PatchReads)> {
        None
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let (inputs, outputs) = self.body_types()?;
        if operands.len() + 1 != inputs.len() {
            let expected = (inputs.len() - 1).to_string();
            return Err(OperatorError::OperandCount { expected, found: operands.len() });
        }
        self.check_trip_count()?;
        if self.conditional {
            self.check_condition(&inputs)?;
        }
        let scans = self.carried..self.carried + self.scanned.len();
        for (number, (operand, input)) in operands.iter().zip(&inputs[1..]).enumerate() {
            if scans.contains(&number) {
                let number = number - self.carried;
                expect("a slice of scanned operand", number, &self.slice_type(number, operand)?, input)?;
            } else {
                expect("operand", number, operand, input)?;
            }
        }
        let (carried, slices) = outputs.split_at(self.carried);
        for (number, (next, now)) in carried.iter().zip(&inputs[1..]).enumerate() {
            expect("the next carried value", number, next, now)?;
        }
        let stacked = slices.iter().enumerate().map(|(number, slice)| self.stacked_type(number, slice));
        carried.iter().map(|ty| Ok(plain(ty))).chain(stacked).collect()
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        self.evaluate_with(operands, results, &Nobody)
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let turns = self.counted_turns() as u64;
        let mut total = Work::moving(operands, results);
        for id in self.body.node_ids() {
            let node = self.body.node(id);
            if node.op.category() == Category::Source {
                continue;
            }
            let work = node.op.work(&self.body.operand_types(id), &node.results);
            let add = |sum: &mut u64, part: u64| *sum = sum.saturating_add(part.saturating_mul(turns));
            add(&mut total.macs, work.macs);
            add(&mut total.scalar_operations, work.scalar_operations);
            add(&mut total.bytes_read, work.bytes_read);
            add(&mut total.bytes_written, work.bytes_written);
        }
        total
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        match sample(generator) {
            Ok(sample) => sample,
            Err(_) => Self::sample(generator),
        }
    }
}

impl Loop {
    /// [`Operator::evaluate`] where the body may call functions in C.
    ///
    /// # Errors
    /// When a turn has no result.
    pub(crate) fn evaluate_with(
        &self,
        operands: &[&Tensor],
        results: &[TensorType],
        foreign: &dyn Foreign,
    ) -> Result<Vec<Tensor>, OperatorError> {
        let (types, _) = self.body_types()?;
        let counter = |turn: usize| Tensor::from_integers(TensorType::new(DType::I64, []), vec![turn as i64]);
        let mut inputs = vec![counter(0)];
        inputs.extend(operands.iter().map(|&operand| operand.clone()));
        let mut slices: Vec<Vec<Tensor>> = vec![Vec::new(); self.stacked.len()];
        let trip_count = self.trip_count.unwrap_or(usize::MAX);
        for turn in 0..trip_count {
            if self.conditional && inputs[1].to_integers() == [0] {
                break;
            }
            if self.conditional && turn == MOST_EVALUATED_TURNS {
                let message = format!("the loop hasn't ended after {MOST_EVALUATED_TURNS} turns");
                return Err(OperatorError::Evaluation(message));
            }
            inputs[0] = counter(turn);
            for (number, way) in self.scanned.iter().enumerate() {
                let (operand, input) = (self.carried + number, 1 + self.carried + number);
                inputs[input] = slice(operands[operand], way.axis, way.place(turn, trip_count), &types[input]);
            }
            let outputs = evaluator::run(&self.body, &inputs, foreign);
            let outputs = outputs.map_err(|error| OperatorError::Evaluation(format!("turn {turn}: {error}")))?;
            for (number, output) in outputs.into_iter().enumerate() {
                match number.checked_sub(self.carried) {
                    Some(stacked) => slices[stacked].push(output),
                    None => inputs[1 + number] = output,
                }
            }
        }
        let carried = inputs[1..].iter().zip(&results[..self.carried]);
        let carried = carried.map(|(value, ty)| Tensor::from_values(ty.clone(), value.values().clone()));
        let stacked = slices.iter().zip(&self.stacked).zip(&results[self.carried..]);
        Ok(carried.chain(stacked.map(|((slices, &way), ty)| stack(slices, way, ty))).collect())
    }
}

/// A running `tanh((h + x) * w + turn)`, with or without each of its parts.
fn sample(generator: &mut Generator) -> Result<(Loop, Vec<TensorType>), OperatorError> {
    let slices = generator.choose(&[0, 1, 2, 2, 3, 3, 5]);
    let shape = generator.shape(0, 2);
    let state = TensorType::new(DType::F32, &shape);
    let conditional = generator.one_in(4);
    let mut body = Graph::new("body");
    let turn = body.add_input("turn", TensorType::new(DType::I64, []));
    let (mut operands, mut carried) = (Vec::new(), 1);
    if conditional {
        let ty = TensorType::new(DType::Bool, []);
        body.add_input("go", ty.clone());
        operands.push(ty);
        carried = 2;
    }
    let hidden = body.add_input("h", state.clone());
    operands.push(state.clone());
    let way = |generator: &mut Generator| SliceAxis {
        axis: generator.range(0, shape.len()),
        reverse: generator.one_in(2),
    };
    let (mut scanned, mut stacked) = (Vec::new(), Vec::new());
    let mut value = hidden;
    if generator.one_in(2) {
        let x = body.add_input("x", state.clone());
        scanned.push(way(generator));
        let mut whole = shape.clone();
        whole.insert(scanned[0].axis, slices);
        operands.push(TensorType::new(DType::F32, whole));
        value = body.add(Binary { function: BinaryFunction::Add }, &[value, x], "sum")?.into();
    }
    if generator.one_in(2) {
        let captured: Shape = generator.broadcastable(&shape);
        let w = body.add_input("w", TensorType::new(DType::F32, &captured));
        operands.push(TensorType::new(DType::F32, captured));
        value = body.add(Binary { function: BinaryFunction::Multiply }, &[value, w], "product")?.into();
    }
    let before = value;
    if generator.one_in(2) {
        let number = body.add(Cast { dtype: DType::F32 }, &[turn], "number")?;
        value = body.add(Binary { function: BinaryFunction::Add }, &[value, number.into()], "shifted")?.into();
    }
    let next = body.add(Unary { function: UnaryFunction::Tanh }, &[value], "next")?;
    if conditional {
        let limit = body.add_constant("limit", crate::Literal::integer(DType::I64, 1).to_attribute());
        let go = body.add(Binary { function: BinaryFunction::Less }, &[turn, limit], "goes on")?;
        body.add_output("go", go.into());
    }
    body.add_output("h", next.into());
    if !conditional && generator.one_in(2) {
        stacked.push(way(generator));
        body.add_output("y", generator.choose(&[before, next.into()]));
    }
    let bounded = !conditional || !scanned.is_empty() || generator.one_in(2);
    let trip_count = bounded.then_some(slices);
    Ok((Loop { body: Subgraph::new(body), trip_count, carried, scanned, stacked, conditional }, operands))
}
