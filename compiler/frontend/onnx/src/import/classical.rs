//! Operators of classical machine learning: scaling, filling in, encoding, linear models.

use super::call::{Call, Item, Table, TensorAttributes};
use super::ensemble::{Classified, PostTransform};
use super::labels::class_labels;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{Matmul, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

/// Operators of ai.onnx.ml.
pub(super) const OPERATORS: Table = &[
    ("Binarizer", 1, One(binarizer)),
    ("Imputer", 1, One(imputer)),
    ("LinearClassifier", 1, Many(linear_classifier)),
    ("LinearRegressor", 1, One(linear_regressor)),
    ("Normalizer", 1, One(normalizer)),
    ("OneHotEncoder", 1, One(one_hot)),
    ("Scaler", 1, One(scaler)),
];

/// A constant of numbers.
pub(super) fn constant(
    call: &mut Call<'_, '_>,
    dtype: DType,
    shape: &[usize],
    values: Vec<f64>,
) -> Result<Value, Fault> {
    if shape.iter().product::<usize>() != values.len() {
        return Err(Fault::parameter(format!("{} numbers don't fill the shape {shape:?}", values.len())));
    }
    let tensor = Tensor::from_floats(TensorType::new(dtype, shape), values);
    Ok(call.builder.constant("weights", Attribute::from_tensor(&tensor)))
}

/// Numbers for the columns of x: one for all, or one each.
fn per_column(call: &mut Call<'_, '_>, x: Value, values: Vec<f64>) -> Result<Value, Fault> {
    let columns = call.shape(x).last().copied().unwrap_or(1);
    if values.len() != 1 && values.len() != columns {
        return Err(Fault::parameter(format!("{} numbers don't fit {columns} columns", values.len())));
    }
    let (dtype, count) = (call.dtype_of(x), values.len());
    constant(call, dtype, &[count], values)
}

/// The operand as floats, single precision where it isn't of floats.
pub(super) fn floats(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dtype = call.dtype_of(x);
    Ok(call.builder.cast(x, if dtype.is_float() { dtype } else { DType::F32 })?)
}

fn binarizer(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let threshold = call.float_or("threshold", 0.0)?;
    let dtype = call.dtype_of(x);
    if !dtype.is_float() && threshold.fract() != 0.0 {
        return Err(Fault::variant("a fraction as the threshold of whole numbers isn't supported"));
    }
    let above = call.builder.binary_number(B::Greater, x, threshold)?;
    Ok(call.builder.cast(above, dtype)?)
}

fn scaler(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut x = floats(call)?;
    if let Some(offset) = call.floats("offset")?.filter(|offset| !offset.is_empty()) {
        let offset = per_column(call, x, offset)?;
        x = call.builder.binary(B::Subtract, x, offset)?;
    }
    if let Some(scale) = call.floats("scale")?.filter(|scale| !scale.is_empty()) {
        let scale = per_column(call, x, scale)?;
        x = call.builder.binary(B::Multiply, x, scale)?;
    }
    Ok(call.builder.cast(x, DType::F32)?)
}

fn normalizer(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = floats(call)?;
    let x = call.builder.cast(x, DType::F32)?;
    let axis = call.rank(x).checked_sub(1).ok_or_else(|| Fault::operands("a number can't be normalised"))?;
    let (function, element) = match call.word("norm")?.unwrap_or("MAX") {
        // The largest element, not the largest magnitude: so does the runtime that these models come from.
        "MAX" => (ReduceFunction::Maximum, None),
        "L1" => (ReduceFunction::Sum, Some(U::Absolute)),
        "L2" => (ReduceFunction::Sum, Some(U::Square)),
        other => return Err(Fault::parameter(format!("there is no norm `{other}`"))),
    };
    let parts = match element {
        Some(element) => call.builder.unary(element, x)?,
        None => x,
    };
    let mut norm = call.builder.apply(Reduce { function, axes: vec![axis], keep_axes: true }, &[parts])?;
    if element == Some(U::Square) {
        norm = call.builder.unary(U::Sqrt, norm)?;
    }
    Ok(call.builder.map(&[x, norm], |b| {
        let (x, norm) = (b.operand(0), b.operand(1));
        let zero = b.number(DType::F32, 0.0);
        let nothing = b.binary(B::Equal, norm, zero);
        let share = b.binary(B::Divide, x, norm);
        b.select(nothing, x, share)
    })?)
}

fn imputer(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let is_float = call.dtype_of(x).is_float();
    let (values, replaced) = if is_float {
        call.ignore(&["imputed_value_int64s", "replaced_value_int64"]);
        (call.floats("imputed_value_floats")?, call.float_or("replaced_value_float", 0.0)?)
    } else {
        call.ignore(&["imputed_value_floats", "replaced_value_float"]);
        let values = call.ints("imputed_value_int64s")?;
        let values = values.map(|values| values.iter().map(|&value| value as f64).collect());
        (values, call.int_or("replaced_value_int64", 0)? as f64)
    };
    let values = call.required("imputed_value_floats", values)?;
    let columns = call.shape(x).last().copied().unwrap_or(1);
    if values.len() != 1 && values.len() != columns {
        return Err(Fault::parameter(format!("{} numbers don't fit {columns} columns", values.len())));
    }
    let missing = if replaced.is_nan() {
        call.builder.unary(U::IsNan, x)?
    } else {
        call.builder.binary_number(B::Equal, x, replaced)?
    };
    let ty = TensorType::new(call.dtype_of(x), [values.len()]);
    let tensor = if is_float {
        Tensor::from_floats(ty, values)
    } else {
        Tensor::from_integers(ty, values.into_iter().map(|value| value as i64).collect())
    };
    let values = call.builder.constant("values", Attribute::from_tensor(&tensor));
    Ok(call.builder.select(missing, values, x)?)
}

/// Whether each element is each category, as f32 [.., categories].
fn one_hot(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    if call.words("cats_strings")?.is_some_and(|words| !words.is_empty()) {
        return Err(Fault::variant("the categories are strings, which aren't supported"));
    }
    if !call.flag_or("zeros", true)? {
        call.warn(
            mlc_ir::Code::VariantUnsupported,
            "an element without a category gets zeros; the model says that it is an error".to_owned(),
        );
    }
    let categories = call.ints("cats_int64s")?;
    let categories = call.required("cats_int64s", categories)?;
    let x = call.builder.cast(x, DType::I64)?;
    let x = call.builder.insert_axis(x, call.rank(x))?;
    let categories = call.constant_of_ints(&[categories.len()], &categories)?;
    let equal = call.builder.binary(B::Equal, x, categories)?;
    Ok(call.builder.cast(equal, DType::F32)?)
}

/// `x coefficients^T + intercepts` for x [rows, features], in single precision.
fn linear(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = floats(call)?;
    let x = call.builder.cast(x, DType::F32)?;
    let x = if call.rank(x) == 1 { call.builder.insert_axis(x, 0)? } else { x };
    let features = call.shape(x).last().copied().unwrap_or(0);
    let coefficients = call.floats("coefficients")?;
    let coefficients = call.required("coefficients", coefficients)?;
    let outputs = coefficients.len().checked_div(features).unwrap_or(0);
    let weights = constant(call, DType::F32, &[outputs, features], coefficients)?;
    let y = call.builder.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[x, weights])?;
    match call.floats("intercepts")?.filter(|intercepts| !intercepts.is_empty()) {
        Some(intercepts) => {
            let intercepts = constant(call, DType::F32, &[outputs], intercepts)?;
            Ok(call.builder.binary(B::Add, y, intercepts)?)
        }
        None => Ok(y),
    }
}

fn linear_regressor(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let targets = call.int_or("targets", 1)?;
    let y = linear(call)?;
    let found = call.shape(y).last().copied().unwrap_or(0);
    if usize::try_from(targets) != Ok(found) {
        return Err(Fault::parameter(format!("the coefficients are for {found} targets, not {targets}")));
    }
    PostTransform::of(call)?.apply(call.builder, y)
}

fn linear_classifier(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    call.ignore(&["multi_class"]);
    let labels = class_labels(call, "classlabels_ints", "classlabels_strings")?;
    let y = linear(call)?;
    let columns = call.shape(y).last().copied().unwrap_or(0);
    let post = PostTransform::of(call)?;
    let choice = match (columns, labels.len()) {
        (1, 2) => {
            let opposite = call.builder.unary(U::Negate, y)?;
            call.builder.concat(&[opposite, y], 1)?
        }
        (columns, classes) if columns == classes => y,
        (columns, classes) => {
            return Err(Fault::variant(format!("{columns} scores for {classes} classes aren't supported")));
        }
    };
    let scores = post.apply(call.builder, choice)?;
    Classified { choice, scores }.results(call.builder, &labels)
}
