//! Where windows lie: for each output along a spatial axis, the first source element, the number of taps inside the tensor and
//! the number that a mean divides by; constant wherever they can be.

use super::{Argument, KernelWriter};
use crate::loops::Index;
use mlc_ir::ops::Convolution;

/// How windows lie along an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowAxis {
    /// A window of taps that moves in equal steps.
    Sliding {
        /// Elements of the tensor.
        extent: usize,
        /// Taps of the window.
        taps: usize,
        /// Elements between windows.
        stride: usize,
        /// Elements between taps.
        dilation: usize,
        /// Elements that the tensor lacks before and after.
        pads: (usize, usize),
        /// The part of them that counts.
        counted_pads: (usize, usize),
    },
    /// Cells floor(o * extent / size) .. ceil((o + 1) * extent / size).
    Cells {
        /// Elements of the tensor.
        extent: usize,
        /// Number of cells.
        size: usize,
    },
}

/// Whether there is a border that can't be left out of sums.
pub fn has_own_border(op: &Convolution) -> bool {
    op.border != 0 && op.pads.iter().any(|&pads| pads != (0, 0))
}

/// How windows lie along the spatial axes of x [N, spatial…, C] under weights [window…, C / groups, O].
pub fn window_axes(op: &Convolution, x: &Argument, weights: &Argument) -> Vec<WindowAxis> {
    let axis = |axis: usize| WindowAxis::Sliding {
        extent: x.view.shape[axis + 1],
        taps: weights.view.shape[axis],
        stride: op.strides[axis],
        dilation: op.dilations[axis],
        pads: op.pads[axis],
        counted_pads: (0, 0),
    };
    (0..op.strides.len()).map(axis).collect()
}

/// Outputs that share their code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// First output.
    pub start: usize,
    /// One past the last output.
    pub end: usize,
    /// What is the same for all of them; `None` when it must be computed for each.
    pub span: Option<Span>,
}

/// The taps of a window that meet the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first tap.
    first: i64,
    /// How many there are.
    count: i64,
    /// How many elements a mean divides by.
    divisor: i64,
}

/// A window at one output.
#[derive(Debug, Clone)]
pub struct Place {
    /// The source element of the first tap that meets the tensor.
    pub origin: Index,
    /// How many taps meet the tensor; less than 1 for none.
    pub count: Index,
    /// How many elements a mean divides by.
    pub divisor: Index,
    /// Elements between taps.
    pub step: i64,
    /// The first tap that meets the tensor.
    pub first: Index,
}

impl Place {
    /// The source element of a tap, counted from the first that meets the tensor.
    pub fn source(&self, tap: &Index) -> Index {
        self.origin.plus(&tap.times(self.step))
    }
}

/// Most kinds of border along an axis that get loops of their own.
const MOST_SEGMENTS: usize = 3;
/// Most loops nests that all axes together make.
const MOST_NESTS: usize = 9;

/// Cuts the outputs along each axis into segments.
pub fn segments(axes: &[WindowAxis], sizes: &[usize]) -> Vec<Vec<Segment>> {
    let mut all: Vec<Vec<Segment>> = axes.iter().zip(sizes).map(|(axis, &size)| axis.segments(size)).collect();
    let nests = |all: &[Vec<Segment>]| all.iter().map(Vec::len).product::<usize>();
    for axis in 0..all.len() {
        if nests(&all) > MOST_NESTS {
            all[axis] = vec![Segment { start: 0, end: sizes[axis], span: None }];
        }
    }
    all
}

impl WindowAxis {
    /// The cells of an adaptive pool, which slide when they are equal.
    pub fn adaptive(extent: usize, size: usize) -> WindowAxis {
        if size == 0 || !extent.is_multiple_of(size) {
            return WindowAxis::Cells { extent, size };
        }
        let taps = extent / size;
        WindowAxis::Sliding { extent, taps, stride: taps, dilation: 1, pads: (0, 0), counted_pads: (0, 0) }
    }

    /// Whether there is one output, whose window is the whole axis.
    pub fn is_whole(&self, size: usize) -> bool {
        match *self {
            WindowAxis::Sliding { extent, taps, dilation, pads, .. } => {
                size == 1 && taps == extent && dilation == 1 && pads == (0, 0)
            }
            WindowAxis::Cells { .. } => size == 1,
        }
    }

    fn span(&self, output: usize) -> Span {
        match *self {
            WindowAxis::Sliding { extent, taps, stride, dilation, pads, counted_pads } => {
                let base = (output * stride) as i64;
                let within = |low: usize, high: usize| {
                    let spots = (0..taps as i64).map(move |tap| base + tap * dilation as i64);
                    let inside = spots.map(move |spot| (low as i64..high as i64).contains(&spot));
                    let before = inside.clone().take_while(|inside| !inside).count() as i64;
                    (before, inside.filter(|inside| *inside).count() as i64)
                };
                let (first, count) = within(pads.0, pads.0 + extent);
                let (_, divisor) = within(pads.0 - counted_pads.0, pads.0 + extent + counted_pads.1);
                Span { first, count, divisor }
            }
            WindowAxis::Cells { extent, size } => {
                let count = (((output + 1) * extent).div_ceil(size) - output * extent / size) as i64;
                Span { first: 0, count, divisor: count }
            }
        }
    }

    /// Elements that the tensor lacks before and after.
    pub fn missing(&self) -> (usize, usize) {
        match *self {
            WindowAxis::Sliding { pads, .. } => pads,
            WindowAxis::Cells { .. } => (0, 0),
        }
    }

    /// The taps that meet the tensor at an output.
    pub fn taps(&self, output: usize) -> std::ops::Range<i64> {
        let span = self.span(output);
        span.first..span.first + span.count
    }

    /// All outputs as one segment.
    pub fn whole(&self, size: usize) -> Segment {
        match &self.segments(size)[..] {
            [segment] => segment.clone(),
            _ => Segment { start: 0, end: size, span: None },
        }
    }

    fn segments(&self, size: usize) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        for output in 0..size {
            let span = self.span(output);
            match segments.last_mut() {
                Some(segment) if segment.span == Some(span) && matches!(self, WindowAxis::Sliding { .. }) => {
                    segment.end += 1;
                }
                _ => segments.push(Segment { start: output, end: output + 1, span: Some(span) }),
            }
        }
        if segments.len() <= MOST_SEGMENTS {
            return segments;
        }
        if matches!(self, WindowAxis::Cells { .. }) {
            return vec![Segment { start: 0, end: size, span: None }];
        }
        let interior = segments.into_iter().max_by_key(|segment| segment.end - segment.start);
        let Some(interior) = interior else { return Vec::new() };
        let borders = [(0, interior.start), (interior.end, size)];
        let [before, after] = borders.map(|(start, end)| Segment { start, end, span: None });
        [before, interior, after].into_iter().filter(|segment| segment.start < segment.end).collect()
    }

    /// The window at an output of a segment.
    pub fn place(&self, kernel: &mut KernelWriter<'_>, segment: &Segment, output: &Index) -> Place {
        match (self.clone(), segment.span) {
            (WindowAxis::Sliding { stride, dilation, pads, .. }, Some(span)) => {
                let first = span.first * dilation as i64 - pads.0 as i64;
                let origin = output.times(stride as i64).offset(first);
                constant_place(origin, span, dilation as i64)
            }
            (WindowAxis::Cells { extent, size }, Some(span)) => {
                constant_place(output.times(extent as i64).divided_by(size as i64), span, 1)
            }
            (WindowAxis::Cells { extent, size }, None) => {
                let (extent, size) = (extent as i64, size as i64);
                let origin = kernel.b.define_index("first", output.times(extent).divided_by(size));
                let end = output.times(extent).offset(extent + size - 1).divided_by(size);
                let count = kernel.b.define_index("count", end.plus(&origin.times(-1)));
                Place { origin, count: count.clone(), divisor: count, step: 1, first: Index::default() }
            }
            (WindowAxis::Sliding { extent, taps, stride, dilation, pads, counted_pads }, None) => {
                let base = output.times(stride as i64);
                // The taps from `low` on and before `high`, in coordinates of the padded axis.
                let first_from = |low: usize| {
                    let distance = Index::from(low).plus(&base.times(-1)).maximum(&Index::default());
                    distance.offset(dilation as i64 - 1).divided_by(dilation as i64)
                };
                let within = |kernel: &mut KernelWriter<'_>, low: usize, high: usize| {
                    let first = kernel.b.define_index("first", first_from(low));
                    let left = kernel.b.define_index("left", first_from(high));
                    let end = left.minimum(&Index::from(taps));
                    let count = kernel.b.define_index("count", end.plus(&first.times(-1)));
                    (first, count)
                };
                let (first, count) = within(kernel, pads.0, pads.0 + extent);
                let counted = (pads.0 - counted_pads.0, pads.0 + extent + counted_pads.1);
                let divisor =
                    if counted_pads == (0, 0) { count.clone() } else { within(kernel, counted.0, counted.1).1 };
                let origin = base.offset(-(pads.0 as i64)).plus(&first.times(dilation as i64));
                Place { origin, count, divisor, step: dilation as i64, first }
            }
        }
    }
}

fn constant_place(origin: Index, span: Span, step: i64) -> Place {
    let [first, count, divisor] = [span.first, span.count, span.divisor].map(Index::from);
    Place { origin, count, divisor, step, first }
}
