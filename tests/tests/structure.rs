//! The sources have no circles of imports and no file that is too long.

use mlc_tests::{paths, structure};

#[test]
fn files_import_each_other_in_no_circle() {
    let sources = structure::read_sources(&paths::repository()).unwrap();
    let imports = structure::imports(&sources).unwrap_or_else(|error| panic!("{error}"));
    assert!(imports.len() > 1000, "{} imports: the sources haven't been read", imports.len());
    let circles = structure::circles(&imports);
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let sources = structure::read_sources(&paths::repository()).unwrap();
    let long = structure::long_files(&sources);
    assert!(long.is_empty(), "more than {} lines:\n{}", structure::MOST_LINES, long.join("\n"));
}
