//! `conformance [FOLDER] [--target host|generic|cortex-m4|riscv32]… [--sanitize] [--cc COMPILER] [--flag FLAG]… [--together] [--filter TEXT] [--threads N] [--format NAME]… [--write FILE] [--timings]`
//!
//! Runs the conformance collection (by default the one beside the repository, or the repository's own selection) and prints
//! one table per format, what failed, and a closing line; `--write` puts the tables into a document. `--flag` gives the C compiler
//! an option more, such as `-O3`, `--cc` names another one; without such an option it doesn't optimise, which is most of its time.
//! Code of targets that are named as in the tables, `generic, sanitized`, runs under sanitizers, with `--sanitize` that of all. With
//! sanitizers, or `--together`, many cases become one program, which tells nothing of their archives, but takes C compilers less time.
//! Without a target it is `host` and `generic, sanitized`. The exit status is 1
//! when a case is wrong, or fewer pass than are demanded.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test runner talks to its user")]

use mlc_tests::conformance::{self, Status};
use mlc_tests::mode::Mode;
use mlc_tests::paths;
use std::path::PathBuf;
use std::process::ExitCode;

struct Arguments {
    folder: PathBuf,
    targets: Vec<String>,
    formats: Vec<String>,
    sanitize: bool,
    together: bool,
    compiler: Option<String>,
    flags: Vec<String>,
    filter: String,
    threads: usize,
    document: Option<PathBuf>,
    timings: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut arguments = Arguments {
        folder: paths::conformance().unwrap_or_else(paths::data),
        targets: Vec::new(),
        formats: Vec::new(),
        sanitize: false,
        together: false,
        compiler: None,
        flags: Vec::new(),
        filter: String::new(),
        threads: 2,
        document: None,
        timings: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--target" => arguments.targets.push(value()?),
            "--format" => arguments.formats.push(value()?),
            "--cc" => arguments.compiler = Some(value()?),
            "--flag" => arguments.flags.push(value()?),
            "--filter" => arguments.filter = value()?,
            "--threads" => arguments.threads = value()?.parse().map_err(|_| "--threads needs a number")?,
            "--write" => arguments.document = Some(value()?.into()),
            "--timings" => arguments.timings = true,
            "--sanitize" => arguments.sanitize = true,
            "--together" => arguments.together = true,
            option if option.starts_with('-') => return Err(format!("there is no option {option}")),
            folder => arguments.folder = folder.into(),
        }
    }
    if arguments.targets.is_empty() {
        arguments.targets = vec!["host".into(), "generic, sanitized".into()];
    }
    if arguments.formats.is_empty() {
        arguments.formats = conformance::FORMATS.map(String::from).to_vec();
    }
    Ok(arguments)
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut sound = true;
    let mut document = conformance::head();
    for target in &arguments.targets {
        let (name, sanitize) =
            target.strip_suffix(", sanitized").map_or((target.as_str(), arguments.sanitize), |name| (name, true));
        let mode = match name {
            "host" => Mode::host(sanitize),
            "generic" => Mode::generic(sanitize),
            other => Mode::microcontroller(other, sanitize)
                .ok_or_else(|| format!("there is no target {other}, or none whose code this machine could run"))?,
        };
        let mode = arguments.compiler.iter().fold(mode, |mode, compiler| mode.compiled_by(compiler));
        let is_optimised = mode.build.is_sanitized() || !arguments.flags.is_empty();
        let mode = if is_optimised { mode } else { mode.unoptimised() };
        let mode = mode.with_flags(arguments.flags.iter().map(String::as_str));
        for format in &arguments.formats {
            if !conformance::cases_folder(&arguments.folder, format).is_dir() {
                continue;
            }
            let Arguments { folder, filter, threads, .. } = arguments;
            let together = arguments.together || mode.build.is_sanitized();
            let outcomes = conformance::run(folder, format, &mode, filter, *threads, together)?;
            println!("## {format}, target {}\n\n{}", mode.name, conformance::table(&outcomes));
            println!("{}", conformance::failures(&outcomes));
            if arguments.timings {
                println!("{}", conformance::timings(&outcomes));
            }
            // A share of a selection says nothing.
            let (demands, met) = if arguments.filter.is_empty() {
                conformance::demands(format, &outcomes)
            } else {
                (String::new(), true)
            };
            print!("{demands}");
            document += &conformance::section(format, &mode.name, &outcomes);
            let failed = outcomes.iter().any(|outcome| matches!(outcome.status, Status::Wrong(_)));
            println!(
                "conformance {format} ({}): {}; {}\n",
                mode.name,
                conformance::summary(&outcomes),
                if failed || !met { "FAILED" } else { "ok" }
            );
            sound &= !failed && met;
        }
    }
    if let Some(path) = &arguments.document {
        std::fs::write(path, document).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(sound)
}

fn main() -> ExitCode {
    match arguments().and_then(|arguments| run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::from(2)
        }
    }
}
