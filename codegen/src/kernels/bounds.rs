//! What is known of the size of integers: of constants, of sums of products, of the steps of an expression.

use crate::loops::Known;
use mlc_ir::scalar::{BinaryFunction as B, Expression, Rounding, ScalarNode, UnaryFunction};
use mlc_ir::{Attribute, DType, Literal};

/// The smallest and the largest number that an integer can be.
pub type Bounds = (i64, i64);

/// Those of any integer.
pub const ANYTHING: Bounds = (i64::MIN, i64::MAX);

/// Those of a type; of no use for unsigned numbers of 64 bits, and for floats.
fn of_dtype(dtype: DType) -> Bounds {
    match dtype.size() {
        _ if !dtype.is_integer() => (i64::MIN, i64::MAX),
        size @ (1 | 2 | 4) => {
            let (low, high) = dtype.integer_range(8 * size);
            (low as i64, high as i64)
        }
        _ => (i64::MIN, i64::MAX),
    }
}

fn of_constant(constant: &Attribute) -> Option<Bounds> {
    if !constant.ty().dtype.is_integer() {
        return None;
    }
    let numbers = constant.to_tensor().to_integers();
    Some((*numbers.iter().min()?, *numbers.iter().max()?))
}

/// Those of the elements of a tensor, which may be constant.
pub fn of_elements(dtype: DType, constant: Option<&Attribute>) -> Bounds {
    constant.and_then(of_constant).unwrap_or_else(|| of_dtype(dtype))
}

/// Those of sums of so many products of two numbers.
pub fn of_sums(steps: usize, x: Bounds, weights: Bounds) -> Option<Bounds> {
    let corners = products(x, weights)?;
    let all = |one: i64| one.checked_mul(steps as i64);
    within((all(corners.0.min(0))?, all(corners.1.max(0))?), DType::I32)
}

/// The integer that a conversion is one of in the end: one whose numbers a narrower type, which it went through, has all.
pub fn kept(nodes: &[ScalarNode], dtypes: &[DType], steps: &[Bounds], x: u32) -> Option<u32> {
    let ScalarNode::Cast(narrow, inner) = nodes[x as usize] else { return None };
    let is_integer = dtypes[inner as usize].is_integer() && narrow.is_integer() && narrow.size() <= 4;
    (is_integer && within(steps[inner as usize], narrow).is_some()).then_some(inner)
}

fn within(bounds: Bounds, dtype: DType) -> Option<Bounds> {
    let (low, high) = of_dtype(dtype);
    (low <= bounds.0 && bounds.1 <= high).then_some(bounds)
}

fn products(x: Bounds, y: Bounds) -> Option<Bounds> {
    let corners = [x.0.checked_mul(y.0)?, x.0.checked_mul(y.1)?, x.1.checked_mul(y.0)?, x.1.checked_mul(y.1)?];
    Some((*corners.iter().min()?, *corners.iter().max()?))
}

/// Bounds of all steps of an expression whose operands have some; of those that aren't listed, their types say them.
pub fn of_steps(expression: &Expression, dtypes: &[DType], operands: &[Bounds]) -> Vec<Bounds> {
    let mut steps: Vec<Bounds> = Vec::new();
    for (node, &dtype) in expression.nodes().iter().zip(dtypes) {
        let bounds = match *node {
            ScalarNode::Operand(k) => operands.get(k as usize).copied(),
            ScalarNode::Literal(Literal::Integer(_, value)) => Some((value, value)),
            ScalarNode::Cast(_, x) if dtypes[x as usize].is_integer() => Some(steps[x as usize]),
            ScalarNode::Binary(function, x, y) => binary(function, steps[x as usize], steps[y as usize]),
            ScalarNode::Select(_, x, y) => {
                let (x, y) = (steps[x as usize], steps[y as usize]);
                Some((x.0.min(y.0), x.1.max(y.1)))
            }
            ScalarNode::Unary(UnaryFunction::RoundToInteger, _) => Some((-(1 << 22), (1 << 22) - 1)),
            ScalarNode::Rescale(_, children) => rescaled(children.map(|child| steps[child as usize])),
            _ => None,
        };
        let known = bounds.filter(|_| dtype.is_integer()).and_then(|bounds| within(bounds, dtype));
        steps.push(known.unwrap_or_else(|| of_dtype(dtype)));
    }
    steps
}

fn binary(function: B, x: Bounds, y: Bounds) -> Option<Bounds> {
    match function {
        B::Add => Some((x.0.checked_add(y.0)?, x.1.checked_add(y.1)?)),
        B::Subtract => Some((x.0.checked_sub(y.1)?, x.1.checked_sub(y.0)?)),
        B::Multiply => products(x, y),
        B::Maximum => Some((x.0.max(y.0), x.1.max(y.1))),
        B::Minimum => Some((x.0.min(y.0), x.1.min(y.1))),
        B::ShiftLeft if y.0 == y.1 && (0..31).contains(&y.0) => products(x, (1 << y.0, 1 << y.0)),
        B::ShiftRight if y.0 == y.1 && (0..63).contains(&y.0) => Some((x.0 >> y.0, x.1 >> y.0)),
        _ => None,
    }
}

/// Of a shift to the right by at least the bits of the multiplier: no more than the number itself.
fn rescaled([x, multiplier, shift]: [Bounds; 3]) -> Option<Bounds> {
    let is_smaller = shift.0 >= 31 && shift.1 <= 62 && multiplier.0 >= 0 && multiplier.1 <= i64::from(i32::MAX);
    is_smaller.then(|| (x.0.min(0).saturating_sub(1), x.1.max(0).saturating_add(1)))
}

/// What is known of a rescaling of 32 bits.
pub fn known(rounding: Rounding, dtype: DType, [x, multiplier, shift]: [Bounds; 3]) -> Known {
    let is_small = -(1 << 30) <= x.0 && x.1 < 1 << 30;
    // The square of the least number has one bit more than all other products.
    let is_square = [x, multiplier].iter().all(|factor| factor.0 <= i64::from(i32::MIN));
    match rounding {
        Rounding::Once if is_square => Known::Nothing,
        _ if dtype != DType::I32 || shift.0 < 32 || shift.1 > 62 => Known::Nothing,
        Rounding::Twice if is_small => Known::Small,
        _ => Known::Right,
    }
}

/// Whether a small number can be rescaled at once with what is added: by sums of 64 bits that hold a product and both halves.
pub fn is_near([_, multiplier, shift]: [Bounds; 3]) -> bool {
    multiplier.0 >= 0 && shift.1 <= 52
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_within_their_bounds() {
        let expression = Expression::parse(
            "cast_i8(minimum(maximum(add(rescale_twice(add(x0, x1), 1073741824_i32, 40_i32), -7_i32), -128_i32), 127_i32))",
        )
        .unwrap();
        let dtypes = expression.dtypes(&[DType::I32, DType::I32]).unwrap();
        let steps = of_steps(&expression, &dtypes, &[(-1000, 1000), (-10, 20)]);
        assert!(steps.contains(&(-1010, 1020)));
        assert_eq!(steps.last(), Some(&(-128, 127)));
        let nodes = expression.nodes();
        let limited = nodes.len() as u32 - 1;
        assert_eq!(kept(nodes, &dtypes, &steps, limited), Some(limited - 1));
        let wide = Expression::parse("cast_i32(cast_i8(x0))").unwrap();
        let dtypes = wide.dtypes(&[DType::I32]).unwrap();
        assert_eq!(kept(wide.nodes(), &dtypes, &[(-128, 127); 3], 1), Some(0));
        assert_eq!(kept(wide.nodes(), &dtypes, &[(-129, 127); 3], 1), None);
        let rounded = wide.dtypes(&[DType::F32]).unwrap();
        assert_eq!(kept(wide.nodes(), &rounded, &[(-128, 127); 3], 1), None);
        // Of nothing but its type, a sum may be anything.
        assert!(of_steps(&expression, &dtypes, &[]).contains(&of_dtype(DType::I32)));
    }

    #[test]
    fn a_rescaling_is_simple_where_its_number_is_small() {
        let small = (-(1 << 30), (1 << 30) - 1);
        let of = |rounding, x, shift| known(rounding, DType::I32, [x, (0, 1), shift]);
        assert_eq!(of(Rounding::Twice, small, (32, 62)), Known::Small);
        assert_eq!(of(Rounding::Twice, (0, 1 << 30), (32, 62)), Known::Right);
        assert_eq!(of(Rounding::Once, small, (32, 40)), Known::Right);
        assert_eq!(of(Rounding::Twice, small, (31, 40)), Known::Nothing);
        assert_eq!(of(Rounding::Twice, small, (32, 63)), Known::Nothing);
        assert_eq!(known(Rounding::Twice, DType::I64, [small, (0, 1), (32, 40)]), Known::Nothing);
    }
}
