//! A layer in the operators of integers, as importers of quantised models spell them.

use crate::layers::{Layer, pair_function};
use crate::plan::Plan;
use crate::weights::{self, IntegerWeights};
use mlc_import::Fault;
use mlc_import::builder::{Builder, Centred, FixedPoint, Products, Scaled, Stored, Sums};
use mlc_ir::ops::{AveragePool, Convolution, Pad, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, Rounding};
use mlc_ir::{Attribute, DType, Graph, IntegerForm, Literal, Op, Quantization, Tensor, TensorType, Value};

/// An operand of a layer in the graph that is built.
#[derive(Debug, Clone, Copy)]
pub enum Operand {
    /// Integers that stand for real numbers.
    Integers(Scaled),
    /// Something else, such as indices.
    Plain(Value),
}

impl Operand {
    fn integers(self) -> Result<Scaled, Fault> {
        match self {
            Operand::Integers(integers) => Ok(integers),
            Operand::Plain(_) => Err(Fault::operands("an operand doesn't hold singles")),
        }
    }
}

/// A layer of a graph, and the plan for its tensors.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    /// The graph of real numbers.
    pub graph: &'a Graph,
    /// Its layer.
    pub layer: &'a Layer,
    /// What its tensors' integers stand for.
    pub plan: &'a Plan,
}

impl Planned<'_> {
    /// The operator that the layer is about.
    fn op(&self) -> &Op {
        &self.graph.node(self.layer.nodes[0]).op
    }

    /// What the integers of the result stand for.
    pub fn result(&self) -> Result<Quantization, Fault> {
        let found = self.plan.of(self.layer.result);
        found.ok_or_else(|| Fault::operands("calibration hasn't seen the result"))
    }

    /// How the result is stored, within the layer's limits.
    fn stored(&self) -> Result<Stored, Fault> {
        let Quantization { scale, zero_point } = self.result()?;
        let whole = Stored::of(DType::I8, zero_point);
        let integer = |limit: f64| zero_point.saturating_add((limit / scale.0).round() as i64);
        let (low, high) = self.layer.limits;
        let limited = |limit: f64| integer(limit).clamp(whole.low, whole.high);
        Ok(Stored {
            low: if low.is_finite() { limited(low) } else { whole.low },
            high: if high.is_finite() { limited(high) } else { whole.high },
            ..whole
        })
    }

    /// Builds the layer of integers on operands in the layer's order.
    ///
    /// # Errors
    /// When there is no form of integers for these operands: the layer is computed with real numbers then.
    pub fn build(&self, builder: &mut Builder, operands: &[Operand]) -> Result<Value, Fault> {
        let first = operands.first().copied().ok_or_else(|| Fault::operands("there is no operand"))?;
        match self.layer.form {
            IntegerForm::Products => self.products(builder, operands),
            IntegerForm::Elements => self.elements(builder, operands),
            IntegerForm::Means => self.means(builder, first.integers()?),
            IntegerForm::Function => self.function(builder, operands),
            IntegerForm::Softmax => {
                let Op::Softmax(op) = self.op() else { return Err(Fault::operands("this isn't a softmax")) };
                builder.softmax_of_integers(first.integers()?, op.axis, 1.0, Stored::of(DType::I8, 0))
            }
            IntegerForm::None => Err(Fault::operands(format!("{} has no form of integers", self.op().name()))),
        }
    }

    fn products(&self, builder: &mut Builder, operands: &[Operand]) -> Result<Value, Fault> {
        let x = operands[0].integers()?;
        let op = Products::try_from(self.op())?;
        let result = self.result()?.scale.0;
        let bias = weights::bias(self.graph, self.layer, self.plan.corrections.get(&self.layer.result));
        let (weights, scales) = match self.layer.weights.and_then(|weights| self.graph.constant(weights)) {
            Some(constant) => {
                let weights = IntegerWeights::of(self.op(), constant, bias.as_deref(), x.scale.into());
                (builder.constant("weights", Attribute::from_tensor(&weights.integers)), weights.scales)
            }
            None => {
                let other = *operands.get(1).unwrap_or(&operands[0]);
                let other = other.integers()?;
                (centred(builder, other)?, vec![other.scale])
            }
        };
        let factor = |scale: &f32| f64::from(x.scale) * f64::from(*scale);
        let factors: Vec<f64> = scales.iter().map(factor).collect();
        let centred = Centred { integers: x.integers, zero_point: x.zero_point };
        let Sums { sums, correction } = builder.sum_products(op, centred, weights, DType::I32)?;
        let bias = bias.map(|bias| {
            let integer = |(channel, number): (usize, &f64)| {
                let factor = factors.get(channel).unwrap_or(&factors[0]);
                (number / factor).round() as i64
            };
            let integers = bias.iter().enumerate().map(integer).collect();
            let integers = Tensor::from_integers(TensorType::new(DType::I32, [bias.len()]), integers);
            builder.constant("bias", Attribute::from_tensor(&integers))
        });
        let added = match (bias, correction) {
            (Some(bias), Some(correction)) => Some(builder.binary(B::Add, bias, correction)?),
            (bias, correction) => bias.or(correction),
        };
        let sums = builder.add_optional(sums, added)?;
        let factors: Vec<f64> = factors.iter().map(|factor| factor / result).collect();
        builder.rescale(sums, &FixedPoint::of(&factors)?, Rounding::Twice, self.stored()?)
    }

    fn elements(&self, builder: &mut Builder, operands: &[Operand]) -> Result<Value, Fault> {
        let node = self.layer.nodes[0];
        let result = self.result()?;
        let mut values = Vec::new();
        for operand in self.graph.operands(node) {
            let place = self.layer.operands.iter().position(|&other| other == operand);
            let held = place.and_then(|place| operands.get(place)).copied();
            values.push(match held.ok_or_else(|| Fault::operands("an operand is missing"))? {
                Operand::Plain(value) => value,
                Operand::Integers(x) if (f64::from(x.scale), x.zero_point) == (result.scale.0, result.zero_point) => {
                    x.integers
                }
                Operand::Integers(_) => return Err(Fault::operands("the operands have several scales")),
            });
        }
        let op = match self.op() {
            Op::Pad(op) => {
                let integer = (op.value.to_f64() / result.scale.0).round() as i64 + result.zero_point;
                let value = Literal::integer(DType::I8, integer.clamp(i8::MIN.into(), i8::MAX.into()));
                Op::from(Pad { value, ..op.clone() })
            }
            op => op.clone(),
        };
        Ok(builder.apply(op, &values)?)
    }

    /// The number of elements is part of the factor.
    fn means(&self, builder: &mut Builder, x: Scaled) -> Result<Value, Fault> {
        let (sums, count) = match self.op() {
            Op::AveragePool(op) => pooled_sums(builder, x, op)?,
            Op::Reduce(op) => {
                let shape = builder.shape(x.integers);
                let count: usize = op.axes.iter().map(|&axis| shape[axis]).product();
                if count == 0 || count >= 1 << 23 {
                    return Err(Fault::operands(format!("sums of {count} elements aren't computed with integers")));
                }
                let wide = builder.cast(x.integers, DType::I32)?;
                let sums = builder.reduce(ReduceFunction::Sum, wide, &op.axes, op.keep_axes)?;
                let zeros = builder.number(DType::I32, (count as i64 * x.zero_point) as f64);
                let sums = if x.zero_point == 0 { sums } else { builder.binary(B::Subtract, sums, zeros)? };
                (sums, if op.function == ReduceFunction::Mean { count } else { 1 })
            }
            other => return Err(Fault::operands(format!("{} has no form of integers", other.name()))),
        };
        let factor = f64::from(x.scale) / (self.result()?.scale.0 * count as f64);
        builder.rescale(sums, &FixedPoint::of(&[factor])?, Rounding::Twice, self.stored()?)
    }

    fn function(&self, builder: &mut Builder, operands: &[Operand]) -> Result<Value, Fault> {
        let missing = || Fault::operands("it isn't elementwise");
        let function = self.layer.function.as_ref().ok_or_else(missing)?;
        let (scale, stored) = (self.result()?.scale.0 as f32, self.stored()?);
        match *operands {
            [x] => builder.real_function(x.integers()?, scale, stored, |b, x| b.inline(function, &[x])),
            [x, y] => {
                let (pair, swapped) = pair_function(function).ok_or_else(missing)?;
                let mut operands = [x.integers()?, y.integers()?];
                if swapped {
                    operands.swap(0, 1);
                }
                match pair {
                    B::Multiply => builder.multiply_integers(operands, scale, stored),
                    function => builder.add_integers(function, operands, scale, stored),
                }
            }
            _ => Err(missing()),
        }
    }
}

/// The integers without their zero point, in 16 bits if there is one.
fn centred(builder: &mut Builder, x: Scaled) -> Result<Value, Fault> {
    if x.zero_point == 0 {
        return Ok(x.integers);
    }
    let wide = builder.cast(x.integers, DType::I16)?;
    let zero_point = builder.literal(Literal::integer(DType::I16, x.zero_point));
    Ok(builder.binary(B::Subtract, wide, zero_point)?)
}

/// The sums of the windows of a pool, without zero points, and how many elements count in each: a convolution by ones.
fn pooled_sums(builder: &mut Builder, x: Scaled, op: &AveragePool) -> Result<(Value, usize), Fault> {
    if op.pads != op.counted_pads {
        return Err(Fault::operands("the windows of the pool have different numbers of elements that count"));
    }
    let channels = builder.shape(x.integers).last().copied().unwrap_or(1);
    let one = builder.literal(Literal::integer(DType::I8, 1));
    let shape: Vec<usize> = op.window.iter().copied().chain([1, channels]).collect();
    let ones = builder.broadcast(one, &shape)?;
    let convolution = Convolution {
        strides: op.strides.clone(),
        dilations: op.dilations.clone(),
        pads: op.pads.clone(),
        groups: channels,
        border: 0,
        sums: None,
    };
    let x = Centred { integers: x.integers, zero_point: x.zero_point };
    let Sums { sums, correction } = builder.sum_products(Products::Convolution(convolution), x, ones, DType::I32)?;
    Ok((builder.add_optional(sums, correction)?, op.window.iter().product()))
}
