//! Labels of classes, and operators that translate labels.
//!
//! A string never reaches generated code: where a model's classes have names, the place of a class among the names stands
//! for it, and the user is told.

use super::call::{Call, Item, Table, TensorAttributes};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{ArgFunction, ArgReduce, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

/// Operators of ai.onnx.ml.
pub(super) const OPERATORS: Table = &[("LabelEncoder", 2, One(label_encoder)), ("ZipMap", 1, Many(zip_map))];

/// Most names that a message spells.
const MOST_LISTED: usize = 12;

/// The labels of classes: the numbers that the model gives, or the places of the names that it gives.
pub(super) fn class_labels(
    call: &mut Call<'_, '_>,
    numbers: &'static str,
    words: &'static str,
) -> Result<Vec<i64>, Fault> {
    let names = call.words(words)?.unwrap_or_default();
    let numbers = call.ints(numbers)?.unwrap_or_default();
    let labels = if names.is_empty() { numbers } else { (0..names.len() as i64).collect() };
    if labels.len() < 2 {
        return Err(Fault::variant("at least two classes with labels are needed"));
    }
    if !names.is_empty() {
        let listed = listed(names.iter());
        call.warn(
            mlc_ir::Code::VariantUnsupported,
            format!("the classes have names; the place of a class among them stands for it: {listed}"),
        );
    }
    Ok(labels)
}

fn listed(labels: impl ExactSizeIterator<Item: ToString>) -> String {
    let count = labels.len();
    let mut words: Vec<String> = labels.take(MOST_LISTED).map(|label| label.to_string()).collect();
    if count > MOST_LISTED {
        words.push(format!("… ({count} in all)"));
    }
    words.join(", ")
}

/// A list with a map from classes to scores for each row: the tensor of the scores has all there is to know.
fn zip_map(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let scores = call.input(0)?;
    let names = call.words("classlabels_strings")?.unwrap_or_default();
    let numbers = call.ints("classlabels_int64s")?.unwrap_or_default();
    let listed = if names.is_empty() { listed(numbers.iter()) } else { listed(names.iter()) };
    call.warn(
        mlc_ir::Code::VariantUnsupported,
        format!(
            "the tensor of the scores stands for the list of maps from classes to scores; its columns are {listed}"
        ),
    );
    Ok(vec![Item::Tensor(scores)])
}

/// The first of several lists that is there, as a tensor of rank 1.
fn list(
    call: &mut Call<'_, '_>,
    floats: &'static str,
    numbers: &'static str,
    tensor: &'static str,
) -> Result<Option<Tensor>, Fault> {
    if let Some(values) = call.floats(floats)? {
        return Ok(Some(Tensor::from_floats(TensorType::new(DType::F32, [values.len()]), values)));
    }
    if let Some(values) = call.ints(numbers)? {
        return Ok(Some(Tensor::from_integers(TensorType::new(DType::I64, [values.len()]), values)));
    }
    let Some(attribute) = call.tensor(tensor)? else { return Ok(None) };
    let tensor = attribute.to_tensor();
    let ty = TensorType::new(tensor.ty().dtype, [tensor.ty().elements()]);
    Ok(Some(match tensor.ty().dtype.is_float() {
        true => Tensor::from_floats(ty, tensor.to_floats()),
        false => Tensor::from_integers(ty, tensor.to_integers()),
    }))
}

/// Each element replaced by the value at the place of the first key that equals it, or by a default.
fn label_encoder(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    call.ignore(&["default_string"]);
    for key in ["keys_strings", "values_strings"] {
        if call.words(key)?.is_some_and(|words| !words.is_empty()) {
            return Err(Fault::variant(format!("attribute `{key}` has strings, which aren't supported"))
                .with_help("do this step outside of the model"));
        }
    }
    let keys = list(call, "keys_floats", "keys_int64s", "keys_tensor")?;
    let keys = call.required("keys_int64s", keys)?;
    let values = list(call, "values_floats", "values_int64s", "values_tensor")?;
    let values = call.required("values_int64s", values)?;
    if keys.ty().elements() != values.ty().elements() || keys.ty().elements() == 0 {
        let message = format!("{} keys don't fit {} values", keys.ty().elements(), values.ty().elements());
        return Err(Fault::parameter(message));
    }
    let default = default_of(call, values.ty().dtype)?;
    let equal = equal_keys(call, x, &keys)?;
    let last = call.rank(equal) - 1;
    let marks = call.builder.cast(equal, DType::U8)?;
    let first = ArgReduce { function: ArgFunction::Maximum, axis: last, keep_axis: false, last: false };
    let place = call.builder.apply(first, &[marks])?;
    let any = Reduce { function: ReduceFunction::Maximum, axes: vec![last], keep_axes: false };
    let known = call.builder.apply(any, &[marks])?;
    let known = call.builder.cast(known, DType::Bool)?;
    let values = call.builder.constant("values", Attribute::from_tensor(&values));
    let found = call.builder.gather(values, place, 0)?;
    Ok(call.builder.select(known, found, default)?)
}

/// What stands for an element without a key.
fn default_of(call: &mut Call<'_, '_>, dtype: DType) -> Result<Value, Fault> {
    let tensor = call.tensor("default_tensor")?.map(|attribute| attribute.to_tensor());
    let (float, number) = (call.float_or("default_float", -0.0)?, call.int_or("default_int64", -1)?);
    let exact = tensor.filter(|tensor| tensor.ty().elements() == 1);
    let ty = TensorType::new(dtype, []);
    let default = match dtype.is_float() {
        true => Tensor::from_floats(ty, exact.map_or_else(|| vec![float], |tensor| tensor.to_floats())),
        false => Tensor::from_integers(ty, exact.map_or_else(|| vec![number], |tensor| tensor.to_integers())),
    };
    Ok(call.builder.constant("default", Attribute::from_tensor(&default)))
}

/// Whether each element is each key, [.., keys]; since version 4 a key that is NaN is every NaN.
fn equal_keys(call: &mut Call<'_, '_>, x: Value, keys: &Tensor) -> Result<Value, Fault> {
    if call.dtype_of(x) != keys.ty().dtype {
        let message = format!("the keys are {}, the elements {}", keys.ty().dtype, call.dtype_of(x));
        return Err(Fault::operands(message));
    }
    let has_nan = call.version() >= 4 && keys.to_floats().iter().any(|key| key.is_nan());
    let keys = call.builder.constant("keys", Attribute::from_tensor(keys));
    let x = call.builder.insert_axis(x, call.rank(x))?;
    if !has_nan {
        return Ok(call.builder.binary(B::Equal, x, keys)?);
    }
    Ok(call.builder.map(&[x, keys], |b| {
        let (x, key) = (b.operand(0), b.operand(1));
        let equal = b.binary(B::Equal, x, key);
        let (x, key) = (b.unary(U::IsNan, x), b.unary(U::IsNan, key));
        let both = b.binary(B::And, x, key);
        b.binary(B::Or, equal, both)
    })?)
}
