//! The engine's types for TensorFlow Lite, and what its operators have besides what the engine reads for all formats: how tensors
//! are quantised, fused activations, lists of numbers as operands.

use super::format::{Tflite, dtype_of};
use crate::model::{Quantization, Tensor};
use mlc_import::Fault;
use mlc_import::builder::{FixedPoint, Scaled, Stored};
use mlc_ir::scalar::Rounding;

use mlc_ir::scalar::UnaryFunction as U;
use mlc_ir::{Code, DType, Value};

/// An operator while it is imported.
pub(super) type Call<'c, 'm> = mlc_import::Call<'c, 'm, Tflite>;

/// A model while it becomes a graph.
pub(super) type Importer<'m> = mlc_import::Importer<'m, Tflite>;

/// An operator where it stands in the file.
pub(super) type Site<'m> = mlc_import::Site<'m, Tflite>;

/// Names and handlers.
pub(super) type Table = mlc_import::Table<Tflite>;

/// How the integers of a whole tensor stand for real numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Affine {
    pub scale: f32,
    pub zero_point: i64,
}

impl Affine {
    /// The tensor with these integers.
    pub fn of(self, integers: Value) -> Scaled {
        Scaled { integers, scale: self.scale, zero_point: self.zero_point }
    }
}

/// What is applied to an operator's result at once, by its number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    None,
    Relu,
    ReluN1To1,
    Relu6,
    Tanh,
}

impl Activation {
    /// The limits of the real numbers.
    pub fn limits(self) -> (f32, f32) {
        match self {
            Activation::None | Activation::Tanh => (f32::NEG_INFINITY, f32::INFINITY),
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::ReluN1To1 => (-1.0, 1.0),
            Activation::Relu6 => (0.0, 6.0),
        }
    }

    /// How a quantised result is stored that the activation is applied to.
    pub fn stored(self, dtype: DType, affine: Affine) -> Result<Stored, Fault> {
        if self == Activation::Tanh {
            return Err(Fault::variant("a fused tanh of integers isn't supported"));
        }
        let mut stored = Stored::of(dtype, affine.zero_point);
        let (low, high) = self.limits();
        let integer = |real: f32| affine.zero_point.saturating_add((real / affine.scale).round() as i64);
        if low.is_finite() {
            stored.low = stored.low.max(integer(low));
        }
        if high.is_finite() {
            stored.high = stored.high.min(integer(high));
        }
        Ok(stored)
    }
}

/// Access to what only TensorFlow Lite has.
pub(super) trait Tensors<'m> {
    /// An operand as the file describes it.
    fn operand(&self, index: usize) -> Result<&'m Tensor, Fault>;

    /// A result as the file describes it.
    fn result(&self, index: usize) -> Result<&'m Tensor, Fault>;

    /// Whether the operator computes with integers that stand for real numbers: its first operand is one of them.
    fn is_quantized(&self) -> bool;

    /// Whether an operand holds integers that stand for real numbers.
    fn is_quantized_operand(&self, index: usize) -> bool;

    /// How the integers of an operand stand for real numbers.
    fn operand_affine(&self, index: usize) -> Result<Affine, Fault>;

    /// How the integers of a result stand for real numbers.
    fn result_affine(&self, index: usize) -> Result<Affine, Fault>;

    /// The data type of a result.
    fn result_dtype(&self, index: usize) -> Result<DType, Fault>;

    /// The fused activation.
    fn activation(&mut self) -> Result<Activation, Fault>;

    /// Applies the fused activation to real numbers, or to integers that stand for themselves.
    fn activated(&mut self, x: Value) -> Result<Value, Fault>;

    /// How the first result is stored, the fused activation applied.
    fn stored(&mut self) -> Result<Stored, Fault>;

    /// The real numbers of a constant operand, or the operand itself where it holds real numbers.
    fn real(&mut self, index: usize) -> Result<Value, Fault>;

    /// The whole numbers of an operand that decides on the result's shape; the operator can't do without.
    fn numbers(&mut self, index: usize, what: &str) -> Result<Vec<i64>, Fault>;

    /// Rescales integers to the first result's by real factors, one or one for each index of the last axis.
    fn rescaled(&mut self, x: Value, factors: &[f64], stored: Stored) -> Result<Value, Fault>;

    /// Refuses operators that move elements of integers between different scales.
    fn check_same_scale(&self, operands: &[usize]) -> Result<(), Fault>;
}

fn affine(tensor: &Tensor) -> Result<Affine, Fault> {
    let quantization = tensor.quantization.as_ref().ok_or_else(|| {
        Fault::operands(format!("the tensor `{}` of {} has no scale", tensor.name, tensor.element_type))
    })?;
    match (&quantization.scales[..], &quantization.zero_points[..]) {
        (&[scale], &[zero_point]) if is_scale(scale) && zero_point.unsigned_abs() < 1 << 31 => {
            Ok(Affine { scale, zero_point })
        }
        (&[scale], &[zero_point]) => {
            let message = format!("the scale {scale} with the zero point {zero_point} of the tensor `{}`", tensor.name);
            Err(Fault::parameter(message))
        }
        (scales, _) => {
            let message = format!("the tensor `{}` has {} scales, one is expected", tensor.name, scales.len());
            Err(Fault::variant(message))
        }
    }
}

/// Whether a number can be a scale.
pub(super) fn is_scale(scale: f32) -> bool {
    scale.is_finite() && scale > 0.0
}

/// Whether a tensor holds integers that stand for real numbers.
pub(super) fn is_quantized(tensor: &Tensor) -> bool {
    let is_narrow = matches!(tensor.element_type.dtype(), Some(DType::I8 | DType::U8 | DType::I16));
    is_narrow && tensor.quantization.is_some()
}

/// Scales and zero points, which must fit the extents of the tensor.
pub(super) fn quantization(tensor: &Tensor) -> Result<&Quantization, Fault> {
    let missing = || Fault::operands(format!("the tensor `{}` of {} has no scale", tensor.name, tensor.element_type));
    let quantization = tensor.quantization.as_ref().ok_or_else(missing)?;
    let count = quantization.scales.len();
    let fits = count == 1 || tensor.shape.get(quantization.axis) == Some(&count);
    if !fits || !quantization.scales.iter().all(|&scale| is_scale(scale)) {
        let message =
            format!("the {count} scales of the tensor `{}` don't fit axis {}", tensor.name, quantization.axis);
        return Err(Fault::parameter(message));
    }
    Ok(quantization)
}

impl<'m> Tensors<'m> for Call<'_, 'm> {
    fn operand(&self, index: usize) -> Result<&'m Tensor, Fault> {
        let application = self.site.operator;
        let number = application.operator.inputs.get(index).copied().flatten();
        let missing = || Fault::new(Code::OperandCount, format!("operand {index} is missing"));
        number.map(|number| &application.subgraph.tensors[number]).ok_or_else(missing)
    }

    fn result(&self, index: usize) -> Result<&'m Tensor, Fault> {
        let application = self.site.operator;
        let number = application.operator.outputs.get(index).copied();
        let missing = || Fault::new(Code::OperandCount, format!("result {index} is missing"));
        number.map(|number| &application.subgraph.tensors[number]).ok_or_else(missing)
    }

    fn is_quantized(&self) -> bool {
        self.is_quantized_operand(0)
    }

    fn is_quantized_operand(&self, index: usize) -> bool {
        self.operand(index).is_ok_and(is_quantized)
    }

    fn operand_affine(&self, index: usize) -> Result<Affine, Fault> {
        affine(self.operand(index)?)
    }

    fn result_affine(&self, index: usize) -> Result<Affine, Fault> {
        affine(self.result(index)?)
    }

    fn result_dtype(&self, index: usize) -> Result<DType, Fault> {
        dtype_of(self.result(index)?.element_type)
    }

    fn activation(&mut self) -> Result<Activation, Fault> {
        match self.int_or("fused_activation_function", 0)? {
            0 => Ok(Activation::None),
            1 => Ok(Activation::Relu),
            2 => Ok(Activation::ReluN1To1),
            3 => Ok(Activation::Relu6),
            4 => Ok(Activation::Tanh),
            5 => Err(Fault::variant("the fused activation SIGN_BIT isn't supported")),
            other => Err(Fault::parameter(format!("there is no fused activation {other}"))),
        }
    }

    fn activated(&mut self, x: Value) -> Result<Value, Fault> {
        let activation = self.activation()?;
        let (low, high) = activation.limits();
        match activation {
            Activation::None => Ok(x),
            Activation::Tanh => Ok(self.builder.unary(U::Tanh, x)?),
            _ => Ok(self.builder.clamp(x, low.into(), high.into())?),
        }
    }

    fn stored(&mut self) -> Result<Stored, Fault> {
        let (dtype, affine) = (self.result_dtype(0)?, self.result_affine(0)?);
        if !dtype.is_integer() || dtype.size() > 2 {
            return Err(Fault::operands(format!("the result of integers can't be of {dtype}")));
        }
        self.activation()?.stored(dtype, affine)
    }

    fn real(&mut self, index: usize) -> Result<Value, Fault> {
        let x = self.input(index)?;
        let dtype = self.dtype_of(x);
        if dtype.is_float() {
            return Ok(self.builder.cast(x, DType::F32)?);
        }
        let Quantization { scales, zero_points, axis } = quantization(self.operand(index)?)?;
        let scales =
            self.builder.numbers(DType::F32, &[scales.len()], scales.iter().map(|&scale| scale.into()).collect());
        let scales = self.builder.along_axis(scales, x, *axis)?;
        let is_centred = zero_points.iter().all(|&zero_point| zero_point == 0);
        let zero_points = if is_centred {
            None
        } else {
            let zero_points = self.builder.indices(&[zero_points.len()], zero_points)?;
            let zero_points = self.builder.along_axis(zero_points, x, *axis)?;
            Some(self.builder.cast(zero_points, DType::I32)?)
        };
        let x = if dtype.size() < 4 { self.builder.cast(x, DType::I32)? } else { x };
        self.builder.dequantize(x, scales, zero_points, DType::F32)
    }

    fn numbers(&mut self, index: usize, what: &str) -> Result<Vec<i64>, Fault> {
        let missing = || Fault::new(Code::OperandCount, format!("operand {index} ({what}) is missing"));
        self.constant_ints(index, what)?.ok_or_else(missing)
    }

    fn rescaled(&mut self, x: Value, factors: &[f64], stored: Stored) -> Result<Value, Fault> {
        let factors = FixedPoint::of(factors)?;
        if self.dtype_of(x) == DType::I64 {
            return self.builder.rescale(x, &factors.narrowed()?, Rounding::Once, stored);
        }
        self.builder.rescale(x, &factors, Rounding::Twice, stored)
    }

    fn check_same_scale(&self, operands: &[usize]) -> Result<(), Fault> {
        if !self.is_quantized() {
            return Ok(());
        }
        let result = self.result_affine(0)?;
        for &index in operands {
            let operand = self.operand_affine(index)?;
            if operand != result {
                let message = format!("operand {index} has the quantisation {operand:?}, the result {result:?}");
                return Err(Fault::variant(message));
            }
        }
        Ok(())
    }
}
