//! Arrays that the user gives for weights that a model's file leaves out: how they are made to fit, and which of them nothing takes.

use crate::fault::Fault;
use crate::format::Format;
use crate::importer::Importer;
use crate::options::{Bindings, Weight};
use indexmap::IndexSet;
use mlc_ir::ops::Cast;
use mlc_ir::{Attribute, Code, DType, Diagnostic, Location, Op, TensorType, folding};

impl Weight {
    /// The array as the model wants it. Leading extents of 1 don't count; bf16 may also come as `uint16` bits.
    ///
    /// # Errors
    /// When it has another shape, or another data type and isn't to be converted.
    pub fn fitted(&self, wanted: &TensorType, cast: bool) -> Result<Attribute, Fault> {
        let given = self.value.ty();
        let without_ones =
            |shape: &[usize]| shape.iter().copied().skip_while(|&extent| extent == 1).collect::<Vec<_>>();
        let same_shape = !self.has_shape || without_ones(&given.shape) == without_ones(&wanted.shape);
        if !same_shape || given.elements() != wanted.elements() {
            let message = format!("it is {given}, the model wants {wanted}");
            return Err(Fault::new(Code::ShapeMismatch, message));
        }
        let value = self.value.reshape(&wanted.shape)?;
        let is_bits = wanted.dtype == DType::Bf16 && given.dtype == DType::U16;
        if is_bits {
            return Ok(Attribute::new(wanted.clone(), value.bytes().clone())?);
        }
        if given.dtype == wanted.dtype {
            return Ok(value);
        }
        if !cast {
            return Err(Fault::new(Code::OptionMismatch, format!("it is {given}, the model wants {wanted}"))
                .with_help("--cast-weights converts the numbers of weights to the model's data types"));
        }
        let mut converted = folding::compute(&Op::from(Cast { dtype: wanted.dtype }), &[&value])?;
        converted.pop().ok_or_else(|| Fault::operands("the conversion gives no array"))
    }
}

impl<F: Format> Importer<'_, F> {
    /// Tells of arrays that nothing takes; `help` says where the model's own names are.
    pub fn report_unused_weights(&mut self, bindings: &Bindings, used: &IndexSet<&str>, help: &str) {
        for name in bindings.weights.keys().filter(|name| !used.contains(name.as_str())) {
            if bindings.inputs.contains(name) {
                continue;
            }
            let message = format!("the weight '{name}' is for nothing that the model has");
            let location = Location { node: Some(name.clone()), ..Location::default() };
            let finding = match bindings.require_all {
                true => Diagnostic::error(Code::OptionMismatch, location, message),
                false => Diagnostic::warning(Code::Unused, location, message),
            };
            self.findings.push(finding.with_help(help));
        }
    }
}
