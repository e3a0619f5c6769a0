//! The options that pages name exist.

use super::page::Page;
use mlc::cli;
use std::collections::{BTreeMap, BTreeSet};

/// The options of mlc by its commands, from what it says of itself.
#[derive(Debug)]
pub struct Options(BTreeMap<String, BTreeSet<String>>);

impl Options {
    /// Reads the help of every command.
    pub fn of_mlc() -> Options {
        let help = printed(&["--help"]);
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        // Further lines of a command's summary are indented more.
        let names = listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
        let mut options: BTreeMap<String, BTreeSet<String>> = names
            .filter(|name| *name != "help")
            .map(|name| (name.to_owned(), words(&printed(&[name, "--help"]))))
            .collect();
        options.insert(String::new(), words(&help));
        Options(options)
    }

    /// Whether any command has an option.
    fn has(&self, option: &str) -> bool {
        self.0.values().any(|options| options.contains(option))
    }
}

/// What mlc prints.
fn printed(arguments: &[&str]) -> String {
    String::from_utf8_lossy(&cli::answer(arguments).output).into_owned()
}

/// All words that are options.
fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().filter_map(option).collect()
}

/// The option that a word is, without its value and what stands around it.
fn option(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['\'', '[', '(']);
    let name = word.strip_prefix("--")?;
    let end = name.find(|character: char| !character.is_ascii_alphanumeric() && character != '-').unwrap_or(name.len());
    (end > 0).then(|| format!("--{}", &name[..end]))
}

/// Commands of mlc in a page, in blocks and in the text, of options that there aren't. Names of options alone, in the text, must be
/// those of some command, or of another program, `others`.
pub fn unknown_options(page: &Page, options: &Options, others: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut look = |line: usize, text: &str| {
        for unknown in unknown(text, options, others) {
            faults.push(format!("{}: {unknown} in '{}'", page.place(line), text.trim()));
        }
    };
    for block in page.blocks.iter().filter(|block| block.is_commands() && block.mark("not run").is_none()) {
        look(block.line, &block.text.replace("\\\n", " "));
    }
    let prose: Vec<&str> = page.prose.iter().map(|(_, line)| line.as_str()).collect();
    for (index, line) in prose.iter().enumerate() {
        for span in line.split('`').skip(1).step_by(2) {
            look(page.prose[index].0, span);
        }
    }
    faults
}

fn unknown(text: &str, options: &Options, others: &[&str]) -> Vec<String> {
    let mut unknown = Vec::new();
    for command in text.split(['\n', '|', ';']).flat_map(|line| line.split("&&")) {
        let command = command.split('#').next().unwrap_or_default().trim().trim_start_matches("$ ");
        // Options of cargo come before those of what it runs.
        let command =
            command.split_once(" --bin mlc -- ").map_or(command.to_owned(), |(_, rest)| format!("mlc {rest}"));
        let mut words = command.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first.starts_with("--") {
            let option = option(first).unwrap_or_default();
            if !option.is_empty() && !options.has(&option) && !others.contains(&option.as_str()) {
                unknown.push(format!("no command has {option}"));
            }
        } else if first == "mlc" {
            unknown.extend(unknown_of_mlc(words, options));
        }
    }
    unknown
}

fn unknown_of_mlc<'a>(words: impl Iterator<Item = &'a str>, options: &Options) -> Vec<String> {
    let mut words = words.peekable();
    // A word in brackets or an ellipsis stands for any command.
    let Some(name) = words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())) else {
        let name = words.next_if(|word| word.starts_with("--")).and_then(option);
        return name.filter(|name| !options.has(name)).map(|name| format!("mlc has no {name}")).into_iter().collect();
    };
    match options.0.get(name) {
        None => vec![format!("mlc has no command {name}")],
        Some(known) => {
            let named = words.filter_map(option);
            named.filter(|name| !known.contains(name)).map(|option| format!("mlc {name} has no {option}")).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_there_are_not_are_found() {
        let options = Options::of_mlc();
        assert!(options.0.len() > 15 && options.0["compile"].contains("--model-name"));
        let text = "`mlc compile m --model-name=x`, `--weights FILE`, `--prefix`, `--fly`, `mlc --version`\n\n\
                    ```sh\nmlc compile a \\\n  --wings b && mlc fly\nmlc ops --format onnx   # --nothing\n```\n";
        assert_eq!(
            unknown_options(&Page::parse("page.md", text), &options, &["--prefix"]),
            [
                "page.md:4: mlc compile has no --wings in 'mlc compile a    --wings b && mlc fly\nmlc ops --format onnx   # --nothing'",
                "page.md:4: mlc has no command fly in 'mlc compile a    --wings b && mlc fly\nmlc ops --format onnx   # --nothing'",
                "page.md:1: no command has --fly in '--fly'",
            ]
        );
    }
}
