use super::budget::{MOST_DEPTH, MOST_STEPS};
use super::preprocess;
use crate::includes::{Included, Includes, NoIncludes};
use crate::model::Model;
use crate::write::{Form, write};
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic};
use std::cell::Cell;

/// Files by name; each asks for its own text.
struct Files<'a>(&'a [(&'a str, &'a str)], Cell<usize>);

impl Includes for Files<'_> {
    fn include(&self, name: &str, from: Option<&str>) -> Result<Included, String> {
        self.1.set(self.1.get() + 1);
        let folder =
            from.and_then(|from| from.rsplit_once('/')).map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let name = format!("{folder}{name}");
        let found = self.0.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or("it isn't there")?;
        Ok(Included { name, text: (*text).to_owned() })
    }
}

fn read(text: &str) -> (Model, Vec<Diagnostic>) {
    let mut report = Report::default();
    let model = super::read(text, &NoIncludes, &mut report).unwrap_or_default();
    (model, report.into_diagnostics())
}

/// The words that a text stands for.
fn expanded(text: &str) -> String {
    let mut report = Report::default();
    let tokens = preprocess::preprocess(text, &NoIncludes, &mut report).unwrap();
    let tokens = super::evaluate::evaluate(tokens, &mut report);
    assert!(!report.has_errors(), "{text}: {:?}", report.into_diagnostics());
    let word = |token: &super::token::Token| format!("{}{}", if token.follows_space { " " } else { "" }, token.text);
    tokens.iter().map(word).collect::<String>().trim().to_owned()
}

/// The first error of a text: what and where it is, and the lines of the macros around it.
fn refusal(text: &str) -> (String, Option<u32>, Vec<Option<u32>>) {
    let (_, findings) = read(text);
    let error = findings.into_iter().find(Diagnostic::is_error).unwrap_or_else(|| panic!("{text} is accepted"));
    let lines = error.related.iter().map(|(location, _)| location.line).collect();
    (error.message, error.location.line, lines)
}

#[test]
fn macros_are_those_of_c() {
    for (text, expected) in [
        ("#define A 1\nA B", "1 B"),
        ("#define A B\n#define B A\nA", "A"),
        ("#define f(x) x+f(x)\nf(1)", "1+f(1)"),
        ("#define f(x, y) y x\nf((1, 2), f(3, 4))", "4 3 (1, 2)"),
        ("#define f(x) x\nf f (1)\nf", "f 1 f"),
        ("#define f(x) x\n#define g f\ng(2) g\n(3)", "2 3"),
        ("#define p(x, y) x##y\n#define A 7\np(A, A) p(a, ) p(, b) p(, ) c", "AA a b c"),
        ("#define p(x) x ## 1 ## _w\np(c) p(${eval 2}x)", "c1_w 2x1_w"),
        ("#define q(x) #x\nq(a  + \"b\\n\" ) q()", r#""a + \"b\\n\"" """#),
        ("#define A 1\n#define q(x) #x\n#define r(x) q(x)\nq(A) r(A)", r#""A" "1""#),
        ("#define f() z\nf() f( )", "z z"),
        (
            "#define l(...) <__VA_ARGS__>\n#define m(a, ...) a:__VA_ARGS__\nl() l(1,2) m(1) m(1,2,3)",
            "<> <1,2> 1: 1:2,3",
        ),
        ("#define A (1)\n#define f(x) [x]\n#define g f A\ng", "f (1)"),
        ("#define A(x) one\n#undef A\nA(1)", "A(1)"),
        ("a\n__LINE__\n#define L __LINE__\n\nL", "a 2 5"),
        ("a /* b */ c // d\n\\\ne", "a c e"),
        ("#define f(x) \\\n  x \\\n  y // no\nf(1\n,2)", ""),
    ] {
        if expected.is_empty() {
            assert!(refusal(text).0.contains("takes 1 arguments, 2 are given"), "{text}");
        } else {
            assert_eq!(expanded(text), expected, "{text}");
        }
    }
}

#[test]
fn conditions_choose_lines() {
    for (text, expected) in [
        ("#ifdef A\n1\n#else\n2\n#endif\n3", "2 3"),
        ("#define A\n#ifdef A\n1\n#else\n2\n#endif", "1"),
        ("#ifndef A\n1\n#elif 1\n2\n#endif", "1"),
        ("#if 0\n#if 1\n1\n#else\n2\n#endif\n#elif 2 > 1 && !defined(B)\n3\n#elif 1\n4\n#else\n5\n#endif", "3"),
        ("#define N 3\n#if N * 2 == 6 && (defined N) && x == 0\n1\n#endif", "1"),
        ("#if 1 << 4 >= 0x10 | 1\n1\n#endif\n#if -1 < 0 && 7 / 2 % 2 == 1 && ~0 == -1 && 010 == 8u\n2\n#endif", "1 2"),
        ("#if 0\n#error no\n#unknown\n#include \"x\"\n#endif\n#\n#pragma once\n# 7 \"net.il\"\n1", "1"),
    ] {
        assert_eq!(expanded(text), expected, "{text}");
    }
    for (text, words, line) in [
        ("\n#if 1\nx", "no #endif", 2),
        ("#endif", "without an #if", 1),
        ("#if 1\n#else\n#elif 1\n#endif", "behind #else", 3),
        ("#if 1 +\n#endif", "the expression ends", 1),
        ("#if 1 / 0\n#endif", "isn't a number", 1),
        ("#if defined\n#endif", "behind `defined`", 1),
        ("#error on purpose, 1", "#error on purpose, 1", 1),
        ("#foo", "no directive #foo", 1),
    ] {
        let (message, at, _) = refusal(text);
        assert!(message.contains(words) && at == Some(line), "{text}: {message} {at:?}");
    }
}

#[test]
fn expressions_are_computed_as_perl_does() {
    for (expression, expected) in [
        ("2*2", "4"),
        ("5/2", "2.5"),
        ("0.1+0.2", "0.3"),
        ("1/3", "0.333333333333333"),
        ("8*2**-2", "2"),
        ("-2**2", "-4"),
        ("2**3**2", "512"),
        ("(1+2)*-3", "-9"),
        ("-7%3", "2"),
        ("7%-3", "-2"),
        ("10 - 4 - 3", "3"),
        ("int(7/2)+abs(-1)+sqrt(16)", "8"),
        ("int(-7/2)", "-3"),
        ("2 * ${eval 3-5}", "-4"),
        ("1e3", "1000"),
        ("0*-1", "0"),
    ] {
        assert_eq!(expanded(&format!("${{eval {expression}}}")), expected, "{expression}");
    }
    assert_eq!(expanded("#define N 6\n#define half(x) ${eval x/2}\nhalf(N) a_${eval N+1}_b x${eval 2}"), "3 a_7_b x2");
    for (text, words) in [
        ("${eval 1/0}", "isn't a number"),
        ("${eval system(1)}", "there is no function `system`"),
        ("${eval N}", "`N` is no number"),
        ("${eval 1 2}", "an operator"),
        ("${eval}", "the expression ends"),
        ("${eval 010}", "`010` isn't a number"),
        ("${eval sqrt(-1)}", "square root"),
        ("${eval 2**5000}", "isn't a number"),
        ("${exec 1}", "`${eval EXPRESSION}` expected"),
        ("${eval 1", "isn't closed"),
        ("${eval 5/2}x ; a${eval 0.5}", "which isn't one word"),
    ] {
        assert!(refusal(text).0.contains(words), "{text}: {}", refusal(text).0);
    }
}

#[test]
fn statements_become_operators() {
    let text = "conv2d(src=x, weight=w,| dst=y | size=[3, -3.5e-1,], mode=TL_NEAREST, name=\"a;b=\\\"c|\", t=true, l=[false], s=[\"u\", \"v\"], n=null, p=+.5);;\n conv2d(||);foo(|)";
    let (model, findings) = read(text);
    assert_eq!(findings.len(), 1);
    let mut json = Vec::new();
    write(&model, Form::Compact, &mut json).unwrap();
    let json = String::from_utf8(json).unwrap();
    let expected = r#"{"ops":[{"name":"conv2d0","optype":"conv2d","tensors_in":[{"arg_name":"src","name":"x"},{"arg_name":"weight","name":"w"}],"tensors_out":[{"arg_name":"dst","name":"y"}],"params":[{"arg_name":"size","value":[3,-0.35]},{"arg_name":"mode","value":"TL_NEAREST"},{"arg_name":"name","value":"a;b=\\\"c|"},{"arg_name":"t","value":true},{"arg_name":"l","value":[false]},{"arg_name":"s","value":["u","v"]},{"arg_name":"n","value":null},{"arg_name":"p","value":0.5}]},{"name":"conv2d1","optype":"conv2d","tensors_in":[],"tensors_out":[],"params":[]}]}"#;
    assert_eq!(json, expected);
    let (model, _) = read(&format!("{} f1(||);", "f(||);".repeat(11)));
    let names: Vec<&str> = model.operators.iter().map(|operator| operator.name.as_str()).collect();
    assert_eq!(&names[9..], ["f9", "f10", "f10_0"]);
}

#[test]
fn every_statement_that_is_wrong_is_reported_with_its_place() {
    let text = "relu(src=a, dst=b |);\nrelu(src=1||);\n\n  x(||a=[]);\nx(||a=[1,true]);\nx(||a=b c);\nx(||a=-b);\nx(||a=1e999);\nx(||) y";
    let (_, findings) = read(text);
    let found: Vec<(u32, u32, &str)> = findings
        .iter()
        .map(|finding| (finding.location.line.unwrap(), finding.location.column.unwrap(), finding.message.as_str()))
        .collect();
    let expected = [
        (1, 20, "the second of the two `|`"),
        (2, 10, "the name of a tensor expected, `1` found"),
        (4, 10, "`]` found"),
        (5, 10, "a value of the same kind as the list's first expected, `true` found"),
        (6, 9, "`,` or `)` expected, `c` found"),
        (7, 8, "a number expected, `b` found"),
        (8, 7, "beyond what a double holds"),
        (9, 7, "`;` expected, `y` found"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            found.0 == expected.0 && found.1 == expected.1 && found.2.contains(expected.2),
            "{found:?} {expected:?}"
        );
        assert!(found.2.starts_with(&format!("in the statement of line {}", expected.0)), "{found:?}");
    }
}

#[test]
fn faults_name_the_macros_around_them() {
    let text = "#define inner(x) relu(src=x, dst=x_ |)\n#define outer(x) \\\n  inner(x); \\\n  inner(x)\n\nouter(a);";
    let (message, line, macros) = refusal(text);
    assert!(message.contains("the second of the two `|`"), "{message}");
    assert_eq!((line, macros), (Some(1), vec![Some(3), Some(6)]));
    let (message, line, macros) = refusal("#define two(a, b) a b\n#define one(x) two(x)\n\none(1)");
    assert_eq!((message.as_str(), line), ("the macro `two` takes 2 arguments, 1 are given", Some(2)));
    assert_eq!(macros, [Some(4), Some(1)]);
    for (text, words) in [
        ("#define f(x) x\nf(1", "aren't closed"),
        ("#define p(x) x##=\np(a)", "doesn't give one word"),
        ("#define p ##a\n", "must stand between them"),
        ("#define p(x) #y\n", "before an argument"),
        ("#define p(x, x)\n", "that is new"),
        ("#define p(x\n", "isn't closed"),
        ("#define 1\n", "the name of a macro expected"),
        ("#define defined\n", "has a meaning of its own"),
        ("#undef\n", "the name of a macro expected"),
    ] {
        assert!(refusal(text).0.contains(words), "{text}: {}", refusal(text).0);
    }
    let (_, findings) = read("#define A 1\n#define A 1\n#define A 2\n");
    let found: Vec<(bool, Code, Option<u32>)> =
        findings.iter().map(|finding| (finding.is_error(), finding.code, finding.location.line)).collect();
    assert_eq!(found, [(false, Code::DuplicateDefinition, Some(3))]);
}

#[test]
fn files_include_others_of_their_folder() {
    let files = [("a/b.il", "#include \"c.il\"\nB"), ("a/c.il", "#define B relu(|| \nB"), ("d.il", "relu(src)")];
    let files = Files(&files, Cell::new(0));
    let mut report = Report::default();
    let tokens = preprocess::preprocess("#include \"a/b.il\"\n#include \"none\"\n#include <x>\nB", &files, &mut report);
    let places: Vec<(Option<String>, u32)> = tokens
        .unwrap()
        .iter()
        .filter(|token| token.is_name("relu"))
        .map(|token| (token.spot.file.as_deref().map(str::to_owned), token.spot.line))
        .collect();
    let own = (Some("a/c.il".to_owned()), 1);
    assert_eq!(places, [own.clone(), own.clone(), own]);
    let found: Vec<(Code, Option<u32>)> =
        report.into_diagnostics().iter().map(|finding| (finding.code, finding.location.line)).collect();
    assert_eq!(found, [(Code::FileUnreadable, Some(2)), (Code::Syntax, Some(3))]);
    let mut report = Report::default();
    super::read("#include \"d.il\"", &files, &mut report);
    let finding = &report.into_diagnostics()[0];
    assert_eq!((finding.location.file.as_deref(), finding.location.line), (Some("d.il"), Some(1)));
}

/// A text that doubles what the one before it stands for, many times over.
fn doubling(define: impl Fn(usize) -> String, last: &str) -> String {
    (0..60).map(define).collect::<String>() + last
}

#[test]
fn hostile_texts_end_after_a_bounded_number_of_steps() {
    let deep = "(".repeat(100_000);
    let texts = [
        doubling(|n| format!("#define a{} a{n} a{n}\n", n + 1), "a60"),
        doubling(|n| format!("#define f{}(x) f{n}(x x)\n", n + 1), "f60(y)"),
        doubling(|n| format!("#define f{}(x) f{n}(f{n}(x))\n", n + 1), "#define f0(x) x x\nf60(y)"),
        doubling(|n| format!("#define p{}(x) p{n}(x##x)\n", n + 1), "p60(abcdefgh)"),
        doubling(|n| format!("#define q{}(x) q{n}(#x)\n", n + 1), "q60(\"\\\")"),
        format!("#define f(x) [x]\n{}1{}", "f(".repeat(10_000), ")".repeat(10_000)),
        format!("${{eval {deep}"),
        format!("{}1", "${eval ".repeat(100_000)),
        format!("${{eval {}1}}", "-".repeat(100_000)),
        format!("#if {deep}\n#endif"),
        format!("#define f(x) x\nf({deep}"),
        (0..200).map(|n| format!("#define m{} m{n}\n", n + 1)).collect::<String>() + "m200",
        "#if 1\n".repeat(100_000),
        "x(||a=".to_owned() + &"[".repeat(100_000),
        "#define f(x, y) x##y\n".to_owned() + &"f(a, ".repeat(1000),
    ];
    for text in &texts {
        let mut report = Report::default();
        let steps = preprocess::steps(text, &NoIncludes, &mut report);
        assert!(steps <= MOST_STEPS, "{}", &text[..60]);
        let (_, findings) = read(text);
        assert!(findings.iter().any(Diagnostic::is_error), "{} is accepted", &text[..60]);
        assert!(
            findings.len() <= 100
                && findings
                    .iter()
                    .all(|finding| finding.message.len() < 1000 && finding.related.len() <= MOST_DEPTH + 1),
            "{}",
            &text[..60]
        );
    }
}

#[test]
fn endless_includes_end() {
    for (text, most) in [("#include \"a\"\n", MOST_DEPTH), ("#include \"a\"\n#include \"a\"\n", 1000)] {
        let files = [("a", text)];
        let files = Files(&files, Cell::new(0));
        let mut report = Report::default();
        super::read(text, &files, &mut report);
        assert!(report.has_errors() && files.1.get() <= most, "{}", files.1.get());
    }
    let large = "x ".repeat(1 << 20);
    let files = [("a", large.as_str())];
    let files = Files(&files, Cell::new(0));
    let mut report = Report::default();
    super::read(&"#include \"a\"\n".repeat(9), &files, &mut report);
    assert!(files.1.get() <= 2, "{}", files.1.get());
    assert!(report.into_diagnostics().iter().any(|finding| finding.code == Code::NumberOutOfRange));
}
