//! What takes one line of a file: strings, tensors, arguments.

use crate::model::{Argument, Model, Tag, TensorIndex};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WrittenTensor<'a> {
    id: u64,
    data_type: String,
    shape: &'a [usize],
    strides: &'a [usize],
    offsets: &'a [usize],
    padded_shape: &'a [usize],
    buffer: WrittenBuffer,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WrittenBuffer {
    id: u64,
    rank: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_external: Option<bool>,
    send_tags: Vec<(i64, i32)>,
    recv_tags: Vec<(i64, i32)>,
}

#[derive(Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum WrittenArgument<'a> {
    Int(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Bool(bool),
    Float(f64),
    Dims(&'a [i64]),
    Tensor(WrittenTensor<'a>),
    Offset(WrittenOffset),
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WrittenOffset {
    buffer_id: u64,
    value: u64,
}

/// Numbers as the format's own tools write them: an exponent has a sign and two digits.
struct Numbers;

impl Formatter for Numbers {
    fn write_f64<W: Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let digits = format!("{value:?}");
        let Some((mantissa, exponent)) = digits.split_once('e') else { return writer.write_all(digits.as_bytes()) };
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        write!(writer, "{mantissa}e{sign}{exponent:0>2}")
    }
}

fn one_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Numbers)).map_err(io::Error::from)
}

/// A rank, or -1 for the file's.
fn rank(rank: Option<u32>) -> i64 {
    rank.map_or(-1, i64::from)
}

fn written<'a>(model: &'a Model, index: TensorIndex, is_external: bool) -> WrittenTensor<'a> {
    let tensor = model.tensor(index);
    let buffer = model.buffer_of(index);
    let tags = |tags: &[Tag]| tags.iter().map(|tag| (rank(tag.rank), tag.tag)).collect();
    WrittenTensor {
        id: tensor.id,
        data_type: tensor.data_type.to_string(),
        shape: &tensor.shape,
        strides: &tensor.storage,
        offsets: &tensor.offsets,
        padded_shape: &tensor.padded_shape,
        buffer: WrittenBuffer {
            id: buffer.id,
            rank: rank(buffer.remote),
            is_external: is_external.then_some(buffer.is_external),
            send_tags: tags(&buffer.send_tags),
            recv_tags: tags(&buffer.receive_tags),
        },
    }
}

/// Writes a string.
pub(super) fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    one_line(out, &text)
}

/// Writes a use of a tensor.
pub(super) fn tensor(out: &mut impl Write, model: &Model, index: TensorIndex, is_external: bool) -> io::Result<()> {
    one_line(out, &written(model, index, is_external))
}

/// Writes an argument's type and value.
pub(super) fn argument(out: &mut impl Write, model: &Model, value: &Argument, is_external: bool) -> io::Result<()> {
    let argument = match value {
        Argument::Int(value) => WrittenArgument::Int(*value),
        Argument::Uint32(value) => WrittenArgument::Uint32(*value),
        Argument::Int64(value) => WrittenArgument::Int64(*value),
        Argument::Uint64(value) => WrittenArgument::Uint64(*value),
        Argument::Bool(value) => WrittenArgument::Bool(*value),
        Argument::Float(value) => WrittenArgument::Float(f64::from(*value)),
        Argument::Dims(dims) => WrittenArgument::Dims(dims),
        Argument::Tensor(index) => WrittenArgument::Tensor(written(model, *index, is_external)),
        Argument::Offset { buffer, value } => {
            WrittenArgument::Offset(WrittenOffset { buffer_id: *buffer, value: *value })
        }
    };
    one_line(out, &argument)
}
