//! Pools, and what everything with windows has in common: pads and layouts.

use super::call::{Arguments, Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::ceil_mode_pads;
use mlc_ir::ops::{AdaptivePool, AveragePool, MaxPool, PoolFunction, ReduceFunction};
use mlc_ir::{Op, Value};

pub(super) const OPERATORS: Table = &[
    ("nn.adaptive_avg_pool2d", One(|call| adaptive(call, PoolFunction::Mean))),
    ("nn.adaptive_max_pool2d", One(|call| adaptive(call, PoolFunction::Maximum))),
    ("nn.avg_pool1d", One(|call| pool(call, "NCW", true))),
    ("nn.avg_pool2d", One(|call| pool(call, "NCHW", true))),
    ("nn.avg_pool3d", One(|call| pool(call, "NCDHW", true))),
    ("nn.global_avg_pool2d", One(|call| global(call, ReduceFunction::Mean))),
    ("nn.global_max_pool2d", One(|call| global(call, ReduceFunction::Maximum))),
    ("nn.max_pool1d", One(|call| pool(call, "NCW", false))),
    ("nn.max_pool2d", One(|call| pool(call, "NCHW", false))),
    ("nn.max_pool3d", One(|call| pool(call, "NCDHW", false))),
];

/// The permutation that brings axes from one order of letters to another.
pub(super) fn layout_permutation(from: &str, to: &str) -> Result<Vec<usize>, Fault> {
    let places: Option<Vec<usize>> = to.chars().map(|letter| from.find(letter)).collect();
    let fits = from.len() == to.len() && from.bytes().all(|letter| letter.is_ascii_uppercase());
    places
        .filter(|places| {
            let mut sorted = places.clone();
            sorted.sort_unstable();
            fits && sorted.iter().copied().eq(0..to.len())
        })
        .ok_or_else(|| Fault::variant(format!("the layout {from} isn't supported where {to} is one order of the axes")))
}

/// The pads of an attribute: one number, one per axis, or those before all axes and then those behind.
pub(super) fn pads(call: &mut Call<'_, '_>, spatial: usize) -> Result<Vec<(usize, usize)>, Fault> {
    let Some(numbers) = call.ints("padding")? else { return Ok(vec![(0, 0); spatial]) };
    let pads = mlc_import::extents(&numbers)?;
    if pads.len() == 2 * spatial {
        return Ok((0..spatial).map(|axis| (pads[axis], pads[spatial + axis])).collect());
    }
    match pads.len() {
        1 => Ok(vec![(pads[0], pads[0]); spatial]),
        count if count == spatial => Ok(pads.iter().map(|&pad| (pad, pad)).collect()),
        count => Err(Fault::parameter(format!("attribute `padding` has {count} numbers for {spatial} axes"))),
    }
}

/// Applies an operator of channels-last tensors to one of a layout.
fn apply(call: &mut Call<'_, '_>, op: impl Into<Op>, x: Value, layout: &str, out: &str) -> Result<Value, Fault> {
    let letters: String = layout.chars().filter(|letter| !matches!(letter, 'N' | 'C')).collect();
    let channels_last = format!("N{letters}C");
    let (to, back) = (layout_permutation(layout, &channels_last)?, layout_permutation(&channels_last, out)?);
    let x = call.builder.transpose(x, &to)?;
    let y = call.builder.apply(op, &[x])?;
    Ok(call.builder.transpose(y, &back)?)
}

/// Layouts of operand and result.
fn layouts(call: &mut Call<'_, '_>, default: &'static str) -> Result<(String, String), Fault> {
    let layout = call.word_or("layout", default)?.to_owned();
    let out = match call.word_or("out_layout", "")? {
        "" => layout.clone(),
        out => out.to_owned(),
    };
    Ok((layout, out))
}

fn pool(call: &mut Call<'_, '_>, default: &'static str, mean: bool) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (layout, out) = layouts(call, default)?;
    let spatial = default.len() - 2;
    let window = call.counts("pool_size", spatial, 1)?;
    let strides = call.counts("strides", spatial, 1)?;
    let dilations = call.counts("dilation", spatial, 1)?;
    let given = pads(call, spatial)?;
    let ceil = call.flag_or("ceil_mode", false)?;
    let counted = mean && call.flag_or("count_include_pad", false)?;
    let shape = call.shape(x);
    if shape.len() != layout.len() {
        return Err(Fault::operands(format!("{} doesn't have the axes {layout}", call.builder.ty(x))));
    }
    let extents: Vec<usize> = layout
        .chars()
        .zip(&shape)
        .filter(|(letter, _)| !matches!(letter, 'N' | 'C'))
        .map(|(_, &extent)| extent)
        .collect();
    let mut wide = given.clone();
    if ceil {
        for (axis, pad) in wide.iter_mut().enumerate() {
            let after = ceil_mode_pads(extents[axis], window[axis], strides[axis].max(1), dilations[axis], *pad);
            pad.1 = after.ok_or_else(|| Fault::operands(format!("the window doesn't fit axis {axis}")))?;
        }
    }
    if !mean {
        return apply(call, MaxPool { window, strides, dilations, pads: wide }, x, &layout, &out);
    }
    let counted_pads = if counted { given } else { vec![(0, 0); spatial] };
    apply(call, AveragePool { window, strides, dilations, pads: wide, counted_pads }, x, &layout, &out)
}

fn global(call: &mut Call<'_, '_>, function: ReduceFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (layout, out) = layouts(call, "NCHW")?;
    let axes: Vec<usize> =
        layout.char_indices().filter(|(_, letter)| matches!(letter, 'H' | 'W')).map(|(axis, _)| axis).collect();
    let back = layout_permutation(&layout, &out)?;
    let y = call.builder.reduce(function, x, &axes, true)?;
    Ok(call.builder.transpose(y, &back)?)
}

fn adaptive(call: &mut Call<'_, '_>, function: PoolFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (layout, out) = layouts(call, "NCHW")?;
    let shape = call.shape(x);
    let spatial: Vec<usize> = layout
        .chars()
        .zip(&shape)
        .filter(|(letter, _)| !matches!(letter, 'N' | 'C'))
        .map(|(_, &extent)| extent)
        .collect();
    let given = call.ints("output_size")?.filter(|sizes| !sizes.is_empty());
    let sizes = match given {
        Some(_) => call.counts("output_size", spatial.len(), 1)?,
        None => spatial,
    };
    if layout == "NCHW" && out == layout {
        return Ok(call.builder.adaptive_pool(x, function, &sizes)?);
    }
    apply(call, AdaptivePool { function, sizes }, x, &layout, &out)
}
