//! What the optimiser tells about its work.

use crate::egraph::saturate::StopReason;
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::BTreeSet;

/// What [`crate::optimize`] did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OptimizeReport {
    /// Each stage, in order.
    pub stages: Vec<StageReport>,
    /// For each changed node of the result the rules that made it, when asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
}

/// What a stage did.
#[derive(Debug, Clone, Serialize)]
pub struct StageReport {
    /// Its name.
    pub name: &'static str,
    /// How often each rule fired.
    pub fired: IndexMap<&'static str, usize>,
    /// How often each rule built something that no operator accepts.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub refused: IndexMap<&'static str, usize>,
    /// Nodes before and after.
    pub nodes: (usize, usize),
    /// What saturation did; absent for the canonical stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation: Option<SaturationReport>,
}

/// What a saturation did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SaturationReport {
    /// E-nodes at the end, of all regions.
    pub nodes: usize,
    /// Classes at the end, of all regions.
    pub classes: usize,
    /// Rounds, of the region with the most.
    pub iterations: usize,
    /// Why it ended, for each region.
    pub stop: Vec<StopReason>,
    /// Cost of the graph as it came.
    pub cost_before: u64,
    /// Cost of the chosen graph.
    pub cost_after: u64,
}

/// A step of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Step {
    /// The stage.
    pub stage: &'static str,
    /// The rule.
    pub rule: &'static str,
}

/// Why a node of the result computes what the source operators computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Name of the node.
    pub value: String,
    /// What it computes, as `operator` or `kernel(anchor)`.
    pub operator: String,
    /// The source operators that it replaces.
    pub origins: BTreeSet<String>,
    /// The rules, in the order in which the stages applied them.
    pub steps: Vec<Step>,
}

/// `conv1 = kernel(convolution) of bn1, conv1, relu1: fold-scale-into-convolution, fuse-epilogue`
impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origins: Vec<&str> = self.origins.iter().map(String::as_str).collect();
        let steps: Vec<&str> = self.steps.iter().map(|step| step.rule).collect();
        write!(f, "{} = {} of {}: {}", self.value, self.operator, origins.join(", "), steps.join(", "))
    }
}
