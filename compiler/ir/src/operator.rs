//! [`Operator`]: what every operator says about itself. One file under `ops/` implements it; everything else is derived.

use crate::fields::Fields;
use crate::generator::Generator;
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::ops::Range;

/// Why an operator can't be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// Too few or too many operands.
    #[error("{found} operands given, {expected} expected")]
    OperandCount {
        /// For example `2`, or `at least 1`.
        expected: String,
        /// How many there are.
        found: usize,
    },
    /// The operands' types don't fit.
    #[error("{0}")]
    OperandTypes(String),
    /// A field's value doesn't fit.
    #[error("{0}")]
    Field(String),
    /// The values have no result, for example an index out of range.
    #[error("{0}")]
    Evaluation(String),
}

impl OperatorError {
    /// An error about the operands' types.
    pub fn types(message: impl Into<String>) -> Self {
        OperatorError::OperandTypes(message.into())
    }

    /// An error about a field.
    pub fn field(message: impl Into<String>) -> Self {
        OperatorError::Field(message.into())
    }
}

/// What an application costs, before any optimisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Multiply-accumulate operations.
    pub macs: u64,
    /// Other scalar operations; a transcendental function counts as 10.
    pub scalar_operations: u64,
    /// Bytes of the operands that are read.
    pub bytes_read: u64,
    /// Bytes of all results.
    pub bytes_written: u64,
}

impl Work {
    /// Work that moves the operands' and results' bytes once.
    pub fn moving(operands: &[TensorType], results: &[TensorType]) -> Work {
        let bytes = |types: &[TensorType]| types.iter().map(|ty| ty.bytes() as u64).sum();
        Work { macs: 0, scalar_operations: 0, bytes_read: bytes(operands), bytes_written: bytes(results) }
    }
}

/// What kind of computation an operator is, for passes and code generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Graph inputs and constants.
    Source,
    /// Each result element is a scalar expression of the operands' elements, which broadcast.
    Elementwise,
    /// The elements of its operand at other places: nothing has to be moved.
    View,
    /// Puts its operands' elements into a larger whole.
    Movement,
    /// Each result element is a sum, a mean or an extremum of products or elements of the operands, complete before it is
    /// stored: passes give its kernel an epilogue.
    Accumulation,
    /// Computes in some other way, such as several rounds over the result. Its kernel can carry an epilogue.
    Anchor,
    /// Runs a graph or a function of its own.
    Control,
}

impl Category {
    /// Whether a kernel can have an operator of this category as its anchor.
    pub const fn is_anchor(self) -> bool {
        matches!(self, Category::Accumulation | Category::Anchor)
    }
}

/// How an operator computes with integers of 8 bits that stand for real numbers, those of a tensor with one scale and one zero point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntegerForm {
    /// Sums of products of the first two operands, which are brought to the result's scale.
    Products,
    /// Its result's elements are elements of its operands, which are moved, joined or compared: all have one scale.
    Elements,
    /// Sums or means of its operand's elements, which are brought to the result's scale.
    Means,
    /// A function of the elements: a table of all results where one operand varies, arithmetic where two are added, subtracted or
    /// multiplied.
    Function,
    /// Exponentials over their sum, by a table.
    Softmax,
    /// None: it computes with real numbers.
    None,
}

/// Which rows of an operand a row of the result reads. Rows are along axis 1 of tensors [1, rows, …, channels].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowWindow {
    /// How many it reads.
    pub taps: usize,
    /// How many further down the next row of the result reads.
    pub stride: usize,
    /// Distance of those that are read.
    pub dilation: usize,
    /// Rows of the border before and after the operand's.
    pub pads: (usize, usize),
    /// What the border consists of.
    pub border: i64,
    /// How many neighbouring rows of the result read the same ones; where that is more than one, they are computed one at a time.
    pub repeat: usize,
}

impl RowWindow {
    /// The row that has the result's number.
    pub const ROW: RowWindow = RowWindow { taps: 1, stride: 1, dilation: 1, pads: (0, 0), border: 0, repeat: 1 };

    /// Rows from the first that some neighbouring rows of the result read to the last.
    pub fn reach(&self, rows: usize) -> usize {
        rows.saturating_sub(1) * self.stride + self.taps.saturating_sub(1) * self.dilation + 1
    }
}

/// The rows that are read of each operand; `None` of what is read wholly for each row.
pub type RowReads = Vec<Option<RowWindow>>;

/// What a patch reads of an operand, which is transposed with the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchRead {
    /// All of it, as it is.
    Whole,
    /// Some rows of a tensor [1, rows, columns, channels], as [1, columns, rows, channels].
    Rows(Range<usize>),
    /// All of a window's taps [rows, columns, …], as [columns, rows, …].
    Taps,
}

/// See [`Operator::patch`].
pub type PatchReads = Vec<PatchRead>;

/// An operator of the intermediate representation.
pub trait Operator: Fields + Clone + Eq {
    /// Name in the text form, in C comments and in the documentation.
    const NAME: &'static str;

    /// Its kind of computation.
    const CATEGORY: Category;

    /// What its first operands are, such as `weights`: their names in C. Further ones are numbered.
    fn roles(&self) -> Vec<&'static str>;

    /// Whether it reads its first operand along the last axis, element after element and more than once, so that a copy pays
    /// where these aren't neighbours in memory.
    fn reads_rows(&self) -> bool;

    /// How it computes with integers that stand for real numbers.
    fn integer_form(&self) -> IntegerForm;

    /// The operator that computes neighbouring rows of the result from the rows of the operands that they read, the border's among them,
    /// and which these are; `None` where rows aren't computed alike, each from some of its operands' rows.
    fn by_rows(&self, operands: &[TensorType]) -> Option<(Self, RowReads)>;

    /// The operator that computes a patch, some neighbouring rows of the result [1, rows, columns, channels], transposed: [1, columns, rows,
    /// channels], so that walking its rows walks along the patch. It takes what the patch reads of the operands, as these say; what it reads of
    /// the border is its own. `None` where there are no such rows, or they aren't computed alike.
    fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Self, PatchReads)>;

    /// Where the result is a sum over all rows of the first operand: the operator whose results for `rows` rows after the other add up to it,
    /// times the factor. It takes as many rows of weights, which must all be alike.
    fn share_of_rows(&self, operands: &[TensorType], rows: usize) -> Option<(Self, f64)>;

    /// Types of the results: the only shape logic there is.
    ///
    /// # Errors
    /// When number, types or shapes of the operands, or the fields, don't fit.
    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError>;

    /// Plain reference evaluation. `results` is what [`Operator::infer`] gave for these operands.
    ///
    /// # Errors
    /// When the values have no result, for example an index out of range.
    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError>;

    /// Cost; the types fit.
    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work;

    /// The scalar expression of an elementwise operator over operands of these types, `None` for all others.
    fn expression(&self, operands: &[TensorType]) -> Option<Expression>;

    /// A random legal instance: the operator and types of operands that it accepts. Small, and rich in corner cases.
    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>);
}

/// A product of counts for [`Work`], at most `u64::MAX`.
pub fn count_product(factors: impl IntoIterator<Item = usize>) -> u64 {
    factors.into_iter().fold(1, |product: u64, factor| product.saturating_mul(factor as u64))
}

/// Checks the number of operands.
pub fn expect_operands<const N: usize>(operands: &[TensorType]) -> Result<&[TensorType; N], OperatorError> {
    operands.try_into().map_err(|_| OperatorError::OperandCount { expected: N.to_string(), found: operands.len() })
}
