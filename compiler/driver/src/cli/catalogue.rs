//! What mlc knows: `mlc explain`, `mlc passes`, `mlc ops` and `mlc targets`.

use super::console::Console;
use super::words::mismatch;
use crate::format::Format;
use crate::pipeline::Failure;
use crate::pipeline::frontends;
use crate::targets;
use clap::Args;
use mlc_import::OperatorSupport;
use mlc_ir::{Code, OpKind};
use mlc_passes::Pipeline;
use serde::Serialize;
use std::path::PathBuf;

/// `mlc explain`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc explain MLC0201
  mlc explain                                      lists all codes")]
pub struct Explain {
    /// The code in brackets after 'error' or 'warning'; without it, all codes are listed
    pub code: Option<String>,
}

/// A command that lists what mlc knows.
#[derive(Debug, Args)]
pub struct Listing {
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// `mlc completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc completions bash > ~/.local/share/bash-completion/completions/mlc
  mlc completions fish > ~/.config/fish/completions/mlc.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `mlc man`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  mlc man -o ~/.local/share/man/man1               then 'man mlc-compile'")]
pub struct Manual {
    /// Folder for the pages
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
}

/// `mlc ops`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc ops                    operators of the intermediate representation
  mlc ops --format onnx      operators of ONNX models, since which version they are supported")]
pub struct Ops {
    /// List the operators of this format instead
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) fn explain(arguments: &Explain, console: &Console) -> Result<(), Failure> {
    let Some(text) = &arguments.code else {
        for code in Code::ALL {
            console.print(&format!("{code}  {}\n", words(code.title())));
        }
        return Ok(());
    };
    let code = Code::parse(text).ok_or_else(|| {
        mismatch(format!("there is no error code '{text}'")).with_help("'mlc explain' without a code lists all of them")
    })?;
    let page: Vec<&str> = code.page().lines().map(str::trim).collect();
    console.print(&format!("{code}: {}\n\n{}\n", words(code.title()), page.join("\n").trim()));
    Ok(())
}

/// `operator unsupported` of `OperatorUnsupported`.
fn words(title: &str) -> String {
    let mut words = String::new();
    for (index, character) in title.char_indices() {
        if character.is_ascii_uppercase() && index > 0 {
            words.push(' ');
        }
        words.push(character.to_ascii_lowercase());
    }
    words
}

#[derive(Serialize)]
struct StageEntry {
    name: &'static str,
    summary: &'static str,
    passes: Vec<PassEntry>,
}

#[derive(Serialize)]
struct PassEntry {
    name: &'static str,
    summary: &'static str,
    rules: Vec<RuleEntry>,
}

#[derive(Serialize)]
struct RuleEntry {
    name: &'static str,
    /// Whether results are the same to the bit, or sums and products may be rounded in another order.
    exact: bool,
    reason: &'static str,
}

pub(super) fn passes(arguments: &Listing, console: &Console) -> Result<(), Failure> {
    let stages: Vec<StageEntry> = Pipeline::default()
        .stages
        .iter()
        .map(|stage| StageEntry {
            name: stage.name,
            summary: stage.summary,
            passes: stage
                .passes()
                .iter()
                .map(|pass| PassEntry {
                    name: pass.name,
                    summary: pass.summary,
                    rules: pass.rules.iter().map(rule_entry).collect(),
                })
                .collect(),
        })
        .collect();
    if arguments.json {
        console.print_json(&stages);
        return Ok(());
    }
    let mut listed: Vec<&str> = Vec::new();
    for stage in stages {
        console.print(&format!("{}: {}\n", stage.name, stage.summary));
        for pass in stage.passes {
            if listed.contains(&pass.name) {
                console.print(&format!("  {}: as above\n", pass.name));
                continue;
            }
            listed.push(pass.name);
            console.print(&format!("  {}: {}\n", pass.name, pass.summary));
            for rule in pass.rules {
                let reordered = if rule.exact { "" } else { " (rounds in another order)" };
                console.print(&format!("    {:<40}{}{reordered}\n", rule.name, rule.reason));
            }
        }
    }
    Ok(())
}

fn rule_entry(rule: &mlc_passes::rewrite::Rule) -> RuleEntry {
    RuleEntry { name: rule.name, exact: rule.exactness.rounds_alike(), reason: rule.reason }
}

#[derive(Serialize)]
struct OperatorEntry {
    name: &'static str,
    summary: String,
}

pub(super) fn ops(arguments: &Ops, console: &Console) -> Result<(), Failure> {
    match arguments.format {
        None | Some(Format::Ir) => ir_operators(arguments.json, console),
        Some(format) => match frontends::find(format).and_then(|frontend| frontend.operators) {
            Some(operators) => format_operators(&operators(), arguments.json, console),
            None => return Err(mismatch(format!("mlc knows no operators of the format {format}")).into()),
        },
    }
    Ok(())
}

fn ir_operators(json: bool, console: &Console) {
    let entry =
        |kind: &OpKind| OperatorEntry { name: kind.name(), summary: summary(kind.name(), &kind.documentation()) };
    let operators: Vec<OperatorEntry> = OpKind::ALL.iter().map(entry).collect();
    if json {
        return console.print_json(&operators);
    }
    for operator in &operators {
        console.print(&format!("{:<24}{}\n", operator.name, operator.summary));
    }
}

/// The support table of a format.
fn format_operators(operators: &[OperatorSupport], json: bool, console: &Console) {
    if json {
        return console.print_json(&operators);
    }
    for OperatorSupport { domain, name, since, refused } in operators {
        let name = if domain.is_empty() { (*name).to_owned() } else { format!("{domain}.{name}") };
        let state = match (refused, since) {
            (Some(reason), _) => format!("refused: {reason}"),
            (None, Some(since)) => format!("since version {since}"),
            (None, None) => "supported".into(),
        };
        console.print(&format!("{name:<40}{state}\n"));
    }
}

/// The first sentence of an operator's documentation, without its name.
fn summary(name: &str, documentation: &str) -> String {
    let prefix = format!("`{name}`: ");
    let text = documentation.strip_prefix(&prefix).unwrap_or(documentation);
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_owned()
}

pub(super) fn targets(arguments: &Listing, console: &Console) -> Result<(), Failure> {
    let targets = targets::all();
    if arguments.json {
        console.print_json(&targets);
        return Ok(());
    }
    for target in targets {
        let memories = target.memories.map_or(String::new(), |memories| {
            let (flash, ram) = (memories.flash_bytes >> 10, memories.ram_bytes >> 10);
            format!("; a usual part has {flash} KiB of flash and {ram} KiB of RAM")
        });
        console.print(&format!("{:<16}{}{memories}\n", target.name, target.summary));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_first_sentences() {
        assert_eq!(summary("pad", "`pad`: Adds elements. They are of a mode."), "Adds elements");
        assert_eq!(summary("pad", "Adds elements."), "Adds elements");
    }

    #[test]
    fn titles_become_words() {
        assert_eq!(words("OperatorUnsupported"), "operator unsupported");
        assert_eq!(words("Syntax"), "syntax");
    }
}
