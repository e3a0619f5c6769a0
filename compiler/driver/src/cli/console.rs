//! Standard output and standard error: the only place that prints. A command that a program asks for in its own process prints
//! nothing; what it would have is kept for the program.

use crate::files;
use crate::render::{self, MessageFormat, Sources};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use mlc_ir::{Code, Diagnostic, Location, Severity};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is faster needs no display.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Options of all commands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Messages")]
pub struct Common {
    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// How errors and warnings are written to standard error
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub message_format: MessageFormat,
}

/// How the user wants to be talked to.
#[derive(Debug, Clone)]
pub struct Console {
    quiet: bool,
    verbose: bool,
    color: bool,
    messages: MessageFormat,
    /// Where everything goes in the place of standard output and standard error.
    record: Option<Arc<Mutex<Record>>>,
}

/// What a command has said.
#[derive(Debug, Default)]
pub struct Record {
    /// What would have gone to standard output.
    pub output: Vec<u8>,
    /// Errors and warnings in order.
    pub findings: Vec<Finding>,
    /// What else would have gone to standard error.
    pub remarks: String,
}

/// An error or a warning.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was found, and where.
    pub diagnostic: Diagnostic,
    /// The same as text for people.
    pub text: String,
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
            record: None,
        }
    }

    /// A console that keeps what is said.
    pub fn recording(common: &Common, record: &Arc<Mutex<Record>>) -> Console {
        Console { color: false, record: Some(Arc::clone(record)), ..Console::new(common) }
    }

    /// Has the record, if there is one, take something; whether it did.
    fn record(&self, take: impl FnOnce(&mut Record)) -> bool {
        // Whoever panicked in between has left nothing half done.
        let record = self.record.as_ref().map(|record| record.lock().unwrap_or_else(PoisonError::into_inner));
        record.map(|mut record| take(&mut record)).is_some()
    }

    /// Prints a result to standard output. A reader that closed its end, such as `head`, is no error.
    pub fn print(&self, text: &str) {
        if self.record(|record| record.output.extend_from_slice(text.as_bytes())) {
            return;
        }
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Writes a result that isn't text for people to standard output. A reader that closed its end is no error.
    ///
    /// # Errors
    /// `MLC0002` when what standard output leads to refuses.
    pub fn write(&self, contents: &[u8]) -> Result<(), Diagnostic> {
        if self.record(|record| record.output.extend_from_slice(contents)) {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        match out.write_all(contents).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                let message = format!("can't write to standard output: {}", files::describe(&error));
                Err(Diagnostic::error(Code::FileUnwritable, Location::default(), message))
            }
            _ => Ok(()),
        }
    }

    /// Prints a value as JSON to standard output.
    pub fn print_json(&self, value: &impl serde::Serialize) {
        // Structures of strings, numbers and lists: writing them to memory can't fail.
        self.print(&(serde_json::to_string_pretty(value).unwrap_or_default() + "\n"));
    }

    /// Prints a result to standard error, where standard output is another one's.
    pub fn remark(&self, text: &str) {
        if !self.record(|record| record.remarks.push_str(text)) {
            say(text);
        }
    }

    /// Says what was done, unless the user wants silence.
    pub fn status(&self, text: &str) {
        if !self.quiet && self.messages == MessageFormat::Human {
            self.remark(&format!("{text}\n"));
        }
    }

    /// Says what only a curious user wants to know.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        if self.verbose {
            self.status(&text());
        }
    }

    /// Shows that something goes on while the returned value lives, if it takes longer than a second and a person watches.
    pub fn progress(&self, what: &'static str) -> Progress {
        let is_watched = self.record.is_none() && std::io::stderr().is_terminal();
        if self.quiet || self.messages == MessageFormat::Json || !is_watched {
            return Progress(None);
        }
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            if stopped.recv_timeout(PROGRESS_DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let spinner = ProgressBar::new_spinner().with_message(what).with_elapsed(PROGRESS_DELAY);
            let spinner = style.map(|style| spinner.clone().with_style(style)).unwrap_or(spinner);
            spinner.enable_steady_tick(Duration::from_millis(120));
            let _ = stopped.recv();
            spinner.finish_and_clear();
        });
        Progress(Some((stop, worker)))
    }

    /// Reports diagnostics; with `-q` errors only.
    pub fn report(&self, diagnostics: &[Diagnostic], sources: &Sources) {
        for diagnostic in diagnostics {
            if self.quiet && diagnostic.severity != Severity::Error {
                continue;
            }
            let text = || render::human(diagnostic, sources, false);
            if self.record(|record| record.findings.push(Finding { diagnostic: diagnostic.clone(), text: text() })) {
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

/// A running display of progress; it vanishes with this.
#[must_use]
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, worker)) = self.0.take() {
            drop(stop);
            let _ = worker.join();
        }
    }
}

fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
