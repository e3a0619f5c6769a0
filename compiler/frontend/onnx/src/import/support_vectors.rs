//! Support vector machines, as scikit-learn exports them.
//!
//! What is linear in the kernels, which is everything behind them, is a matrix product: the scores of all pairs of classes
//! are one product with a matrix that is put together while importing.

use super::call::{Call, Item, Table};
use super::classical::{constant, floats};
use super::ensemble::{Classified, PostTransform};
use super::labels::class_labels;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

/// Operators of ai.onnx.ml.
pub(super) const OPERATORS: Table = &[("SVMClassifier", 1, Many(classifier)), ("SVMRegressor", 1, One(regressor))];

/// Most elements of the matrix of the coefficients of pairs of classes.
const MOST_COEFFICIENTS: usize = 1 << 26;

/// How much a row is like a support vector.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kernel {
    /// `x · v`
    Linear,
    /// `(gamma x · v + offset)^degree`
    Polynomial { gamma: f64, offset: f64, degree: f64 },
    /// `e^(-gamma |x - v|²)`
    Radial { gamma: f64 },
    /// `tanh(gamma x · v + offset)`
    Sigmoid { gamma: f64, offset: f64 },
}

impl Kernel {
    fn of(call: &mut Call<'_, '_>) -> Result<Kernel, Fault> {
        let parameters = call.floats("kernel_params")?.unwrap_or_default();
        let parameter = |index: usize| parameters.get(index).copied().unwrap_or(0.0);
        let (gamma, offset, degree) = (parameter(0), parameter(1), parameter(2));
        match call.word("kernel_type")?.unwrap_or("LINEAR") {
            "LINEAR" => Ok(Kernel::Linear),
            "POLY" => Ok(Kernel::Polynomial { gamma, offset, degree }),
            "RBF" => Ok(Kernel::Radial { gamma }),
            "SIGMOID" => Ok(Kernel::Sigmoid { gamma, offset }),
            other => Err(Fault::parameter(format!("there is no kernel `{other}`"))),
        }
    }

    /// The kernels [rows, vectors] of x [rows, features] with each of the vectors [vectors, features].
    fn apply(self, call: &mut Call<'_, '_>, x: Value, vectors: Vec<f64>, count: usize) -> Result<Value, Fault> {
        match self {
            Kernel::Linear => product(call, x, vectors, count),
            Kernel::Radial { gamma } => radial(call, x, vectors, count, gamma),
            Kernel::Polynomial { gamma, offset, degree } => {
                let base = scaled(call, x, vectors, count, gamma, offset)?;
                match call.builder.simple_power(base, degree)? {
                    Some(power) => Ok(power),
                    None => Ok(call.builder.binary_number(B::Power, base, degree)?),
                }
            }
            Kernel::Sigmoid { gamma, offset } => {
                let angle = scaled(call, x, vectors, count, gamma, offset)?;
                Ok(call.builder.unary(U::Tanh, angle)?)
            }
        }
    }
}

/// `x matrix^T` [rows, count] for a matrix [count, columns of x].
fn product(call: &mut Call<'_, '_>, x: Value, matrix: Vec<f64>, count: usize) -> Result<Value, Fault> {
    let columns = call.shape(x).last().copied().unwrap_or(0);
    let matrix = constant(call, DType::F32, &[count, columns], matrix)?;
    Ok(call.builder.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[x, matrix])?)
}

/// `gamma x vectors^T + offset`.
fn scaled(
    call: &mut Call<'_, '_>,
    x: Value,
    vectors: Vec<f64>,
    count: usize,
    gamma: f64,
    offset: f64,
) -> Result<Value, Fault> {
    let vectors = vectors.into_iter().map(|element| element * gamma).collect();
    let product = product(call, x, vectors, count)?;
    Ok(call.builder.binary_number(B::Add, product, offset)?)
}

/// `e^(-gamma |x - v|²)` as `e^(2 gamma x · v - gamma |v|² - gamma |x|²)`. Distances don't change when both are shifted;
/// with the centre of the vectors at zero, the squares are no larger than they must be, and little is lost to rounding.
fn radial(call: &mut Call<'_, '_>, x: Value, mut vectors: Vec<f64>, count: usize, gamma: f64) -> Result<Value, Fault> {
    let columns = call.shape(x).last().copied().unwrap_or(0);
    if columns == 0 || count.checked_mul(columns) != Some(vectors.len()) {
        let message = format!("{} numbers don't make {count} vectors of {columns} numbers", vectors.len());
        return Err(Fault::parameter(message));
    }
    let mut centre = vec![0.0; columns];
    for vector in vectors.chunks(columns) {
        centre.iter_mut().zip(vector).for_each(|(sum, element)| *sum += element);
    }
    // A centre that single precision holds exactly: x is shifted in single precision, the vectors aren't.
    centre.iter_mut().for_each(|sum| *sum = f64::from((*sum / count as f64) as f32));
    for vector in vectors.chunks_mut(columns) {
        vector.iter_mut().zip(&centre).for_each(|(element, centre)| *element -= centre);
    }
    let squares = vectors.chunks(columns).map(|vector| -gamma * vector.iter().map(|e| e * e).sum::<f64>()).collect();
    let squares = constant(call, DType::F32, &[count], squares)?;
    let centre = constant(call, DType::F32, &[columns], centre)?;
    let x = call.builder.binary(B::Subtract, x, centre)?;
    let own = call.builder.unary(U::Square, x)?;
    let last = call.rank(x) - 1;
    let own = call.builder.reduce(mlc_ir::ops::ReduceFunction::Sum, own, &[last], true)?;
    let vectors = vectors.into_iter().map(|element| 2.0 * gamma * element).collect();
    let product = product(call, x, vectors, count)?;
    Ok(call.builder.map(&[product, squares, own], |b| {
        let (product, square, own) = (b.operand(0), b.operand(1), b.operand(2));
        let (gamma, zero) = (b.number(DType::F32, gamma), b.number(DType::F32, 0.0));
        let own = b.binary(B::Multiply, own, gamma);
        let sum = b.binary(B::Add, product, square);
        let exponent = b.binary(B::Subtract, sum, own);
        let exponent = b.binary(B::Minimum, exponent, zero);
        b.unary(U::Exp, exponent)
    })?)
}

/// The rows [rows, features] in single precision, in which these operators compute.
fn rows(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = floats(call)?;
    let x = call.builder.cast(x, DType::F32)?;
    match call.rank(x) {
        1 => Ok(call.builder.insert_axis(x, 0)?),
        2 => Ok(x),
        rank => Err(Fault::operands(format!("rows of features have 2 axes, found {rank}"))),
    }
}

fn list(call: &mut Call<'_, '_>, key: &'static str) -> Result<Vec<f64>, Fault> {
    let list = call.floats(key)?;
    call.required(key, list)
}

/// Adds a number to each column, or each a number of its own.
fn add_offsets(call: &mut Call<'_, '_>, x: Value, offsets: Vec<f64>) -> Result<Value, Fault> {
    let offsets = constant(call, DType::F32, &[offsets.len()], offsets)?;
    Ok(call.builder.binary(B::Add, x, offsets)?)
}

fn regressor(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.ignore(&["n_targets"]);
    let x = rows(call)?;
    let supports = usize::try_from(call.int_or("n_supports", 0)?).unwrap_or(0);
    let coefficients = list(call, "coefficients")?;
    let kernel = Kernel::of(call)?;
    let vectors = call.floats("support_vectors")?.unwrap_or_default();
    let kernels = if supports == 0 { x } else { kernel.apply(call, x, vectors, supports)? };
    let score = product(call, kernels, coefficients, 1)?;
    let rho = list(call, "rho")?.first().copied();
    let rho = call.required("rho", rho)?;
    let score = add_offsets(call, score, vec![rho])?;
    if PostTransform::of(call)? != PostTransform::Nothing {
        return Err(Fault::variant("a post transform of a regression isn't supported"));
    }
    if !call.flag_or("one_class", false)? {
        return Ok(score);
    }
    Ok(call.builder.map(&[score], |b| {
        let (score, zero) = (b.operand(0), b.number(DType::F32, 0.0));
        let (inside, outside) = (b.number(DType::F32, 1.0), b.number(DType::F32, -1.0));
        let positive = b.binary(B::Greater, score, zero);
        b.select(positive, inside, outside)
    })?)
}

fn classifier(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let labels = class_labels(call, "classlabels_ints", "classlabels_strings")?;
    if call.floats("prob_a")?.is_some_and(|factors| !factors.is_empty()) {
        return Err(Fault::variant("probabilities, which are found by iteration, aren't supported")
            .with_help("export the model without them: SVC(probability=False)"));
    }
    call.ignore(&["prob_b"]);
    let x = rows(call)?;
    let coefficients = list(call, "coefficients")?;
    let rho = list(call, "rho")?;
    let supports = call.ints("vectors_per_class")?.unwrap_or_default();
    let supports = supports.iter().map(|&count| usize::try_from(count).ok()).collect::<Option<Vec<usize>>>();
    let supports = supports.ok_or_else(|| Fault::parameter("a number of vectors is negative"))?;
    let kernel = Kernel::of(call)?;
    let vectors = call.floats("support_vectors")?.unwrap_or_default();
    let post = PostTransform::of(call)?;
    let pairs = Pairs { classes: labels.len(), supports };
    if pairs.vectors()? == 0 {
        let scores = product(call, x, coefficients, labels.len())?;
        let first = rho.first().copied();
        let rho = call.required("rho", first)?;
        let scores = add_offsets(call, scores, vec![rho])?;
        return Classified { choice: scores, scores: post.apply(call.builder, scores)? }.results(call.builder, &labels);
    }
    let kernels = kernel.apply(call, x, vectors, pairs.vectors()?)?;
    let matrix = pairs.coefficients(&coefficients)?;
    let scores = product(call, kernels, matrix, pairs.count())?;
    if rho.len() != pairs.count() {
        return Err(Fault::parameter(format!("{} offsets don't fit {} pairs of classes", rho.len(), pairs.count())));
    }
    let scores = add_offsets(call, scores, rho)?;
    let choice = pairs.votes(call, scores)?;
    let scores = if pairs.count() == 1 {
        let opposite = call.builder.unary(U::Negate, scores)?;
        call.builder.concat(&[opposite, scores], 1)?
    } else {
        scores
    };
    Classified { choice, scores: post.apply(call.builder, scores)? }.results(call.builder, &labels)
}

/// Classes, each pair of which is told apart by the support vectors of the two.
struct Pairs {
    classes: usize,
    /// Support vectors of each class; they are in this order.
    supports: Vec<usize>,
}

impl Pairs {
    /// Number of support vectors.
    fn vectors(&self) -> Result<usize, Fault> {
        if !self.supports.is_empty() && self.supports.len() != self.classes {
            let message = format!("{} numbers of vectors don't fit {} classes", self.supports.len(), self.classes);
            return Err(Fault::parameter(message));
        }
        let sum = self.supports.iter().try_fold(0usize, |sum, &count| sum.checked_add(count));
        sum.ok_or_else(|| Fault::parameter("the numbers of vectors are too large"))
    }

    fn count(&self) -> usize {
        self.classes * (self.classes - 1) / 2
    }

    /// The classes of each pair, in the order of their scores.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let classes = self.classes;
        (0..classes).flat_map(move |first| (first + 1..classes).map(move |second| (first, second)))
    }

    /// What each support vector counts for each pair, [pairs, vectors], of the coefficients [classes - 1, vectors]: those of a
    /// class are for the other classes in their order.
    fn coefficients(&self, coefficients: &[f64]) -> Result<Vec<f64>, Fault> {
        let vectors = self.vectors()?;
        if (self.classes - 1).checked_mul(vectors) != Some(coefficients.len()) {
            let message =
                format!("{} coefficients don't fit {vectors} vectors of {} classes", coefficients.len(), self.classes);
            return Err(Fault::parameter(message));
        }
        if self.count().checked_mul(vectors).is_none_or(|elements| elements > MOST_COEFFICIENTS) {
            return Err(Fault::variant(format!("{vectors} vectors of {} classes are too many", self.classes)));
        }
        let starts: Vec<usize> = (0..self.classes).map(|class| self.supports[..class].iter().sum()).collect();
        let mut matrix = vec![0.0; self.count() * vectors];
        for (pair, (first, second)) in self.pairs().enumerate() {
            for (class, row) in [(first, second - 1), (second, first)] {
                let (start, count) = (starts[class], self.supports[class]);
                let source = &coefficients[row * vectors + start..][..count];
                matrix[pair * vectors + start..][..count].copy_from_slice(source);
            }
        }
        Ok(matrix)
    }

    /// How many pairs each class wins, [rows, classes]: the first of a pair with a positive score, else the second.
    fn votes(&self, call: &mut Call<'_, '_>, scores: Value) -> Result<Value, Fault> {
        let mut signs = vec![0.0; self.classes * self.count()];
        let mut lost = vec![0.0; self.classes];
        for (pair, (first, second)) in self.pairs().enumerate() {
            signs[first * self.count() + pair] = 1.0;
            signs[second * self.count() + pair] = -1.0;
            lost[second] += 1.0;
        }
        let positive = call.builder.binary_number(B::Greater, scores, 0.0)?;
        let positive = call.builder.cast(positive, DType::F32)?;
        let votes = product(call, positive, signs, self.classes)?;
        add_offsets(call, votes, lost)
    }
}
