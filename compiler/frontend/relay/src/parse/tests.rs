use super::*;
use crate::syntax::Type;

fn fault(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// A text whose `@main` has this body.
fn body(body: &str) -> String {
    format!("def @main(%x: Tensor[(2), float32]) {{\n  {body}\n}}")
}

#[test]
fn faults_have_lines_and_columns() {
    for (text, expected) in [
        (
            "define @main",
            "error[MLC0101]: `define` found, `def`, `#[metadata]` or the end of the text expected (line 1:1)",
        ),
        ("#[version = \"1\"]", "error[MLC0101]: the version is \"1\", \"0.0.5\" expected (line 1:13)"),
        ("def main", "error[MLC0101]: `main` found, `@` and a name expected (line 1:5)"),
        (
            "def @main(%x: Tensor[(2), float33]) { %x }",
            "error[MLC0101]: the data type float33 isn't supported (line 1:27)",
        ),
        ("def @f() { () }\ndef @f() { () }", "error[MLC0101]: @f is defined twice (line 2:5)"),
        ("/* a /* b */", "error[MLC0101]: the comment has no end (line 1:1)"),
        (&body("nn.relu(%x"), "error[MLC0101]: `}` found, `)` expected (line 3:1)"),
        (&body("nn.relu"), "error[MLC0101]: `nn.relu` found, an expression expected (line 2:3)"),
        (&body("%0 = %x"), "error[MLC0101]: `}` found, `;` expected (line 3:1)"),
        (&body("nn.relu(%x, axis=)"), "error[MLC0101]: `)` found, the value of an attribute expected (line 2:20)"),
        (&body("nn.relu(%x, axis=\"a)"), "error[MLC0101]: the string has no end (line 2:20)"),
        (&body("%x + 300i8"), "error[MLC0101]: `300i8` isn't a number, or out of its type's range (line 2:8)"),
        (&body("%x(axis=1)"), "error[MLC0101]: a call of a function has no attributes (line 2:6)"),
        (&body("%99999999999"), "error[MLC0101]: the number of the value is too large (line 2:3)"),
        (&body("%x ~ %x"), "error[MLC0101]: the character '~' has no meaning here (line 2:6)"),
        (
            &body("f(%x, a=99999999999999999999)"),
            "error[MLC0101]: 99999999999999999999 doesn't fit in 64 bits (line 2:11)",
        ),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn every_prefix_is_refused_or_read() {
    let text = "#[version = \"0.0.5\"]\n/* /* c */ */ def @f(%a.b/c:0: (int32, bool), k=[1, [\"\\u{2a}\"]]) -> int32 { let %y: \
                int32 = if (%a.b/c:0.1) { 1 } else { -2i64 }; %0 = fn (%z) { %z * 2f + inff }; %0((%y,)) }\n#[metadata]\n{}";
    assert!(parse(text).is_ok(), "{}", fault(text));
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        if let Err(error) = parse(&text[..end]) {
            assert!(error.location.line.is_some() && error.location.column.is_some());
        }
    }
}

#[test]
fn operators_bind_as_strongly_as_they_should() {
    let text = body("%x + %x * %x - %x < %x");
    let module = parse(&text).unwrap();
    let names: Vec<&str> = module
        .expressions
        .iter()
        .filter_map(|expression| match expression.kind {
            ExpressionKind::Operator(name, ..) => Some(name),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["multiply", "add", "subtract", "less"]);
}

#[test]
fn names_keep_what_importers_left_in_them() {
    let text = "def @main(%serving_default_input_1:0: Tensor[(1, ?), uint8], %a/b-c.w: bool, %layer.0: int8) { (%a/b-c.w, %layer.0) }";
    let module = parse(text).unwrap();
    let parameters = &module.functions[0].parameters;
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["serving_default_input_1:0", "a/b-c.w", "layer.0"]);
    assert_eq!(parameters[0].ty, Some(Type::Tensor(DType::U8, vec![Some(1), None])));
}

#[test]
fn deep_texts_are_refused() {
    for (open, close) in [("(", ")"), ("nn.relu(", ")"), ("if (", ")"), ("fn () { ", "}")] {
        let text = body(&format!("{}%x{}", open.repeat(100_000), close.repeat(100_000)));
        assert!(fault(&text).contains("nests deeper than"), "{open}");
    }
    let chain = body(&format!("%x{}", " + %x".repeat(100_000)));
    assert!(fault(&chain).contains("nests deeper than"));
    let list = body(&format!("f(%x, a={}", "[".repeat(100_000)));
    assert!(fault(&list).contains("nests deeper than"));
    let ty = format!("def @f(%x: {}", "(".repeat(100_000));
    assert!(fault(&ty).contains("nests deeper than"));
}
