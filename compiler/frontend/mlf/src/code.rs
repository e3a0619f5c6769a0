//! The C of an archive, as far as a compiler of its graph must know it: which functions it defines, and how much scratch memory
//! each asks for at once. The text isn't parsed as C; what isn't understood is said to be unknown.

/// A C file.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Its path in the archive.
    pub path: String,
    /// Its text, with a blank for each comment, string and character.
    plain: String,
}

const ALLOCATE: &str = "TVMBackendAllocWorkspace";
const FREE: &str = "TVMBackendFreeWorkspace";

/// Alignment of scratch memory.
const ALIGNMENT: u64 = 16;

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), plain: plain(text) }
    }

    /// Whether the file defines the module of functions that the runtime asks for by name.
    pub(super) fn is_registry(&self) -> bool {
        self.body("TVMSystemLibEntryPoint").is_some()
    }

    /// Whether the file defines a function.
    pub(super) fn defines(&self, symbol: &str) -> bool {
        self.body(symbol).is_some()
    }

    /// The most bytes of scratch memory that a function has at once, `None` when the text doesn't say.
    pub(super) fn workspace(&self, symbol: &str) -> Option<u64> {
        let body = self.body(symbol)?;
        let (mut sizes, mut live, mut most) = (Vec::new(), 0u64, 0u64);
        for (at, word) in identifiers(body) {
            if word == FREE {
                live -= sizes.pop()?;
            } else if word == ALLOCATE {
                let size = allocated(&body[at + word.len()..])?.checked_next_multiple_of(ALIGNMENT)?;
                sizes.push(size);
                live = live.checked_add(size)?;
                most = most.max(live);
            }
        }
        // Memory that isn't freed in order would be handed out twice.
        sizes.is_empty().then_some(most)
    }

    /// Uses of the allocator in the file, outside of declarations.
    pub(super) fn allocations(&self) -> usize {
        identifiers(&self.plain).filter(|(_, word)| *word == ALLOCATE).count()
    }

    /// Uses of the allocator in a function.
    pub(super) fn allocations_of(&self, symbol: &str) -> usize {
        self.body(symbol).map_or(0, |body| identifiers(body).filter(|(_, word)| *word == ALLOCATE).count())
    }

    /// What stands between the braces of a function.
    fn body(&self, symbol: &str) -> Option<&str> {
        identifiers(&self.plain).filter(|(_, word)| *word == symbol).find_map(|(at, _)| {
            let rest = self.plain[at + symbol.len()..].trim_start();
            let parameters = enclosed(rest, '(', ')', LONGEST_LIST)?;
            enclosed(rest[parameters.len() + 2..].trim_start(), '{', '}', usize::MAX)
        })
    }
}

/// Most bytes of the arguments of a call that is understood.
const LONGEST_LIST: usize = 1 << 14;

/// What stands between a bracket, which the text starts with, and its partner, which isn't farther away than so many bytes.
fn enclosed(text: &str, open: char, close: char, longest: usize) -> Option<&str> {
    if !text.starts_with(open) {
        return None;
    }
    let mut depth = 0usize;
    for (at, c) in text.char_indices().take_while(|(at, _)| *at <= longest) {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(&text[1..at]);
            }
        }
    }
    None
}

/// All identifiers and where they start.
fn identifiers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = at + text[at..].find(is_part)?;
        let rest = &text[start..];
        at = start + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        Some((start, &text[start..at]))
    })
}

/// The third argument of a call, a number with casts before it.
fn allocated(text: &str) -> Option<u64> {
    let arguments = enclosed(text.trim_start(), '(', ')', LONGEST_LIST)?;
    let mut number = arguments.split(',').nth(2)?.trim();
    while let Some(inner) = enclosed(number, '(', ')', LONGEST_LIST) {
        let rest = number[inner.len() + 2..].trim_start();
        number = if rest.is_empty() { inner.trim() } else { rest };
    }
    number.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok()
}

/// The text with blanks for comments, strings and characters.
fn plain(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['/', '"', '\'']) {
        result.push_str(&rest[..start]);
        let special = &rest[start..];
        let length = if let Some(comment) = special.strip_prefix("/*") {
            comment.find("*/").map_or(special.len(), |end| end + 4)
        } else if special.starts_with("//") {
            special.find('\n').unwrap_or(special.len())
        } else if let Some(behind) = special.strip_prefix('/') {
            result.push('/');
            rest = behind;
            continue;
        } else {
            quoted(special)
        };
        result.push(' ');
        rest = &special[length..];
    }
    result + rest
}

/// Bytes of a string or character, with its quotes. One that isn't closed ends with its line.
fn quoted(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut escaped = false;
    for (at, &byte) in text.as_bytes().iter().enumerate().skip(1) {
        if byte == b'\n' || (byte == quote && !escaped) {
            return at + 1;
        }
        escaped = byte == b'\\' && !escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("a.c", text)
    }

    #[test]
    fn definitions_are_told_from_declarations_and_uses() {
        let text = source(
            "int f(int a);\n/* int f(int b) { } */ const char* s = \"f() {\"; int h(void) { return f(1); }\nint g(int f) { { } }",
        );
        assert!(
            !text.defines("f") && text.defines("g") && text.defines("h") && !text.defines("s") && !text.defines("f(1)")
        );
        assert_eq!(text.body("g").map(str::trim), Some("{ }"));
        assert!(!source("int f(int a) {").defines("f") && !source("f('{', \"").defines("f"));
        assert!(source("const TVMModule* TVMSystemLibEntryPoint(void) { return 0; }").is_registry());
    }

    #[test]
    fn scratch_memory_is_counted_as_it_nests() {
        let body =
            |body: &str| source(&format!("int f(void) {{ {body} }} int g(void) {{ {ALLOCATE}(1, 0, 99, 2, 32); }}"));
        let allocate = |name: &str, size: &str| {
            format!("void* {name} = {ALLOCATE}(1, dev_id, {size}, 2, 32); if ({name} == 0) {{ return -1; }} ")
        };
        let free = |name: &str| format!("if ({FREE}(1, dev_id, {name}) != 0) {{ return -1; }} ");
        let one = allocate("a", "(uint64_t)100") + &free("a");
        assert_eq!(body(&one).workspace("f"), Some(112));
        assert_eq!(body(&(one.clone() + &one)).workspace("f"), Some(112));
        let nested = allocate("a", "((uint64_t)(100UL))") + &allocate("b", "16") + &free("b") + &free("a");
        assert_eq!(body(&nested).workspace("f"), Some(128));
        assert_eq!(body("").workspace("f"), Some(0));
        for unknown in [allocate("a", "n * 4"), allocate("a", "8"), free("a"), allocate("a", "18446744073709551615")] {
            assert_eq!(body(&unknown).workspace("f"), None, "{unknown}");
        }
        assert_eq!((body(&nested).allocations(), body(&nested).allocations_of("f")), (3, 2));
    }
}
