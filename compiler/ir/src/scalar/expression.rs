//! [`Expression`]: a scalar program in single-assignment form, the body of every elementwise operator and every epilogue.

use super::functions::{BinaryFunction, Rounding, UnaryFunction};
use crate::literal::Literal;
use crate::types::DType;
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// So many steps are looked through more quickly than hashed.
const SCANNED: usize = 16;

/// The place of a node in its expression.
pub type ScalarId = u32;

/// One step of an expression; ids point at earlier steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarNode {
    /// The element of operand `k`.
    Operand(u32),
    /// A number.
    Literal(Literal),
    /// A function of one step.
    Unary(UnaryFunction, ScalarId),
    /// A function of two steps of one type.
    Binary(BinaryFunction, ScalarId, ScalarId),
    /// `condition ? first : second`.
    Select(ScalarId, ScalarId, ScalarId),
    /// Conversion: to integers truncates (saturating at the type's range, NaN to 0), to bool compares with 0.
    Cast(DType, ScalarId),
    /// The same bits as a number of another type of the same size. Which NaN it is isn't kept.
    BitCast(DType, ScalarId),
    /// `x * multiplier / 2^shift`, rounded: of x, multiplier and shift, which are all `i32` or all `i64`. See [`Rounding`].
    Rescale(Rounding, [ScalarId; 3]),
}

impl ScalarNode {
    /// The steps it reads.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = ScalarId> + use<> {
        let (list, count) = match *self {
            ScalarNode::Operand(_) | ScalarNode::Literal(_) => ([0; 3], 0),
            ScalarNode::Unary(_, x) | ScalarNode::Cast(_, x) | ScalarNode::BitCast(_, x) => ([x, 0, 0], 1),
            ScalarNode::Binary(_, x, y) => ([x, y, 0], 2),
            ScalarNode::Select(c, x, y) => ([c, x, y], 3),
            ScalarNode::Rescale(_, children) => (children, 3),
        };
        list.into_iter().take(count)
    }

    /// The same step over other steps.
    pub fn map_children(self, mut f: impl FnMut(ScalarId) -> ScalarId) -> ScalarNode {
        match self {
            ScalarNode::Unary(function, x) => ScalarNode::Unary(function, f(x)),
            ScalarNode::Cast(dtype, x) => ScalarNode::Cast(dtype, f(x)),
            ScalarNode::BitCast(dtype, x) => ScalarNode::BitCast(dtype, f(x)),
            ScalarNode::Binary(function, x, y) => {
                let x = f(x);
                ScalarNode::Binary(function, x, f(y))
            }
            ScalarNode::Select(c, x, y) => {
                let (c, x) = (f(c), f(x));
                ScalarNode::Select(c, x, f(y))
            }
            ScalarNode::Rescale(rounding, children) => ScalarNode::Rescale(rounding, children.map(f)),
            leaf => leaf,
        }
    }
}

/// A hash-consed scalar program; the last step is the result, and every step serves it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expression {
    nodes: Arc<[ScalarNode]>,
}

impl Expression {
    /// Operand `k` itself.
    pub fn operand(k: u32) -> Self {
        Expression { nodes: Arc::new([ScalarNode::Operand(k)]) }
    }

    /// `function(x0)`.
    pub fn unary(function: UnaryFunction) -> Self {
        Expression::build(|b| {
            let x = b.operand(0);
            b.unary(function, x)
        })
    }

    /// `function(x0, x1)`.
    pub fn binary(function: BinaryFunction) -> Self {
        Expression::build(|b| {
            let (x, y) = (b.operand(0), b.operand(1));
            b.binary(function, x, y)
        })
    }

    /// The integer x0 times the multiplier x1 by two to the power of the shift x2, rounded.
    pub fn rescale(rounding: Rounding) -> Self {
        Expression::build(|b| {
            let [x, multiplier, shift] = [0, 1, 2].map(|operand| b.operand(operand));
            b.rescale(rounding, x, multiplier, shift)
        })
    }

    /// Builds an expression; what the closure returns is the result.
    pub fn build(body: impl FnOnce(&mut ExpressionBuilder) -> ScalarId) -> Self {
        let mut builder = ExpressionBuilder::default();
        let result = body(&mut builder);
        builder.finish(result)
    }

    /// The expression of steps that were built before, one of which is the result.
    pub fn from_steps(steps: ExpressionBuilder, result: ScalarId) -> Self {
        steps.finish(result)
    }

    /// The steps; the last one is the result.
    pub fn nodes(&self) -> &[ScalarNode] {
        &self.nodes
    }

    /// One more than the largest operand number used.
    pub fn operand_count(&self) -> usize {
        let numbers = self.nodes.iter().map(|node| match node {
            ScalarNode::Operand(k) => *k as usize + 1,
            _ => 0,
        });
        numbers.max().unwrap_or(0)
    }

    /// Whether it is just operand 0.
    pub fn is_identity(&self) -> bool {
        *self.nodes == [ScalarNode::Operand(0)]
    }

    /// The data type of each step, or what doesn't fit.
    ///
    /// # Errors
    /// A sentence that names the function and the types.
    pub fn dtypes(&self, operands: &[DType]) -> Result<Vec<DType>, String> {
        let mut dtypes: Vec<DType> = Vec::with_capacity(self.nodes.len());
        for node in self.nodes.iter() {
            let dtype = match *node {
                ScalarNode::Operand(k) => *operands
                    .get(k as usize)
                    .ok_or_else(|| format!("the expression reads operand {k}, which isn't there"))?,
                ScalarNode::Literal(literal) => literal.dtype(),
                ScalarNode::Unary(function, x) => {
                    let dtype = dtypes[x as usize];
                    function
                        .result_dtype(dtype)
                        .ok_or_else(|| format!("{} isn't defined for {dtype}", function.name()))?
                }
                ScalarNode::Binary(function, x, y) => {
                    let (left, right) = (dtypes[x as usize], dtypes[y as usize]);
                    if left != right {
                        return Err(format!("{} of {left} and {right}: the types must be equal", function.name()));
                    }
                    function
                        .result_dtype(left)
                        .ok_or_else(|| format!("{} isn't defined for {left}", function.name()))?
                }
                ScalarNode::Select(c, x, y) => {
                    let (condition, left, right) = (dtypes[c as usize], dtypes[x as usize], dtypes[y as usize]);
                    if condition != DType::Bool || left != right {
                        return Err(format!(
                            "select of {condition}, {left} and {right}: it takes bool and two equal types"
                        ));
                    }
                    left
                }
                ScalarNode::Cast(dtype, _) => dtype,
                ScalarNode::Rescale(rounding, children) => {
                    let [x, multiplier, shift] = children.map(|child| dtypes[child as usize]);
                    if !matches!(x, DType::I32 | DType::I64) || multiplier != x || shift != x {
                        return Err(format!(
                            "{}{} of {x}, {multiplier} and {shift}: it takes three i32 or three i64",
                            Rounding::PREFIX,
                            rounding.name()
                        ));
                    }
                    x
                }
                ScalarNode::BitCast(dtype, x) => {
                    let from = dtypes[x as usize];
                    if from.size() != dtype.size() || from == DType::Bool || dtype == DType::Bool {
                        return Err(format!("bit_cast of {from} to {dtype}: both must be numbers of one size"));
                    }
                    dtype
                }
            };
            dtypes.push(dtype);
        }
        Ok(dtypes)
    }

    /// The result's data type.
    ///
    /// # Errors
    /// A sentence that names the function and the types.
    pub fn result_dtype(&self, operands: &[DType]) -> Result<DType, String> {
        let dtypes = self.dtypes(operands)?;
        dtypes.last().copied().ok_or_else(|| "the expression is empty".to_owned())
    }

    /// Replaces operand `k` by `operands[k]`, which are expressions over a common new list of operands.
    pub fn substitute(&self, operands: &[Expression]) -> Expression {
        Expression::build(|b| b.inline_expressions(self, operands))
    }

    /// Renumbers the operands.
    pub fn renumber(&self, number: impl Fn(u32) -> u32) -> Expression {
        let renumbered = |node: &ScalarNode| match *node {
            ScalarNode::Operand(k) => ScalarNode::Operand(number(k)),
            other => other,
        };
        let nodes: Arc<[ScalarNode]> = self.nodes.iter().map(renumbered).collect();
        let is_operand = |node: &&ScalarNode| matches!(node, ScalarNode::Operand(_));
        let mut operands: SmallVec<[ScalarNode; 8]> = nodes.iter().filter(is_operand).copied().collect();
        operands.sort_unstable();
        if operands.windows(2).all(|pair| pair[0] != pair[1]) {
            return Expression { nodes };
        }
        // Steps over operands that are one now may be one, too.
        Expression::build(|b| {
            let mut map: Vec<ScalarId> = Vec::new();
            for node in self.nodes.iter() {
                let id = match *node {
                    ScalarNode::Operand(k) => b.operand(number(k)),
                    other => b.push(other.map_children(|child| map[child as usize])),
                };
                map.push(id);
            }
            map.last().copied().unwrap_or(0)
        })
    }
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Builds an [`Expression`]; equal steps are shared.
#[derive(Default)]
pub struct ExpressionBuilder {
    nodes: SmallVec<[ScalarNode; 12]>,
    /// The place of each of the first steps, where there are many.
    places: IndexMap<ScalarNode, ScalarId>,
}

impl ExpressionBuilder {
    /// Adds a step; its children must be steps of this builder.
    pub fn push(&mut self, node: ScalarNode) -> ScalarId {
        self.place(&node).unwrap_or_else(|| {
            self.nodes.push(node);
            (self.nodes.len() - 1) as ScalarId
        })
    }

    fn place(&mut self, node: &ScalarNode) -> Option<ScalarId> {
        if self.nodes.len() <= SCANNED {
            return self.nodes.iter().position(|other| other == node).map(|place| place as ScalarId);
        }
        let known = self.places.len();
        self.places.extend(self.nodes[known..].iter().copied().zip(known as ScalarId..));
        self.places.get(node).copied()
    }

    /// How many steps there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Takes off the steps from the one at `first`.
    pub(super) fn split_off(&mut self, first: usize) -> Vec<ScalarNode> {
        self.places.truncate(first);
        self.nodes.drain(first..).collect()
    }

    /// Operand `k`.
    pub fn operand(&mut self, k: u32) -> ScalarId {
        self.push(ScalarNode::Operand(k))
    }

    /// A number of a type.
    pub fn number(&mut self, dtype: DType, value: f64) -> ScalarId {
        self.push(ScalarNode::Literal(Literal::of(dtype, value)))
    }

    /// A literal.
    pub fn literal(&mut self, literal: Literal) -> ScalarId {
        self.push(ScalarNode::Literal(literal))
    }

    /// A function of one step.
    pub fn unary(&mut self, function: UnaryFunction, x: ScalarId) -> ScalarId {
        self.push(ScalarNode::Unary(function, x))
    }

    /// A function of two steps.
    pub fn binary(&mut self, function: BinaryFunction, x: ScalarId, y: ScalarId) -> ScalarId {
        self.push(ScalarNode::Binary(function, x, y))
    }

    /// `condition ? x : y`.
    pub fn select(&mut self, condition: ScalarId, x: ScalarId, y: ScalarId) -> ScalarId {
        self.push(ScalarNode::Select(condition, x, y))
    }

    /// Conversion to a type.
    pub fn cast(&mut self, dtype: DType, x: ScalarId) -> ScalarId {
        self.push(ScalarNode::Cast(dtype, x))
    }

    /// The same bits as a number of another type.
    pub fn bit_cast(&mut self, dtype: DType, x: ScalarId) -> ScalarId {
        self.push(ScalarNode::BitCast(dtype, x))
    }

    /// `x * multiplier / 2^shift`, rounded.
    pub fn rescale(&mut self, rounding: Rounding, x: ScalarId, multiplier: ScalarId, shift: ScalarId) -> ScalarId {
        self.push(ScalarNode::Rescale(rounding, [x, multiplier, shift]))
    }

    /// Adds the steps of `body` with its operand `k` replaced by `operands[k]`.
    pub fn inline_expressions(&mut self, body: &Expression, operands: &[Expression]) -> ScalarId {
        let mut results: Vec<Option<ScalarId>> = vec![None; operands.len()];
        let mut map: Vec<ScalarId> = Vec::new();
        for node in body.nodes.iter() {
            let id = match *node {
                ScalarNode::Operand(k) => match operands.get(k as usize) {
                    Some(operand) => *results[k as usize].get_or_insert_with(|| self.inline_steps(operand)),
                    None => self.operand(k),
                },
                other => self.push(other.map_children(|child| map[child as usize])),
            };
            map.push(id);
        }
        map.last().copied().unwrap_or(0)
    }

    /// Adds the steps of `body` with its operand `k` replaced by step `operands[k]`.
    pub fn inline(&mut self, body: &Expression, operands: &[ScalarId]) -> ScalarId {
        let mut map: Vec<ScalarId> = Vec::new();
        for node in body.nodes.iter() {
            let id = match *node {
                ScalarNode::Operand(k) => operands.get(k as usize).copied().unwrap_or_else(|| self.operand(k)),
                other => self.push(other.map_children(|child| map[child as usize])),
            };
            map.push(id);
        }
        map.last().copied().unwrap_or(0)
    }

    fn inline_steps(&mut self, body: &Expression) -> ScalarId {
        self.inline(body, &[])
    }

    /// Keeps what the result needs, in the order in which an evaluation from left to right first needs it: however it was
    /// built, the same expression has the same steps.
    pub(crate) fn finish(self, result: ScalarId) -> Expression {
        let mut places: Vec<Option<ScalarId>> = vec![None; self.nodes.len()];
        let mut kept = Vec::new();
        let mut stack = vec![result];
        while let Some(&id) = stack.last() {
            let (Some(node), None) = (self.nodes.get(id as usize), places[id as usize]) else {
                stack.pop();
                continue;
            };
            let before = stack.len();
            stack.extend(node.children().rev().filter(|&child| places[child as usize].is_none()));
            if stack.len() == before {
                places[id as usize] = Some(kept.len() as ScalarId);
                kept.push(node.map_children(|child| places[child as usize].unwrap_or_default()));
                stack.pop();
            }
        }
        Expression { nodes: kept.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_are_shared_among_few_and_among_many() {
        let sums = |b: &mut ExpressionBuilder| {
            let x = b.operand(0);
            (0..2 * SCANNED as u32).fold(x, |sum, k| {
                let y = b.operand(k + 1);
                b.binary(BinaryFunction::Add, sum, y)
            })
        };
        Expression::build(|b| {
            let first = sums(b);
            let count = b.len();
            assert_eq!((sums(b), b.len()), (first, count));
            assert_eq!(b.split_off(3).len(), count - 3);
            assert_eq!((sums(b), b.len()), (first, count));
            first
        });
    }

    #[test]
    fn steps_are_in_the_order_of_evaluation() {
        let forwards = Expression::build(|b| {
            let (x, y, z) = (b.operand(0), b.operand(1), b.operand(2));
            let product = b.binary(BinaryFunction::Multiply, x, y);
            b.binary(BinaryFunction::Add, product, z)
        });
        let backwards = Expression::build(|b| {
            let (z, y, unused, x) = (b.operand(2), b.operand(1), b.operand(3), b.operand(0));
            b.unary(UnaryFunction::Exp, unused);
            let product = b.binary(BinaryFunction::Multiply, x, y);
            b.binary(BinaryFunction::Add, product, z)
        });
        assert_eq!(forwards, backwards);
        assert_eq!(forwards.to_string(), "add(multiply(x0, x1), x2)");
        assert_eq!(forwards.nodes().len(), 5);
    }
}
