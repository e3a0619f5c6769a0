//! What a command works on: a model to be loaded and compiled, or an archive that was compiled before.

use super::bindings::Inputs;
use super::console::Console;
use super::hardware::Machine;
use super::model::Model;
use super::modes::ArchivePart;
use super::options::CodeOptions;
use super::words::mismatch;
use crate::bundle::{Bundle, Port};
use crate::format::Format;
use crate::inputs::{self, InputPort};
use crate::pipeline::{self, CompileOptions, Compiled, Failure, LoadOptions, Loaded};
use crate::render::Sources;
use crate::toolchain::{Program, Toolchain};
use crate::tuning::Tuning;
use crate::{files, targets};
use indexmap::IndexMap;
use mlc_codegen::{Execution, Target, WeightsAs};
use mlc_ir::stateful;
use mlc_ir::{Code, DType, Diagnostic, Graph, Objective, Tensor};
use mlc_passes::Reference;
use std::path::PathBuf;

/// What the options say about loading a model, which is the one of a name where an archive holds several. `updated` are names of
/// memory whose content after the run is wanted.
pub(super) fn load_options(model: &Model, model_name: &str, updated: Vec<String>) -> LoadOptions {
    LoadOptions {
        format: model.format,
        weights: model.weights.first().cloned(),
        parameters: model.params.clone(),
        from_relay: model.from.map(|ArchivePart::Relay| Toolchain::from_variable(std::env::var("CC").ok().as_deref())),
        input_shapes: model.input_shape.iter().cloned().collect(),
        input_dtypes: model.input_dtype.iter().cloned().collect(),
        input_values: model.input_value.iter().cloned().collect(),
        dimensions: model.dimensions.iter().cloned().collect(),
        model_name: model_name.to_owned(),
        bindings: model.bindings.bindings(&model.outputs, updated),
        described: model.operators.described.clone(),
    }
}

/// Loads a model and reports its warnings. Shapes and data types that neither the model nor an option says are those of the
/// input files.
fn load(model: &Model, code: &CodeOptions, input_files: &[String], console: &Console) -> Result<Loaded, Failure> {
    if model.weights.len() > 1 {
        return Err(mismatch("--weights is given more than once".into()).into());
    }
    let updated = code.states.iter().filter(|(_, output)| output.is_none()).map(|(input, _)| input.clone());
    let mut options = load_options(model, first_name(code), updated.collect());
    let progress = console.progress("loading");
    let mut loaded = pipeline::load(&model.path, &options);
    if options.input_shapes.is_empty() && !input_files.is_empty() && leaves_types_open(&loaded) {
        let input_files = &model.interface.own_names(input_files);
        options.input_shapes = inputs::shapes(input_files);
        // Files of raw numbers don't have the type that the model is to have.
        if options.input_dtypes.is_empty() && model.interface.raw_types.is_empty() {
            let types = inputs::types(input_files).into_iter();
            options.input_dtypes = types.map(|(name, ty)| (name, ty.dtype)).collect();
        }
        loaded = pipeline::load(&model.path, &options);
    }
    drop(progress);
    let loaded = loaded?;
    let format = loaded.format;
    if !model.input_dtype.is_empty() && !format.has_open_inputs() {
        let message = format!("--input-dtype is for inputs of any type, which {format} doesn't have");
        return Err(mismatch(message).into());
    }
    if !model.input_value.is_empty() && !format.takes_input_values() {
        let message = format!("--input-value is for ONNX and TenniS: {format} doesn't make shapes of what inputs say");
        return Err(mismatch(message).into());
    }
    console.report(&loaded.warnings, &loaded.sources);
    console.detail(|| format!("loaded {} ({}): {} nodes", model.path.display(), loaded.format, loaded.graph.len()));
    Ok(loaded)
}

/// Loads a model as [`load`] does, ties its states and changes its interface as the options say.
pub(super) fn load_for(
    model: &Model,
    code: &CodeOptions,
    input_files: &[String],
    console: &Console,
) -> Result<Loaded, Failure> {
    let mut loaded = load(model, code, input_files, console)?;
    for (input, output) in &code.states {
        let input = loaded.aliases.get(input).unwrap_or(input);
        match output {
            Some(output) => stateful::tie(&mut loaded.graph, input, output)?,
            // What has a weight as its first value is tied already.
            None if loaded.graph.states.iter().any(|state| *state.name == **input) => {}
            None => stateful::tie(&mut loaded.graph, input, &format!("{input}.next"))?,
        }
    }
    if code.stateful {
        let warnings = stateful::keep_recurrent_states(&mut loaded.graph)?;
        console.report(&warnings, &loaded.sources);
    }
    model.interface.apply(&mut loaded)?;
    mlc_ir::verify(&loaded.graph)?;
    Ok(loaded)
}

/// Whether the types of the input files may say what the model doesn't: it can't be loaded without them and for no other
/// reason, or an extent or a data type was assumed.
fn leaves_types_open(loaded: &Result<Loaded, Failure>) -> bool {
    let open = |found: &Diagnostic| found.code == Code::InputShapeUnknown;
    match loaded {
        Ok(loaded) => loaded.warnings.iter().any(open),
        Err(failure) => failure.diagnostics.iter().filter(|found| found.is_error()).all(open),
    }
}

/// A target by its name.
pub(super) fn target(name: &str) -> Result<Target, Diagnostic> {
    targets::find(name).ok_or_else(|| {
        let names: Vec<String> = targets::all().into_iter().map(|target| target.name).collect();
        mismatch(format!("there is no target '{name}'")).with_help(format!("the targets are {}", names.join(", ")))
    })
}

/// What the options say of the code; `default_target` is the one without `--target`.
pub(super) fn compile_options(
    code: &CodeOptions,
    default_target: &str,
    console: &Console,
) -> Result<CompileOptions, Failure> {
    let target = target(code.target.as_deref().unwrap_or(default_target))?;
    let given = first_name(code);
    let model_name = pipeline::model_name(given);
    if model_name != given {
        console.status(&format!("the model's name in C is '{model_name}'"));
    }
    let objective = code.optimize.map_or(target.objective, Objective::from);
    let target = target.with_floating_point(code.fp.into()).with_objective(objective);
    let (limits, modified) = (code.memory.limits(), source_date_epoch()?);
    if code.extra_work.is_some() && objective != Objective::Ram {
        return Err(mismatch("--extra-work goes with --optimize ram".into()).into());
    }
    let schedules = code.schedules.iter().cloned().collect();
    let tuning = code.tuning.as_ref().map(|path| Tuning::read(path, &target.name)).transpose()?;
    let measured = tuning.map(|tuning| tuning.schedules).unwrap_or_default();
    let reference = code.int8_reference.map(Reference::from);
    let weights_type = code.weights_type.map(DType::from);
    let named =
        CompileOptions { model_name, target, limits, modified, schedules, measured, ..CompileOptions::default() };
    let execution = Execution { threads: code.threads.into(), ..Execution::default() };
    Ok(CompileOptions { reference, weights_type, execution, extra_work: code.extra_work, ..named })
}

/// What the options say of code that is only run: nobody keeps the archive, so the linker gets the weights, as an object file where
/// the machine's is known, or by the assembler. As text they would be most of what the C compiler reads.
pub(super) fn program_options(
    code: &CodeOptions,
    machine: &Machine,
    console: &Console,
) -> Result<CompileOptions, Failure> {
    let mut options = compile_options(code, machine.default_target(), console)?;
    if machine.on.is_none() {
        options.execution.weights = match options.target.object_format() {
            Some(_) => WeightsAs::Object,
            None if machine.toolchain()?.includes_files() => WeightsAs::Incbin,
            None => WeightsAs::C,
        };
    }
    Ok(options)
}

/// The model's name: of the one to make, or of one in an archive.
fn first_name(code: &CodeOptions) -> &str {
    code.model_names.first().map_or("default", String::as_str)
}

/// The variable that fixes time stamps in reproducible builds.
fn source_date_epoch() -> Result<u64, Diagnostic> {
    /// The largest time that a tar header holds.
    const LATEST: u64 = (1 << 33) - 1;
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH") else { return Ok(0) };
    let seconds = value.to_str().and_then(|text| text.parse().ok()).filter(|&seconds: &u64| seconds <= LATEST);
    seconds.ok_or_else(|| {
        mismatch(format!("SOURCE_DATE_EPOCH is '{}', a number of seconds since 1970 is expected", value.display()))
    })
}

/// A program of a model or an archive, and its inputs under the names that the program has for them.
pub(super) fn build(
    model: &Model,
    code: &CodeOptions,
    machine: &Machine,
    inputs: &Inputs,
    console: &Console,
) -> Result<(Program, Inputs), Failure> {
    let toolchain = machine.toolchain()?;
    let (bundle, inputs) = bundle(model, code, machine, inputs, console)?;
    let _progress = console.progress("building");
    let program = toolchain.build(&bundle)?;
    check_built(&program, code)?;
    Ok((program, inputs))
}

/// Holds a program, if its memory was measured, to the limits that the user gave.
pub(super) fn check_built(program: &Program, code: &CodeOptions) -> Result<(), Failure> {
    let ports = program.inputs.iter().chain(&program.outputs);
    let io_bytes = ports.map(|port| port.ty.bytes()).sum();
    program.footprint.map_or(Ok(()), |footprint| code.memory.check_built(&footprint, io_bytes))
}

/// The archive of a model, or the archive that the user gave, and its inputs under the names that it has for them.
pub(super) fn bundle(
    model: &Model,
    code: &CodeOptions,
    machine: &Machine,
    inputs: &Inputs,
    console: &Console,
) -> Result<(Bundle, Inputs), Failure> {
    if let Some(bundle) = archive_bundle(model, code, machine, inputs.typed())? {
        return Ok((bundle, inputs.clone()));
    }
    let (_, compiled, inputs) = compiled(model, code, machine, inputs, console)?;
    Ok((compiled.bundle()?, inputs))
}

/// A model as it was imported, its code to be run here, and its inputs under the names that it has for them.
pub(super) fn compiled(
    model: &Model,
    code: &CodeOptions,
    machine: &Machine,
    inputs: &Inputs,
    console: &Console,
) -> Result<(Graph, Compiled, Inputs), Failure> {
    let loaded = load_for(model, code, inputs.typed(), console)?;
    let inputs = renamed(inputs, model, &loaded.aliases);
    let options = program_options(code, machine, console)?;
    let _progress = console.progress("compiling");
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {})
        .map_err(|diagnostics| in_model(diagnostics, model, loaded.sources))?;
    Ok((loaded.graph, compiled, inputs))
}

/// The archive that the user gave, if it is one.
pub(super) fn archive_bundle(
    model: &Model,
    code: &CodeOptions,
    machine: &Machine,
    input_files: &[String],
) -> Result<Option<Bundle>, Failure> {
    let bytes = files::read(&model.path)?;
    if pipeline::detect(&model.path, &bytes, model.format)? == Format::Mlf && model.from.is_none() {
        if code.stateful || !code.states.is_empty() {
            let message = "the archive is compiled: which states it keeps was decided then";
            return Err(mismatch(message.into()).with_help("give --stateful and --state to 'mlc compile'").into());
        }
        if !model.bindings.bindings(&model.outputs, Vec::new()).is_empty() {
            let message = "the archive is compiled: its inputs, weights and outputs were decided then";
            return Err(mismatch(message.into())
                .with_help("give --inputs, --bind, --output and what is said of weights to 'mlc compile'")
                .into());
        }
        refuse_changes(model)?;
        if model.operators.described.is_some() {
            let message = "the archive is compiled: it has the code of all its operators";
            return Err(mismatch(message.into()).with_help("give --op-descriptions to 'mlc compile'").into());
        }
        if code.weights_type.is_some() {
            let message = "the archive is compiled: what its weights are was decided then";
            return Err(mismatch(message.into()).with_help("give --weights-type to 'mlc compile'").into());
        }
        if code.threads > 1 || code.tuning.is_some() {
            let message = "the archive is compiled: its schedules, and how many threads compute it, were decided then";
            return Err(mismatch(message.into()).with_help("give --threads and --tuning to 'mlc compile'").into());
        }
        if code.memory.is_given() && machine.on.is_none() {
            let message = "the archive is compiled: what it takes of a machine is known once it is built for one";
            return Err(mismatch(message.into()).with_help("give --on, or --ram and --flash to 'mlc compile'").into());
        }
        let file = model.path.display().to_string();
        let bundle = Bundle::parse_model(&bytes, first_name(code));
        let mut bundle = bundle.map_err(|error| error.in_file(&file))?;
        bundle.adopt_shapes(&inputs::shapes(input_files));
        return Ok(Some(bundle));
    }
    Ok(None)
}

/// Refuses to change the interface of code that is generated.
pub(super) fn refuse_changes(model: &Model) -> Result<(), Diagnostic> {
    if !model.interface.is_given() {
        return Ok(());
    }
    let message = "the archive is compiled: what its inputs and outputs are was decided then";
    Err(mismatch(message.into()).with_help("give what is said of the interface to 'mlc compile'"))
}

/// Input files under the names of the model's inputs, where they are given by other names of these, and those that say what an input always is.
pub(super) fn renamed(inputs: &Inputs, model: &Model, aliases: &IndexMap<String, String>) -> Inputs {
    let always = |(name, file): &(String, PathBuf)| (aliases.get(name).unwrap_or(name).clone(), file.clone());
    let rename = |argument: &String| match argument.split_once('=') {
        Some((alias, file)) => aliases.get(alias).map_or_else(|| argument.clone(), |name| format!("{name}={file}")),
        None => argument.clone(),
    };
    Inputs {
        files: inputs.files.iter().map(rename).collect(),
        always: model.input_value.iter().map(always).collect(),
        ..inputs.clone()
    }
}

/// Diagnostics of a later step, which knows the graph only, in the model's file.
pub(super) fn in_model(diagnostics: Vec<Diagnostic>, model: &Model, sources: Sources) -> Failure {
    let file = model.path.display().to_string();
    let diagnostics = diagnostics.into_iter().map(|diagnostic| diagnostic.in_file(&file)).collect();
    Failure { diagnostics, sources }
}

/// The tensors of the inputs: from files, or random ones when no file is given, but for those that are always the same.
pub(super) fn read_inputs(inputs: &Inputs, ports: &[InputPort], console: &Console) -> Result<Vec<Tensor>, Failure> {
    let Inputs { files, always, .. } = inputs;
    if !files.is_empty() || ports.iter().all(|(name, _)| inputs::value(always, name).is_some()) {
        return Ok(inputs::read(files, always, ports)?);
    }
    console.status(&format!("no --input is given: using random inputs (seed {})", inputs.seed));
    let known = |port: &&InputPort| inputs::value(always, port.0).is_some();
    let values = inputs::read(&[], always, &ports.iter().filter(known).copied().collect::<Vec<_>>())?;
    let mut tensors = inputs::random(inputs.seed, ports);
    let fixed = tensors.iter_mut().zip(ports).filter(|(_, port)| known(port)).map(|(tensor, _)| tensor);
    fixed.zip(values).for_each(|(tensor, value)| *tensor = value);
    Ok(tensors)
}

/// Names and types of inputs, as files of values are read for.
pub(super) fn input_ports(ports: &[Port]) -> Vec<InputPort<'_>> {
    ports.iter().map(|port| (port.name.as_str(), &port.ty)).collect()
}
