//! [`TargetPrices`]: what a target pays for an application, by what lowering makes of it alone.
//!
//! The application is lowered as a graph of its own, whose operands come from kernels and whose results go to kernels, and its
//! steps are priced. So who decides what is a view, where a border lies and what must be copied is lowering itself, and no rule
//! of it is told twice. Equal questions are answered once.

use crate::choice::Chooser;
use crate::emit::{in_all_turns, program_bytes, working_set};
use crate::lower::homes::moved;
use crate::lower::view::View;
use crate::lower::{Binding, is_view, lower};
use crate::names::Names;
use crate::price::WorkingSet;
use crate::target::{ByteDots, Target};
use indexmap::IndexMap;
use mlc_ir::ops::{Kernel, Map};
use mlc_ir::scalar::{BinaryFunction, Expression, ScalarNode, UnaryFunction};
use mlc_ir::{
    Attribute, Category, Cost, DType, Graph, Known, Op, OperatorError, PricedOperand, Prices, Shape, Tensor,
    TensorType, Value, Work,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

/// An application in a place: what an operand is made by, and whether its result is where a caller wants an output.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Question {
    op: Op,
    operands: Vec<PricedOperand>,
    source: Option<Source>,
}

/// The input, or the chain of views, that gives an operand.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Source {
    /// Of the operand.
    number: usize,
    /// The operators, that which gives the operand first.
    chain: Vec<Op>,
    /// Of what the last one shows.
    ty: TensorType,
}

/// Cycles that a kernel takes however little it computes, where there is no program to be read.
const START: u64 = 62;

/// Bytes of code of a kernel's call, its entry and its end.
const CALL_BYTES: u64 = 48;

/// Scalar operations that a function counts as, see [`Work`].
const FUNCTION: u64 = 10;

/// Nodes of an expression beside which it hardly matters how one of its operands is read, let alone what is computed of it.
const LARGE: usize = 16;

/// See the module.
pub struct TargetPrices {
    target: Target,
    state: RefCell<State>,
}

struct State {
    chooser: Chooser,
    known: IndexMap<Question, Cost>,
    zeros: Zeros,
}

/// Constants of zeros, each type's once: weights are large, and many ways to compute with the same ones are asked for.
#[derive(Default)]
struct Zeros(IndexMap<TensorType, Attribute>);

impl Zeros {
    fn of(&mut self, ty: &TensorType) -> Result<Attribute, OperatorError> {
        if let Some(known) = self.0.get(ty) {
            return Ok(known.clone());
        }
        let zeros =
            Attribute::new(ty.clone(), vec![0; ty.bytes()]).map_err(|error| OperatorError::types(error.to_string()))?;
        self.0.insert(ty.clone(), zeros.clone());
        Ok(zeros)
    }
}

impl fmt::Debug for TargetPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prices of {}, {} known", self.target.name, self.state.borrow().known.len())
    }
}

impl TargetPrices {
    /// The prices of a target for the applications of a graph, whose size says what caches can keep.
    pub fn new(target: &Target, graph: &Graph) -> TargetPrices {
        let chooser = Chooser::quick(target, working_set(graph));
        let state = RefCell::new(State { chooser, known: IndexMap::new(), zeros: Zeros::default() });
        TargetPrices { target: target.clone(), state }
    }

    fn answer(&self, question: Question, results: &[TensorType]) -> Cost {
        if let Some(&known) = self.state.borrow().known.get(&question) {
            return known;
        }
        let cost = self.lowered(&question).unwrap_or_else(|| estimate(&question.op, &question.operands, results));
        self.state.borrow_mut().known.insert(question, cost);
        cost
    }

    /// What an application costs where the operand that is asked for is made by its source. An epilogue costs what it would cost as
    /// a kernel of its own, but for coming and going: so each anchor is looked at once, whatever is behind it.
    fn placed(&self, op: &Op, operands: &[PricedOperand], results: &[TensorType], source: Option<Source>) -> Cost {
        let kernel = match op {
            Op::Kernel(kernel) if !is_looked_at_whole(kernel, results, &self.target) => kernel,
            _ => return self.answer(Question { op: op.clone(), operands: operands.to_vec(), source }, results),
        };
        let own = kernel.anchor_operands;
        let types: Vec<TensorType> = operands[..own].iter().map(|operand| operand.ty.clone()).collect();
        let Ok(inner) = kernel.anchor.infer(&types) else {
            return estimate(op, operands, results);
        };
        let of_anchor = source.clone().filter(|source| source.number < own);
        let anchor = self.placed(&kernel.anchor, &operands[..own], &inner, of_anchor);
        let map: Op = Map { expression: kernel.expression.clone() }.into();
        let computed = PricedOperand { ty: inner[0].clone(), known: Known::Type };
        // The anchor's result is operand 0 of the expression.
        let all: Vec<PricedOperand> = [computed].into_iter().chain(operands[own..].iter().cloned()).collect();
        let elements = inner[0].elements();
        let in_registers = all.iter().map(|operand| along(operand, elements)).collect();
        let row = [TensorType::new(results[0].dtype, vec![elements])];
        let epilogue = self.answer(Question { op: map.clone(), operands: in_registers, source: None }, &row);
        let copied = [TensorType::new(inner[0].dtype, vec![elements])];
        let question =
            Question { op: next_to_nothing(inner[0].dtype), operands: vec![along(&all[0], elements)], source: None };
        let copied = self.answer(question, &copied);
        let read = source.filter(|source| source.number >= own).map_or_else(Cost::default, |source| {
            let source = Some(Source { number: source.number + 1 - own, ..source });
            let apart = self.answer(Question { op: map.clone(), operands: all.clone(), source }, results);
            without(apart, self.answer(Question { op: map, operands: all, source: None }, results))
        });
        anchor + without(epilogue, copied) + read
    }

    /// What the steps of an application cost; `None` where the target can't run it.
    fn lowered(&self, question: &Question) -> Option<Cost> {
        let state = &mut *self.state.borrow_mut();
        let (graph, around) = alone(question, &mut state.zeros).ok()?;
        let mut names = Names::new("priced");
        state.chooser.leave_out(around);
        let program = lower(&graph, None, &mut state.chooser, &mut names).ok()?;
        let mut cost = Cost::default();
        let whole = WorkingSet::from(program_bytes(&program));
        for entry in program.entries() {
            let price = in_all_turns(&entry, &whole, &self.target);
            let written = entry.part.bindings().iter().map(|binding| match binding {
                Binding::Buffer { buffer, constant: false, .. } => program.buffers[*buffer].bytes as u64,
                _ => 0,
            });
            let ram = price.scratch_bytes.saturating_add(written.sum());
            cost = cost + Cost { time: price.time, flash: price.code_bytes + CALL_BYTES, ram };
        }
        Some(cost)
    }
}

/// What is asked of operands of large expressions, whatever the expression: a sum with what is computed, and its type. As there are as many
/// large ones as ways to fuse a graph, each operand of each would be a question of its own.
fn sum_of(operand: &PricedOperand, shape: &Shape) -> (Op, [PricedOperand; 2], TensorType) {
    let ty = TensorType::new(operand.ty.dtype, shape.clone());
    let function = if ty.dtype == DType::Bool { BinaryFunction::And } else { BinaryFunction::Add };
    let computed = PricedOperand { ty: ty.clone(), known: Known::Type };
    (Map { expression: Expression::binary(function) }.into(), [operand.clone(), computed], ty)
}

/// Whether an operand is one of an expression that is [`LARGE`].
fn is_large(op: &Op, number: usize) -> bool {
    match op {
        Op::Map(map) => map.expression.nodes().len() >= LARGE,
        Op::Kernel(kernel) => number >= kernel.anchor_operands && kernel.expression.nodes().len() >= LARGE,
        _ => false,
    }
}

/// What does so little with each element that its price is that of coming and going. Elements that are only moved are moved by routines.
fn next_to_nothing(dtype: DType) -> Op {
    let function = if dtype.is_float() { UnaryFunction::Negate } else { UnaryFunction::Not };
    Map { expression: Expression::unary(function) }.into()
}

/// What counting its operations and the bytes that it moves gives.
fn estimate(op: &Op, operands: &[PricedOperand], results: &[TensorType]) -> Cost {
    let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty.clone()).collect();
    let Work { macs, scalar_operations, bytes_read, bytes_written } = op.work(&types, results);
    let time = [macs, scalar_operations, bytes_read, bytes_written].into_iter().fold(START, u64::saturating_add);
    Cost { time, flash: 0, ram: bytes_written }
}

/// Whether the price of a kernel isn't made of those of its parts: functions such as `exp` are written out in every place of a tile,
/// and take the registers that its sums have. What becomes of integers is only asked where vectors multiply bytes, for these have some
/// epilogues and not others.
fn is_looked_at_whole(kernel: &Kernel, results: &[TensorType], target: &Target) -> bool {
    let multiplies_bytes = target.byte_dots != ByteDots::None;
    let rescales = kernel.expression.nodes().iter().any(|node| matches!(node, ScalarNode::Rescale(..)));
    let map = Map { expression: kernel.expression.clone() };
    let work = Op::from(map).work(&[], results);
    let elements: usize = results.iter().map(TensorType::elements).sum();
    let is_asked = multiplies_bytes || results.iter().all(|ty| ty.dtype.is_float());
    multiplies_bytes && rescales || is_asked && work.scalar_operations >= FUNCTION.saturating_mul(elements as u64)
}

/// An operand of an epilogue as it is there: in a row of so many elements, or in a register where it has fewer.
fn along(operand: &PricedOperand, elements: usize) -> PricedOperand {
    let shape = if operand.ty.elements() == elements { vec![elements] } else { vec![1] };
    PricedOperand { ty: TensorType::new(operand.ty.dtype, shape), known: operand.known }
}

fn without(whole: Cost, part: Cost) -> Cost {
    Cost {
        time: whole.time.saturating_sub(part.time),
        flash: whole.flash.saturating_sub(part.flash),
        ram: whole.ram.saturating_sub(part.ram),
    }
}

impl Prices for TargetPrices {
    fn application(&self, op: &Op, operands: &[PricedOperand], results: &[TensorType]) -> Cost {
        if op.category() == Category::Source || is_view(op) {
            return Cost::default();
        }
        self.placed(op, operands, results, None)
    }

    fn operand(
        &self,
        op: &Op,
        operands: &[PricedOperand],
        results: &[TensorType],
        number: usize,
        source: &[(&Op, &TensorType)],
    ) -> Cost {
        let Some((_, ty)) = source.last() else { return Cost::default() };
        let can_be_priced = source.iter().all(|(op, _)| op.category() == Category::Source || is_view(op));
        if !can_be_priced || operands[number].known != Known::Type {
            return Cost::default();
        }
        if is_view(op) && strided(op, &results[0], &operands[number].ty, source).is_some() {
            return Cost::default();
        }
        if is_large(op, number) {
            let (sum, operands, result) = sum_of(&operands[number], &results[0].shape);
            return self.operand(&sum, &operands, &[result], 0, source);
        }
        let chain = source.iter().map(|(op, _)| (*op).clone()).collect();
        let from = Some(Source { number, chain, ty: (*ty).clone() });
        without(self.placed(op, operands, results, from), self.application(op, operands, results))
    }
}

/// Where a view lies that is seen through a chain of views; `None` where strides can't say so, and something is copied.
fn strided(op: &Op, result: &TensorType, operand: &TensorType, chain: &[(&Op, &TensorType)]) -> Option<View> {
    let (_, ty) = chain.last()?;
    let shapes = [result, operand].into_iter().chain(chain.iter().map(|&(_, shown)| shown)).map(|ty| &ty.shape);
    let views = [op].into_iter().chain(chain.iter().map(|&(op, _)| op)).zip(shapes);
    let views: Vec<(&Op, &Shape)> = views.filter(|(op, _)| is_view(op)).collect();
    views.into_iter().rev().try_fold(View::dense(ty.dtype, &ty.shape), |view, (op, shape)| moved(op, &view, shape))
}

/// What a constant operand is taken to hold: factors by which sums become bytes where it has such, as only those are rescaled by
/// lines or tables, and else zeros.
fn assumed(op: &Op, number: usize, ty: &TensorType, zeros: &mut Zeros) -> Result<Attribute, OperatorError> {
    let value = match op {
        Op::Kernel(kernel) => {
            number.checked_sub(kernel.anchor_operands).and_then(|k| factor(&kernel.expression, k + 1))
        }
        Op::Map(map) => factor(&map.expression, number),
        _ => None,
    };
    match value.filter(|_| ty.dtype == DType::I32) {
        Some(value) => Ok(Attribute::from_tensor(&Tensor::from_integers(ty.clone(), vec![value; ty.elements()]))),
        None => zeros.of(ty),
    }
}

/// A usual multiplier or shift, if an operand of an expression is one by which something is rescaled.
fn factor(expression: &Expression, operand: usize) -> Option<i64> {
    let nodes = expression.nodes();
    let is_own = |id: u32| nodes[id as usize] == ScalarNode::Operand(operand as u32);
    nodes.iter().find_map(|node| match *node {
        ScalarNode::Rescale(_, [_, multiplier, _]) if is_own(multiplier) => Some(3 << 29),
        ScalarNode::Rescale(_, [_, _, shift]) if is_own(shift) => Some(40),
        _ => None,
    })
}

/// A graph of one application, and the names of the nodes around it, which aren't priced.
fn alone(question: &Question, zeros: &mut Zeros) -> Result<(Graph, BTreeSet<String>), OperatorError> {
    let mut graph = Graph::new("priced");
    let mut around = BTreeSet::new();
    let copy = || Map { expression: Expression::operand(0) };
    let mut operands: Vec<Value> = Vec::new();
    for (number, operand) in question.operands.iter().enumerate() {
        if operand.known != Known::Type {
            let values = assumed(&question.op, number, &operand.ty, zeros)?;
            operands.push(graph.add_constant(&format!("constant{number}"), values));
            continue;
        }
        let source = question.source.as_ref().filter(|source| source.number == number);
        let ty = source.map_or(&operand.ty, |source| &source.ty);
        let input = graph.add_input(&format!("input{number}"), ty.clone());
        let chain: &[Op] = source.map_or(&[], |source| &source.chain);
        let (mut value, views) = match chain.split_last() {
            Some((Op::Input(_), views)) => (input, views),
            _ => {
                let made = graph.add(copy(), &[input], &format!("operand{number}"))?;
                around.insert(graph.node(made).name.to_string());
                (made.into(), chain)
            }
        };
        for (level, view) in views.iter().rev().enumerate() {
            value = graph.add(view.clone(), &[value], &format!("view{number}.{level}"))?.into();
        }
        operands.push(value);
    }
    let node = graph.add(question.op.clone(), &operands, "own")?;
    for slot in 0..graph.node(node).results.len() {
        let user = graph.add(copy(), &[Value { node, slot: slot as u32 }], &format!("user{slot}"))?;
        around.insert(graph.node(user).name.to_string());
        graph.add_output(&format!("output{slot}"), user.into());
    }
    Ok((graph, around))
}

#[cfg(test)]
mod tests;
