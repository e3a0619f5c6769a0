//! `parameters/<model>.params`: the named arrays of a model. Ours are constants of the C code, so the list is empty.

/// First word of a list of arrays.
const LIST_MAGIC: u64 = 0xF7E5_8D4F_0504_9CB7;

/// A list of no arrays: magic, a reserved word, the number of names and the number of arrays.
pub(super) fn no_arrays() -> Vec<u8> {
    [LIST_MAGIC, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect()
}
