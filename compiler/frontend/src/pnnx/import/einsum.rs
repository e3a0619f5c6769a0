//! `torch.einsum`: one matrix product for each further operand, between permutations and reshapes.

use super::arithmetic::promote;
use super::call::Call;
use super::item::Item;
use super::normalization::reduced;
use super::registry::{Handler::One, Table};
use crate::fault::Fault;
use mlc_ir::Value;
use mlc_ir::ops::{Matmul, ReduceFunction};
use std::collections::BTreeMap;

pub(super) const OPERATORS: Table = &[("torch.einsum", One(einsum))];

/// A tensor whose axes have letters, each one once.
struct Labelled {
    value: Value,
    letters: Vec<char>,
}

/// Letters for the axes of `...`; nothing that an equation can contain.
const ELLIPSIS_LETTERS: [char; 6] = ['\u{1}', '\u{2}', '\u{3}', '\u{4}', '\u{5}', '\u{6}'];

fn einsum(call: &mut Call<'_>) -> Result<Value, Fault> {
    let equation = call.operator.parameters.get("equation").map(crate::pnnx::value::format_parameter);
    let equation: String = equation.unwrap_or_default().chars().filter(|letter| !letter.is_whitespace()).collect();
    call.ignore(&["equation"]);
    let values: Vec<Item> = call.all_tensors()?.into_iter().map(Item::Tensor).collect();
    let references: Vec<&Item> = values.iter().collect();
    let values = promote(call.builder, &references)?;
    let (terms, output) = match equation.split_once("->") {
        Some((terms, output)) => (terms, Some(output)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != values.len() {
        let message = format!("the equation {equation} has {} terms for {} operands", terms.len(), values.len());
        return Err(Fault::parameter(message));
    }
    let mut extents = BTreeMap::new();
    let mut counts = BTreeMap::new();
    let mut operands = Vec::new();
    for (term, &value) in terms.iter().zip(&values) {
        let letters = term_letters(term, call.builder.rank(value))?;
        letters.iter().for_each(|&letter| *counts.entry(letter).or_insert(0usize) += 1);
        operands.push(labelled(call, value, letters, &mut extents)?);
    }
    let output = match output {
        Some(output) => {
            let ellipsis = counts.keys().filter(|letter| ELLIPSIS_LETTERS.contains(letter)).count();
            term_letters(output, output.chars().filter(|&letter| letter != '.').count() + ellipsis)?
        }
        // Without an arrow: the axes of `...`, then the letters that occur once, alphabetically.
        None => counts
            .iter()
            .filter(|(letter, count)| **count == 1 || ELLIPSIS_LETTERS.contains(letter))
            .map(|(letter, _)| *letter)
            .collect(),
    };
    if let Some(unknown) = output.iter().find(|letter| !counts.contains_key(letter)) {
        return Err(Fault::parameter(format!("the result of {equation} has the letter {unknown}, which no term has")));
    }
    contract(call, operands, &output)
}

/// Letters of a term, with those for the axes of `...`.
fn term_letters(term: &str, rank: usize) -> Result<Vec<char>, Fault> {
    let fault = || Fault::parameter(format!("the term `{term}` doesn't fit a tensor of {rank} axes"));
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (term, None),
    };
    let mut letters: Vec<char> = before.chars().collect();
    if let Some(after) = after {
        let named = letters.len() + after.chars().count();
        let open = rank.checked_sub(named).filter(|&open| open <= ELLIPSIS_LETTERS.len()).ok_or_else(fault)?;
        letters.extend(&ELLIPSIS_LETTERS[ELLIPSIS_LETTERS.len() - open..]);
        letters.extend(after.chars());
    }
    let legal = letters.iter().all(|letter| letter.is_ascii_alphabetic() || ELLIPSIS_LETTERS.contains(letter));
    if letters.len() != rank || !legal {
        return Err(fault());
    }
    Ok(letters)
}

/// Takes the diagonal where a letter occurs twice, and notes the letters' extents.
fn labelled(
    call: &mut Call<'_>,
    mut value: Value,
    mut letters: Vec<char>,
    extents: &mut BTreeMap<char, usize>,
) -> Result<Labelled, Fault> {
    for (&letter, &extent) in letters.iter().zip(call.shape(value).iter()) {
        let known = *extents.entry(letter).or_insert(extent);
        if known != extent {
            return Err(Fault::operands(format!("the letter {letter} stands for {known} and for {extent}")));
        }
    }
    while let Some((first, second)) = repeated(&letters) {
        value = diagonal(call, value, first, second)?;
        let letter = letters.remove(second);
        letters.remove(first);
        letters.push(letter);
    }
    Ok(Labelled { value, letters })
}

fn repeated(letters: &[char]) -> Option<(usize, usize)> {
    let pairs = (0..letters.len()).flat_map(|first| (first + 1..letters.len()).map(move |second| (first, second)));
    pairs.into_iter().find(|&(first, second)| letters[first] == letters[second])
}

/// The diagonal of two axes of one extent, as the last axis.
fn diagonal(call: &mut Call<'_>, x: Value, first: usize, second: usize) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let rest: Vec<usize> = (0..shape.len()).filter(|&axis| axis != first && axis != second).collect();
    let order: Vec<usize> = rest.iter().copied().chain([first, second]).collect();
    let extent = shape[first];
    let mut merged: Vec<usize> = rest.iter().map(|&axis| shape[axis]).collect();
    merged.push(extent * extent);
    let x = call.builder.transpose(x, &order)?;
    let x = call.builder.reshape(x, &merged)?;
    Ok(call.builder.slice_axis(x, rest.len(), 0, extent, extent as i64 + 1)?)
}

fn contract(call: &mut Call<'_>, operands: Vec<Labelled>, output: &[char]) -> Result<Value, Fault> {
    let letters: Vec<Vec<char>> = operands.iter().map(|operand| operand.letters.clone()).collect();
    let mut operands = operands.into_iter();
    let Some(mut left) = operands.next() else {
        return Err(Fault::new(mlc_ir::Code::OperandCount, "there is no operand"));
    };
    for (index, right) in operands.enumerate() {
        let later = &letters[index + 2..];
        let kept = |letter: char| output.contains(&letter) || later.iter().any(|letters| letters.contains(&letter));
        left = product(call, left, right, kept)?;
    }
    let left = sum_out(call, left, |letter| output.contains(&letter))?;
    let order: Option<Vec<usize>> =
        output.iter().map(|letter| left.letters.iter().position(|own| own == letter)).collect();
    let order = order.filter(|order| order.len() == left.letters.len());
    let order = order.ok_or_else(|| Fault::parameter("a letter occurs twice in the result"))?;
    Ok(call.builder.transpose(left.value, &order)?)
}

/// Sums over the letters that aren't kept.
fn sum_out(call: &mut Call<'_>, x: Labelled, kept: impl Fn(char) -> bool) -> Result<Labelled, Fault> {
    let axes: Vec<usize> = (0..x.letters.len()).filter(|&axis| !kept(x.letters[axis])).collect();
    if axes.is_empty() {
        return Ok(x);
    }
    let value = reduced(call, x.value, ReduceFunction::Sum, axes, false)?;
    Ok(Labelled { value, letters: x.letters.into_iter().filter(|&letter| kept(letter)).collect() })
}

/// The tensor with its axes in three groups, each merged into one axis.
fn grouped(call: &mut Call<'_>, x: &Labelled, groups: [&[char]; 3]) -> Result<Value, Fault> {
    let shape = call.shape(x.value);
    let axis = |letter: &char| x.letters.iter().position(|own| own == letter).unwrap_or(0);
    let order: Vec<usize> = groups.iter().flat_map(|group| group.iter().map(axis)).collect();
    let merged = groups.map(|group| group.iter().map(|letter| shape[axis(letter)]).product::<usize>());
    let value = call.builder.transpose(x.value, &order)?;
    Ok(call.builder.reshape(value, &merged)?)
}

fn product(
    call: &mut Call<'_>,
    left: Labelled,
    right: Labelled,
    kept: impl Fn(char) -> bool,
) -> Result<Labelled, Fault> {
    let (left_letters, right_letters) = (left.letters.clone(), right.letters.clone());
    let left = sum_out(call, left, |letter| kept(letter) || right_letters.contains(&letter))?;
    let right = sum_out(call, right, |letter| kept(letter) || left_letters.contains(&letter))?;
    let shared: Vec<char> = left.letters.iter().copied().filter(|letter| right.letters.contains(letter)).collect();
    let (batch, inner): (Vec<char>, Vec<char>) = shared.iter().partition(|&&letter| kept(letter));
    let rows: Vec<char> = left.letters.iter().copied().filter(|letter| !shared.contains(letter)).collect();
    let columns: Vec<char> = right.letters.iter().copied().filter(|letter| !shared.contains(letter)).collect();
    let letters: Vec<char> = batch.iter().chain(&rows).chain(&columns).copied().collect();
    let (left_shape, right_shape) = (call.shape(left.value), call.shape(right.value));
    let extent = |letter: &char| {
        let own =
            |letters: &[char], shape: &[usize]| letters.iter().position(|own| own == letter).map(|axis| shape[axis]);
        own(&left.letters, &left_shape).or_else(|| own(&right.letters, &right_shape)).unwrap_or(1)
    };
    let shape: Vec<usize> = letters.iter().map(extent).collect();
    let a = grouped(call, &left, [&batch, &rows, &inner])?;
    let b = grouped(call, &right, [&batch, &inner, &columns])?;
    let value = call.builder.apply(Matmul { transpose_left: false, transpose_right: false }, &[a, b])?;
    Ok(Labelled { value: call.builder.reshape(value, &shape)?, letters })
}
