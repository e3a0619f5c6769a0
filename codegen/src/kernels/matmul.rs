//! Matrix products: contractions over the inner axis, with the leading axes of both operands broadcast.

use super::KernelWriter;
use super::contraction::{Axis, Contraction};
use super::dots::Reach;
use super::grain::Grain;
use super::order::with_pixels_first;
use super::products::weight_strides;
use super::schedule::{Kind, Preferences, Scheduled};
use mlc_ir::ops::Matmul;

impl Scheduled for Matmul {
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new(
            "row-vectors",
            |op, kernel| contraction(op, kernel).helium_schedules(Reach::Row, kernel),
            |op, _, kernel| contraction(op, kernel).write_helium(kernel),
        ),
        Kind::new(
            "pixel-vectors",
            |op, kernel| contraction(op, kernel).helium_schedules(Reach::Pixel, kernel),
            |op, _, kernel| contraction(op, kernel).write_helium(kernel),
        )
        .in_place()
        .by_routines(),
        Kind::new(
            "row-dots",
            |op, kernel| contraction(op, kernel).dot_schedules(Reach::Row, kernel),
            |op, _, kernel| contraction(op, kernel).write_dots(kernel),
        ),
        Kind::new(
            "pixel-dots",
            |op, kernel| contraction(op, kernel).dot_schedules(Reach::Pixel, kernel),
            |op, _, kernel| contraction(op, kernel).write_dots(kernel),
        )
        .in_place()
        .by_routines(),
        Kind::new(
            "direct-dots",
            |op, kernel| contraction(op, kernel).direct_dot_schedules(kernel),
            |op, settings, kernel| contraction(op, kernel).write_direct_dots(settings, kernel),
        )
        .by_routines(),
        Kind::new(
            "quads",
            |op, kernel| contraction(op, kernel).word_schedules(Grain::Quads, kernel),
            |op, settings, kernel| contraction(op, kernel).write_words(settings, kernel),
        )
        .in_place(),
        Kind::new(
            "word-pairs",
            |op, kernel| contraction(op, kernel).word_schedules(Grain::Pairs, kernel),
            |op, settings, kernel| contraction(op, kernel).write_words(settings, kernel),
        )
        .in_place(),
        Kind::new(
            "tiles",
            |op, kernel| tiles(op, kernel, Contraction::schedules),
            |op, settings, kernel| contraction(op, kernel).write(settings, kernel),
        ),
        Kind::new(
            "rolled",
            |op, kernel| tiles(op, kernel, Contraction::rolled_schedules),
            |op, settings, kernel| contraction(op, kernel).write(settings, kernel),
        )
        .small(),
    ];
}

/// Tiles block by block, and pixel by pixel.
fn tiles(
    op: &Matmul,
    kernel: &KernelWriter<'_>,
    list: fn(&Contraction, &KernelWriter<'_>) -> Preferences,
) -> Preferences {
    let contraction = contraction(op, kernel);
    with_pixels_first(list(&contraction, kernel), &contraction, kernel)
}

/// The product of left [.., M, K] and right [.., K, N]; either may be transposed.
fn contraction(op: &Matmul, kernel: &KernelWriter<'_>) -> Contraction {
    let (left, right) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let result = kernel.results[0].view.shape.clone();
    let rank = result.len();
    let (l, r) = (left.view.strides.to_vec(), weight_strides(&right));
    let (l_rank, r_rank) = (l.len(), r.len());
    let (row, inner) = if op.transpose_left { (l_rank - 1, l_rank - 2) } else { (l_rank - 2, l_rank - 1) };
    let (depth, column) = if op.transpose_right { (r_rank - 1, r_rank - 2) } else { (r_rank - 2, r_rank - 1) };
    let batch_stride = |shape: &[usize], strides: &[i64], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(own) if shape[own] != 1 => strides[own],
        _ => 0,
    };
    let mut outer: Vec<Axis> = (0..rank - 2)
        .map(|axis| Axis {
            extent: result[axis],
            x: batch_stride(&left.view.shape, &l, axis),
            weights: batch_stride(&right.view.shape, &r, axis),
        })
        .collect();
    outer.push(Axis { extent: result[rank - 2], x: l[row], weights: 0 });
    let reduction = vec![Axis { extent: left.view.shape[inner], x: l[inner], weights: r[depth] }];
    Contraction {
        x: left,
        x_offset: 0,
        weights: right,
        weights_offset: 0,
        transform: None,
        outer,
        reduction,
        outputs: result[rank - 1],
        output_stride: r[column],
        band: None,
    }
}
