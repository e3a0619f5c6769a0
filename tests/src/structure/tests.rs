use super::{MOST_LINES, Sources, circles, imports, long_files};

fn sources(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|&(file, text)| (format!("crate/src/{file}"), text.to_owned())).collect()
}

/// The first lines of the circles of a crate, without its folder.
fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let circles = circles(&imports(&sources(files)).unwrap());
    let lines = |text: &String| {
        let lines = text.lines().filter(|line| line.contains(" -> "));
        lines.map(|line| line.trim().replace("crate/src/", "")).collect()
    };
    circles.iter().map(lines).collect()
}

#[test]
fn a_circle_of_two_is_spelled_out() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::{B, C}; pub struct A;"),
        ("b.rs", "pub struct B; pub struct C; fn f() { crate::a::A; }"),
    ];
    assert_eq!(found(&files), [["a.rs -> b.rs: B, C", "b.rs -> a.rs: A"]]);
}

#[test]
fn a_circle_of_three_is_spelled_out_and_others_in_it_are_named() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
        ("a.rs", "use super::b::B; pub struct A;"),
        ("b.rs", "use super::c; pub struct B; fn f() -> c::C { c::C }"),
        ("c.rs", "use crate::a::A; use crate::d::D; pub struct C;"),
        ("d.rs", "use crate::c::C; pub struct D;"),
        ("e.rs", "use crate::a::A;"),
    ];
    assert_eq!(found(&files), [["a.rs -> b.rs: B", "b.rs -> c.rs: C", "c.rs -> a.rs: A"]]);
    let text = circles(&imports(&sources(&files)).unwrap()).concat();
    assert!(text.starts_with("4 files") && text.contains("c.rs, crate/src/d.rs") && !text.contains("e.rs"), "{text}");
}

#[test]
fn a_re_export_leads_to_the_file_that_defines() {
    let parent = "mod a; mod b; pub use a::*; pub use b::{inner::B as Renamed};";
    let files = [
        ("lib.rs", "pub mod parent; pub use parent::Renamed;"),
        ("parent/mod.rs", parent),
        ("parent/a.rs", "use crate::Renamed; pub struct A;"),
        ("parent/b.rs", "use super::A; pub mod inner { pub struct B; }"),
    ];
    assert_eq!(found(&files), [["parent/a.rs -> parent/b.rs: Renamed", "parent/b.rs -> parent/a.rs: A"]]);
}

#[test]
fn a_parent_that_uses_its_child_and_a_child_that_uses_its_parent_are_a_circle() {
    let circle = ["parent.rs -> parent/child.rs: help", "parent/child.rs -> parent.rs: Parent"];
    for child in ["use super::Parent; pub fn help(){}", "pub fn help() -> super::Parent { crate::parent::Parent }"] {
        for call in ["child::help()", "self::child::help()", "helps()"] {
            let parent = format!("mod child; use child::help as helps; pub struct Parent; fn f() {{ {call}; }}");
            let files = [("lib.rs", "mod parent;"), ("parent.rs", parent.as_str()), ("parent/child.rs", child)];
            let lines = found(&files).concat();
            assert!(lines[0].starts_with(circle[0]) && lines[1] == circle[1], "{call}: {lines:?}");
        }
    }
    let parent = "mod child; pub use child::help; pub struct Parent;";
    let child = "use super::Parent; pub fn help(){}";
    let files = |parent| [("lib.rs", "mod parent;"), ("parent.rs", parent), ("parent/child.rs", child)];
    assert_eq!(found(&files(parent)), [[""; 0]; 0], "declared and handed on, but not used");
    let used = format!("{parent} fn f() {{ help(); }}");
    assert_eq!(found(&files(&used)), [circle]);
}

#[test]
fn macros_attributes_named_files_and_inner_scopes_are_seen() {
    for import in [
        "fn f() { println!(\"{}\", crate::b::B); }",
        "fn f() { use crate::b::B; }",
        "mod inner { use super::super::b::B; }",
        "#[serde(with = crate::b::B)] struct S;",
        "macro_rules! m { () => { $crate::b::B } }",
        "use super::*; fn f() { B; } ",
    ] {
        let a = format!("{import} pub struct A;");
        let files =
            [("lib.rs", "mod a; mod b; pub use b::B;"), ("a.rs", &a), ("b.rs", "use crate::a::A; pub struct B;")];
        assert_eq!(found(&files), [["a.rs -> b.rs: B", "b.rs -> a.rs: A"]], "{import}");
    }
    let files = [
        ("lib.rs", "mod inner; mod b;"),
        ("inner/mod.rs", "#[path = \"../other/file.rs\"] mod named;"),
        ("other/file.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::inner::named::A; pub struct B;"),
    ];
    assert_eq!(found(&files), [["b.rs -> other/file.rs: A", "other/file.rs -> b.rs: B"]]);
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "#[macro_export] macro_rules! shared { () => {} } use crate::b::B;"),
        ("b.rs", "pub struct B; crate::shared!();"),
    ];
    assert_eq!(found(&files), [["a.rs -> b.rs: B", "b.rs -> a.rs: shared"]]);
}

#[test]
fn modules_that_a_macro_declares_are_seen() {
    let list = "macro_rules! set { ($($m:ident)+) => { $(mod $m; pub use $m::*;)+ } } set! { a b }";
    let files = [
        ("lib.rs", "mod list;"),
        ("list/mod.rs", list),
        ("list/a.rs", "use super::B; pub struct A;"),
        ("list/b.rs", "use crate::list::A; pub struct B;"),
    ];
    assert_eq!(found(&files), [["list/a.rs -> list/b.rs: B", "list/b.rs -> list/a.rs: A"]]);
}

#[test]
fn tests_names_of_others_and_mentions_are_no_imports() {
    let b = "use crate::a::A; pub struct B; pub fn name() {}";
    for harmless in [
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] mod tests;",
        "#[cfg(test)] use crate::b::B;",
        "#[cfg(test)] fn f() { crate::b::B; }",
        "/// See [`crate::b::B`].",
        "const TEXT: &str = \"crate::b::B\";",
        "use crate::b;",
        "use crate::*; struct S { name: u8 } fn f(s: S) { s.name; s.name(); let name = 0; S { name: 1 }; T::name(); }",
        "use elsewhere::b::B;",
    ] {
        let a = format!("{harmless} pub struct A;");
        let lib = "mod a; mod b; pub use b::name;";
        let files = [("lib.rs", lib), ("a.rs", &a), ("b.rs", b), ("a/tests.rs", "use crate::b::B;")];
        let files = if harmless.ends_with("tests;") { &files[..] } else { &files[..3] };
        assert_eq!(found(files), [[""; 0]; 0], "{harmless}");
    }
}

#[test]
fn a_function_and_a_module_of_one_name_are_told_apart() {
    let files = |call| {
        [
            ("lib.rs", "mod a; mod fold;"),
            ("a.rs", call),
            ("fold/mod.rs", "mod other; pub use other::fold; pub struct Fold;"),
            ("fold/other.rs", "use crate::a::A; pub fn fold() {}"),
        ]
    };
    let module = "use crate::fold; pub struct A; fn f() { fold::Fold; }";
    assert_eq!(found(&files(module)), [[""; 0]; 0]);
    let function = "use crate::fold::{self, fold}; pub struct A; fn f() { fold(); }";
    assert_eq!(found(&files(function)), [["a.rs -> fold/other.rs: fold", "fold/other.rs -> a.rs: A"]]);
}

#[test]
fn a_file_that_would_stay_unseen_is_an_error() {
    let files = [("lib.rs", "mod a;"), ("a.rs", ""), ("forgotten.rs", "")];
    assert_eq!(imports(&sources(&files)).unwrap_err(), "crate/src/forgotten.rs is in no crate");
    let error = imports(&sources(&[("lib.rs", "mod a;")])).unwrap_err();
    assert!(error.contains("declares the module a"), "{error}");
    assert!(imports(&sources(&[("lib.rs", "fn f( {")])).is_err());
}

#[test]
fn long_files_are_found() {
    let lines = |count: usize| "line\n".repeat(count);
    let (most, more) = (lines(MOST_LINES), lines(MOST_LINES + 1));
    let files = sources(&[("a.rs", &most), ("b.c", &more)]);
    assert_eq!(long_files(&files), [format!("crate/src/b.c: {} lines", MOST_LINES + 1)]);
}
