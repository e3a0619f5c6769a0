//! Channels of images, which are the last axis.

use super::call::{Call, Table};
use super::image::{as_floats, of_floats};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::ReduceFunction;
use mlc_ir::scalar::BinaryFunction as B;

pub(super) const OPERATORS: Table = &[("force_color", One(color)), ("force_gray", One(gray))];

/// Shares of blue, green and red in the brightness.
const BRIGHTNESS: [f64; 3] = [0.114, 0.587, 0.299];

fn channels(call: &Call<'_, '_>, x: Value) -> Result<usize, Fault> {
    call.shape(x).last().copied().ok_or_else(|| Fault::operands("the operand has no axis of channels"))
}

/// One channel of several, by their shares.
fn gray(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shares = call.floats("scale")?.unwrap_or_else(|| BRIGHTNESS.to_vec());
    let channels = channels(call, x)?;
    if channels == 1 {
        return Ok(x);
    }
    if channels != shares.len() {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("{} shares don't fit the channels of {ty}", shares.len())));
    }
    let (floats, axis) = (as_floats(call, x)?, call.rank(x) - 1);
    let dtype = call.dtype_of(floats);
    let shares = call.builder.numbers(dtype, &[channels], shares);
    let parts = call.builder.binary(B::Multiply, floats, shares)?;
    let sum = call.builder.reduce(ReduceFunction::Sum, parts, &[axis], true)?;
    of_floats(call, sum, x)
}

/// Three equal channels of one.
fn color(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let mut shape = call.shape(x);
    match channels(call, x)? {
        3 => Ok(x),
        1 => {
            let last = shape.len() - 1;
            shape[last] = 3;
            Ok(call.builder.broadcast(x, &shape)?)
        }
        _ => {
            let ty = call.builder.ty(x);
            Err(Fault::operands(format!("{ty} must have one channel or three")))
        }
    }
}
