//! Tests written as text: a header, a graph in the text form, and what must come of it.
//!
//! ```text
//! // run: optimize fusion
//! // about: a relu becomes the epilogue of its convolution
//!
//! mlc 1
//! graph …
//! // ==>
//! // what must come of it, each line after "// "
//! ```
//!
//! The graph must be formatted: written as it prints, but for random constants. `MLC_BLESS=1` formats the graphs and rewrites
//! the expectations. It can't bless a wrong transformation: whatever the mode produces is evaluated,
//! or compiled and run, on seeded inputs, and must agree with the evaluator on the graph as written.

mod modes;
mod values;

pub use modes::Mode;

use crate::paths;
use mlc_codegen::FloatingPoint;
use std::path::{Path, PathBuf};

/// A test's file, taken apart.
#[derive(Debug, Clone)]
pub struct FileTest {
    /// The file.
    pub path: PathBuf,
    /// What to do.
    pub mode: Mode,
    header: String,
    input: String,
    expected: String,
}

const SEPARATOR: &str = "// ==>";

impl FileTest {
    /// Takes a test apart.
    ///
    /// # Errors
    /// A sentence about what its header lacks.
    pub fn parse(path: &Path, text: &str) -> Result<FileTest, String> {
        let header_lines = text.lines().take_while(|line| line.starts_with("//")).count();
        let header: String = text.lines().take(header_lines).map(|line| format!("{line}\n")).collect();
        let field = |name: &str| {
            let prefix = format!("// {name}:");
            header.lines().find_map(|line| line.strip_prefix(&prefix)).map(|value| value.trim().to_owned())
        };
        let run = field("run").ok_or("the header has no line `// run: MODE`")?;
        field("about").filter(|about| !about.is_empty()).ok_or("the header has no line `// about: TEXT`")?;
        let mode = match run.split_whitespace().collect::<Vec<_>>()[..] {
            ["roundtrip"] => Mode::Roundtrip,
            ["verify"] => Mode::Verify,
            ["optimize"] => Mode::Optimize(None),
            ["optimize", stage] => Mode::Optimize(Some(stage.to_owned())),
            ["emit"] => Mode::Emit(FloatingPoint::Fast, None),
            ["emit", "strict"] => Mode::Emit(FloatingPoint::Strict, None),
            ["emit", machine] => Mode::Emit(FloatingPoint::Fast, Some(machine.to_owned())),
            ["run"] => Mode::Run(FloatingPoint::Fast),
            ["run", "strict"] => Mode::Run(FloatingPoint::Strict),
            _ => return Err(format!("there is no mode `{run}`")),
        };
        let body: Vec<&str> = text.lines().skip(header_lines).collect();
        let separator = body.iter().position(|line| *line == SEPARATOR).unwrap_or(body.len());
        let input = body[..separator].join("\n").trim_matches('\n').to_owned() + "\n";
        let expected = body.iter().skip(separator + 1);
        let expected: Vec<&str> =
            expected.map(|line| line.strip_prefix("// ").or(line.strip_prefix("//")).unwrap_or(line)).collect();
        Ok(FileTest { path: path.to_path_buf(), mode, header, input, expected: join(&expected) })
    }

    /// The file's text with another graph and expectation.
    fn written(&self, input: &str, actual: &str) -> String {
        let mut text = format!("{}\n{input}", self.header);
        if !actual.is_empty() {
            text += SEPARATOR;
            text.push('\n');
            for line in actual.lines() {
                text += format!("// {line}").trim_end();
                text.push('\n');
            }
        }
        text
    }

    /// Runs the test; with `MLC_BLESS=1` its expectation becomes what came out.
    ///
    /// # Errors
    /// What is wrong, with the first line that differs.
    pub fn check(&self) -> Result<(), String> {
        let input = if self.mode == Mode::Verify { self.input.clone() } else { modes::formatted(&self.input)? };
        if input != self.input {
            if !paths::bless() {
                return Err(format!("the graph isn't formatted: {}", difference(&input, &self.input)));
            }
            let text = self.written(&input, &self.expected);
            std::fs::write(&self.path, text).map_err(|error| error.to_string())?;
        }
        let actual = modes::run(&self.mode, &self.input)?;
        let actual = join(&actual.lines().map(str::trim_end).collect::<Vec<_>>());
        if actual == self.expected {
            return Ok(());
        }
        if paths::bless() {
            return std::fs::write(&self.path, self.written(&input, &actual)).map_err(|error| error.to_string());
        }
        Err(difference(&self.expected, &actual))
    }
}

fn join(lines: &[&str]) -> String {
    let text = lines.join("\n").trim_end().to_owned();
    if text.is_empty() { text } else { text + "\n" }
}

/// Where two texts part, in words.
fn difference(expected: &str, actual: &str) -> String {
    let (mut left, mut right) = (expected.lines(), actual.lines());
    let mut number = 1;
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => number += 1,
            (a, b) => {
                let show = |line: Option<&str>| line.map_or("(the end)".to_owned(), |line| format!("`{line}`"));
                return format!("line {number} of the expectation: {} expected, {} found", show(a), show(b));
            }
        }
    }
}

/// Every `.mlc` file under a folder, sorted.
///
/// # Errors
/// When a folder can't be listed.
pub fn collect(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(collect(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "mlc") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// run: optimize fusion\n// about: it fuses\n\nmlc 1\nbody\n// ==>\n// one\n//\n// two\n";

    #[test]
    fn a_file_is_taken_apart_and_put_together() {
        let test = FileTest::parse(Path::new("x.mlc"), TEXT).unwrap();
        assert_eq!(test.mode, Mode::Optimize(Some("fusion".into())));
        assert_eq!(test.input, "mlc 1\nbody\n");
        assert_eq!(test.expected, "one\n\ntwo\n");
        assert_eq!(test.written(&test.input, &test.expected), TEXT);
    }

    #[test]
    fn a_test_says_what_it_is_about() {
        assert!(FileTest::parse(Path::new("x.mlc"), "// run: emit\n\nmlc 1\n").unwrap_err().contains("about"));
        assert!(FileTest::parse(Path::new("x.mlc"), "// run: bake\n// about: x\n").unwrap_err().contains("bake"));
    }

    #[test]
    fn a_difference_names_its_line() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), "line 2 of the expectation: `b` expected, `c` found");
        assert_eq!(difference("a\n", "a\nc\n"), "line 2 of the expectation: (the end) expected, `c` found");
    }
}
