//! Padding of convolutions and pools, which both have along the axes of images.

use super::call::{Call, Parameters};
use mlc_import::Fault;
use mlc_ir::Code;

/// Pads before and after rows and columns.
pub(super) type Pads = [(usize, usize); 2];

/// Window, step and distance of taps along rows and columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub size: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
}

/// What `autopad` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutomaticPads {
    /// `padding` counts.
    None,
    /// There are none.
    Valid,
    /// So that the number of windows only depends on the stride; the odd one comes last.
    SameUpper,
    /// Likewise; the odd one comes first.
    SameLower,
}

impl AutomaticPads {
    /// What the operator says.
    pub fn read(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        Ok(match call.required_word("autopad")? {
            "NOTSET" => AutomaticPads::None,
            "VALID" => AutomaticPads::Valid,
            "SAME_UPPER" => AutomaticPads::SameUpper,
            "SAME_LOWER" => AutomaticPads::SameLower,
            other => {
                let other = mlc_json::shortened(other);
                let message = format!(
                    "parameter `autopad` is `{other}`, which is none of NOTSET, VALID, SAME_UPPER and SAME_LOWER; NOTSET is taken"
                );
                call.warn(Code::ParameterInvalid, message);
                AutomaticPads::None
            }
        })
    }

    /// The pads when so many are wanted in all along each axis; `padding` has those for `NOTSET`.
    pub fn pads(self, padding: [usize; 4], totals: impl Fn(usize) -> usize) -> Pads {
        let [top, left, bottom, right] = padding;
        let same = |axis| {
            let total = totals(axis);
            (total / 2, total - total / 2)
        };
        let mirrored = |(before, after): (usize, usize)| (after, before);
        match self {
            AutomaticPads::None => [(top, bottom), (left, right)],
            AutomaticPads::Valid => [(0, 0); 2],
            AutomaticPads::SameUpper => [same(0), same(1)],
            AutomaticPads::SameLower => [mirrored(same(0)), mirrored(same(1))],
        }
    }
}

impl Geometry {
    /// Extent of the window along an axis, with what lies between the taps.
    pub fn reach(&self, axis: usize) -> usize {
        (self.size[axis] - 1).saturating_mul(self.dilation[axis]).saturating_add(1)
    }

    /// The pads of windows over axes of these extents.
    ///
    /// # Errors
    /// When a window doesn't fit.
    pub fn pads(&self, call: &mut Call<'_, '_>, extents: [usize; 2]) -> Result<Pads, Fault> {
        let padding = call.fixed_list::<4>("padding", 0)?;
        let pads = AutomaticPads::read(call)?.pads(padding, |axis| {
            let steps = extents[axis].div_ceil(self.stride[axis]) - 1;
            steps.saturating_mul(self.stride[axis]).saturating_add(self.reach(axis)).saturating_sub(extents[axis])
        });
        for axis in 0..2 {
            let room = extents[axis].saturating_add(pads[axis].0).saturating_add(pads[axis].1);
            if self.reach(axis) > room {
                let (reach, extent) = (self.reach(axis), extents[axis]);
                return Err(Fault::operands(format!(
                    "a window of {reach} doesn't fit {extent} elements with pads {:?}",
                    pads[axis]
                )));
            }
        }
        Ok(pads)
    }
}

#[cfg(test)]
mod tests {
    use super::AutomaticPads as A;

    #[test]
    fn the_odd_pad_is_last_or_first() {
        let totals = |axis: usize| [3, 2][axis];
        assert_eq!(A::SameUpper.pads([9; 4], totals), [(1, 2), (1, 1)]);
        assert_eq!(A::SameLower.pads([9; 4], totals), [(2, 1), (1, 1)]);
        assert_eq!(A::Valid.pads([9; 4], totals), [(0, 0); 2]);
        assert_eq!(A::None.pads([1, 2, 3, 4], totals), [(1, 3), (2, 4)]);
    }
}
