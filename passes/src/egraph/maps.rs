//! Maps and sets of what e-graphs are full of, small numbers, in the order of insertion. Such keys needn't be hashed with care.

use rustc_hash::FxBuildHasher;

/// A map.
pub type Map<K, V> = indexmap::IndexMap<K, V, FxBuildHasher>;
/// A set.
pub type Set<T> = indexmap::IndexSet<T, FxBuildHasher>;
