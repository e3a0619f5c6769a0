//! Einstein sums: one matrix product for each further operand, between permutations and reshapes.

use super::Builder;
use mlc_ir::ops::{Matmul, Reduce, ReduceFunction};
use mlc_ir::{OperatorError, Value};
use std::collections::BTreeMap;

/// A tensor whose axes have letters, each one once.
struct Labelled {
    value: Value,
    letters: Vec<char>,
}

/// Letters for the axes of `...`; nothing that an equation can contain.
const ELLIPSIS_LETTERS: [char; 6] = ['\u{1}', '\u{2}', '\u{3}', '\u{4}', '\u{5}', '\u{6}'];

impl Builder {
    /// The sum that an equation such as `bij,bjk->bik` describes, of operands of one data type. Letters may repeat within
    /// a term, `...` stands for further axes, which broadcast, and without an arrow the result has the letters that occur
    /// once.
    ///
    /// # Errors
    /// When the equation doesn't fit the operands.
    pub fn einsum(&mut self, equation: &str, operands: &[Value]) -> Result<Value, OperatorError> {
        let equation: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
        let (terms, output) = match equation.split_once("->") {
            Some((terms, output)) => (terms, Some(output)),
            None => (equation.as_str(), None),
        };
        let terms: Vec<&str> = terms.split(',').collect();
        if terms.len() != operands.len() || operands.is_empty() {
            let message = format!("the equation {equation} has {} terms for {} operands", terms.len(), operands.len());
            return Err(OperatorError::field(message));
        }
        let mut counts = BTreeMap::new();
        let mut sum = Sum { builder: self, extents: BTreeMap::new() };
        let mut labelled = Vec::new();
        for (term, &value) in terms.iter().zip(operands) {
            let letters = term_letters(term, sum.builder.rank(value))?;
            letters.iter().for_each(|&letter| *counts.entry(letter).or_insert(0usize) += 1);
            sum.note_extents(value, &letters)?;
            labelled.push((value, letters));
        }
        let output = match output {
            Some(output) => {
                let ellipsis = counts.keys().filter(|letter| ELLIPSIS_LETTERS.contains(letter)).count();
                let open = if output.contains("...") { ellipsis } else { 0 };
                term_letters(output, output.chars().filter(|&letter| letter != '.').count() + open)?
            }
            // Without an arrow: the axes of `...`, then the letters that occur once, alphabetically.
            None => counts
                .iter()
                .filter(|(letter, count)| **count == 1 || ELLIPSIS_LETTERS.contains(letter))
                .map(|(letter, _)| *letter)
                .collect(),
        };
        if let Some(unknown) = output.iter().find(|letter| !counts.contains_key(letter)) {
            let message = format!("the result of {equation} has the letter {unknown}, which no term has");
            return Err(OperatorError::field(message));
        }
        let labelled: Result<Vec<Labelled>, OperatorError> =
            labelled.into_iter().map(|(value, letters)| sum.labelled(value, letters)).collect();
        sum.contract(labelled?, &output)
    }
}

/// An Einstein sum under construction.
struct Sum<'b> {
    builder: &'b mut Builder,
    /// What each letter stands for.
    extents: BTreeMap<char, usize>,
}

/// Letters of a term, with those for the axes of `...`.
fn term_letters(term: &str, rank: usize) -> Result<Vec<char>, OperatorError> {
    let misfit = || OperatorError::field(format!("the term `{term}` doesn't fit a tensor of {rank} axes"));
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (term, None),
    };
    let mut letters: Vec<char> = before.chars().collect();
    if let Some(after) = after {
        let named = letters.len() + after.chars().count();
        let open = rank.checked_sub(named).filter(|&open| open <= ELLIPSIS_LETTERS.len()).ok_or_else(misfit)?;
        letters.extend(&ELLIPSIS_LETTERS[ELLIPSIS_LETTERS.len() - open..]);
        letters.extend(after.chars());
    }
    let legal = letters.iter().all(|letter| letter.is_ascii_alphabetic() || ELLIPSIS_LETTERS.contains(letter));
    if letters.len() != rank || !legal {
        return Err(misfit());
    }
    Ok(letters)
}

fn repeated(letters: &[char]) -> Option<(usize, usize)> {
    let pairs = (0..letters.len()).flat_map(|first| (first + 1..letters.len()).map(move |second| (first, second)));
    pairs.into_iter().find(|&(first, second)| letters[first] == letters[second])
}

impl Sum<'_> {
    fn note_extents(&mut self, value: Value, letters: &[char]) -> Result<(), OperatorError> {
        for (&letter, &extent) in letters.iter().zip(&self.builder.shape(value)) {
            let known = self.extents.entry(letter).or_insert(extent);
            if *known == 1 {
                *known = extent;
            } else if extent != 1 && extent != *known {
                return Err(OperatorError::types(format!("the letter {letter} stands for {known} and for {extent}")));
            }
        }
        Ok(())
    }

    /// Takes the diagonal where a letter occurs twice, and leaves out axes of one element that stand for more.
    fn labelled(&mut self, mut value: Value, mut letters: Vec<char>) -> Result<Labelled, OperatorError> {
        for axis in (0..letters.len()).rev() {
            if self.builder.shape(value)[axis] == 1 && self.extents.get(&letters[axis]) != Some(&1) {
                value = self.builder.remove_axis(value, axis)?;
                letters.remove(axis);
            }
        }
        while let Some((first, second)) = repeated(&letters) {
            value = self.diagonal(value, first, second)?;
            let letter = letters.remove(second);
            letters.remove(first);
            letters.push(letter);
        }
        Ok(Labelled { value, letters })
    }

    /// The diagonal of two axes of one extent, as the last axis.
    fn diagonal(&mut self, x: Value, first: usize, second: usize) -> Result<Value, OperatorError> {
        let shape = self.builder.shape(x);
        let rest: Vec<usize> = (0..shape.len()).filter(|&axis| axis != first && axis != second).collect();
        let order: Vec<usize> = rest.iter().copied().chain([first, second]).collect();
        let extent = shape[first];
        let mut merged: Vec<usize> = rest.iter().map(|&axis| shape[axis]).collect();
        merged.push(extent * extent);
        let x = self.builder.transpose(x, &order)?;
        let x = self.builder.reshape(x, &merged)?;
        self.builder.slice_axis(x, rest.len(), 0, extent, extent as i64 + 1)
    }

    fn contract(&mut self, operands: Vec<Labelled>, output: &[char]) -> Result<Value, OperatorError> {
        let letters: Vec<Vec<char>> = operands.iter().map(|operand| operand.letters.clone()).collect();
        let mut operands = operands.into_iter();
        let Some(mut left) = operands.next() else { return Err(OperatorError::field("there is no operand")) };
        for (index, right) in operands.enumerate() {
            let later = &letters[index + 2..];
            let kept = |letter: char| output.contains(&letter) || later.iter().any(|letters| letters.contains(&letter));
            left = self.product(left, right, kept)?;
        }
        let left = self.sum_out(left, |letter| output.contains(&letter))?;
        let order: Option<Vec<usize>> =
            output.iter().map(|letter| left.letters.iter().position(|own| own == letter)).collect();
        let order = order.filter(|order| order.len() == left.letters.len());
        let order = order.ok_or_else(|| OperatorError::field("a letter occurs twice in the result"))?;
        self.builder.transpose(left.value, &order)
    }

    /// Sums over the letters that aren't kept.
    fn sum_out(&mut self, x: Labelled, kept: impl Fn(char) -> bool) -> Result<Labelled, OperatorError> {
        let axes: Vec<usize> = (0..x.letters.len()).filter(|&axis| !kept(x.letters[axis])).collect();
        if axes.is_empty() {
            return Ok(x);
        }
        let sum = Reduce { function: ReduceFunction::Sum, axes, keep_axes: false };
        let value = self.builder.apply(sum, &[x.value])?;
        Ok(Labelled { value, letters: x.letters.into_iter().filter(|&letter| kept(letter)).collect() })
    }

    /// The tensor with its axes in three groups, each merged into one axis.
    fn grouped(&mut self, x: &Labelled, groups: [&[char]; 3]) -> Result<Value, OperatorError> {
        let shape = self.builder.shape(x.value);
        let axis = |letter: &char| x.letters.iter().position(|own| own == letter).unwrap_or(0);
        let order: Vec<usize> = groups.iter().flat_map(|group| group.iter().map(axis)).collect();
        let merged = groups.map(|group| group.iter().map(|letter| shape[axis(letter)]).product::<usize>());
        let value = self.builder.transpose(x.value, &order)?;
        self.builder.reshape(value, &merged)
    }

    fn product(
        &mut self,
        left: Labelled,
        right: Labelled,
        kept: impl Fn(char) -> bool,
    ) -> Result<Labelled, OperatorError> {
        let (left_letters, right_letters) = (left.letters.clone(), right.letters.clone());
        let left = self.sum_out(left, |letter| kept(letter) || right_letters.contains(&letter))?;
        let right = self.sum_out(right, |letter| kept(letter) || left_letters.contains(&letter))?;
        let shared: Vec<char> = left.letters.iter().copied().filter(|letter| right.letters.contains(letter)).collect();
        let (batch, inner): (Vec<char>, Vec<char>) = shared.iter().partition(|&&letter| kept(letter));
        let rows: Vec<char> = left.letters.iter().copied().filter(|letter| !shared.contains(letter)).collect();
        let columns: Vec<char> = right.letters.iter().copied().filter(|letter| !shared.contains(letter)).collect();
        let letters: Vec<char> = batch.iter().chain(&rows).chain(&columns).copied().collect();
        let shape: Vec<usize> = letters.iter().map(|letter| self.extents.get(letter).copied().unwrap_or(1)).collect();
        let left = self.grouped(&left, [&batch, &rows, &inner])?;
        let right = self.grouped(&right, [&batch, &inner, &columns])?;
        let matmul = Matmul { transpose_left: false, transpose_right: false, sums: None };
        let value = self.builder.apply(matmul, &[left, right])?;
        Ok(Labelled { value: self.builder.reshape(value, &shape)?, letters })
    }
}
