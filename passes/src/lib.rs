//! The optimiser: named stages of named rewrite rules, from a frontend's graph to a graph of fused kernels.
//!
//! [`pipeline::optimize`] runs the [`stages`]. The first, canonicalisation, rewrites eagerly in linear time
//! ([`canonicalise`]); the others saturate an e-graph with rules and choose the cheapest graph in it ([`egraph`]). Every
//! rule is a [`rewrite::Rule`], which carries the sampler that the soundness check needs.
//!
//! Promises: the result computes what the graph computed, up to floating-point reassociation; the same graph gives the same
//! result on every machine; every result is verified. Never: reads a clock or a file, or knows a model format or C.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod canonicalise;
pub mod cost;
pub mod egraph;
pub mod integers;
pub mod pipeline;
pub mod reference;
pub mod report;
pub mod rewrite;
mod sketch;
#[cfg(test)]
extern crate self as mlc_passes;
#[cfg(test)]
mod soundness;
pub mod stages;
pub mod weights;

pub use cost::WorkPrices;
pub use pipeline::{OptimizeOptions, OptimizeReport, Pipeline, optimize};
pub use reference::Reference;
pub use weights::NarrowedWeights;
