//! Which templates have a place for which machines.

use super::firmware::has_platformio_board;
use super::template::Template;
use crate::toolchain::Board;
use clap::ValueEnum;
use mlc_codegen::{System, Target};
use mlc_ir::Diagnostic;

/// The board that stands for the archive's machine, if it is a microcontroller; `None` for plain C and for computers.
///
/// # Errors
/// `MLC0004` when the template's projects don't run on such a machine.
pub(super) fn board(target: Option<&Target>, template: Template) -> Result<Option<&'static Board>, Diagnostic> {
    // Code of other generators and for no machine is taken for what the template wants.
    let board = target.and_then(|target| Board::of_target(&target.name));
    let name = template_name(template);
    let known = || format!("compile the model with '--target', one of {}", microcontrollers());
    let Some(target) = target.filter(|target| target.name != "generic") else {
        return match template {
            Template::BareMetal => {
                Err(refused(&name, "makes firmware for a microcontroller that it has to know").with_help(known()))
            }
            _ => Ok(None),
        };
    };
    let system = target.tools.as_ref().map(|tools| tools.system);
    let is_riscv = target.name.starts_with("riscv");
    let (suits, what) = match template {
        Template::Cmake | Template::Cargo => (true, ""),
        Template::Posix => (system != Some(System::None), "makes a program for an operating system"),
        Template::Python => {
            (matches!(system, None | Some(System::Linux)), "makes a package for Python under an operating system")
        }
        Template::BareMetal => (board.is_some(), "makes firmware for a microcontroller"),
        Template::Zephyr | Template::Arduino => (system == Some(System::None), "makes firmware for microcontrollers"),
        Template::Platformio => match system {
            None => (true, ""),
            Some(System::None) => (has_platformio_board(&target.name), "knows no board with this processor"),
            Some(_) => (false, "makes programs for this machine, or firmware"),
        },
        Template::EspIdf => (
            system == Some(System::None) && is_riscv,
            "makes firmware for processors of Espressif, of RISC-V among these targets",
        ),
    };
    if suits {
        return Ok(board);
    }
    let help = match (template, system) {
        (Template::Posix, _) => "'--template bare-metal' makes firmware of it".to_owned(),
        (Template::BareMetal, _) => known(),
        _ => "compile the model with '--target generic', whose code is for any machine".to_owned(),
    };
    Err(refused(&name, &format!("{what}, and the archive's code is for '{}'", target.name)).with_help(help))
}

/// Its name on the command line.
pub(super) fn template_name(template: Template) -> String {
    template.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn refused(template: &str, why: &str) -> Diagnostic {
    Diagnostic::option_mismatch(format!("the template '{template}' {why}"))
}

fn microcontrollers() -> String {
    let names: Vec<&str> = crate::toolchain::boards().map(|board| board.target).collect();
    names.join(", ")
}
