//! Numbers that pass through a narrow integer type and come back, as those of quantised models do between two operators:
//! computed without leaving floating-point arithmetic, so that all lanes of a vector can be computed at once.
//!
//! `cast_f32(cast_i8(x))` becomes `select(x == x, truncate(minimum(maximum(x, -128), 127)) + 0, 0)`, the same number for every
//! x, without the parts that x is known not to need. What an integer is never comes back as the negative zero, hence the
//! addition.

use super::KernelWriter;
use super::arithmetic::epilogue_dtypes;
use mlc_ir::ops::Map;
use mlc_ir::scalar::{BinaryFunction, Expression, ExpressionBuilder, ScalarId, ScalarNode, UnaryFunction};
use mlc_ir::{DType, Literal, Op};

/// Replaces the round trips in the kernel's epilogue; gives the operator, a `map` without them.
pub fn without_round_trips(op: Op, kernel: &mut KernelWriter<'_>) -> Op {
    let dtypes = epilogue_dtypes(&op, kernel);
    if let Some(epilogue) = &mut kernel.epilogue {
        epilogue.expression = in_floats(&epilogue.expression, &dtypes);
    }
    let Op::Map(map) = &op else { return op };
    let dtypes: Vec<DType> = kernel.operands.iter().map(|operand| operand.view.dtype).collect();
    Map { expression: in_floats(&map.expression, &dtypes) }.into()
}

/// The expression without round trips and without conversions of small literals.
fn in_floats(expression: &Expression, operands: &[DType]) -> Expression {
    let Ok(dtypes) = expression.dtypes(operands) else { return expression.clone() };
    let nodes = expression.nodes();
    let facts = facts(nodes);
    Expression::build(|b| {
        let mut ids: Vec<ScalarId> = Vec::new();
        for node in nodes {
            let id = match *node {
                ScalarNode::Cast(to, x) => match nodes[x as usize] {
                    ScalarNode::Literal(Literal::Integer(from, value)) if holds(to, from) => {
                        b.literal(Literal::float(to, value as f64))
                    }
                    ScalarNode::Cast(through, inner) if holds(to, through) && dtypes[inner as usize] == to => {
                        round_trip(b, ids[inner as usize], &facts[inner as usize], to, through)
                    }
                    _ => b.cast(to, ids[x as usize]),
                },
                node => b.push(node.map_children(|child| ids[child as usize])),
            };
            ids.push(id);
        }
        ids.last().copied().unwrap_or(0)
    })
}

/// Whether a floating-point type has all values of an integer type.
fn holds(float: DType, integer: DType) -> bool {
    let digits = match float {
        DType::F32 => 24,
        DType::F64 => 53,
        _ => 0,
    };
    integer.is_integer() && integer != DType::Bool && integer.size() * 8 <= digits
}

/// The step `x`, of which a fact is known, through an integer type and back.
fn round_trip(b: &mut ExpressionBuilder, x: ScalarId, fact: &Fact, float: DType, through: DType) -> ScalarId {
    let (low, high) = through.integer_range(8 * through.size());
    let mut value = x;
    if fact.low < low {
        let low = b.literal(Literal::float(float, low));
        value = b.binary(BinaryFunction::Maximum, value, low);
    }
    if fact.high > high {
        let high = b.literal(Literal::float(float, high));
        value = b.binary(BinaryFunction::Minimum, value, high);
    }
    if !fact.whole {
        value = b.unary(UnaryFunction::Truncate, value);
    }
    let zero = b.literal(Literal::float(float, 0.0));
    if !fact.whole || fact.negative_zero {
        value = b.binary(BinaryFunction::Add, value, zero);
    }
    if !fact.nan {
        return value;
    }
    let is_number = b.binary(BinaryFunction::Equal, x, x);
    b.select(is_number, value, zero)
}

/// What is known of a step's value.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fact {
    /// No number is less.
    low: f64,
    /// No number is greater.
    high: f64,
    /// Every number is an integer or infinite.
    whole: bool,
    /// It may be the negative zero.
    negative_zero: bool,
    /// It may be NaN.
    nan: bool,
}

const NOTHING: Fact =
    Fact { low: f64::NEG_INFINITY, high: f64::INFINITY, whole: false, negative_zero: true, nan: true };

/// What is known of each step.
fn facts(nodes: &[ScalarNode]) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for node in nodes {
        facts.push(fact(node, &facts));
    }
    facts
}

fn fact(node: &ScalarNode, facts: &[Fact]) -> Fact {
    use BinaryFunction as B;
    use UnaryFunction as U;
    let of = |x: ScalarId| facts[x as usize];
    match *node {
        ScalarNode::Literal(literal) => {
            let value = literal.to_f64();
            if value.is_nan() {
                return NOTHING;
            }
            let negative_zero = value == 0.0 && value.is_sign_negative();
            Fact { low: value, high: value, whole: value.fract() == 0.0, negative_zero, nan: false }
        }
        ScalarNode::Cast(to, _) if to.is_integer() && to != DType::Bool && to.size() <= 4 => {
            let (low, high) = to.integer_range(8 * to.size());
            Fact { low, high, whole: true, negative_zero: false, nan: false }
        }
        // A float type of an integer: exactly that, or nothing is said.
        ScalarNode::Cast(DType::F32 | DType::F64, x) if of(x).whole && of(x).high <= 2f64.powi(24) => of(x),
        ScalarNode::Unary(U::Round | U::Truncate | U::Floor | U::Ceil, x) => {
            let Fact { low, high, nan, .. } = of(x);
            Fact { low: low.floor(), high: high.ceil(), whole: true, negative_zero: true, nan }
        }
        ScalarNode::Unary(U::Relu, x) => Fact { low: of(x).low.max(0.0), high: of(x).high.max(0.0), ..of(x) },
        // A sum is the negative zero only if both of its terms are.
        ScalarNode::Binary(B::Add, x, y) => Fact {
            whole: of(x).whole && of(y).whole,
            negative_zero: of(x).negative_zero && of(y).negative_zero,
            ..NOTHING
        },
        ScalarNode::Binary(B::Subtract, x, y) => Fact { whole: of(x).whole && of(y).whole, ..NOTHING },
        ScalarNode::Binary(function @ (B::Maximum | B::Minimum), x, y) => {
            let (x, y) = (of(x), of(y));
            let choose = if function == B::Maximum { f64::max } else { f64::min };
            Fact {
                low: choose(x.low, y.low),
                high: choose(x.high, y.high),
                whole: x.whole && y.whole,
                negative_zero: x.negative_zero || y.negative_zero,
                nan: x.nan || y.nan,
            }
        }
        ScalarNode::Select(_, x, y) => {
            let (x, y) = (of(x), of(y));
            Fact {
                low: x.low.min(y.low),
                high: x.high.max(y.high),
                whole: x.whole && y.whole,
                negative_zero: x.negative_zero || y.negative_zero,
                nan: x.nan || y.nan,
            }
        }
        _ => NOTHING,
    }
}
