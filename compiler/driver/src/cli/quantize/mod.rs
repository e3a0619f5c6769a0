//! `mlc quantize`

pub mod options;

use super::arguments::Quantize;
use super::compile::stem;
use super::console::Console;
use super::subject::load_options;
use super::texts;
use super::words::is_standard_output;
use crate::calibration;
use crate::files;
use crate::inputs::InputPort;
use crate::pipeline::{self, Failure};
use crate::weights::Weights;
use mlc_ir::Diagnostic;
use mlc_quantize::{Annotated, Options};
use std::path::PathBuf;

pub(super) fn quantize(arguments: &Quantize, console: &Console) -> Result<(), Failure> {
    let Quantize { model, options } = arguments;
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.int8.mlc", stem(&model.path))));
    let to_standard_output = is_standard_output(&path);
    if !to_standard_output {
        texts::refuse_inputs(
            &path,
            std::iter::once(model.path.as_path()).chain(model.weights.iter().map(PathBuf::as_path)),
        )?;
    }
    let progress = console.progress("loading");
    let mut loaded = pipeline::load(&model.path, &load_options(model, "", Vec::new()))?;
    model.interface.apply(&mut loaded)?;
    drop(progress);
    console.report(&loaded.warnings, &loaded.sources);
    let graph = &loaded.graph;
    let ports: Vec<InputPort> =
        graph.inputs().iter().map(|&input| (&*graph.node(input).name, graph.ty(input.into()))).collect();
    let runs = calibration::read(&options.calibration, &ports)?;
    let progress = console.progress("calibrating");
    let settings = Options {
        method: options.method.into(),
        equalise: options.equalise,
        bias_correction: options.bias_correction,
        keep: options.keep.clone(),
        max_error: options.max_error,
        interface: options.interface.into(),
    };
    let file = model.path.display().to_string();
    let quantized = mlc_quantize::quantize(graph, &runs, &settings).map_err(|faults| Failure {
        diagnostics: faults.into_iter().map(|fault| fault.in_file(&file)).collect(),
        sources: loaded.sources.clone(),
    })?;
    drop(progress);
    let notes: Vec<_> = quantized.notes.into_iter().map(|note| note.in_file(&file)).collect();
    console.report(&notes, &loaded.sources);
    if let Some(report) = &options.report {
        // Structures of strings, numbers and lists: writing them to memory can't fail.
        let text = serde_json::to_string_pretty(&quantized.report).unwrap_or_default() + "\n";
        files::write_atomically(report, text.as_bytes())?;
    }
    if let Some(path) = &options.qdq {
        let bytes = qdq(quantized.annotated).map_err(|faults| Failure {
            diagnostics: faults.into_iter().map(|fault| fault.in_file(&file)).collect(),
            sources: loaded.sources.clone(),
        })?;
        files::write_atomically(path, &bytes)?;
    }
    let (text, constants) = mlc_ir::text::print_with_constants(&quantized.graph);
    let mut weights = Weights::default();
    weights.add(&constants);
    texts::write(&text, &weights, (!to_standard_output).then_some(path.as_path()), console)?;
    if to_standard_output {
        console.remark(&quantized.report.text());
    } else {
        console.print(&quantized.report.text());
        console.status(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// The model as an ONNX file.
#[cfg(feature = "onnx")]
fn qdq(annotated: Annotated) -> Result<Vec<u8>, Vec<Diagnostic>> {
    use mlc_onnx::write::{IntegerConstant, Integers};
    use mlc_quantize::StoredConstant;
    let constant =
        |StoredConstant { integers, scales, axis }: StoredConstant| IntegerConstant { integers, scales, axis };
    let Annotated { graph, nodes, tensors, constants, added } = annotated;
    let constants = constants.into_iter().map(|(place, stored)| (place, constant(stored))).collect();
    let added = added.into_iter().map(|(value, stored)| (value, constant(stored))).collect();
    mlc_onnx::write(&graph, &Integers { nodes, tensors, constants, added })
}

#[cfg(not(feature = "onnx"))]
fn qdq(_: Annotated) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let message = "this build of mlc doesn't know the format onnx";
    Err(vec![Diagnostic::error(mlc_ir::Code::FormatUnknown, mlc_ir::Location::default(), message)])
}
