//! Functions of single elements. Operands have one shape: nothing is repeated.

use super::call::{Call, Parameters, Table};
use super::signature::Signature;
use super::signature::Type::{Number, Numbers, Text};
use mlc_import::Fault;
use mlc_import::Handler::{One, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};
use mlc_json::shortened;

pub(super) const OPERATORS: Table = &[
    (Signature::new("elew", &["src1", "src2"], &["dst"], &[("elew_op", Text)]), One(elew)),
    (Signature::new("lrelu", &["src"], &["dst"], &[("negslope", Number)]), One(lrelu)),
    (Signature::new("relu", &["src"], &["dst"], &[]), Unary(U::Relu)),
    (Signature::new("sigmoid", &["src"], &["dst"], &[]), Unary(U::Sigmoid)),
    (Signature::new("submean", &["src"], &["dst"], &[("mean", Numbers), ("dtype", Text)]), One(submean)),
];

fn elew(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    call.check_same_type(x, y)?;
    call.check_same_shape((0, x), (1, y))?;
    let word = call.required_word("elew_op")?;
    let function = match word {
        "TL_MUL" => B::Multiply,
        "TL_DIV" => B::Divide,
        "TL_SUM" => B::Add,
        "TL_SUB" => B::Subtract,
        "TL_MAX" => B::Maximum,
        "TL_MIN" => B::Minimum,
        "TL_POW" => B::Power,
        other => {
            let other = shortened(other);
            return Err(Fault::parameter(format!(
                "parameter `elew_op` is `{other}`; TL_MUL, TL_DIV, TL_SUM, TL_SUB, TL_MAX, TL_MIN or TL_POW expected"
            )));
        }
    };
    let dtype = call.dtype_of(x);
    // Truth values are numbers to the format; powers of integers are computed in double, and saturate.
    let wide = match dtype {
        DType::Bool => DType::I32,
        integer if function == B::Power && integer.is_integer() => DType::F64,
        other => other,
    };
    let (x, y) = (call.builder.cast(x, wide)?, call.builder.cast(y, wide)?);
    let result = call.builder.binary(function, x, y)?;
    Ok(call.builder.cast(result, dtype)?)
}

/// x, or x times a slope where it is negative; the slope has x's data type.
fn lrelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let slope = call.required_float("negslope")?;
    let dtype = call.dtype_of(x);
    if dtype == DType::Bool {
        return Ok(x);
    }
    if dtype.is_float() {
        return Ok(call.builder.apply(mlc_ir::ops::LeakyRelu { slope: mlc_ir::Float(slope) }, &[x])?);
    }
    Ok(call.builder.map(&[x], |b| {
        let (x, zero, slope) = (b.operand(0), b.number(dtype, 0.0), b.number(dtype, slope));
        let (negative, scaled) = (b.binary(B::Less, x, zero), b.binary(B::Multiply, x, slope));
        b.select(negative, scaled, x)
    })?)
}

/// An image [height, width, 3] less the mean of each channel: [3, height, width].
fn submean(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (mean, dtype) = (call.floats("mean")?, call.required_dtype("dtype")?);
    let mean = call.required("mean", mean)?;
    let own = call.dtype_of(x);
    if !matches!(call.shape(x)[..], [_, _, 3]) || own == DType::Bool || dtype == DType::Bool || mean.len() != 3 {
        let (title, ty) = (call.title(0), call.builder.ty(x));
        let message = format!(
            "{title} is {ty}, `mean` has {} numbers and `dtype` is {dtype}; [height, width, 3] without truth values, 3 and a data type of numbers expected",
            mean.len()
        );
        return Err(Fault::operands(message));
    }
    let is_exact = own == DType::F32 || own.is_integer() && own.size() <= 2;
    let wide = if is_exact && dtype == DType::F32 { DType::F32 } else { DType::F64 };
    let x = call.builder.transpose(x, &[2, 0, 1])?;
    let x = call.builder.cast(x, wide)?;
    let mean = call.builder.numbers(wide, &[3, 1, 1], mean);
    let difference = call.builder.binary(B::Subtract, x, mean)?;
    Ok(call.builder.cast(difference, dtype)?)
}
