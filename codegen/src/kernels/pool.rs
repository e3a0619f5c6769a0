//! Pools over channels-last tensors: vectors run along the channels. Positions whose window lies inside the tensor, and each
//! kind of border, have loops of their own with constant bounds; only wide borders compute their bounds.

use super::fold::Fold;
use super::reduce::{Scale, reduce_axes};
use super::rolled::LAST;
use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::space::stretches;
use super::window::{Place, Segment, WindowAxis, segments};
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::{AdaptivePool, AveragePool, MaxPool, PoolFunction};
use mlc_ir::{DType, Diagnostic};

/// Windows of at most this many taps are written out.
const WRITTEN_OUT: usize = 16;
/// Vectors of channels that larger windows combine at once.
const VECTORS: usize = 4;
const OUTPUT_NAMES: [&str; 3] = ["od", "oh", "ow"];
const TAP_NAMES: [&str; 3] = ["kd", "kh", "kw"];

impl Scheduled for MaxPool {
    const KINDS: &'static [Kind<Self>] = &kinds();
}

impl Scheduled for AveragePool {
    const KINDS: &'static [Kind<Self>] = &kinds();
}

impl Scheduled for AdaptivePool {
    const KINDS: &'static [Kind<Self>] = &kinds();
}

/// What pools are: windows along the spatial axes, and what becomes of the elements in one.
struct Windows {
    axes: Vec<WindowAxis>,
    fold: Fold,
    mean: bool,
}

/// An operator that folds windows.
trait Windowed {
    fn windows(&self, kernel: &KernelWriter<'_>) -> Windows;
}

impl Windowed for MaxPool {
    fn windows(&self, kernel: &KernelWriter<'_>) -> Windows {
        let axis = |(axis, extent)| WindowAxis::Sliding {
            extent,
            taps: self.window[axis],
            stride: self.strides[axis],
            dilation: self.dilations[axis],
            pads: self.pads[axis],
            counted_pads: (0, 0),
        };
        let axes = spatial_extents(kernel).into_iter().enumerate().map(axis).collect();
        Windows { axes, fold: Fold::largest(kernel.operands[0].view.dtype), mean: false }
    }
}

impl Windowed for AveragePool {
    fn windows(&self, kernel: &KernelWriter<'_>) -> Windows {
        let axis = |(axis, extent)| WindowAxis::Sliding {
            extent,
            taps: self.window[axis],
            stride: self.strides[axis],
            dilation: self.dilations[axis],
            pads: self.pads[axis],
            counted_pads: self.counted_pads[axis],
        };
        let axes = spatial_extents(kernel).into_iter().enumerate().map(axis).collect();
        Windows { axes, fold: Fold::sum(kernel.operands[0].view.dtype), mean: true }
    }
}

impl Windowed for AdaptivePool {
    fn windows(&self, kernel: &KernelWriter<'_>) -> Windows {
        let axis = |(extent, &size)| WindowAxis::adaptive(extent, size);
        let axes = spatial_extents(kernel).into_iter().zip(&self.sizes).map(axis).collect();
        let dtype = kernel.operands[0].view.dtype;
        match self.function {
            PoolFunction::Mean => Windows { axes, fold: Fold::sum(dtype), mean: true },
            PoolFunction::Maximum => Windows { axes, fold: Fold::largest(dtype), mean: false },
        }
    }
}

fn spatial_extents(kernel: &KernelWriter<'_>) -> Vec<usize> {
    let shape = &kernel.operands[0].view.shape;
    shape[1..shape.len() - 1].to_vec()
}

/// One window over everything can be a reduction. Other windows are written out up to a number of taps, or walked.
const fn kinds<O: Windowed>() -> [Kind<O>; 3] {
    [
        Kind::new(
            "reduction",
            |op, kernel| if is_whole(op, kernel) { vec![(0, Settings::default())] } else { Preferences::new() },
            reduction,
        ),
        Kind::new(
            "windows",
            |_, _| [WRITTEN_OUT, 0].map(|taps| (1, Settings::default().with("written-out", taps))).into(),
            pool,
        ),
        Kind::new("rolled", |_, _| vec![(LAST, Settings::default().with("bounds", "computed"))], pool).small(),
    ]
}

fn sizes(kernel: &KernelWriter<'_>) -> Vec<usize> {
    let shape = &kernel.results[0].view.shape;
    shape[1..shape.len() - 1].to_vec()
}

fn is_whole(op: &impl Windowed, kernel: &KernelWriter<'_>) -> bool {
    op.windows(kernel).axes.iter().zip(sizes(kernel)).all(|(axis, size)| axis.is_whole(size))
}

fn reduction(op: &impl Windowed, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let Windows { axes, fold, mean } = op.windows(kernel);
    let spatial: Vec<usize> = (1..=axes.len()).collect();
    reduce_axes(kernel, &spatial, true, fold, mean);
    Ok(())
}

fn pool(op: &impl Windowed, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let Windows { axes, fold, mean } = op.windows(kernel);
    let x = kernel.operands[0].clone();
    let segments = match settings.is("bounds", "computed") {
        // One loop nest for all windows, at the border or not.
        true => axes.iter().zip(sizes(kernel)).map(|(axis, size)| vec![axis.whole(size)]).collect(),
        false => segments(&axes, &sizes(kernel)),
    };
    let pool = Pool { axes: &axes, segments, fold, mean, x, written_out: settings.number("written-out") as i64 };
    kernel.for_each("n", pool.x.view.shape[0], |kernel, item| pool.axis(kernel, &mut vec![item], &mut Vec::new()));
    Ok(())
}

/// The names of axes are those of the last ones of three.
fn first_name(axes: usize) -> usize {
    3 - axes.min(3)
}

struct Pool<'a> {
    axes: &'a [WindowAxis],
    segments: Vec<Vec<Segment>>,
    fold: Fold,
    mean: bool,
    x: Argument,
    /// Most taps that are written out.
    written_out: i64,
}

impl Pool<'_> {
    /// The loops over the outputs along the next spatial axis; `outputs` are the indices so far.
    fn axis(&self, kernel: &mut KernelWriter<'_>, outputs: &mut Vec<Index>, places: &mut Vec<Place>) {
        let number = places.len();
        let Some(axis) = self.axes.get(number) else { return self.channels(kernel, outputs, places) };
        let name = OUTPUT_NAMES[(first_name(self.axes.len()) + number).min(2)];
        for segment in &self.segments[number] {
            let (start, end) = (Index::from(segment.start), Index::from(segment.end));
            kernel.for_range(name, start, end, 1, |kernel, output| {
                places.push(axis.place(kernel, segment, &output));
                outputs.push(output);
                self.axis(kernel, outputs, places);
                outputs.pop();
                places.pop();
            });
        }
    }

    fn channels(&self, kernel: &mut KernelWriter<'_>, outputs: &[Index], places: &[Place]) {
        let dtype = self.x.view.dtype;
        let channels = self.x.view.shape[self.axes.len() + 1];
        let lanes = if self.x.view.last_stride() == 1 { kernel.epilogue_lanes(dtype) } else { 1 };
        let counts: Option<Vec<i64>> = places.iter().map(|place| place.count.as_constant()).collect();
        let written_out = counts.as_ref().is_some_and(|counts| counts.iter().product::<i64>() <= self.written_out);
        let divisor = self.mean.then(|| Divisor::new(kernel, places, dtype));
        let vectors = if written_out { 1 } else { VECTORS };
        for stretch in stretches(channels, lanes, vectors, dtype) {
            let (start, end) = (Index::from(stretch.start), Index::from(stretch.end));
            let block = (stretch.vectors * stretch.lanes) as i64;
            kernel.for_range("c", start, end, block, |kernel, channel| {
                let at = |vector: usize| channel.offset((vector * stretch.lanes) as i64);
                let load = |kernel: &mut KernelWriter<'_>, taps: &[Index], vector: usize| {
                    let spots = places.iter().zip(taps).map(|(place, tap)| place.source(tap));
                    let indices: Vec<Index> = outputs[..1].iter().cloned().chain(spots).chain([at(vector)]).collect();
                    kernel.load(&self.x, &indices, stretch.lanes, stretch.lanes)
                };
                let values = match &counts {
                    Some(counts) if written_out => {
                        vec![
                            self.fold.written_out(kernel, counts, stretch.lanes, &|kernel, taps| load(kernel, taps, 0)),
                        ]
                    }
                    Some(counts) => {
                        let counts: Vec<usize> = counts.iter().map(|&count| count as usize).collect();
                        self.fold.across(kernel, &counts, stretch.vectors, stretch.lanes, &load)
                    }
                    None => {
                        let counts: Vec<Index> = places.iter().map(|place| place.count.clone()).collect();
                        self.fold.counted(
                            kernel,
                            &TAP_NAMES[first_name(self.axes.len())..],
                            &counts,
                            stretch.vectors,
                            stretch.lanes,
                            &load,
                        )
                    }
                };
                for (vector, value) in values.into_iter().enumerate() {
                    let indices: Vec<Index> = outputs.iter().cloned().chain([at(vector)]).collect();
                    let value = match &divisor {
                        Some(divisor) => divisor.apply(value),
                        None => value,
                    };
                    kernel.finish(value, &indices, stretch.lanes);
                }
            });
        }
    }
}

/// What the sum over a window is multiplied with and divided by.
struct Divisor {
    factor: Option<Scale>,
    divisor: Option<Expr>,
}

impl Divisor {
    fn new(kernel: &mut KernelWriter<'_>, places: &[Place], dtype: DType) -> Divisor {
        let known: i64 = places.iter().filter_map(|place| place.divisor.as_constant()).product();
        let open = places.iter().filter(|place| place.divisor.as_constant().is_none());
        let open = open.map(|place| Expr::Index(dtype, place.divisor.maximum(&Index::from(1i64))));
        let divisor = open.reduce(Expr::times).map(|divisor| kernel.b.define("divisor", divisor));
        let factor = (known > 1).then(|| Scale::by_reciprocal_of(known as usize, dtype, kernel));
        Divisor { factor, divisor }
    }

    fn apply(&self, sum: Expr) -> Expr {
        let scaled = match self.factor {
            Some(factor) => factor.apply(sum),
            None => sum,
        };
        match &self.divisor {
            Some(divisor) => scaled.over(divisor.clone()),
            None => scaled,
        }
    }
}
