//! The parts of the Python package that depend on the model.

use crate::bundle::{Bundle, Port};
use crate::toolchain::library_source;
use std::path::Path;

/// The words and their texts; `sources`, `objects` and `flags` are those that build the model.
pub(super) fn texts(
    bundle: &Bundle,
    sources: &[String],
    objects: &[String],
    flags: &[String],
) -> Vec<(&'static str, String)> {
    let lines: String = sources.iter().map(|source| format!("                {source:?},\n")).collect();
    vec![
        ("PYTHON_SOURCES", lines),
        ("PYTHON_OBJECTS", list(objects)),
        ("PYTHON_FLAGS", list(flags)),
        ("PYTHON_INPUTS", ports(&bundle.inputs)),
        ("PYTHON_OUTPUTS", ports(&bundle.outputs)),
        // Projects aren't made of archives whose constants are loaded from a folder.
        ("LIBRARY", library_source(bundle, Path::new(""))),
    ]
}

fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    words.join(", ")
}

fn ports(ports: &[Port]) -> String {
    let port = |Port { name, ty, .. }: &Port| {
        let extents: String = ty.shape.iter().map(|extent| format!("{extent}, ")).collect();
        format!("Port({}, {:?}, ({}))", string(name), ty.dtype.name(), extents.trim_end())
    };
    ports.iter().map(port).collect::<Vec<_>>().join(", ")
}

/// A text as a string of Python.
fn string(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        // A '@' could make one of a template's words.
        ' '..='~' if c != '@' => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_are_pythons() {
        assert_eq!(string("a\"\\b"), r#""a\"\\b""#);
        assert_eq!(string("é\n@"), r#""\U000000e9\U0000000a\U00000040""#);
    }
}
