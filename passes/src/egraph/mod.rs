//! Equality saturation on graphs: rules in, the cheapest graph out.
//!
//! A [`space::Space`] is entered by `into_egraph` and left by [`rebuild::from_egraph`]. Constants stay symbolic inside and are
//! computed once, on the way out, and only if the chosen graph needs them.

pub mod explain;
pub mod extract;
pub mod language;
mod maps;
pub mod provenance;
pub mod rebuild;
pub mod regions;
pub mod rules;
pub mod saturate;
pub mod space;
