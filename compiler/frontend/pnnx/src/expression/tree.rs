//! The arena of an expression, and its text.

use super::function::Function;
use crate::model::Complex;
use std::fmt;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    pub(super) nodes: Vec<Node>,
    pub(super) children: Vec<NodeId>,
}

/// Index of a node in its expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The node's place in [`Expression::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The arguments of a call or the items of a list; [`Expression::children`] resolves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Children {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `@k`: the operator's input number k, from 0.
    Input(u32),
    /// A whole number of 32 bits.
    Int(i32),
    /// Any other real number, including `inf`, `-inf` and `nan`.
    Float(f64),
    /// A complex number.
    Complex(Complex),
    /// `True` or `False`.
    Bool(bool),
    /// `None`.
    None,
    /// Any other word, such as `torch.float`.
    Word(String),
    /// A function of its arguments.
    Call(Function, Children),
    /// `[...]`: a list of integers, tensors or results.
    List(Children),
}

impl Expression {
    /// The node that stands for the whole expression.
    pub fn root(&self) -> NodeId {
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A node of this expression.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The arguments of a call or the items of a list of this expression.
    pub fn children(&self, children: Children) -> &[NodeId] {
        &self.children[children.start as usize..children.end as usize]
    }

    /// All nodes, operands before their users, the root last.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u32), node))
    }

    /// The highest `@k` that occurs.
    pub fn highest_input(&self) -> Option<u32> {
        let inputs = self.nodes.iter().filter_map(|node| match node {
            Node::Input(index) => Some(*index),
            _ => None,
        });
        inputs.max()
    }
}

impl fmt::Display for Expression {
    /// Prints the expression without blanks and without empty items.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        enum Piece {
            Node(NodeId),
            Text(&'static str),
        }
        let mut pending = vec![Piece::Node(self.root())];
        let push_items = |pending: &mut Vec<Piece>, children: Children, closing: &'static str| {
            pending.push(Piece::Text(closing));
            for (index, child) in self.children(children).iter().enumerate().rev() {
                pending.push(Piece::Node(*child));
                if index > 0 {
                    pending.push(Piece::Text(","));
                }
            }
        };
        while let Some(piece) = pending.pop() {
            let id = match piece {
                Piece::Text(text) => {
                    f.write_str(text)?;
                    continue;
                }
                Piece::Node(id) => id,
            };
            match self.node(id) {
                Node::Input(index) => write!(f, "@{index}")?,
                Node::Int(value) => write!(f, "{value}")?,
                Node::Float(value) if value.is_nan() => f.write_str("nan")?,
                Node::Float(value) => write!(f, "{value:?}")?,
                Node::Complex(value) => write!(f, "{:?}{:+?}j", value.re, value.im)?,
                Node::Bool(true) => f.write_str("True")?,
                Node::Bool(false) => f.write_str("False")?,
                Node::None => f.write_str("None")?,
                Node::Word(word) => f.write_str(word)?,
                Node::Call(function, children) => {
                    write!(f, "{}(", function.name())?;
                    push_items(&mut pending, *children, ")");
                }
                Node::List(children) => {
                    f.write_str("[")?;
                    push_items(&mut pending, *children, "]");
                }
            }
        }
        Ok(())
    }
}
