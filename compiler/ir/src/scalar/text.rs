//! The text of expressions: `multiply(x0, sigmoid(x0))`; steps that are used several times are named first:
//! `t0 = add(x0, x1); multiply(t0, tanh(t0))`.

use super::expression::{Expression, ScalarId, ScalarNode};
use super::functions::Rounding;
use crate::diagnostics::Diagnostic;
use std::fmt;

/// Calls that nest deeper are named as steps, so that no reader of the text has to recurse deeply.
const MAXIMUM_DEPTH: usize = 32;

impl Expression {
    /// Parses what [`fmt::Display`] prints, or any such text: steps may be nested or named.
    ///
    /// # Errors
    /// A diagnostic with line and column.
    pub fn parse(text: &str) -> Result<Expression, Diagnostic> {
        crate::text::parse_expression(text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes();
        let Some(last) = nodes.len().checked_sub(1) else { return Ok(()) };
        let mut uses = vec![0usize; nodes.len()];
        for node in nodes {
            node.children().for_each(|child| uses[child as usize] += 1);
        }
        let mut names: Vec<Option<usize>> = vec![None; nodes.len()];
        let mut depths = vec![0; nodes.len()];
        let mut next = 0;
        for (id, node) in nodes.iter().enumerate() {
            depths[id] = node.children().map(|child| depths[child as usize] + 1).max().unwrap_or(0);
            let shared = uses[id] > 1 && node.children().next().is_some();
            if id != last && (shared || depths[id] >= MAXIMUM_DEPTH) {
                write!(f, "t{next} = {}; ", Step { expression: self, names: &names, id: id as ScalarId })?;
                names[id] = Some(next);
                depths[id] = 0;
                next += 1;
            }
        }
        write!(f, "{}", Step { expression: self, names: &names, id: last as ScalarId })
    }
}

struct Step<'a> {
    expression: &'a Expression,
    names: &'a [Option<usize>],
    id: ScalarId,
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.names[self.id as usize] {
            return write!(f, "t{name}");
        }
        let child = |id| Step { id, ..*self };
        match self.expression.nodes()[self.id as usize] {
            ScalarNode::Operand(k) => write!(f, "x{k}"),
            ScalarNode::Literal(literal) => write!(f, "{literal}"),
            ScalarNode::Unary(function, x) => write!(f, "{}({})", function.name(), child(x)),
            ScalarNode::Binary(function, x, y) => write!(f, "{}({}, {})", function.name(), child(x), child(y)),
            ScalarNode::Select(c, x, y) => write!(f, "select({}, {}, {})", child(c), child(x), child(y)),
            ScalarNode::Cast(dtype, x) => write!(f, "cast_{dtype}({})", child(x)),
            ScalarNode::BitCast(dtype, x) => write!(f, "bit_cast_{dtype}({})", child(x)),
            ScalarNode::Rescale(rounding, [x, multiplier, shift]) => {
                let name = rounding.name();
                write!(f, "{}{name}({}, {}, {})", Rounding::PREFIX, child(x), child(multiplier), child(shift))
            }
        }
    }
}
