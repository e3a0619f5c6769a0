//! Pools. The number of windows is always rounded up, and the last one may reach as far beyond the pads as it likes.

use super::call::{Call, Parameters, Table};
use super::window::{Layout, Pads};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::PoolWindow;
use mlc_ir::Value;
use mlc_ir::ops::{PadMode, PoolFunction};

pub(super) const OPERATORS: Table =
    &[("global_pooling2d", One(global)), ("pooling2d", One(static_pool)), ("pooling2d_v2", One(pool_of_operands))];

/// What padding is to a mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rim {
    /// It doesn't count.
    Black,
    /// It counts in the divisor, as all of the window does.
    White,
}

struct Pool {
    function: PoolFunction,
    rim: Rim,
    pads: Pads,
    window: [usize; 2],
    strides: [usize; 2],
}

fn function(number: i64) -> Result<PoolFunction, Fault> {
    match number {
        0 => Ok(PoolFunction::Maximum),
        1 => Ok(PoolFunction::Mean),
        other => Err(Fault::parameter(format!("parameter `type` is {other}, 0 (largest) or 1 (mean) expected"))),
    }
}

fn rim(call: &mut Call<'_, '_>) -> Result<Rim, Fault> {
    match call.int_or("padding_type", 0)? {
        0 => Ok(Rim::Black),
        3 => Ok(Rim::White),
        other => {
            Err(Fault::variant(format!("parameter `padding_type` is {other}; 0 (black) and 3 (white) are defined")))
        }
    }
}

fn static_pool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let layout = Layout::read(call)?;
    let (kind, pads) = (call.required_int("type")?, layout.pads_parameter(call)?);
    let pool = Pool {
        function: function(kind)?,
        rim: rim(call)?,
        pads: call.required("padding", pads)?,
        window: layout.step_parameter(call, "ksize")?,
        strides: layout.step_parameter(call, "stride")?,
    };
    apply(call, layout, &pool)
}

fn pool_of_operands(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let layout = Layout::read(call)?;
    let kind = call.int_or("type", 0)?;
    let pool = Pool {
        function: function(kind)?,
        rim: rim(call)?,
        pads: layout.pads_operand(call, 1)?,
        window: layout.step_operand(call, 2, "the window")?,
        strides: layout.step_operand(call, 3, "the stride")?,
    };
    apply(call, layout, &pool)
}

/// The pad behind an axis that the windows reach, as pools that round down want it.
fn reached(extent: usize, window: usize, stride: usize, (before, after): (i64, i64)) -> Result<i64, Fault> {
    let (extent, window, stride) = (extent as i64, window as i64, stride as i64);
    let room = extent + before + after - window;
    let count = 1 - (-room).div_euclid(stride);
    if count < 1 {
        return Err(Fault::operands(format!("a window of {window} doesn't fit {extent} elements with pads")));
    }
    Ok((count - 1) * stride + window - extent - before)
}

fn apply(call: &mut Call<'_, '_>, layout: Layout, pool: &Pool) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let extents = layout.extents(call, x)?;
    let mut pads: Pads = pool.pads;
    for (axis, pad) in pads.iter_mut().enumerate() {
        let (window, stride) = (pool.window[axis], pool.strides[axis]);
        pad.1 = reached(extents[axis], window, stride, *pad)?;
        let empty = pad.0 >= window as i64 || pad.1 >= window as i64;
        if pool.function == PoolFunction::Maximum && empty {
            return Err(Fault::operands(format!(
                "a window of {window} lies in the pads {pad:?}, where nothing is largest"
            )));
        }
    }
    let x = match layout {
        Layout::ChannelsFirst => x,
        Layout::ChannelsLast => call.builder.to_channels_first(x)?,
    };
    let cut = pads.map(|(before, after)| (before.min(0), after.min(0)));
    let x = call.builder.pad(x, &[(0, 0), (0, 0), cut[0], cut[1]], PadMode::Constant, 0.0)?;
    let pads = pads.map(|(before, after)| (before.max(0) as usize, after.max(0) as usize)).to_vec();
    let window =
        PoolWindow { window: pool.window.to_vec(), strides: pool.strides.to_vec(), dilations: vec![1; 2], pads };
    let y = match (pool.function, pool.rim) {
        (PoolFunction::Maximum, _) => call.builder.max_pool(x, window)?,
        (PoolFunction::Mean, Rim::Black) => call.builder.average_pool(x, window, vec![(0, 0); 2])?,
        (PoolFunction::Mean, Rim::White) => {
            let counted = window.pads.clone();
            call.builder.average_pool(x, window, counted)?
        }
    };
    Ok(match layout {
        Layout::ChannelsFirst => y,
        Layout::ChannelsLast => call.builder.to_channels_last(y)?,
    })
}

fn global(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if Layout::read(call)? == Layout::ChannelsLast {
        return Err(Fault::variant("global pools of the format NHWC aren't defined"));
    }
    let x = call.floats_input(0)?;
    Layout::ChannelsFirst.extents(call, x)?;
    let function = function(call.required_int("type")?)?;
    Ok(call.builder.adaptive_pool(x, function, &[1; 2])?)
}

#[cfg(test)]
mod tests {
    use super::reached;

    #[test]
    fn windows_are_rounded_up_and_reach_beyond_the_pads() {
        // 7 elements by 2s: four windows, the last of which misses one element.
        assert_eq!(reached(7, 2, 2, (0, 0)).unwrap(), 1);
        assert_eq!(reached(8, 3, 2, (0, 0)).unwrap(), 1);
        assert_eq!(reached(8, 2, 2, (0, 0)).unwrap(), 0);
        // A calculator has taken away the element that rounding down leaves out.
        assert_eq!(reached(7, 2, 2, (0, -1)).unwrap(), -1);
        assert_eq!(reached(2, 3, 2, (0, 0)).unwrap(), 1);
        assert!(reached(1, 9, 2, (0, 0)).is_err());
    }
}
