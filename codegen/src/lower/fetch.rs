//! [`Fetch`]: constants that are copied into the arena ahead of the parts that read them.

use super::homes::BufferId;
use mlc_ir::Attribute;

/// A constant that is copied into the arena.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Its name.
    pub name: String,
    /// Its values.
    pub value: Attribute,
    /// The buffer that it is copied to.
    pub buffer: BufferId,
}

/// Something that is done with constants which are copied into the arena.
#[derive(Debug, Clone)]
pub enum Fetch {
    /// Copies begin.
    Begin(Vec<Fetched>),
    /// All copies that have begun must be complete before what follows.
    Wait,
}
