//! The rules of the saturating stages, a group per file.

pub mod algebra;
pub mod axes;
pub mod blocks;
mod cones;
pub mod fold;
pub mod fusion;
pub mod layout;
pub mod merge;
pub mod pads;
mod pattern;
pub mod sums;
