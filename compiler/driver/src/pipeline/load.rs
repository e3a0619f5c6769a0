//! Reading a model file: each format's reader, with the files beside it.

use super::failure::{Failure, named};
use super::frontends::{self, ModelFile};
use super::model::{LoadOptions, Loaded};
use crate::files;
use crate::format::{self, Format};
use crate::render::Sources;
#[cfg(not(feature = "relay"))]
use crate::toolchain::Toolchain;
use crate::weights::{self, StoredWeights};
use bytes::Bytes;
use mlc_ir::{Code, Diagnostic, Location};
use std::path::Path;

/// The format of a file whose content is given; where that doesn't tell, its name may.
///
/// # Errors
/// `MLC0003` when it is none that mlc knows.
pub fn detect(path: &Path, bytes: &[u8], format: Option<Format>) -> Result<Format, Diagnostic> {
    format.or_else(|| format::detect(bytes)).or_else(|| format::of_name(path)).ok_or_else(|| {
        let message = "the file is of no format that mlc knows";
        let mut diagnostic = Diagnostic::error(Code::FormatUnknown, named(path), message)
            .with_help("name the format with --format if you know better");
        if path.extension().is_some_and(|extension| extension == "bin") {
            diagnostic = diagnostic.with_help("give the .param file; mlc finds the .bin file beside it");
        }
        diagnostic
    })
}

/// Reads a model file and makes a graph of it.
///
/// # Errors
/// Everything that stands in the way: files, their damage, unsupported operators, unknown shapes.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Loaded, Failure> {
    let mut loaded = load_format(path, options);
    // What is found about a described operator points into its description.
    if let Some(described) = &options.described {
        let (Ok(Loaded { sources, .. }) | Err(Failure { sources, .. })) = &mut loaded;
        sources.extend(described.sources.clone());
    }
    loaded
}

/// Reads a model file as its format wants it.
fn load_format(path: &Path, options: &LoadOptions) -> Result<Loaded, Failure> {
    let bytes = files::read(path)?;
    let format = detect(path, &bytes, options.format)?;
    if let Some(toolchain) = &options.from_relay {
        if format != Format::Mlf {
            let message = format!("--from relay is for archives, the file is of the format {format}");
            return Err(Diagnostic::error(Code::OptionMismatch, named(path), message).into());
        }
        return load_from_relay(path, &bytes, options, toolchain);
    }
    if !options.bindings.is_empty() && !format.leaves_interface_open() {
        let message = format!("a file of the format {format} says itself what its inputs, weights and outputs are");
        return Err(Diagnostic::error(Code::OptionMismatch, named(path), message)
            .with_help(
                "--bind, --inputs, --output NAME=PLACE, --state NAME, --cast-weights and --require-all-weights are for files \
                 that don't, as ARK's",
            )
            .into());
    }
    if options.described.is_some() && matches!(format, Format::Ir | Format::Mlf) {
        let message = format!("a file of the format {format} brings the code of all its operators along");
        return Err(Diagnostic::error(Code::OptionMismatch, named(path), message)
            .with_help("give --op-descriptions when the model itself is compiled")
            .into());
    }
    if format == Format::Ir {
        return load_ir(path, &bytes, options);
    }
    match frontends::find(format) {
        Some(frontend) => (frontend.load)(&ModelFile { path, bytes: &bytes, options }),
        None => Err(unreadable_format(path, format).into()),
    }
}

#[cfg(feature = "relay")]
use super::from_relay::load as load_from_relay;

#[cfg(not(feature = "relay"))]
fn load_from_relay(path: &Path, _: &Bytes, _: &LoadOptions, _: &Toolchain) -> Result<Loaded, Failure> {
    Err(unreadable_format(path, Format::Relay).into())
}

/// Reads the text of a graph, and its large constants from the file beside it.
fn load_ir(path: &Path, bytes: &Bytes, options: &LoadOptions) -> Result<Loaded, Failure> {
    let name = path.display().to_string();
    let sources: Sources = [(name.clone(), bytes.clone())].into_iter().collect();
    let fail = |diagnostics: Vec<Diagnostic>| {
        let diagnostics = diagnostics.into_iter().map(|diagnostic| diagnostic.in_file(&name)).collect();
        Failure { diagnostics, sources: sources.clone() }
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let location = Location::byte_offset(error.valid_up_to() as u64);
        fail(vec![Diagnostic::error(Code::TextSyntax, location, "the text isn't UTF-8")])
    })?;
    let file = options.weights.clone().or_else(|| weights::find(path));
    let stored = file.as_deref().map_or(Ok(StoredWeights::default()), weights::read)?;
    let graph = mlc_ir::text::parse(text, &stored).map_err(fail)?;
    mlc_ir::verify(&graph).map_err(fail)?;
    Ok(Loaded::new(graph, Format::Ir, Vec::new(), sources))
}

/// A format that is recognised, but has no reader.
fn unreadable_format(path: &Path, format: Format) -> Diagnostic {
    if let Some(feature) = format.feature() {
        let message = format!("this build of mlc doesn't read the format {format}");
        return Diagnostic::error(Code::FormatUnknown, named(path), message)
            .with_help(format!("build mlc with the feature '{feature}', which is on by default"));
    }
    let message = format!("the file is of the format {format}, which this version of mlc recognises but can't read");
    let diagnostic = Diagnostic::error(Code::FormatUnknown, named(path), message);
    format.way_in().map_or(diagnostic.clone(), |help| diagnostic.with_help(help))
}
