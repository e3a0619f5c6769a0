//! The sources have no circles of imports and no file that is too long.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_tests::{paths, structure};

/// Imports that are left out, from a file to another one: types that hold each other. A field may be an operator or a graph, and
/// both have fields.
const RECURSIVE_TYPES: [(&str, &str); 2] = [
    ("compiler/ir/src/fields.rs", "compiler/ir/src/ops/mod.rs"),
    ("compiler/ir/src/fields.rs", "compiler/ir/src/subgraph.rs"),
];

#[test]
fn files_import_each_other_in_no_circle() {
    let sources = structure::read_sources(&paths::repository()).unwrap();
    let mut imports = structure::imports(&sources).unwrap_or_else(|error| panic!("{error}"));
    assert!(imports.len() > 1000, "{} imports: the sources haven't been read", imports.len());
    for pair in RECURSIVE_TYPES {
        let before = imports.len();
        imports.retain(|(file, to, _)| (file.as_str(), to.as_str()) != pair);
        assert!(imports.len() < before, "{pair:?} is no import any more");
    }
    let circles = structure::circles(&imports);
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let sources = structure::read_sources(&paths::repository()).unwrap();
    let long = structure::long_files(&sources);
    assert!(long.is_empty(), "more than {} lines:\n{}", structure::MOST_LINES, long.join("\n"));
}
