//! Ensembles of decision trees, as scikit-learn, LightGBM and XGBoost export them.

mod forest;
mod scores;

use super::call::{Call, Item, Table, TensorAttributes};
use super::labels::class_labels;
use forest::{Comparison, Forest, Node};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::{DType, Value};
use scores::{Aggregation, Votes};
pub(super) use scores::{Classified, PostTransform};
use std::collections::BTreeMap;

/// Operators of ai.onnx.ml.
pub(super) const OPERATORS: Table = &[
    ("TreeEnsemble", 5, One(tree_ensemble)),
    ("TreeEnsembleClassifier", 1, Many(classifier)),
    ("TreeEnsembleRegressor", 1, One(regressor)),
];

/// The rows as numbers that thresholds can be compared with.
fn rows(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dtype = call.dtype_of(x);
    // The converters of single-precision models count on comparisons in single precision.
    let dtype = if dtype.is_float() { dtype } else { DType::F64 };
    let x = call.builder.cast(x, dtype)?;
    match call.rank(x) {
        1 => Ok(call.builder.insert_axis(x, 0)?),
        _ => Ok(x),
    }
}

fn place(number: i64, count: usize) -> Result<usize, Fault> {
    let place = usize::try_from(number).ok().filter(|&place| place < count);
    place.ok_or_else(|| Fault::parameter(format!("there is no {number} among {count}")))
}

fn places(call: &mut Call<'_, '_>, key: &'static str) -> Result<Vec<i64>, Fault> {
    let numbers = call.ints(key)?;
    call.required(key, numbers)
}

/// Numbers of an attribute, or of the tensor that stands for them in double precision.
fn numbers(call: &mut Call<'_, '_>, key: &'static str, tensor_key: &'static str) -> Result<Option<Vec<f64>>, Fault> {
    let exact = call.tensor(tensor_key)?.map(|tensor| tensor.to_tensor().to_floats());
    Ok(exact.or(call.floats(key)?))
}

fn equally_long(lengths: &[usize]) -> Result<usize, Fault> {
    let first = lengths.first().copied().unwrap_or(0);
    if first == 0 || lengths.iter().any(|&length| length != first) {
        return Err(Fault::parameter(format!("the lists of the trees must be equally long, found {lengths:?}")));
    }
    Ok(first)
}

/// The members of the nodes that test for membership, in their order: lists that end with NaN.
fn member_lists(call: &mut Call<'_, '_>) -> Result<Vec<Vec<f64>>, Fault> {
    let Some(values) = call.tensor("membership_values")? else { return Ok(Vec::new()) };
    let values = values.to_tensor().to_floats();
    let mut lists: Vec<Vec<f64>> = values.split(|value| value.is_nan()).map(<[f64]>::to_vec).collect();
    // Behind the last NaN is nothing.
    lists.pop();
    Ok(lists)
}

/// The trees of `TreeEnsemble`, whose leaves are in lists of their own: they come behind the branches here.
fn separate_leaves(call: &mut Call<'_, '_>) -> Result<(Forest, usize, usize), Fault> {
    let (features, modes) = (places(call, "nodes_featureids")?, call.tensor("nodes_modes")?);
    let modes = call.required("nodes_modes", modes)?.to_tensor().to_integers();
    let splits = call.tensor("nodes_splits")?;
    let splits = call.required("nodes_splits", splits)?.to_tensor().to_floats();
    let (when_true, when_false) = (places(call, "nodes_truenodeids")?, places(call, "nodes_falsenodeids")?);
    let (true_leaf, false_leaf) = (places(call, "nodes_trueleafs")?, places(call, "nodes_falseleafs")?);
    let leaves = places(call, "leaf_targetids")?.len();
    let count = equally_long(&[
        features.len(),
        modes.len(),
        splits.len(),
        when_true.len(),
        when_false.len(),
        true_leaf.len(),
        false_leaf.len(),
    ])?;
    let missing = call.ints("nodes_missing_value_tracks_true")?.unwrap_or_else(|| vec![0; count]);
    equally_long(&[count, missing.len()])?;
    let mut members = member_lists(call)?.into_iter();
    let target = |number: i64, leaf: i64| -> Result<usize, Fault> {
        if leaf == 0 { place(number, count) } else { Ok(count + place(number, leaves)?) }
    };
    let mut nodes = Vec::with_capacity(count + leaves);
    for index in 0..count {
        let comparison = Comparison::from_number(modes[index])
            .ok_or_else(|| Fault::parameter(format!("there is no comparison {}", modes[index])))?;
        let members = if comparison == Comparison::Member { members.next() } else { Some(Vec::new()) };
        nodes.push(Node {
            feature: place(features[index], usize::MAX)?,
            comparison,
            threshold: splits[index],
            members: members.ok_or_else(|| Fault::parameter("membership_values ends too early"))?,
            missing_is_true: missing[index] != 0,
            when_true: target(when_true[index], true_leaf[index])?,
            when_false: target(when_false[index], false_leaf[index])?,
        });
    }
    nodes.extend((count..count + leaves).map(Node::leaf));
    let roots = places(call, "tree_roots")?;
    let roots = roots.iter().map(|&root| place(root, count)).collect::<Result<Vec<_>, _>>()?;
    Ok((Forest { nodes, roots }, count, leaves))
}

fn tree_ensemble(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.ignore(&["nodes_hitrates"]);
    let x = rows(call)?;
    let (forest, first_leaf, leaves) = separate_leaves(call)?;
    let targets = call.int("n_targets")?;
    let targets = call.required("n_targets", targets)?;
    let ids = places(call, "leaf_targetids")?;
    let weights = call.tensor("leaf_weights")?;
    let weights = call.required("leaf_weights", weights)?.to_tensor().to_floats();
    equally_long(&[leaves, weights.len()])?;
    let mut votes = Votes::new(forest.nodes.len(), targets)?;
    for (leaf, (&id, weight)) in ids.iter().zip(weights).enumerate() {
        votes.add(first_leaf + leaf, id, weight)?;
    }
    let aggregation = match call.int_or("aggregate_function", 1)? {
        0 => Aggregation::Mean,
        1 => Aggregation::Sum,
        2 => Aggregation::Minimum,
        3 => Aggregation::Maximum,
        other => return Err(Fault::parameter(format!("there is no aggregate function {other}"))),
    };
    let post = PostTransform::from_number(call.int_or("post_transform", 0)?)?;
    let leaves = forest.leaves(call.builder, x)?;
    let dtype = call.dtype_of(x);
    let scores = votes.scores(call.builder, &forest, leaves, aggregation, dtype)?;
    post.apply(call.builder, scores)
}

/// Where a node of a tree, both by their numbers, stands in the table.
type Places = BTreeMap<(i64, i64), usize>;

/// The trees of the older operators, whose nodes are named by the tree and a number in it.
fn joint_leaves(call: &mut Call<'_, '_>) -> Result<(Forest, Places), Fault> {
    call.ignore(&["nodes_hitrates", "nodes_hitrates_as_tensor"]);
    let (trees, ids) = (places(call, "nodes_treeids")?, places(call, "nodes_nodeids")?);
    let (features, modes) = (places(call, "nodes_featureids")?, call.words("nodes_modes")?);
    let modes = call.required("nodes_modes", modes)?;
    let values = numbers(call, "nodes_values", "nodes_values_as_tensor")?;
    let values = call.required("nodes_values", values)?;
    let (when_true, when_false) = (places(call, "nodes_truenodeids")?, places(call, "nodes_falsenodeids")?);
    let count = equally_long(&[
        trees.len(),
        ids.len(),
        features.len(),
        modes.len(),
        values.len(),
        when_true.len(),
        when_false.len(),
    ])?;
    let missing = call.ints("nodes_missing_value_tracks_true")?.unwrap_or_else(|| vec![0; count]);
    equally_long(&[count, missing.len()])?;
    let mut known = Places::new();
    let mut roots: BTreeMap<i64, usize> = BTreeMap::new();
    for index in 0..count {
        if known.insert((trees[index], ids[index]), index).is_some() {
            return Err(Fault::parameter(format!("node {} of tree {} is there twice", ids[index], trees[index])));
        }
        roots.entry(trees[index]).or_insert(index);
    }
    let find = |tree: i64, id: i64| {
        let found = known.get(&(tree, id)).copied();
        found.ok_or_else(|| Fault::parameter(format!("tree {tree} has no node {id}")))
    };
    let mut nodes = Vec::with_capacity(count);
    for index in 0..count {
        if modes[index] == "LEAF" {
            nodes.push(Node::leaf(index));
            continue;
        }
        let comparison = Comparison::from_name(modes[index])
            .ok_or_else(|| Fault::variant(format!("there is no node of mode `{}`", modes[index])))?;
        nodes.push(Node {
            feature: place(features[index], usize::MAX)?,
            comparison,
            threshold: values[index],
            members: Vec::new(),
            missing_is_true: missing[index] != 0,
            when_true: find(trees[index], when_true[index])?,
            when_false: find(trees[index], when_false[index])?,
        });
    }
    Ok((Forest { nodes, roots: roots.into_values().collect() }, known))
}

/// The attributes of votes: which node votes for what, and how much.
type VoteKeys = [&'static str; 5];

fn joint_votes(
    call: &mut Call<'_, '_>,
    known: &Places,
    targets: i64,
    [trees, nodes, ids, weights, exact]: VoteKeys,
) -> Result<Votes, Fault> {
    let (trees, nodes, ids) = (places(call, trees)?, places(call, nodes)?, places(call, ids)?);
    let found = numbers(call, weights, exact)?;
    let values = call.required(weights, found)?;
    equally_long(&[trees.len(), nodes.len(), ids.len(), values.len()])?;
    let mut votes = Votes::new(known.len(), targets)?;
    for (index, weight) in values.into_iter().enumerate() {
        let node = known.get(&(trees[index], nodes[index])).copied();
        let node = node.ok_or_else(|| Fault::parameter(format!("there is no node {}", nodes[index])))?;
        votes.add(node, ids[index], weight)?;
    }
    Ok(votes)
}

fn regressor(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = rows(call)?;
    let (forest, known) = joint_leaves(call)?;
    let targets = call.int("n_targets")?;
    let targets = call.required("n_targets", targets)?;
    let keys = ["target_treeids", "target_nodeids", "target_ids", "target_weights", "target_weights_as_tensor"];
    let votes = joint_votes(call, &known, targets, keys)?;
    let aggregation = match call.word("aggregate_function")?.unwrap_or("SUM") {
        "AVERAGE" => Aggregation::Mean,
        "SUM" => Aggregation::Sum,
        "MIN" => Aggregation::Minimum,
        "MAX" => Aggregation::Maximum,
        other => return Err(Fault::parameter(format!("there is no aggregate function `{other}`"))),
    };
    let base = numbers(call, "base_values", "base_values_as_tensor")?.unwrap_or_default();
    let post = PostTransform::of(call)?;
    let leaves = forest.leaves(call.builder, x)?;
    let dtype = call.dtype_of(x);
    let scores = votes.scores(call.builder, &forest, leaves, aggregation, dtype)?;
    let scores = scores::add_base(call.builder, scores, &base)?;
    let scores = post.apply(call.builder, scores)?;
    Ok(call.builder.cast(scores, DType::F32)?)
}

fn classifier(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = rows(call)?;
    let (forest, known) = joint_leaves(call)?;
    let labels = class_labels(call, "classlabels_int64s", "classlabels_strings")?;
    let keys = ["class_treeids", "class_nodeids", "class_ids", "class_weights", "class_weights_as_tensor"];
    let votes = joint_votes(call, &known, labels.len() as i64, keys)?;
    let base = numbers(call, "base_values", "base_values_as_tensor")?.unwrap_or_default();
    let post = PostTransform::of(call)?;
    let leaves = forest.leaves(call.builder, x)?;
    let dtype = call.dtype_of(x);
    let scores = votes.scores(call.builder, &forest, leaves, Aggregation::Sum, dtype)?;
    let scores = if labels.len() == 2 {
        votes.binary(call.builder, scores, &base, post)?
    } else {
        let scores = scores::add_base(call.builder, scores, &base)?;
        Classified { choice: scores, scores: post.apply(call.builder, scores)? }
    };
    scores.results(call.builder, &labels)
}
