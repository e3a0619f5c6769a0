//! The rules of the saturating stages, a group per file.

pub mod algebra;
pub mod axes;
pub mod blocks;
pub mod fold;
pub mod fusion;
pub mod layout;
pub mod merge;
pub mod pads;
mod pattern;
pub mod sums;

use crate::pipeline::Pass;

/// The saturating stages: name, summary and groups of rules. Where movement is rewritten, the canonical rules take part.
pub fn stages(canonical: &Pass) -> Vec<(&'static str, &'static str, Vec<Pass>)> {
    let pass = |name, summary, rules: &[crate::rewrite::Rule]| Pass { name, summary, rules: rules.to_vec() };
    let algebra = pass("algebra", "scales and shifts by constants move together", algebra::RULES);
    let fold = pass("fold", "scales, shifts and pads enter weights and fields", fold::RULES);
    let layout = pass("layout", "transposes sink towards the outputs and meet their inverses", &layout::rules());
    let sums = pass("sums", "sums of layers on one input become one layer", sums::RULES);
    let movement =
        pass("movement", "transposes and reshapes sink below elementwise operators", layout::ELEMENTWISE_RULES);
    let pads = pass("pads", "pads move towards the operators that take them up", pads::RULES);
    let merge = pass("merge", "operators on one input become one, their weights concatenated", merge::RULES);
    let fusion = pass("fusion", "elementwise operators become maps and epilogues", fusion::RULES);
    vec![
        (
            "layout",
            "transposes vanish between channels-last operators",
            vec![canonical.clone(), layout, movement.clone(), pads.clone()],
        ),
        (
            "fold",
            "batch normalisation, scales and pads vanish in convolutions and matrix products",
            vec![canonical.clone(), algebra, fold, sums, movement.clone(), pads],
        ),
        ("merge", "sibling convolutions and linear layers become one", vec![canonical.clone(), merge]),
        ("fusion", "what remains elementwise is computed where its operands are", vec![movement, fusion]),
    ]
}
