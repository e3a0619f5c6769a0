//! Lowering: from a graph to kernels over buffers.

pub mod view;
