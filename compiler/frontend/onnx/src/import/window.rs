//! Strides, dilations and pads of sliding windows, as convolutions and pools have them.

use super::call::Call;
use mlc_import::Fault;
use mlc_ir::Value;

/// How pads follow from the geometry, when they aren't given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoPad {
    /// They are given, or 0.
    NotSet,
    /// As many as the result's extent needs, the odd one behind.
    SameUpper,
    /// As many as the result's extent needs, the odd one in front.
    SameLower,
    /// None.
    Valid,
}

impl AutoPad {
    pub fn read(call: &mut Call<'_, '_>) -> Result<AutoPad, Fault> {
        match call.word("auto_pad")? {
            None | Some("NOTSET" | "") => Ok(AutoPad::NotSet),
            Some("SAME_UPPER") => Ok(AutoPad::SameUpper),
            Some("SAME_LOWER") => Ok(AutoPad::SameLower),
            Some("VALID") => Ok(AutoPad::Valid),
            Some(other) => Err(Fault::parameter(format!(
                "attribute `auto_pad` must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, found {other}"
            ))),
        }
    }

    /// Splits a number of pads between both sides.
    pub fn split(self, total: usize) -> (usize, usize) {
        let half = total / 2;
        if self == AutoPad::SameUpper { (half, total - half) } else { (total - half, half) }
    }
}

/// A list of numbers of at least `least`, one per spatial axis; `None` when it isn't given.
pub(super) fn spatial_list(
    call: &mut Call<'_, '_>,
    key: &'static str,
    spatial: usize,
    least: usize,
) -> Result<Option<Vec<usize>>, Fault> {
    let Some(list) = call.ints(key)? else { return Ok(None) };
    let numbers: Option<Vec<usize>> =
        list.iter().map(|&number| usize::try_from(number).ok().filter(|&number| number >= least)).collect();
    match numbers {
        Some(numbers) if numbers.len() == spatial => Ok(Some(numbers)),
        _ => Err(Fault::parameter(format!(
            "attribute `{key}` must be {spatial} numbers of at least {least}, found {list:?}"
        ))),
    }
}

/// Steps and distances of a window's taps.
pub(super) fn strides_and_dilations(
    call: &mut Call<'_, '_>,
    spatial: usize,
) -> Result<(Vec<usize>, Vec<usize>), Fault> {
    let strides = spatial_list(call, "strides", spatial, 1)?.unwrap_or_else(|| vec![1; spatial]);
    let dilations = spatial_list(call, "dilations", spatial, 1)?.unwrap_or_else(|| vec![1; spatial]);
    Ok((strides, dilations))
}

/// The pads that the model gives, before and after each spatial axis.
pub(super) fn given_pads(call: &mut Call<'_, '_>, spatial: usize) -> Result<Option<Vec<(usize, usize)>>, Fault> {
    let Some(list) = call.ints("pads")? else { return Ok(None) };
    if list.iter().any(|&pad| pad < 0) {
        return Err(Fault::variant(format!("the pads {list:?} cut elements off, which isn't supported here"))
            .with_help("cut them off with Slice or Pad before"));
    }
    if list.len() != 2 * spatial {
        return Err(Fault::parameter(format!("attribute `pads` must be {} numbers, found {list:?}", 2 * spatial)));
    }
    let (before, after) = list.split_at(spatial);
    Ok(Some(before.iter().zip(after).map(|(&before, &after)| (before as usize, after as usize)).collect()))
}

/// Elements that a window spans along an axis.
pub(super) fn reach(taps: usize, dilation: usize) -> Option<usize> {
    taps.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)
}

/// Pads with which a window of this geometry moves over spatial extents.
pub(super) fn pads(
    call: &mut Call<'_, '_>,
    extents: &[usize],
    window: &[usize],
    strides: &[usize],
    dilations: &[usize],
) -> Result<Vec<(usize, usize)>, Fault> {
    let (auto_pad, given) = (AutoPad::read(call)?, given_pads(call, extents.len())?);
    let none = || vec![(0, 0); extents.len()];
    let pads = match auto_pad {
        AutoPad::NotSet => return Ok(given.unwrap_or_else(none)),
        AutoPad::Valid => none(),
        AutoPad::SameUpper | AutoPad::SameLower => (0..extents.len())
            .map(|axis| {
                let reach = reach(window[axis], dilations[axis])?;
                let last = extents[axis].div_ceil(strides[axis]).saturating_sub(1).checked_mul(strides[axis])?;
                Some(auto_pad.split(last.checked_add(reach)?.saturating_sub(extents[axis])))
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Fault::parameter(format!("the window {window:?} is too large")))?,
    };
    agreeing_pads(given, pads)
}

/// Refuses given pads that contradict those that follow from `auto_pad`; zeros count as not given.
pub(super) fn agreeing_pads(
    given: Option<Vec<(usize, usize)>>,
    pads: Vec<(usize, usize)>,
) -> Result<Vec<(usize, usize)>, Fault> {
    match given {
        Some(given) if given != pads && given.iter().any(|&pad| pad != (0, 0)) => {
            Err(Fault::parameter(format!("the pads are given as {given:?}, but follow from `auto_pad` as {pads:?}")))
        }
        _ => Ok(pads),
    }
}

/// Number of spatial axes of x [N, C, spatial…].
pub(super) fn spatial_rank(call: &Call<'_, '_>, x: Value) -> Result<usize, Fault> {
    match call.rank(x).checked_sub(2) {
        Some(spatial) if spatial > 0 => Ok(spatial),
        _ => Err(Fault::operands(format!("the input {} has no spatial axes", call.builder.ty(x)))),
    }
}
