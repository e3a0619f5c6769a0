//! Depthwise convolutions: vectors along the channels, some neighbouring pixels at once, the taps' weights in registers where
//! they fit. An input vector is loaded once for all taps of a row of the window that meet it. Taps that meet a border which
//! isn't in memory are left out: along a row when the code is generated, along other axes by a condition.

use super::clipped::{Meeting, runs};
use super::depthwise_rows::{Row, Taps};
use super::depthwise_window::{DepthwiseWindow, positions};
use super::products::{finish, machine, require_products, weight_strides, with_quads, with_views};
use super::quads::QUAD;
use super::schedule::{Preferences, Settings};
use super::tile::{Lanes, Machine, Span, spans};
use super::walk::for_span;
use super::window::window_axes;
use super::{Argument, Epilogue, KernelWriter};
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use crate::lower::view::{View, merge_axes};
use crate::target::{LINE_BYTES, VectorSpelling};
use mlc_ir::ops::Convolution;
use mlc_ir::types::row_major_strides;
use mlc_ir::{Attribute, DType, Diagnostic, TensorType};

/// Most tiles that are worth a look.
const MOST_STEPS: usize = 3;

/// A convolution with a group per channel.
#[derive(Clone)]
pub struct Depthwise {
    /// How its window lies over x.
    pub window: DepthwiseWindow,
    weights: Argument,
    /// Outputs per channel.
    pub multiplier: usize,
    /// Channels of x.
    pub channels: usize,
    /// Elements of the weights between outputs.
    output_stride: i64,
    /// What its vectors can use.
    pub machine: Machine,
}

/// Equal vectors of channels that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The first channel.
    pub first: usize,
    /// How many vectors.
    pub count: usize,
    /// Channels of one.
    pub width: usize,
}

/// The schedules with the loop over channels around that over pixels, or in it: input that stays in a cache is walked again for
/// each vector of channels.
pub fn list(op: &Convolution, channels_outside: bool, kernel: &KernelWriter<'_>) -> Preferences {
    if kernel.results[0].view.elements() == 0 {
        return if channels_outside { vec![(0, Settings::default())] } else { Preferences::new() };
    }
    with_depthwise(op, &mut kernel.clone(), |depthwise, _| depthwise.list(channels_outside))
}

/// Writes a convolution with a group per channel.
///
/// # Errors
/// When there is no arithmetic for the data type.
pub fn depthwise(
    op: &Convolution,
    channels_outside: bool,
    settings: &Settings,
    kernel: &mut KernelWriter<'_>,
) -> Result<(), Diagnostic> {
    require_products(kernel.operands[0].view.dtype)?;
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    with_depthwise(op, kernel, |depthwise, kernel| depthwise.write(kernel, channels_outside, settings));
    Ok(())
}

/// Whether channels are computed in vectors on a machine whose vectors of integers are loaded from bytes.
pub fn is_in_quads(op: &Convolution, kernel: &KernelWriter<'_>) -> bool {
    let is_mve = kernel.target.vectors == VectorSpelling::Mve && kernel.results[0].view.elements() > 0;
    is_mve && with_depthwise(op, &mut kernel.clone(), |depthwise, _| depthwise.machine.lanes > 1)
}

/// Calls `body` with a convolution with a group per channel, and the kernel with its views in terms of that.
pub fn with_depthwise<'a, T>(
    op: &Convolution,
    kernel: &mut KernelWriter<'a>,
    body: impl FnOnce(&Depthwise, &mut KernelWriter<'a>) -> T,
) -> T {
    let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let dtype = x.view.dtype;
    let spatial = op.strides.len();
    let (channels, w) = (op.groups, weight_strides(&weights));
    let multiplier = weights.view.shape[spatial + 1] / channels;
    let mut strides = vec![x.view.strides[0]];
    let mut window = Vec::new();
    for (axis, &weight_stride) in w[..spatial].iter().enumerate() {
        let stride = x.view.strides[axis + 1];
        strides.push(stride * op.strides[axis] as i64);
        window.push((weights.view.shape[axis], stride * op.dilations[axis] as i64, weight_stride));
    }
    let channel_stride = if channels == 1 { 1 } else { x.view.strides[spatial + 1] };
    let is_clipped = op.pads.iter().any(|&pads| pads != (0, 0));
    let border = is_clipped.then(|| window_axes(op, &x, &weights));
    with_views(
        kernel,
        |view| channels_last(view, multiplier),
        |kernel| {
            let pixels = match border {
                Some(_) => kernel.results[0].view.shape[1..].iter().copied().zip(strides.iter().copied()).collect(),
                None => merge_pixels(kernel, &strides),
            };
            let output_stride = w[spatial + 1];
            let stored = [x.pointer, weights.pointer].map(|pointer| kernel.b.element_dtype(pointer));
            let machine = match channel_stride {
                1 if multiplier == 1 && channels >= QUAD && dtype == DType::I32 => {
                    with_quads(machine(dtype, kernel), &stored, kernel)
                }
                _ => machine(dtype, kernel),
            };
            let window = DepthwiseWindow { x, channel_stride, border, pixels, axes: window };
            body(&Depthwise { window, weights, multiplier, channels, output_stride, machine }, kernel)
        },
    )
}

/// [outer…, channels * multiplier] as [multiplier, outer…, channels].
fn channels_last(view: &View, multiplier: usize) -> View {
    let rank = view.rank();
    let mut view = view.clone();
    let stride = view.strides[rank - 1];
    view.shape[rank - 1] /= multiplier;
    view.strides[rank - 1] = stride * multiplier as i64;
    view.shape.insert(0, multiplier);
    view.strides.insert(0, stride);
    view
}

/// Merges the pixel axes, which lie between the first and the last, of x, the result and the epilogue's operands.
fn merge_pixels(kernel: &mut KernelWriter<'_>, strides: &[i64]) -> Vec<(usize, i64)> {
    let shape = kernel.results[0].view.shape.clone();
    let inner = 1..shape.len() - 1;
    let x = View { dtype: DType::F32, shape: shape[inner.clone()].into(), strides: strides.into(), offset: 0 };
    let mut views = vec![x];
    let epilogue = kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands);
    for argument in std::iter::once(&kernel.results[0]).chain(epilogue) {
        let view = argument.view.clone();
        views.push(View {
            shape: view.shape[inner.clone()].into(),
            strides: view.strides[inner.clone()].into(),
            ..view
        });
    }
    let merged = merge_axes(&views);
    let restored = |argument: &Argument, middle: &View| {
        let whole = &argument.view;
        let mut view = View { shape: whole.shape[..1].into(), strides: whole.strides[..1].into(), ..whole.clone() };
        view.shape.extend(middle.shape.iter().copied().chain([whole.shape[inner.end]]));
        view.strides.extend(middle.strides.iter().copied().chain([whole.strides[inner.end]]));
        Argument { view, ..argument.clone() }
    };
    kernel.results[0] = restored(&kernel.results[0], &merged[1]);
    kernel.epilogue = kernel.epilogue.as_ref().map(|epilogue| Epilogue {
        expression: epilogue.expression.clone(),
        operands: epilogue.operands.iter().zip(&merged[2..]).map(|(own, view)| restored(own, view)).collect(),
    });
    merged[0].shape.iter().copied().zip(merged[0].strides.iter().copied()).collect()
}

/// Channels in vectors: full ones, then ever narrower ones, then single ones.
fn sections(channels: usize, machine: Machine) -> Vec<Section> {
    let mut list = Vec::new();
    let (mut first, mut width) = (0, machine.lanes);
    while first < channels {
        let count = (channels - first) / width;
        if count > 0 {
            list.push(Section { first, count, width });
            first += count * width;
        }
        width = if width / 2 >= machine.narrowest { width / 2 } else { 1 };
    }
    list
}

impl Depthwise {
    /// Neighbouring pixels that are computed at once, with the weights in registers where they fit, and loaded for each tile.
    fn list(&self, channels_outside: bool) -> Preferences {
        let x = &self.window.x.view;
        let is_small = x.elements() * x.dtype.size() <= self.machine.tuning.rewalked_bytes;
        let preferred = (is_small && !self.takes_parts_of_lines()) == channels_outside;
        // In the loop over pixels each tile loads its weights, wherever they are then: those first that take fewer registers for more pixels. Where
        // each instruction counts, prices choose from the list.
        let reloads = !channels_outside && !self.machine.in_order;
        let places = [true, false].into_iter().filter(|&in_registers| !in_registers || self.fits());
        let tiles = |in_registers| {
            let steps = self.steps(in_registers, reloads || !in_registers);
            steps.into_iter().map(move |(cost, step)| (cost, step, in_registers))
        };
        let mut tiles: Vec<(usize, usize, bool)> = places.flat_map(tiles).collect();
        if reloads {
            tiles.sort_by_key(|(cost, ..)| *cost);
        }
        let settings = |(_, step, in_registers): (usize, usize, bool)| {
            let place = if in_registers { "registers" } else { "memory" };
            let settings = Settings::default().with("pixels", step).with("weights", place);
            if self.window.border.is_some() { settings.with("border", "left-out") } else { settings }
        };
        let first = if preferred { 0 } else { 2 * MOST_STEPS };
        tiles.into_iter().enumerate().map(|(number, tile)| (first + number, settings(tile))).collect()
    }

    /// Whether a vector is a part of a line of cache, so that each walk of the input for a vector of channels brings all lines again. Measured
    /// where registers are so few that weights leave little room in them for pixels.
    fn takes_parts_of_lines(&self) -> bool {
        let Machine { lanes, registers, whole, in_order, .. } = self.machine;
        let vector = lanes * self.window.x.view.dtype.size();
        lanes > 1 && vector < LINE_BYTES && registers <= 16 && !whole && !in_order
    }

    fn write(&self, kernel: &mut KernelWriter<'_>, channels_outside: bool, settings: &Settings) {
        let sections = sections(self.channels, self.machine);
        let packed = self.pack(kernel, &sections);
        let above: Vec<usize> = self.window.pixels.iter().rev().skip(1).rev().map(|pixel| pixel.0).collect();
        let spans = spans(self.extent(), settings.number("pixels").max(1));
        let in_registers = settings.is("weights", "registers");
        kernel.for_each("multiple", self.multiplier, |kernel, multiple| {
            if channels_outside {
                return self.vectors(kernel, &sections, packed, &multiple, |kernel, channel, taps| {
                    let weights = in_registers.then(|| self.hoisted(kernel, taps));
                    self.tiles(kernel, &above, &spans, |kernel, pixel, meeting| {
                        self.tile(kernel, (&multiple, pixel, channel), meeting, taps, weights.as_deref());
                    });
                });
            }
            self.tiles(kernel, &above, &spans, |kernel, pixel, meeting| {
                self.vectors(kernel, &sections, packed, &multiple, |kernel, channel, taps| {
                    let weights = in_registers.then(|| self.hoisted(kernel, taps));
                    self.tile(kernel, (&multiple, pixel, channel), meeting, taps, weights.as_deref());
                });
            });
        });
    }

    /// Asks for constant weights in the order of vectors of channels; `None` for others.
    pub fn pack(&self, kernel: &mut KernelWriter<'_>, sections: &[Section]) -> Option<Var> {
        let (Some(constant), Some(operand)) = (&self.weights.constant, self.weights.operand) else { return None };
        let elements = self.multiplier * self.channels * self.window.taps();
        let ty = TensorType::new(constant.ty().dtype, [elements]);
        let (own, constant, sections) = (self.clone(), constant.clone(), sections.to_vec());
        Some(kernel.pack(operand, "packed", ty, move || own.packed(&constant, &sections)))
    }

    /// Pixels of a row.
    fn extent(&self) -> usize {
        self.window.pixels.last().map_or(1, |pixel| pixel.0)
    }

    /// Loops over the tiles of pixels; the body gets the first pixel of a tile and the taps of each of them.
    fn tiles<'a>(
        &self,
        kernel: &mut KernelWriter<'a>,
        above: &[usize],
        spans: &[Span],
        mut body: impl FnMut(&mut KernelWriter<'a>, &[Index], &Meeting),
    ) {
        let taps = self.window.axes.last().map_or(1, |axis| axis.0 as i64);
        let tiles: Vec<(Span, Meeting)> = match self.window.border.as_ref().and_then(|axes| axes.last()) {
            Some(axis) => runs(axis, spans),
            None => spans.iter().map(|span| (*span, vec![0..taps; span.step])).collect(),
        };
        kernel.for_shape(&["n", "row"], above, &mut |kernel, outer| {
            for (span, meeting) in &tiles {
                for_span(kernel, "column", *span, |kernel, column| {
                    let mut pixel = outer.to_vec();
                    pixel.extend((!self.window.pixels.is_empty()).then_some(column));
                    body(kernel, &pixel, meeting);
                });
            }
        });
    }

    /// Loops over the vectors of channels.
    fn vectors<'a>(
        &self,
        kernel: &mut KernelWriter<'a>,
        sections: &[Section],
        packed: Option<Var>,
        multiple: &Index,
        mut body: impl FnMut(&mut KernelWriter<'a>, &Index, &Taps),
    ) {
        let shape: Vec<usize> = self.window.axes.iter().map(|axis| axis.0).collect();
        let taps: usize = shape.iter().product();
        for section in sections {
            kernel.for_each("block", section.count, |kernel, number| {
                let channel = number.times(section.width as i64).offset(section.first as i64);
                let ty = ValueType::vector(self.window.x.view.dtype, section.width);
                let taps = match packed {
                    Some(pointer) => {
                        let place = channel.times(taps as i64).plus(&multiple.times((taps * self.channels) as i64));
                        let pointer = kernel.b.pointer("wp", pointer, place);
                        let dense = row_major_strides(&shape);
                        let strides = dense.iter().map(|&stride| (stride * section.width) as i64).collect();
                        Taps { pointer, strides, stride: 1, ty }
                    }
                    None => {
                        let output = channel.times(self.multiplier as i64).plus(multiple);
                        let place = output.times(self.output_stride);
                        let pointer = kernel.b.pointer("wp", self.weights.pointer, place);
                        let strides = self.window.axes.iter().map(|axis| axis.2).collect();
                        Taps { pointer, strides, stride: self.output_stride * self.multiplier as i64, ty }
                    }
                };
                body(kernel, &channel, &taps);
            });
        }
    }

    /// All weights of a window as named values.
    fn hoisted(&self, kernel: &mut KernelWriter<'_>, taps: &Taps) -> Vec<Expr> {
        let mut indices = vec![0];
        for (axis, stride) in self.window.axes.iter().zip(&taps.strides) {
            indices = indices.iter().flat_map(|base| (0..axis.0).map(move |tap| base + tap as i64 * stride)).collect();
        }
        indices.into_iter().map(|index| kernel.shared("w", taps.load(Index::from(index)))).collect()
    }

    /// Whether registers suffice for the weights of a window.
    fn fits(&self) -> bool {
        self.window.taps() + 6 <= self.machine.registers
    }

    /// Neighbouring pixels of one vector of channels, by the taps of each that aren't in the border.
    fn tile(
        &self,
        kernel: &mut KernelWriter<'_>,
        (multiple, first, channel): (&Index, &[Index], &Index),
        meeting: &Meeting,
        taps: &Taps,
        weights: Option<&[Expr]>,
    ) {
        let mut start = channel.times(self.window.channel_stride).offset(self.window.columns().first(meeting));
        for (index, pixel) in first.iter().zip(&self.window.pixels) {
            start = start.plus(&index.times(pixel.1));
        }
        let x = kernel.b.pointer("xp", self.window.x.pointer, start);
        let sums: Vec<Var> = (0..meeting.len())
            .map(|pixel| kernel.b.mutable(&format!("sum_{pixel}"), Expr::zero(taps.ty.dtype, taps.ty.lanes)))
            .collect();
        Row { window: &self.window, x, sums: &sums, meeting, taps }.all(kernel, first, weights);
        let vector = Lanes { width: taps.ty.lanes, valid: taps.ty.lanes };
        for (pixel, &sum) in sums.iter().enumerate() {
            let mut indices = vec![multiple.clone()];
            indices.extend_from_slice(first);
            if let Some(column) = indices[1..].last_mut() {
                *column = column.offset(pixel as i64);
            }
            finish(kernel, sum, &indices, channel, vector);
        }
    }

    /// Pixels of a row that can be computed at once, with what they cost, those first that are thought to cost least: loads and multiply-adds are
    /// counted, those of the weights where each tile loads them.
    fn steps(&self, in_registers: bool, reloads: bool) -> Vec<(usize, usize)> {
        let extent = self.extent();
        let window = self.window.taps();
        let row = self.window.axes.last().map_or(1, |axis| axis.0);
        let weights = match self.machine.in_order {
            _ if in_registers => window + 2,
            true => row + 1,
            false => 4,
        };
        let most = self.machine.registers.saturating_sub(weights).clamp(1, 8);
        let cost = |step: usize| {
            let loads = self.window.meetings(&vec![0..row as i64; step]).len() * (window / row.max(1));
            let reloaded = if reloads { window } else { 0 };
            step * window + loads + reloaded + 4
        };
        let total = |step: usize| {
            spans(extent, step).iter().map(|span| (span.end - span.start) / span.step * cost(span.step)).sum::<usize>()
        };
        let mut steps: Vec<(usize, usize)> = (1..=most.min(extent).max(1)).map(|step| (total(step), step)).collect();
        steps.sort_unstable();
        steps.truncate(MOST_STEPS);
        steps
    }

    /// Packs constant weights: [multiple][section][vector][window][channels of the vector].
    fn packed(&self, constant: &Attribute, sections: &[Section]) -> Option<Attribute> {
        let size = constant.ty().dtype.size();
        let shape: Vec<usize> = self.window.axes.iter().map(|axis| axis.0).collect();
        let positions = positions(&shape);
        let mut packed: Vec<u8> = Vec::with_capacity(constant.bytes().len());
        for multiple in 0..self.multiplier {
            for section in sections {
                for number in 0..section.count {
                    for position in &positions {
                        let tap: i64 =
                            position.iter().zip(&self.window.axes).map(|(&at, axis)| at as i64 * axis.2).sum();
                        for lane in 0..section.width {
                            let channel = section.first + number * section.width + lane;
                            let output = (channel * self.multiplier + multiple) as i64;
                            let start = usize::try_from(tap + output * self.output_stride).ok()? * size;
                            packed.extend_from_slice(constant.bytes().get(start..start + size)?);
                        }
                    }
                }
            }
        }
        let elements = packed.len() / size;
        Attribute::new(TensorType::new(constant.ty().dtype, [elements]), packed).ok()
    }
}
