//! [`Forest`]: decision trees as tables that all trees walk through at once.

use mlc_import::Builder;
use mlc_import::Fault;
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

/// Deepest tree; every level is written out.
const DEEPEST: usize = 256;

/// Most elements of a table, and of what a level computes.
const MOST_ELEMENTS: usize = 1 << 26;

/// How a node compares a feature with its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
    /// Whether the feature is among the node's members.
    Member,
}

impl Comparison {
    const ALL: [Comparison; 7] = [
        Comparison::LessEqual,
        Comparison::Less,
        Comparison::GreaterEqual,
        Comparison::Greater,
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Member,
    ];

    /// By its number in `TreeEnsemble`.
    pub fn from_number(number: i64) -> Option<Self> {
        usize::try_from(number).ok().and_then(|number| Self::ALL.get(number).copied())
    }

    /// By its name in the older operators.
    pub fn from_name(name: &str) -> Option<Self> {
        let names = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"];
        names.iter().position(|known| *known == name).map(|place| Self::ALL[place])
    }

    fn function(self) -> Option<B> {
        match self {
            Comparison::LessEqual => Some(B::LessEqual),
            Comparison::Less => Some(B::Less),
            Comparison::GreaterEqual => Some(B::GreaterEqual),
            Comparison::Greater => Some(B::Greater),
            Comparison::Equal => Some(B::Equal),
            Comparison::NotEqual => Some(B::NotEqual),
            Comparison::Member => None,
        }
    }
}

/// A node that branches, or a leaf, which leads to itself.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub feature: usize,
    pub comparison: Comparison,
    pub threshold: f64,
    /// For [`Comparison::Member`].
    pub members: Vec<f64>,
    /// Whether the condition is true for a feature that is NaN.
    pub missing_is_true: bool,
    pub when_true: usize,
    pub when_false: usize,
}

impl Node {
    /// A leaf at a place of the table.
    pub fn leaf(place: usize) -> Self {
        Node {
            feature: 0,
            comparison: Comparison::LessEqual,
            threshold: 0.0,
            members: Vec::new(),
            missing_is_true: false,
            when_true: place,
            when_false: place,
        }
    }

    fn is_leaf(&self, place: usize) -> bool {
        self.when_true == place && self.when_false == place
    }
}

/// All nodes of all trees.
pub(super) struct Forest {
    pub nodes: Vec<Node>,
    /// The first node of each tree.
    pub roots: Vec<usize>,
}

impl Forest {
    /// The levels below the roots; every branch is followed.
    fn depth(&self) -> Result<usize, Fault> {
        let mut level = self.roots.clone();
        for depth in 0..=DEEPEST {
            let mut below = Vec::new();
            for &place in &level {
                let node = self.nodes.get(place).ok_or_else(|| Fault::parameter(format!("no node {place} exists")))?;
                if !node.is_leaf(place) {
                    below.extend([node.when_true, node.when_false]);
                }
            }
            if below.is_empty() {
                return Ok(depth);
            }
            below.sort_unstable();
            below.dedup();
            level = below;
        }
        Err(Fault::variant(format!("the trees are more than {DEEPEST} levels deep, or have a cycle")))
    }

    fn integers(&self, builder: &mut Builder, of: impl Fn(&Node) -> usize) -> Value {
        let values = self.nodes.iter().map(|node| of(node) as i64).collect();
        let tensor = Tensor::from_integers(TensorType::new(DType::I64, [self.nodes.len()]), values);
        builder.constant("nodes", Attribute::from_tensor(&tensor))
    }

    fn bools(&self, builder: &mut Builder, of: impl Fn(&Node) -> bool) -> Value {
        let values = self.nodes.iter().map(|node| i64::from(of(node))).collect();
        let tensor = Tensor::from_integers(TensorType::new(DType::Bool, [self.nodes.len()]), values);
        builder.constant("nodes", Attribute::from_tensor(&tensor))
    }

    fn branches(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().enumerate().filter(|(place, node)| !node.is_leaf(*place)).map(|(_, node)| node)
    }

    /// The places of the leaves.
    pub fn leaf_places(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|&place| self.nodes[place].is_leaf(place))
    }

    /// The place of the leaf that each tree reaches for each row of x [rows, features]: i64 [rows, trees].
    pub fn leaves(&self, builder: &mut Builder, x: Value) -> Result<Value, Fault> {
        let depth = self.depth()?;
        let shape = builder.shape(x);
        let &[rows, features] = &shape[..] else {
            return Err(Fault::operands(format!("the rows {} must have two axes", builder.ty(x))));
        };
        if let Some(node) = self.branches().find(|node| node.feature >= features) {
            return Err(Fault::parameter(format!("there is no feature {} among {features}", node.feature)));
        }
        if rows.saturating_mul(self.roots.len()) > MOST_ELEMENTS {
            return Err(Fault::variant(format!("{rows} rows for {} trees are too many", self.roots.len())));
        }
        let roots: Vec<i64> = self.roots.iter().map(|&root| root as i64).collect();
        let roots = Tensor::from_integers(TensorType::new(DType::I64, [1, roots.len()]), roots);
        let roots = builder.constant("roots", Attribute::from_tensor(&roots));
        let mut place = builder.broadcast(roots, &[rows, self.roots.len()])?;
        let starts = (0..rows).map(|row| (row * features) as i64).collect();
        let starts = Tensor::from_integers(TensorType::new(DType::I64, [rows, 1]), starts);
        let starts = builder.constant("rows", Attribute::from_tensor(&starts));
        let flat = builder.reshape(x, &[rows * features])?;
        let tables = Tables::new(self, builder, builder.dtype(x))?;
        for _ in 0..depth {
            let feature = builder.gather(tables.features, place, 0)?;
            let index = builder.binary(B::Add, feature, starts)?;
            let element = builder.gather(flat, index, 0)?;
            let holds = tables.holds(builder, place, element)?;
            let (when_true, when_false) =
                (builder.gather(tables.when_true, place, 0)?, builder.gather(tables.when_false, place, 0)?);
            place = builder.select(holds, when_true, when_false)?;
        }
        Ok(place)
    }
}

/// The fields of all nodes.
struct Tables {
    features: Value,
    thresholds: Value,
    when_true: Value,
    when_false: Value,
    /// The comparisons that occur, and the nodes that use each.
    comparisons: Vec<(Comparison, Value)>,
    /// Members by node, filled up with NaN, which equals nothing.
    members: Option<Value>,
    /// Whether a NaN counts as true, if it does anywhere.
    missing: Option<Value>,
}

impl Tables {
    fn new(forest: &Forest, builder: &mut Builder, dtype: DType) -> Result<Self, Fault> {
        let count = forest.nodes.len();
        let thresholds = forest.nodes.iter().map(|node| node.threshold).collect();
        let thresholds = Tensor::from_floats(TensorType::new(dtype, [count]), thresholds);
        let used = |comparison: &Comparison| forest.branches().any(|node| node.comparison == *comparison);
        let mut comparisons = Vec::new();
        for comparison in Comparison::ALL.into_iter().filter(used) {
            comparisons.push((comparison, forest.bools(builder, |node| node.comparison == comparison)));
        }
        let width = forest.nodes.iter().map(|node| node.members.len()).max().unwrap_or(0);
        if count.saturating_mul(width) > MOST_ELEMENTS {
            return Err(Fault::variant(format!("{count} nodes of up to {width} members are too many")));
        }
        let members = comparisons.iter().any(|(comparison, _)| *comparison == Comparison::Member).then(|| {
            let padded = |node: &Node| {
                let missing = std::iter::repeat_n(f64::NAN, width - node.members.len());
                node.members.iter().copied().chain(missing).collect::<Vec<f64>>()
            };
            let values = forest.nodes.iter().flat_map(padded).collect();
            let tensor = Tensor::from_floats(TensorType::new(dtype, [count, width]), values);
            builder.constant("members", Attribute::from_tensor(&tensor))
        });
        let matters = forest.branches().any(|node| node.missing_is_true);
        let missing = matters.then(|| forest.bools(builder, |node| node.missing_is_true));
        Ok(Tables {
            features: forest.integers(builder, |node| node.feature),
            thresholds: builder.constant("thresholds", Attribute::from_tensor(&thresholds)),
            when_true: forest.integers(builder, |node| node.when_true),
            when_false: forest.integers(builder, |node| node.when_false),
            comparisons,
            members,
            missing,
        })
    }

    /// Whether the condition of the nodes at these places is true for the elements.
    fn holds(&self, builder: &mut Builder, place: Value, element: Value) -> Result<Value, Fault> {
        let mut holds = None;
        for &(comparison, nodes) in &self.comparisons {
            let one = self.compare(builder, comparison, place, element)?;
            holds = Some(match holds {
                None => one,
                Some(others) => {
                    let here = builder.gather(nodes, place, 0)?;
                    builder.select(here, one, others)?
                }
            });
        }
        let Some(holds) = holds else { return Err(Fault::parameter("no node compares anything")) };
        let Some(missing) = self.missing else { return Ok(holds) };
        let missing = builder.gather(missing, place, 0)?;
        let is_nan = builder.unary(U::IsNan, element)?;
        let counts = builder.binary(B::And, is_nan, missing)?;
        Ok(builder.binary(B::Or, holds, counts)?)
    }

    fn compare(
        &self,
        builder: &mut Builder,
        comparison: Comparison,
        place: Value,
        element: Value,
    ) -> Result<Value, Fault> {
        if let Some(function) = comparison.function() {
            let threshold = builder.gather(self.thresholds, place, 0)?;
            return Ok(builder.binary(function, element, threshold)?);
        }
        let Some(members) = self.members else { return Err(Fault::parameter("a node has no members")) };
        let members = builder.gather(members, place, 0)?;
        let element = builder.insert_axis(element, 2)?;
        let equal = builder.binary(B::Equal, element, members)?;
        Ok(builder.apply(Reduce { function: ReduceFunction::Any, axes: vec![2], keep_axes: false }, &[equal])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree that asks whether feature 0 is at most 1.
    fn stump(when_true: usize, when_false: usize) -> Forest {
        let mut root = Node::leaf(0);
        (root.threshold, root.when_true, root.when_false) = (1.0, when_true, when_false);
        Forest { nodes: vec![root, Node::leaf(1), Node::leaf(2)], roots: vec![0] }
    }

    fn leaves(forest: &Forest, missing_is_true: bool) -> Result<Vec<i64>, Fault> {
        let mut builder = Builder::new("test");
        builder.compute_constants();
        let mut nodes = forest.nodes.clone();
        nodes[0].missing_is_true = missing_is_true;
        let forest = Forest { nodes, roots: forest.roots.clone() };
        let x = builder.constant("x", Attribute::from_f32(&[3, 1], &[1.0, 2.0, f32::NAN]).unwrap());
        let leaves = forest.leaves(&mut builder, x)?;
        Ok(builder.graph().constant(leaves).unwrap().to_tensor().to_integers())
    }

    #[test]
    fn rows_walk_to_their_leaves() {
        assert_eq!(leaves(&stump(1, 2), false).unwrap(), [1, 2, 2]);
        assert_eq!(leaves(&stump(1, 2), true).unwrap(), [1, 2, 1]);
    }

    #[test]
    fn cycles_and_missing_nodes_are_refused() {
        assert!(leaves(&stump(0, 1), false).unwrap_err().message.contains("cycle"));
        assert!(leaves(&stump(1, 7), false).unwrap_err().message.contains("no node 7"));
        let mut forest = stump(1, 2);
        forest.nodes[0].feature = 1;
        assert!(leaves(&forest, false).unwrap_err().message.contains("no feature 1"));
    }
}
