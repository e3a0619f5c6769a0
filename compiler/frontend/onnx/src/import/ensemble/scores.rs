//! What the leaves of trees vote for, and what becomes of the scores.

use super::super::call::{Call, Item};
use super::forest::Forest;
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_ir::ops::{ArgFunction, ArgReduce, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

/// Most elements of the table of votes.
const MOST_VOTES: usize = 1 << 26;

/// How the votes of all trees are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aggregation {
    Sum,
    Mean,
    Minimum,
    Maximum,
}

/// What is done with the scores at last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum PostTransform {
    Nothing,
    Softmax,
    Logistic,
    /// Softmax that leaves zeros as they are.
    SoftmaxZero,
}

impl PostTransform {
    /// By its number in `TreeEnsemble`.
    pub fn from_number(number: i64) -> Result<Self, Fault> {
        match number {
            0 => Ok(PostTransform::Nothing),
            1 => Ok(PostTransform::Softmax),
            2 => Ok(PostTransform::Logistic),
            3 => Ok(PostTransform::SoftmaxZero),
            other => Err(Fault::variant(format!("the post transform {other} isn't supported"))),
        }
    }

    /// The attribute of the other operators.
    pub fn of(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        match call.word("post_transform")?.unwrap_or("NONE") {
            "NONE" => Ok(PostTransform::Nothing),
            "SOFTMAX" => Ok(PostTransform::Softmax),
            "LOGISTIC" => Ok(PostTransform::Logistic),
            "SOFTMAX_ZERO" => Ok(PostTransform::SoftmaxZero),
            other => Err(Fault::variant(format!("the post transform `{other}` isn't supported"))),
        }
    }

    /// Of scores [rows, classes].
    pub fn apply(self, builder: &mut Builder, scores: Value) -> Result<Value, Fault> {
        match self {
            PostTransform::Nothing => Ok(scores),
            PostTransform::Softmax => Ok(builder.softmax_of_last(scores)?),
            PostTransform::Logistic => Ok(builder.unary(U::Sigmoid, scores)?),
            PostTransform::SoftmaxZero => softmax_of_others(builder, scores),
        }
    }
}

/// Softmax along the last axis, where what is almost zero takes part with `x e^-maximum` instead of `e^(x - maximum)`.
fn softmax_of_others(builder: &mut Builder, x: Value) -> Result<Value, Fault> {
    let axis = builder.rank(x).saturating_sub(1);
    let reduced = |builder: &mut Builder, function: ReduceFunction, x: Value| {
        builder.apply(Reduce { function, axes: vec![axis], keep_axes: true }, &[x])
    };
    let largest = reduced(builder, ReduceFunction::Maximum, x)?;
    let dtype = builder.dtype(x);
    let weights = builder.map(&[x, largest], |b| {
        let (x, largest) = (b.operand(0), b.operand(1));
        let shifted = b.binary(B::Subtract, x, largest);
        let ordinary = b.unary(U::Exp, shifted);
        let negated = b.unary(U::Negate, largest);
        let factor = b.unary(U::Exp, negated);
        let small = b.binary(B::Multiply, x, factor);
        let magnitude = b.unary(U::Absolute, x);
        let limit = b.number(dtype, 1e-7);
        let counts = b.binary(B::Greater, magnitude, limit);
        b.select(counts, ordinary, small)
    })?;
    let sum = reduced(builder, ReduceFunction::Sum, weights)?;
    Ok(builder.map(&[weights, sum], |b| {
        let (weight, sum) = (b.operand(0), b.operand(1));
        let (zero, half) = (b.number(dtype, 0.0), b.number(dtype, 0.5));
        let nothing = b.binary(B::Equal, sum, zero);
        let share = b.binary(B::Divide, weight, sum);
        b.select(nothing, half, share)
    })?)
}

/// Adds a number per column, if there are some.
pub(super) fn add_base(builder: &mut Builder, scores: Value, base: &[f64]) -> Result<Value, Fault> {
    if base.is_empty() {
        return Ok(scores);
    }
    let columns = builder.shape(scores).last().copied().unwrap_or(0);
    if base.len() != columns {
        return Err(Fault::parameter(format!("{} base values don't fit {columns} scores", base.len())));
    }
    let tensor = Tensor::from_floats(TensorType::new(builder.dtype(scores), [columns]), base.to_vec());
    let base = builder.constant("base_values", Attribute::from_tensor(&tensor));
    Ok(builder.binary(B::Add, scores, base)?)
}

/// What each node votes for; nodes that branch have no votes.
pub(super) struct Votes {
    targets: usize,
    /// Weights by node and target.
    weights: Vec<f64>,
    /// Whether there is a vote, by node and target.
    given: Vec<bool>,
    negative: bool,
    /// The targets that were voted for.
    used: Vec<bool>,
}

impl Votes {
    pub fn new(nodes: usize, targets: i64) -> Result<Self, Fault> {
        let targets = usize::try_from(targets).ok().filter(|&targets| targets > 0);
        let targets = targets.ok_or_else(|| Fault::parameter("the number of targets must be positive"))?;
        let count = nodes.checked_mul(targets).filter(|&count| count <= MOST_VOTES);
        let count =
            count.ok_or_else(|| Fault::variant(format!("{nodes} nodes with {targets} targets are too many")))?;
        let (weights, given) = (vec![0.0; count], vec![false; count]);
        Ok(Votes { targets, weights, given, negative: false, used: vec![false; targets] })
    }

    pub fn add(&mut self, node: usize, target: i64, weight: f64) -> Result<(), Fault> {
        let target = usize::try_from(target).ok().filter(|&target| target < self.targets);
        let target = target.ok_or_else(|| Fault::parameter("a leaf votes for a target that doesn't exist"))?;
        let place = node * self.targets + target;
        self.weights[place] += weight;
        self.given[place] = true;
        self.used[target] = true;
        self.negative |= weight < 0.0;
        Ok(())
    }

    /// The scores [rows, targets] of leaves [rows, trees].
    pub fn scores(
        &self,
        builder: &mut Builder,
        forest: &Forest,
        leaves: Value,
        aggregation: Aggregation,
        dtype: DType,
    ) -> Result<Value, Fault> {
        let extreme = matches!(aggregation, Aggregation::Minimum | Aggregation::Maximum);
        if extreme
            && forest
                .leaf_places()
                .any(|leaf| !self.given[leaf * self.targets..][..self.targets].iter().all(|&given| given))
        {
            return Err(Fault::variant("the smallest or largest vote needs a vote of each leaf for each target"));
        }
        let shape = [forest.nodes.len(), self.targets];
        let table = Tensor::from_floats(TensorType::new(dtype, shape), self.weights.clone());
        let table = builder.constant("weights", Attribute::from_tensor(&table));
        let votes = builder.gather(table, leaves, 0)?;
        let function = match aggregation {
            Aggregation::Sum => ReduceFunction::Sum,
            Aggregation::Mean => ReduceFunction::Mean,
            Aggregation::Minimum => ReduceFunction::Minimum,
            Aggregation::Maximum => ReduceFunction::Maximum,
        };
        Ok(builder.apply(Reduce { function, axes: vec![1], keep_axes: false }, &[votes])?)
    }

    /// Two classes of which only the first is voted for: its score is that of the second class.
    pub fn binary(
        &self,
        builder: &mut Builder,
        scores: Value,
        base: &[f64],
        post: PostTransform,
    ) -> Result<Classified, Fault> {
        if self.used != [true, false] {
            let message = "two classes are supported when all votes are for the first of them";
            return Err(Fault::variant(message));
        }
        let score = builder.slice_axis(scores, 1, 0, 1, 1)?;
        let score = add_base(builder, score, base)?;
        let opposite = builder.unary(U::Negate, score)?;
        let other = if self.negative { opposite } else { builder.binary_number(B::Add, opposite, 1.0)? };
        let choice = builder.concat(&[other, score], 1)?;
        let scores = match post {
            PostTransform::Nothing => choice,
            PostTransform::Logistic => {
                let both = builder.concat(&[opposite, score], 1)?;
                post.apply(builder, both)?
            }
            _ => return Err(Fault::variant("a softmax of two classes with one vote isn't supported")),
        };
        Ok(Classified { choice, scores })
    }
}

/// Scores of classes.
pub(in super::super) struct Classified {
    /// The class with the largest of these [rows, classes] is taken, the first of equal ones.
    pub choice: Value,
    /// What is told about the classes.
    pub scores: Value,
}

impl Classified {
    /// The labels of the classes taken, and the scores.
    pub fn results(&self, builder: &mut Builder, labels: &[i64]) -> Result<Vec<Item>, Fault> {
        let op = ArgReduce { function: ArgFunction::Maximum, axis: 1, keep_axis: false, last: false };
        let place = builder.apply(op, &[self.choice])?;
        let labels = Tensor::from_integers(TensorType::new(DType::I64, [labels.len()]), labels.to_vec());
        let labels = builder.constant("labels", Attribute::from_tensor(&labels));
        let label = builder.gather(labels, place, 0)?;
        let scores = builder.cast(self.scores, DType::F32)?;
        Ok(vec![Item::Tensor(label), Item::Tensor(scores)])
    }
}
