//! Mutants: terms and operators with one thing changed, named by what was changed.

use crate::rewrite::{Class, Term, View};
use mlc_ir::ops::Binary;
use mlc_ir::scalar::{BinaryFunction as B, Expression, ScalarNode, UnaryFunction as U};
use mlc_ir::{Attribute, DType, FieldValue, Float, Literal, Op, Tensor};

/// Words that stand for a function or a mode in some operator.
const WORDS: &[&str] = &[
    "sum",
    "mean",
    "maximum",
    "minimum",
    "add",
    "subtract",
    "multiply",
    "divide",
    "negate",
    "relu",
    "tanh",
    "nearest",
    "linear",
    "half_pixel",
    "asymmetric",
    "reflect",
    "edge",
    "f32",
    "i8",
    "u8",
    "i32",
];

/// A mutant and its name, such as `0/transpose.permutation[1] swapped`.
type Mutant<T> = (String, T);

fn field(name: &str, value: &FieldValue) -> Vec<Mutant<FieldValue>> {
    let one = |what: &str, value: FieldValue| vec![(format!("{name}{what}"), value)];
    match value {
        FieldValue::Bool(value) => one(" negated", FieldValue::Bool(!value)),
        FieldValue::Integer(value) => {
            [one(" + 1", FieldValue::Integer(value + 1)), one(" - 1", FieldValue::Integer(value - 1))].concat()
        }
        FieldValue::Float(value) => one(" + 0.5", FieldValue::Float(Float(value.0 + 0.5))),
        FieldValue::Literal(literal) => {
            one(" + 1", FieldValue::Literal(Literal::of(literal.dtype(), literal.to_f64() + 1.0)))
        }
        FieldValue::Word(old) => {
            let others = WORDS.iter().filter(|word| *word != old);
            others.map(|word| (format!("{name} {old} -> {word}"), FieldValue::Word((*word).to_owned()))).collect()
        }
        FieldValue::Nested(_) => {
            let mutants = value.as_operator().into_iter().flat_map(operator);
            mutants.map(|(what, op)| (format!("{name}: {what}"), FieldValue::of_operator(op))).collect()
        }
        FieldValue::List(list) => list_field(name, list),
        FieldValue::Attribute(attribute) if attribute.ty().dtype.is_float() && attribute.ty().elements() > 0 => {
            let tensor = attribute.to_tensor();
            let floats: Vec<f64> = tensor.to_floats().iter().map(|value| value + 1.0).collect();
            one(
                " + 1",
                FieldValue::Attribute(Attribute::from_tensor(&Tensor::from_floats(tensor.ty().clone(), floats))),
            )
        }
        FieldValue::Expression(body) => {
            let mutants = expression(body).into_iter();
            mutants.map(|(what, body)| (format!("{name}: {what}"), FieldValue::Expression(body))).collect()
        }
        _ => Vec::new(),
    }
}

fn list_field(name: &str, list: &[FieldValue]) -> Vec<Mutant<FieldValue>> {
    let mut mutants = Vec::new();
    for index in 0..list.len() {
        for (name, mutant) in field(&format!("{name}[{index}]"), &list[index]) {
            let mut copy = list.to_vec();
            copy[index] = mutant;
            mutants.push((name, FieldValue::List(copy)));
        }
        if index > 0 && list[index] != list[index - 1] {
            let mut copy = list.to_vec();
            copy.swap(index, index - 1);
            mutants.push((format!("{name}[{index}] swapped"), FieldValue::List(copy)));
        }
    }
    mutants
}

/// The expression with one step changed.
fn expression(body: &Expression) -> Vec<Mutant<Expression>> {
    let nodes = body.nodes();
    let mut mutants: Vec<Mutant<Expression>> = Vec::new();
    let mut changed = |what: String, place: usize, node: ScalarNode| {
        let mutant = Expression::build(|b| {
            let mut map = Vec::new();
            for (index, old) in nodes.iter().enumerate() {
                let node = if index == place { node } else { *old };
                map.push(b.push(node.map_children(|child| map[child as usize])));
            }
            map.last().copied().unwrap_or(0)
        });
        if mutant != *body {
            mutants.push((what, mutant));
        }
    };
    let count = body.operand_count() as u32;
    for (place, node) in nodes.iter().enumerate() {
        match *node {
            ScalarNode::Operand(k) if count > 1 => {
                changed("another operand".into(), place, ScalarNode::Operand((k + 1) % count));
            }
            ScalarNode::Literal(literal) => {
                let larger = Literal::of(literal.dtype(), literal.to_f64() + 1.0);
                changed("literal + 1".into(), place, ScalarNode::Literal(larger));
            }
            ScalarNode::Unary(function, x) => {
                for other in [U::Negate, U::Relu, U::Tanh].into_iter().filter(|&other| other != function) {
                    changed(format!("{} -> {}", function.name(), other.name()), place, ScalarNode::Unary(other, x));
                }
            }
            ScalarNode::Binary(function, x, y) => {
                if !function.is_commutative() {
                    changed(format!("{} turned round", function.name()), place, ScalarNode::Binary(function, y, x));
                }
                for other in [B::Add, B::Multiply, B::Subtract].into_iter().filter(|&other| other != function) {
                    changed(format!("{} -> {}", function.name(), other.name()), place, ScalarNode::Binary(other, x, y));
                }
            }
            ScalarNode::Cast(old, x) => {
                for dtype in [DType::F32, DType::I32, DType::U8].into_iter().filter(|&dtype| dtype != old) {
                    changed(format!("cast to {old} -> {dtype}"), place, ScalarNode::Cast(dtype, x));
                }
            }
            ScalarNode::Select(c, x, y) => changed("select turned round".into(), place, ScalarNode::Select(c, y, x)),
            _ => {}
        }
    }
    mutants
}

/// The operator with one field changed.
pub(super) fn operator(op: &Op) -> Vec<Mutant<Op>> {
    let fields: Vec<(String, FieldValue)> =
        op.fields().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut mutants = Vec::new();
    for index in 0..fields.len() {
        for (name, mutant) in field(&format!("{}.{}", op.name(), fields[index].0), &fields[index].1) {
            let mut copy = fields.clone();
            copy[index].1 = mutant;
            mutants.extend(op.kind().with_fields(&copy).ok().map(|op| (name, op)));
        }
    }
    mutants
}

/// The term with one thing changed: a field, the order of operands, an operator left out, another value. `left` is what the
/// term replaces. Some of them no operator accepts.
pub(super) fn term(term: &Term, left: Class, view: &dyn View) -> Vec<Mutant<Term>> {
    let (op, operands) = match term {
        Term::Value(class) => {
            let same = |other: &Class| *other != *class && *other != left && view.ty(*other) == view.ty(*class);
            let others = view.classes().into_iter().filter(same);
            return others.map(|other| ("another value".to_owned(), Term::Value(other))).collect();
        }
        Term::Apply(op, operands) => (op, operands),
    };
    let mut mutants: Vec<Mutant<Term>> =
        operator(op).into_iter().map(|(name, op)| (name, Term::Apply(Box::new(op), operands.clone()))).collect();
    let commutes = matches!(&**op, Op::Binary(Binary { function }) if function.is_commutative());
    for k in 1..operands.len() {
        if !commutes && operands[k] != operands[k - 1] {
            let mut copy = operands.clone();
            copy.swap(k, k - 1);
            mutants.push((
                format!("{} with operands {} and {k} swapped", op.name(), k - 1),
                Term::Apply(op.clone(), copy),
            ));
        }
    }
    for (index, operand) in operands.iter().enumerate() {
        mutants.push((format!("operand {index} of {} alone", op.name()), operand.clone()));
        for (name, mutant) in self::term(operand, left, view) {
            let mut copy = operands.clone();
            copy[index] = mutant;
            mutants.push((format!("{index}/{name}"), Term::Apply(op.clone(), copy)));
        }
    }
    mutants
}
