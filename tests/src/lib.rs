//! The test harness of mlc: conformance cases, text tests, snapshots and benchmarks share what is here.
//!
//! It plays the user's part: it hands a model to the pipeline, takes the archive that comes out, builds it with a C compiler
//! and nothing else, and judges the numbers. It promises that a case passes only when the generated program's outputs agree
//! with the golden ones, and never looks inside the compiler to decide that.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod array;
pub mod batch;
pub mod book;
pub mod case;
pub mod compare;
pub mod compile;
pub mod conformance;
pub mod described;
pub mod documents;
pub mod filetest;
pub mod firmware;
pub mod halved;
pub mod micro;
pub mod mode;
pub mod paths;
pub mod program;
pub mod random;
pub mod ranks;
pub mod rows;
pub mod sanitizers;
pub mod structure;
