//! Models of several ranks: `mlc run` and `mlc compile` with the models of all of them.

pub mod description;
pub mod options;
pub mod run;
pub mod select;
