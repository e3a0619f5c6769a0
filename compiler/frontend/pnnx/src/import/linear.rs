//! Linear layers and matrix products.

use super::call::{Call, Operands, Table};
use super::item::Item;
use super::promotion::promote;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[
    ("aten::dot", One(|call| product(call, "tensor"))),
    ("aten::inner", One(inner)),
    ("aten::outer", One(outer)),
    ("F.linear", One(functional_linear)),
    ("nn.Linear", One(module_linear)),
    ("torch.addmm", One(|call| multiply_add(call, "mat1", "mat2"))),
    ("torch.baddbmm", One(|call| multiply_add(call, "batch1", "batch2"))),
    ("torch.bmm", One(|call| product(call, "mat2"))),
    ("torch.matmul", One(|call| product(call, "other"))),
    ("torch.mm", One(|call| product(call, "mat2"))),
    ("torch.mv", One(|call| product(call, "vec"))),
];

fn module_linear(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let weights = call.weight("weight")?;
    let bias = if call.flag_or("bias", true)? { Some(call.weight("bias")?) } else { None };
    let shape = call.shape(weights);
    let (inputs, outputs) = (call.int("in_features")?, call.int("out_features")?);
    let agree = |parameter: Option<i64>, extent: Option<&usize>| {
        parameter.is_none_or(|parameter| usize::try_from(parameter).ok().as_ref() == extent)
    };
    if shape.len() != 2 || !agree(inputs, shape.get(1)) || !agree(outputs, shape.first()) {
        let message = format!("in_features and out_features don't agree with the weights {}", call.builder.ty(weights));
        return Err(Fault::new(Code::ShapeMismatch, message));
    }
    linear(call, x, weights, bias)
}

fn functional_linear(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let weights = call.labelled_input("weight", 1)?;
    let bias = call.optional_labelled_input("bias", 2)?;
    call.ignore(&["bias"]);
    linear(call, x, weights, bias)
}

/// x [.., in] times the transpose of weights [out, in], plus a bias [out]. Weights [in] drop the last axis.
pub(super) fn linear(call: &mut Call<'_, '_>, x: Value, weights: Value, bias: Option<Value>) -> Result<Value, Fault> {
    let y = if call.builder.rank(weights) == 1 {
        call.builder.matmul(x, weights)?
    } else {
        let vector = call.builder.rank(x) == 1;
        let x = if vector { call.builder.insert_axis(x, 0)? } else { x };
        let y =
            call.builder.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[x, weights])?;
        if vector { call.builder.remove_axis(y, 0)? } else { y }
    };
    Ok(call.builder.add_optional(y, bias)?)
}

fn product(call: &mut Call<'_, '_>, other: &str) -> Result<Value, Fault> {
    let (left, right) = (call.x()?, call.labelled_input(other, 1)?);
    Ok(call.builder.matmul(left, right)?)
}

/// Sums of products over the last axes.
fn inner(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.x()?, call.labelled_input("other", 1)?);
    let right = match call.builder.rank(right) {
        1 => right,
        2 => call.builder.transpose(right, &[1, 0])?,
        rank => return Err(Fault::operands(format!("an inner product with {rank} axes isn't supported"))),
    };
    Ok(call.builder.matmul(left, right)?)
}

/// All products of elements of two vectors.
fn outer(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.x()?, call.labelled_input("vec2", 1)?);
    if call.builder.rank(left) != 1 || call.builder.rank(right) != 1 {
        return Err(Fault::operands("an outer product takes two vectors"));
    }
    let left = call.builder.insert_axis(left, 1)?;
    Ok(call.builder.binary(BinaryFunction::Multiply, left, right)?)
}

/// beta * input + alpha * (left right)
fn multiply_add(call: &mut Call<'_, '_>, left: &str, right: &str) -> Result<Value, Fault> {
    let input = call.x()?;
    let (left, right) = (call.labelled_input(left, 1)?, call.labelled_input(right, 2)?);
    let (alpha, beta) = (call.float_or("alpha", 1.0)?, call.float_or("beta", 1.0)?);
    let mut product = call.builder.matmul(left, right)?;
    if alpha != 1.0 {
        product = call.builder.binary_number(BinaryFunction::Multiply, product, alpha)?;
    }
    if beta == 0.0 {
        // PyTorch doesn't even look at the input then, which matters for its NaNs.
        return Ok(product);
    }
    let mut input = input;
    if beta != 1.0 {
        input = call.builder.binary_number(BinaryFunction::Multiply, input, beta)?;
    }
    let operands = promote(call.builder, &[&Item::Tensor(input), &Item::Tensor(product)])?;
    Ok(call.builder.binary(BinaryFunction::Add, operands[0], operands[1])?)
}
