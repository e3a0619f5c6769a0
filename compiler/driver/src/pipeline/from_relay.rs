//! `--from relay`: the model of an archive by its Relay text, instead of by its code.
//!
//! The text of an archive of ours holds everything. Of other archives, arrays are bound to the text's variables as far as types
//! and shapes allow, and what comes out must compute what the archive's own code computes.

use super::failure::{Failure, in_file};
use super::model::{LoadOptions, Loaded};
use crate::bundle::{self, Bundle};
use crate::compare::{Tolerance, compare};
use crate::files;
use crate::format::Format;
use crate::inputs;
use crate::render::Sources;
use crate::toolchain::Toolchain;
use bytes::Bytes;
use mlc_archive::{Archive, Metadata};
use mlc_ir::{Code, DType, Diagnostic, Graph, Location, Tensor, evaluate};
use mlc_relay::Parameters;
use std::path::Path;

/// How many seeded inputs both are run on.
const RUNS: u64 = 2;

/// Makes a graph of the Relay text of an archive's model.
///
/// # Errors
/// When the archive or its text is damaged, when a variable can't be bound, or when the archive's own code, built with the
/// toolchain, disagrees.
pub(super) fn load(
    path: &Path,
    bytes: &Bytes,
    options: &LoadOptions,
    toolchain: &Toolchain,
) -> Result<Loaded, Failure> {
    let failed = |diagnostic: Diagnostic| Failure::from(in_file(path, vec![diagnostic]));
    let archive = Archive::read(bytes).map_err(failed)?;
    let metadata = Metadata::read(&archive).map_err(failed)?;
    let model = bundle::select(&metadata, &options.model_name).map_err(failed)?;
    let text_path = metadata.relay_path(&model.name);
    if archive.get(&text_path).is_none() {
        return Err(failed(left_out(&text_path)));
    }
    let text = archive.text(&text_path).map_err(failed)?;
    let name = format!("{}/{text_path}", path.display());
    let sources: Sources = [(name.clone(), Bytes::copy_from_slice(text.as_bytes()))].into_iter().collect();
    let in_text = |diagnostics: Vec<Diagnostic>| Failure {
        diagnostics: diagnostics.into_iter().map(|diagnostic| diagnostic.in_file(&name)).collect(),
        sources: sources.clone(),
    };
    let read = |parameters: &Parameters| mlc_relay::read(text, parameters, &options.import_options()).map_err(in_text);
    let exact = mlc_relay::is_exact(text);
    let imported = if exact {
        read(&Parameters::new())?
    } else {
        let bundle = Bundle::parse_model(bytes, &options.model_name).map_err(failed)?;
        let arrays = match &options.parameters {
            Some(path) => files::read(path).and_then(|bytes| mlc_relay::read_parameters(&bytes)),
            None => archive.file(&metadata.parameters_path(&model.name)).and_then(mlc_relay::read_parameters),
        };
        let inputs: Vec<&str> = bundle.inputs.iter().map(|port| port.name.as_str()).collect();
        let bound = mlc_relay::bind(text, &arrays.map_err(failed)?, &inputs).map_err(|error| in_text(vec![error]))?;
        let imported = read(&bound)?;
        check(&imported.graph, &bundle, toolchain).map_err(failed)?;
        imported
    };
    mlc_ir::verify(&imported.graph)?;
    let warnings = imported.warnings.into_iter().map(|warning| warning.in_file(&name)).collect();
    Ok(Loaded::new(imported.graph, Format::Mlf, warnings, sources))
}

fn left_out(path: &str) -> Diagnostic {
    let message = format!("the archive doesn't have the model that it was made of: there is no '{path}' in it");
    Diagnostic::option_mismatch(message)
        .with_note("'mlc compile --no-source-model' makes such archives")
        .with_help("give the model itself, or leave --from out to have the archive's code")
}

fn disagree(message: String) -> Diagnostic {
    let message = format!("the Relay text and the archive's own code disagree: {message}");
    Diagnostic::error(Code::OutputMismatch, Location::default(), message)
        .with_note(
            "the archive's parameters aren't those of its text, and were bound to it by order and shape".to_owned(),
        )
        .with_help("compile the archive without --from relay")
}

/// Runs the archive's own code and the graph on the same inputs.
fn check(graph: &Graph, bundle: &Bundle, toolchain: &Toolchain) -> Result<(), Diagnostic> {
    let order = graph.inputs().iter().map(|&input| {
        let node = graph.node(input);
        let port = bundle.inputs.iter().position(|port| *port.name == *node.name && port.ty == node.results[0]);
        port.ok_or_else(|| disagree(format!("the input `{}` isn't among the code's", node.name)))
    });
    let order = order.collect::<Result<Vec<usize>, Diagnostic>>()?;
    if order.len() != bundle.inputs.len() || graph.outputs().len() != bundle.outputs.len() {
        return Err(disagree("the numbers of inputs or outputs differ".into()));
    }
    let program = toolchain.build(bundle)?;
    let ports: Vec<inputs::InputPort> = program.inputs.iter().map(|port| (port.name.as_str(), &port.ty)).collect();
    for seed in 0..RUNS {
        let given = inputs::random(seed, &ports);
        let own = program.run(&given)?;
        let ordered: Vec<Tensor> = order.iter().map(|&port| given[port].clone()).collect();
        for (index, (own, computed)) in own.iter().zip(evaluate(graph, &ordered)?).enumerate() {
            let comparison = compare(&computed, own, tolerance(own.ty().dtype)).map_err(disagree)?;
            if !comparison.passes() {
                let message = format!(
                    "{} of {} elements of output {index} differ, by up to {}",
                    comparison.mismatches, comparison.elements, comparison.max_absolute
                );
                return Err(disagree(message));
            }
        }
    }
    Ok(())
}

/// Integers may differ by one step, since quantised code may round in other places.
fn tolerance(dtype: DType) -> Tolerance {
    if dtype.is_float() { Tolerance::of(dtype) } else { Tolerance { absolute: 1.0, relative: 0.0 } }
}
