//! Names in the public header that must not meet: macros of the inputs' and outputs' sizes.

use crate::module::{Module, Port};
use std::collections::BTreeSet;

/// The size macros of a module's inputs and outputs, all different.
pub(super) struct Names {
    /// One macro for each input.
    pub inputs: Vec<String>,
    /// One macro for each output.
    pub outputs: Vec<String>,
}

impl Names {
    /// `TVMGEN_<MODEL>_<FIELD>_SIZE`, as microTVM names them; where two fields differ in case only, or an output has an
    /// input's name, the later one carries a number.
    pub(super) fn new(module: &Module) -> Names {
        let prefix = macro_prefix(module);
        let mut taken: BTreeSet<String> =
            ["WORKSPACE", "CONSTANTS", "STATE"].map(|name| format!("{prefix}_{name}_SIZE")).into();
        let mut unique = |port: &Port| {
            let field = port.field.to_ascii_uppercase();
            let mut name = format!("{prefix}_{field}_SIZE");
            let mut number = 1;
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{prefix}_{field}_{number}_SIZE");
            }
            name
        };
        let inputs = module.inputs.iter().map(&mut unique).collect();
        let outputs = module.outputs.iter().map(&mut unique).collect();
        Names { inputs, outputs }
    }
}

/// `TVMGEN_<MODEL>`.
pub(super) fn macro_prefix(module: &Module) -> String {
    format!("TVMGEN_{}", module.model_name.to_ascii_uppercase())
}

/// A text as the inside of a C string or of a comment: printable ASCII, the rest as octal escapes.
pub(super) fn c_escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let previous = index.checked_sub(1).map(|before| bytes[before]);
        let special = match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => true,
            // Two question marks would start a trigraph.
            b'?' => previous == Some(b'?'),
            // A slash beside a star would start or end a comment.
            b'/' => previous == Some(b'*') || bytes.get(index + 1) == Some(&b'*'),
            _ => false,
        };
        if special {
            escaped.push_str(&format!("\\{byte:03o}"));
        } else {
            escaped.push(char::from(byte));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::c_escape;

    #[test]
    fn escapes_keep_strings_and_comments_closed() {
        for (text, expected) in [
            ("stage2/relu:0", "stage2/relu:0"),
            ("a\"b\\", "a\\042b\\134"),
            ("*/ /*", "*\\057 \\057*"),
            ("what??/", "what?\\077/"),
            ("é\n", "\\303\\251\\012"),
        ] {
            assert_eq!(c_escape(text), expected);
        }
    }
}
