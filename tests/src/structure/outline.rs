//! What the text of one Rust module says about other modules: those it declares, the names it defines and imports, and
//! every path in its code. It reads tokens, not syntax, so that it sees into the arguments of macros too.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::BTreeSet;

/// One module of a file: the file itself, or a module written out inside it.
#[derive(Default)]
pub(super) struct Outline {
    /// The functions, types, traits, constants and macros that it defines.
    pub items: BTreeSet<String>,
    /// Those of its macros that are names of the crate's root.
    pub exported_macros: BTreeSet<String>,
    /// The modules that it declares, tests among them.
    pub children: Vec<Child>,
    /// Whether a macro of it declares modules.
    pub declares_by_macro: bool,
    /// What its `use` declarations bring in, wherever they stand.
    pub imports: Vec<Use>,
    /// Every path in the code, a single identifier being a path too. Fields, methods and labels of values are left out.
    pub paths: BTreeSet<Vec<String>>,
}

/// A declared module.
pub(super) struct Child {
    pub name: String,
    /// Whether only tests are compiled with it.
    pub test: bool,
    pub body: Body,
}

/// Where a declared module is written.
pub(super) enum Body {
    /// In a file of the usual name, or in this one beside the declaring file.
    File(Option<String>),
    Inline(Box<Outline>),
}

/// A name of a `use` declaration.
pub(super) struct Use {
    pub path: Vec<String>,
    /// The name here; none is all the names of a module.
    pub name: Option<String>,
    /// Whether it is handed on to others.
    pub reexport: bool,
}

/// The attributes before an item, as far as they matter here.
#[derive(Default)]
struct Attributes {
    test: bool,
    exported: bool,
    file: Option<String>,
}

/// Reads a file.
///
/// # Errors
/// When the text isn't one of Rust's tokens.
pub(super) fn outline(text: &str) -> Result<Outline, String> {
    let tokens: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
    let mut outline = Outline::default();
    outline.read(tokens, true);
    Ok(outline)
}

impl Outline {
    /// Takes in a run of tokens, those of a module itself or of something inside it.
    fn read(&mut self, tokens: TokenStream, is_module: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut attributes = Attributes::default();
        let mut public = false;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => match attribute(&tokens[at..]) {
                    Some(group) => {
                        attributes.note(group);
                        self.read(group.stream(), false);
                        2
                    }
                    None => 1,
                },
                TokenTree::Ident(word) if word == "pub" => {
                    public = true;
                    1
                }
                TokenTree::Ident(word) if word == "mod" && is_module => {
                    public = false;
                    self.child(&tokens[at..], &std::mem::take(&mut attributes))
                }
                _ if attributes.test => {
                    attributes = Attributes::default();
                    public = false;
                    item_length(&tokens[at..])
                }
                TokenTree::Ident(word) if word == "use" => {
                    let end = tokens[at..].iter().position(|token| is_mark(token, ';')).unwrap_or(tokens.len() - at);
                    self.import(&tokens[at + 1..at + end], &[], public);
                    public = false;
                    end
                }
                TokenTree::Ident(word) => {
                    self.declares_by_macro |=
                        word == "mod" && tokens.get(at + 1).is_some_and(|next| is_mark(next, '$'));
                    if is_module {
                        self.define(&word.to_string(), &tokens[at + 1..], &mut attributes);
                    }
                    self.path(&tokens, at)
                }
                TokenTree::Group(group) => {
                    // The parentheses after `pub` say to whom; what ends an item ends what was said before it.
                    if group.delimiter() == Delimiter::Brace {
                        attributes = Attributes::default();
                        public = false;
                    }
                    self.read(group.stream(), false);
                    1
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => {
                    attributes = Attributes::default();
                    public = false;
                    1
                }
                _ => 1,
            };
        }
    }

    /// Notes the name that a keyword is followed by.
    fn define(&mut self, keyword: &str, rest: &[TokenTree], attributes: &mut Attributes) {
        let name = match (keyword, rest) {
            ("macro_rules", [mark, TokenTree::Ident(name), ..]) if is_mark(mark, '!') => name.to_string(),
            (
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "static" | "const",
                [TokenTree::Ident(name), ..],
            ) => name.to_string(),
            _ => return,
        };
        if attributes.exported && keyword == "macro_rules" {
            self.exported_macros.insert(name.clone());
        }
        self.items.insert(name);
    }

    /// Takes in `mod name;` or `mod name { … }`; returns how many tokens that is.
    fn child(&mut self, tokens: &[TokenTree], attributes: &Attributes) -> usize {
        let [_, TokenTree::Ident(name), end, ..] = tokens else { return 1 };
        let body = match end {
            TokenTree::Group(group) => {
                let mut inner = Self::default();
                inner.read(group.stream(), true);
                Body::Inline(Box::new(inner))
            }
            _ => Body::File(attributes.file.clone()),
        };
        self.children.push(Child { name: name.to_string(), test: attributes.test, body });
        3
    }

    /// Takes in the tree of a `use` declaration.
    fn import(&mut self, tree: &[TokenTree], before: &[String], reexport: bool) {
        for branch in tree.split(|token| is_mark(token, ',')) {
            let mut path = before.to_vec();
            let mut name = None;
            let mut renamed = false;
            for token in branch {
                match token {
                    TokenTree::Ident(word) if word == "as" => renamed = true,
                    TokenTree::Ident(word) if renamed => name = Some(word.to_string()),
                    TokenTree::Ident(word) if word == "self" && !path.is_empty() => name = path.last().cloned(),
                    TokenTree::Ident(word) => {
                        path.push(word.to_string());
                        name = Some(word.to_string());
                    }
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.import(&inner, &path, reexport);
                        path.clear();
                    }
                    TokenTree::Punct(mark) if mark.as_char() == '*' => name = None,
                    _ => {}
                }
            }
            if !path.is_empty() {
                self.imports.push(Use { path, name, reexport });
            }
        }
    }

    /// Takes in the path that begins at a token; returns how many tokens it is.
    fn path(&mut self, tokens: &[TokenTree], start: usize) -> usize {
        let mut path = Vec::new();
        let mut at = start;
        while let Some(TokenTree::Ident(word)) = tokens.get(at) {
            path.push(word.to_string());
            let more = matches!(tokens.get(at + 3), Some(TokenTree::Ident(_))) && is_double_colon(&tokens[at + 1..]);
            at += if more { 3 } else { 1 };
            if !more {
                break;
            }
        }
        if names_something(&tokens[..start], &tokens[at..], path.len()) {
            self.paths.insert(path);
        }
        at - start
    }
}

impl Attributes {
    fn note(&mut self, group: &Group) {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        match &tokens[..] {
            [TokenTree::Ident(word), TokenTree::Group(condition)] if word == "cfg" => {
                self.test |= condition.stream().to_string() == "test";
            }
            [TokenTree::Ident(word), ..] if word == "macro_export" => self.exported = true,
            [TokenTree::Ident(word), _, TokenTree::Literal(file)] if word == "path" => {
                self.file = Some(file.to_string().trim_matches('"').to_owned());
            }
            _ => {}
        }
    }
}

/// The group of an attribute, at `#`.
fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    match tokens.get(1) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => Some(group),
        _ => None,
    }
}

/// How many tokens an item is that is skipped: up to its body or a semicolon.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_import = tokens.iter().take(3).any(|token| matches!(token, TokenTree::Ident(word) if word == "use"));
    let end = tokens.iter().position(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_import,
        _ => is_mark(token, ';'),
    });
    end.map_or(tokens.len(), |end| end + 1)
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_double_colon(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [first, second, ..] if is_mark(first, ':') && is_mark(second, ':'))
}

/// Whether a path can be one of an item: it is no field, method, lifetime, new name or the rest of a longer path.
fn names_something(before: &[TokenTree], after: &[TokenTree], length: usize) -> bool {
    let of_value = match before {
        [.., first, second] if is_mark(second, '.') => !is_mark(first, '.'),
        [.., last] => is_mark(last, '\'') || is_mark(last, ':') && is_double_colon(&before[before.len() - 2..]),
        [] => false,
    };
    let introduced =
        matches!(before.last(), Some(TokenTree::Ident(word)) if word == "let" || word == "mut" || word == "fn");
    let labels = length == 1 && after.first().is_some_and(|token| is_mark(token, ':')) && !is_double_colon(after);
    !(of_value || introduced || labels)
}
