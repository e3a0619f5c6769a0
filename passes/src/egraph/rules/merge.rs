//! Merging of siblings: operators of equal fields on one input become one, their weights concatenated, and slices of its
//! result. Candidates are grouped by what they share and merged once, all together: pairwise merging would build every
//! subset.

use super::pattern::per_channel_extent;
use crate::rewrite::{Class, Exactness, Rule, Search, Term, View};
use crate::sketch::{Sketch, binary, slice, unary};
use indexmap::{IndexMap, IndexSet};
use mlc_ir::ops::{Broadcast, Concat, Reshape, Slice};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Category, Generator, Graph, Op, TensorType};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule {
        name: "merge-sibling-convolution",
        exactness: Exactness::Exact,
        reason: "output channels are computed independently of each other",
        search: Search::Groups(merge_convolutions),
        sample: sample_convolutions,
    },
    Rule {
        name: "merge-sibling-matmul",
        exactness: Exactness::Exact,
        reason: "columns of a product are computed independently of each other",
        search: Search::Groups(merge_matmuls),
        sample: sample_matmuls,
    },
    Rule {
        name: "merge-sibling-bias",
        exactness: Exactness::Exact,
        reason: "slices shifted or scaled by constants are slices of the whole, shifted or scaled by their concatenation",
        search: Search::Groups(merge_biases),
        sample: sample_biases,
    },
    Rule {
        name: "merge-sibling-activation",
        exactness: Exactness::Exact,
        reason: "a function of all slices is a function of the whole",
        search: Search::Groups(merge_activations),
        sample: sample_activations,
    },
];

/// An operator that may have siblings: the class it computes, and its weights.
#[derive(Clone, Copy)]
struct Sibling {
    class: Class,
    weights: Class,
}

/// Groups of operators of one kind on one input, equal but for constant weights along `axis`, in canonical order.
fn siblings(view: &dyn View, axis_of: fn(&Op, usize) -> Option<usize>) -> Vec<(Op, Class, usize, Vec<Sibling>)> {
    let mut groups: IndexMap<(Op, Class, TensorType, usize), Vec<Sibling>> = IndexMap::new();
    let cut: IndexSet<Class> = partitions(view).into_iter().map(|(whole, _)| whole).collect();
    for class in view.classes() {
        // What has been merged already is cut into its parts, and isn't a sibling of these; nor are a value and the same value scaled.
        if view.is_constant(class) || cut.contains(&class) || !view.is_chosen(class) {
            continue;
        }
        for application in view.applications(class) {
            let [x, weights] = application.operands else { continue };
            let ty = view.ty(*weights);
            let Some(axis) = axis_of(application.op, ty.rank()) else { continue };
            if !view.is_constant(*weights) || view.is_constant(*x) {
                continue;
            }
            let mut alike = ty.clone();
            alike.shape[axis] = 0;
            let group = groups.entry((application.op.clone(), *x, alike, axis)).or_default();
            if group.iter().all(|sibling| sibling.class != class) {
                group.push(Sibling { class, weights: *weights });
            }
        }
    }
    let groups = groups.into_iter().filter(|(_, group)| group.len() > 1);
    groups.map(|((op, x, _, axis), group)| (op, x, axis, group)).collect()
}

fn merged(view: &dyn View, groups: Vec<(Op, Class, usize, Vec<Sibling>)>) -> Vec<(Class, Term)> {
    let mut found = Vec::new();
    for (op, x, axis, group) in groups {
        let parts: Vec<Term> = group.iter().map(|sibling| sibling.weights.into()).collect();
        let whole = Term::Apply(Box::new(op), vec![x.into(), Term::apply(Concat { axis }, parts)]);
        let classes: Vec<Class> = group.iter().map(|sibling| sibling.class).collect();
        found.extend(slices(view, &classes, &whole));
    }
    found
}

/// Each class as its slice, along the last axis, of the whole.
fn slices(view: &dyn View, classes: &[Class], whole: &Term) -> Vec<(Class, Term)> {
    let mut start = 0;
    let mut found = Vec::new();
    for &class in classes {
        let shape = &view.ty(class).shape;
        let Some(axis) = shape.len().checked_sub(1) else { continue };
        found.push((class, Term::apply(slice(shape, axis, start, shape[axis]), [whole.clone()])));
        start += shape[axis];
    }
    found
}

fn merge_convolutions(view: &dyn View) -> Vec<(Class, Term)> {
    let axis = |op: &Op, rank: usize| matches!(op, Op::Convolution(op) if op.groups == 1).then(|| rank - 1);
    merged(view, siblings(view, axis))
}

fn merge_matmuls(view: &dyn View) -> Vec<(Class, Term)> {
    let axis = |op: &Op, rank: usize| match op {
        Op::Matmul(op) if rank >= 2 => Some(if op.transpose_right { rank - 2 } else { rank - 1 }),
        _ => None,
    };
    merged(view, siblings(view, axis))
}

/// The slices that partition the last axis of a value, in order: (class of the slice, start).
fn partitions(view: &dyn View) -> Vec<(Class, Vec<Class>)> {
    let mut cuts: IndexMap<Class, Vec<(usize, usize, Class)>> = IndexMap::new();
    for class in view.classes() {
        for application in view.applications(class) {
            let Op::Slice(op) = application.op else { continue };
            let whole = application.operands[0];
            if let Some((start, size)) = last_axis_cut(op, &view.ty(whole).shape) {
                cuts.entry(whole).or_default().push((start, size, class));
            }
        }
    }
    let mut found = Vec::new();
    for (whole, mut cuts) in cuts {
        cuts.sort_unstable();
        cuts.dedup_by_key(|cut| (cut.0, cut.1));
        let mut end = 0;
        let adjacent = cuts.iter().all(|&(start, size, _)| {
            let adjacent = start == end;
            end = start + size;
            adjacent
        });
        if adjacent && cuts.len() > 1 && Some(&end) == view.ty(whole).shape.last() {
            found.push((whole, cuts.into_iter().map(|(.., class)| class).collect()));
        }
    }
    found
}

fn last_axis_cut(op: &Slice, shape: &[usize]) -> Option<(usize, usize)> {
    let axis = shape.len().checked_sub(1)?;
    let plain = op.steps.iter().all(|&step| step == 1) && op.sizes[..axis] == shape[..axis];
    (plain && op.sizes[axis] > 0).then(|| (op.starts[axis], op.sizes[axis]))
}

/// The elementwise operators over each value: (class computed, operator, operands).
fn elementwise_users(view: &dyn View) -> IndexMap<Class, Vec<(Class, Op, Vec<Class>)>> {
    let mut users: IndexMap<Class, Vec<(Class, Op, Vec<Class>)>> = IndexMap::new();
    for class in view.classes() {
        if view.is_constant(class) {
            continue;
        }
        for application in view.applications(class) {
            let first = application.operands.first().filter(|_| application.op.category() == Category::Elementwise);
            let Some(&first) = first.filter(|&&first| view.ty(first).shape == view.ty(class).shape) else { continue };
            users.entry(first).or_default().push((class, application.op.clone(), application.operands.to_vec()));
        }
    }
    users
}

fn merge_biases(view: &dyn View) -> Vec<(Class, Term)> {
    let users = elementwise_users(view);
    let mut found = Vec::new();
    for (whole, parts) in partitions(view) {
        let shape = &view.ty(whole).shape;
        for function in [B::Add, B::Multiply] {
            let biased = |part: &Class| {
                users.get(part)?.iter().find_map(|(class, op, operands)| {
                    let same = matches!(op, Op::Binary(op) if op.function == function);
                    let fits = same && operands.len() == 2 && view.is_constant(operands[1]);
                    let channels = view.ty(*part).shape.last().copied()?;
                    let vector = fits.then(|| vector(view, operands[1], channels))??;
                    Some((*class, vector))
                })
            };
            let Some(biased) = parts.iter().map(biased).collect::<Option<Vec<_>>>() else { continue };
            let (classes, vectors): (Vec<Class>, Vec<Term>) = biased.into_iter().unzip();
            if shape.last().is_some() {
                let op = mlc_ir::ops::Binary { function };
                let bias = Term::apply(Concat { axis: 0 }, vectors);
                found.extend(slices(view, &classes, &Term::apply(op, [whole.into(), bias])));
            }
        }
    }
    found
}

/// A per-channel constant as a vector of all channels.
fn vector(view: &dyn View, constant: Class, channels: usize) -> Option<Term> {
    let extent = per_channel_extent(view, constant, channels)?;
    let flat = Term::apply(Reshape { shape: [extent][..].into() }, [constant.into()]);
    Some(if extent == channels { flat } else { Term::apply(Broadcast { shape: [channels][..].into() }, [flat]) })
}

fn merge_activations(view: &dyn View) -> Vec<(Class, Term)> {
    let users = elementwise_users(view);
    let mut found = Vec::new();
    for (whole, parts) in partitions(view) {
        let Some(candidates) = users.get(&parts[0]) else { continue };
        for (_, op, operands) in candidates.iter().filter(|(_, _, operands)| operands.len() == 1) {
            let same = |part: &Class| {
                let own = users.get(part)?.iter().find(|(_, own, list)| own == op && list.len() == operands.len());
                own.map(|(class, ..)| *class)
            };
            if let Some(classes) = parts.iter().map(same).collect::<Option<Vec<Class>>>() {
                let applied = Term::Apply(Box::new(op.clone()), vec![whole.into()]);
                found.extend(slices(view, &classes, &applied));
            }
        }
    }
    found
}

fn sample_convolutions(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let (mut op, mut weights) = s.convolution(&shape, true);
    weights[shape.len() - 2] *= op.groups;
    op.groups = 1;
    let x = s.input(&shape);
    let outputs: Vec<_> = (0..s.random.range(2, 3))
        .map(|_| {
            weights[shape.len() - 1] = s.random.range(1, 3);
            let weights = s.constant(&weights);
            s.apply(op.clone(), &[x, weights])
        })
        .collect();
    s.finish_with(&outputs)
}

fn sample_matmuls(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let (op, left, mut right) = s.matmul();
    let x = s.input(&left);
    let axis = if op.transpose_right { right.len() - 2 } else { right.len() - 1 };
    let outputs: Vec<_> = (0..s.random.range(2, 3))
        .map(|_| {
            right[axis] = s.random.range(1, 4);
            let weights = s.constant(&right);
            s.apply(op.clone(), &[x, weights])
        })
        .collect();
    s.finish_with(&outputs)
}

/// A partition of an input's last axis.
fn sample_partition(s: &mut Sketch<'_>) -> Vec<mlc_ir::Value> {
    let mut shape = s.random_shape(1, 3);
    let axis = shape.len() - 1;
    let sizes: Vec<usize> = (0..s.random.range(2, 3)).map(|_| s.random.range(1, 3)).collect();
    shape[axis] = sizes.iter().sum();
    let x = s.input(&shape);
    let mut start = 0;
    let mut parts = Vec::new();
    for size in sizes {
        parts.push(s.apply(slice(&shape, axis, start, size), &[x]));
        start += size;
    }
    parts
}

fn sample_biases(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let function = s.random.choose(&[B::Add, B::Multiply]);
    let mut outputs = Vec::new();
    for part in sample_partition(&mut s) {
        let channels = s.shape(part).last().copied().unwrap_or(1);
        let extent = if s.random.one_in(3) { 1 } else { channels };
        let bias = s.constant(&[extent]);
        outputs.push(s.apply(binary(function), &[part, bias]));
    }
    s.finish_with(&outputs)
}

fn sample_activations(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let function = s.random.choose(&[U::Tanh, U::Relu]);
    let parts = sample_partition(&mut s);
    let outputs: Vec<_> = parts.into_iter().map(|part| s.apply(unary(function), &[part])).collect();
    s.finish_with(&outputs)
}
