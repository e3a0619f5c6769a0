//! The rules of single operators: types and shapes. A file gives the shape of every result; it is checked, not trusted.

pub(super) use super::messages::{
    all_reduce, barrier, receive, receive_packet, receive_reduce_send, send, send_done, send_packet,
};
pub(super) use super::product::{product, product_and_residual};
use super::subject::Subject;
use crate::model::{Argument, DataType, Extents, Tensor};
use mlc_ir::{Code, Diagnostic};

/// Checks an operation whose counts and arguments are right.
pub(super) type Rule = fn(&Subject) -> Result<(), Diagnostic>;

/// Whether two shapes broadcast, and to what: aligned at the right, extents equal or 1.
pub(super) fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Extents> {
    let rank = a.len().max(b.len());
    let extent = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    (0..rank)
        .map(|axis| match (extent(a, axis), extent(b, axis)) {
            (a, b) if a == b || b == 1 => Some(a),
            (1, b) => Some(b),
            _ => None,
        })
        .collect()
}

/// All tensors that are read have the type of the one that is written.
pub(super) fn same_types(subject: &Subject) -> Result<(), Diagnostic> {
    let output = subject.output().data_type;
    for position in 0..subject.operation.reads.len() {
        let found = subject.read(position).data_type;
        if found != output {
            let message = format!("{found} is read and {output} written, types must be equal");
            return Err(subject.fault(format!("ReadTensors[{position}].DataType"), Code::OperandTypes, message));
        }
    }
    Ok(())
}

/// The written tensor's shape is this one.
pub(super) fn expect_shape(subject: &Subject, expected: &[usize]) -> Result<(), Diagnostic> {
    let found = &subject.output().shape;
    if **found == *expected {
        return Ok(());
    }
    let message = format!("the shape {found:?} is written, {expected:?} follows from what is read");
    Err(subject.fault("WriteTensors[0].Shape", Code::ShapeMismatch, message))
}

pub(super) fn anything(_: &Subject) -> Result<(), Diagnostic> {
    Ok(())
}

pub(super) fn broadcast_pair(subject: &Subject) -> Result<(), Diagnostic> {
    same_types(subject)?;
    let (a, b) = (&subject.read(0).shape, &subject.read(1).shape);
    let Some(shape) = broadcast_shape(a, b) else {
        let message = format!("the shapes {a:?} and {b:?} don't broadcast");
        return Err(subject.fault("ReadTensors", Code::OperandTypes, message));
    };
    expect_shape(subject, &shape)
}

pub(super) fn broadcast_any_type(subject: &Subject) -> Result<(), Diagnostic> {
    let (input, output) = (&subject.read(0).shape, &subject.output().shape);
    if broadcast_shape(input, output).as_ref() == Some(output) {
        return Ok(());
    }
    let message = format!("the shape {input:?} doesn't broadcast to {output:?}");
    Err(subject.fault("WriteTensors[0].Shape", Code::ShapeMismatch, message))
}

pub(super) fn broadcast(subject: &Subject) -> Result<(), Diagnostic> {
    same_types(subject)?;
    broadcast_any_type(subject)
}

pub(super) fn same_shape(subject: &Subject) -> Result<(), Diagnostic> {
    let (input, output) = (subject.read(0), subject.output());
    if input.data_type != output.data_type {
        let message = format!("{} is read and {} written, types must be equal", input.data_type, output.data_type);
        return Err(subject.fault("ReadTensors[0].DataType", Code::OperandTypes, message));
    }
    expect_shape(subject, &input.shape)
}

/// The extent of a shape's last axis.
fn last(tensor: &Tensor) -> usize {
    tensor.shape.last().copied().unwrap_or(1)
}

pub(super) fn rotation(subject: &Subject) -> Result<(), Diagnostic> {
    let (values, factors) = (last(subject.read(0)), last(subject.read(1)));
    if values != factors || !values.is_multiple_of(2) {
        let message = format!("the last extents {values} and {factors} must be equal and even");
        return Err(subject.fault("ReadTensors", Code::OperandTypes, message));
    }
    broadcast_pair(subject)
}

/// An axis of a tensor that is read, from an argument that may count from the end.
fn axis(subject: &Subject) -> Result<usize, Diagnostic> {
    let rank = subject.read(0).rank();
    let given = if let Some(Argument::Int(axis)) = subject.operation.argument("Axis") { *axis } else { 0 };
    let counted = if given < 0 { i64::from(given) + rank as i64 } else { i64::from(given) };
    usize::try_from(counted).ok().filter(|&axis| axis < rank).ok_or_else(|| {
        let message = format!("the axis {given} isn't one of a tensor with {rank} axes");
        subject.fault("Args[\"Axis\"]", Code::ParameterInvalid, message)
    })
}

pub(super) fn reduction(subject: &Subject) -> Result<(), Diagnostic> {
    same_types(subject)?;
    let axis = axis(subject)?;
    let mut shape = subject.read(0).shape.clone();
    if subject.flag("KeepDim") || shape.len() == 1 {
        shape[axis] = 1;
    } else {
        shape.remove(axis);
    }
    expect_shape(subject, &shape)
}

pub(super) fn transposition(subject: &Subject) -> Result<(), Diagnostic> {
    same_types(subject)?;
    let input = &subject.read(0).shape;
    let Some(Argument::Dims(permutation)) = subject.operation.argument("Permutation") else { return Ok(()) };
    let mut sorted = permutation.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..input.len() as i64) {
        let message = format!("{permutation:?} isn't an order of {} axes", input.len());
        return Err(subject.fault("Args[\"Permutation\"]", Code::ParameterInvalid, message));
    }
    let shape: Extents = permutation.iter().map(|&axis| input[axis as usize]).collect();
    expect_shape(subject, &shape)
}

pub(super) fn embedding(subject: &Subject) -> Result<(), Diagnostic> {
    let (ids, table, output) = (subject.read(0), subject.read(1), subject.output());
    if ids.data_type != DataType::Int32 || ids.rank() > 3 {
        let message =
            format!("numbers of rows must be INT32 with at most 3 axes, {} with {} found", ids.data_type, ids.rank());
        return Err(subject.fault("ReadTensors[0]", Code::OperandTypes, message));
    }
    if table.rank() != 2 || table.data_type != output.data_type {
        let message = format!(
            "a table of {} with 2 axes expected, {} with {} found",
            output.data_type,
            table.data_type,
            table.rank()
        );
        return Err(subject.fault("ReadTensors[1]", Code::OperandTypes, message));
    }
    let columns = table.shape[1];
    if last(output) != columns || output.elements() != ids.elements() * columns {
        let message =
            format!("the shape {:?} doesn't hold {} rows of {columns} elements", output.shape, ids.elements());
        return Err(subject.fault("WriteTensors[0].Shape", Code::ShapeMismatch, message));
    }
    Ok(())
}

pub(super) fn layer_norm(subject: &Subject) -> Result<(), Diagnostic> {
    same_types(subject)?;
    let extent = last(subject.read(0));
    for position in 1..=2 {
        let found = subject.read(position).elements();
        if found != extent {
            let message = format!("{found} elements found, {extent} expected, as along the last axis");
            return Err(subject.fault(format!("ReadTensors[{position}].Shape"), Code::OperandTypes, message));
        }
    }
    same_shape(subject)
}

/// A row is stored into a cache, at a place that the model counts up.
pub(super) fn cache_slot(subject: &Subject) -> Result<(), Diagnostic> {
    let (token, position) = (subject.read(0), subject.read(1));
    let (cache, next, output) = (subject.written(0), subject.written(1), subject.written(2));
    if position.data_type != DataType::Int32 || *position.shape != [1] {
        let message = format!("a position must be INT32 [1], {} {:?} found", position.data_type, position.shape);
        return Err(subject.fault("ReadTensors[1]", Code::OperandTypes, message));
    }
    if !position.same_window(next) {
        return Err(subject.fault("WriteTensors[1]", Code::OperandTypes, "the position that is read must be written"));
    }
    let types = [token.data_type, cache.data_type, output.data_type];
    if types.iter().any(|&found| found != token.data_type) {
        let message =
            format!("token, cache and result are {} and {} and {}, types must be equal", types[0], types[1], types[2]);
        return Err(subject.fault("WriteTensors", Code::OperandTypes, message));
    }
    if cache.elements() != token.elements() * cache.shape[0] {
        let message = format!("a row of a cache {:?} can't hold a token {:?}", cache.shape, token.shape);
        return Err(subject.fault("WriteTensors[0].Shape", Code::ShapeMismatch, message));
    }
    if output.elements() != token.elements() {
        let message = format!("the result {:?} can't hold a row of the cache {:?}", output.shape, cache.shape);
        return Err(subject.fault("WriteTensors[2].Shape", Code::ShapeMismatch, message));
    }
    Ok(())
}
