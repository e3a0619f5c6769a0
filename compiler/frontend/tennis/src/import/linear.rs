//! Matrix products, and what is added to them.

use super::activation::vector;
use super::call::{Call, Parameters, Table};
use super::promotion::check_equal;
use super::window::Layout;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::BinaryFunction as B;

pub(super) const OPERATORS: Table =
    &[("add_bias", One(add_bias)), ("gemm", One(gemm)), ("inner_prod", One(inner_product)), ("matmul", One(matmul))];

fn add_bias(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, bias) = (call.input(0)?, call.input(1)?);
    let format = call.word("format")?;
    let axis = if call.has("dim") {
        call.required_plain_axis(x, "dim")?
    } else {
        let layout = Layout::parse(call.required("dim", format)?)?;
        call.axis(x, layout.channels() as i64)?
    };
    let bias = vector(call, bias, x, axis)?;
    Ok(call.builder.binary(B::Add, x, bias)?)
}

/// x, viewed as a matrix with the rows of its first axis, times a matrix.
fn inner_product(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights) = (call.floats_input(0)?, call.input(1)?);
    check_equal(call.builder, &[x, weights])?;
    let transpose_right = call.flag_or("transpose", false)?;
    if call.flag_or("kernel_packed", false)? {
        return Err(Fault::variant("the weights are laid out for a kernel of TenniS's own runtime")
            .with_help("save the module again without packed weights"));
    }
    let shape = call.shape(x);
    let Some((&rows, rest)) = shape.split_first() else { return Err(Fault::operands("operand 0 has no axes")) };
    if call.rank(weights) != 2 {
        let ty = call.builder.ty(weights);
        return Err(Fault::operands(format!("the weights {ty} must have two axes")));
    }
    let x = call.builder.reshape(x, &[rows, rest.iter().product()])?;
    Ok(call.builder.apply(Matmul { transpose_left: false, transpose_right, sums: None }, &[x, weights])?)
}

/// alpha * A * B + beta * C; C broadcasts to the product.
fn gemm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (a, b, c) = (call.floats_input(0)?, call.input(1)?, call.input(2)?);
    check_equal(call.builder, &[a, b, c])?;
    let (alpha, beta) = (call.float_or("alpha", 1.0)?, call.float_or("beta", 1.0)?);
    let op = Matmul {
        transpose_left: call.flag_or("transA", false)?,
        transpose_right: call.flag_or("transB", false)?,
        sums: None,
    };
    if [call.rank(a), call.rank(b)] != [2; 2] {
        let (a, b) = (call.builder.ty(a), call.builder.ty(b));
        return Err(Fault::operands(format!("{a} and {b} must have two axes")));
    }
    let scaled = |call: &mut Call<'_, '_>, x: Value, factor: f64| match factor {
        1.0 => Ok(x),
        _ => call.builder.binary_number(B::Multiply, x, factor),
    };
    let product = call.builder.apply(op, &[a, b])?;
    let product = scaled(call, product, alpha)?;
    if !call.builder.broadcasts_to(c, &call.shape(product)) {
        let (c, product) = (call.builder.ty(c), call.builder.ty(product));
        return Err(Fault::operands(format!("operand 2, {c}, doesn't broadcast to the product {product}")));
    }
    let term = scaled(call, c, beta)?;
    Ok(call.builder.binary(B::Add, product, term)?)
}

/// The last axis of the left operand against the first of the right one; matrices may have two more axes of extent 1.
fn matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (a, b) = (call.floats_input(0)?, call.input(1)?);
    check_equal(call.builder, &[a, b])?;
    let (left, right) = (call.shape(a), call.shape(b));
    let plain = !left.is_empty() && (1..=2).contains(&right.len());
    let stacked = [left.len(), right.len()] == [4; 2] && left[..2] == [1, 1] && right[..2] == [1, 1];
    if !plain && !stacked {
        let (a, b) = (call.builder.ty(a), call.builder.ty(b));
        return Err(Fault::operands(format!("the product of {a} and {b} isn't defined")));
    }
    Ok(call.builder.matmul(a, b)?)
}
