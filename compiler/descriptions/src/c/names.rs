//! The variables of a program and the names that they have at a place of its text.

use super::types::Type;
use indexmap::IndexMap;

/// A variable: a place for a value, or for the elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Type of the value, or of an element.
    pub ty: Type,
    /// Whether it is an array.
    pub array: bool,
}

/// The most variables of a program.
const MOST_SLOTS: usize = 10_000;

/// The names that a text sees, and all variables so far.
#[derive(Debug, Clone, Default)]
pub struct Names {
    slots: Vec<Slot>,
    /// The variables of each name, the innermost last, each with the depth of its block.
    known: IndexMap<String, Vec<(usize, usize)>>,
    /// The names of each open block.
    blocks: Vec<Vec<String>>,
}

impl Names {
    /// All variables.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// A variable without a name; `None` when there are too many.
    pub fn unnamed(&mut self, ty: Type, array: bool) -> Option<usize> {
        if self.slots.len() >= MOST_SLOTS {
            return None;
        }
        self.slots.push(Slot { ty, array });
        Some(self.slots.len() - 1)
    }

    /// Declares a variable in the innermost block.
    ///
    /// # Errors
    /// When the block has one of this name, or there are too many.
    pub fn declare(&mut self, name: &str, ty: Type, array: bool) -> Result<usize, String> {
        let depth = self.blocks.len();
        let known = self.known.get(name).and_then(|slots| slots.last());
        if known.is_some_and(|(_, block)| *block == depth) {
            return Err(format!("'{name}' is declared twice"));
        }
        let slot = self.unnamed(ty, array).ok_or_else(|| format!("there are more than {MOST_SLOTS} variables"))?;
        self.known.entry(name.to_owned()).or_default().push((slot, depth));
        if let Some(block) = self.blocks.last_mut() {
            block.push(name.to_owned());
        }
        Ok(slot)
    }

    /// The variable that a name means here.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.known.get(name)?.last().map(|(slot, _)| *slot)
    }

    /// All names that mean something here.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.known.iter().filter(|(_, slots)| !slots.is_empty()).map(|(name, _)| name.as_str())
    }

    /// Opens a block.
    pub fn open(&mut self) {
        self.blocks.push(Vec::new());
    }

    /// Closes the innermost block: its names mean again what they meant before.
    pub fn close(&mut self) {
        for name in self.blocks.pop().into_iter().flatten() {
            if let Some(slots) = self.known.get_mut(&name) {
                slots.pop();
            }
        }
    }
}
