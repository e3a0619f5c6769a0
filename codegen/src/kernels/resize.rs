//! Interpolation. Each output along a resized axis combines a fixed number of source elements; where they lie and what they
//! weigh is known now, and written into tables, or into the code where a quotient or a multiple of the output's index says it.

use super::elementwise::{copy_runs, has_runs};
use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::space::for_vectors;
use super::walk::AXIS_NAMES;
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use mlc_ir::ops::{Resize, Taps};
use mlc_ir::{Attribute, DType, Diagnostic, Shape, Tensor, TensorType};

impl Scheduled for Resize {
    const KINDS: &'static [Kind<Self>] =
        &[Kind::new("copies", copies, copy), Kind::new("taps", |_, _| vec![(1, Settings::default())], resize)];
}

/// Elements that are only repeated, many of which follow each other.
fn copies(op: &Resize, kernel: &KernelWriter<'_>) -> Preferences {
    match repeated(op, kernel) {
        Some((x, y)) if has_runs(kernel, &x, &y) => vec![(0, Settings::default())],
        _ => Preferences::new(),
    }
}

fn copy(op: &Resize, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if let Some((x, y)) = repeated(op, kernel) {
        copy_runs(kernel, &x, &y);
    }
    Ok(())
}

/// Operand and result of a resize that only repeats elements, where the times that each is repeated are axes of their own.
fn repeated(op: &Resize, kernel: &KernelWriter<'_>) -> Option<(Argument, Argument)> {
    if kernel.epilogue.is_some() {
        return None;
    }
    let (mut x, mut y) = (kernel.operands[0].clone(), kernel.results[0].clone());
    let (from, to) = (x.view.clone(), y.view.clone());
    let mut shape = Shape::new();
    (x.view.strides, y.view.strides) = Default::default();
    for axis in 0..from.rank() {
        let repeat = op.repeats(axis, from.shape[axis])?;
        shape.extend([from.shape[axis], repeat]);
        x.view.strides.extend([from.strides[axis], 0]);
        y.view.strides.extend([to.strides[axis] * repeat as i64, to.strides[axis]]);
    }
    (x.view.shape, y.view.shape) = (shape.clone(), shape);
    Some((x, y))
}

fn resize(op: &Resize, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let x = kernel.operands[0].view.clone();
    let dtype = x.dtype;
    let axes: Vec<Axis> = (0..x.rank()).map(|axis| Axis::new(kernel, op, axis, x.shape[axis], dtype)).collect();
    let shape = kernel.results[0].view.shape.to_vec();
    level(kernel, &axes, &shape, &mut Vec::new(), &mut Vec::new());
    Ok(())
}

/// How outputs along an axis are made.
enum Axis {
    /// Not resized.
    Same,
    /// One source element each, at a multiple of the output's index plus an offset.
    Multiple(i64, i64),
    /// One source element each, at the quotient of the output's index.
    Quotient(i64),
    /// One source element each, by a table.
    Nearest { sources: Var },
    /// Several source elements each, with weights, by tables of `taps` entries per output.
    Weighted { sources: Var, weights: Var, taps: usize },
}

/// What one output along an axis combines: source elements and their weights; one without weight for a copy.
type Terms = Vec<(Index, Option<Expr>)>;

impl Axis {
    fn new(kernel: &mut KernelWriter<'_>, op: &Resize, axis: usize, extent: usize, dtype: DType) -> Axis {
        if !op.axes.contains(&axis) {
            return Axis::Same;
        }
        let taps = op.taps(axis, extent);
        let width = taps.first().map_or(1, |taps| taps.len());
        if let Some(sources) = copied(&taps) {
            return Axis::nearest(kernel, axis, &sources);
        }
        let entries = || taps.iter().flatten();
        let sources = entries().map(|tap| tap.0 as i64).collect();
        let weights = entries().map(|tap| tap.1).collect();
        let count = taps.len() * width;
        let weights = Tensor::from_floats(TensorType::new(dtype, [count]), weights);
        Axis::Weighted {
            sources: index_table(kernel, &format!("sources{axis}"), sources),
            weights: kernel.table(&format!("weights{axis}"), Attribute::from_tensor(&weights)),
            taps: width,
        }
    }

    fn nearest(kernel: &mut KernelWriter<'_>, axis: usize, sources: &[i64]) -> Axis {
        let outputs = || sources.iter().copied().zip(0i64..);
        let first = sources.first().copied().unwrap_or(0);
        let step = sources.get(1).map_or(1, |second| second - first);
        if outputs().all(|(source, output)| source == output * step + first) {
            return Axis::Multiple(step, first);
        }
        let run = sources.iter().take_while(|&&source| source == 0).count().max(1) as i64;
        if outputs().all(|(source, output)| source == output / run) {
            return Axis::Quotient(run);
        }
        Axis::Nearest { sources: index_table(kernel, &format!("sources{axis}"), sources.to_vec()) }
    }

    fn terms(&self, kernel: &mut KernelWriter<'_>, output: &Index, dtype: DType) -> Terms {
        match *self {
            Axis::Same => vec![(output.clone(), None)],
            Axis::Multiple(step, first) => vec![(output.times(step).offset(first), None)],
            Axis::Quotient(run) => vec![(kernel.b.define_index("source", output.divided_by(run)), None)],
            Axis::Nearest { sources } => {
                let source = entry(sources, output.clone());
                vec![(kernel.b.define_index("source", source), None)]
            }
            Axis::Weighted { sources, weights, taps } => {
                let entries = (0..taps).map(|tap| output.times(taps as i64).offset(tap as i64));
                entries
                    .map(|index| {
                        let source = kernel.b.define_index("source", entry(sources, index.clone()));
                        let weight = Expr::Load { pointer: weights, index, ty: ValueType::scalar(dtype) };
                        (source, Some(kernel.b.define("weight", weight)))
                    })
                    .collect()
            }
        }
    }
}

/// The source element of each output when each is a copy.
fn copied(taps: &[Taps]) -> Option<Vec<i64>> {
    let single = |taps: &Taps| match taps[..] {
        [(source, 1.0)] => Some(source as i64),
        _ => None,
    };
    taps.iter().map(single).collect()
}

fn index_table(kernel: &mut KernelWriter<'_>, name: &str, values: Vec<i64>) -> Var {
    let table = Tensor::from_integers(TensorType::new(DType::I32, [values.len()]), values);
    kernel.table(name, Attribute::from_tensor(&table))
}

fn entry(table: Var, index: Index) -> Index {
    Index::value(Expr::Load { pointer: table, index, ty: ValueType::scalar(DType::I32) })
}

/// The loops over the outputs of the next axis; `outputs` and `terms` are those so far.
fn level(
    kernel: &mut KernelWriter<'_>,
    axes: &[Axis],
    shape: &[usize],
    outputs: &mut Vec<Index>,
    terms: &mut Vec<Terms>,
) {
    let number = outputs.len();
    let x = kernel.operands[0].clone();
    let dtype = x.view.dtype;
    let Some(axis) = axes.get(number) else {
        let value = combined(kernel, terms, &mut Vec::new(), 1);
        return kernel.finish(value, outputs, 1);
    };
    if number + 1 == axes.len() && matches!(axis, Axis::Same) {
        let lanes = if x.view.last_stride() == 1 { kernel.epilogue_lanes(dtype) } else { 1 };
        return for_vectors(kernel, "c", shape[number], lanes, dtype, |kernel, channel, lanes| {
            let terms: Vec<Terms> = terms.iter().cloned().chain([vec![(channel.clone(), None)]]).collect();
            let value = combined(kernel, &terms, &mut Vec::new(), lanes);
            let outputs: Vec<Index> = outputs.iter().cloned().chain([channel]).collect();
            kernel.finish(value, &outputs, lanes);
        });
    }
    let name = AXIS_NAMES.get(number).copied().unwrap_or("i");
    kernel.for_each(name, shape[number], |kernel, output| {
        terms.push(axis.terms(kernel, &output, dtype));
        outputs.push(output);
        level(kernel, axes, shape, outputs, terms);
        outputs.pop();
        terms.pop();
    });
}

/// The weighted sum over all combinations of terms, innermost axes first.
fn combined(kernel: &mut KernelWriter<'_>, terms: &[Terms], sources: &mut Vec<Index>, lanes: usize) -> Expr {
    let Some((first, rest)) = terms.split_first() else {
        let x = kernel.operands[0].clone();
        return kernel.load(&x, sources, lanes, lanes);
    };
    let mut sum: Option<Expr> = None;
    for (source, weight) in first {
        sources.push(source.clone());
        let value = combined(kernel, rest, sources, lanes);
        sources.pop();
        let value = match weight {
            Some(weight) => value.times(weight.clone()),
            None => value,
        };
        sum = Some(match sum {
            Some(sum) => sum.plus(value),
            None => value,
        });
    }
    match sum {
        Some(sum) if first.len() > 1 => kernel.b.define("mix", sum),
        Some(sum) => sum,
        None => Expr::Literal(mlc_ir::Literal::of(kernel.operands[0].view.dtype, 0.0)),
    }
}
