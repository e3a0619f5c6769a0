//! Calls of functions that aren't mlc's own: what is written into the kernels' file for them, and the files that they are defined in.

mod once;
mod packed;
mod signature;

use super::emitter::{Emitter, Scope};
use crate::execution::{Execution, Pools};
use crate::loops::spelling::c_type;
use crate::lower::homes::BufferKind;
use crate::lower::{Binding, ExternRoutine, Part, Program, calls};
use crate::module::{Kept, SourceFile};
use indexmap::IndexMap;
use mlc_ir::ops::{CFile, CallConvention, Extern, Instance};
use mlc_ir::{Code, Diagnostic, Location};
use packed::Scratch;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the graph executor's runtime aligns its memory to, in bytes.
const RUNTIME_ALIGNMENT: usize = 64;

fn is_packed(code: &ExternRoutine) -> bool {
    code.op.convention == CallConvention::Packed
}

/// A fault of a call.
fn fault(code: &ExternRoutine, kind: Code, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(kind, Location::default().at_operator("extern", code.op.symbol.clone()), message)
}

/// Checks that the program's functions can be called in the way that is asked for, and that C can declare each.
///
/// # Errors
/// When one wants more of a graph executor than that has, or a function is called with different arguments.
pub(super) fn check(program: &Program, execution: Execution) -> Result<(), Diagnostic> {
    let mut prototypes: IndexMap<&str, String> = IndexMap::new();
    for (_, _, code) in program.calls() {
        if execution.states == Pools::External && is_shared(&code.op) {
            let message = "it keeps something in memory of its own, which all streams would share";
            return Err(fault(code, Code::TargetLimit, message).with_help("leave '--state-pool external' out"));
        }
        if execution.graph && code.op.alignment > RUNTIME_ALIGNMENT {
            let message =
                format!("it needs memory aligned to {} bytes, the graph executor's is to 64", code.op.alignment);
            return Err(fault(code, Code::TargetLimit, message).with_help("compile the model for the executor 'aot'"));
        }
        for symbol in code.op.symbols() {
            let prototype = if is_packed(code) { "packed".to_owned() } else { signature::prototype(&code.op, symbol) };
            if prototypes.entry(symbol).or_insert_with(|| prototype.clone()) != &prototype {
                let message = format!("the C function {symbol} is called with different arguments elsewhere");
                return Err(fault(code, Code::DuplicateDefinition, message));
            }
        }
    }
    Ok(())
}

/// What the file needs before the functions around calls: headers, a way to align memory, and an allocator for packed ones.
pub(super) fn prelude(program: &Program, execution: Execution) -> String {
    let calls = program.calls();
    let mut text = String::new();
    if calls.iter().any(|(_, _, code)| is_packed(code)) {
        text += packed::HEADERS;
        text += if execution.aot.is_some() { packed::ALLOCATOR } else { "" };
    }
    let instances = calls.iter().filter_map(|(_, _, code)| code.op.instance.as_ref());
    let headers: BTreeSet<&str> = instances.map(|instance| &*instance.header).collect();
    for header in headers {
        // No formatting of a String fails.
        let _ = writeln!(text, "#include \"{header}\"");
    }
    if calls.iter().any(|(_, _, code)| aligned_results(code).next().is_some()) {
        text += ALIGNED;
    }
    text
}

/// How memory is aligned in each dialect.
const ALIGNED: &str = "
#if defined(__GNUC__)
#define MLC_ALIGNED(bytes) __attribute__((aligned(bytes)))
#elif defined(__cplusplus) && __cplusplus >= 201103L
#define MLC_ALIGNED(bytes) alignas(bytes)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define MLC_ALIGNED(bytes) _Alignas(bytes)
#else
#error \"the model needs aligned memory: take a compiler of C11, or of GNU C\"
#endif
";

/// The persistent results that ask for more alignment than their elements have.
fn aligned_results(code: &ExternRoutine) -> impl Iterator<Item = usize> + '_ {
    let op = &code.op;
    op.persistent.iter().copied().filter(|&result| op.alignment > op.results[result].dtype.size())
}

/// What a function keeps, and its persistent results: memory of the file.
fn memory(code: &ExternRoutine) -> String {
    let mut text = String::new();
    if let (Some(symbol), Some(Instance { structure, initialiser, .. })) = (&code.instance, &code.op.instance) {
        let _ = writeln!(text, "\nstatic struct {structure} {symbol} = {};", &**initialiser);
    }
    let aligned: Vec<usize> = aligned_results(code).collect();
    for (&result, symbol) in code.op.persistent.iter().zip(&code.persistent) {
        let ty = &code.op.results[result];
        let place = match aligned.contains(&result) {
            true => format!("MLC_ALIGNED({}) ", code.op.alignment),
            false => String::new(),
        };
        let _ = writeln!(text, "\n{place}static {} {symbol}[{}];", c_type(ty.dtype), ty.elements().max(1));
    }
    text
}

/// What functions of the program keep from one run to the next.
pub(super) fn kept(program: &Program) -> Kept {
    let calls = program.calls();
    let ops = || calls.iter().map(|(_, _, code)| &code.op);
    Kept {
        bytes: ops().flat_map(|op| op.persistent.iter().map(|&result| op.results[result].bytes())).sum(),
        ends: ops().any(|op| op.begin.is_some() || op.end.is_some()),
        is_shared: ops().any(is_shared),
    }
}

/// Whether runs share something that a function keeps.
fn is_shared(op: &Extern) -> bool {
    op.instance.is_some() || op.begin.is_some() || op.effect > 0 || !op.persistent.is_empty()
}

/// The C files of all functions, each once. Those of packed functions, which archives number, get the model's name in front.
///
/// # Errors
/// When one isn't text or has the name of a file of mlc's own, or two of one name differ.
pub(super) fn sources(program: &Program, model: &str) -> Result<Vec<SourceFile>, Vec<Diagnostic>> {
    let own =
        [format!("{model}_lib0.c"), format!("{model}_lib1.c"), format!("{model}_lib2.c"), format!("tvmgen_{model}.h")];
    let mut files: IndexMap<String, &CFile> = IndexMap::new();
    for (_, _, code) in program.calls() {
        for file in &code.op.sources {
            let name = if is_packed(code) { format!("{model}_{}", &*file.name) } else { file.name.to_string() };
            if own.contains(&name) {
                let message = format!("a C file of the model has the name '{name}', which is one of the archive's own");
                return Err(vec![fault(code, Code::DuplicateDefinition, message)]);
            }
            if *files.entry(name).or_insert(file) != file {
                let message = format!("two C files of the model have the name '{}' and differ", &*file.name);
                return Err(vec![fault(code, Code::DuplicateDefinition, message)]);
            }
        }
    }
    let text = |(name, file): (String, &CFile)| {
        let text = String::from_utf8(file.text.bytes().to_vec()).map_err(|_| {
            let message = format!("the C file '{name}' of the model isn't UTF-8");
            vec![Diagnostic::error(Code::VariantUnsupported, Location::default(), message)]
        })?;
        Ok(SourceFile { name, text })
    };
    files.into_iter().map(text).collect()
}

/// Whether a parameter's value is there before a run.
fn is_known(program: &Program, binding: &Binding) -> bool {
    match binding {
        Binding::Packed { .. } => true,
        Binding::Scratch { .. } => false,
        Binding::Buffer { buffer, .. } => {
            matches!(program.buffers[*buffer].kind, BufferKind::Constant(_) | BufferKind::Persistent)
        }
    }
}

/// The function around a call, and what goes with it. `program` has the call as a step over `bindings`.
pub(super) fn function(program: &Program, code: &ExternRoutine, bindings: &[Binding], execution: Execution) -> String {
    if is_packed(code) {
        let scratch = match (execution.aot, execution.graph) {
            (None, _) => Scratch::Runtime,
            (Some(_), true) => Scratch::ArenaOrRuntime,
            (Some(_), false) => Scratch::Arena,
        };
        return memory(code) + &packed::function(code, scratch);
    }
    let ExternRoutine { name, comment, op, instance, .. } = code;
    let own = instance.as_ref().map(|instance| format!("&{instance}"));
    let arguments: Vec<String> = own.into_iter().chain(signature::names(op)).collect();
    let mut text = signature::prototype(op, &op.symbol) + &memory(code);
    let _ = write!(
        text,
        "\n{comment}static int32_t {name}(\n    {}) {{\n  return {}({});\n}}\n",
        signature::parameters(op).join(",\n    "),
        op.symbol,
        arguments.join(", ")
    );
    if let Some(once) = &code.once {
        let known: Vec<bool> = bindings.iter().map(|binding| is_known(program, binding)).collect();
        text += "\n";
        text += &once::functions(code, once, &known);
    }
    text
}

impl Emitter {
    /// Statements that begin with the functions of parts, unless that has been done; the first part has the position `first`. The variables
    /// that they use are added to `used`.
    pub(super) fn begins<'a>(
        &mut self,
        scope: Scope<'_>,
        parts: impl IntoIterator<Item = &'a Part>,
        first: usize,
        used: &mut BTreeSet<String>,
    ) -> String {
        let mut text = String::new();
        for (position, step, code) in calls(parts, first) {
            let Some(once) = &code.once else { continue };
            let mut arguments = Vec::new();
            for (number, binding) in step.bindings.iter().enumerate() {
                if is_known(scope.program, binding) {
                    let argument = self.argument(scope, (position, number), binding);
                    used.extend(argument.variable);
                    arguments.push(argument.text);
                }
            }
            let begin = format!("{}({})", once.begin, arguments.join(", "));
            let _ = writeln!(text, "  status = {begin};\n  if (status != 0) {{\n    return status;\n  }}");
        }
        text
    }

    /// The function that ends what has begun; nothing where nothing does.
    pub(super) fn end(&self, program: &Program, model: &str) -> String {
        let calls = program.calls();
        let ends: Vec<&str> =
            calls.iter().rev().filter_map(|(_, _, code)| Some(code.once.as_ref()?.end.as_str())).collect();
        if ends.is_empty() {
            return String::new();
        }
        let head = format!("int32_t tvmgen_{model}_end(void)");
        let mut body = String::new();
        for end in ends {
            let _ = writeln!(body, "  status = {end}();\n  if (first == 0) {{\n    first = status;\n  }}");
        }
        format!(
            "\n{head};\n\n/* Ends what the first run began, so that the next run begins anew. Returns 0, or the first error of a \
             function. */\n{head} {{\n  int32_t first = 0;\n  int32_t status;\n{body}  return first;\n}}\n"
        )
    }
}
