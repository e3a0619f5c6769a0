use super::*;
use crate::source::Sources;

fn read(text: &str) -> Result<Document, String> {
    read_all(&[text]).map(|mut documents| documents.remove(0))
}

fn read_all(texts: &[&str]) -> Result<Vec<Document>, String> {
    let (mut sources, mut reader, mut problems) = (Sources::default(), Reader::default(), Problems::default());
    let mut documents = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let file = sources.add(&number.to_string(), text.as_bytes());
        documents.extend(reader.read(file, text.as_bytes(), &mut problems));
    }
    let messages: Vec<String> = problems.into_diagnostics(&sources).iter().map(ToString::to_string).collect();
    if messages.is_empty() { Ok(documents) } else { Err(messages.join("\n")) }
}

/// A tree in one line.
fn show(tree: &Tree) -> String {
    match &tree.kind {
        Kind::Number(number) => number.to_string(),
        Kind::Text(text) => format!("{:?}", text.as_str()),
        Kind::List(list) => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(" ")),
        Kind::Object(members) => {
            let member = |member: &Member| format!("{}={}", member.name, show(&member.value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(" "))
        }
        other => other.describe().to_owned(),
    }
}

fn json(text: &str) -> String {
    match read(text) {
        Ok(Document::Json(tree)) => show(&tree),
        Ok(Document::Objects(_)) => "objects".into(),
        Err(message) => message,
    }
}

fn objects(texts: &[&str]) -> String {
    match read_all(texts) {
        Ok(documents) => {
            let mut lines = Vec::new();
            for document in documents {
                let Document::Objects(objects) = document else { return "JSON".into() };
                lines.extend(objects.iter().map(|(name, tree)| format!("{name} {}", show(tree))));
            }
            lines.join("\n")
        }
        Err(message) => message,
    }
}

#[test]
fn strict_and_relaxed_json_are_read() {
    assert_eq!(
        json(r#"{"a": [1, -2.5e1, true, null, "x\n\"\u00e4\ud83d\ude00\/"]}"#),
        r#"{a=[1 -25 true null "x\n\"ä😀/"]}"#
    );
    assert_eq!(json("// c\n{\"a\": [1,\n], # d\n \"url\": \"http://x\",}"), r#"{a=[1] url="http://x"}"#);
    assert_eq!(json("{\"run\": '''\nint a;\n\tb(\"\\n\");\n''',\n}"), "{run=\"int a;\\n\\tb(\\\"\\\\n\\\");\"}");
    assert_eq!(json("{\"run\": '''\n'''}"), "error[MLC0101]: unmatched triple quotes (''') (syntax) (0:1:9)");
    assert_eq!(json("{\"run\": '''\r\na\r\n''' ,\r\n}"), "{run=\"a\"}");
}

#[test]
fn breaks_of_json_are_placed() {
    for (text, message) in [
        ("", "the file holds no description (syntax) (0:1:1)"),
        ("{\"a\" 1}", "`:` expected, `1}` found (syntax) (0:1:6)"),
        ("{\"a\": 1 \"b\": 2}", "`,` or `}` expected, `\"b\": 2}` found (syntax) (0:1:9)"),
        ("{\"a\":\n01}", "a number expected, `01}` found (syntax) (0:2:1)"),
        ("{\"a\": \"x\n\"}", "the string isn't closed on its line (syntax) (0:1:7)"),
        ("{\"a\": 1}}", "the end of the file expected, `}` found (syntax) (0:1:9)"),
        ("{\"a\": 1, \"a\": 2}", "the key 'a' is there twice (duplicate-name) (0:1:10)"),
        ("{\"a\": yes}", "a value expected, `yes}` found (syntax) (0:1:7)"),
        ("{\"a\": \"\\ud800\"}", "the escape \\uXXXX has four hexadecimal digits and names a letter (syntax) (0:1:8)"),
    ] {
        assert!(json(text).ends_with(message), "{text:?}: {}", json(text));
    }
    let large = " ".repeat((4 << 20) + 1);
    assert!(json(&large).contains("a description has at most 4 MiB, this file has 4194305 bytes"));
    let deep = "[".repeat(1 << 20);
    assert!(json(&deep).contains("nested more than 64 deep"));
}

#[test]
fn the_op_grammar_has_three_kinds_of_strings() {
    let text =
        "a { s: \"x\ny\\q\\n\", r: 'it\\'s // raw\\n', m: `l1\n\\`l2`, n: [.5, 5., +3, -1e2,], t: true, z: null, }\n,";
    let expected = r#"a {s="x\nyq\n" r="it\\'s // raw\\n" m="l1\n\\`l2" n=[0.5 5 3 -100] t=1 z=0}"#;
    assert_eq!(objects(&[text]), expected);
    assert!(objects(&["a { } , b { }"]).contains("objects aren't separated by commas"));
    assert!(objects(&["a { x: `y }"]).contains("the string isn't closed"));
}

#[test]
fn objects_inherit_by_merging() {
    let base = "base { o: {p: 1, q: 2}, l: [1, {x: 1}, 3], gone: 5, kept: 6 }";
    let heir = "heir : base { o: {q: 3, r: 4}, l: [-, {y: 2}, 7, {z: -, w: 1}], gone: -, new: [-, 1] }";
    let expected = "heir {o={p=1 q=3 r=4} l=[{x=1 y=2} 7 {w=1}] kept=6 new=[1]}";
    assert!(objects(&[&format!("{base}\n{heir}")]).ends_with(expected), "{}", objects(&[&format!("{base}\n{heir}")]));
    // All files share one table.
    assert!(objects(&[base, heir]).ends_with(expected));
    assert!(objects(&[heir, base]).contains("'heir' inherits from 'base', which isn't defined before it"));
    assert!(objects(&["a { } a { }"]).contains("the object 'a' is defined twice (duplicate-name) (0:1:7, a)"));
    // The heirs of what couldn't be made are silent.
    assert_eq!(objects(&["a : x { } b : a { }"]).lines().count(), 1);
}

#[test]
fn chains_of_large_objects_are_refused() {
    let mut text = format!("a0 {{ run: `{}` }}\n", "x".repeat(1 << 20));
    for number in 1..100 {
        text += &format!("a{number} : a{} {{ }}\n", number - 1);
    }
    assert!(objects(&[&text]).contains("inherit more text"));
}

#[test]
fn bytes_of_strings_know_their_places() {
    let text = "{\"s\": \"a\\n\\u00e4b\", \"l\": '''\nxy\nz\n'''\n}";
    let Ok(Document::Json(Tree { kind: Kind::Object(members), .. })) = read(text) else { panic!() };
    let place = |member: usize, offset| match &members[member].value.kind {
        Kind::Text(text) => text.place(offset).offset,
        _ => panic!(),
    };
    assert_eq!([place(0, 0), place(0, 1), place(0, 2), place(0, 4), place(0, 5)], [7, 8, 10, 16, 17]);
    assert_eq!([place(1, 0), place(1, 2), place(1, 3)], [29, 31, 32]);
    let Kind::Text(lines) = &members[1].value.kind else { panic!() };
    assert_eq!((lines.line(0), lines.line(3), lines.lines()), (1, 2, 2));
}
