//! Which layers are computed with integers.

use crate::layers::Layer;
use mlc_ir::text::nearest;
use mlc_ir::{Diagnostic, Graph, IntegerForm, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of the layers that names stand for: names of nodes, or of operators of the model.
///
/// # Errors
/// `MLC0004` for each name that no layer has.
pub fn named(graph: &Graph, layers: &[Layer], names: &[String]) -> Result<BTreeSet<usize>, Vec<Diagnostic>> {
    let (mut found, mut faults) = (BTreeSet::new(), Vec::new());
    for name in names {
        let has_node = |layer: &Layer| layer.nodes.iter().any(|&node| *graph.node(node).name == **name);
        let has_origin =
            |layer: &Layer| layer.nodes.iter().any(|&node| graph.node(node).origins.contains(name.as_str()));
        let of = |test: &dyn Fn(&Layer) -> bool| -> Vec<usize> {
            layers.iter().enumerate().filter(|(_, layer)| test(layer)).map(|(number, _)| number).collect()
        };
        let mut numbers = of(&has_node);
        if numbers.is_empty() {
            numbers = of(&has_origin);
        }
        if numbers.is_empty() {
            let message = format!("the model has no layer '{name}' that could be quantised");
            let mut fault = Diagnostic::option_mismatch(message);
            if let Some(near) = nearest(name, layers.iter().map(|layer| &*layer.name)) {
                fault = fault.with_help(format!("is '{near}' meant?"));
            }
            faults.push(fault.with_note("the report lists the layers"));
        }
        found.extend(numbers);
    }
    if faults.is_empty() { Ok(found) } else { Err(faults) }
}

/// The layers that are computed with integers where some are kept from it: sums of products, and what is connected with them by layers
/// that can be, so that nothing is quantised for its own sake.
pub fn connected<'a>(layers: &'a [Layer], kept: &BTreeSet<usize>) -> Vec<&'a Layer> {
    let free: Vec<&Layer> =
        layers.iter().enumerate().filter(|(number, _)| !kept.contains(number)).map(|(_, layer)| layer).collect();
    let makers: BTreeMap<Value, usize> =
        free.iter().enumerate().map(|(number, layer)| (layer.result, number)).collect();
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); free.len()];
    for (number, layer) in free.iter().enumerate() {
        for maker in layer.operands.iter().filter_map(|operand| makers.get(operand)) {
            neighbours[number].push(*maker);
            neighbours[*maker].push(number);
        }
    }
    let mut pending: Vec<usize> =
        (0..free.len()).filter(|&number| free[number].form == IntegerForm::Products).collect();
    let mut reached = BTreeSet::new();
    while let Some(number) = pending.pop() {
        if reached.insert(number) {
            pending.extend(&neighbours[number]);
        }
    }
    reached.into_iter().map(|number| free[number]).collect()
}
