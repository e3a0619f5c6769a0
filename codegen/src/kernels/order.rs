//! The order of the tiles of dense kernels: block of outputs by block, so that weights stay in caches and registers, or pixel by pixel, so that a tile of
//! pixels has all of its outputs before the next one is begun, and results can lie over what the tiles before it have read.

use super::KernelWriter;
use super::contraction::Contraction;
use super::schedule::{Preferences, Settings};
use super::tile;
use mlc_ir::Objective;

const NAME: &str = "order";
const BY_PIXELS: &str = "pixels";
/// Where such schedules stand in lists: behind others of their kind.
const BEHIND: usize = 100;

/// Whether the loops over blocks of outputs are inside of those over tiles of pixels.
pub fn is_by_pixels(settings: &Settings) -> bool {
    settings.is(NAME, BY_PIXELS)
}

/// Some schedules of a contraction and, where memory counts, the same pixel by pixel: not where that is the only order, or a block's weights are
/// copied before its pixels are computed.
pub fn with_pixels_first(list: Preferences, contraction: &Contraction, kernel: &KernelWriter<'_>) -> Preferences {
    let pixels: usize = contraction.outer.iter().filter(|axis| axis.weights == 0).map(|axis| axis.extent).product();
    if kernel.target.objective != Objective::Ram || pixels < 2 {
        return list;
    }
    let vectors = tile::vectors(contraction.outputs, contraction.machine(kernel)).len();
    let has_blocks = |settings: &Settings| vectors > settings.number("vectors") && !settings.is("weights", "copied");
    let own = list.iter().filter(|(_, settings)| has_blocks(settings));
    let others = own.map(|(place, settings)| (place + BEHIND, settings.clone().with(NAME, BY_PIXELS)));
    let others: Preferences = others.collect();
    list.into_iter().chain(others).collect()
}
