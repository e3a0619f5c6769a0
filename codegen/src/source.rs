//! The C of one kernel out of the file of all, and how much code all kernels are.

use crate::module::Module;
use std::collections::BTreeSet;

impl Module {
    /// The C function of a kernel with the comment above it; `None` of what has none, such as a call in its caller.
    pub fn function(&self, symbol: &str) -> Option<&str> {
        self.sources.iter().find_map(|file| function(&file.text, symbol))
    }

    /// Bytes of code of all kernels, by their prices. C compilers keep one of functions that do the same.
    pub fn code_bytes(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let mut is_new = |symbol: &str| self.function(symbol).is_none_or(|own| seen.insert(body(own, symbol)));
        let kernels = self.kernels.iter().map(|kernel| (kernel.function.as_str(), kernel.price.code_bytes));
        kernels.filter(|(symbol, _)| is_new(symbol)).map(|(_, bytes)| bytes).fold(0, u64::saturating_add)
    }
}

/// The function of a symbol with the comment above it, as it is in generated C; `None` where there is no such function.
pub fn function<'a>(text: &'a str, symbol: &str) -> Option<&'a str> {
    let heads = text.match_indices(symbol).filter(|(at, _)| {
        let (before, after) = (&text[..*at], &text[at + symbol.len()..]);
        let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
        // A definition begins its line, a call is indented, and a declaration ends before any brace.
        let is_head = line.ends_with(' ') && !line.starts_with(' ') && after.starts_with('(');
        let ends = (after.find('{'), after.find(';'));
        is_head && matches!(ends, (Some(brace), semicolon) if semicolon.is_none_or(|semicolon| brace < semicolon))
    });
    let (at, _) = heads.into_iter().next()?;
    let start = text[..at].rfind("\n\n").map_or(0, |end| end + 2);
    let length = text[at..].find("\n}\n").map_or(text.len() - at, |end| end + 2);
    Some(&text[start..at + length])
}

/// What a function does, without its name and its comment.
fn body<'a>(function: &'a str, symbol: &str) -> &'a str {
    let head = format!("{symbol}(");
    // The comment above may name the symbol's node, but calls nothing.
    function.find(&head).map_or(function, |at| &function[at + symbol.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#include <a.h>\n\nint f(int);\n\n/* f: a\n   b */\nint f(\n    int x) {\n  return g(x);\n}\n\n\
                        static int ff(int x) {\n  return f(x);\n}\n";

    #[test]
    fn a_function_comes_with_its_comment() {
        assert_eq!(function(TEXT, "f"), Some("/* f: a\n   b */\nint f(\n    int x) {\n  return g(x);\n}"));
        assert_eq!(function(TEXT, "ff"), Some("static int ff(int x) {\n  return f(x);\n}"));
    }

    #[test]
    fn a_body_is_behind_the_name() {
        let function = function(TEXT, "f").unwrap();
        assert_eq!(body(function, "f"), "(\n    int x) {\n  return g(x);\n}");
    }

    #[test]
    fn what_is_only_called_is_no_function() {
        assert_eq!(function(TEXT, "g"), None);
    }
}
