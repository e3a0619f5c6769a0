//! The e-graph's language, derived from the operators: an e-node is an operator with its fields and tensor children.
//!
//! An operator and its fields are one interned [`Head`], not an attribute child: rules are typed functions over operators,
//! so nothing would bind such a child, and classes hold tensors only. The type of a node is a payload that identity ignores:
//! it follows from head and children, and carrying it means that inference runs once per node, before the node is added.

use crate::rewrite::Class;
use egg::{Analysis, DidMerge, EGraph, Id, Language};
use mlc_ir::folding::is_computable;
use mlc_ir::scalar::{Scalar, evaluate_scalar};
use mlc_ir::{Attribute, Category, Literal, Op, TensorType};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What an e-node applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Head {
    /// The operator of this number, in the order of first use. Inputs aren't among them.
    Op(u32),
    /// Input `k` of the graph.
    Input(u32),
    /// Result `k` of the child, an operator of several results.
    Projection(u32),
    /// The outputs of the graph: the root.
    Outputs,
}

/// An e-node.
#[derive(Debug, Clone)]
pub struct ENode {
    /// What is applied.
    pub head: Head,
    /// The operator, for [`Head::Op`].
    pub op: Option<Arc<Op>>,
    /// The operands.
    pub children: SmallVec<[Id; 4]>,
    /// Types of the results.
    pub results: Arc<[TensorType]>,
}

impl PartialEq for ENode {
    fn eq(&self, other: &Self) -> bool {
        self.head == other.head && self.children == other.children
    }
}

impl Eq for ENode {}

impl Hash for ENode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.head.hash(state);
        self.children.hash(state);
    }
}

impl PartialOrd for ENode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ENode {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.head, &self.children).cmp(&(&other.head, &other.children))
    }
}

impl Language for ENode {
    type Discriminant = Head;

    fn discriminant(&self) -> Head {
        self.head.clone()
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

/// What all nodes of a class have in common.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Types of the results; one but for operators of several results.
    pub results: Arc<[TensorType]>,
    /// Whether the value depends on constants only.
    pub constant: bool,
    /// The number that all elements are known to be.
    pub splat: Option<Literal>,
    /// The elements, where a node is a constant.
    pub value: Option<Attribute>,
}

/// The analysis: see [`Facts`].
#[derive(Debug, Default)]
pub struct TypeAnalysis;

impl Analysis<ENode> for TypeAnalysis {
    type Data = Facts;

    fn make(egraph: &mut EGraph<ENode, Self>, node: &ENode, _id: Id) -> Facts {
        facts(egraph, node)
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        debug_assert_eq!(a.results, b.results);
        let before = (a.constant, a.splat, a.value.is_some());
        let theirs = (b.constant, b.splat, b.value.is_some());
        a.constant |= b.constant;
        a.splat = a.splat.or(b.splat);
        a.value = a.value.take().or(b.value);
        let after = (a.constant, a.splat, a.value.is_some());
        DidMerge(before != after, theirs != after)
    }
}

fn facts(egraph: &EGraph<ENode, TypeAnalysis>, node: &ENode) -> Facts {
    let results = node.results.clone();
    let unknown = Facts { results: results.clone(), constant: false, splat: None, value: None };
    let Some(op) = &node.op else { return unknown };
    if let Op::Constant(constant) = &**op {
        let (value, splat) = (Some(constant.value.clone()), constant.value.splat());
        return Facts { results, constant: true, splat, value };
    }
    let children: Vec<&Facts> = node.children.iter().map(|&child| &egraph[child].data).collect();
    if results.len() != 1 || !is_computable(op) || children.is_empty() || children.iter().any(|child| !child.constant) {
        return unknown;
    }
    Facts { splat: splat(op, &children), constant: true, ..unknown }
}

/// The number that all elements of an operator over constants are, if its operands tell.
fn splat(op: &Op, children: &[&Facts]) -> Option<Literal> {
    let literals: Vec<Literal> = children.iter().map(|child| child.splat).collect::<Option<_>>()?;
    match op.category() {
        Category::View => literals.first().copied(),
        Category::Movement if !matches!(op, Op::Pad(_)) => {
            literals.windows(2).all(|pair| pair[0] == pair[1]).then_some(literals[0])
        }
        Category::Elementwise => {
            let types: Vec<TensorType> = children.iter().map(|child| child.results[0].clone()).collect();
            let expression = op.expression(&types)?;
            let dtypes = expression.dtypes(&types.iter().map(|ty| ty.dtype).collect::<Vec<_>>()).ok()?;
            let scalars: Vec<Scalar> = literals.iter().map(|&literal| literal.into()).collect();
            let dtype = dtypes.last().copied()?;
            Some(evaluate_scalar(&expression, &dtypes, &scalars, &mut Vec::new()).literal(dtype))
        }
        _ => None,
    }
}

/// The e-graph of the language.
pub type Graph = EGraph<ENode, TypeAnalysis>;

/// Type of the only value of a class.
pub fn ty(egraph: &Graph, class: Class) -> &TensorType {
    &egraph[class].data.results[0]
}
