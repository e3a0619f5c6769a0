//! Fusion: elementwise operators into one `map`, or into the epilogue of the anchor whose result they work on.
//!
//! Proposing every convex part of an elementwise graph would explode. From each elementwise form of each value, a cone of
//! operators is taken in, and again cones that end where something outside could need the value anyway, where an anchor can
//! compute it, or where it is narrower than what it is made of: at all such values, and at each of them. Which of these pays, and whether
//! anything outside does need the value, is the extractor's decision.

use super::cones::Seen;
use crate::egraph::maps::Set;
use crate::rewrite::{Application, Class, Exactness, Rule, Search, Term, View, Watch};
use crate::sketch::{Sketch, binary, unary};
use mlc_ir::ops::{Kernel, Map};
use mlc_ir::scalar::{BinaryFunction as B, Expression, UnaryFunction as U};
use mlc_ir::{DType, Generator, Graph, Value};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule {
        name: "fuse-elementwise-chain",
        exactness: Exactness::Exact,
        reason: "a scalar expression of scalar expressions is one",
        search: Search::Watch(|| Box::new(Chains::default())),
        sample: sample_chain,
    },
    Rule {
        name: "fuse-epilogue",
        exactness: Exactness::Exact,
        reason: "an elementwise operator maps the anchor's result element for element",
        search: Search::Watch(|| Box::new(Epilogues::default())),
        sample: sample_epilogue,
    },
];

#[derive(Default)]
struct Chains(Seen);

impl Watch for Chains {
    fn find(&mut self, view: &dyn View) -> Vec<(Class, Term)> {
        let mut found = Vec::new();
        self.0.each_new_cone(view, &mut |_, cone, expression, operands| {
            let (root, (_, own)) = (cone.keys()[0], cone[0]);
            let literals = own.len() > operands.len();
            if !operands.is_empty() && (cone.len() > 1 || literals) {
                let map = Map { expression: expression.clone() };
                found.push((root, Term::apply(map, operands.iter().copied().map(Term::from))));
            }
        });
        found
    }
}

#[derive(Default)]
struct Epilogues(Seen);

impl Watch for Epilogues {
    fn find(&mut self, view: &dyn View) -> Vec<(Class, Term)> {
        let mut found = Vec::new();
        self.0.each_new_cone(view, &mut |forms, cone, expression, operands| {
            let root = cone.keys()[0];
            for &operand in operands.iter().filter(|&&operand| view.ty(operand).shape == view.ty(root).shape) {
                let anchors = forms.anchors(operand);
                found.extend(anchors.iter().map(|anchor| (root, kernel(anchor, operand, expression, operands))));
            }
        });
        found
    }
}

/// The kernel of an anchor that computes `operand`, with an epilogue over all `operands`.
fn kernel(anchor: &Application<'_>, operand: Class, expression: &Expression, operands: &Set<Class>) -> Term {
    let place = operands.get_index_of(&operand).unwrap_or(0) as u32;
    let expression = expression.renumber(|k| match k.cmp(&place) {
        std::cmp::Ordering::Less => k + 1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => k,
    });
    let own = anchor.operands.iter().copied();
    let further = operands.iter().copied().filter(|&other| other != operand);
    let op = Kernel { anchor: Box::new(anchor.op.clone()), anchor_operands: anchor.operands.len(), expression };
    Term::apply(op, own.chain(further).map(Term::from))
}

/// A random chain of elementwise operators behind `x`, some of whose values are used twice.
fn elementwise_tail(s: &mut Sketch<'_>, x: Value) -> Value {
    let shape = s.shape(x);
    let mut values = vec![x];
    for _ in 0..s.random.range(2, 5) {
        let recent = *values.last().unwrap_or(&x);
        let next = match s.random.range(0, 4) {
            0 => {
                let other = s.random.choose(&values);
                s.apply(binary(B::Add), &[recent, other])
            }
            1 => {
                let scale = s.random.unit() + 1.5;
                let scale = s.splat(DType::F32, &[1], scale);
                s.apply(binary(B::Multiply), &[recent, scale])
            }
            2 => {
                let narrower = s.random.broadcastable(&shape);
                let bias = s.constant(&narrower);
                s.apply(binary(B::Add), &[recent, bias])
            }
            3 => {
                let other = s.input(&shape);
                s.apply(binary(B::Subtract), &[recent, other])
            }
            _ => {
                let function = s.random.choose(&[U::Relu, U::Sigmoid, U::Tanh, U::Absolute]);
                s.apply(unary(function), &[recent])
            }
        };
        values.push(next);
    }
    *values.last().unwrap_or(&x)
}

fn sample_chain(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 4);
    let x = s.input(&shape);
    let y = elementwise_tail(&mut s, x);
    s.finish(y)
}

fn sample_epilogue(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let x = s.input(&shape);
    let anchor = if s.random.one_in(3) {
        let axes = vec![s.random.range(0, shape.len() - 1)];
        let function = s.random.choose(&[mlc_ir::ops::ReduceFunction::Sum, mlc_ir::ops::ReduceFunction::Maximum]);
        let keep_axes = s.random.one_in(2);
        s.apply(mlc_ir::ops::Reduce { function, axes, keep_axes }, &[x])
    } else {
        let (op, weights) = s.convolution(&shape, true);
        let weights = s.constant(&weights);
        s.apply(op, &[x, weights])
    };
    let y = elementwise_tail(&mut s, anchor);
    s.finish(y)
}
