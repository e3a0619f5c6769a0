//! Runs the commands of a page.

use super::page::{Block, Kind, Page};
use crate::paths;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a block may take, in seconds.
const MOST_SECONDS: &str = "900";

/// How it went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Blocks that ran.
    pub ran: usize,
    /// Blocks that didn't, with the reasons.
    pub left_out: Vec<String>,
    /// What went wrong. Commands after it aren't run.
    pub fault: Option<String>,
}

/// Runs a page's commands in an empty folder, with the programs of a folder before all others.
pub fn run(page: &Page, folder: &Path, programs: &Path) -> Outcome {
    let mut session = Session { folder, programs, said: String::new(), is_left_out: false };
    let mut outcome = Outcome::default();
    for block in &page.blocks {
        match session.step(block) {
            Ok(Step::Ran) => outcome.ran += 1,
            Ok(Step::LeftOut(reason)) => outcome.left_out.push(format!("{}: {reason}", page.place(block.line))),
            Ok(Step::Nothing) => {}
            Err(fault) => {
                outcome.fault = Some(format!("{}: {fault}", page.place(block.line)));
                return outcome;
            }
        }
    }
    outcome
}

enum Step {
    Ran,
    LeftOut(String),
    Nothing,
}

struct Session<'a> {
    folder: &'a Path,
    programs: &'a Path,
    /// What the last commands have printed.
    said: String,
    /// Whether the last commands were left out.
    is_left_out: bool,
}

impl Session<'_> {
    fn step(&mut self, block: &Block) -> Result<Step, String> {
        if let Some(name) = block.mark("as") {
            fs::write(self.folder.join(name), &block.text).map_err(|error| format!("can't write {name}: {error}"))?;
        }
        if block.mark("printed").is_some() && !block.is_commands() {
            return if self.is_left_out {
                Ok(Step::Nothing)
            } else {
                self.has_said(&block.text, normal(block)).map(|()| Step::Nothing)
            };
        }
        if block.kind != Kind::Hidden && !block.is_commands() {
            return Ok(Step::Nothing);
        }
        self.is_left_out = true;
        if let Some(reason) = block.mark("not run") {
            return Ok(Step::LeftOut(reason.to_owned()));
        }
        let needs = block.mark("needs").unwrap_or_default();
        if let Some(missing) = needs.split_whitespace().find(|tool| !self.is_there(tool)) {
            return Ok(Step::LeftOut(format!("there is no {missing}")));
        }
        self.is_left_out = false;
        let place = if block.marks.iter().any(|mark| mark == "in the repository") {
            paths::repository()
        } else {
            self.folder.to_owned()
        };
        if block.language() == Some("console") {
            self.converse(block, &place)?;
        } else {
            let (is_done, said) = self.bash(&block.text, &place)?;
            self.said = said;
            if !is_done {
                return Err(format!("these commands fail:\n{}{}", block.text, self.said));
            }
        }
        Ok(Step::Ran)
    }

    /// Runs each command of a block behind its `$ `, and looks for what the block shows after it.
    fn converse(&mut self, block: &Block, place: &Path) -> Result<(), String> {
        for part in block.text.split("$ ").skip(1) {
            let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
            let (is_done, said) = self.bash(command, place)?;
            self.said = said;
            if !is_done && !shown.starts_with("error") {
                return Err(format!("'{command}' fails:\n{}", self.said));
            }
            self.has_said(shown, normal(block))?;
        }
        Ok(())
    }

    /// The pieces of a text, between lines of an ellipsis, are in what was printed, wherever lines are broken.
    fn has_said(&self, shown: &str, normal: fn(&str) -> String) -> Result<(), String> {
        let said = normal(&self.said);
        let mut rest = said.as_str();
        for piece in shown.split("…\n").map(normal) {
            match rest.split_once(&piece) {
                Some((_, after)) => rest = after,
                None => return Err(format!("this isn't what is printed:\n{piece}\nbut\n{}", self.said)),
            }
        }
        Ok(())
    }

    /// Whether commands are done, and what they print.
    fn bash(&self, commands: &str, place: &Path) -> Result<(bool, String), String> {
        let output = self.shell(place, &format!("exec 2>&1\n{commands}")).output();
        let output = output.map_err(|error: io::Error| format!("bash doesn't start: {error}"))?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    fn shell(&self, place: &Path, script: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args([MOST_SECONDS, "bash", "-euo", "pipefail", "-c", script]).current_dir(place).stdin(Stdio::null());
        command.env("PATH", self.path()).env("REPOSITORY", paths::repository()).env("DATA", paths::data());
        // What 'cargo install' takes for granted is the user's.
        command.env("CARGO_INSTALL_ROOT", self.folder.join("installed")).env("CARGO_TERM_COLOR", "never");
        command
    }

    fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.programs.display())
    }

    fn is_there(&self, tool: &str) -> bool {
        let folders: Vec<PathBuf> = std::env::split_paths(&self.path()).collect();
        folders.iter().any(|folder| folder.join(tool).is_file())
    }
}

/// How what a block shows is compared with what is printed.
fn normal(block: &Block) -> fn(&str) -> String {
    if block.mark("printed").is_some_and(|apart| !apart.is_empty()) { words_without_numbers } else { words }
}

/// A text with one space between words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same with one digit for every number, for what another compiler makes other numbers of.
fn words_without_numbers(text: &str) -> String {
    let mut rest = String::new();
    for character in words(text).chars() {
        if !character.is_ascii_digit() {
            rest.push(character);
        } else if !rest.ends_with('0') {
            rest.push('0');
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Outcome {
        let folder = tempfile::tempdir().unwrap();
        run(&Page::parse("page.md", text), folder.path(), Path::new("/nowhere"))
    }

    #[test]
    fn commands_run_in_order() {
        let text = "<!-- run\necho one > file\n-->\n\n<!-- as: other -->\n```c\nint x;\n```\n\n\
                    ```sh\ncat file other\ncat file >&2\n```\n\n<!-- printed -->\n\n    one\n    int\n    …\n    one\n\n\
                    ```console\n$ cat file\none\n$ echo error 1; false\nerror\n1\n```\n\n\
                    <!-- printed, numbers apart -->\n\n    error 234\n\n\
                    <!-- needs: bash no-such-tool -->\n```sh\nfalse\n```\n\n<!-- printed -->\n\n    two\n\n\
                    <!-- not run: it's another's -->\n```sh\nfalse\n```\n";
        let outcome = outcome(text);
        assert_eq!(outcome.fault, None);
        assert_eq!(outcome.ran, 3);
        assert_eq!(outcome.left_out, ["page.md:36: there is no no-such-tool", "page.md:45: it's another's"]);
    }

    #[test]
    fn wrong_commands_are_found() {
        for (text, fault) in [
            ("```sh\nfalse\ntrue\n```\n", "page.md:2: these commands fail"),
            ("```sh\necho one\n```\n\n<!-- printed -->\n\n    two\n", "page.md:7: this isn't what is printed"),
            ("```sh\necho 12 ab\n```\n\n<!-- printed, numbers apart -->\n\n    3 ac\n", "0 ac"),
            ("```console\n$ echo one\ntwo\n```\n", "isn't what is printed"),
            ("```console\n$ false\n```\n", "'false' fails"),
        ] {
            let found = outcome(text).fault.unwrap();
            assert!(found.contains(fault), "{text}: {found}");
        }
    }
}
