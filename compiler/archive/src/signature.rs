//! What the Relay text says of a model's inputs and outputs: names, order and shapes, which stand nowhere else for models that
//! are compiled ahead of time. Only the head of `@main` is read; what isn't understood is left out.

use super::header::without_comments;
use mlc_ir::{DType, Shape, TensorType};

/// The head of `@main`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Signature {
    /// Names of the parameters and their types, where they are tensors.
    pub parameters: Vec<(String, Option<TensorType>)>,
    /// Names of the results, where the importer recorded them.
    pub result_names: Vec<String>,
    /// Types of the results; empty where the text doesn't say.
    pub results: Vec<TensorType>,
}

/// The most bytes that the head of a function has.
const MOST_BYTES: usize = 1 << 20;

impl Signature {
    pub(super) fn parse(text: &str) -> Signature {
        let Some((_, rest)) = text.split_once("@main(") else { return Signature::default() };
        // Cut so that a large body isn't copied; a character in the middle of the cut ends the head a little earlier.
        let mut end = rest.len().min(MOST_BYTES);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let rest = without_comments(&rest[..end]);
        let Some(end) = closing(&rest) else { return Signature::default() };
        let mut signature = Signature::default();
        for item in parts(&rest[..end]) {
            if let Some(parameter) = item.strip_prefix('%') {
                let (name, ty) = parameter.split_once(": ").unwrap_or((parameter, ""));
                signature.parameters.push((name.trim().to_owned(), tensor_type(ty.trim())));
            } else if let Some(names) = item.strip_prefix("output_tensor_names=") {
                let names = names.trim().trim_start_matches('[').trim_end_matches(']');
                let names = parts(names).into_iter().map(|name| name.trim_matches('"').to_owned());
                signature.result_names = names.collect();
            }
        }
        if let Some(result) = rest[end + 1..].trim_start().strip_prefix("->") {
            let result = result.split('{').next().unwrap_or_default().trim();
            let inner = result.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
            let types = inner.map_or_else(|| vec![result], parts);
            let types: Option<Vec<TensorType>> = types.into_iter().map(tensor_type).collect();
            signature.results = types.unwrap_or_default();
        }
        signature
    }
}

/// Where the parenthesis closes that was open at the start.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1usize;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The parts between commas outside of brackets, trimmed; empty ones are left out.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut quoted) = (0usize, 0, false);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// `Tensor[(1, 640), int8]`, or a bare data type for a scalar.
fn tensor_type(text: &str) -> Option<TensorType> {
    let Some(inner) = text.strip_prefix("Tensor[").and_then(|inner| inner.strip_suffix(']')) else {
        return Some(TensorType::new(DType::parse_long_name(text)?, []));
    };
    let (extents, element) = inner.trim().strip_prefix('(')?.split_once(')')?;
    let extents: Option<Shape> = parts(extents).into_iter().map(|extent| extent.parse().ok()).collect();
    let ty = TensorType::new(DType::parse_long_name(element.trim_start_matches(',').trim())?, extents?);
    ty.checked_bytes().map(|_| ty)
}
