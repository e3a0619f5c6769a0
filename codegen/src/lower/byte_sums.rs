//! Expressions of one or two bytes as sums of multiples: `(a x + b y + c) >> k`.
//!
//! What quantised networks add up is rescaled in several steps, each of a product of 64 bits and two roundings. Between bytes all of
//! that together is a staircase along a plane. There are 65536 pairs of bytes, so whether some integers a, b, c and k give the same
//! for all of them is found out by trying.

use mlc_ir::ops::{Kernel, Map};
use mlc_ir::scalar::{
    BinaryFunction as B, Expression, ExpressionBuilder, Scalar, ScalarId, ScalarNode, UnaryFunction as U, evaluate_step,
};
use mlc_ir::{DType, Graph, Literal, Op, Value};
use std::collections::BTreeSet;

/// Factors that are tried to either side of the nearest ones.
const APART: i64 = 3;

/// Shifts, the largest of which fit into 32 bits are tried, and how many of these.
const SHIFTS: std::ops::RangeInclusive<u32> = 8..=22;
const TRIED: usize = 3;

/// Instructions, about, that a change of scale, a rounding to an integer and any other step are.
const RESCALE: usize = 6;
const ROUND: usize = 3;

/// The operator with such sums in the place of what takes more instructions.
pub fn with_byte_sums(graph: &Graph, op: &Op, operands: &[Value]) -> Op {
    let dtype = |value: &Value| graph.ty(*value).dtype;
    match op {
        Op::Map(map) => {
            let dtypes: Vec<DType> = operands.iter().map(dtype).collect();
            rewritten(&map.expression, &dtypes).map_or_else(|| op.clone(), |expression| Map { expression }.into())
        }
        Op::Kernel(kernel) => {
            let types: Vec<_> = operands.iter().map(|&operand| graph.ty(operand).clone()).collect();
            let Ok(results) = kernel.anchor_results(&types) else { return op.clone() };
            let mut dtypes: Vec<DType> = results.first().map(|ty| ty.dtype).into_iter().collect();
            dtypes.extend(operands[kernel.anchor_operands..].iter().map(dtype));
            match rewritten(&kernel.expression, &dtypes) {
                Some(expression) => Kernel { expression, ..kernel.clone() }.into(),
                None => op.clone(),
            }
        }
        _ => op.clone(),
    }
}

fn rewritten(expression: &Expression, operands: &[DType]) -> Option<Expression> {
    let dtypes = expression.dtypes(operands).ok()?;
    let found: Vec<Option<(Part, Sum)>> = (0..dtypes.len() as ScalarId)
        .map(|id| {
            let part = Part::at(expression.nodes(), &dtypes, id)?;
            let sum = part.sum()?;
            Some((part, sum))
        })
        .collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    Some(Expression::build(|b| {
        let mut ids: Vec<ScalarId> = Vec::new();
        for (node, found) in expression.nodes().iter().zip(&found) {
            let id = match found {
                Some((part, sum)) => {
                    let bytes: Vec<ScalarId> = part.bytes.iter().map(|&byte| ids[byte as usize]).collect();
                    sum.write(b, &bytes, part.dtype)
                }
                None => b.push(node.map_children(|child| ids[child as usize])),
            };
            ids.push(id);
        }
        ids.last().copied().unwrap_or(0)
    }))
}

fn range(dtype: DType) -> (i64, i64) {
    let (low, high) = dtype.integer_range(8);
    (low as i64, high as i64)
}

/// A byte that depends on one or two others.
struct Part {
    /// The steps that are bytes, and their types.
    bytes: Vec<ScalarId>,
    dtypes: Vec<DType>,
    /// What is computed of these.
    expression: Expression,
    /// The type of what comes of it.
    dtype: DType,
}

impl Part {
    /// The steps down to the nearest bytes, where a sum would be fewer instructions.
    fn at(nodes: &[ScalarNode], dtypes: &[DType], root: ScalarId) -> Option<Part> {
        let ScalarNode::Cast(dtype, inner) = nodes[root as usize] else { return None };
        if !dtype.is_byte() {
            return None;
        }
        let (mut bytes, mut steps) = (BTreeSet::new(), BTreeSet::from([root]));
        let mut left = vec![inner];
        while let Some(id) = left.pop() {
            if dtypes[id as usize].is_byte() {
                bytes.insert(id);
            } else if matches!(nodes[id as usize], ScalarNode::Operand(_)) {
                return None;
            } else if steps.insert(id) {
                left.extend(nodes[id as usize].children());
            }
        }
        let instructions: usize = steps.iter().map(|&id| instructions(nodes[id as usize])).sum();
        if !(1..=2).contains(&bytes.len()) || instructions <= 3 * bytes.len() + 4 {
            return None;
        }
        let bytes: Vec<ScalarId> = bytes.into_iter().collect();
        let expression = Expression::build(|b| {
            let mut ids = vec![0; nodes.len()];
            for (number, &byte) in bytes.iter().enumerate() {
                ids[byte as usize] = b.operand(number as u32);
            }
            for &step in &steps {
                ids[step as usize] = b.push(nodes[step as usize].map_children(|child| ids[child as usize]));
            }
            ids[root as usize]
        });
        let of_bytes = bytes.iter().map(|&byte| dtypes[byte as usize]).collect();
        Some(Part { bytes, dtypes: of_bytes, expression, dtype })
    }

    /// The sum that gives the same for all bytes.
    fn sum(&self) -> Option<Sum> {
        let slopes = plane(self.expression.nodes())?;
        let results = self.results()?;
        let ends = (*results.iter().min()?, *results.iter().max()?);
        let mut tried = 0;
        for shift in SHIFTS.rev() {
            let nearest = slopes.map(|slope| (slope * f64::from(1 << shift)).round() as i64);
            if !self.fits(nearest, shift) {
                continue;
            }
            for near in neighbours() {
                let factors: Vec<i64> =
                    nearest.iter().zip(near).map(|(factor, near)| factor + near).take(self.bytes.len()).collect();
                if let Some(sum) = self.with_factors(&factors, shift, &results, ends) {
                    return Some(sum);
                }
            }
            tried += 1;
            if tried == TRIED {
                break;
            }
        }
        None
    }

    /// Whether sums, and what is added to them, can't leave 32 bits, about.
    fn fits(&self, factors: [i64; 2], shift: u32) -> bool {
        let reach = |factor: &i64| factor.saturating_abs().saturating_add(APART).saturating_mul(256);
        let reach = factors.iter().map(reach).fold(256_i64 << shift, i64::saturating_add);
        reach < 1 << 31
    }

    /// What comes of all bytes, the last of which changes first.
    fn results(&self) -> Option<Vec<i64>> {
        let dtypes = self.expression.dtypes(&self.dtypes).ok()?;
        let ranges: Vec<(i64, i64)> = self.dtypes.iter().map(|&dtype| range(dtype)).collect();
        let (first, last) = (*ranges.first()?, ranges.get(1).copied().unwrap_or((0, 0)));
        let nodes = self.expression.nodes();
        let [of_none, of_first, of_last, of_both] = by_operands(nodes);
        // Steps of the second byte that those of both read: what is kept of each of its numbers.
        let read: BTreeSet<usize> = of_both.iter().flat_map(|&id| nodes[id].children()).map(|id| id as usize).collect();
        let kept: Vec<usize> = of_last.iter().copied().filter(|id| read.contains(id)).collect();
        let mut steps = vec![Scalar::Integer(0); nodes.len()];
        let evaluate = |ids: &[usize], operands: &[Scalar], steps: &mut [Scalar]| {
            for &id in ids {
                steps[id] = evaluate_step(nodes[id], dtypes[id], &dtypes, operands, steps);
            }
        };
        evaluate(&of_none, &[], &mut steps);
        let mut of_last_bytes = Vec::new();
        for y in last.0..=last.1 {
            evaluate(&of_last, &[Scalar::Integer(0), Scalar::Integer(y)], &mut steps);
            of_last_bytes.extend(kept.iter().map(|&id| steps[id]));
        }
        let mut results = Vec::new();
        for x in first.0..=first.1 {
            evaluate(&of_first, &[Scalar::Integer(x)], &mut steps);
            for number in 0..=(last.1 - last.0) as usize {
                for (place, &id) in kept.iter().enumerate() {
                    steps[id] = of_last_bytes[number * kept.len() + place];
                }
                evaluate(&of_both, &[], &mut steps);
                match steps.last()? {
                    Scalar::Integer(value) => results.push(*value),
                    Scalar::Float(_) => return None,
                }
            }
        }
        Some(results)
    }

    /// The sum of multiples by some factors whose results are those that there are, the ends of which are limits.
    fn with_factors(&self, factors: &[i64], shift: u32, results: &[i64], ends: (i64, i64)) -> Option<Sum> {
        let (low, high) = self.dtypes.first().map(|&dtype| range(dtype))?;
        let last: Vec<i64> = match self.dtypes.get(1) {
            Some(&dtype) => (range(dtype).0..=range(dtype).1).map(|byte| factors[1] * byte).collect(),
            None => vec![0],
        };
        // What is added is at least the one and less than the other.
        let (mut least, mut limit) = (i64::MIN, i64::MAX);
        for (first, results) in (low..=high).zip(results.chunks(last.len())) {
            for (own, &result) in last.iter().zip(results) {
                let value = factors[0] * first + own;
                if result > ends.0 {
                    least = least.max((result << shift) - value);
                }
                if result < ends.1 {
                    limit = limit.min(((result + 1) << shift) - value);
                }
            }
            if least >= limit {
                return None;
            }
        }
        if least == i64::MIN || limit == i64::MAX {
            return None;
        }
        let added = least + (limit - least) / 2;
        let corners = [low, high].map(|byte| factors[0] * byte);
        let corners: Vec<i64> = [last.first()?, last.last()?]
            .into_iter()
            .flat_map(|own| corners.map(|first| first + own + added))
            .collect();
        let reach = (*corners.iter().min()?, *corners.iter().max()?);
        let word = i64::from(i32::MIN)..=i64::from(i32::MAX);
        if !word.contains(&reach.0) || !word.contains(&reach.1) || !word.contains(&added) {
            return None;
        }
        let limits = match (reach.0 >> shift < ends.0, reach.1 >> shift > ends.1) {
            (false, false) => None,
            (below, above) => {
                let whole = range(self.dtype);
                Some((if below { ends.0 } else { whole.0 }, if above { ends.1 } else { whole.1 }))
            }
        };
        Some(Sum { factors: factors.to_vec(), added, shift, limits })
    }
}

/// The steps that depend on no operand, on the first one, on the second one, and on both, each in their order.
fn by_operands(nodes: &[ScalarNode]) -> [Vec<usize>; 4] {
    let mut met: Vec<usize> = Vec::with_capacity(nodes.len());
    let mut steps = [const { Vec::new() }; 4];
    for (id, node) in nodes.iter().enumerate() {
        let own = match node {
            ScalarNode::Operand(k) => 1 << k,
            node => node.children().fold(0, |all, child| all | met[child as usize]),
        };
        met.push(own);
        steps[own].push(id);
    }
    steps
}

/// Changes of both factors, small ones first.
fn neighbours() -> Vec<[i64; 2]> {
    let mut all: Vec<[i64; 2]> = (-APART..=APART).flat_map(|x| (-APART..=APART).map(move |y| [x, y])).collect();
    all.sort_by_key(|[x, y]| x.abs().max(y.abs()));
    all
}

/// About how many instructions a step is.
fn instructions(node: ScalarNode) -> usize {
    match node {
        ScalarNode::Operand(_) | ScalarNode::Literal(_) => 0,
        ScalarNode::Rescale(..) => RESCALE,
        ScalarNode::Unary(U::RoundToInteger, _) => ROUND,
        _ => 1,
    }
}

/// What the result changes by with each operand, without roundings and limits; `None` where that isn't the same everywhere.
fn plane(nodes: &[ScalarNode]) -> Option<[f64; 2]> {
    // Of each step its slopes along both operands, and its number where both are 0.
    let mut steps: Vec<[f64; 3]> = Vec::new();
    for node in nodes {
        let at = |id: ScalarId| steps[id as usize];
        let number = |id: ScalarId| Some(at(id)).filter(|step| step[..2] == [0.0; 2]).map(|step| step[2]);
        let times = |id: ScalarId, factor: f64| at(id).map(|slope| slope * factor);
        let step = match *node {
            ScalarNode::Operand(0) => [1.0, 0.0, 0.0],
            ScalarNode::Operand(1) => [0.0, 1.0, 0.0],
            ScalarNode::Literal(literal) => [0.0, 0.0, literal.to_f64()],
            ScalarNode::Cast(_, x) | ScalarNode::Unary(U::RoundToInteger | U::Round | U::Relu, x) => at(x),
            ScalarNode::Binary(B::Add, x, y) => [0, 1, 2].map(|k| at(x)[k] + at(y)[k]),
            ScalarNode::Binary(B::Subtract, x, y) => [0, 1, 2].map(|k| at(x)[k] - at(y)[k]),
            ScalarNode::Binary(B::Multiply, x, y) => match (number(x), number(y)) {
                (Some(factor), _) => times(y, factor),
                (_, factor) => times(x, factor?),
            },
            ScalarNode::Binary(B::Divide, x, y) => times(x, 1.0 / number(y)?),
            ScalarNode::Binary(B::ShiftLeft, x, y) => times(x, number(y)?.exp2()),
            ScalarNode::Binary(B::ShiftRight, x, y) => times(x, (-number(y)?).exp2()),
            ScalarNode::Binary(B::Maximum | B::Minimum, x, y) => match number(x) {
                Some(_) => at(y),
                None => number(y).map(|_| at(x))?,
            },
            ScalarNode::Rescale(_, [x, multiplier, shift]) => times(x, number(multiplier)? * (-number(shift)?).exp2()),
            _ => return None,
        };
        steps.push(step);
    }
    let [x, y, _] = *steps.last()?;
    (x.abs() + y.abs()).is_finite().then_some([x, y])
}

/// `(a x + b y + added) >> shift` within limits.
#[derive(Debug, PartialEq)]
struct Sum {
    factors: Vec<i64>,
    added: i64,
    shift: u32,
    limits: Option<(i64, i64)>,
}

impl Sum {
    fn write(&self, b: &mut ExpressionBuilder, bytes: &[ScalarId], dtype: DType) -> ScalarId {
        let word = |number: i64| Literal::integer(DType::I32, number);
        let mut sum = None;
        for (&byte, &factor) in bytes.iter().zip(&self.factors) {
            let (wide, factor) = (b.cast(DType::I32, byte), b.literal(word(factor)));
            let product = b.binary(B::Multiply, wide, factor);
            sum = Some(sum.map_or(product, |sum| b.binary(B::Add, sum, product)));
        }
        let added = b.literal(word(self.added));
        let sum = sum.map_or(added, |sum| b.binary(B::Add, sum, added));
        let shift = b.literal(word(self.shift.into()));
        let mut value = b.binary(B::ShiftRight, sum, shift);
        if let Some((low, high)) = self.limits {
            let (low, high) = (b.literal(word(low)), b.literal(word(high)));
            value = b.binary(B::Maximum, value, low);
            value = b.binary(B::Minimum, value, high);
        }
        b.cast(dtype, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Generator;
    use mlc_ir::scalar::evaluate_scalar;

    /// Whether both give the same for all bytes.
    fn are_alike(left: &Expression, right: &Expression, operands: &[DType]) -> bool {
        let part = |expression: &Expression| Part {
            bytes: vec![0; operands.len()],
            dtypes: operands.to_vec(),
            expression: expression.clone(),
            dtype: DType::I8,
        };
        let results = [left, right].map(|expression| {
            let results = part(expression).results().unwrap();
            assert_eq!(results, one_by_one(expression, operands), "{expression}");
            results
        });
        results[0] == results[1]
    }

    /// What an expression of bytes gives, computed for each of them as a whole.
    fn one_by_one(expression: &Expression, operands: &[DType]) -> Vec<i64> {
        let dtypes = expression.dtypes(operands).unwrap();
        let (low, high) = range(operands[0]);
        let (other_low, other_high) = operands.get(1).map_or((0, 0), |&dtype| range(dtype));
        let pairs = (low..=high).flat_map(|x| (other_low..=other_high).map(move |y| [x, y].map(Scalar::Integer)));
        let value = |operands: [Scalar; 2]| evaluate_scalar(expression, &dtypes, &operands, &mut Vec::new());
        pairs
            .map(|operands| match value(operands) {
                Scalar::Integer(value) => value,
                Scalar::Float(value) => panic!("{value}"),
            })
            .collect()
    }

    fn has_no_scale(expression: &Expression) -> bool {
        !expression.nodes().iter().any(|node| matches!(node, ScalarNode::Rescale(..)))
    }

    #[test]
    fn sums_of_rescaled_bytes_are_sums_of_multiples() {
        let mut generator = Generator::new(5);
        let mut found = 0;
        for _ in 0..30 {
            let mut number = |low: usize, high: usize| generator.range(low, high) as i64;
            let (zero, other, added) = (number(0, 255) - 128, number(0, 255) - 128, number(0, 255) - 128);
            let (first, last) = (number(1 << 30, (1 << 31) - 1), number(1 << 30, (1 << 31) - 1));
            let (low, shift) = (number(0, 40) - 128, number(31, 34));
            let text = format!(
                "cast_i8(minimum(maximum(add(rescale_twice(add(rescale_twice(shift_left(subtract(cast_i32(x0), \
                 {zero}_i32), 20_i32), {first}_i32, {shift}_i32), rescale_twice(shift_left(subtract(cast_i32(x1), \
                 {other}_i32), 20_i32), 1073741824_i32, 31_i32)), {last}_i32, 49_i32), {added}_i32), {low}_i32), 127_i32))"
            );
            let expression = Expression::parse(&text).unwrap();
            let operands = [DType::I8, DType::I8];
            let Some(sums) = rewritten(&expression, &operands) else { continue };
            found += 1;
            assert!(has_no_scale(&sums), "{sums}");
            assert!(are_alike(&expression, &sums, &operands), "{expression}\n{sums}");
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn bytes_of_another_scale_and_type_are_multiples() {
        for text in [
            "cast_i8(minimum(maximum(add(rescale_twice(subtract(cast_i32(x0), 5_i32), 1500000000_i32, 31_i32), -3_i32), -128_i32), 127_i32))",
            "cast_u8(minimum(maximum(rescale_once(cast_i32(x0), 1500000000_i32, 33_i32), 0_i32), 255_i32))",
            "cast_i8(rescale_once(cast_i32(x0), 1500000000_i32, 36_i32))",
        ] {
            let expression = Expression::parse(text).unwrap();
            for dtype in [DType::I8, DType::U8] {
                let sums = rewritten(&expression, &[dtype]).unwrap_or_else(|| panic!("{text} of {dtype}"));
                assert!(has_no_scale(&sums) && are_alike(&expression, &sums, &[dtype]), "{sums}");
            }
        }
    }

    #[test]
    fn parts_of_epilogues_are_rewritten_where_only_bytes_meet() {
        let text = "cast_i8(minimum(maximum(rescale_twice(add(rescale_twice(shift_left(cast_i32(cast_i8(minimum(maximum(\
                    rescale_twice(x0, 1500000000_i32, 40_i32), -128_i32), 127_i32))), 20_i32), 1500000000_i32, 32_i32), \
                    rescale_twice(shift_left(cast_i32(x1), 20_i32), 1073741824_i32, 31_i32)), 1098017566_i32, 50_i32), \
                    -128_i32), 127_i32))";
        let expression = Expression::parse(text).unwrap();
        let sums = rewritten(&expression, &[DType::I32, DType::I8]).unwrap();
        let scales = sums.nodes().iter().filter(|node| matches!(node, ScalarNode::Rescale(..))).count();
        assert_eq!(scales, 1, "{sums}");
        let (before, after) = [&expression, &sums].map(|own| own.dtypes(&[DType::I32, DType::I8]).unwrap()).into();
        let mut generator = Generator::new(6);
        for _ in 0..20_000 {
            let operands = [generator.range(0, 1 << 18) as i64 - (1 << 17), generator.range(0, 255) as i64 - 128];
            let operands = operands.map(Scalar::Integer);
            let value = |own: &Expression, dtypes: &[DType]| evaluate_scalar(own, dtypes, &operands, &mut Vec::new());
            assert_eq!(value(&expression, &before), value(&sums, &after));
        }
    }

    #[test]
    fn what_is_no_plane_stays() {
        for text in [
            // A product, a square, and limits between the roundings.
            "cast_i8(minimum(maximum(rescale_twice(multiply(cast_i32(x0), cast_i32(x1)), 1500000000_i32, 40_i32), -128_i32), 127_i32))",
            "cast_i8(minimum(maximum(rescale_twice(multiply(cast_i32(x0), cast_i32(x0)), 1500000000_i32, 40_i32), -128_i32), 127_i32))",
            "cast_i8(minimum(maximum(rescale_twice(add(maximum(rescale_twice(shift_left(cast_i32(x0), 20_i32), 1500000000_i32, 33_i32), 7_i32), shift_left(cast_i32(x1), 20_i32)), 1500000000_i32, 51_i32), -128_i32), 127_i32))",
            // As few instructions as a sum would be.
            "cast_i8(minimum(maximum(add(cast_i32(x0), cast_i32(x1)), -128_i32), 127_i32))",
        ] {
            let expression = Expression::parse(text).unwrap();
            assert_eq!(rewritten(&expression, &[DType::I8, DType::I8]), None, "{text}");
        }
    }
}
