//! The machine that a model is for: limits of its memory, and the emulated board that stands for it.

use super::console::Console;
use super::words::mismatch;
use crate::pipeline::Failure;
use crate::toolchain::{Cost, Footprint, Toolchain};
use clap::Args;
use mlc_codegen::Limits;
use mlc_ir::{Code, Diagnostic, Location};

/// Limits of the machine's memory.
#[derive(Debug, Clone, Copy, Args)]
pub struct Memory {
    /// Take no more RAM than this, such as '64K', for working memory, states, inputs, outputs: where the usual program needs more, the
    /// fastest one that doesn't is made, and a model is refused if there is none
    #[arg(long, value_name = "N[K|M]", value_parser = size)]
    pub ram: Option<usize>,
    /// Refuse a model that needs more flash than this, such as '1M': constants, and code where it is built
    #[arg(long, value_name = "N[K|M]", value_parser = size)]
    pub flash: Option<usize>,
}

/// What the program runs on.
#[derive(Debug, Clone, Args)]
pub struct Machine {
    /// Run on another machine, emulated, such as 'cortex-m4' or 'aarch64', instead of on this one
    #[arg(long, value_name = "MACHINE")]
    pub on: Option<String>,
}

impl Memory {
    pub(super) fn limits(self) -> Limits {
        Limits { ram_bytes: self.ram, flash_bytes: self.flash }
    }

    /// Whether there is any limit.
    pub(super) fn is_given(self) -> bool {
        self.ram.is_some() || self.flash.is_some()
    }

    /// Checks what a C compiler has made of a model: constants with code, and static memory. Inputs, outputs and
    /// pools, which the firmware of a user owns, count as RAM here too.
    ///
    /// # Errors
    /// `MLC0402` for each memory that is exceeded.
    pub(super) fn check_built(self, footprint: &Footprint, io_bytes: usize) -> Result<(), Failure> {
        let ram = footprint.ram_bytes.saturating_add(footprint.pool_bytes).saturating_add(io_bytes);
        let faults: Vec<Diagnostic> = [
            ("RAM", self.ram, ram, format!("{}, {io_bytes} of inputs and outputs", describe_ram(footprint))),
            ("flash", self.flash, footprint.flash_bytes, describe_flash(footprint)),
        ]
        .into_iter()
        .filter_map(|(memory, limit, needed, parts)| {
            let limit = limit.filter(|&limit| needed > limit)?;
            let excess = needed - limit;
            let message = format!("{needed} bytes of {memory} are needed, {excess} more than the limit of {limit}");
            Some(Diagnostic::error(Code::MemoryExceeded, Location::default(), message).with_note(parts))
        })
        .collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
    }
}

impl Machine {
    /// The target that code is generated for, unless the user names another.
    pub(super) fn default_target(&self) -> &str {
        self.on.as_deref().unwrap_or("host")
    }

    /// What builds and runs programs: this machine's C compiler as the variable `CC` names it, or a cross compiler and an
    /// emulator.
    ///
    /// # Errors
    /// When no board has such a processor.
    pub(super) fn toolchain(&self) -> Result<Toolchain, Diagnostic> {
        let Some(name) = &self.on else {
            return Ok(Toolchain::from_variable(std::env::var("CC").ok().as_deref()));
        };
        Toolchain::emulated(name).ok_or_else(|| {
            let names: Vec<&str> = Toolchain::emulated_machines().collect();
            let help = format!("there are emulators of {}", names.join(", "));
            mismatch(format!("there is no emulator of '{name}'")).with_help(help)
        })
    }
}

/// Says what an emulated board has counted.
pub(super) fn report(footprint: &Footprint, cost: &Cost, console: &Console) {
    console.print(&format!(
        "{} executed instructions\nflash {} bytes: {}\nRAM {}, {} bytes of stack\n",
        cost.instructions,
        footprint.flash_bytes,
        describe_flash(footprint),
        describe_ram(footprint),
        cost.stack_bytes,
    ));
}

/// Static memory, and what the caller gives to every run.
fn describe_ram(footprint: &Footprint) -> String {
    let pools = match footprint.pool_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} of the caller's pools"),
    };
    format!("{} bytes of static memory{pools}", footprint.ram_bytes)
}

fn describe_flash(footprint: &Footprint) -> String {
    let constants = footprint.constants_bytes;
    format!("{constants} of constants, {} of code", footprint.flash_bytes.saturating_sub(constants))
}

/// A number of bytes such as `64K`, where K is 1024 bytes.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("'{text}' is no size such as 65536, 64K or 1M");
    let (digits, unit) = match text.char_indices().last() {
        Some((end, 'k' | 'K')) => (&text[..end], 1 << 10),
        Some((end, 'm' | 'M')) => (&text[..end], 1 << 20),
        _ => (text, 1_usize),
    };
    let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(wrong)?;
    digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("65536", 65536), ("64K", 65536), ("64k", 65536), ("2M", 2 << 20)] {
            assert_eq!(size(text), Ok(bytes));
        }
        for wrong in ["", "K", "-1", "+1", "1.5M", "64 K", "64KiB", "99999999999999999999", "99999999999999999M", "6é"]
        {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn built_models_are_held_to_the_limits() {
        let footprint =
            Footprint { flash_bytes: 1000, constants_bytes: 900, ram_bytes: 500, data_bytes: 0, pool_bytes: 0 };
        let memory = |ram, flash| Memory { ram: Some(ram), flash: Some(flash) };
        assert!(memory(510, 1000).check_built(&footprint, 10).is_ok());
        let failure = memory(509, 999).check_built(&footprint, 10).unwrap_err();
        let messages: Vec<&str> = failure.diagnostics.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(messages[0], "510 bytes of RAM are needed, 1 more than the limit of 509");
        assert_eq!(messages[1], "1000 bytes of flash are needed, 1 more than the limit of 999");
        assert_eq!(failure.diagnostics[1].notes, ["900 of constants, 100 of code"]);
        let pools = Footprint { pool_bytes: 64_000, ..footprint };
        let failure = memory(64_509, 1000).check_built(&pools, 10).unwrap_err();
        assert_eq!(failure.diagnostics[0].message, "64510 bytes of RAM are needed, 1 more than the limit of 64509");
        let parts = "500 bytes of static memory, 64000 of the caller's pools, 10 of inputs and outputs";
        assert_eq!(failure.diagnostics[0].notes, [parts]);
    }
}
