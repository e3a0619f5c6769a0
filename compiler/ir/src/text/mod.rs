//! The text form of graphs: readable, complete and parseable. [`print()`] then [`parse()`] gives an equal graph, and printing
//! that gives the same text. Operators are read and written through their generic fields, so a new operator needs no
//! change here. Large constants print as a name and a content hash, and live in a side table.
//!
//! `docs/ir.md` has the grammar. The parser takes any text: it reports faults with line and column and never panics.

mod constants;
mod cursor;
mod expression;
mod lexer;
mod parse;
mod placeholders;
mod print;
mod suggest;
mod values;

pub use expression::parse_expression;
pub use parse::parse;
pub use placeholders::Placeholders;
pub use print::{print, print_node, print_with_constants};
pub use suggest::nearest;
pub use values::parse_type;

use crate::attribute::Attribute;
use crate::types::TensorType;
use indexmap::IndexMap;

/// The version of the text form, in its first line.
pub const VERSION: u32 = 1;

/// Where a parsed graph's large constants come from.
pub trait ConstantSource {
    /// The constant of a name, and the content hash and the type that it should have.
    fn constant(&self, name: &str, hash: u64, ty: &TensorType) -> Option<Attribute>;

    /// Whether the constants have the text's values; the hashes of others aren't looked at.
    fn has_values(&self) -> bool {
        true
    }
}

/// No large constants at all.
impl ConstantSource for () {
    fn constant(&self, _name: &str, _hash: u64, _ty: &TensorType) -> Option<Attribute> {
        None
    }
}

/// The side table of [`print_with_constants`].
impl ConstantSource for IndexMap<String, Attribute> {
    fn constant(&self, name: &str, _hash: u64, _ty: &TensorType) -> Option<Attribute> {
        self.get(name).cloned()
    }
}

#[cfg(test)]
mod tests;
