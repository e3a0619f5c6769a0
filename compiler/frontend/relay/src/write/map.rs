//! Scalar expressions as functions: `fn (%p0: …, Composite="mlc.map") -> … { … }`, in Relay's own words.

use super::text::{literal_text, type_text};
use crate::spelling::{binary_word, unary_word};
use mlc_ir::scalar::{Expression, Rounding, ScalarNode};
use mlc_ir::{DType, TensorType};
use std::io::{self, Write};

/// Expressions of more steps are written as the text of an expression instead.
const MOST_STEPS: usize = 4096;

fn dtypes(expression: &Expression, operands: &[TensorType]) -> Option<Vec<DType>> {
    let of: Vec<DType> = operands.iter().map(|ty| ty.dtype).collect();
    expression.dtypes(&of).ok()
}

/// Whether each step of the expression has a word.
pub(super) fn is_expressible(expression: &Expression, operands: &[TensorType]) -> bool {
    let Some(dtypes) = dtypes(expression, operands) else { return false };
    let has_word = |node: &ScalarNode| match *node {
        ScalarNode::Operand(_) | ScalarNode::Select(..) | ScalarNode::Cast(..) | ScalarNode::BitCast(..) => true,
        ScalarNode::Literal(literal) => literal_text(literal).is_some(),
        ScalarNode::Unary(function, x) => unary_word(function, dtypes[x as usize]).is_some(),
        ScalarNode::Binary(function, x, _) => binary_word(function, dtypes[x as usize]).is_some(),
        ScalarNode::Rescale(..) => false,
    };
    expression.nodes().len() <= MOST_STEPS && expression.nodes().iter().all(has_word)
}

/// Writes the function and ends the line. Precondition: the expression is expressible.
pub(super) fn write(
    expression: &Expression,
    operands: &[TensorType],
    result: &TensorType,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(out, "fn (")?;
    for (index, ty) in operands.iter().enumerate() {
        write!(out, "%p{index}: {}, ", type_text(ty))?;
    }
    writeln!(out, "Composite=\"mlc.map\") -> {} {{", type_text(result))?;
    let dtypes = dtypes(expression, operands).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    let mut next = 0;
    let last = expression.nodes().len().saturating_sub(1);
    for (step, node) in expression.nodes().iter().enumerate() {
        let name = |id: u32| names[id as usize].as_str();
        let text = match *node {
            ScalarNode::Operand(k) => {
                names.push(format!("%p{k}"));
                continue;
            }
            ScalarNode::Literal(literal) => {
                names.push(literal_text(literal).unwrap_or_default());
                continue;
            }
            ScalarNode::Unary(function, x) => {
                format!("{}({})", unary_word(function, dtypes[x as usize]).unwrap_or_default(), name(x))
            }
            ScalarNode::Binary(function, x, y) => {
                format!("{}({}, {})", binary_word(function, dtypes[x as usize]).unwrap_or_default(), name(x), name(y))
            }
            ScalarNode::Rescale(rounding, children) => {
                let [x, multiplier, shift] = children.map(name);
                format!("{}{}({x}, {multiplier}, {shift})", Rounding::PREFIX, rounding.name())
            }
            ScalarNode::Select(c, x, y) => format!("where({}, {}, {})", name(c), name(x), name(y)),
            ScalarNode::Cast(dtype, x) => format!("cast({}, dtype=\"{}\")", name(x), dtype.long_name()),
            ScalarNode::BitCast(dtype, x) => format!("reinterpret({}, dtype=\"{}\")", name(x), dtype.long_name()),
        };
        if step == last {
            names.push(text);
        } else {
            writeln!(out, "    %{next} = {text};")?;
            names.push(format!("%{next}"));
            next += 1;
        }
    }
    writeln!(out, "    {}\n  }};", names.last().map_or("", String::as_str))
}
