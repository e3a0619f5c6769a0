//! C identifiers made of model names: every character that isn't a letter or digit becomes `_`, and equal ones get numbers.

use std::collections::BTreeSet;

/// Parameters of a function under the packed calling convention.
pub const PACKED_PARAMETERS: &str = "TVMValue* args, int* arg_type_ids, int num_args, TVMValue* out_ret_value, \
     int* out_ret_tcode,\n    void* resource_handle";

/// Gives out symbols that are unique in a module.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: String,
    taken: BTreeSet<String>,
}

/// Longest identifier part made of a name.
const LONGEST: usize = 60;

/// Characters of a kernel's symbol that its packed function keeps: runtimes take names below 120.
const LONGEST_PACKED: usize = 104;

impl Names {
    /// Symbols that start with `tvmgen_<model>_`.
    pub fn new(model_name: &str) -> Self {
        let prefix = format!("tvmgen_{model_name}_");
        let taken = [
            "run",
            "reset",
            "reset_states",
            "end",
            "__tvm_main__",
            "all_kernels",
            "get_c_metadata",
            "inputs",
            "outputs",
            "workspace_pools",
        ]
        .iter()
        .map(|name| format!("{prefix}{name}"))
        .collect();
        Names { prefix, taken }
    }

    /// A new symbol for a name.
    pub fn symbol(&mut self, name: &str) -> String {
        let prefix = self.prefix.clone();
        self.unique(format!("{prefix}{}", identifier(name)))
    }

    /// A new symbol for the function that calls a kernel under the packed convention.
    pub fn packed(&mut self, kernel: &str) -> String {
        let head: String = kernel.chars().take(LONGEST_PACKED).collect();
        self.unique(format!("{head}_packed"))
    }

    /// A new symbol for the function of a kernel's phase.
    pub fn phase(&mut self, kernel: &str, number: usize) -> String {
        self.unique(format!("{kernel}_phase{number}"))
    }

    /// How the symbols of branches that threads compute beside each other begin, which is new.
    pub fn branches(&mut self) -> String {
        self.symbol("branches")
    }

    fn unique(&mut self, base: String) -> String {
        let mut symbol = base.clone();
        let mut number = 1;
        while !self.taken.insert(symbol.clone()) {
            number += 1;
            symbol = format!("{base}_{number}");
        }
        symbol
    }
}

/// A name as a part of a C identifier: ASCII letters, digits and `_`, of bounded length, not empty.
pub fn identifier(name: &str) -> String {
    let mut text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    text.truncate(LONGEST);
    if text.is_empty() { "_".into() } else { text }
}

/// `TVMGEN_<MODEL>_PROFILE`: the macro that names the function which is called behind every kernel.
pub fn profile_macro(model: &str) -> String {
    format!("TVMGEN_{}_PROFILE", model.to_ascii_uppercase())
}

/// `TVMGEN_<MODEL>_FETCH` and `TVMGEN_<MODEL>_FETCHED`: the macros that name the functions which begin to copy a constant into the arena, and
/// wait until that is done.
pub fn fetch_macros(model: &str) -> (String, String) {
    let name = format!("TVMGEN_{}_FETCH", model.to_ascii_uppercase());
    let done = format!("{name}ED");
    (name, done)
}

/// Names as C fields of one structure: identifiers that don't start with a digit and differ.
pub fn fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut fields = Vec::new();
    for name in names {
        let mut base = identifier(name);
        if base.starts_with(|c: char| c.is_ascii_digit()) || KEYWORDS.contains(&base.as_str()) {
            base.insert(0, '_');
        }
        let mut field = base.clone();
        let mut number = 1;
        // Two fields that differ in case only would give one size macro, which is upper case.
        while !taken.insert(field.to_ascii_uppercase()) {
            number += 1;
            field = format!("{base}_{number}");
        }
        fields.push(field);
    }
    fields
}

/// Words that C and C++ reserve.
const KEYWORDS: [&str; 72] = [
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "_Bool",
    "inline_",
];

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
    use super::*;

    #[test]
    fn symbols_are_identifiers_and_unique() {
        let mut names = Names::new("m");
        assert_eq!(names.symbol("a.b"), "tvmgen_m_a_b");
        assert_eq!(names.symbol("a_b"), "tvmgen_m_a_b_2");
        assert_eq!(names.symbol("run"), "tvmgen_m_run_2");
    }

    #[test]
    fn fields_avoid_digits_keywords_and_equal_macros() {
        assert_eq!(fields(["0", "int", "x:0", "X_0"]), ["_0", "_int", "x_0", "X_0_2"]);
    }

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
