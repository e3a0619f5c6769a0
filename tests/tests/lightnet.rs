//! Texts of LightNet's intermediate language and the JSON that they stand for give the same graph.

use mlc_ir::text;
use mlc_tests::case::Case;
use mlc_tests::{compile, paths};

#[test]
fn texts_and_their_json_give_the_same_graph() {
    let mut compared = 0;
    for folder in paths::subfolders(&paths::data().join("lightnet")).unwrap() {
        let case = Case::read(&folder).unwrap();
        let Some(written) = case.as_text() else { continue };
        let print = |case: &Case| text::print(&compile::load(case).unwrap().graph);
        assert_eq!(print(&case), print(&written), "{}", case.name);
        compared += 1;
    }
    assert!(compared >= 2, "{compared}");
}
