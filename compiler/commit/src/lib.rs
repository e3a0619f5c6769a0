//! The commit that a program is built from, for `mlc --version`.
//!
//! A macro rather than a build script: what uses it, and nothing else, is compiled again after a commit, since it names the files
//! of the repository that tell the commit as files that it includes. Only programs use it; the compiler itself doesn't know of
//! which commit it is, so that archives can't.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod repository;

use proc_macro::TokenStream;
use repository::Head;
use std::fmt::Write as _;
use std::path::Path;

/// The commit that was checked out when this was compiled, a `&'static str` of hexadecimal digits, or `unknown` where the sources
/// aren't in a repository of Git's.
#[proc_macro]
pub fn commit(_: TokenStream) -> TokenStream {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = expression(&Head::read(&root).unwrap_or_default());
    text.parse()
        .unwrap_or_else(|_| TokenStream::from(proc_macro::TokenTree::from(proc_macro::Literal::string("unknown"))))
}

/// The commit as a literal, after the files that it was read from.
fn expression(head: &Head) -> String {
    let mut text = String::from("{ ");
    for path in &head.files {
        // It is never read at run time, so the program doesn't have it.
        let _ = write!(text, "const _: &[u8] = ::core::include_bytes!({:?}); ", path.to_string_lossy());
    }
    let _ = write!(text, "{:?} }}", head.commit.as_deref().unwrap_or("unknown"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_included_and_the_commit_is_given() {
        let head = Head { commit: Some("0123abc".into()), files: vec!["/a \"b\"/HEAD".into()] };
        let expected = r#"{ const _: &[u8] = ::core::include_bytes!("/a \"b\"/HEAD"); "0123abc" }"#;
        assert_eq!(expression(&head), expected);
        assert_eq!(expression(&Head::default()), r#"{ "unknown" }"#);
    }
}
