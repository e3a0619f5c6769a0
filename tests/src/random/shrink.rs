//! Making a failing graph small: outputs are dropped, results of operators become inputs with the values that they had, and
//! operators at the end are taken off, as long as the graph still fails.

use super::draft::{Sample, constant_seed};
use mlc_ir::{Category, Graph, Tensor, Value, evaluate_all, text};
use std::collections::BTreeMap;

/// Samples that are tried together.
const TOGETHER: usize = 12;

/// The smallest sample found that still fails; `failing` says which of some samples is the first that does.
pub fn shrunk(sample: &Sample, failing: &dyn Fn(&[Sample]) -> Option<usize>) -> Sample {
    let mut best = sample.clone();
    let smaller = |best: &Sample| {
        candidates(best).chunks(TOGETHER).find_map(|samples| failing(samples).map(|place| samples[place].clone()))
    };
    while let Some(found) = smaller(&best) {
        best = found;
    }
    best
}

/// Smaller samples, the smallest first.
fn candidates(sample: &Sample) -> Vec<Sample> {
    let graph = &sample.graph;
    let Ok(results) = evaluate_all(graph, &sample.inputs) else { return Vec::new() };
    let tensors = &|value: Value| results[&value.node][value.slot as usize].clone();
    let outputs: Vec<Value> = graph.outputs().iter().map(|output| output.value).collect();
    let mut all = Vec::new();
    if outputs.len() > 1 {
        for &output in &outputs {
            all.extend(rebuilt(sample, &[output], &[], tensors));
        }
        for dropped in 0..outputs.len() {
            let mut kept = outputs.clone();
            kept.remove(dropped);
            all.extend(rebuilt(sample, &kept, &[], tensors));
        }
    }
    let computed = |value: &Value| graph.node(value.node).op.category() != Category::Source;
    for (place, &output) in outputs.iter().enumerate().filter(|(_, output)| computed(output)) {
        for operand in graph.operands(output.node).into_iter().filter(computed) {
            let mut moved = outputs.clone();
            moved[place] = operand;
            all.extend(rebuilt(sample, &moved, &[], tensors));
        }
    }
    for id in graph.topological_order() {
        let node = graph.node(id);
        if node.op.category() != Category::Source {
            let values: Vec<Value> = (0..node.results.len() as u32).map(|slot| Value { node: id, slot }).collect();
            all.extend(rebuilt(sample, &outputs, &values, tensors));
        }
    }
    let size = |sample: &Sample| operators(&sample.graph);
    all.retain(|smaller| size(smaller) < size(sample) || smaller.graph.outputs().len() < outputs.len());
    all.sort_by_key(size);
    all
}

fn operators(graph: &Graph) -> usize {
    graph.node_ids().filter(|&id| graph.node(id).op.category() != Category::Source).count()
}

/// The sample with other outputs, and with some values as inputs.
fn rebuilt(sample: &Sample, outputs: &[Value], cut: &[Value], tensor: &dyn Fn(Value) -> Tensor) -> Option<Sample> {
    let old = &sample.graph;
    let mut needed = vec![false; old.node_ids().map(|id| id.index() + 1).max().unwrap_or(0)];
    let mut stack: Vec<Value> = outputs.to_vec();
    while let Some(value) = stack.pop() {
        if cut.contains(&value) || std::mem::replace(&mut needed[value.node.index()], true) {
            continue;
        }
        stack.extend(old.operands(value.node));
    }
    let mut graph = Graph::new(old.name.clone());
    let mut values: BTreeMap<Value, Value> = BTreeMap::new();
    let mut inputs = Vec::new();
    for id in old.topological_order() {
        let node = old.node(id);
        let is_input = old.inputs().contains(&id);
        for &value in cut.iter().filter(|value| value.node == id) {
            values.insert(value, graph.add_input(&node.name, old.ty(value).clone()));
            inputs.push(tensor(value));
        }
        if !needed[id.index()] {
            continue;
        }
        if is_input {
            values.insert(id.into(), graph.add_input(&node.name, node.results[0].clone()));
            inputs.push(tensor(id.into()));
        } else if let Some(constant) = old.constant(id.into()) {
            values.insert(id.into(), graph.add_constant(&node.name, constant.clone()));
        } else {
            let operands: Vec<Value> = old.operands(id).iter().map(|operand| values[operand]).collect();
            let new = graph.add(node.op.clone(), &operands, &node.name).ok()?;
            for slot in 0..node.results.len() as u32 {
                values.entry(Value { node: id, slot }).or_insert(Value { node: new, slot });
            }
        }
    }
    for (number, output) in outputs.iter().enumerate() {
        graph.add_output(&format!("y{number}"), values[output]);
    }
    graph.remove_dead();
    Some(Sample { graph, inputs })
}

/// The graph as text in which the random constants are `random(seed = …)`, as a text test holds them.
pub fn text_with_seeds(sample: &Sample) -> String {
    let mut result = String::new();
    for line in text::print(&sample.graph).lines() {
        let reference = line.split_once(" @random").and_then(|(head, rest)| {
            let seed = constant_seed(&format!("random{}", rest.split(' ').next()?))?;
            head.contains(" = constant ").then(|| format!("{head} random(seed = {seed})"))
        });
        result += reference.as_deref().unwrap_or(line);
        result.push('\n');
    }
    result
}
