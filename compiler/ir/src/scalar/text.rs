//! The text of expressions: `multiply(x0, sigmoid(x0))`; steps that are used several times are named first:
//! `t0 = add(x0, x1); multiply(t0, tanh(t0))`.

use super::expression::{Expression, ScalarId, ScalarNode};
use std::fmt;

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes();
        let mut uses = vec![0usize; nodes.len()];
        for node in nodes {
            node.children().for_each(|child| uses[child as usize] += 1);
        }
        let mut names: Vec<Option<usize>> = vec![None; nodes.len()];
        let mut next = 0;
        for (id, node) in nodes.iter().enumerate() {
            if uses[id] > 1 && node.children().next().is_some() {
                write!(f, "t{next} = {}; ", Step { expression: self, names: &names, id: id as ScalarId })?;
                names[id] = Some(next);
                next += 1;
            }
        }
        let last = nodes.len().saturating_sub(1) as ScalarId;
        write!(f, "{}", Step { expression: self, names: &names, id: last })
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
        }
    }
}
