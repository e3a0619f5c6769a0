//! Products of matrices.

use super::rules::{broadcast_shape, same_types};
use super::subject::Subject;
use crate::model::{Argument, Extents};
use mlc_ir::{Code, Diagnostic};

/// Rows, columns and the inner extent of a product, and the leading axes of the operands, two each.
struct Product {
    rows: usize,
    columns: usize,
    inner: [usize; 2],
    batch: [[usize; 2]; 2],
    /// Of the operand with more axes.
    rank: usize,
}

impl Product {
    /// Of two matrices, or stacks of them; a vector is a row on the left and a column on the right.
    fn new(a: &[usize], b: &[usize], transposed: [bool; 2]) -> Product {
        let matrix = |shape: &[usize], transposed: bool, vector: [usize; 2]| match shape {
            [.., rows, columns] if transposed => [*columns, *rows],
            [.., rows, columns] => [*rows, *columns],
            _ => vector,
        };
        let [rows, left] = matrix(a, transposed[0], [1, a[0]]);
        let [right, columns] = matrix(b, transposed[1], [b[0], 1]);
        let batch = |shape: &[usize]| match shape {
            [first, second, _, _] => [*first, *second],
            [second, _, _] => [1, *second],
            _ => [1, 1],
        };
        Product { rows, columns, inner: [left, right], batch: [batch(a), batch(b)], rank: a.len().max(b.len()) }
    }

    /// The result's shape; `None` if the operands don't fit.
    fn shape(&self) -> Option<Extents> {
        let batch = broadcast_shape(&self.batch[0], &self.batch[1])?;
        let skipped = 2 - self.rank.saturating_sub(2).min(2);
        let shape = batch.into_iter().skip(skipped).chain([self.rows, self.columns]).collect();
        (self.inner[0] == self.inner[1]).then_some(shape)
    }
}

fn transposed(subject: &Subject) -> [bool; 2] {
    [subject.flag("TransposeInput"), subject.flag("TransposeOther")]
}

pub(super) fn product(subject: &Subject) -> Result<(), Diagnostic> {
    same_types(subject)?;
    let (a, b, output) = (subject.read(0), subject.read(1), subject.output());
    let flags = transposed(subject);
    for (field, a, b, found) in [
        ("Shape", &a.shape, &b.shape, &output.shape),
        ("PaddedShape", &a.padded_shape, &b.padded_shape, &output.padded_shape),
    ] {
        let product = Product::new(a, b, flags);
        let Some(expected) = product.shape() else {
            let [left, right] = product.inner;
            let what = if left == right { "leading axes".into() } else { format!("inner extents {left} and {right}") };
            let message = format!("the {what} of {field} {a:?} and {b:?} don't fit");
            return Err(subject.fault("ReadTensors", Code::OperandTypes, message));
        };
        if *found != expected {
            let message = format!("the {field} {found:?} is written, {expected:?} follows from what is read");
            return Err(subject.fault(format!("WriteTensors[0].{field}"), Code::ShapeMismatch, message));
        }
    }
    Ok(())
}

pub(super) fn product_and_residual(subject: &Subject) -> Result<(), Diagnostic> {
    product(subject)?;
    let (residual, output) = (&subject.read(2).shape, &subject.output().shape);
    if residual == output {
        return Ok(());
    }
    let message = format!("what is added has the shape {residual:?}, the product {output:?}");
    Err(subject.fault("ReadTensors[2].Shape", Code::OperandTypes, message))
}

/// The arguments that the oldest dialect derives from the tensors. Nothing needs them.
pub(crate) const DERIVED: [&str; 4] = ["InputDimNC", "OtherDimNC", "ShapeMNK", "StridesACDB"];

/// Warnings about derived arguments that disagree with the tensors.
pub(super) fn check_derived(subject: &Subject) -> Vec<Diagnostic> {
    let (a, b, output) = (subject.read(0), subject.read(1), subject.output());
    let product = Product::new(&a.shape, &b.shape, transposed(subject));
    let last = |extents: &Extents| extents.last().copied().unwrap_or(1);
    let derived: [&[usize]; 4] = [
        &product.batch[0],
        &product.batch[1],
        &[product.rows, product.columns, product.inner[0]],
        &[last(&a.storage), last(&output.storage), last(&output.storage), last(&b.storage)],
    ];
    let agrees = |found: &Argument, expected: &[usize]| matches!(found, Argument::Dims(found) if found.iter().copied().eq(expected.iter().map(|&extent| extent as i64)));
    let mut warnings = Vec::new();
    for (name, expected) in DERIVED.into_iter().zip(derived) {
        if subject.operation.argument(name).is_some_and(|found| !agrees(found, expected)) {
            let message =
                format!("the argument {name} isn't {expected:?}, which follows from the tensors; it is passed over");
            let location = subject.location(format_args!("Args[{name:?}]"));
            warnings.push(Diagnostic::warning(Code::ParameterInvalid, location, message));
        }
    }
    warnings
}
