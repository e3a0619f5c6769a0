//! The stages of the optimiser: the one list of them, in the order in which they run.

use crate::canonicalise;
use crate::egraph::rules::{algebra, axes, blocks, fold, fusion, layout, merge, pads, sums};
use crate::integers;
use crate::rewrite::Rule;
use mlc_ir::{Graph, OperatorError};

/// A group of rules within a stage.
#[derive(Debug, Clone)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// What a stage does.
#[derive(Debug, Clone)]
pub enum Work {
    /// Applies rules eagerly, while the graph is rebuilt: those of the first group before any constant is computed.
    Canonicalise(Vec<Pass>),
    /// Lets rules fill an e-graph, from which the cheapest graph is taken.
    Saturate(Vec<Pass>),
    /// Makes another graph of the same inputs, outputs and states, which computes the same. Nodes that stay keep their names,
    /// by which explanations find them.
    Transform(fn(&Graph) -> Result<Graph, OperatorError>),
}

/// A named step of the optimiser. Whatever a stage does, canonical rules simplify what it leaves, and the verifier checks it.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What it does, to a graph.
    pub work: Work,
}

impl Stage {
    /// Its rules, in groups; none for a stage that is a function.
    pub fn passes(&self) -> &[Pass] {
        match &self.work {
            Work::Canonicalise(passes) | Work::Saturate(passes) => passes,
            Work::Transform(_) => &[],
        }
    }

    /// Its rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.passes().iter().flat_map(|pass| &pass.rules)
    }
}

/// The stages. Where movement is rewritten, the canonical rules take part.
pub fn all() -> Vec<Stage> {
    let pass = |name, summary, rules: &[Rule]| Pass { name, summary, rules: rules.to_vec() };
    let canonical =
        pass("canonical", "identities, equal applications, small constants, dead nodes", &canonicalise::rules::all());
    let integers = pass(
        "integers",
        "arithmetic on real numbers that integers stand for becomes that of integers",
        &integers::rules(),
    );
    let algebra = pass("algebra", "scales and shifts by constants move together", algebra::RULES);
    let fold = pass("fold", "scales, shifts and pads enter weights and fields", fold::RULES);
    let sinking = [layout::RULES, axes::RULES, blocks::RULES].concat();
    let layout = pass("layout", "transposes sink towards the outputs and meet their inverses", &sinking);
    let sums = pass("sums", "sums of layers on one input become one layer", sums::RULES);
    let movement =
        pass("movement", "transposes and reshapes sink below elementwise operators", layout::ELEMENTWISE_RULES);
    let pads = pass("pads", "pads move towards the operators that take them up", pads::RULES);
    let merge = pass("merge", "operators on one input become one, their weights concatenated", merge::RULES);
    let fusion = pass("fusion", "elementwise operators become maps and epilogues", fusion::RULES);
    vec![
        Stage {
            name: "canonicalise",
            summary: "normal forms: what is never worse, in linear time",
            work: Work::Canonicalise(vec![integers, canonical.clone()]),
        },
        Stage {
            name: "layout",
            summary: "transposes vanish between channels-last operators",
            work: Work::Saturate(vec![canonical.clone(), layout, movement.clone(), pads.clone()]),
        },
        Stage {
            name: "fold",
            summary: "batch normalisation, scales and pads vanish in convolutions and matrix products",
            work: Work::Saturate(vec![canonical.clone(), algebra.clone(), fold, sums, movement.clone(), pads]),
        },
        Stage {
            name: "merge",
            summary: "sibling convolutions and linear layers become one",
            work: Work::Saturate(vec![canonical, algebra, merge]),
        },
        Stage {
            name: "fusion",
            summary: "what remains elementwise is computed where its operands are",
            work: Work::Saturate(vec![movement, fusion]),
        },
    ]
}
