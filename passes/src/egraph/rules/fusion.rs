//! Fusion: elementwise operators into one `map`, or into the epilogue of the anchor whose result they work on.
//!
//! Proposing every convex part of an elementwise graph would explode. For each elementwise value two cones are looked at:
//! the one of operators that nobody else needs, and the one that also recomputes shared elementwise operators. Sharing
//! only limits what is proposed; whether recomputing pays is the extractor's decision.

use crate::rewrite::{Application, Class, Exactness, Rule, Search, Term, View};
use crate::sketch::{Sketch, binary, unary};
use indexmap::{IndexMap, IndexSet};
use mlc_ir::ops::{Kernel, Map};
use mlc_ir::scalar::{BinaryFunction as B, Expression, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::{Category, DType, Generator, Graph, Op, TensorType, Value};

/// Operators that one map or epilogue takes at most.
const CONE: usize = 32;
/// Of these at most so many recompute a shared value.
const RECOMPUTED: usize = 4;

/// See the module.
pub const RULES: &[Rule] = &[
    Rule {
        name: "fuse-elementwise-chain",
        exactness: Exactness::Exact,
        reason: "a scalar expression of scalar expressions is one",
        search: Search::Groups(fuse_chains),
        sample: sample_chain,
    },
    Rule {
        name: "fuse-epilogue",
        exactness: Exactness::Exact,
        reason: "an elementwise operator maps the anchor's result element for element",
        search: Search::Groups(fuse_epilogues),
        sample: sample_epilogue,
    },
];

/// One way to compute each value, and who uses it then.
struct Uses<'v> {
    view: &'v dyn View,
    elementwise: IndexMap<Class, (Expression, Vec<Class>)>,
    users: IndexMap<Class, IndexSet<Class>>,
}

impl<'v> Uses<'v> {
    fn new(view: &'v dyn View) -> Self {
        let mut uses = Uses { view, elementwise: IndexMap::new(), users: IndexMap::new() };
        for class in view.classes() {
            if view.is_constant(class) {
                continue;
            }
            let applications = view.applications(class);
            let Some(first) = applications.iter().min_by_key(|application| fused_size(application.op)) else {
                continue;
            };
            for &operand in first.operands {
                uses.users.entry(operand).or_default().insert(class);
            }
            let types: Vec<TensorType> = first.operands.iter().map(|&operand| view.ty(operand).clone()).collect();
            if first.op.category() == Category::Elementwise
                && let Some(expression) = first.op.expression(&types)
            {
                uses.elementwise.insert(class, (expression, first.operands.to_vec()));
            }
        }
        uses
    }

    /// Elementwise operators that `root` can absorb, `root` first. `recompute` also takes shared ones.
    fn cone(&self, root: Class, recompute: bool) -> IndexSet<Class> {
        let mut cone = IndexSet::from([root]);
        let mut recomputed = 0;
        loop {
            let before = cone.len();
            for index in 0..cone.len() {
                for &operand in self.elementwise[&cone[index]].1.iter() {
                    if cone.contains(&operand) || cone.len() >= CONE || !self.absorbable(root, operand) {
                        continue;
                    }
                    let private = !self.view.is_output(operand)
                        && self.users.get(&operand).is_some_and(|users| users.iter().all(|user| cone.contains(user)));
                    if private || (recompute && recomputed < RECOMPUTED) {
                        recomputed += usize::from(!private);
                        cone.insert(operand);
                    }
                }
            }
            if cone.len() == before {
                return cone;
            }
        }
    }

    fn absorbable(&self, root: Class, operand: Class) -> bool {
        self.elementwise.contains_key(&operand) && self.view.ty(operand).shape == self.view.ty(root).shape
    }

    /// The cones of a value that are worth looking at.
    fn cones(&self, root: Class) -> Vec<IndexSet<Class>> {
        let private = self.cone(root, false);
        let shared = self.cone(root, true);
        let differ = private.len() != shared.len();
        let mut cones = vec![private];
        if differ {
            cones.push(shared);
        }
        cones
    }

    /// The expression of a cone, and its operands in the order in which the expression numbers them.
    fn fused(&self, cone: &IndexSet<Class>) -> (Expression, IndexSet<Class>) {
        let mut operands = IndexSet::new();
        let expression = Expression::build(|b| self.inline(cone, cone[0], b, &mut IndexMap::new(), &mut operands));
        (expression, operands)
    }

    fn inline(
        &self,
        cone: &IndexSet<Class>,
        class: Class,
        b: &mut ExpressionBuilder,
        known: &mut IndexMap<Class, ScalarId>,
        operands: &mut IndexSet<Class>,
    ) -> ScalarId {
        if let Some(&id) = known.get(&class) {
            return id;
        }
        let id = if cone.contains(&class) {
            let (expression, inner) = &self.elementwise[&class];
            let ids: Vec<ScalarId> =
                inner.iter().map(|&operand| self.inline(cone, operand, b, known, operands)).collect();
            b.inline(expression, &ids)
        } else if let Some(literal) = self.view.splat(class) {
            b.literal(literal)
        } else {
            b.operand(operands.insert_full(class).0 as u32)
        };
        known.insert(class, id);
        id
    }
}

/// Zero for operators as they came in, else how much a rule has fused already.
fn fused_size(op: &Op) -> usize {
    match op {
        Op::Map(map) => map.expression.nodes().len(),
        Op::Kernel(kernel) => 1000 + kernel.expression.nodes().len(),
        _ => 0,
    }
}

fn fuse_chains(view: &dyn View) -> Vec<(Class, Term)> {
    let uses = Uses::new(view);
    let mut found = Vec::new();
    for &root in uses.elementwise.keys() {
        for cone in uses.cones(root) {
            let (expression, operands) = uses.fused(&cone);
            let literals = uses.elementwise[&root].1.len() > operands.len();
            if operands.is_empty() || (cone.len() == 1 && !literals) {
                continue;
            }
            found.push((root, Term::apply(Map { expression }, operands.into_iter().map(Term::from))));
        }
    }
    found
}

fn fuse_epilogues(view: &dyn View) -> Vec<(Class, Term)> {
    let uses = Uses::new(view);
    let mut found = Vec::new();
    for &root in uses.elementwise.keys() {
        for cone in uses.cones(root) {
            let (expression, operands) = uses.fused(&cone);
            for &operand in &operands {
                if view.ty(operand).shape != view.ty(root).shape {
                    continue;
                }
                let anchors = view.applications(operand);
                let anchor = anchors.iter().find(|application| application.op.category() == Category::Accumulation);
                found.extend(anchor.map(|anchor| (root, kernel(anchor, operand, &expression, &operands))));
            }
        }
    }
    found
}

/// The kernel of an anchor that computes `operand`, with an epilogue over all `operands`.
fn kernel(anchor: &Application<'_>, operand: Class, expression: &Expression, operands: &IndexSet<Class>) -> Term {
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
