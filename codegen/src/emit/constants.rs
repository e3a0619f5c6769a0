//! The constants that kernels refer to, each once, and where they are.

use crate::constants::form;
use crate::module::PackedConstant;
use crate::names::Names;
use crate::target::Target;
use indexmap::IndexMap;
use mlc_ir::Attribute;

/// Constants in the order of their first use. Equal ones are one.
#[derive(Debug, Default)]
pub(super) struct Constants {
    /// Whether all machines that the code is for keep the lowest byte of a number first.
    is_little_endian: bool,
    /// The constants.
    pub list: Vec<PackedConstant>,
    numbers: IndexMap<Attribute, usize>,
    /// Bytes of the pool so far.
    pool: usize,
}

impl Constants {
    /// None yet.
    pub fn for_target(target: &Target) -> Constants {
        Constants { is_little_endian: target.is_little_endian(), ..Constants::default() }
    }

    /// The number of a constant, which gets a symbol when it is new.
    pub fn number(&mut self, names: &mut Names, name: &str, value: &Attribute) -> usize {
        if let Some(&number) = self.numbers.get(value) {
            return number;
        }
        let symbol = names.symbol(&format!("constant_{name}"));
        self.numbers.insert(value.clone(), self.list.len());
        let form = form(value, self.is_little_endian);
        let (name, value) = (name.to_owned(), value.clone());
        self.list.push(PackedConstant { symbol, name, value, form, in_code: false, pool_offset: None });
        self.list.len() - 1
    }

    /// The offset of a constant in the pool, which begins at a multiple of `alignment`.
    pub fn pooled(&mut self, number: usize, alignment: usize) -> usize {
        let constant = &mut self.list[number];
        let end = &mut self.pool;
        *constant.pool_offset.get_or_insert_with(|| {
            let offset = end.next_multiple_of(alignment);
            *end = offset + constant.value.ty().bytes();
            offset
        })
    }
}
