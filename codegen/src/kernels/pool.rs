//! Pools over channels-last tensors: vectors run along the channels. Positions whose window lies inside the tensor, and each
//! kind of border, have loops of their own with constant bounds; only wide borders compute their bounds.

use super::fold::Fold;
use super::reduce::{Scale, reduce_axes};
use super::space::stretches;
use super::window::{Place, Segment, WindowAxis, segments};
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::{AdaptivePool, AveragePool, MaxPool, PoolFunction};
use mlc_ir::{DType, Diagnostic};

/// Windows of at most this many taps are written out.
const WRITTEN_OUT: i64 = 16;
/// Vectors of channels that larger windows combine at once.
const VECTORS: usize = 4;
const OUTPUT_NAMES: [&str; 3] = ["od", "oh", "ow"];
const TAP_NAMES: [&str; 3] = ["kd", "kh", "kw"];

/// The schedule of `max_pool`.
pub fn max_pool(kernel: &mut KernelWriter<'_>, op: &MaxPool) -> Result<(), Diagnostic> {
    let extents = spatial_extents(kernel);
    let axes = (0..extents.len()).map(|axis| WindowAxis::Sliding {
        extent: extents[axis],
        taps: op.window[axis],
        stride: op.strides[axis],
        dilation: op.dilations[axis],
        pads: op.pads[axis],
        counted_pads: (0, 0),
    });
    let fold = Fold::largest(kernel.operands[0].view.dtype);
    pool(kernel, &axes.collect::<Vec<_>>(), fold, false);
    Ok(())
}

/// The schedule of `average_pool`.
pub fn average_pool(kernel: &mut KernelWriter<'_>, op: &AveragePool) -> Result<(), Diagnostic> {
    let extents = spatial_extents(kernel);
    let axes = (0..extents.len()).map(|axis| WindowAxis::Sliding {
        extent: extents[axis],
        taps: op.window[axis],
        stride: op.strides[axis],
        dilation: op.dilations[axis],
        pads: op.pads[axis],
        counted_pads: op.counted_pads[axis],
    });
    let fold = Fold::sum(kernel.operands[0].view.dtype);
    pool(kernel, &axes.collect::<Vec<_>>(), fold, true);
    Ok(())
}

/// The schedule of `adaptive_pool`.
pub fn adaptive_pool(kernel: &mut KernelWriter<'_>, op: &AdaptivePool) -> Result<(), Diagnostic> {
    let extents = spatial_extents(kernel);
    let axes: Vec<WindowAxis> =
        extents.iter().zip(&op.sizes).map(|(&extent, &size)| WindowAxis::adaptive(extent, size)).collect();
    let dtype = kernel.operands[0].view.dtype;
    match op.function {
        PoolFunction::Mean => pool(kernel, &axes, Fold::sum(dtype), true),
        PoolFunction::Maximum => pool(kernel, &axes, Fold::largest(dtype), false),
    }
    Ok(())
}

fn spatial_extents(kernel: &KernelWriter<'_>) -> Vec<usize> {
    let shape = &kernel.operands[0].view.shape;
    shape[1..shape.len() - 1].to_vec()
}

fn pool(kernel: &mut KernelWriter<'_>, axes: &[WindowAxis], fold: Fold, mean: bool) {
    if kernel.results[0].view.elements() == 0 {
        return;
    }
    let spatial: Vec<usize> = (1..=axes.len()).collect();
    let sizes: Vec<usize> = kernel.results[0].view.shape[1..=axes.len()].to_vec();
    if axes.iter().zip(&sizes).all(|(axis, &size)| axis.is_whole(size)) {
        return reduce_axes(kernel, &spatial, true, fold, mean);
    }
    let x = kernel.operands[0].clone();
    let pool = Pool { axes, segments: segments(axes, &sizes), fold, mean, x };
    kernel.for_each("n", pool.x.view.shape[0], |kernel, item| pool.axis(kernel, &mut vec![item], &mut Vec::new()));
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
        let written_out = counts.as_ref().is_some_and(|counts| counts.iter().product::<i64>() <= WRITTEN_OUT);
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
