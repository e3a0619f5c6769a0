//! The reference evaluator: slow, plain and right. It folds constants, checks rules and passes, and is the oracle for
//! generated code. It promises the same results on every machine, and never panics on a graph that
//! [`verify`](crate::verify()) accepts.

use crate::diagnostics::{Code, Diagnostic, Location};
use crate::foreign::{Foreign, Nobody};
use crate::graph::{Graph, NodeId, Value};
use crate::ops::Op;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::collections::{BTreeMap, BTreeSet};

/// Computes the graph's outputs, in order, for inputs in the order of [`Graph::inputs`]. Intermediate values are freed
/// after their last use.
///
/// # Errors
/// When number or types of the inputs aren't the graph's, when a value has no result, such as an index out of range, when the
/// graph has a cycle, or calls a function in C.
pub fn evaluate(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, Diagnostic> {
    run(graph, inputs, &Nobody)
}

/// The same for a graph that may call functions in C: its run is their first.
///
/// # Errors
/// As [`evaluate`], and those of the functions.
pub fn evaluate_with(graph: &Graph, inputs: &[Tensor], foreign: &dyn Foreign) -> Result<Vec<Tensor>, Diagnostic> {
    foreign.restart();
    run(graph, inputs, foreign)
}

/// The order in which the nodes of a graph are computed: calls with effects in theirs.
pub fn evaluation_order(graph: &Graph) -> Vec<NodeId> {
    let order = graph.topological_order();
    let mut effects: Vec<_> =
        order.iter().filter_map(|&id| graph.node(id).op.effects().map(|place| (place, id))).collect();
    if effects.len() < 2 {
        return order;
    }
    effects.sort_unstable();
    let mut done = BTreeSet::new();
    let mut result = Vec::with_capacity(order.len());
    for id in effects.into_iter().map(|(_, id)| id).chain(order) {
        let mut stack = vec![(id, false)];
        while let Some((id, is_ready)) = stack.pop() {
            if is_ready {
                result.push(id);
            } else if done.insert(id) {
                stack.push((id, true));
                stack.extend(graph.operands(id).into_iter().map(|operand| (operand.node, false)));
            }
        }
    }
    result
}

/// One more run of a graph.
pub(crate) fn run(graph: &Graph, inputs: &[Tensor], foreign: &dyn Foreign) -> Result<Vec<Tensor>, Diagnostic> {
    let order = evaluation_order(graph);
    let mut uses: BTreeMap<NodeId, usize> = BTreeMap::new();
    for &node in &order {
        for operand in graph.operands(node) {
            *uses.entry(operand.node).or_default() += 1;
        }
    }
    for output in graph.outputs() {
        *uses.entry(output.value.node).or_default() += 1;
    }
    let mut evaluation = Evaluation::new(graph, inputs, foreign)?;
    for node in order {
        if !uses.contains_key(&node) && graph.node(node).op.effects().is_none() {
            continue;
        }
        evaluation.compute(node)?;
        for operand in graph.operands(node) {
            if let Some(left) = uses.get_mut(&operand.node) {
                *left -= 1;
                if *left == 0 {
                    evaluation.results.remove(&operand.node);
                }
            }
        }
    }
    let outputs = graph.outputs().iter();
    outputs.map(|output| evaluation.value(output.value, &output.name).cloned()).collect()
}

/// Runs a model several times: for each run the inputs that the caller gives, in the order of [`Graph::open_inputs`], and back
/// for each run the outputs that the caller gets, in the order of [`Graph::open_outputs`]. States go from each run to the next.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_runs(graph: &Graph, runs: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>, Diagnostic> {
    evaluate_runs_with(graph, runs, &Nobody)
}

/// The same for a model that may call functions in C: what they keep goes from each run to the next, too.
///
/// # Errors
/// As [`evaluate_with`].
pub fn evaluate_runs_with(
    graph: &Graph,
    runs: &[Vec<Tensor>],
    foreign: &dyn Foreign,
) -> Result<Vec<Vec<Tensor>>, Diagnostic> {
    foreign.restart();
    in_a_row(graph, runs, |inputs| run(graph, inputs, foreign))
}

/// The open outputs of several runs in a row, each on its open inputs and on the states that the one before has left; `compute` gives
/// all outputs for all inputs.
///
/// # Errors
/// As `compute`, and when a run has another number of inputs than the graph has open ones.
pub fn in_a_row(
    graph: &Graph,
    runs: &[Vec<Tensor>],
    mut compute: impl FnMut(&[Tensor]) -> Result<Vec<Tensor>, Diagnostic>,
) -> Result<Vec<Vec<Tensor>>, Diagnostic> {
    let (open_inputs, open_outputs) = (graph.open_inputs(), graph.open_outputs());
    let mut states: BTreeMap<usize, Tensor> =
        graph.states.iter().map(|state| (state.input, state.initial.to_tensor())).collect();
    let mut all = Vec::new();
    for given in runs {
        if given.len() != open_inputs.len() {
            let message = format!("{} inputs given, the model takes {}", given.len(), open_inputs.len());
            return Err(Diagnostic::error(Code::Evaluation, Location::default(), message));
        }
        let mut inputs = states.clone();
        inputs.extend(open_inputs.iter().copied().zip(given.iter().cloned()));
        let inputs: Vec<Tensor> = inputs.into_values().collect();
        let outputs = compute(&inputs)?;
        for state in &graph.states {
            if let Some(output) = outputs.get(state.output) {
                states.insert(state.input, output.clone());
            }
        }
        all.push(open_outputs.iter().filter_map(|&number| outputs.get(number).cloned()).collect());
    }
    Ok(all)
}

/// For each operand of a node whether it is the same at every call: a constant, or a persistent result.
pub fn known_operands(graph: &Graph, node: NodeId) -> Vec<bool> {
    let is_known = |value: Value| match &graph.node(value.node).op {
        Op::Constant(_) => true,
        Op::Extern(op) => op.persistent.contains(&(value.slot as usize)),
        _ => false,
    };
    graph.operands(node).into_iter().map(is_known).collect()
}

/// Computes the results of every node, for debugging and for comparing kernel by kernel.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_all(graph: &Graph, inputs: &[Tensor]) -> Result<BTreeMap<NodeId, Vec<Tensor>>, Diagnostic> {
    evaluate_all_with(graph, inputs, &Nobody, &mut |_, _| None)
}

/// The same for a graph that may call functions in C. `instead` sees each value as it is computed of its operands; what it gives takes
/// the value's place for everything that follows.
///
/// # Errors
/// As [`evaluate_with`].
pub fn evaluate_all_with(
    graph: &Graph,
    inputs: &[Tensor],
    foreign: &dyn Foreign,
    instead: &mut dyn FnMut(Value, &Tensor) -> Option<Tensor>,
) -> Result<BTreeMap<NodeId, Vec<Tensor>>, Diagnostic> {
    foreign.restart();
    let mut evaluation = Evaluation::new(graph, inputs, foreign)?;
    for node in evaluation_order(graph) {
        evaluation.compute(node)?;
        for (slot, result) in evaluation.results.get_mut(&node).into_iter().flatten().enumerate() {
            if let Some(other) = instead(Value { node, slot: slot as u32 }, result) {
                *result = other;
            }
        }
    }
    Ok(evaluation.results)
}

/// What is known of a graph's values.
pub(crate) struct Evaluation<'a> {
    graph: &'a Graph,
    foreign: &'a dyn Foreign,
    results: BTreeMap<NodeId, Vec<Tensor>>,
}

impl<'a> Evaluation<'a> {
    fn new(graph: &'a Graph, inputs: &[Tensor], foreign: &'a dyn Foreign) -> Result<Self, Diagnostic> {
        let expected = graph.inputs().len();
        if expected != inputs.len() {
            let message = format!("{} inputs given, the graph has {expected}", inputs.len());
            return Err(Diagnostic::error(Code::Evaluation, Location::default(), message));
        }
        let mut evaluation = Evaluation { foreign, ..Evaluation::begin(graph) };
        for (number, input) in inputs.iter().enumerate() {
            evaluation.give(number, input.clone())?;
        }
        Ok(evaluation)
    }

    /// Nothing is known.
    pub(crate) fn begin(graph: &'a Graph) -> Self {
        Evaluation { graph, foreign: &Nobody, results: BTreeMap::new() }
    }

    /// Gives an input its value.
    ///
    /// # Errors
    /// When it has another type, or there is no such input.
    pub(crate) fn give(&mut self, number: usize, value: Tensor) -> Result<(), Diagnostic> {
        let Some(&node) = self.graph.inputs().get(number) else {
            let message = format!("there is no input {number}");
            return Err(Diagnostic::error(Code::Evaluation, Location::default(), message));
        };
        let ty = self.graph.ty(node.into());
        if (ty.dtype, &ty.shape) != (value.ty().dtype, &value.ty().shape) {
            return Err(fault(self.graph, node, format!("the input is {ty}, {} given", value.ty())));
        }
        self.results.insert(node, vec![value]);
        Ok(())
    }

    /// Computes a value and what it needs. Precondition: the graph has no cycle.
    ///
    /// # Errors
    /// As [`evaluate`], and when it needs an input that wasn't given.
    pub(crate) fn demand(&mut self, value: Value, user: &str) -> Result<&Tensor, Diagnostic> {
        let mut stack = vec![value.node];
        while let Some(&node) = stack.last() {
            let before = stack.len();
            if !self.results.contains_key(&node) {
                let operands = self.graph.operands(node).into_iter().map(|operand| operand.node);
                stack.extend(operands.filter(|operand| !self.results.contains_key(operand)));
                if stack.len() > before {
                    continue;
                }
                self.compute(node)?;
            }
            stack.pop();
        }
        self.value(value, user)
    }

    fn compute(&mut self, id: NodeId) -> Result<(), Diagnostic> {
        let node = self.graph.node(id);
        let results = match &node.op {
            Op::Input(_) if self.results.contains_key(&id) => return Ok(()),
            Op::Input(_) => return Err(fault(self.graph, id, "the input isn't declared, or has no value")),
            op => {
                let operands = self.graph.operands(id);
                let operands: Result<Vec<&Tensor>, _> =
                    operands.into_iter().map(|operand| self.value(operand, &node.name)).collect();
                let known = known_operands(self.graph, id);
                let results = op.evaluate_with(&operands?, &known, &node.results, self.foreign);
                results.map_err(|error| fault(self.graph, id, error.to_string()))?
            }
        };
        let types = results.iter().map(Tensor::ty);
        if !types.eq(node.results.iter()) {
            let list: Vec<String> = results.iter().map(Tensor::ty).map(TensorType::to_string).collect();
            return Err(fault(self.graph, id, format!("the evaluation gave {}", list.join(", "))));
        }
        self.results.insert(id, results);
        Ok(())
    }

    fn value(&self, value: Value, user: &str) -> Result<&Tensor, Diagnostic> {
        let results = self.results.get(&value.node).and_then(|results| results.get(value.slot as usize));
        results.ok_or_else(|| {
            let location = Location { node: Some(user.to_owned()), ..Location::default() };
            Diagnostic::error(Code::Evaluation, location, "an operand isn't computed: it is missing, or on a cycle")
        })
    }
}

fn fault(graph: &Graph, node: NodeId, message: impl Into<String>) -> Diagnostic {
    let node = graph.node(node);
    Diagnostic::error(Code::Evaluation, Location::default().at_operator(node.op.name(), &*node.name), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Attribute;
    use crate::ops::{Binary, CallConvention, Extern, Gather, Loop, Softmax};
    use crate::scalar::BinaryFunction;
    use crate::subgraph::Subgraph;
    use crate::types::DType;

    #[test]
    fn evaluates_in_order_and_keeps_outputs() {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", TensorType::new(DType::F32, [2]));
        let w = graph.add_constant("w", Attribute::from_f32(&[2], &[10.0, 20.0]).unwrap());
        let sum = graph.add(Binary { function: BinaryFunction::Add }, &[x, w], "sum").unwrap();
        let product = graph.add(Binary { function: BinaryFunction::Multiply }, &[sum.into(), sum.into()], "p").unwrap();
        graph.add(Softmax { axis: 0, logarithm: false }, &[x], "unused").unwrap();
        graph.add_output("p", product.into());
        graph.add_output("sum", sum.into());
        graph.add_output("x", x);
        let input = Tensor::from_floats(TensorType::new(DType::F32, [2]), vec![1.0, 2.0]);
        let outputs = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        let values: Vec<Vec<f64>> = outputs.iter().map(Tensor::to_floats).collect();
        assert_eq!(values, [vec![121.0, 484.0], vec![11.0, 22.0], vec![1.0, 2.0]]);
        assert_eq!(evaluate_all(&graph, std::slice::from_ref(&input)).unwrap().len(), graph.len());
        let mut seen = Vec::new();
        let results = evaluate_all_with(&graph, &[input], &Nobody, &mut |value, computed| {
            seen.push(computed.to_floats());
            let other = || Tensor::from_floats(computed.ty().clone(), vec![1.0, -1.0]);
            (value == Value::from(sum)).then(other)
        });
        assert!(seen.contains(&vec![11.0, 22.0]), "{seen:?}");
        assert_eq!(results.unwrap()[&product][0].to_floats(), [1.0, 1.0]);
    }

    /// Counts calls, and adds to each operand how often the function has been called.
    struct Counting(std::cell::RefCell<BTreeMap<String, usize>>);

    impl Foreign for Counting {
        fn call(&self, op: &Extern, operands: &[&Tensor], known: &[bool]) -> Result<Vec<Tensor>, String> {
            let mut counts = self.0.borrow_mut();
            let before: Vec<String> = counts.keys().cloned().collect();
            if op.symbol == "second" && before != ["first"] {
                return Err(format!("called after {before:?}, {known:?}"));
            }
            let count = counts.entry(op.symbol.clone()).or_default();
            *count += 1;
            let values = operands[0].to_floats().iter().map(|value| value + *count as f64).collect();
            Ok(vec![Tensor::from_floats(op.results[0].clone(), values)])
        }

        fn restart(&self) {
            self.0.borrow_mut().clear();
        }
    }

    #[test]
    fn functions_are_called_by_what_is_handed_in() {
        let ty = TensorType::new(DType::F32, [1]);
        let call = |graph: &mut Graph, operand: Value, symbol: &str, effect: usize| -> Value {
            let types = vec![ty.clone()];
            let mut op = Extern::new(symbol, CallConvention::Unpacked, types.clone(), types, Vec::new());
            op.effect = effect;
            graph.add(op, &[operand], symbol).unwrap().into()
        };
        let mut body = Graph::new("body");
        body.add_input("turn", TensorType::new(DType::I64, []));
        let h = body.add_input("h", ty.clone());
        let next = call(&mut body, h, "turn", 3);
        body.add_output("h", next);
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", ty.clone());
        // Added before the first, and not used: called, and in its place.
        call(&mut graph, x, "second", 2);
        let first = call(&mut graph, x, "first", 1);
        let (scanned, stacked) = (Vec::new(), Vec::new());
        let op =
            Loop { body: Subgraph::new(body), trip_count: Some(3), carried: 1, scanned, stacked, conditional: false };
        let last = graph.add(op, &[first], "loop").unwrap();
        graph.add_output("y", last.into());
        let input = Tensor::from_floats(ty.clone(), vec![10.0]);
        let error = evaluate(&graph, std::slice::from_ref(&input)).unwrap_err();
        assert!(error.message.contains("first is a function in C, and nothing is at hand to run it"), "{error}");
        let foreign = Counting(std::cell::RefCell::default());
        let runs = vec![vec![input.clone()], vec![input.clone()]];
        let error = evaluate_runs_with(&graph, &runs, &foreign).unwrap_err();
        assert!(error.message.contains("called after [\"first\", \"second\", \"turn\"], [false]"), "{error}");
        for _ in 0..2 {
            let outputs = evaluate_with(&graph, std::slice::from_ref(&input), &foreign).unwrap();
            assert_eq!(outputs[0].to_floats(), [10.0 + 1.0 + 1.0 + 2.0 + 3.0]);
        }
    }

    #[test]
    fn reports_what_has_no_value() {
        let mut graph = Graph::new("g");
        let table = graph.add_input("table", TensorType::new(DType::F32, [3]));
        let index = graph.add_constant("index", Attribute::from_i64(&[1], &[3]).unwrap());
        let row = graph.add(Gather { axis: 0 }, &[table, index], "row").unwrap();
        graph.add_output("row", row.into());
        let input = Tensor::from_floats(TensorType::new(DType::F32, [3]), vec![0.0; 3]);
        let error = evaluate(&graph, &[input]).unwrap_err();
        assert_eq!(error.to_string(), "error[MLC0303]: index 3 leaves an axis of 3 elements (gather \"row\")");
        let error = evaluate(&graph, &[]).unwrap_err();
        assert_eq!(error.message, "0 inputs given, the graph has 1");
        let wrong = Tensor::from_floats(TensorType::new(DType::F32, [1]), vec![0.0]);
        assert_eq!(evaluate(&graph, &[wrong]).unwrap_err().message, "the input is f32[3], f32[1] given");
    }
}
