//! [`Ark`]: what the format brings to the import engine. What the engine walks isn't the file's list of operations but the program
//! on values that [`crate::memory`] makes of it.

use crate::check::DERIVED;
use crate::memory::{Program, Step, ValueId};
use crate::model::Argument;
use mlc_import::{Attributes, Builder, Description, Fault, Format, Item, Operand, Surplus};
use mlc_ir::{Code, DType, Location};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The format.
pub struct Ark;

impl Format for Ark {
    const NAME: &'static str = "ark";
    const ATTRIBUTE: &'static str = "argument";
    /// The shapes of all values are in the file.
    const COMPUTES_SHAPES: bool = false;
    const SURPLUS_ATTRIBUTES: Surplus = Surplus::Warned;

    type Model<'m> = &'m Program<'m>;
    type Operator<'m> = &'m Step<'m>;
    type Name<'m> = ValueId;
    type Item = Operand;
    type Attribute<'m> = &'m Argument;
    type Region<'m> = Infallible;
    type Scope<'m> = ();
    type Note = Infallible;

    fn describe(step: Self::Operator<'_>) -> Description<'_> {
        let own = step.operation.map_or("", |operation| &*operation.kind);
        let location = step.operation.map_or_else(Location::default, |operation| operation.location());
        Description { kind: step.action.name().unwrap_or(own), domain: "", name: step.name.clone(), location }
    }

    fn operands<'m>(_program: Self::Model<'m>, step: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        step.operands.iter().copied().map(Some).collect()
    }

    fn results<'m>(_program: Self::Model<'m>, step: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        step.results.iter().copied().map(Some).collect()
    }

    fn attributes<'m>(_scope: &(), step: Self::Operator<'m>) -> Result<Attributes<'m, Self>, Fault> {
        let own = step.operation.filter(|_| step.action.name().is_none());
        Ok(own.iter().flat_map(|operation| &operation.arguments).map(|(name, value)| (&**name, value)).collect())
    }

    fn attribute_matters<'m>(name: &str, _value: &Self::Attribute<'m>) -> bool {
        !DERIVED.contains(&name)
    }

    fn check_result<'m>(
        program: Self::Model<'m>,
        _dimensions: &mut BTreeMap<String, usize>,
        builder: &Builder,
        name: ValueId,
        item: &Operand,
    ) -> Result<(), Fault> {
        let Some(value) = item.tensor() else { return Ok(()) };
        let (found, declared) = (builder.ty(value), program.ty(name));
        if found.dtype == declared.data_type.dtype() && found.shape == declared.shape {
            return Ok(());
        }
        let message = format!("the result is {found}, but the tensor that is written is {declared}");
        Err(Fault::new(Code::ShapeMismatch, message))
    }

    fn help_for_unknown(_kind: &str) -> String {
        "'mlc ops --format ark' lists what is supported".into()
    }
}

impl<'m> mlc_import::AttributeValue for &'m Argument {
    type Word = &'m str;

    fn description(&self) -> String {
        match self {
            Argument::Dims(extents) => format!("DIMS {extents:?}"),
            Argument::Int(number) => format!("INT {number}"),
            Argument::Float(number) => format!("FLOAT {number}"),
            other => other.kind().into(),
        }
    }

    fn int(&self) -> Option<i64> {
        match **self {
            Argument::Int(number) => Some(number.into()),
            Argument::Uint32(number) => Some(number.into()),
            Argument::Int64(number) => Some(number),
            Argument::Uint64(number) => number.try_into().ok(),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match **self {
            Argument::Float(number) => Some(number.into()),
            _ => None,
        }
    }

    fn flag(&self) -> Option<bool> {
        match **self {
            Argument::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Argument::Dims(extents) => Some(extents.to_vec()),
            _ => None,
        }
    }

    fn floats(&self) -> Option<Vec<f64>> {
        None
    }

    fn word(&self) -> Option<&'m str> {
        None
    }

    fn dtype(&self) -> Option<Result<DType, Fault>> {
        None
    }
}
