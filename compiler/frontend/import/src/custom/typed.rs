//! A described operator with its types.

use super::options::Described;
use crate::fault::Fault;
use mlc_descriptions::{Description, Inference, Library, OperatorInstance, Output, Parameter};
use mlc_ir::Diagnostic;

/// Why an operator isn't imported: a finding about it, or one that its description leads to.
pub(crate) enum Refusal {
    Fault(Fault),
    Described(Diagnostic),
}

impl<T: Into<Fault>> From<T> for Refusal {
    fn from(fault: T) -> Self {
        Refusal::Fault(fault.into())
    }
}

/// An operator with its types, by the description that has its code.
pub(crate) struct Typed<'o> {
    pub description: &'o Description,
    pub instance: OperatorInstance,
    pub inference: Inference,
    /// Bytes that each result lies into its owner.
    pub offsets: Vec<u64>,
}

impl<'o> Typed<'o> {
    /// Infers an operator by its description and by the one that has its code.
    pub fn by(library: &Library, described: Described<'o>, mut instance: OperatorInstance) -> Result<Self, Refusal> {
        let Described { description, code, .. } = described;
        let Some(code) = code else {
            library.infer(description, &instance).map_err(Refusal::Described)?;
            let message = format!("the description of `{}` is for no processor (`arch` none)", description.optype);
            let help = format!("describe its code as `{}_cpu`", description.optype);
            return Err(Fault::variant(message).with_help(help).into());
        };
        if std::ptr::eq(code, description) {
            return Typed::new(library, code, instance).map_err(Refusal::Described);
        }
        library.infer(description, &instance).map_err(Refusal::Described)?;
        let same = |left: &Description, right: &Description| {
            left.inputs.iter().map(|input| &input.name).eq(right.inputs.iter().map(|input| &input.name))
                && left.outputs.iter().map(|output| &output.name).eq(right.outputs.iter().map(|output| &output.name))
        };
        if !same(description, code) {
            let message = format!("`{}` and `{}` don't have the same tensors", description.optype, code.optype);
            return Err(Fault::variant(message).into());
        }
        for Parameter { name, default, .. } in &description.parameters {
            let is_given = instance.parameters.iter().any(|(given, _)| given == name);
            let is_known = code.parameters.iter().any(|known| known.name == *name);
            if let (Some(default), false, true) = (default, is_given, is_known) {
                instance.parameters.push((name.clone(), default.clone()));
            }
        }
        Typed::new(library, code, instance).map_err(Refusal::Described)
    }

    /// Infers an operator.
    fn new(library: &Library, description: &'o Description, instance: OperatorInstance) -> Result<Self, Diagnostic> {
        let inference = library.infer(description, &instance)?;
        let offset = |(number, output): (usize, &Output)| match output.owner {
            Some(_) => library.view_offset(description, &instance, &inference, number, 0),
            None => Ok(0),
        };
        let offsets = description.outputs.iter().enumerate().map(offset).collect::<Result<_, _>>()?;
        Ok(Typed { description, instance, inference, offsets })
    }
}
