//! What each kernel of a compiled model has computed, beside what the evaluator makes of the same graph.
//!
//! A kernel has two errors: its *own*, against the evaluator on the operands that the kernel had, and the one that has *accumulated*,
//! against the evaluator on the model's inputs. A kernel that is wrong has an error of its own; those behind it have accumulated ones only.

use crate::conditioning::{Bound, Bounds};
use crate::toolchain::WatchedResult;
use mlc_ir::ops::Transpose;
use mlc_ir::{
    Code, Diagnostic, Foreign, Graph, Location, NodeId, Op, OperatorError, Tensor, TensorType, Value, evaluate_all_with,
};
use std::collections::BTreeMap;

/// What a kernel's result should be.
#[derive(Debug, Clone)]
pub struct Expected {
    /// On the operands that the kernel had.
    pub own: Tensor,
    /// On the model's inputs.
    pub accumulated: Tensor,
    /// Whether it only copies what another kernel has computed.
    pub is_copy: bool,
    value: Value,
}

/// What the results of kernels should be.
#[derive(Debug)]
pub struct Layers<'a> {
    graph: &'a Graph,
    /// What the operands of kernels were, by the nodes that computed them.
    given: BTreeMap<NodeId, Vec<Tensor>>,
    /// For each watched result; none where the graph has no such value, since code generation has split it up.
    pub expected: Vec<Option<Expected>>,
}

impl<'a> Layers<'a> {
    /// Evaluates the graph that code was generated of, on the open inputs of the first run; `actual` are the results of its kernels.
    ///
    /// # Errors
    /// As the evaluator.
    pub fn of(
        graph: &'a Graph,
        inputs: &[Tensor],
        results: &[WatchedResult],
        actual: &[Tensor],
        foreign: &dyn Foreign,
    ) -> Result<Layers<'a>, Diagnostic> {
        let inputs = first_inputs(graph, inputs);
        let values: Vec<Option<Value>> = results.iter().map(|watched| value_of(graph, watched)).collect();
        let all = evaluate_all_with(graph, &inputs, foreign, &mut |_, _| None)?;
        let mut own: Vec<Option<(Tensor, bool)>> = vec![None; results.len()];
        let given = evaluate_all_with(graph, &inputs, foreign, &mut |value, computed| {
            let mut last = None;
            for number in (0..results.len()).filter(|&number| values[number] == Some(value)) {
                // What computes a value again copies it.
                own[number] = Some((last.unwrap_or(computed).clone(), last.is_some()));
                last = Some(&actual[number]);
            }
            last.cloned()
        })?;
        let expected = values.iter().zip(own).map(|(value, own)| {
            let value = (*value)?;
            let accumulated = all.get(&value.node)?.get(value.slot as usize)?.clone();
            let (own, is_copy) = own?;
            Some(Expected { own, accumulated, is_copy, value })
        });
        Ok(Layers { graph, given, expected: expected.collect() })
    }

    /// How far rounding inside of a kernel may move the elements of its result.
    ///
    /// # Errors
    /// As the evaluator.
    pub fn bounds(&self, expected: &Expected, foreign: &dyn Foreign) -> Result<Vec<Bound>, Diagnostic> {
        let Value { node, slot } = expected.value;
        let alone = self.alone(node);
        let defect = |error: OperatorError| {
            let place = Location::default().at_operator(self.graph.node(node).op.name(), &*self.graph.node(node).name);
            Diagnostic::error(Code::InvalidGraph, place, error.to_string())
        };
        let (alone, operands) = alone.map_err(defect)?;
        let bounds = Bounds::of_runs(&alone, &[operands], foreign)?;
        Ok(bounds.first().map(|bounds| bounds.telling(slot as usize)).unwrap_or_default())
    }

    /// A graph of one node, and its inputs.
    fn alone(&self, id: NodeId) -> Result<(Graph, Vec<Tensor>), OperatorError> {
        let node = self.graph.node(id);
        let mut alone = Graph::new(self.graph.name.clone());
        let (mut operands, mut inputs) = (Vec::new(), Vec::new());
        for (number, operand) in self.graph.operands(id).into_iter().enumerate() {
            let name = format!("operand{number}");
            operands.push(match self.graph.constant(operand) {
                Some(constant) => alone.add_constant(&name, constant.clone()),
                None => {
                    let values = self.given.get(&operand.node).and_then(|values| values.get(operand.slot as usize));
                    inputs.extend(values.cloned());
                    alone.add_input(&name, self.graph.ty(operand).clone())
                }
            });
        }
        let added = alone.add(node.op.clone(), &operands, &node.name)?;
        for slot in 0..node.results.len() {
            alone.add_output(&format!("{}.{slot}", node.name), Value { node: added, slot: slot as u32 });
        }
        Ok((alone, inputs))
    }
}

/// All inputs of the first run: the caller's, and states as they begin.
fn first_inputs(graph: &Graph, given: &[Tensor]) -> Vec<Tensor> {
    let states = graph.states.iter().map(|state| (state.input, state.initial.to_tensor()));
    let mut inputs: BTreeMap<usize, Tensor> = graph.open_inputs().into_iter().zip(given.iter().cloned()).collect();
    inputs.extend(states);
    inputs.into_values().collect()
}

/// The value of the graph that a kernel's result is.
fn value_of(graph: &Graph, WatchedResult { result, .. }: &WatchedResult) -> Option<Value> {
    let node = graph.find(&result.node)?;
    let ty = graph.node(node).results.get(result.slot)?;
    // Code generation walks outermost axes only, and has the stacked results of other loops transposed.
    let is_moved = match &graph.node(node).op {
        Op::Loop(op) => result
            .slot
            .checked_sub(op.carried)
            .and_then(|number| op.stacked.get(number))
            .is_some_and(|way| way.axis != 0),
        _ => false,
    };
    (*ty == result.ty && !is_moved).then_some(Value { node, slot: result.slot as u32 })
}

/// What the operators of a model compute, by their names.
#[derive(Debug)]
pub struct ModelValues {
    values: Vec<(String, Tensor)>,
}

/// A value of a model that a kernel's result is, or is nearest to.
#[derive(Debug)]
pub struct Near<'a> {
    /// Name of the model's operator.
    pub name: &'a str,
    /// Its value.
    pub value: &'a Tensor,
    /// The kernel's result in the model's order of axes.
    pub result: Tensor,
    /// How far apart they are.
    pub distance: Distance,
}

/// How far the elements of two tensors are apart, as real numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// Root of the quotient of the sums of squares of differences and of what is expected.
    pub relative: f64,
    /// The largest difference.
    pub largest: f64,
    /// What a step of integers is worth that stand for real numbers.
    pub step: Option<f64>,
}

/// What rounding may leave between a value of the model and the same value of the graph that code was generated of.
const SAME: f64 = 1e-3;

impl ModelValues {
    /// Evaluates a model as it was imported, on the open inputs of the first run.
    ///
    /// # Errors
    /// As the evaluator.
    pub fn of(graph: &Graph, inputs: &[Tensor], foreign: &dyn Foreign) -> Result<ModelValues, Diagnostic> {
        let mut all = evaluate_all_with(graph, &first_inputs(graph, inputs), foreign, &mut |_, _| None)?;
        // An operator of the model becomes several nodes, of which the last one has its result.
        let mut last: BTreeMap<&str, (usize, NodeId)> = BTreeMap::new();
        for (place, id) in graph.topological_order().into_iter().enumerate() {
            let origins = &graph.node(id).origins;
            if let (Some(origin), 1) = (origins.first(), origins.len()) {
                last.insert(origin, (place, id));
            }
        }
        let mut order: Vec<(usize, &str, NodeId)> =
            last.into_iter().map(|(name, (place, id))| (place, name, id)).collect();
        order.sort_unstable();
        let values = order.into_iter().filter_map(|(_, name, id)| {
            let mut results = all.remove(&id)?;
            (results.len() == 1).then(|| (name.to_owned(), results.remove(0)))
        });
        Ok(ModelValues { values: values.collect() })
    }

    /// The last value of the model that a kernel's result is, of those that the operators compute that it stands for.
    pub fn find<'a>(&'a self, origins: &[String], result: &Tensor) -> Option<Near<'a>> {
        let candidates = self.values.iter().rev().filter(|(name, _)| origins.contains(name));
        let near = candidates.flat_map(|(name, value)| near(name, value, result, false));
        near.filter(|near| near.value.ty().dtype == result.ty().dtype).find(|near| near.distance.relative <= SAME)
    }

    /// The value that is nearest to a kernel's result, of those that the operators compute that it stands for. Integers that are to stand for
    /// real numbers are taken in the scale that fits best.
    pub fn nearest<'a>(&'a self, origins: &[String], result: &Tensor) -> Option<Near<'a>> {
        let named: Vec<&str> = origins.iter().map(|origin| first_name(origin)).collect();
        let candidates = self.values.iter().filter(|(name, _)| named.contains(&first_name(name)));
        let near = candidates.flat_map(|(name, value)| {
            let is_scaled = value.ty().dtype.is_float() && !result.ty().dtype.is_float();
            near(name, value, result, is_scaled)
        });
        near.min_by(|left, right| left.distance.relative.total_cmp(&right.distance.relative))
    }
}

/// The first of several names that a converter has joined to one: the others differ from one conversion of a model to the next.
fn first_name(name: &str) -> &str {
    name.split_once(';').map_or(name, |(first, _)| first)
}

/// A value, and a kernel's result in every order of axes that gives the value's shape.
fn near<'a>(name: &'a str, value: &'a Tensor, result: &Tensor, is_scaled: bool) -> Vec<Near<'a>> {
    let orders = in_shape(result, value.shape()).into_iter();
    let near = orders.map(|result| Near { name, value, distance: Distance::scaled(&result, value, is_scaled), result });
    near.collect()
}

/// A tensor in the shape of another one, in the orders of axes that may be meant: the same, or with channels first or last.
pub fn in_shape(tensor: &Tensor, shape: &[usize]) -> Vec<Tensor> {
    if tensor.shape().iter().product::<usize>() != shape.iter().product::<usize>() {
        return Vec::new();
    }
    let without_ones = |shape: &[usize]| shape.iter().copied().filter(|&extent| extent != 1).collect::<Vec<_>>();
    let rank = tensor.ty().rank();
    let mut orders = vec![(0..rank).collect::<Vec<usize>>()];
    if rank > 2 {
        let (last, inner) = (rank - 1, 1..rank - 1);
        orders.push([0, last].into_iter().chain(inner).collect());
        orders.push([0].into_iter().chain(2..rank).chain([1]).collect());
    }
    let mut found: Vec<Tensor> = Vec::new();
    for permutation in orders {
        let extents: Vec<usize> = permutation.iter().map(|&axis| tensor.shape()[axis]).collect();
        let is_first = permutation.is_sorted();
        if !is_first && without_ones(&extents) != without_ones(shape) {
            continue;
        }
        let ty = TensorType::new(tensor.ty().dtype, &extents);
        let moved = Op::from(Transpose { permutation }).evaluate(&[tensor], &[ty]);
        found.extend(moved.into_iter().flatten().map(|moved| moved.with_shape(shape)));
    }
    found.dedup();
    found
}

impl Distance {
    /// Of two tensors of one shape.
    pub fn of(actual: &Tensor, expected: &Tensor) -> Distance {
        Distance::scaled(actual, expected, false)
    }

    /// Of two tensors of one shape, the first of which may be integers in a scale that isn't known.
    fn scaled(actual: &Tensor, expected: &Tensor, is_scaled: bool) -> Distance {
        let (mut actual, expected) = (actual.to_floats(), expected.to_floats());
        let fit = if is_scaled { fit(&actual, &expected) } else { None };
        if let Some((scale, offset)) = fit {
            actual.iter_mut().for_each(|element| *element = scale * *element + offset);
        }
        let (mut squares, mut of_expected, mut largest) = (0.0, 0.0, 0.0_f64);
        for (actual, expected) in actual.iter().zip(&expected) {
            if actual == expected || (actual.is_nan() && expected.is_nan()) {
                of_expected += if expected.is_finite() { expected * expected } else { 0.0 };
                continue;
            }
            let difference = if (actual - expected).is_finite() { (actual - expected).abs() } else { f64::INFINITY };
            squares += difference * difference;
            of_expected += expected * expected;
            largest = largest.max(difference);
        }
        let relative = match (squares == 0.0, of_expected > 0.0 && of_expected.is_finite()) {
            (true, _) => 0.0,
            (false, true) => (squares / of_expected).sqrt(),
            (false, false) => f64::INFINITY,
        };
        Distance { relative, largest, step: fit.map(|(scale, _)| scale.abs()) }
    }
}

/// The scale and the offset by which the first numbers are nearest to the second ones, in the sum of squares; none where the first are all
/// the same.
fn fit(from: &[f64], to: &[f64]) -> Option<(f64, f64)> {
    let count = from.len() as f64;
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / count;
    let (middle, target) = (mean(from), mean(to));
    let spread: f64 = from.iter().map(|number| (number - middle).powi(2)).sum();
    let together: f64 = from.iter().zip(to).map(|(from, to)| (from - middle) * (to - target)).sum();
    let scale = together / spread;
    (scale.is_finite() && scale != 0.0).then_some((scale, target - scale * middle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::DType;

    fn floats(shape: &[usize], values: &[f64]) -> Tensor {
        Tensor::from_floats(TensorType::new(DType::F32, shape), values.to_vec())
    }

    #[test]
    fn channels_move_to_where_the_model_has_them() {
        let last = floats(&[1, 2, 1, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let first = floats(&[1, 3, 2, 1], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert!(in_shape(&last, first.shape()).contains(&first));
        assert!(in_shape(&first, last.shape()).contains(&last));
        assert!(in_shape(&last, &[7]).is_empty());
        assert_eq!(in_shape(&last, &[2, 3]), [last.with_shape(&[2, 3])]);
    }

    #[test]
    fn integers_are_taken_in_the_scale_that_fits() {
        let expected = floats(&[4], &[-1.0, -0.5, 0.0, 1.0]);
        let integers = Tensor::from_integers(TensorType::new(DType::I8, [4]), vec![-7, -5, -3, 1]);
        let Distance { relative, largest, step } = Distance::scaled(&integers, &expected, true);
        assert!(relative < 1e-12 && largest < 1e-12, "{relative} {largest}");
        assert!((step.unwrap() - 0.25).abs() < 1e-12);
        let same = Tensor::from_integers(TensorType::new(DType::I8, [4]), vec![3; 4]);
        assert_eq!(Distance::scaled(&same, &expected, true).step, None);
    }

    #[test]
    fn distances_of_what_is_infinite_are_infinite() {
        let (one, infinite) = (floats(&[1], &[1.0]), floats(&[1], &[f64::INFINITY]));
        assert_eq!(Distance::of(&one, &infinite).relative, f64::INFINITY);
        assert_eq!(Distance::of(&infinite, &infinite).relative, 0.0);
        assert_eq!(Distance::of(&one, &floats(&[1], &[0.0])).relative, f64::INFINITY);
    }
}
