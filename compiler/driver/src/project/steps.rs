//! What to do with a project that was made.

use super::template::Template;
use crate::bundle::Bundle;
use crate::toolchain::Board;
use std::path::Path;

/// The next commands, three at most, in the shell's words.
pub fn next_commands(bundle: &Bundle, template: Template, folder: &Path) -> Vec<String> {
    let model = bundle.model.name.to_ascii_lowercase();
    let folder = quoted(&folder.display().to_string());
    let enter = format!("cd {folder}");
    let is_firmware = bundle.target().is_some_and(|target| Board::of_target(&target.name).is_some());
    match template {
        Template::Posix => vec![enter, "make".into(), format!("build/{model}")],
        Template::BareMetal => vec![enter, "make".into(), "make emulate".into()],
        Template::Cmake => {
            let last =
                if is_firmware { "cmake --build build --target emulate".into() } else { format!("build/run_{model}") };
            vec![enter, "cmake -B build && cmake --build build".into(), last]
        }
        Template::Zephyr => vec![enter, "west build -b BOARD".into(), "west flash".into()],
        Template::Arduino => vec![
            format!("arduino-cli compile --fqbn BOARD --library {folder} {folder}/examples/run"),
            format!("arduino-cli upload --fqbn BOARD --port PORT {folder}/examples/run"),
            "arduino-cli monitor --port PORT".into(),
        ],
        Template::Platformio => {
            vec![enter, "pio run".into(), if is_firmware { "pio run -t upload" } else { "pio run -t exec" }.into()]
        }
        Template::EspIdf => vec![enter, "idf.py build".into(), "idf.py flash monitor".into()],
        Template::Python => vec![
            // A bare name would be that of a package in a registry.
            format!("pip install {}{folder}", if folder.contains('/') { "" } else { "./" }),
            format!("python3 -c 'from tvmgen_{model} import run; print(run.inputs, run.outputs)'"),
        ],
        Template::Cargo => vec![enter, "cargo run --release --example run".into()],
    }
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
