//! [`Tools`]: what makes machine code for another machine.

use serde::Serialize;

/// What programs run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Nothing: firmware, which brings its own C library and start-up code.
    None,
    /// Linux, with the compiler's own C library.
    Linux,
    /// A WebAssembly runtime with the system interface WASI.
    Wasi,
}

/// The programs that make machine code for another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tools {
    /// Name of the C compiler, such as `arm-none-eabi-gcc`.
    pub compiler: String,
    /// Name of what makes static libraries.
    pub archiver: String,
    /// What the programs run on.
    pub system: System,
}

impl Tools {
    /// Those of the GNU family whose names start with a prefix, such as `arm-none-eabi-`.
    pub fn gnu(prefix: &str, system: System) -> Tools {
        Tools { compiler: format!("{prefix}gcc"), archiver: format!("{prefix}ar"), system }
    }

    /// Whether they make firmware.
    pub fn are_bare_metal(&self) -> bool {
        self.system == System::None
    }
}
