//! Which operation types are known. Each group is a table in its own file; this one joins them.

use super::call::Table;
use super::format::Ark;
use super::{elementwise, exchanges, memory_steps, products, structure};
use mlc_import::{Entry, Operators, entries};

const TABLES: &[Table] =
    &[elementwise::OPERATORS, exchanges::OPERATORS, memory_steps::STEPS, products::OPERATORS, structure::OPERATORS];

impl Operators for Ark {
    fn entries() -> impl Iterator<Item = Entry<Ark>> {
        entries(TABLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_is_listed_twice() {
        let mut kinds: Vec<&str> = Ark::entries().map(|entry| entry.kind).collect();
        kinds.sort_unstable();
        let twice: Vec<_> = kinds.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
