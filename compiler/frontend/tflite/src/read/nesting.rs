//! Subgraphs that operators run: they exist, none runs itself, and all of them written out are no more than an import takes.

use crate::model::{Model, Operator};
use mlc_ir::{Code, Diagnostic, Location};

/// Deepest nesting of subgraphs.
const DEEPEST: usize = 32;

/// Most operators, those of subgraphs counted wherever these are run.
const MOST_OPERATORS: usize = 1 << 17;

/// What a subgraph is when all that it runs is written out.
#[derive(Clone, Copy)]
struct Extent {
    operators: usize,
    /// How many subgraphs are within each other, itself counted.
    depth: usize,
}

/// Checks the subgraphs that operators run, beginning with the first.
///
/// # Errors
/// The first operator that runs what can't be run.
pub(crate) fn check(model: &Model) -> Result<(), Diagnostic> {
    measure(model, 0, 1, &mut vec![None; model.subgraphs.len()]).map(drop)
}

/// Precondition: the model has that subgraph.
fn measure(model: &Model, number: usize, depth: usize, known: &mut [Option<Extent>]) -> Result<Extent, Diagnostic> {
    if let Some(known) = known[number] {
        return Ok(known);
    }
    let subgraph = &model.subgraphs[number];
    let mut extent = Extent { operators: subgraph.operators.len(), depth: 1 };
    for operator in &subgraph.operators {
        for inner in operator.subgraphs() {
            if inner >= model.subgraphs.len() {
                let said = if inner == usize::MAX { "a negative number".into() } else { inner.to_string() };
                let message =
                    format!("it runs subgraph {said} in subgraph {number}, but there are {}", model.subgraphs.len());
                return Err(fault(operator, Code::UndefinedValue, message));
            }
            let too_deep = || {
                let message =
                    format!("subgraph {inner} is within subgraph {number}: more than {DEEPEST} are within each other");
                fault(operator, Code::NumberOutOfRange, message).with_help("a subgraph can't run itself")
            };
            if depth == DEEPEST {
                return Err(too_deep());
            }
            let own = measure(model, inner, depth + 1, known)?;
            extent.operators = extent.operators.saturating_add(own.operators);
            extent.depth = extent.depth.max(own.depth + 1);
            if extent.depth > DEEPEST {
                return Err(too_deep());
            }
            if extent.operators > MOST_OPERATORS {
                let message = format!("with the subgraphs that it runs there are more than {MOST_OPERATORS} operators");
                return Err(fault(operator, Code::NumberOutOfRange, message));
            }
        }
    }
    known[number] = Some(extent);
    Ok(extent)
}

fn fault(operator: &Operator, code: Code, message: String) -> Diagnostic {
    Diagnostic::error(code, Location::default().at_operator(&*operator.kind, format!("#{}", operator.index)), message)
}
