//! Operators that Relay has a word for. [`write()`] may propose more than it keeps: what doesn't read back isn't used.

use super::fields::float;
use super::spelled::Spelled;
use crate::import::elementary;
use crate::syntax::AttributeValue;
use mlc_import::Fault;
use mlc_ir::ops::{
    AveragePool, Binary, BitCast, Broadcast, Cast, Clamp, Concat, Convolution, LeakyRelu, Matmul, MaxPool, Pad,
    PadMode, Reduce, ReduceFunction, Reshape, Select, Softmax, Transpose, Unary,
};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Float, Literal, Op, Shape, TensorType};

type Attributes<'a> = [(&'a str, &'a AttributeValue)];

/// Relay's word for a function of a type; the ones of truth values are other than those of bits.
pub(crate) fn unary_word(function: UnaryFunction, of: DType) -> Option<&'static str> {
    match function {
        UnaryFunction::Not if of == DType::Bool => Some("logical_not"),
        _ => elementary::unary(function),
    }
}

/// Relay's word for a function of two numbers of a type.
pub(crate) fn binary_word(function: BinaryFunction, of: DType) -> Option<&'static str> {
    match function {
        BinaryFunction::And if of == DType::Bool => Some("logical_and"),
        BinaryFunction::Or if of == DType::Bool => Some("logical_or"),
        BinaryFunction::Xor if of == DType::Bool => Some("logical_xor"),
        _ => elementary::binary(function),
    }
}

const REDUCTIONS: [(&str, ReduceFunction); 7] = [
    ("sum", ReduceFunction::Sum),
    ("mean", ReduceFunction::Mean),
    ("prod", ReduceFunction::Product),
    ("max", ReduceFunction::Maximum),
    ("min", ReduceFunction::Minimum),
    ("all", ReduceFunction::All),
    ("any", ReduceFunction::Any),
];

fn integers(numbers: &[usize]) -> AttributeValue {
    AttributeValue::List(numbers.iter().map(|&number| AttributeValue::Integer(number as i64)).collect())
}

/// Pads of two axes in the order top, left, bottom, right.
fn padding(pads: &[(usize, usize)]) -> AttributeValue {
    let numbers: Vec<usize> = pads.iter().map(|pad| pad.0).chain(pads.iter().map(|pad| pad.1)).collect();
    integers(&numbers)
}

fn word(text: &str) -> AttributeValue {
    AttributeValue::Text(text.to_owned())
}

/// The operator in Relay's words, if there are some that may do.
pub(super) fn write(op: &Op, operands: &[TensorType]) -> Option<Spelled> {
    let of = operands.first()?;
    let (name, attributes): (&str, Vec<(&'static str, AttributeValue)>) = match op {
        Op::Unary(Unary { function }) => (unary_word(*function, of.dtype)?, vec![]),
        Op::Binary(Binary { function }) => (binary_word(*function, of.dtype)?, vec![]),
        Op::Select(_) => ("where", vec![]),
        Op::BitCast(BitCast { dtype }) => ("reinterpret", vec![("dtype", word(dtype.long_name()))]),
        Op::Cast(Cast { dtype }) => ("cast", vec![("dtype", word(dtype.long_name()))]),
        Op::Clamp(Clamp { low, high }) => ("clip", vec![("a_min", float(low.0)), ("a_max", float(high.0))]),
        Op::LeakyRelu(LeakyRelu { slope }) => ("nn.leaky_relu", vec![("alpha", float(slope.0))]),
        Op::Softmax(Softmax { axis, logarithm }) => {
            let name = if *logarithm { "nn.log_softmax" } else { "nn.softmax" };
            (name, vec![("axis", AttributeValue::Integer(*axis as i64))])
        }
        Op::Reshape(Reshape { shape }) if !shape.contains(&0) => ("reshape", vec![("newshape", integers(shape))]),
        Op::Broadcast(Broadcast { shape }) => ("broadcast_to", vec![("shape", integers(shape))]),
        Op::Transpose(Transpose { permutation }) => ("transpose", vec![("axes", integers(permutation))]),
        Op::Concat(Concat { axis }) => ("concatenate", vec![("axis", AttributeValue::Integer(*axis as i64))]),
        Op::Reduce(Reduce { function, axes, keep_axes }) => {
            let (name, _) = REDUCTIONS.iter().find(|(_, known)| known == function)?;
            (name, vec![("axis", integers(axes)), ("keepdims", AttributeValue::Bool(*keep_axes))])
        }
        Op::Matmul(Matmul { transpose_left: false, transpose_right: true, sums: None }) if of.rank() == 2 => {
            let units = *operands.get(1).filter(|weights| weights.rank() == 2)?.shape.first()?;
            ("nn.dense", vec![("units", AttributeValue::Integer(units as i64))])
        }
        Op::Matmul(Matmul { transpose_left, transpose_right, sums: None })
            if operands.iter().all(|ty| ty.rank() == 3) =>
        {
            let flags = [("transpose_a", *transpose_left), ("transpose_b", *transpose_right)];
            ("nn.batch_matmul", flags.map(|(name, flag)| (name, AttributeValue::Bool(flag))).to_vec())
        }
        Op::Convolution(convolution) => return write_convolution(convolution, operands),
        Op::MaxPool(MaxPool { window, strides, dilations, pads }) if window.len() == 2 => {
            ("nn.max_pool2d", pool(window, strides, dilations, pads))
        }
        Op::AveragePool(AveragePool { window, strides, dilations, pads, counted_pads }) if window.len() == 2 => {
            let mut attributes = pool(window, strides, dilations, pads);
            attributes.push(("count_include_pad", AttributeValue::Bool(counted_pads == pads)));
            ("nn.avg_pool2d", attributes)
        }
        Op::Pad(Pad { pads, mode: PadMode::Constant, value }) => {
            let pairs = pads.iter().map(|&(before, after)| integers(&[before, after])).collect();
            let attributes = vec![("pad_width", AttributeValue::List(pairs))];
            return Some(Spelled { name: "nn.pad".into(), attributes, literal: Some(*value), tuple: false });
        }
        _ => return None,
    };
    Some(Spelled { name: name.into(), attributes, literal: None, tuple: matches!(op, Op::Concat(_)) })
}

fn pool(
    window: &[usize],
    strides: &[usize],
    dilations: &[usize],
    pads: &[(usize, usize)],
) -> Vec<(&'static str, AttributeValue)> {
    vec![
        ("pool_size", integers(window)),
        ("strides", integers(strides)),
        ("dilation", integers(dilations)),
        ("padding", padding(pads)),
        ("layout", word("NHWC")),
    ]
}

fn write_convolution(op: &Convolution, operands: &[TensorType]) -> Option<Spelled> {
    let weights = &operands.get(1)?.shape;
    if op.strides.len() != 2 || weights.len() != 4 || op.border != 0 || op.sums.is_some() {
        return None;
    }
    let attributes = vec![
        ("strides", integers(&op.strides)),
        ("padding", padding(&op.pads)),
        ("dilation", integers(&op.dilations)),
        ("groups", AttributeValue::Integer(op.groups as i64)),
        ("channels", AttributeValue::Integer(weights[3] as i64)),
        ("kernel_size", integers(&weights[..2])),
        ("data_layout", word("NHWC")),
        ("kernel_layout", word("HWIO")),
    ];
    Some(Spelled { name: "nn.conv2d".into(), attributes, literal: None, tuple: false })
}

/// The operator of words that [`write()`] makes; `None` for others.
pub(super) fn read(
    name: &str,
    attributes: &Attributes<'_>,
    literal: Option<Literal>,
    operands: &[TensorType],
) -> Result<Option<Op>, Fault> {
    let reader = Reader { name, attributes };
    if let Some(function) = elementary::unary_of(name) {
        return Ok(Some(Unary { function }.into()));
    }
    if let Some(function) = elementary::binary_of(name) {
        return Ok(Some(Binary { function }.into()));
    }
    if let Some(&(_, function)) = REDUCTIONS.iter().find(|(known, _)| *known == name) {
        let (axes, keep_axes) = (reader.counts("axis")?, reader.flag("keepdims")?);
        return Ok(Some(Reduce { function, axes, keep_axes }.into()));
    }
    let op: Op = match name {
        "where" => Select {}.into(),
        "cast" | "reinterpret" => {
            let word = reader.text("dtype")?;
            let dtype = DType::parse_long_name(word);
            let dtype = dtype.ok_or_else(|| Fault::parameter(format!("{word} isn't a data type")))?;
            if name == "cast" { Cast { dtype }.into() } else { BitCast { dtype }.into() }
        }
        "clip" => Clamp { low: reader.float("a_min")?, high: reader.float("a_max")? }.into(),
        "nn.leaky_relu" => LeakyRelu { slope: reader.float("alpha")? }.into(),
        "nn.softmax" | "nn.log_softmax" => {
            Softmax { axis: reader.count("axis")?, logarithm: name == "nn.log_softmax" }.into()
        }
        "reshape" => Reshape { shape: Shape::from(reader.counts("newshape")?) }.into(),
        "broadcast_to" => Broadcast { shape: Shape::from(reader.counts("shape")?) }.into(),
        "transpose" => Transpose { permutation: reader.counts("axes")? }.into(),
        "concatenate" => Concat { axis: reader.count("axis")? }.into(),
        "nn.dense" => {
            reader.count("units")?;
            Matmul { transpose_left: false, transpose_right: true, sums: None }.into()
        }
        "nn.batch_matmul" => {
            let (transpose_left, transpose_right) = (reader.flag("transpose_a")?, reader.flag("transpose_b")?);
            Matmul { transpose_left, transpose_right, sums: None }.into()
        }
        "nn.conv2d" => {
            reader.expect("data_layout", "NHWC")?;
            reader.expect("kernel_layout", "HWIO")?;
            let (strides, dilations) = (reader.counts("strides")?, reader.counts("dilation")?);
            Convolution {
                strides,
                dilations,
                pads: reader.padding()?,
                groups: reader.count("groups")?,
                border: 0,
                sums: None,
            }
            .into()
        }
        "nn.max_pool2d" | "nn.avg_pool2d" => {
            reader.expect("layout", "NHWC")?;
            let window = reader.counts("pool_size")?;
            let (strides, dilations, pads) = (reader.counts("strides")?, reader.counts("dilation")?, reader.padding()?);
            if name == "nn.max_pool2d" {
                return Ok(Some(MaxPool { window, strides, dilations, pads }.into()));
            }
            let counted_pads = if reader.flag("count_include_pad")? { pads.clone() } else { vec![(0, 0); pads.len()] };
            AveragePool { window, strides, dilations, pads, counted_pads }.into()
        }
        "nn.pad" => {
            let value = literal.ok_or_else(|| Fault::operands("nn.pad needs a number behind its operand"))?;
            // Numbers that have no literal in Relay are of the operand's type, and read as such.
            let value = operands.first().map_or(value, |ty| retyped(value, ty.dtype));
            Pad { pads: reader.pairs("pad_width")?, mode: PadMode::Constant, value }.into()
        }
        _ => return Ok(None),
    };
    Ok(Some(op))
}

/// A literal of a narrow type is written as one of a wide type that holds its values.
fn retyped(value: Literal, dtype: DType) -> Literal {
    match value {
        Literal::Float(_, value) if dtype.is_float() => Literal::Float(dtype, value),
        Literal::Integer(_, value) if !dtype.is_float() => Literal::Integer(dtype, value),
        other => other,
    }
}

struct Reader<'a> {
    name: &'a str,
    attributes: &'a Attributes<'a>,
}

impl Reader<'_> {
    fn get(&self, name: &str) -> Result<&AttributeValue, Fault> {
        let found = self.attributes.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| Fault::parameter(format!("{} needs its attribute `{name}`", self.name)))
    }

    fn wrong(&self, name: &str) -> Fault {
        Fault::parameter(format!("the attribute `{name}` of {} is of another kind", self.name))
    }

    fn count_of(&self, name: &str, value: &AttributeValue) -> Result<usize, Fault> {
        match value {
            AttributeValue::Integer(value) => usize::try_from(*value).map_err(|_| self.wrong(name)),
            _ => Err(self.wrong(name)),
        }
    }

    fn list(&self, name: &str) -> Result<&[AttributeValue], Fault> {
        match self.get(name)? {
            AttributeValue::List(values) => Ok(values),
            _ => Err(self.wrong(name)),
        }
    }

    fn count(&self, name: &str) -> Result<usize, Fault> {
        self.count_of(name, self.get(name)?)
    }

    fn counts(&self, name: &str) -> Result<Vec<usize>, Fault> {
        self.list(name)?.iter().map(|value| self.count_of(name, value)).collect()
    }

    fn pairs(&self, name: &str) -> Result<Vec<(usize, usize)>, Fault> {
        let pair = |pair: &AttributeValue| match pair {
            AttributeValue::List(pair) if pair.len() == 2 => {
                Ok((self.count_of(name, &pair[0])?, self.count_of(name, &pair[1])?))
            }
            _ => Err(self.wrong(name)),
        };
        self.list(name)?.iter().map(pair).collect()
    }

    /// Pads before all axes, then those behind them.
    fn padding(&self) -> Result<Vec<(usize, usize)>, Fault> {
        let numbers = self.counts("padding")?;
        if !numbers.len().is_multiple_of(2) {
            return Err(self.wrong("padding"));
        }
        let (before, after) = numbers.split_at(numbers.len() / 2);
        Ok(before.iter().copied().zip(after.iter().copied()).collect())
    }

    fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.get(name)? {
            AttributeValue::Bool(value) => Ok(*value),
            _ => Err(self.wrong(name)),
        }
    }

    fn float(&self, name: &str) -> Result<Float, Fault> {
        match self.get(name)? {
            AttributeValue::Float(value, _) => Ok(Float(*value)),
            _ => Err(self.wrong(name)),
        }
    }

    fn text(&self, name: &str) -> Result<&str, Fault> {
        match self.get(name)? {
            AttributeValue::Text(text) => Ok(text),
            _ => Err(self.wrong(name)),
        }
    }

    fn expect(&self, name: &str, expected: &str) -> Result<(), Fault> {
        match self.text(name)? {
            found if found == expected => Ok(()),
            found => Err(Fault::variant(format!(
                "the attribute `{name}` of {} is {found:?}, {expected:?} expected",
                self.name
            ))),
        }
    }
}
