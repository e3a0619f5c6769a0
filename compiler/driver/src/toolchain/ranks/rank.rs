//! [`Rank`]: one of the models of a program of several.

use crate::bundle::{Bundle, Port, Ranks};
use crate::kernel::Kernel;
use mlc_ir::{Code, Diagnostic, Location};

/// A rank of a program.
#[derive(Debug)]
pub struct Rank {
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// Kernels and loops that the model's main function calls, in order.
    pub kernels: Vec<Kernel>,
    /// What it exchanges.
    pub messages: Ranks,
}

impl Rank {
    /// What the program knows of an archive in the place of a rank.
    pub(super) fn of(bundles: &[Bundle], number: usize, bundle: &Bundle) -> Result<Rank, Diagnostic> {
        let mismatch = |message: String| Diagnostic::error(Code::RanksMismatch, Location::default(), message);
        let name = &bundle.model.name;
        let origin = bundle.origin.as_ref();
        let Some((origin, ranks)) = origin.and_then(|origin| Some((origin, origin.ranks.clone()?))) else {
            return Err(mismatch(format!("the model '{name}' isn't one of several ranks")));
        };
        if ranks.rank != number || ranks.count != bundles.len() {
            let place = format!("is in the place of rank {number} of {}", bundles.len());
            return Err(mismatch(format!("rank {} of {} {place}", ranks.rank, ranks.count)));
        }
        if bundles[..number].iter().any(|other| other.model.name == *name) {
            return Err(mismatch(format!("two ranks have the name '{name}', and so their C functions"))
                .with_help("compile each with another --model-name"));
        }
        Ok(Rank {
            inputs: bundle.inputs.clone(),
            outputs: bundle.outputs.clone(),
            kernels: outermost(&origin.kernels),
            messages: ranks,
        })
    }
}

/// The kernels and loops that the model's main function calls.
fn outermost(kernels: &[Kernel]) -> Vec<Kernel> {
    let mut rest = kernels;
    let mut result = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        result.push(first.clone());
        rest = behind.get(first.inside..).unwrap_or_default();
    }
    result
}
