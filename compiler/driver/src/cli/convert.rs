//! `mlc convert`

use super::console::Console;
use super::operators::OperatorOptions;
use super::words::mismatch;
use crate::pipeline::Failure;
#[cfg(any(feature = "ark", feature = "pnnx", feature = "tennis"))]
use crate::{format::Format, pipeline};
use clap::Args;
#[cfg(any(feature = "ark", feature = "pnnx", feature = "tennis"))]
use mlc_ir::{Code, Diagnostic, Location};
use std::ffi::OsStr;
#[cfg(any(feature = "ark", feature = "pnnx", feature = "tennis"))]
use std::path::Path;
use std::path::PathBuf;

/// `mlc convert`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  mlc convert old.pnnx.param new.pnnx.param        writes new.pnnx.bin too
  mlc convert old.tsm new.tsm                      nodes in topological order, parameters by name
  mlc convert seed.json model.json                 an ARK model in the current dialect
  mlc convert net.il net.json                      a LightNet text as JSON
  mlc convert model.onnx model.relay               the model as Relay text, weights included")]
pub struct Convert {
    /// The model: a PNNX model's .param file, a TenniS module, an ARK model's .json, a LightNet model's .json or .il, or any
    /// model to be written as Relay text
    pub input: PathBuf,
    /// The new .param file; the weights go into a .bin file beside it. Or a .tsm, a .json or a .relay file
    pub output: PathBuf,
    /// Without white space, for a .json file
    #[arg(long)]
    pub compact: bool,
    /// File of the weights, if it isn't beside the model
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Operators that mlc doesn't have.
    #[command(flatten)]
    pub operators: OperatorOptions,
}

/// Writes a model as ARK, LightNet, PNNX or TenniS, or as Relay text.
#[cfg_attr(
    not(any(feature = "ark", feature = "lightnet", feature = "pnnx", feature = "relay", feature = "tennis")),
    allow(unused_variables)
)]
pub(super) fn convert(arguments: &Convert, console: &Console) -> Result<(), Failure> {
    match arguments.output.extension().and_then(OsStr::to_str) {
        #[cfg(feature = "lightnet")]
        Some("json") if lightnet::is_one(&arguments.input)? => lightnet::write(arguments, console),
        #[cfg(feature = "ark")]
        Some("json") => ark::write(arguments, console),
        #[cfg(feature = "relay")]
        Some("relay") => relay::write(arguments, console),
        #[cfg(feature = "pnnx")]
        Some("param") => pnnx::write(arguments, console),
        #[cfg(feature = "tennis")]
        Some("tsm") => tennis::write(arguments, console),
        _ => {
            let output = arguments.output.display();
            let message =
                format!("'{output}' ends in none of .json, .param, .relay and .tsm, the forms that can be written");
            Err(mismatch(message).into())
        }
    }
}

/// What is said of a model of another format than the one that can be written so.
#[cfg(any(feature = "ark", feature = "pnnx", feature = "tennis"))]
fn check_format(input: &Path, file: &[u8], wanted: Format) -> Result<(), Failure> {
    let format = pipeline::detect(input, file, None)?;
    if format == wanted {
        return Ok(());
    }
    let location = Location::default().in_file(input.display().to_string());
    let message = format!("a model of the format {format} can't be written as {wanted}");
    Err(Diagnostic::error(Code::RelatedFormat, location, message).into())
}

#[cfg(feature = "ark")]
mod ark {
    use super::{Console, Convert, Failure, check_format};
    use crate::files;
    use crate::format::Format;
    use crate::pipeline::frontends::read_ark;
    use crate::render::Sources;
    use mlc_ark::Form;
    use std::io::{BufWriter, Write};

    /// Writes an ARK model of any dialect as the current one has it.
    pub fn write(arguments: &Convert, console: &Console) -> Result<(), Failure> {
        let Convert { input, output, compact, .. } = arguments;
        let file = files::read(input)?;
        check_format(input, &file, Format::Ark)?;
        let model = read_ark(input, &file)?;
        console.report(&model.warnings, &Sources::new());
        let form = if *compact { Form::Compact } else { Form::Pretty };
        files::write_atomically_with(output, |file| {
            let mut file = BufWriter::new(file);
            mlc_ark::write(&model, form, &mut file)?;
            file.flush()
        })?;
        console.status(&format!("wrote {}", output.display()));
        Ok(())
    }
}

#[cfg(feature = "lightnet")]
mod lightnet {
    use super::{Console, Convert, Failure};
    use crate::files;
    use crate::format::Format;
    use crate::pipeline;
    use crate::pipeline::frontends::{RawLightnet, read_lightnet};
    use mlc_lightnet::Form;
    use std::io::{BufWriter, Write};

    /// Whether a file holds a LightNet model. Others that can be written as JSON are ARK's.
    pub fn is_one(path: &std::path::Path) -> Result<bool, Failure> {
        Ok(pipeline::detect(path, &files::read(path)?, None)? == Format::Lightnet)
    }

    /// Writes a LightNet model, of either form, as JSON.
    pub fn write(arguments: &Convert, console: &Console) -> Result<(), Failure> {
        let Convert { input, output, compact, .. } = arguments;
        let RawLightnet { model, warnings, sources } = read_lightnet(input, &files::read(input)?)?;
        console.report(&warnings, &sources);
        let form = if *compact { Form::Compact } else { Form::Pretty };
        files::write_atomically_with(output, |file| {
            let mut file = BufWriter::new(file);
            mlc_lightnet::write(&model, form, &mut file)?;
            file.flush()
        })?;
        console.status(&format!("wrote {}", output.display()));
        Ok(())
    }
}

#[cfg(feature = "pnnx")]
mod pnnx {
    use super::{Console, Convert, Failure, check_format};
    use crate::files;
    use crate::format::Format;
    use crate::pipeline::frontends::{RawPnnx, read_pnnx};
    use mlc_ir::{Code, Diagnostic, Location};

    /// Writes a PNNX model as the current exporter does.
    pub fn write(arguments: &Convert, console: &Console) -> Result<(), Failure> {
        let Convert { input, output, weights, .. } = arguments;
        let file = files::read(input)?;
        check_format(input, &file, Format::Pnnx)?;
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

#[cfg(feature = "tennis")]
mod tennis {
    use super::{Console, Convert, Failure, check_format};
    use crate::files;
    use crate::format::Format;
    use crate::pipeline::frontends::read_tennis;
    use crate::render::Sources;
    use std::io::BufWriter;

    /// Writes a TenniS module with its nodes in topological order and their parameters by name.
    pub fn write(arguments: &Convert, console: &Console) -> Result<(), Failure> {
        let Convert { input, output, .. } = arguments;
        let file = files::read(input)?;
        check_format(input, &file, Format::Tennis)?;
        let (model, warnings) = read_tennis(input, &file)?;
        console.report(&warnings, &Sources::new());
        files::write_atomically_with(output, |file| mlc_tennis::write(&model, &mut BufWriter::new(file)))?;
        console.status(&format!("wrote {}", output.display()));
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
        let Convert { input, output, weights, operators, .. } = arguments;
        let (weights, described) = (weights.clone(), operators.described.clone());
        let options = LoadOptions { weights, described, ..LoadOptions::default() };
        let loaded = load(input, &options)?;
        console.report(&loaded.warnings, &loaded.sources);
        files::write_atomically_with(output, |file| mlc_relay::write(&loaded.graph, &mut BufWriter::new(file)))?;
        console.status(&format!("wrote {}", output.display()));
        Ok(())
    }
}
