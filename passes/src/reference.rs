//! [`with_reference`]: another of the ways in which quantised networks are defined to round.
//!
//! A factor between integers is applied in fixed point, rounded twice or once, or in single precision, rounded to even. Which one is meant is
//! said by the model's format. These differ by one step at most, so no rule turns one into another; who wants the bits of another
//! reference names it.

use crate::canonicalise::simplify;
use crate::rewrite::{Exactness, Match, Rule, Search, Term};
use crate::sketch::Sketch;
use mlc_ir::ops::{Constant, Kernel, Loop, Map};
use mlc_ir::scalar::{
    BinaryFunction as B, Expression, ExpressionBuilder, Rounding, ScalarId, ScalarNode, UnaryFunction as U, fixed_point,
};
use mlc_ir::{Attribute, DType, Generator, Graph, Literal, Op, OpKind, OperatorError, Subgraph, Tensor, TensorType};

/// What defines how integers are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reference {
    /// The micro reference kernels of TensorFlow Lite: factors in fixed point, rounded twice.
    Tflm,
    /// The same, built to round once.
    TfliteSingleRounding,
    /// The ONNX standard as onnxruntime computes it: factors in single precision, halves to even.
    Onnx,
}

/// The graph with all factors between integers and narrow integers applied as a reference does.
///
/// # Errors
/// When an operator doesn't accept its operands, which a verified graph excludes.
pub fn with_reference(graph: &Graph, reference: Reference) -> Result<Graph, OperatorError> {
    let mut graph = graph.clone();
    let loops: Vec<_> = graph.node_ids().collect();
    for id in loops {
        let Op::Loop(op) = graph.node(id).op.clone() else { continue };
        let body = with_reference(op.body.graph(), reference)?;
        graph.replace_op(id, Loop { body: Subgraph::new(body), ..op })?;
    }
    let find = match reference {
        Reference::Tflm => |m: &Match<'_>| rescaled(m, Reference::Tflm),
        Reference::TfliteSingleRounding => |m: &Match<'_>| rescaled(m, Reference::TfliteSingleRounding),
        Reference::Onnx => |m: &Match<'_>| rescaled(m, Reference::Onnx),
    };
    let rule = Rule {
        name: "with-reference",
        exactness: Exactness::Reassociation,
        reason: "the user names what defines the rounding",
        search: Search::Each(&[OpKind::Kernel, OpKind::Map], find),
        sample,
    };
    Ok(simplify(&graph, &[rule])?.0)
}

/// Numbers of 32 bits, scaled and stored in 8.
fn sample(g: &mut Generator) -> Graph {
    let expression = Expression::build(|b| {
        let (x, scale) = (b.operand(0), b.operand(1));
        let x = b.cast(DType::F32, x);
        let x = b.binary(B::Multiply, x, scale);
        let x = b.unary(U::RoundToInteger, x);
        let (low, high) = (b.number(DType::I32, -128.0), b.number(DType::I32, 127.0));
        let x = b.binary(B::Maximum, x, low);
        let x = b.binary(B::Minimum, x, high);
        b.cast(DType::I8, x)
    });
    let mut s = Sketch::new(g);
    let x = s.input_of(DType::I32, &[2, 3]);
    let scales = Tensor::from_floats(TensorType::new(DType::F32, [3]), vec![0.5, 0.3, 0.01]);
    let scales = s.known(&scales);
    let y = s.apply(Map { expression }, &[x, scales]);
    s.finish(y)
}

/// The factor of a step, as numbers for one or for several channels: one number in all elements, or a constant.
enum Numbers {
    Literal(f64),
    Constant(Tensor),
}

impl Numbers {
    fn list(&self) -> Vec<f64> {
        match self {
            Numbers::Literal(number) => vec![*number],
            Numbers::Constant(tensor) => tensor.to_floats(),
        }
    }

    /// Other numbers in the same places.
    fn replaced(&self, dtype: DType, list: &[f64]) -> Attribute {
        let shape = match self {
            Numbers::Literal(_) => &[],
            Numbers::Constant(tensor) => tensor.shape(),
        };
        let ty = TensorType::new(dtype, shape);
        let list = list.to_vec();
        Attribute::from_tensor(&match dtype {
            DType::F32 => Tensor::from_floats(ty, list),
            _ => Tensor::from_integers(ty, list.iter().map(|&number| number as i64).collect()),
        })
    }
}

/// An operator's expression, and where its constants are.
struct Body<'m, 'a> {
    m: &'m Match<'a>,
    expression: &'a Expression,
    /// Operands of the operator that the expression doesn't read: those of the anchor.
    before: usize,
    /// The expression's operands that come before the first that is one of the operator's.
    anchors: usize,
}

impl Body<'_, '_> {
    fn numbers(&self, id: ScalarId) -> Option<Numbers> {
        match self.expression.nodes()[id as usize] {
            ScalarNode::Literal(literal) => Some(Numbers::Literal(literal.to_f64())),
            ScalarNode::Operand(k) => {
                let place = (k as usize).checked_sub(self.anchors)? + self.before;
                self.m.view.value(*self.m.operands.get(place)?).map(|value| Numbers::Constant(value.to_tensor()))
            }
            _ => None,
        }
    }

    /// The new operands that a step needs, and the step over them.
    fn converted(&self, id: usize, to: Reference) -> Option<(ScalarId, Step, Vec<Attribute>)> {
        let nodes = self.expression.nodes();
        match (nodes[id], to) {
            (ScalarNode::Unary(U::RoundToInteger, x), Reference::Tflm | Reference::TfliteSingleRounding) => {
                let ScalarNode::Binary(B::Multiply, wide, factor) = nodes[x as usize] else { return None };
                let ScalarNode::Cast(DType::F32, x) = nodes[wide as usize] else { return None };
                let factors = self.numbers(factor)?;
                let pairs: Vec<(i64, i32)> = factors.list().into_iter().map(fixed_point).collect::<Option<_>>()?;
                let multipliers: Vec<f64> = pairs.iter().map(|&(number, _)| number as f64).collect();
                let shifts: Vec<f64> = pairs.iter().map(|&(_, exponent)| f64::from(31 - exponent)).collect();
                let operands = [multipliers, shifts].map(|list| factors.replaced(DType::I32, &list));
                Some((x, Step::Fixed(rounding(to)?), operands.into()))
            }
            (ScalarNode::Rescale(_, [x, multiplier, shift]), Reference::Onnx) if self.is_stored(id) => {
                let (multipliers, shifts) = (self.numbers(multiplier)?, self.numbers(shift)?);
                let (left, right) = (multipliers.list(), shifts.list());
                let extent = left.len().max(right.len());
                let at =
                    |list: &[f64], index: usize| if list.len() == 1 { Some(list[0]) } else { list.get(index).copied() };
                let factors: Vec<f64> = (0..extent)
                    .map(|index| Some(at(&left, index)? * 2f64.powf(-at(&right, index)?)))
                    .collect::<Option<_>>()?;
                let longer = if left.len() == extent { multipliers } else { shifts };
                Some((x, Step::Single, vec![longer.replaced(DType::F32, &factors)]))
            }
            _ => None,
        }
    }

    /// Whether all that becomes of a step, of 32 bits, is that it is shifted, limited and stored in up to 16 bits.
    fn is_stored(&self, id: usize) -> bool {
        let nodes = self.expression.nodes();
        let mut id = id;
        loop {
            let mut readers =
                (0..nodes.len()).filter(|&reader| nodes[reader].children().any(|child| child as usize == id));
            let (Some(reader), None) = (readers.next(), readers.next()) else { return false };
            let is_number =
                |other: ScalarId| matches!(nodes[other as usize], ScalarNode::Literal(Literal::Integer(DType::I32, _)));
            match nodes[reader] {
                ScalarNode::Binary(B::Add | B::Maximum | B::Minimum, x, y) if is_number(x) || is_number(y) => {
                    id = reader
                }
                ScalarNode::Cast(dtype, _) => return dtype.is_integer() && dtype.size() <= 2,
                _ => return false,
            }
        }
    }
}

/// What a step becomes.
#[derive(Clone, Copy)]
enum Step {
    /// A rescaling by a multiplier and a shift.
    Fixed(Rounding),
    /// A product in single precision, rounded.
    Single,
}

impl Step {
    fn build(self, b: &mut ExpressionBuilder, x: ScalarId, operands: &[ScalarId]) -> ScalarId {
        match (self, operands) {
            (Step::Fixed(rounding), &[multiplier, shift]) => b.rescale(rounding, x, multiplier, shift),
            (_, operands) => {
                let x = b.cast(DType::F32, x);
                let product = b.binary(B::Multiply, x, operands[0]);
                b.unary(U::RoundToInteger, product)
            }
        }
    }
}

fn rounding(reference: Reference) -> Option<Rounding> {
    match reference {
        Reference::Tflm => Some(Rounding::Twice),
        Reference::TfliteSingleRounding => Some(Rounding::Once),
        Reference::Onnx => None,
    }
}

/// The operator with the first of its steps that rounds otherwise rounded as the reference does.
fn rescaled(m: &Match<'_>, to: Reference) -> Vec<Term> {
    let (expression, before, anchors) = match m.op {
        Op::Map(map) => (&map.expression, 0, 0),
        Op::Kernel(kernel) => (&kernel.expression, kernel.anchor_operands, 1),
        _ => return Vec::new(),
    };
    let body = Body { m, expression, before, anchors };
    let nodes = expression.nodes();
    // Twice and once differ by a word only.
    let turned = rounding(to).filter(|_| nodes.iter().any(|node| is_other(node, to)));
    if let Some(rounding) = turned {
        let turn = |node: &ScalarNode| match *node {
            ScalarNode::Rescale(_, children) if is_other(node, to) => ScalarNode::Rescale(rounding, children),
            other => other,
        };
        let own: Vec<ScalarNode> = nodes.iter().map(turn).collect();
        let expression = rebuilt(&own, |b, map, id| b.push(own[id].map_children(|child| map[child as usize])));
        return vec![with_expression(m, expression, before, anchors, &[])];
    }
    let found = (0..nodes.len()).find_map(|id| body.converted(id, to).map(|converted| (id, converted)));
    let Some((place, (x, step, constants))) = found else { return Vec::new() };
    let first = m.operands.len() - before + anchors;
    let expression = rebuilt(nodes, |b, map, id| {
        if id != place {
            return b.push(nodes[id].map_children(|child| map[child as usize]));
        }
        let operands: Vec<ScalarId> = (0..constants.len()).map(|k| b.operand((first + k) as u32)).collect();
        step.build(b, map[x as usize], &operands)
    });
    vec![with_expression(m, expression, before, anchors, &constants)]
}

/// Whether a step of 32 bits rounds in fixed point, but otherwise. Where it shifts to the left, both are the same.
fn is_other(node: &ScalarNode, to: Reference) -> bool {
    matches!(node, ScalarNode::Rescale(own, _) if *own == Rounding::Twice && rounding(to) == Some(Rounding::Once))
}

/// An expression of steps, each built over those before it.
fn rebuilt(nodes: &[ScalarNode], build: impl Fn(&mut ExpressionBuilder, &[ScalarId], usize) -> ScalarId) -> Expression {
    Expression::build(|b| {
        let mut map: Vec<ScalarId> = Vec::new();
        for id in 0..nodes.len() {
            let step = build(b, &map, id);
            map.push(step);
        }
        map.last().copied().unwrap_or(0)
    })
}

/// The operator with another expression, over its operands and further constants, as far as it reads them.
fn with_expression(
    m: &Match<'_>,
    expression: Expression,
    before: usize,
    anchors: usize,
    constants: &[Attribute],
) -> Term {
    let own = m.operands.iter().map(|&operand| Term::from(operand));
    let more = constants.iter().map(|value| Term::apply(Constant { value: value.clone() }, []));
    let mut operands: Vec<Term> = own.chain(more).collect();
    let further = operands.split_off(before);
    let is_read = |k: usize| expression.nodes().contains(&ScalarNode::Operand((k + anchors) as u32));
    let read: Vec<usize> = (0..further.len()).filter(|&k| is_read(k)).collect();
    let number = |k: u32| {
        let place = read.iter().position(|&own| own + anchors == k as usize);
        place.map_or(k, |place| (place + anchors) as u32)
    };
    let expression = expression.renumber(number);
    operands.extend(read.iter().map(|&k| further[k].clone()));
    match m.op {
        Op::Kernel(kernel) => Term::apply(Kernel { expression, ..kernel.clone() }, operands),
        _ => Term::apply(Map { expression }, operands),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{evaluate, text};

    fn expression_of(graph: &Graph) -> String {
        text::print(graph).lines().find(|line| line.contains("expression")).unwrap_or_default().to_owned()
    }

    #[test]
    fn references_differ_by_a_step_at_most_and_there_is_a_way_back() {
        let graph = sample(&mut Generator::new(1));
        let numbers = [100_005, -100_005, 255, 3, -3, 1];
        let x = Tensor::from_integers(TensorType::new(DType::I32, [2, 3]), numbers.to_vec());
        let of = |graph: &Graph| evaluate(graph, std::slice::from_ref(&x)).unwrap()[0].to_integers();
        for (reference, name) in
            [(Reference::Tflm, "rescale_twice("), (Reference::TfliteSingleRounding, "rescale_once(")]
        {
            let fixed = with_reference(&graph, reference).unwrap();
            assert!(expression_of(&fixed).contains(name), "{}", text::print(&fixed));
            let largest = of(&fixed).iter().zip(of(&graph)).map(|(x, y)| x.abs_diff(y)).max();
            assert!(largest <= Some(1), "{:?} {:?}", of(&fixed), of(&graph));
            let back = with_reference(&fixed, Reference::Onnx).unwrap();
            assert_eq!(of(&back), of(&graph));
            assert_eq!(expression_of(&back).matches("round_to_integer").count(), 1);
        }
        // 3 * 0.5 = 1.5 and 1 * 0.5 are halves: 2 and 0 to even, 2 and 1 upwards.
        let x = Tensor::from_integers(TensorType::new(DType::I32, [2, 3]), vec![5, 0, 0, 1, 0, 0]);
        let of = |graph: &Graph| evaluate(graph, std::slice::from_ref(&x)).unwrap()[0].to_integers();
        assert_eq!(of(&graph), [2, 0, 0, 0, 0, 0]);
        let twice = with_reference(&graph, Reference::Tflm).unwrap();
        assert_eq!(of(&twice), [3, 0, 0, 1, 0, 0]);
        let once = with_reference(&twice, Reference::TfliteSingleRounding).unwrap();
        assert!(expression_of(&once).contains("rescale_once(") && !expression_of(&once).contains("rescale_twice("));
    }
}
