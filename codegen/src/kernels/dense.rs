//! The register tile: sums of products over strided operands, the core of convolutions and matrix products.
//!
//! A [`Contraction`] computes, for each position of its outer axes and each output, the sum of `x * weights` over its
//! reduction axes. Some pixels times some vectors of outputs are computed at once, each sum in a variable of its own; an
//! element of `x` is multiplied with vectors of weights that were packed when the code was generated. All bounds are
//! constants, and nothing is ever checked at run time.

use super::accumulate::Tile;
use super::tile::{self, Block, Lanes, Machine, Span};
use super::weights::{Store, Weights};
use super::{Argument, Epilogue, Kernel};
use crate::loops::{Expr, Index, Nest, Var};
use crate::lower::view::{View, merge_axes};
use crate::target::Target;
use mlc_ir::types::row_major_strides;
use mlc_ir::{Code, DType, Diagnostic, Location};

/// Bytes between elements that compete for the same place in the first level of cache of most machines, and how many of
/// them have one beside the weights.
const CACHE_PERIOD: usize = 2048;
const CACHE_WAYS: usize = 6;

/// An axis of a contraction: elements that `x` and the weights move along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Positions.
    pub extent: usize,
    /// Elements of `x` between positions.
    pub x: i64,
    /// Elements of the weights between positions.
    pub weights: i64,
}

/// Sums of products over strided operands. The first result of the kernel must have the outer axes' extents, and one more
/// axis for the outputs.
#[derive(Debug, Clone)]
pub struct Contraction {
    /// The operand that is read element by element.
    pub x: Argument,
    /// Element of `x` at the origin of all axes.
    pub x_offset: i64,
    /// The operand that is read in vectors along the outputs.
    pub weights: Argument,
    /// Element of the weights at the origin of all axes. Strides and offset of constant weights are those of the dense tensor.
    pub weights_offset: i64,
    /// One axis for each axis of the result but the last. Those along which the weights move come first.
    pub outer: Vec<Axis>,
    /// Axes that are summed over, outermost first.
    pub reduction: Vec<Axis>,
    /// Number of outputs.
    pub outputs: usize,
    /// Elements of the weights between outputs.
    pub output_stride: i64,
}

/// Strides of the weights as schedules see them: of the dense tensor for constants, of the view otherwise.
pub fn weight_strides(weights: &Argument) -> Vec<i64> {
    match weights.constant {
        Some(_) => row_major_strides(&weights.view.shape).iter().map(|&stride| stride as i64).collect(),
        None => weights.view.strides.to_vec(),
    }
}

/// Replaces the first result's and the epilogue operands' views, which all get the result's shape, while `body` writes.
pub fn with_views<'a, T>(
    kernel: &mut Kernel<'a>,
    transform: impl Fn(&View) -> View,
    body: impl FnOnce(&mut Kernel<'a>) -> T,
) -> T {
    let shape = kernel.results[0].view.shape.clone();
    let (result, epilogue) = (kernel.results[0].clone(), kernel.epilogue.clone());
    let change = |kernel: &mut Kernel<'a>, argument: &Argument| {
        let view = transform(&argument.view.broadcast(&shape));
        let moved = view.offset - argument.view.offset;
        let pointer = kernel.b.pointer("part", argument.pointer, Index::from(moved));
        Argument { view, pointer, ..argument.clone() }
    };
    kernel.results[0] = change(kernel, &result);
    kernel.epilogue = epilogue.as_ref().map(|epilogue| Epilogue {
        expression: epilogue.expression.clone(),
        operands: epilogue.operands.iter().map(|operand| change(kernel, operand)).collect(),
    });
    let value = body(kernel);
    kernel.results[0] = result;
    kernel.epilogue = epilogue;
    value
}

impl Contraction {
    /// Number of products in each sum.
    pub fn steps(&self) -> usize {
        self.reduction.iter().map(|axis| axis.extent).product()
    }

    /// Writes the kernel's loops.
    ///
    /// # Errors
    /// When C has no arithmetic for the data type.
    pub fn write(mut self, kernel: &mut Kernel<'_>) -> Result<(), Diagnostic> {
        arithmetic(self.x.view.dtype)?;
        if kernel.results[0].view.elements() == 0 {
            return Ok(());
        }
        self.reduction = if self.steps() == 0 {
            vec![Axis { extent: 0, x: 0, weights: 0 }]
        } else {
            merged_reduction(&self.reduction)
        };
        let mut order: Vec<usize> = (0..self.outer.len()).collect();
        order.sort_by_key(|&axis| self.outer[axis].weights == 0);
        let views: Vec<View> = self.outer_views(kernel).iter().map(|view| view.transpose(&order)).collect();
        let merged = merge_axes(&views);
        self.outer = (0..merged[0].rank())
            .map(|axis| Axis {
                extent: merged[0].shape[axis],
                x: merged[0].strides[axis],
                weights: merged[1].strides[axis],
            })
            .collect();
        let outputs = self.outputs;
        let result = with_outputs(&kernel.results[0], &merged[2], outputs);
        let epilogue = kernel.epilogue.as_ref().map(|epilogue| Epilogue {
            expression: epilogue.expression.clone(),
            operands: epilogue
                .operands
                .iter()
                .zip(&merged[3..])
                .map(|(own, view)| with_outputs(own, view, outputs))
                .collect(),
        });
        let old =
            (std::mem::replace(&mut kernel.results[0], result), std::mem::replace(&mut kernel.epilogue, epilogue));
        self.loops(kernel);
        (kernel.results[0], kernel.epilogue) = old;
        Ok(())
    }

    /// Views over the outer axes only: of x, the weights, the result and the epilogue's operands.
    fn outer_views(&self, kernel: &Kernel<'_>) -> Vec<View> {
        let result = &kernel.results[0].view;
        let shape = result.shape.clone();
        let rank = self.outer.len();
        let of = |stride: fn(&Axis) -> i64| View {
            dtype: self.x.view.dtype,
            shape: shape[..rank].into(),
            strides: self.outer.iter().map(stride).collect(),
            offset: 0,
        };
        let mut views = vec![of(|axis| axis.x), of(|axis| axis.weights)];
        let epilogue = kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands);
        for argument in std::iter::once(&kernel.results[0]).chain(epilogue) {
            let view = argument.view.broadcast(&shape);
            views.push(View { shape: shape[..rank].into(), strides: view.strides[..rank].into(), ..view });
        }
        views
    }

    fn loops(&self, kernel: &mut Kernel<'_>) {
        let mut machine = machine(self.x.view.dtype, kernel);
        let apart = self.outer.last().map_or(0, |axis| axis.x.unsigned_abs() as usize * self.x.view.dtype.size());
        if apart > 0 && apart.is_multiple_of(CACHE_PERIOD) {
            machine.neighbours = CACHE_WAYS;
        }
        let fixed = self.outer.iter().filter(|axis| axis.weights != 0).count();
        let (weight_axes, pixel_axes) = self.outer.split_at(fixed);
        let (columns, above) = pixel_axes.split_last().map_or((1, pixel_axes), |(last, above)| (last.extent, above));
        let (rows, above) = above.split_last().map_or((1, above), |(last, above)| (last.extent, above));
        let above: Vec<usize> = above.iter().map(|axis| axis.extent).collect();
        let blocks = tile::plan(rows, columns, self.outputs, machine);
        let pixels: usize = pixel_axes.iter().map(|axis| axis.extent).product();
        let store = Store::choose(self, kernel, &blocks, weight_axes, pixels);
        let weight_shape: Vec<usize> = weight_axes.iter().map(|axis| axis.extent).collect();
        kernel.for_shape(&["g", "h"], &weight_shape, &mut |kernel, fixed| {
            let mut section = 0;
            for block in &blocks {
                kernel.for_each("block", block.count, |kernel, number| {
                    let weights = store.weights(self, kernel, fixed, (block, section), &number);
                    let first = number.times(block.outputs() as i64).offset(block.first as i64);
                    kernel.for_shape(&["n", "m"], &above, &mut |kernel, outer| {
                        let position = [fixed, outer].concat();
                        self.block(kernel, &position, block, &first, &weights);
                    });
                });
                section += block.count * block.width();
            }
        });
    }

    /// All tiles of one block of outputs over the last two axes of pixels.
    fn block(&self, kernel: &mut Kernel<'_>, position: &[Index], block: &Block, first: &Index, weights: &Weights) {
        let pixel_axes = self.outer.len() - position.len();
        for rows in &block.rows {
            walk(kernel, "row", *rows, |kernel, row| {
                for columns in &block.columns {
                    walk(kernel, "column", *columns, |kernel, column| {
                        let mut origin = position.to_vec();
                        origin.extend([row.clone(), column].into_iter().skip(2 - pixel_axes.min(2)));
                        self.tile(kernel, &origin, (rows.step, columns.step), block, first, weights);
                    });
                }
            });
        }
    }

    fn tile(
        &self,
        kernel: &mut Kernel<'_>,
        origin: &[Index],
        size: (usize, usize),
        block: &Block,
        first: &Index,
        weights: &Weights,
    ) {
        let mut places = Vec::new();
        for row in 0..size.0 {
            for column in 0..size.1 {
                let mut place = vec![0usize; origin.len()];
                for (axis, moved) in [column, row].into_iter().enumerate() {
                    if let Some(own) = origin.len().checked_sub(axis + 1) {
                        place[own] = moved;
                    }
                }
                places.push(place);
            }
        }
        let moved = |place: &[usize]| place.iter().zip(&self.outer).map(|(&at, axis)| at as i64 * axis.x).sum();
        let mut start = Index::default();
        if self.steps() > 0 {
            start = Index::from(self.x_offset);
            for (index, axis) in origin.iter().zip(&self.outer) {
                start = start.plus(&index.times(axis.x));
            }
        }
        let x = kernel.b.pointer("xp", self.x.pointer, start);
        let pixels = places.iter().map(|place| moved(place)).collect();
        let run = self.reduction.last().map_or(1, |axis| axis.extent);
        let tile = Tile::new(kernel, self.x.view.dtype, pixels, &block.vectors, run);
        tile.accumulate(kernel, x, &self.reduction, weights);
        let sums = tile.total(kernel);
        for (place, sums) in places.iter().zip(sums.chunks(block.vectors.len().max(1))) {
            let indices: Vec<Index> = origin.iter().zip(place).map(|(index, &at)| index.offset(at as i64)).collect();
            let mut output = first.clone();
            for (&sum, vector) in sums.iter().zip(&block.vectors) {
                finish(kernel, sum, &indices, &output, *vector);
                output = output.offset(vector.valid as i64);
            }
        }
    }
}

/// Refuses types without multiplication.
pub fn arithmetic(dtype: DType) -> Result<(), Diagnostic> {
    if dtype != DType::Bool {
        return Ok(());
    }
    let message = format!("no sums of products of {dtype}");
    Err(Diagnostic::error(Code::TargetLimit, Location::default(), message))
}

/// Hands a vector of sums to the epilogue: as a whole, or lane by lane where the epilogue can't do vectors.
pub fn finish(kernel: &mut Kernel<'_>, sum: Var, indices: &[Index], output: &Index, vector: Lanes) {
    let at = |output: Index| indices.iter().cloned().chain([output]).collect::<Vec<_>>();
    let dtype = kernel.b.ty(&Expr::Var(sum)).dtype;
    if vector.width == 1 || kernel.epilogue_lanes(dtype) > 1 {
        return kernel.finish(Expr::Var(sum), &at(output.clone()), vector.valid);
    }
    for lane in 0..vector.valid {
        let value = Expr::Lane(Box::new(Expr::Var(sum)), lane);
        kernel.finish(value, &at(output.offset(lane as i64)), 1);
    }
}

/// An argument under merged outer axes, with its axis of outputs behind them.
fn with_outputs(argument: &Argument, outer: &View, outputs: usize) -> Argument {
    let mut view = outer.clone();
    view.shape.push(outputs);
    let last = argument.view.shape.last().copied().unwrap_or(1);
    view.strides.push(if last == 1 { 0 } else { argument.view.strides[argument.view.rank() - 1] });
    Argument { view, ..argument.clone() }
}

/// A loop over a part of an axis.
pub fn walk<'a>(kernel: &mut Kernel<'a>, name: &str, span: Span, body: impl FnOnce(&mut Kernel<'a>, Index)) {
    kernel.for_range(name, Index::from(span.start), Index::from(span.end), span.step as i64, body);
}

/// Reduction axes merged where x and weights continue from one to the next.
pub fn merged_reduction(axes: &[Axis]) -> Vec<Axis> {
    let shape: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
    let of = |stride: fn(&Axis) -> i64| View {
        dtype: DType::F32,
        shape: shape.as_slice().into(),
        strides: axes.iter().map(stride).collect(),
        offset: 0,
    };
    let merged = merge_axes(&[of(|axis| axis.x), of(|axis| axis.weights)]);
    (0..merged[0].rank())
        .map(|axis| Axis {
            extent: merged[0].shape[axis],
            x: merged[0].strides[axis],
            weights: merged[1].strides[axis],
        })
        .collect()
}

/// What tiles for elements of a type can use.
pub fn machine(dtype: DType, kernel: &Kernel<'_>) -> Machine {
    let lanes = kernel.lanes(dtype);
    let narrowest = if lanes == 1 { 1 } else { (16 / dtype.size()).min(lanes) };
    let Target { registers, in_order, .. } = *kernel.target;
    Machine { lanes, narrowest, registers, neighbours: usize::MAX, in_order }
}
