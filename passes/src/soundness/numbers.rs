//! The numbers that graphs are evaluated for, ordinary and extreme ones, and the comparison of what comes out.

use crate::rewrite::Exactness;
use mlc_ir::ops::Constant;
use mlc_ir::{Attribute, DType, Generator, Graph, NodeId, Op, Tensor, TensorType, Values};
use std::collections::BTreeMap;

/// What stands among the ordinary numbers of inputs and constants: floats in -2..2, and small integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// Nothing else.
    Ordinary,
    /// NaN.
    Nan,
    /// Infinities of both signs.
    Infinities,
    /// Zeros of both signs.
    Zeros,
    /// Denormals of both signs.
    Denormals,
    /// Numbers so large that products of three are still in the type's range.
    Large,
    /// The largest and smallest numbers of the type.
    Extremes,
}

impl Numbers {
    /// All of them.
    pub(super) const ALL: [Numbers; 7] = [
        Numbers::Ordinary,
        Numbers::Nan,
        Numbers::Infinities,
        Numbers::Zeros,
        Numbers::Denormals,
        Numbers::Large,
        Numbers::Extremes,
    ];

    /// Whether rules of a class promise anything for them.
    pub(super) fn are_promised(self, exactness: Exactness) -> bool {
        match exactness {
            Exactness::Exact => true,
            Exactness::Finite => !matches!(self, Numbers::Nan | Numbers::Infinities),
            Exactness::Reassociation => self != Numbers::Extremes,
        }
    }

    fn float(self, dtype: DType, random: &mut Generator) -> f64 {
        let (denormal, large, largest) = match dtype {
            DType::F16 => (3e-6, 30.0, 65504.0),
            DType::F64 => (1e-310, 1e100, f64::MAX),
            DType::Bf16 => (1e-40, 1e12, 3.3895e38),
            _ => (1e-40, 1e12, f64::from(f32::MAX)),
        };
        let magnitude = match self {
            Numbers::Ordinary => return random.unit() * 2.0,
            Numbers::Nan => f64::NAN,
            Numbers::Infinities => f64::INFINITY,
            Numbers::Zeros => 0.0,
            Numbers::Denormals => denormal,
            Numbers::Large => large,
            Numbers::Extremes => largest,
        };
        if random.one_in(2) { magnitude } else { -magnitude }
    }

    fn integer(self, dtype: DType, random: &mut Generator) -> Option<i64> {
        let bits = 8 * dtype.size() as u32;
        match self {
            Numbers::Zeros => Some(0),
            Numbers::Extremes if dtype == DType::Bool => None,
            // Wrapped to the type, so that half of them are its smallest and its largest number.
            Numbers::Extremes => Some((1i64 << (bits - 1)).wrapping_sub(random.range(0, 1) as i64)),
            _ => None,
        }
    }

    /// Random values of a type, about every fourth of which is one of these numbers.
    fn tensor(self, ty: &TensorType, random: &mut Generator) -> Tensor {
        self.among(&random.tensor(ty), random)
    }

    fn among(self, tensor: &Tensor, random: &mut Generator) -> Tensor {
        if self == Numbers::Ordinary {
            return tensor.clone();
        }
        let ty = tensor.ty().clone();
        match tensor.values() {
            Values::Float(values) => {
                let one = |&value: &f64| if random.one_in(4) { self.float(ty.dtype, random) } else { value };
                let values = values.iter().map(one).collect();
                Tensor::from_floats(ty, values)
            }
            Values::Integer(values) => {
                let one = |&value: &i64| {
                    let special = if random.one_in(4) { self.integer(ty.dtype, random) } else { None };
                    special.unwrap_or(value)
                };
                let values = values.iter().map(one).collect();
                Tensor::from_integers(ty, values)
            }
        }
    }

    /// The graph with these numbers among its constants. A constant of equal elements keeps them equal, as rules depend on it.
    pub(super) fn in_constants(self, graph: &Graph, random: &mut Generator) -> Graph {
        let mut result = graph.clone();
        for id in graph.node_ids() {
            let Op::Constant(constant) = &graph.node(id).op else { continue };
            if self == Numbers::Ordinary || !random.one_in(2) {
                continue;
            }
            let value = match constant.value.splat() {
                Some(literal) if literal.dtype().is_float() => {
                    let number = self.float(literal.dtype(), random);
                    Tensor::splat(constant.value.ty().clone(), mlc_ir::Literal::float(literal.dtype(), number))
                }
                Some(_) => continue,
                None => self.among(&constant.value.to_tensor(), random),
            };
            result.replace_op(id, Constant { value: Attribute::from_tensor(&value) }).unwrap();
        }
        result
    }
}

/// Evaluates every node of a graph, with these numbers among its inputs. A node is missing when its operator has no result for
/// them, or an operand is missing.
pub(super) fn evaluate(graph: &Graph, seed: u64, numbers: Numbers) -> BTreeMap<NodeId, Vec<Tensor>> {
    let mut random = Generator::new(seed);
    let mut values: BTreeMap<NodeId, Vec<Tensor>> = BTreeMap::new();
    for &input in graph.inputs() {
        values.insert(input, vec![numbers.tensor(&graph.node(input).results[0], &mut random)]);
    }
    for id in graph.topological_order() {
        if values.contains_key(&id) {
            continue;
        }
        let node = graph.node(id);
        let operands = graph.operands(id);
        let found: Option<Vec<&Tensor>> =
            operands.iter().map(|value| values.get(&value.node).map(|results| &results[value.slot as usize])).collect();
        if let Some(results) = found.and_then(|found| node.op.evaluate(&found, &node.results).ok()) {
            values.insert(id, results);
        }
    }
    values
}

/// Whether all constants of a graph are finite.
pub(super) fn has_finite_constants(graph: &Graph) -> bool {
    let finite = |tensor: Tensor| !tensor.ty().dtype.is_float() || tensor.to_floats().iter().all(|x| x.is_finite());
    graph.node_ids().filter_map(|id| graph.constant(id.into())).all(|value| finite(value.to_tensor()))
}

/// Whether some of these nodes computed an infinity or NaN from finite numbers.
pub(super) fn overflow(graph: &Graph, nodes: &[NodeId], values: &BTreeMap<NodeId, Vec<Tensor>>) -> bool {
    let finite = |id: &NodeId| {
        let tensors = values.get(id).into_iter().flatten();
        tensors.filter(|tensor| tensor.ty().dtype.is_float()).all(|x| x.to_floats().iter().all(|x| x.is_finite()))
    };
    let (sources, others): (Vec<&NodeId>, Vec<&NodeId>) =
        nodes.iter().partition(|id| graph.node(**id).op.category() == mlc_ir::Category::Source);
    sources.into_iter().all(finite) && !others.into_iter().all(finite)
}

/// What a rounding error may be, relative to the numbers that are rounded.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2e-2,
        DType::Bf16 => 0.16,
        _ => 2e-5,
    }
}

/// By how much two values differ more than a class of exactness allows, relative to the largest element; 0 when they don't.
pub(super) fn excess(exactness: Exactness, left: &Tensor, right: &Tensor, numbers: Numbers) -> f64 {
    if left.ty() != right.ty() {
        return f64::INFINITY;
    }
    if let (Values::Integer(left), Values::Integer(right)) = (left.values(), right.values()) {
        return if left == right { 0.0 } else { f64::INFINITY };
    }
    let tolerance = tolerance(left.ty().dtype);
    let (left, right) = (left.to_floats(), right.to_floats());
    let scale = left.iter().filter(|x| x.is_finite()).fold(1.0, |largest: f64, x| largest.max(x.abs()));
    let one = |x: f64, y: f64| match exactness {
        _ if x == y || (x.is_nan() && y.is_nan()) => 0.0,
        Exactness::Reassociation if !x.is_finite() && !y.is_finite() => 0.0,
        _ if !x.is_finite() || !y.is_finite() => f64::INFINITY,
        Exactness::Exact | Exactness::Finite => (x - y).abs(),
        // They cancel, and leave nothing but rounding errors.
        Exactness::Reassociation if numbers == Numbers::Large => 0.0,
        Exactness::Reassociation => ((x - y).abs() / scale - tolerance).max(0.0),
    };
    left.iter().zip(&right).map(|(&x, &y)| one(x, y)).fold(0.0, f64::max)
}
