//! Diagnostics as text for people, in the style of rustc, or as JSON for programs.

use bytes::Bytes;
use clap::ValueEnum;
use indexmap::IndexMap;
use mlc_ir::{Diagnostic, Location, Severity};
use std::fmt::Write;

/// How diagnostics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum MessageFormat {
    /// For people: message, place, the line of a text file, notes, help
    #[default]
    Human,
    /// For programs: one JSON object per line
    Json,
}

/// Text files that diagnostics may point into, by the names that locations use.
pub type Sources = IndexMap<String, Bytes>;

/// Most columns of a source line that are shown.
const EXCERPT_COLUMNS: usize = 100;

/// Most bytes of a source line that are looked at on each side of a column: those of so many letters.
const MOST_BYTES: usize = 4 * EXCERPT_COLUMNS;

/// Renders one diagnostic for people; ends in a line feed.
pub fn human(diagnostic: &Diagnostic, sources: &Sources, color: bool) -> String {
    let style = Style { color };
    let severity = diagnostic.severity;
    let title = style.paint(severity_color(severity), &format!("{severity}[{}]", diagnostic.code));
    let mut text = format!("{title}{}\n", style.paint("1", &format!(": {}", printable(&diagnostic.message))));
    push_place(&mut text, &style, &diagnostic.location, "-->", sources);
    for (location, message) in &diagnostic.related {
        push_place(&mut text, &style, location, ":::", sources);
        let _ = writeln!(text, "   {} {}", style.paint("1;34", "= note:"), indent(message));
    }
    for note in &diagnostic.notes {
        let _ = writeln!(text, "   {} {}", style.paint("1;34", "= note:"), indent(note));
    }
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(text, "   {} {}", style.paint("1;34", "= help:"), indent(help));
    }
    text
}

/// Renders one diagnostic for programs: a JSON object on one line.
pub fn json(diagnostic: &Diagnostic) -> String {
    // Strings and numbers only: writing them to memory can't fail.
    serde_json::to_string(diagnostic).unwrap_or_default() + "\n"
}

/// `error: 3 errors, 1 warning`, for the end of a failed run.
pub fn summary(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let mut parts = Vec::new();
    for (severity, word) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
        match count(severity) {
            0 => {}
            1 => parts.push(format!("1 {word}")),
            number => parts.push(format!("{number} {word}s")),
        }
    }
    parts.join(", ")
}

struct Style {
    color: bool,
}

impl Style {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn severity_color(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Note => "1;36",
    }
}

/// Text from a file, without the control characters that could change what a terminal shows.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// A note of several lines, aligned below its first.
fn indent(text: &str) -> String {
    printable(text).trim_end().replace('\n', "\n           ")
}

fn push_place(text: &mut String, style: &Style, location: &Location, arrow: &str, sources: &Sources) {
    let place = location.to_string();
    if place.is_empty() {
        return;
    }
    let line = location.line.and_then(|_| source_line(location, sources));
    let width = location.line.filter(|_| line.is_some()).map_or(2, |line| line.to_string().len().max(2));
    let _ = writeln!(text, "{:width$}{} {}", "", style.paint("1;34", arrow), printable(&place));
    if let (Some(line), Some(number)) = (line, location.line) {
        push_excerpt(text, style, &line, number, width);
    }
}

/// A source line, or as much of it around the column as could be shown.
struct Line {
    text: String,
    /// The column within the text.
    column: Option<u32>,
    cut_before: bool,
    cut_after: bool,
}

fn source_line(location: &Location, sources: &Sources) -> Option<Line> {
    let bytes = sources.get(location.file.as_deref()?)?;
    let number = usize::try_from(location.line?).ok()?.checked_sub(1)?;
    let line = bytes.split(|&byte| byte == b'\n').nth(number)?.trim_ascii_end();
    // Generated files have lines of megabytes, and there may be many findings in one.
    let column = location.column.map_or(0, |column| column as usize);
    let boundary = |at: usize| (at..line.len()).find(|&at| line[at] & 0xc0 != 0x80).unwrap_or(line.len());
    let start = boundary(column.saturating_sub(MOST_BYTES));
    let end = boundary(column.saturating_add(MOST_BYTES));
    Some(Line {
        text: String::from_utf8_lossy(line.get(start..end)?).into_owned(),
        column: location.column.map(|column| column.saturating_sub(start as u32)),
        cut_before: start > 0,
        cut_after: end < line.len(),
    })
}

/// The line with its number, cut around the column, and a caret below the column.
fn push_excerpt(text: &mut String, style: &Style, line: &Line, number: u32, width: usize) {
    let Line { text: line, column, cut_before, cut_after } = line;
    // The column counts bytes, the caret is placed by characters.
    let target = column.map(|column| {
        let byte = (column as usize).saturating_sub(1);
        line.char_indices().take_while(|(at, _)| *at < byte).count()
    });
    let characters: Vec<char> = printable(line).chars().map(|c| if c == '\t' || c == '\n' { ' ' } else { c }).collect();
    let start = match target {
        Some(target) if target + 20 > EXCERPT_COLUMNS => (target - EXCERPT_COLUMNS / 2).min(characters.len()),
        _ => 0,
    };
    let end = (start + EXCERPT_COLUMNS).min(characters.len());
    let before = if start > 0 || *cut_before { "... " } else { "" };
    let after = if end < characters.len() || *cut_after { " ..." } else { "" };
    let shown: String = characters[start..end].iter().collect();
    let bar = style.paint("1;34", "|");
    let _ = writeln!(text, "{:width$} {bar}", "");
    let _ = writeln!(text, "{} {bar} {before}{shown}{after}", style.paint("1;34", &format!("{number:>width$}")));
    if let Some(target) = target {
        let _ =
            writeln!(text, "{:width$} {bar} {:2$}{3}", "", "", before.len() + target - start, style.paint("1;31", "^"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Code;

    fn check(name: &str, diagnostic: &Diagnostic, sources: &Sources) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../../snapshots/errors");
        settings.set_prepend_module_to_snapshot(false);
        let plain = human(diagnostic, sources, false);
        settings.bind(|| insta::assert_snapshot!(name, plain));
        let colored = human(diagnostic, sources, true);
        assert!(!plain.contains('\x1b') && colored.contains('\x1b'));
    }

    fn sources(text: &str) -> Sources {
        [("m.param".to_owned(), Bytes::from(text.to_owned()))].into_iter().collect()
    }

    #[test]
    fn a_place_in_a_text_is_shown_with_its_line() {
        let diagnostic = Diagnostic::error(
            Code::OperandTypes,
            Location::line_column(3, 19).in_file("m.param").at_operator("nn.Conv2d", "conv"),
            "the weight has 32 input channels, the activation has 16",
        )
        .with_related(Location::line(2).in_file("m.param"), "the activation comes from here")
        .with_note("groups = 1, so the weight's second extent must equal the channels")
        .with_help("was the model exported with groups = 2?\nthen add it to the line");
        check("place", &diagnostic, &sources("7767517\npnnx.Input a 0 1 0\nnn.Conv2d conv 1 1 0 1 groups=1\n"));
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let line = format!("7767517\n{}HERE{}", "x".repeat(300), "y".repeat(300));
        let location = Location::line_column(2, 301).in_file("m.param");
        check("long_line", &Diagnostic::error(Code::Syntax, location, "unexpected text"), &sources(&line));
    }

    #[test]
    fn columns_outside_the_line_and_unknown_files_do_no_harm() {
        for location in [
            Location::line_column(1, 4000).in_file("m.param"),
            Location::line_column(90, 1).in_file("m.param"),
            Location::line_column(0, 0).in_file("m.param"),
            Location::line_column(1, 1).in_file("other"),
        ] {
            let text = human(&Diagnostic::error(Code::Syntax, location, "x"), &sources("äöü\n"), false);
            assert!(text.starts_with("error[MLC0101]: x\n"));
        }
    }

    #[test]
    fn control_characters_of_a_file_do_not_reach_the_terminal() {
        let diagnostic = Diagnostic::warning(Code::Unused, Location::line_column(1, 1).in_file("m.param"), "\x1b[2Jx");
        let text = human(&diagnostic, &sources("\x1b]0;title\x07"), false);
        assert!(!text.contains('\x1b') && !text.contains('\x07'));
    }

    #[test]
    fn json_is_one_object_on_one_line() {
        let diagnostic = Diagnostic::error(Code::Syntax, Location::line(7), "two\nlines");
        let text = json(&diagnostic);
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["code"], "MLC0101");
        assert_eq!(value["location"]["line"], 7);
    }

    #[test]
    fn the_summary_counts() {
        let error = Diagnostic::error(Code::Syntax, Location::default(), "x");
        let warning = Diagnostic::warning(Code::Unused, Location::default(), "x");
        assert_eq!(summary(&[error.clone(), warning, error]), "2 errors, 1 warning");
    }
}
