//! `mlc convert`

use super::arguments::Convert;
use super::console::Console;
use super::words::mismatch;
use crate::files;
use crate::format::Format;
use crate::pipeline::{self, Failure, LoadOptions, RawPnnx};
use mlc_ir::{Code, Diagnostic, Location};

pub(super) fn convert(arguments: &Convert, console: &Console) -> Result<(), Failure> {
    let Convert { input, output, weights } = arguments;
    if output.extension().is_some_and(|extension| extension == "relay") {
        return to_relay(arguments, console);
    }
    if output.extension().is_none_or(|extension| extension != "param") {
        let message =
            format!("'{}' ends neither in .param nor in .relay, the forms that can be written", output.display());
        return Err(mismatch(message).into());
    }
    let file = files::read(input)?;
    let format = pipeline::detect(input, &file, None)?;
    if format != Format::Pnnx {
        let location = Location::default().in_file(input.display().to_string());
        let message = format!("a model of the format {format} can't be written as PNNX");
        return Err(Diagnostic::error(Code::RelatedFormat, location, message).into());
    }
    let RawPnnx { model, warnings, sources } = pipeline::read_pnnx(input, &file, weights.as_deref())?;
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

/// Writes the graph of a model of any format as Relay text.
fn to_relay(arguments: &Convert, console: &Console) -> Result<(), Failure> {
    let Convert { input, output, weights } = arguments;
    let options = LoadOptions { weights: weights.clone(), ..LoadOptions::default() };
    let loaded = pipeline::load(input, &options)?;
    console.report(&loaded.warnings, &loaded.sources);
    files::write_atomically_with(output, |file| mlc_relay::write(&loaded.graph, &mut std::io::BufWriter::new(file)))?;
    console.status(&format!("wrote {}", output.display()));
    Ok(())
}
