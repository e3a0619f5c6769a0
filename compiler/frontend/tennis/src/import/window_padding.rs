//! Operators that compute the pads of a convolution or a pool from sizes: constants, once the sizes are known.

use super::call::{Call, Parameters, Table};
use super::window::{Layout, Pads, reach};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;

pub(super) const OPERATORS: Table = &[
    ("_dragon_conv2d_padding", One(dragon_convolution)),
    ("_dragon_pooling2d_padding", One(dragon_pool)),
    ("_mx_pooling2d_padding", One(mxnet_pool)),
    ("_onnx_pooling2d_padding", One(onnx_pool)),
    ("_tf_conv2d_padding", One(tensorflow_convolution)),
    ("_tf_pooling2d_padding", One(tensorflow_pool)),
];

/// A spatial axis: extent, what a window spans, its step, and the pads that are there in any case.
#[derive(Debug, Clone, Copy)]
struct Axis {
    extent: i64,
    reach: i64,
    stride: i64,
    pads: (i64, i64),
}

impl Axis {
    fn padded(&self) -> i64 {
        self.extent + self.pads.0 + self.pads.1
    }

    /// Elements that so many windows need beyond those that are there.
    fn need(&self, windows: i64) -> i64 {
        (windows - 1) * self.stride + self.reach - self.padded()
    }

    /// The pads as they are, less what windows that are rounded down leave out.
    fn floor(&self) -> (i64, i64) {
        (self.pads.0, self.pads.1 - (self.padded() - self.reach) % self.stride)
    }

    /// As TensorFlow's VALID, with windows rounded up.
    fn valid(&self) -> (i64, i64) {
        let windows = div_ceil(self.padded() - self.reach + 1, self.stride);
        (self.pads.0, self.pads.1 + self.need(windows))
    }

    /// As TensorFlow's SAME: as many windows as steps, the odd element of padding behind, or before.
    fn same(&self, odd_before: bool) -> (i64, i64) {
        let need = self.need(div_ceil(self.padded(), self.stride));
        self.with_shared(need, odd_before)
    }

    fn with_shared(&self, need: i64, odd_before: bool) -> (i64, i64) {
        let (half, rest) = (need / 2, need - need / 2);
        let (first, last) = if odd_before { (rest, half) } else { (half, rest) };
        (self.pads.0 + first, self.pads.1 + last)
    }

    /// As Caffe's pools, of which the last window must begin inside.
    fn dragon_valid(&self, up: bool) -> (i64, i64) {
        let room = self.padded() - self.reach;
        let mut windows = if up { div_ceil(room, self.stride) } else { room.div_euclid(self.stride) } + 1;
        if (windows - 1) * self.stride >= self.padded() {
            windows -= 1;
        }
        (self.pads.0, self.pads.1 + self.need(windows))
    }

    fn dragon_same(&self, odd_before: bool) -> (i64, i64) {
        let total = (div_ceil(self.extent, self.stride) - 1) * self.stride + self.reach - self.extent;
        Axis { pads: (0, 0), ..*self }.with_shared(total.max(0), odd_before)
    }
}

fn div_ceil(number: i64, divisor: i64) -> i64 {
    -(-number).div_euclid(divisor)
}

/// The pads of both axes as the operand that convolutions and pools take.
fn result(call: &mut Call<'_, '_>, layout: Layout, pads: Pads) -> Value {
    let mut numbers = [0; 8];
    for (axis, (before, after)) in pads.into_iter().enumerate() {
        let place = 2 * (layout.rows() + axis);
        (numbers[place], numbers[place + 1]) = (before, after);
    }
    call.constant_of_ints(&[4, 2], &numbers)
}

fn static_pads(call: &mut Call<'_, '_>, layout: Layout) -> Result<Pads, Fault> {
    Ok(layout.pads_parameter(call)?.unwrap_or_default())
}

fn axes(extents: [usize; 2], reaches: [i64; 2], strides: [usize; 2], pads: Pads) -> [Axis; 2] {
    [0, 1].map(|axis| Axis {
        extent: extents[axis] as i64,
        reach: reaches[axis],
        stride: strides[axis] as i64,
        pads: pads[axis],
    })
}

/// The axes of a convolution of operand 0 by the weights [.., .., rows, columns] of operand 1.
fn convolution_axes(call: &mut Call<'_, '_>, layout: Layout) -> Result<[Axis; 2], Fault> {
    let (x, weights) = (call.input(0)?, call.input(1)?);
    let extents = layout.extents(call, x)?;
    let taps = Layout::ChannelsFirst.extents(call, weights)?;
    let strides = layout.step_parameter(call, "stride")?;
    let dilations = layout.step_parameter(call, "dilation")?;
    let reaches = [reach(taps[0], dilations[0])?, reach(taps[1], dilations[1])?];
    Ok(axes(extents, reaches, strides, static_pads(call, layout)?))
}

/// The axes of a pool of operand 0, whose window and step are operands 1 and 2.
fn pool_axes(call: &mut Call<'_, '_>, layout: Layout) -> Result<[Axis; 2], Fault> {
    let x = call.input(0)?;
    let extents = layout.extents(call, x)?;
    let window = layout.step_operand(call, 1, "the window")?;
    let strides = layout.step_operand(call, 2, "the stride")?;
    let pads = static_pads(call, layout)?;
    Ok(axes(extents, [reach(window[0], 1)?, reach(window[1], 1)?], strides, pads))
}

fn tensorflow(call: &mut Call<'_, '_>, axes: [Axis; 2]) -> Result<Pads, Fault> {
    match call.required_word("padding_method")? {
        "SAME" => Ok(axes.map(|axis| axis.same(false))),
        "VALID" => Ok(axes.map(|axis| axis.valid())),
        other => Err(Fault::parameter(format!("there is no padding_method `{other}`, but SAME and VALID"))),
    }
}

fn tensorflow_convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let layout = Layout::read(call)?;
    let axes = convolution_axes(call, layout)?;
    let pads = tensorflow(call, axes)?;
    Ok(result(call, layout, pads))
}

fn tensorflow_pool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let layout = Layout::read(call)?;
    let axes = pool_axes(call, layout)?;
    let pads = tensorflow(call, axes)?;
    Ok(result(call, layout, pads))
}

fn onnx_pool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let axes = pool_axes(call, Layout::ChannelsFirst)?;
    let pads = match call.word("auto_pad")?.unwrap_or("NOTSET") {
        "NOTSET" => axes.map(|axis| axis.floor()),
        "VALID" => axes.map(|axis| axis.valid()),
        "SAME_UPPER" => axes.map(|axis| axis.same(false)),
        "SAME_LOWER" => axes.map(|axis| axis.same(true)),
        other => return Err(no_auto_pad(other)),
    };
    Ok(result(call, Layout::ChannelsFirst, pads))
}

fn no_auto_pad(word: &str) -> Fault {
    Fault::parameter(format!("there is no auto_pad `{word}`"))
}

fn mxnet_pool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let layout = Layout::read(call)?;
    if !call.has("padding") {
        call.required::<()>("padding", None)?;
    }
    let axes = pool_axes(call, layout)?;
    let valid = call.flag_or("valid", false)?;
    call.required("valid", call.has("valid").then_some(()))?;
    let pads = axes.map(|axis| if valid { axis.floor() } else { axis.pads });
    Ok(result(call, layout, pads))
}

fn dragon(call: &mut Call<'_, '_>, layout: Layout, axes: [Axis; 2], up: bool) -> Result<Value, Fault> {
    let pads = match call.word("auto_pad")?.unwrap_or("VALID") {
        "VALID" | "NOTSET" => axes.map(|axis| axis.dragon_valid(up)),
        "SAME" | "SAME_LOWER" => axes.map(|axis| axis.dragon_same(true)),
        "SAME_UPPER" => axes.map(|axis| axis.dragon_same(false)),
        other => return Err(no_auto_pad(other)),
    };
    Ok(result(call, layout, pads))
}

/// The layout, which operators of this group may leave out.
fn optional_layout(call: &mut Call<'_, '_>) -> Result<Layout, Fault> {
    call.word("format")?.map_or(Ok(Layout::ChannelsFirst), Layout::parse)
}

fn dragon_convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let layout = optional_layout(call)?;
    let axes = convolution_axes(call, layout)?;
    dragon(call, layout, axes, false)
}

fn dragon_pool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let layout = optional_layout(call)?;
    let axes = pool_axes(call, layout)?;
    let up = call.flag_or("ceil", true)?;
    dragon(call, layout, axes, up)
}

#[cfg(test)]
mod tests {
    use super::Axis;

    fn axis(extent: i64, reach: i64, stride: i64, pads: (i64, i64)) -> Axis {
        Axis { extent, reach, stride, pads }
    }

    #[test]
    fn pads_are_those_of_the_other_frameworks() {
        assert_eq!(axis(8, 3, 2, (0, 0)).same(false), (0, 1));
        assert_eq!(axis(11, 3, 2, (0, 0)).same(false), (1, 1));
        assert_eq!(axis(7, 2, 2, (0, 0)).same(true), (1, 0));
        // More step than window: elements are cut off.
        assert_eq!(axis(7, 1, 3, (0, 0)).same(false), (0, 0));
        assert_eq!(axis(9, 1, 3, (0, 0)).same(false), (-1, -1));
        assert_eq!(axis(8, 3, 2, (0, 0)).valid(), (0, -1));
        assert_eq!(axis(8, 3, 2, (1, 1)).floor(), (1, 0));
        assert_eq!(axis(7, 2, 2, (0, 0)).floor(), (0, -1));
    }

    #[test]
    fn the_last_window_of_caffe_begins_inside() {
        assert_eq!(axis(5, 2, 2, (0, 0)).dragon_valid(true), (0, 1));
        assert_eq!(axis(5, 2, 2, (0, 0)).dragon_valid(false), (0, -1));
        // 4 elements, windows of 1 by 3s: a window at 3 is inside, one at 6 isn't.
        assert_eq!(axis(4, 1, 3, (0, 0)).dragon_valid(true), (0, 0));
        assert_eq!(axis(2, 3, 4, (1, 1)).dragon_valid(true), (1, 0));
        assert_eq!(axis(7, 3, 2, (5, 5)).dragon_same(false), (1, 1));
        assert_eq!(axis(8, 3, 2, (0, 0)).dragon_same(false), (0, 1));
        assert_eq!(axis(8, 3, 2, (0, 0)).dragon_same(true), (1, 0));
    }
}
