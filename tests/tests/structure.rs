//! The sources have no circles of imports, no file that is too long, and no example in a comment that nothing runs.

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

#[test]
fn examples_in_comments_are_run() {
    let root = paths::repository();
    let sources = structure::read_sources(&root).unwrap();
    // Of a fence without the name of another language the inside is Rust.
    let has_example = |text: &str| {
        let comments =
            text.lines().filter_map(|line| line.trim_start().strip_prefix("//")).filter_map(|line| line.get(1..));
        let fences: Vec<&str> = comments.filter_map(|line| line.trim().strip_prefix("```")).collect();
        let is_rust = |fence: &&str| matches!(fence.split(',').next(), Some("" | "rust" | "no_run" | "should_panic"));
        fences.iter().step_by(2).any(is_rust)
    };
    let examples = sources.iter().filter(|(file, text)| file.ends_with(".rs") && has_example(text));
    let examples: Vec<&String> = examples.map(|(file, _)| file).collect();
    assert!(!examples.is_empty(), "there is one in compiler/builds");
    for file in examples {
        let (folder, _) = file.split_once("/src/").unwrap_or_else(|| panic!("{file} is outside of a crate's sources"));
        let manifest = std::fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("doctest = false"), "{folder} has an example, in {file}, and says it has none");
    }
}
