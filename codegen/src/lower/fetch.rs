//! [`Fetch`]: constants that are copied into the arena ahead of the parts that read them.

use super::homes::BufferId;
use crate::kernels::Packed;

/// A constant that is copied into the arena.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Its name.
    pub name: String,
    /// Its values.
    pub value: Packed,
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

impl Fetch {
    /// The constants whose copies begin.
    pub fn begun(&self) -> &[Fetched] {
        if let Fetch::Begin(list) = self { list } else { &[] }
    }
}
