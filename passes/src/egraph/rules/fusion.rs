//! Fusion: elementwise operators into one `map`, or into the epilogue of the anchor whose result they work on.
//!
//! Proposing every convex part of an elementwise graph would explode. From each elementwise form of each value, a cone of
//! operators is taken in, and again cones that end where something outside could need the value anyway, or where an anchor can
//! compute it: at all such values, and at each of them. Which of these pays, and whether anything outside does need the value, is the extractor's decision.

use crate::rewrite::{Application, Class, Exactness, Rule, Search, Term, View};
use crate::sketch::{Sketch, binary, unary};
use indexmap::{IndexMap, IndexSet};
use mlc_ir::ops::{Kernel, Map};
use mlc_ir::scalar::{BinaryFunction as B, Expression, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::{Category, DType, Generator, Graph, Op, Value};
use petgraph::algo::is_cyclic_directed;
use petgraph::graph::DiGraph;

/// Operators that one map or epilogue takes at most.
const CONE: usize = 32;
/// Of the values at which a cone may end, so many are tried as the only one.
const ENDS: usize = 4;
/// Forms of a value that are looked at.
const FORMS: usize = 4;

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

/// A way to compute a value element by element, and from what.
type Form = (Expression, Vec<Class>);

/// Operators that are taken in: the form of each, that of the root first.
type Cone<'a> = IndexMap<Class, &'a Form>;

/// The ways to compute each value element by element, and what could need it.
struct Forms<'v> {
    view: &'v dyn View,
    elementwise: IndexMap<Class, Vec<Form>>,
    users: IndexMap<Class, IndexSet<Class>>,
    /// Of the graph that was chosen earlier, values whose form, the first one, is elementwise.
    chosen: IndexSet<Class>,
    /// Who uses a value in that graph.
    chosen_users: IndexMap<Class, IndexSet<Class>>,
}

impl<'v> Forms<'v> {
    fn new(view: &'v dyn View) -> Self {
        let (elementwise, users) = (IndexMap::new(), IndexMap::new());
        let mut forms = Forms { view, elementwise, users, chosen: IndexSet::new(), chosen_users: IndexMap::new() };
        let mut views: Vec<(Class, Class)> = Vec::new();
        for class in view.classes().into_iter().filter(|&class| !view.is_constant(class)) {
            let applications = view.applications(class);
            let computing = applications.iter().filter(|application| application.op.category() != Category::View);
            let least = computing.map(|application| fused_size(application.op)).min();
            let unfused = applications.iter().filter(|application| {
                application.op.category() == Category::View || Some(fused_size(application.op)) == least
            });
            if let Some(first) = unfused.clone().next().filter(|_| view.is_chosen(class)) {
                for &operand in first.operands {
                    forms.chosen_users.entry(operand).or_default().insert(class);
                }
                if first.op.category() == Category::Elementwise {
                    forms.chosen.insert(class);
                }
            }
            unfused.for_each(|application| match application.op.category() {
                Category::View => views.push((application.operands[0], class)),
                category => forms.add(class, application, category == Category::Elementwise),
            });
        }
        for (operand, class) in views {
            // What is elementwise in one layout is so in the other, and needs nothing there.
            let is_read = forms
                .users
                .get(&class)
                .is_some_and(|users| users.iter().any(|user| !forms.elementwise.contains_key(user)));
            if is_read || view.is_output(class) {
                forms.users.entry(operand).or_default().insert(class);
            }
        }
        forms.chosen.retain(|class| forms.elementwise.contains_key(class));
        forms
    }

    fn add(&mut self, class: Class, application: &Application<'_>, is_elementwise: bool) {
        for &operand in application.operands {
            self.users.entry(operand).or_default().insert(class);
        }
        let types = || application.operands.iter().map(|&operand| self.view.ty(operand).clone()).collect::<Vec<_>>();
        // A value that was found equal to an operand of its own (`relu` of a `relu`) isn't computed by that form.
        let is_own = application.operands.contains(&class);
        if is_elementwise
            && !is_own
            && let Some(expression) = application.op.expression(&types())
        {
            let forms = self.elementwise.entry(class).or_default();
            if forms.len() < FORMS {
                forms.push((expression, application.operands.to_vec()));
            }
        }
    }

    /// Elementwise operators that a form of `root` can absorb, but for values at which the cone ends; `inner` is the form of a value
    /// within.
    fn cone<'a>(
        &'a self,
        root: Class,
        form: &'a Form,
        inner: &dyn Fn(Class, &Cone<'_>) -> Option<&'a Form>,
        ends: &dyn Fn(Class) -> bool,
    ) -> Cone<'a> {
        let mut cone = Cone::from([(root, form)]);
        let mut next = 0;
        while next < cone.len() {
            for &operand in &cone[next].1 {
                let is_new = cone.len() < CONE && !cone.contains_key(&operand) && !ends(operand);
                if is_new
                    && self.view.ty(operand).shape == self.view.ty(root).shape
                    && let Some(form) = inner(operand, &cone)
                {
                    cone.insert(operand, form);
                }
            }
            next += 1;
        }
        cone
    }

    /// The cones of a form of a value that are worth looking at, if all that can be computed is needed.
    fn cones<'a>(&'a self, root: Class, form: &'a Form) -> Vec<Cone<'a>> {
        let inner = |class: Class, cone: &Cone<'_>| {
            let forms = self.elementwise.get(&class)?.iter();
            let mut apart = forms.filter(|(_, operands)| operands.iter().all(|operand| !cone.contains_key(operand)));
            let of_anchor = |(_, operands): &&Form| operands.iter().any(|&operand| !self.anchors(operand).is_empty());
            apart.clone().find(of_anchor).or_else(|| apart.next())
        };
        let all = self.cone(root, form, &inner, &|_| false);
        let is_end =
            |class: &Class| is_needed(self.view, &self.users, *class, &all) || !self.anchors(*class).is_empty();
        let ends: Vec<Class> = all.keys().skip(1).copied().filter(is_end).collect();
        let mut cones = vec![self.cone(root, form, &inner, &|class| ends.contains(&class))];
        for &end in ends.iter().take(ENDS) {
            cones.push(self.cone(root, form, &inner, &|class| class == end));
        }
        cones.push(all);
        cones
    }

    /// The cones of a value in the graph that was chosen earlier: with what nobody else needs there, and with all.
    fn chosen_cones(&self, root: Class) -> Vec<Cone<'_>> {
        let form = |class: Class| self.chosen.get(&class).map(|class| &self.elementwise[class][0]);
        let Some(own) = form(root) else { return Vec::new() };
        let inner = |class: Class, _: &Cone<'_>| form(class);
        let all = self.cone(root, own, &inner, &|_| false);
        let mut ends: IndexSet<Class> = IndexSet::new();
        loop {
            let cone = self.cone(root, own, &inner, &|class| ends.contains(&class));
            let before = ends.len();
            let mut inside = cone.keys().skip(1);
            ends.extend(inside.find(|&&class| is_needed(self.view, &self.chosen_users, class, &cone)));
            if ends.len() == before {
                return vec![cone, all];
            }
        }
    }

    fn anchors(&self, class: Class) -> Vec<Application<'v>> {
        let anchors = self.view.applications(class).into_iter();
        anchors.filter(|application| application.op.category() == Category::Accumulation).take(FORMS).collect()
    }

    /// The expression of a cone, and its operands in the order in which the expression numbers them; `None` where forms need
    /// each other, as those of a graph chosen earlier do once values of it have been found equal.
    fn fused(&self, cone: &Cone<'_>) -> Option<(Expression, IndexSet<Class>)> {
        let place = |class: &Class| cone.get_index_of(class).map(|place| place as u32);
        let edges = cone
            .values()
            .zip(0_u32..)
            .flat_map(|((_, operands), user)| operands.iter().filter_map(place).map(move |operand| (operand, user)));
        (!is_cyclic_directed(&DiGraph::<(), ()>::from_edges(edges))).then(|| {
            let mut operands = IndexSet::new();
            let root = cone.keys()[0];
            let expression = Expression::build(|b| self.inline(cone, root, b, &mut IndexMap::new(), &mut operands));
            (expression, operands)
        })
    }

    fn inline(
        &self,
        cone: &Cone<'_>,
        class: Class,
        b: &mut ExpressionBuilder,
        known: &mut IndexMap<Class, ScalarId>,
        operands: &mut IndexSet<Class>,
    ) -> ScalarId {
        if let Some(&id) = known.get(&class) {
            return id;
        }
        let id = if let Some((expression, inner)) = cone.get(&class) {
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

/// Whether something outside a cone could need a value of it.
fn is_needed(view: &dyn View, users: &IndexMap<Class, IndexSet<Class>>, class: Class, cone: &Cone<'_>) -> bool {
    let outside = |users: &IndexSet<Class>| users.iter().any(|user| !cone.contains_key(user));
    view.is_output(class) || users.get(&class).is_some_and(outside)
}

/// Zero for operators as they came in, else how much a rule has fused already.
fn fused_size(op: &Op) -> usize {
    match op {
        Op::Map(map) => map.expression.nodes().len(),
        Op::Kernel(kernel) => 1000 + kernel.expression.nodes().len(),
        _ => 0,
    }
}

/// Is told a cone, its expression and its operands.
type Found<'a> = dyn FnMut(&Forms<'_>, &Cone<'_>, &Expression, &IndexSet<Class>) + 'a;

/// Every cone with its expression and operands.
fn each_cone(view: &dyn View, found: &mut Found<'_>) {
    let forms = Forms::new(view);
    for (&root, own) in &forms.elementwise {
        let mut seen: Vec<(Expression, IndexSet<Class>)> = Vec::new();
        for cone in forms.chosen_cones(root).into_iter().chain(own.iter().flat_map(|form| forms.cones(root, form))) {
            let Some(fused) = forms.fused(&cone) else { continue };
            if !seen.contains(&fused) {
                found(&forms, &cone, &fused.0, &fused.1);
                seen.push(fused);
            }
        }
    }
}

fn fuse_chains(view: &dyn View) -> Vec<(Class, Term)> {
    let mut found = Vec::new();
    each_cone(view, &mut |_, cone, expression, operands| {
        let (root, (_, own)) = (cone.keys()[0], cone[0]);
        let literals = own.len() > operands.len();
        if !operands.is_empty() && (cone.len() > 1 || literals) {
            let map = Map { expression: expression.clone() };
            found.push((root, Term::apply(map, operands.iter().copied().map(Term::from))));
        }
    });
    found
}

fn fuse_epilogues(view: &dyn View) -> Vec<(Class, Term)> {
    let mut found = Vec::new();
    each_cone(view, &mut |forms, cone, expression, operands| {
        let root = cone.keys()[0];
        for &operand in operands.iter().filter(|&&operand| view.ty(operand).shape == view.ty(root).shape) {
            let anchors = forms.anchors(operand);
            found.extend(anchors.iter().map(|anchor| (root, kernel(anchor, operand, expression, operands))));
        }
    });
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
