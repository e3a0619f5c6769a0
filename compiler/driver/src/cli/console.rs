//! Standard output and standard error: the only place that prints.

use super::arguments::Common;
use crate::render::{self, MessageFormat, Sources};
use mlc_ir::{Diagnostic, Severity};
use std::io::{IsTerminal, Write};

/// How the user wants to be talked to.
#[derive(Debug, Clone)]
pub struct Console {
    quiet: bool,
    verbose: bool,
    color: bool,
    messages: MessageFormat,
}

impl Console {
    /// As the options and the environment say: `NO_COLOR`, and whether standard error is a terminal.
    pub fn new(common: &Common) -> Console {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Console {
            quiet: common.quiet,
            verbose: common.verbose,
            color: !no_color && std::io::stderr().is_terminal(),
            messages: common.message_format,
        }
    }

    /// Prints a result to standard output. A reader that closed its end, such as `head`, is no error.
    pub fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Prints a value as JSON to standard output.
    pub fn print_json(&self, value: &impl serde::Serialize) {
        // Structures of strings, numbers and lists: writing them to memory can't fail.
        self.print(&(serde_json::to_string_pretty(value).unwrap_or_default() + "\n"));
    }

    /// Says what was done, unless the user wants silence.
    pub fn status(&self, text: &str) {
        if !self.quiet && self.messages == MessageFormat::Human {
            say(&format!("{text}\n"));
        }
    }

    /// Says what only a curious user wants to know.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        if self.verbose {
            self.status(&text());
        }
    }

    /// Reports diagnostics; with `-q` errors only.
    pub fn report(&self, diagnostics: &[Diagnostic], sources: &Sources) {
        for diagnostic in diagnostics {
            if self.quiet && diagnostic.severity != Severity::Error {
                continue;
            }
            say(&match self.messages {
                MessageFormat::Human => render::human(diagnostic, sources, self.color) + "\n",
                MessageFormat::Json => render::json(diagnostic),
            });
        }
    }

    /// Counts the diagnostics of a failed command, when there are several.
    pub fn conclude(&self, diagnostics: &[Diagnostic]) {
        if diagnostics.len() > 1 {
            self.status(&format!("failed: {}", render::summary(diagnostics)));
        }
    }

    /// Reports a defect of mlc itself.
    pub fn defect(what: &str) {
        say(&format!(
            "error: mlc has a defect and can't go on\n   = note: {}\n   = help: please report it, with the command and \
             the model if you may share it\n",
            what.replace('\n', "\n           "),
        ));
    }
}

fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
