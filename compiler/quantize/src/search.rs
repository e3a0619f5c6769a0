//! [`within`]: as few layers of real numbers as an error allows.

use crate::model::{Chosen, Model, one};
use mlc_ir::Diagnostic;
use std::collections::BTreeSet;

/// The model with as many of the worst layers kept in real numbers, besides those that are kept anyway, as it takes for the relative error
/// of every output to be at most `most`: that many suffice, one fewer doesn't. Which layers are the worst is told by what each adds to the
/// error by itself.
///
/// # Errors
/// When no number of layers suffices, and what the evaluator says.
pub fn within(model: &Model<'_>, kept: &BTreeSet<usize>, most: f64) -> Result<Chosen, Vec<Diagnostic>> {
    let expected = model.expected().map_err(one)?;
    let all = model.quantized(kept)?;
    if model.relative_error(&all, &expected).map_err(one)? <= most {
        return Ok(all);
    }
    let own = model.own_errors(&all).map_err(one)?;
    let of = |number: usize| own.get(&model.layers[number].result).map_or(0.0, |own| own.error().relative);
    let mut worst: Vec<usize> = (0..model.layers.len()).filter(|number| !kept.contains(number)).collect();
    worst.sort_by(|&left, &right| of(right).total_cmp(&of(left)));
    let with = |count: usize| model.quantized(&kept.iter().chain(&worst[..count]).copied().collect());
    // Too few layers, and enough.
    let (mut few, mut enough) = (0, worst.len());
    let mut best = with(enough)?;
    let least = model.relative_error(&best, &expected).map_err(one)?;
    if least > most {
        let message =
            format!("the relative error is {least:.6} with all layers in floating point, at most {most} asked for");
        let fault = Diagnostic::option_mismatch(message);
        return Err(one(fault.with_help("inputs and outputs of integers have an error of their own")));
    }
    while enough - few > 1 {
        let middle = usize::midpoint(few, enough);
        let chosen = with(middle)?;
        if model.relative_error(&chosen, &expected).map_err(one)? <= most {
            (enough, best) = (middle, chosen);
        } else {
            few = middle;
        }
    }
    Ok(best)
}
