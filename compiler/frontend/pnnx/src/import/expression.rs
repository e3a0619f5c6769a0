//! `pnnx.Expression`: arithmetic of numbers and lists is done at once; what touches a tensor becomes operators.

use super::arithmetic::{binary, unary};
use super::call::Call;
use super::item::Item;
use crate::expression::{Expression, Function, Node};
use mlc_import::Fault;
use mlc_import::normalized_axis;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Code, DType};

/// The value of the expression, one item.
pub(super) fn import(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let text = call.site.operator.parameters.get("expr").map(crate::value::format_parameter);
    call.ignore(&["expr"]);
    call.use_all_inputs();
    let text = text.ok_or_else(|| Fault::new(Code::ParameterMissing, "parameter `expr` is missing"))?;
    let expression = Expression::parse(&text).map_err(|error| Fault::new(Code::Syntax, error.to_string()))?;
    Ok(vec![value_of(call, &expression)?])
}

/// The value of an expression over the operands.
pub(super) fn value_of(call: &mut Call<'_, '_>, expression: &Expression) -> Result<Item, Fault> {
    let mut values: Vec<Item> = Vec::with_capacity(expression.nodes().len());
    for (_, node) in expression.nodes() {
        let value = match node {
            Node::Input(index) => call
                .inputs
                .get(*index as usize)
                .cloned()
                .ok_or_else(|| Fault::new(Code::UndefinedValue, format!("input @{index} isn't there")))?,
            Node::Int(value) => Item::Int(i64::from(*value)),
            Node::Float(value) => Item::Float(*value),
            Node::Complex(value) => {
                let (re, im) = (f64::from(value.re), f64::from(value.im));
                Item::Complex(call.builder.number(DType::F32, re), call.builder.number(DType::F32, im))
            }
            Node::Bool(value) => Item::Bool(*value),
            Node::None => Item::None,
            Node::Word(word) => Item::Word(word.clone()),
            Node::List(children) => {
                let children = expression.children(*children);
                Item::List(children.iter().map(|child| values[child.index()].clone()).collect())
            }
            Node::Call(function, children) => {
                let children = expression.children(*children);
                let arguments: Vec<Item> = children.iter().map(|child| values[child.index()].clone()).collect();
                evaluate(call, *function, &arguments)?
            }
        };
        values.push(value);
    }
    values.pop().ok_or_else(|| Fault::new(Code::Syntax, "the expression is empty"))
}

fn evaluate(call: &mut Call<'_, '_>, function: Function, arguments: &[Item]) -> Result<Item, Fault> {
    if let Some(function) = unary_function(function) {
        return unary(call.builder, function, &arguments[0]);
    }
    if let Some(function) = binary_function(function) {
        return binary(call.builder, function, &arguments[0], &arguments[1]);
    }
    match function {
        Function::Size => size(call, arguments),
        Function::Int => match &arguments[0] {
            Item::Float(value) => Ok(Item::Int(*value as i64)),
            Item::Bool(value) => Ok(Item::Int(i64::from(*value))),
            // The exporter itself runs such a model without a conversion.
            other => Ok(other.clone()),
        },
        Function::ToBool => cast(call, DType::Bool, &arguments[0]),
        Function::ToFloat => cast(call, DType::F32, &arguments[0]),
        Function::ToLong => cast(call, DType::I64, &arguments[0]),
        other => Err(Fault::variant(format!("the function {} isn't supported", other.name()))),
    }
}

fn size(call: &mut Call<'_, '_>, arguments: &[Item]) -> Result<Item, Fault> {
    let x = call.as_tensor("`size`", &arguments[0])?;
    let shape = call.shape(x);
    let Some(axis) = arguments.get(1) else {
        return Ok(Item::List(shape.iter().map(|&extent| Item::Int(extent as i64)).collect()));
    };
    let axis = axis.int().and_then(|axis| normalized_axis(axis, shape.len()));
    let axis = axis.ok_or_else(|| {
        Fault::parameter(format!("{} has no axis {}", call.builder.ty(x), arguments[1].description()))
    })?;
    Ok(Item::Int(shape[axis] as i64))
}

fn cast(call: &mut Call<'_, '_>, dtype: DType, item: &Item) -> Result<Item, Fault> {
    Ok(match (item, dtype) {
        (Item::Tensor(value), _) => Item::Tensor(call.builder.cast(*value, dtype)?),
        (_, DType::Bool) => Item::Bool(number(item)? != 0.0),
        (_, DType::I64) => Item::Int(number(item)? as i64),
        _ => Item::Float(number(item)?),
    })
}

fn number(item: &Item) -> Result<f64, Fault> {
    item.float().ok_or_else(|| Fault::operands(format!("{} can't be converted", item.description())))
}

fn unary_function(function: Function) -> Option<UnaryFunction> {
    use Function as F;
    use UnaryFunction as U;
    Some(match function {
        F::Abs => U::Absolute,
        F::Neg => U::Negate,
        F::Sign => U::Sign,
        F::Square => U::Square,
        F::Ceil => U::Ceil,
        F::Floor => U::Floor,
        F::Round => U::Round,
        F::Trunc => U::Truncate,
        F::Acos => U::Acos,
        F::Acosh => U::Acosh,
        F::Asin => U::Asin,
        F::Asinh => U::Asinh,
        F::Atan => U::Atan,
        F::Atanh => U::Atanh,
        F::Cos => U::Cos,
        F::Cosh => U::Cosh,
        F::Erf => U::Erf,
        F::Exp => U::Exp,
        F::Expm1 => U::Expm1,
        F::Log => U::Log,
        F::Log10 => U::Log10,
        F::Log1p => U::Log1p,
        F::Reciprocal => U::Reciprocal,
        F::Rsqrt => U::Rsqrt,
        F::Sin => U::Sin,
        F::Sinh => U::Sinh,
        F::Sqrt => U::Sqrt,
        F::Tan => U::Tan,
        F::Tanh => U::Tanh,
        _ => return None,
    })
}

fn binary_function(function: Function) -> Option<BinaryFunction> {
    use BinaryFunction as B;
    use Function as F;
    Some(match function {
        F::Add => B::Add,
        F::Sub => B::Subtract,
        F::Mul => B::Multiply,
        F::Max | F::Maximum => B::Maximum,
        F::Min | F::Minimum => B::Minimum,
        F::Div => B::Divide,
        F::FloorDivide => B::FloorDivide,
        F::Remainder => B::Modulo,
        F::Fmod => B::Remainder,
        F::Pow => B::Power,
        F::Atan2 => B::Atan2,
        F::Logaddexp => B::LogAddExp,
        F::And => B::And,
        F::Or => B::Or,
        F::Xor => B::Xor,
        F::LeftShift => B::ShiftLeft,
        F::RightShift => B::ShiftRight,
        _ => return None,
    })
}
