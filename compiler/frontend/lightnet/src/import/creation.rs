//! Tensors that don't depend on others: constants, weights, zeros and ranges.

use super::call::{Call, Parameters, Table};
use super::format::Static;
use super::program::is_from_file;
use super::signature::Memory;
use super::signature::Signature;
use super::signature::Type::{Bool, Number, Numbers, Text};
use crate::model::{Operator, ParameterValue};
use mlc_import::Handler::One;
use mlc_import::{AttributeValue, Fault, check_filled};
use mlc_ir::ops::PadMode;
use mlc_ir::{Attribute, Code, DType, Literal, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    (
        Signature::new(
            "arange",
            &[],
            &["dst"],
            &[("dtype", Text), ("start", Number), ("stop", Number), ("step", Number)],
        ),
        One(arange),
    ),
    (
        Signature::new(
            "create",
            &[],
            &["dst"],
            &[("dtype", Text), ("dims", Numbers), ("ran", Numbers), ("data", Numbers), ("from_file", Bool)],
        ),
        One(create),
    ),
    (
        Signature::new("rearange", &["src"], &["dst"], &[("start", Number), ("stop", Number), ("step", Number)])
            .lying(Memory::InPlace),
        One(rearange),
    ),
    (Signature::new("zeros", &[], &["dst"], &[("dtype", Text), ("dims", Numbers)]), One(zeros)),
];

/// The type of what an operator creates.
pub(super) fn created_type(operator: &Operator) -> Result<TensorType, Fault> {
    let find = |name: &str| {
        let found = operator.parameters.iter().find(|parameter| parameter.name == name);
        found
            .map(|parameter| &parameter.value)
            .ok_or_else(|| Fault::parameter(format!("parameter `{name}` is missing")))
    };
    let (dtype, dims): (&ParameterValue, &ParameterValue) = (find("dtype")?, find("dims")?);
    let dtype = dtype.dtype().unwrap_or_else(|| Err(Fault::parameter("parameter `dtype` must be a text")))?;
    let extents = dims.ints().filter(|extents| extents.iter().all(|&extent| extent > 0));
    let extents =
        extents.ok_or_else(|| Fault::parameter("parameter `dims` must be a list of whole numbers of at least 1"))?;
    let shape: Vec<usize> = extents.into_iter().map(|extent| extent as usize).collect();
    let ty = TensorType::new(dtype, &shape[..]);
    match ty.checked_bytes() {
        Some(_) => Ok(ty),
        None => Err(Fault::new(Code::NumberOutOfRange, format!("the tensor {ty} is too large"))),
    }
}

/// A number in a data type, by the format's rules: integers truncate, and no finite number becomes an infinite one.
pub(super) fn converted(dtype: DType, number: f64) -> Literal {
    match dtype {
        DType::Bool => Literal::integer(dtype, i64::from(number != 0.0)),
        DType::F32 => Literal::float(dtype, number.clamp(-f64::from(f32::MAX), f64::from(f32::MAX))),
        _ => Literal::of(dtype, number),
    }
}

/// Numbers as a constant of a shape.
fn constant(dtype: DType, shape: &[usize], numbers: &[f64]) -> Attribute {
    let ty = TensorType::new(dtype, shape);
    let literals = numbers.iter().map(|&number| converted(dtype, number));
    let tensor = match dtype.is_float() {
        true => Tensor::from_floats(ty, literals.map(Literal::to_f64).collect()),
        false => {
            let integer = |literal| match literal {
                Literal::Integer(_, value) => value,
                Literal::Float(_, value) => value.0 as i64,
            };
            Tensor::from_integers(ty, literals.map(integer).collect())
        }
    };
    Attribute::from_tensor(&tensor)
}

/// A constant, which is static in the format's sense.
fn create(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let value = created(call)?;
    call.set_note(value, Static);
    Ok(value)
}

/// A constant: of the user's arrays, or of the file's numbers, of which those that aren't there are 0.
fn created(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let operator = call.site.operator.operator;
    let ty = created_type(operator)?;
    call.ignore(&["dtype", "dims", "from_file"]);
    let (ran, data) = (call.floats("ran")?, call.floats("data")?);
    let (ran, data) = (call.required("ran", ran)?, call.required("data", data)?);
    let [low, high] = ran[..] else {
        return Err(Fault::parameter(format!("parameter `ran` has {} numbers, 2 expected", ran.len())));
    };
    if low > high {
        return Err(Fault::parameter(format!("parameter `ran` is [{low}, {high}], the smaller number first expected")));
    }
    let tensor = call.site.operator.results[0].tensor;
    let bindings = call.model.bindings;
    if is_from_file(operator) {
        let weight = bindings.weights.get(tensor);
        let weight = weight.ok_or_else(|| Fault::new(Code::WeightMissing, format!("there is no weight '{tensor}'")))?;
        let value = weight.fitted(&ty, bindings.cast)?;
        return Ok(call.builder.named_constant(tensor, value));
    }
    if (low, high) != (0.0, 0.0) {
        let message = format!("parameter `ran` is [{low}, {high}]: random numbers differ from run to run");
        return Err(Fault::variant(message)
            .with_help("give the numbers in `data`, or in a file of weights and set `from_file`; [0, 0] means none"));
    }
    let elements = ty.elements();
    if data.len() > elements {
        return Err(Fault::parameter(format!("parameter `data` has {} numbers, {ty} takes {elements}", data.len())));
    }
    check_filled(&ty.shape)?;
    if data.iter().all(|&number| number == 0.0) {
        return Ok(call.builder.zeros(ty.dtype, &ty.shape)?);
    }
    if data.len() == elements {
        return Ok(call.builder.named_constant(tensor, constant(ty.dtype, &ty.shape, &data)));
    }
    let given = call.builder.named_constant(tensor, constant(ty.dtype, &[data.len()], &data));
    let rest = (elements - data.len()) as i64;
    let padded = call.builder.pad(given, &[(0, rest)], PadMode::Constant, 0.0)?;
    Ok(call.builder.reshape(padded, &ty.shape)?)
}

fn zeros(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let ty = created_type(call.site.operator.operator)?;
    call.ignore(&["dtype", "dims"]);
    check_filled(&ty.shape)?;
    Ok(call.builder.zeros(ty.dtype, &ty.shape)?)
}

/// Most elements of a range: it is held as a constant.
const LONGEST_RANGE: f64 = (1u32 << 22) as f64;

/// start, start + step, … before stop.
fn range(call: &mut Call<'_, '_>) -> Result<Vec<f64>, Fault> {
    let (start, stop, step) =
        (call.required_float("start")?, call.required_float("stop")?, call.required_float("step")?);
    let count = ((stop - start) / step).ceil();
    if !(1.0..=LONGEST_RANGE).contains(&count) {
        return Err(Fault::parameter(format!("a range from {start} to {stop} by {step} has no length that fits")));
    }
    Ok((0..count as usize).map(|place| start + step * place as f64).collect())
}

fn arange(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let dtype = call.required_dtype("dtype")?;
    let numbers = range(call)?;
    Ok(call.builder.constant("value", constant(dtype, &[numbers.len()], &numbers)))
}

/// A range as long as the operand, whose numbers don't count.
fn rearange(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    call.check_rank(0, x, 1)?;
    let (dtype, length, numbers) = (call.dtype_of(x), call.shape(x)[0], range(call)?);
    if numbers.len() != length {
        let (title, found) = (call.title(0), numbers.len());
        return Err(Fault::parameter(format!("the range has {found} elements, but {title} has {length}")));
    }
    Ok(call.builder.constant("value", constant(dtype, &[length], &numbers)))
}
