//! What a page must say of its blocks, so that no command is passed over.

use super::page::{Block, Kind, Page, SPANS};

/// The languages of blocks that aren't commands.
const LANGUAGES: [&str; 8] = ["c", "cpp", "cmake", "json", "mlc", "python", "rust", "text"];

/// The words of comments.
const WORDS: [&str; 6] = [SPANS, "not run: ", "needs: ", "in the repository", "as: ", "printed"];

/// Words that commands begin with: a block that has one of them at the start of a line has commands.
const PROGRAMS: [&str; 18] = [
    "$",
    "apt-get",
    "arm-none-eabi-gcc",
    "bash",
    "cargo",
    "cc",
    "cd",
    "cmake",
    "curl",
    "dpkg",
    "git",
    "make",
    "mlc",
    "pip",
    "python",
    "python3",
    "tar",
    "west",
];

/// What is wrong with the blocks of a page and the comments before them.
pub fn faults(page: &Page) -> Vec<String> {
    let mut faults = Vec::new();
    for block in &page.blocks {
        let mut say = |fault: String| faults.push(format!("{}: {fault}", page.place(block.line)));
        for mark in &block.marks {
            if !WORDS.iter().any(|word| mark.starts_with(word)) {
                say(format!("no comment says '{mark}'"));
            }
        }
        match &block.kind {
            Kind::Hidden => {}
            _ if block.is_commands() => {}
            Kind::Fenced(language) if !LANGUAGES.contains(&language.as_str()) => {
                say(format!(
                    "a block is of the language '{language}', which isn't one of sh, console, {}",
                    LANGUAGES.join(", ")
                ));
            }
            // C and others may begin with such a word.
            Kind::Fenced(language) if language != "text" => {}
            Kind::Fenced(_) | Kind::Indented | Kind::Spans => {
                if let Some(command) = command(block) {
                    say(format!("commands are in a block 'sh' or 'console': {command}"));
                }
            }
        }
    }
    faults
}

/// What pages say that the script of continuous integration does, and that isn't in its text: commands that are a step of it, and
/// packages that it installs.
pub fn missing_from_ci(page: &Page, script: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for block in &page.blocks {
        let reason = block.mark("not run").unwrap_or_default();
        let promised: Vec<&str> = if reason.contains("a step of .ci/run") {
            block.text.lines().collect()
        } else if reason.contains(".ci/run installs the same") {
            let words = block.text.split_whitespace().filter(|word| !word.starts_with('-') && *word != "\\");
            words.skip_while(|word| *word != "install").skip(1).collect()
        } else {
            Vec::new()
        };
        let missed = promised.into_iter().filter(|text| !script.contains(text));
        missing.extend(missed.map(|text| format!("{}: .ci/run doesn't have '{text}'", page.place(block.line))));
    }
    missing
}

/// The first line that looks like a command.
fn command(block: &Block) -> Option<&str> {
    // A grammar's rule may have the name of a program.
    block.text.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|word| PROGRAMS.contains(&word))
            && words.next().is_some_and(|word| word != "=" && word != "1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ci_is_said_to_do_is_in_its_script() {
        let text = "<!-- not run: it installs programs; .ci/run installs the same -->\n```sh\napt-get install --fast one \\\n  two\n```\n\n\
                    <!-- not run: it is a step of .ci/run -->\n```sh\ncargo test\n```\n";
        let page = Page::parse("page.md", text);
        assert_eq!(missing_from_ci(&page, "missing+=(one two=2)\ncargo test --release"), [] as [String; 0]);
        assert_eq!(
            missing_from_ci(&page, "two"),
            ["page.md:3: .ci/run doesn't have 'one'", "page.md:9: .ci/run doesn't have 'cargo test'"]
        );
    }

    #[test]
    fn commands_can_not_hide() {
        for (text, fault) in [
            ("```sh\nmlc compile\n```\n", None),
            ("    mlc compile a\n", Some("commands are in a block")),
            ("```text\ncargo test\n```\n", Some("commands are in a block")),
            ("```\ncode\n```\n", Some("the language ''")),
            ("    mlc 1\n    graph\n", None),
            ("<!-- notrun -->\n```c\nmake = 1;\n```\n", Some("no comment says 'notrun'")),
        ] {
            let found = faults(&Page::parse("page.md", text));
            match fault {
                None => assert_eq!(found, [] as [String; 0], "{text}"),
                Some(fault) => assert!(found.len() == 1 && found[0].contains(fault), "{text}: {found:?}"),
            }
        }
    }
}
