//! [`Placeholders`]: constants of a text whose values don't matter.

use super::ConstantSource;
use crate::attribute::Attribute;
use crate::types::TensorType;
use bytes::Bytes;
use std::cell::RefCell;

/// Bytes of the largest constant: a short text can't ask for more memory.
const LARGEST: usize = 1 << 30;

/// Zeros in the place of the side table's constants, for those who look at a graph's operators and types alone.
#[derive(Debug, Default)]
pub struct Placeholders {
    zeros: RefCell<Bytes>,
}

impl ConstantSource for Placeholders {
    fn constant(&self, _name: &str, _hash: u64, ty: &TensorType) -> Option<Attribute> {
        let bytes = ty.checked_bytes().filter(|&bytes| bytes <= LARGEST)?;
        let mut zeros = self.zeros.borrow_mut();
        if zeros.len() < bytes {
            // Twice as many as before at least: constants that grow share few pieces of memory.
            *zeros = vec![0; bytes.max(2 * zeros.len())].into();
        }
        Attribute::new(ty.clone(), zeros.slice(..bytes)).ok()
    }

    fn has_values(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    #[test]
    fn a_graph_is_read_without_its_constants() {
        let text = |ty: &str| {
            format!(
                "mlc 1\ngraph @g(%x: {ty}) -> (\"y\": {ty}) {{\n  %c = constant {ty} @c #0123456789abcdef\n  \
                 %y = binary %x, %c {{function = add}} : {ty}\n  return %y\n}}\n"
            )
        };
        let graph = parse(&text("f32[3, 40]"), &Placeholders::default()).unwrap();
        assert_eq!(graph.len(), 3);
        assert!(parse(&text("f32[3, 40]"), &()).is_err());
        let faults = parse(&text("f32[20000, 20000]"), &Placeholders::default()).unwrap_err();
        assert!(faults[0].message.contains("isn't in the side table"), "{faults:?}");
    }
}
