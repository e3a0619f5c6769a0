//! What the words in `@…@` of a template stand for.

use super::crate_values;
use super::firmware;
use super::python;
use super::template::Template;
use crate::bundle::{Bundle, Port};
use crate::toolchain::Board;
use mlc_archive::{Header, Reset};
use mlc_codegen::package::build_files::{
    cmake_c_library, cmake_levels, cmake_tools, make_c_library, make_level, make_levels, make_tools,
};
use mlc_codegen::{Target, Tools, c_type};
use mlc_ir::{DType, Diagnostic};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The words and their texts.
pub(super) struct Values {
    texts: BTreeMap<&'static str, String>,
    /// Whether the archive holds the runtime's headers.
    pub has_runtime: bool,
    /// Whether the code asks for memory at run time.
    pub needs_workspace: bool,
}

/// Options for code of other generators.
const FOREIGN_FLAGS: &str = "-std=gnu11 -O2";

impl Values {
    pub(super) fn new(
        bundle: &Bundle,
        header: &Header,
        template: Template,
        board: Option<&Board>,
    ) -> Result<Values, Diagnostic> {
        let model = bundle.model.name.to_ascii_lowercase();
        let sources: Vec<String> = bundle.sources()?.into_iter().map(|path| format!("model/{path}")).collect();
        let objects: Vec<String> = bundle.objects().into_iter().map(|path| format!("model/{path}")).collect();
        let has_runtime = bundle.archive().get("runtime/include/tvm/runtime/c_runtime_api.h").is_some();
        let runtime = if has_runtime { "model/runtime" } else { "runtime" };
        let needs_workspace = asks_for_memory(bundle)?;
        let mut model_sources = sources;
        if needs_workspace {
            model_sources.push("workspace.c".into());
            model_sources.push(format!("{runtime}/src/runtime/crt/memory/stack_allocator.c"));
        }
        let program = if matches!(template, Template::Posix) { vec!["src/main.c".to_owned()] } else { Vec::new() };
        let all: Vec<String> = program.into_iter().chain(model_sources.iter().cloned()).collect();
        let flags = flags(bundle);
        let mut values = Values { texts: BTreeMap::new(), has_runtime, needs_workspace };
        values.set("MODEL", model.clone());
        values.set("RUNTIME", runtime.to_owned());
        values.set("SOURCES", all.join(" \\\n  "));
        values.set("MODEL_SOURCES", model_sources.join("\n  "));
        values.set("OBJECTS", objects.join(" "));
        values.set("C_FLAGS", flags.join(" "));
        values.set_tools(&bundle.target().unwrap_or_else(Target::generic));
        for (word, text) in firmware::texts(&model, board) {
            values.set(word, text);
        }
        let filter: Vec<String> = model_sources.iter().map(|source| format!("+<../{source}>")).collect();
        values.set("PLATFORMIO_SOURCES", filter.join(" "));
        values.set("MACRO", format!("TVMGEN_{}", model.to_ascii_uppercase()));
        values.set("INPUT_COUNT", bundle.inputs.len().to_string());
        values.set("TENSOR_COUNT", (bundle.inputs.len() + bundle.outputs.len()).to_string());
        values.set("BUFFERS", buffers(bundle, header));
        values.set("TENSORS", tensors(bundle));
        values.set("INFER", infer(&model, bundle, header));
        let printed = print(bundle);
        values.set("FIRMWARE_PRINT", printed.replace("\n    ", "\n  ").replacen("    ", "  ", 1));
        values.set("PRINT", printed);
        values.set("ARDUINO_PRINT", arduino_print(bundle));
        let (entry, leave) = match template {
            Template::EspIdf => ("void app_main(void)", "return"),
            _ => ("int main(void)", "return status"),
        };
        values.set("ENTRY", entry.to_owned());
        values.set("LEAVE", leave.to_owned());
        let quoted = |list: &[String]| list.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>();
        values.set("RUST_SOURCES", quoted(&model_sources).iter().map(|item| format!("        {item},\n")).collect());
        values.set("RUST_OBJECTS", quoted(&objects).join(", "));
        values.set("RUST_FLAGS", quoted(&machine_free(&flags)).join(", "));
        let python = python::texts(bundle, &model_sources, &objects, &flags);
        for (word, text) in crate_values::texts(&model, bundle).into_iter().chain(python) {
            values.set(word, text);
        }
        Ok(values)
    }

    /// What chooses the tools of the machine that the archive is for.
    fn set_tools(&mut self, target: &Target) {
        let is_foreign = target.tools.as_ref().is_some_and(Tools::are_bare_metal);
        self.set("MAKE_TOOLS", make_tools(target));
        self.set("MAKE_C_LIBRARY", make_c_library(target).to_owned());
        self.set("MAKE_LEVELS", make_levels(target, "$(BUILD)/"));
        self.set("MAKE_LEVEL", make_level(target).to_owned());
        self.set("CMAKE_TOOLS", cmake_tools(target));
        self.set("CMAKE_LEVELS", cmake_levels(target, "model/codegen/host/src"));
        let flags = format!("set(CMAKE_C_FLAGS \"${{CMAKE_C_FLAGS}} {}\")\n", target.c_flags.join(" "));
        let machine = flags + cmake_c_library(target);
        self.set("CMAKE_MACHINE", if is_foreign { machine } else { String::new() });
    }

    fn set(&mut self, word: &'static str, text: String) {
        self.texts.insert(word, text);
    }

    /// A text with all words replaced.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('@') {
            filled += &rest[..start];
            let after = &rest[start + 1..];
            let word = after.find('@').map(|end| &after[..end]).and_then(|word| Some((word, self.texts.get(word)?)));
            match word {
                Some((word, text)) => {
                    filled += text;
                    rest = &after[word.len() + 1..];
                }
                None => {
                    filled.push('@');
                    rest = after;
                }
            }
        }
        filled + rest
    }
}

fn flags(bundle: &Bundle) -> Vec<String> {
    let foreign = || FOREIGN_FLAGS.split(' ').map(String::from).collect();
    bundle.target().map_or_else(foreign, |target| target.c_flags)
}

/// Options that don't choose an optimisation, which the crate does.
fn machine_free(flags: &[String]) -> Vec<String> {
    flags.iter().filter(|flag| !flag.starts_with("-O")).cloned().collect()
}

/// Whether some source calls the runtime's allocator.
fn asks_for_memory(bundle: &Bundle) -> Result<bool, Diagnostic> {
    let sources = bundle.sources()?;
    let calls = |path: &&str| {
        let text = bundle.archive().get(path).map(|bytes| String::from_utf8_lossy(bytes));
        text.is_some_and(|text| text.contains("TVMBackendAllocWorkspace("))
    };
    Ok(sources.iter().any(calls))
}

fn ports(bundle: &Bundle) -> impl Iterator<Item = (String, &Port)> {
    let inputs = bundle.inputs.iter().enumerate().map(|(number, port)| (format!("input{number}"), port));
    inputs.chain(bundle.outputs.iter().enumerate().map(|(number, port)| (format!("output{number}"), port)))
}

fn buffers(bundle: &Bundle, header: &Header) -> String {
    let mut text = String::new();
    for (name, port) in ports(bundle) {
        let what = comment(&port.name);
        let (element, elements) = (c_type(port.ty.dtype), port.ty.elements().max(1));
        let _ = writeln!(text, "static {element} {name}[{elements}] ALIGNED; /* {what}: {} */", port.ty);
    }
    for (number, pool) in header.pools.iter().enumerate() {
        let bytes = header.pool_bytes(pool).unwrap_or_default().max(1);
        let data = header.pool_data(pool).map_or_else(String::new, |data| format!(" = {{ {data} }}"));
        let _ = writeln!(text, "static uint8_t pool{number}[{bytes}] ALIGNED{data}; /* {} */", comment(pool));
    }
    text
}

/// A name inside of a comment or a string.
fn comment(name: &str) -> String {
    let safe = |c: char| c.is_ascii_graphic() && !matches!(c, '*' | '"' | '\\' | '?' | '%');
    name.chars().map(|c| if safe(c) { c } else { '_' }).collect()
}

fn tensors(bundle: &Bundle) -> String {
    let rows = ports(bundle).map(|(name, port)| {
        let bytes = port.ty.bytes();
        format!("  {{ \"{}\", {name}, {bytes} }},\n", comment(&port.name))
    });
    rows.collect()
}

fn infer(model: &str, bundle: &Bundle, header: &Header) -> String {
    let mut text = format!(
        "static int32_t infer(void) {{\n  struct tvmgen_{model}_inputs inputs;\n  struct tvmgen_{model}_outputs outputs;\n"
    );
    let mut pools = String::new();
    if !header.pools.is_empty() {
        let _ = writeln!(text, "  struct tvmgen_{model}_workspace_pools pools;");
        if header.reset() == Some(Reset::Pools) {
            text += "  static int begun;\n";
        }
        for (number, pool) in header.pools.iter().enumerate() {
            let _ = writeln!(pools, "  pools.{pool} = pool{number};");
        }
    }
    for (kind, list) in [("input", &bundle.inputs), ("output", &bundle.outputs)] {
        for (number, port) in list.iter().enumerate() {
            let _ = writeln!(text, "  {kind}s.{} = {kind}{number};", port.field);
        }
        if list.is_empty() {
            let _ = writeln!(text, "  {kind}s.none = 0;");
        }
    }
    text += &pools;
    if header.reset() == Some(Reset::Pools) {
        let _ = write!(
            text,
            "  if (!begun) {{\n    begun = 1;\n    (void)tvmgen_{model}_reset(&pools); /* a new stream */\n  }}\n"
        );
    }
    let pools = if header.pools.is_empty() { "" } else { ", &pools" };
    text + &format!("  return tvmgen_{model}_run(&inputs, &outputs{pools});\n}}\n")
}

/// Most elements of an output that are printed.
const SHOWN: usize = 8;

fn print(bundle: &Bundle) -> String {
    let mut text = String::new();
    for (number, port) in bundle.outputs.iter().enumerate() {
        let shown = port.ty.elements().min(SHOWN);
        let _ = writeln!(text, "    printf(\"{}:\");", comment(&port.name));
        let (conversion, cast) = match port.ty.dtype {
            DType::F32 | DType::F64 => ("%g", "(double)"),
            dtype if dtype.is_signed() && dtype.is_integer() => ("%ld", "(long)"),
            _ => ("%lu", "(unsigned long)"),
        };
        for index in 0..shown {
            let _ = writeln!(text, "    printf(\" {conversion}\", {cast}output{number}[{index}]);");
        }
        let rest = if port.ty.elements() > shown { " ..." } else { "" };
        let _ = writeln!(text, "    printf(\"{rest}\\n\");");
    }
    text
}

fn arduino_print(bundle: &Bundle) -> String {
    let mut text = String::new();
    for (number, port) in bundle.outputs.iter().enumerate() {
        let _ = writeln!(text, "  Serial.print(\"{}:\");", comment(&port.name));
        for index in 0..port.ty.elements().min(SHOWN) {
            let _ = writeln!(text, "  Serial.print(' ');\n  Serial.print(output{number}[{index}]);");
        }
        text += "  Serial.println();\n";
    }
    text
}
