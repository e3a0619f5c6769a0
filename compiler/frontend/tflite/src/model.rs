//! [`Model`]: a file as its reader gives it, without its operators understood.

use crate::element_type::ElementType;
use crate::sparsity::Sparsity;
use bytes::Bytes;
use indexmap::IndexMap;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A model.
#[derive(Debug, Clone)]
pub struct Model {
    /// The first is the model's own; operators refer to the others.
    pub subgraphs: Vec<Subgraph>,
}

/// Operators in an order in which they can be computed, and the tensors that they read and write.
#[derive(Debug, Clone)]
pub struct Subgraph {
    /// Its name; may be empty.
    pub name: String,
    /// Its tensors.
    pub tensors: Vec<Tensor>,
    /// Numbers of the tensors that it is given.
    pub inputs: Vec<usize>,
    /// Numbers of the tensors that it gives.
    pub outputs: Vec<usize>,
    /// Its operators.
    pub operators: Vec<Operator>,
}

/// A tensor of a subgraph.
#[derive(Debug, Clone)]
pub struct Tensor {
    /// Its name; may be empty, or that of another tensor, too.
    pub name: String,
    /// Its extents, 1 for those that are open.
    pub shape: Vec<usize>,
    /// Whether an extent is open.
    pub is_open: bool,
    /// What its elements are.
    pub element_type: ElementType,
    /// Its value, if it is a constant.
    pub data: Option<Bytes>,
    /// How its integers stand for real numbers.
    pub quantization: Option<Quantization>,
    /// Whether it keeps its value from one run to the next.
    pub is_variable: bool,
    /// Where the elements of its value belong, if zeros are left out.
    pub sparsity: Option<Sparsity>,
}

/// How integers stand for real numbers: `real = scale * (integer - zero_point)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantization {
    /// One for the tensor, or one for each index of an axis.
    pub scales: Vec<f32>,
    /// As many as scales.
    pub zero_points: Vec<i64>,
    /// The axis.
    pub axis: usize,
}

impl Quantization {
    /// That of a whole tensor, if it has one scale.
    pub fn whole(&self) -> Option<mlc_ir::Quantization> {
        match (&self.scales[..], &self.zero_points[..]) {
            (&[scale], &[zero_point]) if scale > 0.0 && scale.is_finite() => {
                Some(mlc_ir::Quantization { scale: mlc_ir::Float(scale.into()), zero_point })
            }
            _ => None,
        }
    }
}

/// An operator of a subgraph.
#[derive(Debug, Clone)]
pub struct Operator {
    /// Its number in the subgraph.
    pub index: usize,
    /// Its type, in the words of the schema, or a custom operator's own.
    pub kind: Cow<'static, str>,
    /// Whether the format doesn't define it.
    pub is_custom: bool,
    /// Numbers of tensors.
    pub inputs: Vec<Option<usize>>,
    /// Numbers of tensors.
    pub outputs: Vec<usize>,
    /// Numbers of tensors that say scales of numbers inside of the operator.
    pub intermediates: Vec<usize>,
    /// Its options by name; those that the file leaves out have their defaults. A custom operator has those that are there in the form of
    /// a FlexBuffer.
    pub options: IndexMap<Cow<'static, str>, Setting>,
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// A whole number, or a choice by its number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Flag(bool),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
    /// A text.
    Text(String),
    /// A subgraph that the operator runs, by its number.
    Subgraph(usize),
    /// What no operator takes: a map, bytes, a list of texts.
    Other,
}

impl Operator {
    /// The numbers of the subgraphs that it runs.
    pub fn subgraphs(&self) -> impl Iterator<Item = usize> + '_ {
        self.options.values().filter_map(|setting| match setting {
            Setting::Subgraph(number) => Some(*number),
            _ => None,
        })
    }
}

impl Model {
    /// Operators by type, those that the format doesn't define included, and how often each is there.
    pub fn operators(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for operator in self.subgraphs.iter().flat_map(|subgraph| &subgraph.operators) {
            *counts.entry(operator.kind.clone().into_owned()).or_insert(0) += 1;
        }
        counts
    }

    /// How many constants there are, and their bytes.
    pub fn weights(&self) -> (usize, u64) {
        let tensors = self.subgraphs.iter().flat_map(|subgraph| &subgraph.tensors);
        let data = tensors.filter_map(|tensor| tensor.data.as_ref());
        data.fold((0, 0), |(count, bytes), data| (count + 1, bytes + data.len() as u64))
    }
}
