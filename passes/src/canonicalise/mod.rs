//! Canonicalisation: what is never worse, done eagerly while the graph is rebuilt, in linear time and without an e-graph.
//!
//! Equal applications become one, small constants are computed, dead nodes vanish, and the rules of [`rules`] simplify each
//! application before it is added.

pub mod rules;
mod scalars;
pub(crate) mod simplifier;

use crate::rewrite::Rule;
use indexmap::IndexMap;
use mlc_ir::{Graph, OperatorError};
use simplifier::Simplifier;
use std::sync::Arc;

/// What canonicalisation did.
#[derive(Debug, Default)]
pub struct Canonicalised {
    /// How often each rule fired.
    pub fired: IndexMap<&'static str, usize>,
    /// For each node made by a rule, the rules in the order in which they fired.
    pub steps: IndexMap<Arc<str>, Vec<&'static str>>,
}

/// Rebuilds the graph in canonical form, simplified by rules.
///
/// # Errors
/// When an operator of the graph doesn't accept its operands, which a verified graph excludes.
pub fn canonicalise(graph: &Graph, rules: &[Rule]) -> Result<(Graph, Canonicalised), OperatorError> {
    rebuild(graph, rules, true)
}

/// Rebuilds the graph, simplified by rules; no constant is computed.
///
/// # Errors
/// When an operator of the graph doesn't accept its operands, which a verified graph excludes.
pub fn simplify(graph: &Graph, rules: &[Rule]) -> Result<(Graph, Canonicalised), OperatorError> {
    rebuild(graph, rules, false)
}

fn rebuild(graph: &Graph, rules: &[Rule], fold: bool) -> Result<(Graph, Canonicalised), OperatorError> {
    let mut simplifier = Simplifier::new(&graph.name, rules, fold);
    simplifier.import(graph)?;
    let Simplifier { graph: mut result, mut fired, steps, .. } = simplifier;
    result.take_interface(graph);
    let before = result.len();
    if result.remove_dead() {
        fired.insert("remove-dead-nodes", before - result.len());
    }
    Ok((result, Canonicalised { fired, steps }))
}
