//! The parts of the Rust crate that depend on the model's inputs and outputs.

use crate::bundle::{Bundle, Port};
use mlc_ir::DType;
use std::fmt::Write;

/// The words of the crate's templates and their texts.
pub(super) fn texts(model: &str, bundle: &Bundle) -> Vec<(&'static str, String)> {
    let inputs: Vec<(String, &Port)> = fields(&bundle.inputs);
    let outputs: Vec<(String, &Port)> = fields(&bundle.outputs);
    let name = format!("tvmgen_{model}");
    let lines = |list: &[(String, &Port)], line: &dyn Fn(&str, &Port) -> String| {
        list.iter().map(|(field, port)| line(field, port)).collect::<String>()
    };
    let documented = |list: &[(String, &Port)], reference: &str| {
        let text = lines(list, &|field, port| {
            let name: String = port.name.chars().filter(|c| !c.is_control()).collect();
            format!("    /// `{name}`: {}.\n    pub {field}: {reference}Aligned<{}>,\n", port.ty, array(port))
        });
        // A structure with a lifetime must use it.
        if text.is_empty() { "    /// There are none.\n    pub none: &'a (),\n".to_owned() } else { text }
    };
    let raw = |list: &[(String, &Port)], pointer: &str| {
        let text = lines(list, &|field, _| format!("    {field}: {pointer} c_void,\n"));
        if text.is_empty() { format!("    none: {pointer} c_void,\n") } else { text }
    };
    let bind = |list: &[(String, &Port)], what: &str, reference: &str, pointer: &str| {
        let text =
            lines(list, &|field, _| format!("        {field}: core::ptr::from_{reference}({what}.{field}).cast(),\n"));
        if text.is_empty() { format!("        none: core::ptr::{pointer}(),\n") } else { text }
    };
    let mut outputs_bind = bind(&outputs, "outputs", "mut", "null_mut");
    if outputs.is_empty() {
        outputs_bind += "        // Nothing is written.\n";
    }
    vec![
        ("CRATE", name.clone()),
        ("RUST_CRATE", name),
        ("RUST_INPUTS", documented(&inputs, "&'a ")),
        ("RUST_OUTPUTS", documented(&outputs, "&'a mut ")),
        ("RAW_INPUTS", raw(&inputs, "*const")),
        ("RAW_OUTPUTS", raw(&outputs, "*mut")),
        ("BIND_INPUTS", bind(&inputs, "inputs", "ref", "null")),
        ("BIND_OUTPUTS", outputs_bind.replace("from_mut(outputs.", "from_mut(&mut *outputs.")),
        ("RUN_READ", read(&inputs)),
        (
            "RUN_OUTPUTS",
            lines(&outputs, &|field, port| {
                format!("    let mut {field}_data = Aligned([{}; {}]);\n", zero(port.ty.dtype), port.ty.elements())
            }),
        ),
        ("RUN_BIND_INPUTS", list_or_none(&inputs, &|field| format!("{field}: &{field}_data"))),
        ("RUN_BIND_OUTPUTS", list_or_none(&outputs, &|field| format!("{field}: &mut {field}_data"))),
        ("RUN_WRITE", write(&inputs, &outputs)),
    ]
}

fn list_or_none(list: &[(String, &Port)], item: &dyn Fn(&str) -> String) -> String {
    let items: Vec<String> = list.iter().map(|(field, _)| item(field)).collect();
    if items.is_empty() { "none: &()".to_owned() } else { items.join(", ") }
}

fn fields(ports: &[Port]) -> Vec<(String, &Port)> {
    let field = |port: &Port| {
        let field = port.field.to_ascii_lowercase();
        if KEYWORDS.contains(&field.as_str()) { format!("{field}_") } else { field }
    };
    let mut taken: Vec<String> = Vec::new();
    let mut list = Vec::new();
    for port in ports {
        let mut name = field(port);
        while taken.contains(&name) {
            name.push('_');
        }
        taken.push(name.clone());
        list.push((name, port));
    }
    list
}

/// Words that Rust reserves and C doesn't.
const KEYWORDS: [&str; 33] = [
    "abstract", "as", "async", "await", "become", "box", "crate", "dyn", "fn", "final", "gen", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "self", "super", "trait", "try",
    "type", "unsafe", "use", "where", "yield",
];

/// The Rust type of elements as C has them in memory.
fn element(dtype: DType) -> &'static str {
    match dtype {
        // Rust's bool may hold two bit patterns only, and C writes bytes.
        DType::Bool => DType::U8.name(),
        // Half floats are passed as their bits.
        DType::F16 | DType::Bf16 => DType::U16.name(),
        other => other.name(),
    }
}

fn zero(dtype: DType) -> String {
    let element = element(dtype);
    if element.starts_with('f') { format!("0.0_{element}") } else { format!("0_{element}") }
}

fn array(port: &Port) -> String {
    format!("[{}; {}]", element(port.ty.dtype), port.ty.elements())
}

fn read(inputs: &[(String, &Port)]) -> String {
    let mut text = String::new();
    for (number, (field, port)) in inputs.iter().enumerate() {
        let (element, size) = (element(port.ty.dtype), port.ty.dtype.size());
        let _ = writeln!(
            text,
            "    let bytes: [u8; {bytes}] = read(arguments.get({number}));\n    let mut {field}_data = Aligned([{zero}; {elements}]);\n    \
             for (value, bytes) in {field}_data.0.iter_mut().zip(bytes.chunks_exact({size})) {{\n        \
             *value = {element}::from_le_bytes(bytes.try_into().expect(\"chunks are whole\"));\n    }}",
            bytes = port.ty.bytes(),
            elements = port.ty.elements(),
            zero = zero(port.ty.dtype),
        );
    }
    text
}

fn write(inputs: &[(String, &Port)], outputs: &[(String, &Port)]) -> String {
    let mut text = String::new();
    for (number, (field, _)) in outputs.iter().enumerate() {
        let argument = inputs.len() + number;
        let _ = writeln!(
            text,
            "    match arguments.get({argument}) {{\n        Some(path) => {{\n            \
             let bytes: Vec<u8> = {field}_data.0.iter().flat_map(|value| value.to_le_bytes()).collect();\n            \
             std::fs::write(path, bytes).expect(\"the output can be written\");\n        }}\n        \
             None => println!(\"{field}: {{:?}}\", &{field}_data.0[..{field}_data.0.len().min(8)]),\n    }}"
        );
    }
    text
}
