//! The rules of the saturating stages, a group per file.

pub mod algebra;
pub mod fold;
pub mod fusion;
mod pattern;

use crate::pipeline::Pass;

/// The saturating stages: name, summary and groups of rules. Where movement is rewritten, the canonical rules take part.
pub fn stages(canonical: &Pass) -> Vec<(&'static str, &'static str, Vec<Pass>)> {
    let pass = |name, summary, rules: &[crate::rewrite::Rule]| Pass { name, summary, rules: rules.to_vec() };
    let algebra = pass("algebra", "scales and shifts by constants move together", algebra::RULES);
    let fold = pass("fold", "scales, shifts and pads enter weights and fields", fold::RULES);
    let fusion = pass("fusion", "elementwise operators become maps and epilogues", fusion::RULES);
    vec![
        (
            "fold",
            "batch normalisation, scales and pads vanish in convolutions and matrix products",
            vec![canonical.clone(), algebra, fold],
        ),
        ("fusion", "what remains elementwise is computed where its operands are", vec![fusion]),
    ]
}
