//! What parameters and operands say about sliding windows: four entries, one for each axis in the order that `format` says.

use super::call::{Call, Parameters};
use mlc_import::Fault;
use mlc_ir::Value;

/// Pads before and after each spatial axis; negative ones cut off.
pub(super) type Pads = [(i64, i64); 2];

/// The order of a tensor's axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Batch, channels, rows, columns.
    ChannelsFirst,
    /// Batch, rows, columns, channels.
    ChannelsLast,
}

impl Layout {
    /// The layout that the parameter `format` says.
    pub fn read(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        Layout::parse(call.required_word("format")?)
    }

    pub fn parse(word: &str) -> Result<Self, Fault> {
        match word {
            "NCHW" => Ok(Layout::ChannelsFirst),
            "NHWC" => Ok(Layout::ChannelsLast),
            other => Err(Fault::parameter(format!("there is no format `{other}`, but NCHW and NHWC"))),
        }
    }

    /// The axis of the channels.
    pub fn channels(self) -> usize {
        match self {
            Layout::ChannelsFirst => 1,
            Layout::ChannelsLast => 3,
        }
    }

    /// The first spatial axis.
    pub fn rows(self) -> usize {
        match self {
            Layout::ChannelsFirst => 2,
            Layout::ChannelsLast => 1,
        }
    }

    /// The extents of the spatial axes.
    pub fn extents(self, call: &Call<'_, '_>, x: Value) -> Result<[usize; 2], Fault> {
        let shape = call.shape(x);
        if shape.len() != 4 {
            let ty = call.builder.ty(x);
            return Err(Fault::operands(format!("{ty} must have four axes")));
        }
        Ok([shape[self.rows()], shape[self.rows() + 1]])
    }

    /// The entries of the spatial axes; those of the others must be 1.
    pub fn steps(self, what: &str, numbers: &[i64]) -> Result<[usize; 2], Fault> {
        let fault = || {
            let message = format!("{what} is {numbers:?}, four positive numbers expected, 1 for batch and channels");
            Fault::parameter(message)
        };
        let &[_, _, _, _] = numbers else { return Err(fault()) };
        let spatial = [numbers[self.rows()], numbers[self.rows() + 1]];
        let positive = |number: i64| usize::try_from(number).ok().filter(|&number| number > 0 && number < 1 << 31);
        match spatial.map(positive) {
            [Some(rows), Some(columns)] if numbers[0] == 1 && numbers[self.channels()] == 1 => Ok([rows, columns]),
            _ => Err(fault()),
        }
    }

    /// A parameter of steps.
    pub fn step_parameter(self, call: &mut Call<'_, '_>, key: &str) -> Result<[usize; 2], Fault> {
        let numbers = call.required_ints(key)?;
        self.steps(&format!("parameter `{key}`"), &numbers)
    }

    /// An operand of steps.
    pub fn step_operand(self, call: &mut Call<'_, '_>, index: usize, what: &str) -> Result<[usize; 2], Fault> {
        let (_, numbers) = call.whole_numbers(index, what)?;
        self.steps(&format!("{what} (operand {index})"), &numbers)
    }

    /// The pads of the spatial axes in a list of pairs; those of the others must be 0.
    pub fn pads(self, what: &str, shape: &[usize], numbers: &[i64]) -> Result<Pads, Fault> {
        let of_axis = |axis: usize| (numbers[2 * axis], numbers[2 * axis + 1]);
        let is_small = |pad: &i64| pad.unsigned_abs() < 1 << 31;
        let is_matrix = shape == [4, 2] && numbers.len() == 8;
        if !is_matrix || of_axis(0) != (0, 0) || of_axis(self.channels()) != (0, 0) || !numbers.iter().all(is_small) {
            let message =
                format!("{what} is {numbers:?} of shape {shape:?}, [4, 2] expected, 0 for batch and channels");
            return Err(Fault::parameter(message));
        }
        Ok([of_axis(self.rows()), of_axis(self.rows() + 1)])
    }

    /// The parameter of pads, if it is there.
    pub fn pads_parameter(self, call: &mut Call<'_, '_>) -> Result<Option<Pads>, Fault> {
        let Some(field) = call.field("padding")? else { return Ok(None) };
        let numbers = field.ints().ok_or_else(|| Fault::parameter("parameter `padding` must be whole numbers"))?;
        self.pads("parameter `padding`", &field.shape, &numbers).map(Some)
    }

    /// The operand of pads.
    pub fn pads_operand(self, call: &mut Call<'_, '_>, index: usize) -> Result<Pads, Fault> {
        let (shape, numbers) = call.whole_numbers(index, "the padding")?;
        self.pads(&format!("the padding (operand {index})"), &shape, &numbers)
    }
}

/// Elements that a window of so many taps spans.
pub(super) fn reach(taps: usize, dilation: usize) -> Result<i64, Fault> {
    let reach = taps.checked_sub(1).and_then(|gaps| gaps.checked_mul(dilation));
    let reach = reach.and_then(|reach| i64::try_from(reach).ok()).filter(|&reach| reach < 1 << 40);
    reach.map(|reach| reach + 1).ok_or_else(|| Fault::parameter(format!("a window of {taps} taps can't slide")))
}
