//! Inputs and outputs of the model.

use super::complex::{from_pairs, to_pairs};
use super::item::{Item, complex_dtype, dtype_of};
use super::{Importer, arithmetic, place};
use crate::model::{Dimension, OperandId, Operator};
use mlc_import::Fault;
use mlc_import::{ImportOptions, unknown_dimension};
use mlc_ir::{Code, DType, Diagnostic, Location, TensorType, Value};
use std::collections::BTreeSet;

impl<'m> Importer<'m> {
    /// Adds an input for each `pnnx.Input`.
    pub(super) fn import_inputs(&mut self, options: &ImportOptions) {
        let model = self.model;
        let mut used = Vec::new();
        let inputs = model.operators.iter().filter(|operator| operator.kind == "pnnx.Input");
        for (index, operator) in inputs.enumerate() {
            let Some(&operand) = operator.outputs.first() else { continue };
            let names = [operator.name.clone(), model.operand(operand).name.clone(), index.to_string()];
            let key = names.iter().find(|name| options.input_shapes.contains_key(*name));
            let given = key.and_then(|key| options.input_shapes.get(key));
            used.extend(key.cloned());
            match self.input_type(operator, operand, given) {
                Ok(ty) => {
                    self.builder.begin(&operator.name);
                    let value = self.builder.input(&operator.name, ty);
                    match self.input_item(operand, value) {
                        Ok(item) => self.items[operand.index()] = item,
                        Err(fault) => self.report(operator, fault),
                    }
                }
                Err(fault) => self.report(operator, fault),
            }
        }
        self.check_dimensions(options);
        for name in options.input_shapes.keys().filter(|name| !used.contains(name)) {
            let message = format!("a shape is given for the input `{name}`, which the model doesn't have");
            let inputs = model.operators.iter().filter(|operator| operator.kind == "pnnx.Input");
            let names: Vec<&str> = inputs.map(|operator| operator.name.as_str()).collect();
            let diagnostic = Diagnostic::error(Code::OptionMismatch, Location::default(), message);
            self.findings.push(diagnostic.with_help(format!("the inputs are: {}", names.join(", "))));
        }
    }

    /// Refuses extents for dimensions that no operand has.
    fn check_dimensions(&mut self, options: &ImportOptions) {
        let types = self.model.operands.iter().filter_map(|operand| operand.ty.as_ref());
        let dimensions = types.flat_map(|ty| &ty.shape).filter_map(|dimension| match dimension {
            Dimension::Symbol(name) => Some(name.as_str()),
            _ => None,
        });
        let known: BTreeSet<&str> = dimensions.collect();
        for name in options.dimensions.keys().filter(|name| !known.contains(name.as_str())) {
            self.findings.push(unknown_dimension(name, &known));
        }
    }

    fn input_type(
        &mut self,
        operator: &Operator,
        operand: OperandId,
        given: Option<&Vec<usize>>,
    ) -> Result<TensorType, Fault> {
        let Some(declared) = &self.model.operand(operand).ty else {
            let shape =
                given.ok_or_else(|| unknown_shape(operator, "the file doesn't say its shape", "1,3,224,224"))?;
            self.warn(operator, Code::InputShapeUnknown, "the file doesn't say the input's data type; f32 is assumed");
            return Ok(TensorType::new(DType::F32, shape));
        };
        let mut shape = match given {
            Some(given) => {
                self.check_given(&declared.shape, given).map_err(|reason| {
                    Fault::new(
                        Code::ShapeMismatch,
                        format!("shape {given:?} was given, but the file says {declared}{reason}"),
                    )
                    .with_help("extents that the file fixes can only be changed by exporting the model again")
                })?;
                given.clone()
            }
            None => {
                declared.shape.iter().map(|dimension| self.known_extent(dimension)).collect::<Option<_>>().ok_or_else(
                    || {
                        let example: Vec<String> = declared
                            .shape
                            .iter()
                            .map(|dimension| match dimension {
                                Dimension::Known(extent) => extent.to_string(),
                                _ => "1".into(),
                            })
                            .collect();
                        unknown_shape(operator, &format!("its shape {declared} is open"), &example.join(","))
                    },
                )?
            }
        };
        let dtype = match (dtype_of(declared.element_type), complex_dtype(declared.element_type)) {
            (Some(dtype), _) => dtype,
            (None, Some(dtype)) => {
                shape.push(2);
                self.warn(
                    operator,
                    Code::VariantUnsupported,
                    "the complex input has a last axis of real and imaginary part",
                );
                dtype
            }
            (None, None) => return Err(Fault::variant("the file doesn't know the input's data type")),
        };
        let ty = TensorType::new(dtype, shape);
        if ty.checked_bytes().is_none() {
            return Err(Fault::new(Code::NumberOutOfRange, format!("the input {ty} is too large")));
        }
        Ok(ty)
    }

    fn is_complex(&self, operand: OperandId) -> bool {
        let ty = self.model.operand(operand).ty.as_ref();
        ty.is_some_and(|ty| complex_dtype(ty.element_type).is_some())
    }

    fn input_item(&mut self, operand: OperandId, value: Value) -> Result<Item, Fault> {
        if self.is_complex(operand) { from_pairs(&mut self.builder, value) } else { Ok(Item::Tensor(value)) }
    }

    fn known_extent(&self, dimension: &Dimension) -> Option<usize> {
        match dimension {
            Dimension::Known(extent) => Some(*extent as usize),
            Dimension::Symbol(name) => self.symbols.get(name).copied(),
            Dimension::Unknown => None,
        }
    }

    fn check_given(&mut self, declared: &[Dimension], given: &[usize]) -> Result<(), String> {
        if declared.len() != given.len() {
            return Err(format!(", which has {} axes", declared.len()));
        }
        for (axis, (dimension, &extent)) in declared.iter().zip(given).enumerate() {
            let expected = match dimension {
                Dimension::Known(expected) => *expected as usize,
                Dimension::Unknown => extent,
                Dimension::Symbol(name) => *self.symbols.entry(name.clone()).or_insert(extent),
            };
            if expected != extent {
                return Err(format!(": axis {axis} must be {expected}"));
            }
        }
        Ok(())
    }

    /// Adds the outputs of every `pnnx.Output`; without one, the operands that nothing uses.
    pub(super) fn import_outputs(&mut self) {
        let model = self.model;
        let outputs: Vec<&Operator> =
            model.operators.iter().filter(|operator| operator.kind == "pnnx.Output").collect();
        let mut found: Vec<(&Operator, Value)> = Vec::new();
        let operands: Vec<OperandId> = if outputs.is_empty() {
            let unused = (0..model.operands.len() as u32).map(OperandId);
            unused.filter(|&operand| model.operand(operand).consumers.is_empty()).collect()
        } else {
            outputs.iter().flat_map(|operator| operator.inputs.iter().copied()).collect()
        };
        for operand in operands {
            self.collect_output(operand, &mut found);
        }
        if found.is_empty() && self.findings.iter().all(|finding| !finding.is_error()) {
            let message = "the model has no output that is a tensor";
            let location = outputs.first().map_or(Location::default(), |operator| place(operator));
            self.findings.push(Diagnostic::error(Code::NoOutput, location, message));
        }
        for (index, &(operator, value)) in found.iter().enumerate() {
            let single = found.iter().filter(|(other, _)| other.name == operator.name).count() == 1;
            let name = if single { operator.name.clone() } else { format!("output_{index}") };
            self.builder.output(&name, value);
        }
    }

    /// Flattens tuples and lists depth first, from left to right. A tuple's items keep the operators that made them.
    fn collect_output(&mut self, operand: OperandId, found: &mut Vec<(&'m Operator, Value)>) {
        let model = self.model;
        let mut pending = vec![operand];
        while let Some(operand) = pending.pop() {
            let producer = model.operator(model.operand(operand).producer);
            if matches!(producer.kind.as_str(), "prim::TupleConstruct" | "prim::ListConstruct") {
                pending.extend(producer.inputs.iter().rev());
                continue;
            }
            let mut items = vec![self.items[operand.index()].clone()];
            while let Some(item) = items.pop() {
                match item {
                    Item::List(inner) => items.extend(inner.into_iter().rev()),
                    Item::None => self.warn(producer, Code::Unused, "an output is None and left out"),
                    Item::Unknown => {}
                    Item::Tensor(value) => found.push((producer, value)),
                    item => match self.number_output(producer, &item) {
                        Ok(value) => found.push((producer, value)),
                        Err(fault) => self.report(producer, fault),
                    },
                }
            }
        }
    }

    fn number_output(&mut self, producer: &Operator, item: &Item) -> Result<Value, Fault> {
        if let Item::Complex(re, im) = item {
            self.warn(
                producer,
                Code::VariantUnsupported,
                "the complex output has a last axis of real and imaginary part",
            );
            self.builder.begin(&producer.name);
            return to_pairs(&mut self.builder, *re, *im);
        }
        let dtype = arithmetic::common_dtype(&self.builder, &[item])
            .ok_or_else(|| Fault::variant(format!("an output of the model is {}", item.description())))?;
        self.builder.begin(&producer.name);
        arithmetic::operand(&mut self.builder, item, dtype)
    }
}

fn unknown_shape(operator: &Operator, reason: &str, example: &str) -> Fault {
    Fault::new(Code::InputShapeUnknown, format!("the input's shape must be given: {reason}"))
        .with_help(format!("give it, for example with --input-shape {}={example}", operator.name))
}
