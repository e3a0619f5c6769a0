//! Mutants of rules that compute the same as the rule itself, each with the reason why. Only a mutant whose value has the
//! type of the rule's own counts at all, which explains most of them.

/// Of every rule: the end of the mutant's name, with `*` for numbers of list elements, and the reason.
const OF_EVERY_RULE: &[(&str, &str)] = &[
    (
        "operand 0 of reshape alone",
        "it has the same elements; a constant without leading axes of extent 1 broadcasts alike",
    ),
    ("operand 0 of broadcast alone", "operators broadcast their operands themselves"),
    ("operand 0 of pad alone", "the type stays, so nothing is padded"),
    ("operand 0 of concat alone", "the type stays for the first part only, which comes first without the others too"),
    ("operand 0 of reduce alone", "the type stays, so each group has one element"),
    ("convolution.strides[*] + 1", "the type stays, so there is one window"),
    ("convolution.strides[*] - 1", "the type stays, so there is one window"),
    ("convolution.strides[*] swapped", "the type stays, so there is one window along both axes"),
    ("convolution.pads[*][*] + 1", "the type stays, so no window reaches so far"),
    ("convolution.pads[*][*] - 1", "the type stays, so no window reached so far"),
    ("pool.strides[*] + 1", "the type stays, so there is one window"),
    ("slice.steps[*] + 1", "the type stays, so one element is taken along the axis"),
];

/// Of one rule: rule, mutant with `*` for numbers of list elements, reason.
const OF_ONE_RULE: &[(&str, &str, &str)] = &[
    ("negative-unit-factor-as-negation", "0/another value", "the negation of the left side is x"),
    ("negative-unit-factor-as-negation", "operand 0 of map alone", "the left side is negated in the map"),
    ("sum-over-count-as-mean", "0/another value", "the type stays, so each group has one element"),
    ("merge-casts", "operand 0 of cast alone", "the outer cast is to the type that the inner one is from"),
    ("slice-of-concat", "operand 0 of slice alone", "the type stays, so the whole part is taken"),
    ("join-adjacent-slices", "0/operand 0 of slice alone", "the type stays, so the slices cover the whole"),
    ("sink-transpose-below-slice", "0/operand 0 of slice alone", "the type stays, so the whole is taken"),
    ("sink-transpose-below-resize", "0/operand 0 of resize alone", "the type stays, so no axis changes its extent"),
    ("sink-transpose-below-resize", "0/resize.axes[*] + 1", "the type stays, so neither axis changes its extent"),
    ("sink-transpose-below-resize", "0/resize.axes[*] - 1", "the type stays, so neither axis changes its extent"),
    ("move-pad-behind-transpose", "0/0/another value", "the type stays, so nothing is padded"),
    ("move-pad-behind-reshape", "0/0/another value", "the type stays, so nothing is padded"),
    (
        "fold-scale-into-transposed-convolution",
        "1/0/0/reshape.shape[*] swapped",
        "it fits for one output per group only",
    ),
    ("move-input-shift-behind-convolution", "1/0/0/broadcast.shape[*] + 1", "the type stays, so there is one window"),
    ("move-input-shift-behind-convolution", "1/0/convolution.dilations[*] + 1", "it fits for a window of one tap only"),
    ("move-input-shift-behind-matmul", "1/0/matmul with operands 0 and 1 swapped", "it fits for numbers only"),
    ("move-input-shift-behind-matmul", "1/0/matmul.transpose_left negated", "it fits for one row of one element only"),
    ("move-dequantisation-behind-movement", "0/operand 0 of slice alone", "the type stays, so the whole is taken"),
    ("move-zero-point-behind-movement", "0/operand 0 of slice alone", "the type stays, so the whole is taken"),
    ("move-dequantisation-behind-concat", "0/concat.axis + 1", "the type stays for one part only"),
    ("move-dequantisation-behind-concat", "0/concat.axis - 1", "the type stays for one part only"),
    (
        "mean-of-integers-as-sum",
        "0/convolution with operands 0 and 1 swapped",
        "it fits for an image of one element only",
    ),
    ("merge-sibling-matmul", "0/1/concat.axis - 1", "it fits for the first part only, which comes first anyhow"),
];

/// A mutant's name with `*` for the numbers of list elements.
pub(super) fn pattern(mutant: &str) -> String {
    let mut pattern = String::new();
    let mut inside = false;
    for character in mutant.chars() {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            '0'..='9' if inside => {
                if !pattern.ends_with('*') {
                    pattern.push('*');
                }
                continue;
            }
            _ => {}
        }
        pattern.push(character);
    }
    pattern
}

/// Why a mutant of a rule is the rule itself, if it is.
pub(super) fn reason(rule: &str, mutant: &str) -> Option<&'static str> {
    let pattern = pattern(mutant);
    let every = OF_EVERY_RULE.iter().find(|(end, _)| pattern.ends_with(end)).map(|(_, reason)| *reason);
    every.or_else(|| {
        OF_ONE_RULE.iter().find(|(own, name, _)| *own == rule && *name == pattern).map(|(_, _, reason)| *reason)
    })
}

/// The mutants of one rule only that are named.
pub(super) fn mutants(rule: &str) -> impl Iterator<Item = &'static str> {
    OF_ONE_RULE.iter().filter(move |(own, ..)| *own == rule).map(|(_, name, _)| *name)
}

/// The rules of which mutants are named.
pub(super) fn rules() -> impl Iterator<Item = &'static str> {
    OF_ONE_RULE.iter().map(|(rule, ..)| *rule)
}
