//! The build systems and their files.

use crate::toolchain::Board;

/// A build system that a project is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// A Makefile and a program for POSIX systems
    Posix,
    /// A CMake project with a program
    Cmake,
    /// A Makefile and a program for a microcontroller, which an emulator runs
    BareMetal,
    /// A Zephyr application
    Zephyr,
    /// An Arduino library with a sketch
    Arduino,
    /// A PlatformIO project
    Platformio,
    /// An ESP-IDF project with the model as a component
    EspIdf,
    /// A Python package with the model as a function on numpy arrays
    Python,
    /// A Rust crate without the standard library, with a safe function around the C
    Cargo,
}

/// Files of a template: path in the project and text with placeholders.
pub(super) type Files = &'static [(&'static str, &'static str)];

macro_rules! template {
    ($($path:literal: $source:literal,)+) => {
        &[$(($path, include_str!(concat!("../../templates/", $source))),)+]
    };
}

impl Template {
    /// Its files, for a board that is emulated or for anything else.
    pub(super) fn files(self, board: Option<&Board>) -> Files {
        match self {
            Template::BareMetal => template! {
                "Makefile": "bare-metal/Makefile",
                "memory.ld": "bare-metal/memory.ld",
                "src/main.c": "bare-metal/main.c",
            },
            Template::Cmake if board.is_some() => template! {
                "CMakeLists.txt": "cmake/CMakeLists.txt",
                "memory.ld": "bare-metal/memory.ld",
                "src/main.c": "bare-metal/main.c",
            },
            Template::Platformio if board.is_some() => template! {
                "platformio.ini": "platformio/board.ini",
                "src/main.c": "common/firmware.c",
            },
            Template::Posix => template! { "Makefile": "posix/Makefile", "src/main.c": "common/main.c", },
            Template::Cmake => template! { "CMakeLists.txt": "cmake/CMakeLists.txt", "src/main.c": "common/main.c", },
            Template::Zephyr => template! {
                "CMakeLists.txt": "zephyr/CMakeLists.txt",
                "prj.conf": "zephyr/prj.conf",
                "src/main.c": "common/firmware.c",
            },
            Template::Arduino => template! {
                "library.properties": "arduino/library.properties",
                "examples/run/run.ino": "arduino/run.ino",
            },
            Template::Platformio => template! {
                "platformio.ini": "platformio/platformio.ini",
                "src/main.c": "common/main.c",
            },
            Template::EspIdf => template! {
                "CMakeLists.txt": "esp-idf/CMakeLists.txt",
                "main/CMakeLists.txt": "esp-idf/main.cmake",
                "main/main.c": "common/firmware.c",
                "components/tvmgen_@MODEL@/CMakeLists.txt": "esp-idf/component.cmake",
            },
            Template::Python => template! {
                "pyproject.toml": "python/pyproject.toml",
                "setup.py": "python/setup.py",
                "library.c": "python/library.c",
                "tvmgen_@MODEL@/__init__.py": "python/init.py",
                "tvmgen_@MODEL@/_library.py": "../../python/package/mlc/_library.py",
            },
            Template::Cargo => template! {
                "Cargo.toml": "cargo/Cargo.toml",
                "build.rs": "cargo/build.rs",
                "src/lib.rs": "cargo/lib.rs",
                "examples/run.rs": "cargo/run.rs",
            },
        }
    }
}
