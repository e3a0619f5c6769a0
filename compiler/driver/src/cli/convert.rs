//! `mlc convert`

use super::arguments::Convert;
use super::console::Console;
use super::words::mismatch;
use crate::pipeline::Failure;
use std::ffi::OsStr;

/// Writes a model as PNNX, or as Relay text.
#[cfg_attr(not(any(feature = "pnnx", feature = "relay")), allow(unused_variables))]
pub(super) fn convert(arguments: &Convert, console: &Console) -> Result<(), Failure> {
    match arguments.output.extension().and_then(OsStr::to_str) {
        #[cfg(feature = "relay")]
        Some("relay") => relay::write(arguments, console),
        #[cfg(feature = "pnnx")]
        Some("param") => pnnx::write(arguments, console),
        _ => {
            let output = arguments.output.display();
            let message = format!("'{output}' ends neither in .param nor in .relay, the forms that can be written");
            Err(mismatch(message).into())
        }
    }
}

#[cfg(feature = "pnnx")]
mod pnnx {
    use super::{Console, Convert, Failure};
    use crate::files;
    use crate::format::Format;
    use crate::pipeline::detect;
    use crate::pipeline::frontends::{RawPnnx, read_pnnx};
    use mlc_ir::{Code, Diagnostic, Location};

    /// Writes a PNNX model as the current exporter does.
    pub fn write(arguments: &Convert, console: &Console) -> Result<(), Failure> {
        let Convert { input, output, weights } = arguments;
        let file = files::read(input)?;
        let format = detect(input, &file, None)?;
        if format != Format::Pnnx {
            let location = Location::default().in_file(input.display().to_string());
            let message = format!("a model of the format {format} can't be written as PNNX");
            return Err(Diagnostic::error(Code::RelatedFormat, location, message).into());
        }
        let RawPnnx { model, warnings, sources } = read_pnnx(input, &file, weights.as_deref())?;
        console.report(&warnings, &sources);
        let unwritable = |error: mlc_pnnx::WriteError| {
            let location = Location::default().in_file(input.display().to_string());
            Diagnostic::error(Code::FileUnwritable, location, error.to_string())
        };
        let text = mlc_pnnx::to_param_text(&model).map_err(unwritable)?;
        let archive = mlc_pnnx::to_bin(&model).map_err(unwritable)?;
        // The weights first: a .param file whose weights are missing is of no use.
        let bin = output.with_extension("bin");
        files::write_atomically(&bin, &archive)?;
        files::write_atomically(output, text.as_bytes())?;
        console.status(&format!("wrote {} and {}", output.display(), bin.display()));
        Ok(())
    }
}

#[cfg(feature = "relay")]
mod relay {
    use super::{Console, Convert, Failure};
    use crate::files;
    use crate::pipeline::{LoadOptions, load};
    use std::io::BufWriter;

    /// Writes the graph of a model of any format as Relay text.
    pub fn write(arguments: &Convert, console: &Console) -> Result<(), Failure> {
        let Convert { input, output, weights } = arguments;
        let options = LoadOptions { weights: weights.clone(), ..LoadOptions::default() };
        let loaded = load(input, &options)?;
        console.report(&loaded.warnings, &loaded.sources);
        files::write_atomically_with(output, |file| mlc_relay::write(&loaded.graph, &mut BufWriter::new(file)))?;
        console.status(&format!("wrote {}", output.display()));
        Ok(())
    }
}
