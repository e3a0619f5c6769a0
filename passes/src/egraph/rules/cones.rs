//! Cones: the elementwise operators behind a value that one map or epilogue could take in, and what is left of a program to look at
//! when some of it has been looked at before.

use crate::egraph::maps::{Map, Set};
use crate::rewrite::{Application, Class, View};
use mlc_ir::scalar::{Expression, ExpressionBuilder, ScalarId};
use mlc_ir::{Category, Op};
use petgraph::algo::is_cyclic_directed;
use petgraph::graph::DiGraph;

/// Operators that one map or epilogue takes at most.
const CONE: usize = 32;
/// Of the values at which a cone may end, so many are tried as the only one.
const ENDS: usize = 4;
/// Results of anchors that a cone joins at most: two for each gate of a recurrent cell. In a chain of residual blocks, all that is elementwise is
/// one cone, with an anchor for each block; what joins more of them is never worth it, and there would be as many such kernels as pairs of blocks.
const JOINED: usize = 8;
/// Forms of a value that are looked at.
const FORMS: usize = 4;

/// A way to compute a value element by element, and from what.
pub(super) type Form = (Expression, Vec<Class>);

/// Operators that are taken in: the form of each, that of the root first.
pub(super) type Cone<'a> = Map<Class, &'a Form>;

/// The ways to compute each value element by element, and what could need it.
pub(super) struct Forms<'v> {
    view: &'v dyn View,
    seen: Seen,
    /// Who uses a value in that graph.
    chosen_users: Map<Class, Set<Class>>,
}

impl<'v> Forms<'v> {
    fn new(view: &'v dyn View) -> Self {
        let mut forms = Forms { view, seen: Seen::default(), chosen_users: Map::default() };
        let mut views: Vec<(Class, Class)> = Vec::new();
        for class in view.classes().into_iter().filter(|&class| !view.is_constant(class)) {
            let applications = view.applications(class);
            let anchors = applications.iter().filter(|application| is_anchor(application)).take(FORMS);
            let anchors: Vec<Vec<Class>> = anchors.map(|anchor| anchor.operands.to_vec()).collect();
            if !anchors.is_empty() {
                forms.seen.anchors.insert(class, anchors);
            }
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
                    forms.seen.chosen.insert(class);
                }
            }
            unfused.for_each(|application| match application.op.category() {
                Category::View => views.push((application.operands[0], class)),
                category => forms.add(class, application, category == Category::Elementwise),
            });
        }
        for (operand, class) in views {
            // What is elementwise in one layout is so in the other, and needs nothing there.
            let seen = &forms.seen;
            let users = seen.users.get(&class);
            let is_read = users.is_some_and(|users| users.iter().any(|user| !seen.elementwise.contains_key(user)));
            if is_read || view.is_output(class) {
                forms.seen.users.entry(operand).or_default().insert(class);
            }
        }
        forms.seen.chosen.retain(|class| forms.seen.elementwise.contains_key(class));
        forms
    }

    fn add(&mut self, class: Class, application: &Application<'_>, is_elementwise: bool) {
        for &operand in application.operands {
            self.seen.users.entry(operand).or_default().insert(class);
        }
        let types = || application.operands.iter().map(|&operand| self.view.ty(operand).clone()).collect::<Vec<_>>();
        // A value that was found equal to an operand of its own (`relu` of a `relu`) isn't computed by that form.
        let is_own = application.operands.contains(&class);
        if is_elementwise
            && !is_own
            && let Some(expression) = application.op.expression(&types())
        {
            let forms = self.seen.elementwise.entry(class).or_default();
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
        let mut cone = Cone::default();
        cone.insert(root, form);
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
            let forms = self.seen.elementwise.get(&class)?.iter();
            let mut apart = forms.filter(|(_, operands)| operands.iter().all(|operand| !cone.contains_key(operand)));
            let of_anchor =
                |(_, operands): &&Form| operands.iter().any(|&operand| self.seen.anchors.contains_key(&operand));
            apart.clone().find(of_anchor).or_else(|| apart.next())
        };
        let all = self.cone(root, form, &inner, &|_| false);
        let is_end = |class: &Class| {
            is_needed(self.view, &self.seen.users, *class, &all)
                || self.seen.anchors.contains_key(class)
                || self.is_narrowed(*class)
        };
        let ends: Vec<Class> = all.keys().skip(1).copied().filter(is_end).collect();
        if ends.is_empty() {
            return vec![all];
        }
        let mut cones = vec![self.cone(root, form, &inner, &|class| ends.contains(&class))];
        for &end in ends.iter().take(ENDS) {
            cones.push(self.cone(root, form, &inner, &|class| class == end));
        }
        cones.push(all);
        cones
    }

    /// Whether a value takes less memory than one that it is computed from: kept, it is read by less than what it was made of.
    fn is_narrowed(&self, class: Class) -> bool {
        let size = |class: Class| self.view.ty(class).dtype.size();
        let mut forms = self.seen.elementwise.get(&class).into_iter().flatten();
        forms.any(|(_, operands)| operands.iter().any(|&operand| size(operand) > size(class)))
    }

    /// The cones of a value in the graph that was chosen earlier: with what nobody else needs there, and with all.
    fn chosen_cones(&self, root: Class) -> Vec<Cone<'_>> {
        let form = |class: Class| self.seen.chosen.get(&class).map(|class| &self.seen.elementwise[class][0]);
        let Some(own) = form(root) else { return Vec::new() };
        let inner = |class: Class, _: &Cone<'_>| form(class);
        let all = self.cone(root, own, &inner, &|_| false);
        let mut ends: Set<Class> = Set::default();
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

    pub(super) fn anchors(&self, class: Class) -> Vec<Application<'v>> {
        let anchors = self.view.applications(class).into_iter();
        anchors.filter(is_anchor).take(FORMS).collect()
    }

    /// The expression of a cone, and its operands in the order in which the expression numbers them; `None` where forms need
    /// each other, as those of a graph chosen earlier do once values of it have been found equal.
    fn fused(&self, cone: &Cone<'_>) -> Option<(Expression, Set<Class>)> {
        let place = |class: &Class| cone.get_index_of(class).map(|place| place as u32);
        let edges = cone
            .values()
            .zip(0_u32..)
            .flat_map(|((_, operands), user)| operands.iter().filter_map(place).map(move |operand| (operand, user)));
        (!is_cyclic_directed(&DiGraph::<(), ()>::from_edges(edges))).then(|| {
            let mut operands = Set::default();
            let root = cone.keys()[0];
            let expression = Expression::build(|b| self.inline(cone, root, b, &mut Map::default(), &mut operands));
            (expression, operands)
        })
    }

    fn inline(
        &self,
        cone: &Cone<'_>,
        class: Class,
        b: &mut ExpressionBuilder,
        known: &mut Map<Class, ScalarId>,
        operands: &mut Set<Class>,
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

/// Whether an epilogue can follow.
fn is_anchor(application: &Application<'_>) -> bool {
    application.op.category() == Category::Accumulation
}

/// Whether something outside a cone could need a value of it.
fn is_needed(view: &dyn View, users: &Map<Class, Set<Class>>, class: Class, cone: &Cone<'_>) -> bool {
    let outside = |users: &Set<Class>| users.iter().any(|user| !cone.contains_key(user));
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
pub(super) type Found<'a> = dyn FnMut(&Forms<'_>, &Cone<'_>, &Expression, &Set<Class>) + 'a;

/// What decides on cones, of each value: a cone is as it was where nothing of it has changed.
#[derive(Default)]
pub(super) struct Seen {
    elementwise: Map<Class, Vec<Form>>,
    users: Map<Class, Set<Class>>,
    /// The operands of those that an epilogue can follow.
    anchors: Map<Class, Vec<Vec<Class>>>,
    /// Of the graph that was chosen earlier, values whose form, the first one, is elementwise.
    chosen: Set<Class>,
}

impl Seen {
    /// Every cone that may be another one than when this was called the last time, with its expression and operands.
    pub(super) fn each_new_cone(&mut self, view: &dyn View, found: &mut Found<'_>) {
        let forms = Forms::new(view);
        let stale = self.stale(&forms.seen);
        for (&root, own) in forms.seen.elementwise.iter().filter(|(root, _)| stale.contains(*root)) {
            let mut cones: Vec<Cone<'_>> = Vec::new();
            let mut before: Vec<(Expression, Set<Class>)> = Vec::new();
            for cone in forms.chosen_cones(root).into_iter().chain(own.iter().flat_map(|form| forms.cones(root, form)))
            {
                if cones.iter().any(|other| other.as_slice() == cone.as_slice()) {
                    continue;
                }
                let Some(fused) = forms.fused(&cone) else { continue };
                let joined = fused.1.iter().filter(|operand| forms.seen.anchors.contains_key(*operand)).count();
                if joined <= JOINED && !before.contains(&fused) {
                    found(&forms, &cone, &fused.0, &fused.1);
                    before.push(fused);
                }
                cones.push(cone);
            }
        }
        *self = forms.seen;
    }

    /// The values of which something has changed, and those that are computed from them element by element.
    fn stale(&self, now: &Seen) -> Set<Class> {
        let is_changed = |class: &Class| {
            self.elementwise.get(class) != now.elementwise.get(class)
                || self.users.get(class) != now.users.get(class)
                || self.anchors.get(class) != now.anchors.get(class)
                || self.chosen.contains(class) != now.chosen.contains(class)
        };
        let values = now.elementwise.keys().chain(now.users.keys()).chain(now.anchors.keys());
        let mut stale: Set<Class> = values.copied().filter(is_changed).collect();
        let mut next = 0;
        while let Some(class) = stale.get_index(next) {
            let users: Vec<Class> = now.users.get(class).into_iter().flatten().copied().collect();
            stale.extend(users.into_iter().filter(|user| now.elementwise.contains_key(user)));
            next += 1;
        }
        stale
    }
}
