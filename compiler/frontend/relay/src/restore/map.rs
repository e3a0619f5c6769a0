//! Scalar expressions of functions over the variables `%p0`, `%p1`, ….

use super::finding::{at, unlike};
use crate::import::elementary;
use crate::syntax::{AttributeValue, Binding, ExpressionId, ExpressionKind, Function, Module, Number};
use mlc_import::Fault;
use mlc_ir::scalar::{Expression, ExpressionBuilder, ScalarId};
use mlc_ir::{DType, Diagnostic};
use std::collections::BTreeMap;

pub(super) fn expression(module: &Module<'_>, function: &Function<'_>) -> Result<Expression, Diagnostic> {
    let mut reader = Reader { module, function, builder: ExpressionBuilder::default(), steps: BTreeMap::new() };
    for binding in &function.body.bindings {
        let Binding::Graph(number, expression) = binding else {
            return Err(unlike(function.place, "the steps of a function of elements are bound to numbers"));
        };
        let step = reader.step(*expression)?;
        reader.steps.insert(*number, step);
    }
    let result = reader.step(function.body.result)?;
    let steps = std::mem::take(&mut reader.builder);
    Ok(Expression::from_steps(steps, result))
}

struct Reader<'m, 'a> {
    module: &'m Module<'a>,
    function: &'m Function<'a>,
    builder: ExpressionBuilder,
    steps: BTreeMap<u32, ScalarId>,
}

impl Reader<'_, '_> {
    /// An expression and the operands in it; the depth of expressions is limited.
    fn step(&mut self, id: ExpressionId) -> Result<ScalarId, Diagnostic> {
        let expression = &self.module.expressions[id];
        let place = expression.place;
        match &expression.kind {
            ExpressionKind::Local(name) => {
                let place_of = self.function.parameters.iter().position(|parameter| parameter.name == *name);
                let operand = place_of.and_then(|operand| u32::try_from(operand).ok());
                operand
                    .map(|operand| self.builder.operand(operand))
                    .ok_or_else(|| unlike(place, format!("%{name} isn't defined")))
            }
            ExpressionKind::Graph(number) => {
                self.steps.get(number).copied().ok_or_else(|| unlike(place, format!("%{number} isn't defined")))
            }
            ExpressionKind::Literal(Number(literal)) => Ok(self.builder.literal(*literal)),
            ExpressionKind::Operator(name, arguments, attributes) => {
                let arguments = arguments.iter().map(|&part| self.step(part)).collect::<Result<Vec<_>, _>>()?;
                let b = &mut self.builder;
                let wrong = || unlike(place, format!("{name} isn't a function of elements, or has other operands"));
                match (*name, &arguments[..], &attributes[..]) {
                    ("where", &[c, x, y], []) => Ok(b.select(c, x, y)),
                    ("cast" | "reinterpret", &[x], [attribute]) => {
                        let dtype = match &attribute.value {
                            AttributeValue::Text(name) if attribute.name == "dtype" => DType::parse_long_name(name),
                            _ => None,
                        };
                        let needed = || at(place, Fault::parameter(format!("{name} needs a data type")));
                        let dtype = dtype.ok_or_else(needed)?;
                        Ok(if *name == "cast" { b.cast(dtype, x) } else { b.bit_cast(dtype, x) })
                    }
                    (name, &[x], []) => {
                        elementary::unary_of(name).map(|function| b.unary(function, x)).ok_or_else(wrong)
                    }
                    (name, &[x, y], []) => {
                        elementary::binary_of(name).map(|function| b.binary(function, x, y)).ok_or_else(wrong)
                    }
                    _ => Err(wrong()),
                }
            }
            _ => Err(unlike(place, "a function of elements has no such step")),
        }
    }
}
