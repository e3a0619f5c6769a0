//! The build systems and their files.

/// A build system that a project is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// A Makefile and a program for POSIX systems
    Posix,
    /// A CMake project with a program
    Cmake,
    /// A Zephyr application
    Zephyr,
    /// An Arduino library with a sketch
    Arduino,
    /// A PlatformIO project
    Platformio,
    /// An ESP-IDF project with the model as a component
    EspIdf,
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
    /// Its files.
    pub(super) fn files(self) -> Files {
        match self {
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
            Template::Cargo => template! {
                "Cargo.toml": "cargo/Cargo.toml",
                "build.rs": "cargo/build.rs",
                "src/lib.rs": "cargo/lib.rs",
                "examples/run.rs": "cargo/run.rs",
            },
        }
    }
}
