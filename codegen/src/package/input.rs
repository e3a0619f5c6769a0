//! What goes into an archive: compiled models, the machine that they are for and the version of the format.

use crate::module::Module;
use crate::target::Target;
use std::io;

/// A version of the Model Library Format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FormatVersion {
    /// As TVM 0.8 wrote it: one model, fixed file names, targets by device type.
    Five,
    /// Targets are a list.
    Six,
    /// Several models, each with its own file names: TVM 0.9 to 0.18.
    #[default]
    Seven,
}

impl FormatVersion {
    /// Its number in `metadata.json`.
    pub fn number(self) -> u32 {
        match self {
            FormatVersion::Five => 5,
            FormatVersion::Six => 6,
            FormatVersion::Seven => 7,
        }
    }
}

/// Writes the text of a file piece by piece.
pub type TextWriter<'a> = &'a dyn Fn(&mut dyn io::Write) -> io::Result<()>;

/// A compiled model and its texts.
#[derive(Clone, Copy)]
pub struct PackageModel<'a> {
    /// The code.
    pub module: &'a Module,
    /// The optimised graph in the text form of the intermediate representation.
    pub graph_text: &'a str,
    /// Writes the model as it was imported, as Relay text.
    pub relay: Option<TextWriter<'a>>,
}

/// What goes into an archive.
pub struct Package<'a> {
    /// The models, with different names; exactly one for versions before 7.
    pub models: Vec<PackageModel<'a>>,
    /// The machine that the code was generated for.
    pub target: &'a Target,
    /// Time stamp of the entries and of `export_datetime`, in seconds since 1970, at most 2^33.
    pub modified: u64,
    /// Version of the format.
    pub version: FormatVersion,
}
