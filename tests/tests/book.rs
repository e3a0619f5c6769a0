//! The README and the documentation, a book: what its commands name exists, its links lead somewhere. The commands themselves are
//! run by the program `commands`.

use mlc_tests::book::{self, Options, Page};
use mlc_tests::paths;

/// Options of other programs that pages name.
const OTHERS: &[&str] = &[
    // cargo's
    "--no-default-features",
    // the bench's that writes docs/prices.md
    "--machine",
    "--network",
    "--rows",
    // tvmc's
    "--executor-aot-interface-api",
    "--executor-aot-unpacked-api",
    "--input-shapes",
    "--module-name",
    "--output-format",
    "--pass-config",
    "--runtime",
];

fn hold(faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn pages() -> Vec<Page> {
    let pages = book::pages().unwrap();
    assert!(pages.len() > 30);
    pages
}

#[test]
fn no_command_is_passed_over() {
    hold(pages().iter().flat_map(book::faults_of_marks));
}

#[test]
fn what_is_left_to_ci_is_in_its_script() {
    let script = std::fs::read_to_string(paths::repository().join(".ci/run")).unwrap();
    hold(pages().iter().flat_map(|page| book::missing_from_ci(page, &script)));
}

#[test]
fn options_exist() {
    let options = Options::of_mlc();
    hold(pages().iter().flat_map(|page| book::unknown_options(page, &options, OTHERS)));
}

#[test]
fn links_lead_somewhere() {
    hold(book::dead_links(&paths::repository(), &pages()));
}

#[test]
fn every_page_is_a_chapter_of_the_book() {
    hold(book::missing_chapters("docs/SUMMARY.md", &pages()));
}
