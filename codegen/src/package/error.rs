//! Why a package can't be written.

use std::io;

/// Why a module can't be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A tar header has 255 bytes for a path.
    #[error("the path '{0}' is too long for a tar archive")]
    PathTooLong(String),
    /// A tar header has 11 octal digits for a size.
    #[error("the file '{0}' is too large for a tar archive")]
    FileTooLarge(String),
    /// Versions before 7 have no place for more than one model, and an archive has one for each name.
    #[error("an archive of version {0} can't hold these models: {1}")]
    Models(u32, &'static str),
    /// C files that models bring along keep their names.
    #[error("two models bring along different files of the name '{0}'")]
    FileTwice(String),
    /// An object file is for one kind of machine.
    #[error("mlc knows no object files for the target '{0}': take the weights as C, or compile for the machine itself")]
    NoObjectFormat(String),
    /// The archive can't be written.
    #[error("the archive can't be written: {0}")]
    Io(#[from] io::Error),
}
