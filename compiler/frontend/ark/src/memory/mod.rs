//! From memory to values: what a file's operations read and write of shared buffers becomes a list of steps in which each value is
//! made once.
//!
//! A buffer's content is the list of writes that can still be seen; what an operation reads is a part of one of them, as a rule
//! all of it, or is put together of several. Operations run in the file's order, so an operation sees what was written before
//! it, and nothing of what comes later, whatever memory they share.

mod access;
mod area;
mod content;
mod external;
mod lowering;
mod outputs;
mod partition;
mod program;

pub use external::{External, binding, externals};
pub use lowering::lower;
pub use outputs::outputs;
pub use program::{Action, Exchange, Program, Step, ValueId};

#[cfg(test)]
mod tests;
