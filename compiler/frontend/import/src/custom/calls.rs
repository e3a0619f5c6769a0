//! Described operators in the graph: calls of their C, and views.

use super::arguments::{Argument, data_type};
use super::options::CustomOperators;
use super::typed::Typed;
use crate::builder::Builder;
use crate::fault::Fault;
use indexmap::IndexMap;
use mlc_descriptions::{Implementation, TensorDescription};
use mlc_ir::ops::{CFile, CallConvention, Extern, Instance};
use mlc_ir::{DType, TensorType, Value};
use std::sync::Arc;

/// The described operators of a model while it is imported.
#[derive(Default)]
pub(crate) struct CustomCalls {
    pub operators: Option<Arc<CustomOperators>>,
    /// Files of C so far, which calls share.
    files: IndexMap<String, CFile>,
    /// Calls so far that aren't pure: they keep their order.
    effects: usize,
}

impl CustomCalls {
    pub fn new(operators: Option<Arc<CustomOperators>>) -> Self {
        CustomCalls { operators, ..CustomCalls::default() }
    }

    /// Whether there is a description of an operator.
    pub fn knows(&self, domain: &str, kind: &str) -> bool {
        self.operators.as_ref().is_some_and(|operators| operators.knows(domain, kind))
    }

    /// Whether descriptions take the place of mlc's own operators.
    pub fn replace_own(&self) -> bool {
        self.operators.as_ref().is_some_and(|operators| operators.replace_own)
    }

    /// Puts an operator into the graph; gives its results in the description's order.
    pub fn build(
        &mut self,
        builder: &mut Builder,
        arguments: &[Argument],
        typed: &Typed<'_>,
    ) -> Result<Vec<Value>, Fault> {
        let Typed { description, instance, inference, offsets } = typed;
        let views = description.outputs.iter().map(|output| output.owner.filter(|_| description.is_view(output)));
        let views: Vec<Option<usize>> = views.collect();
        let mut computed = Vec::new();
        if views.iter().any(Option::is_none) {
            let implementation = description.implementation(instance, inference, offsets).map_err(Fault::variant)?;
            let operands: Vec<Value> = arguments.iter().map(|argument| argument.value).collect();
            let call = self.call(builder, implementation, &operands, &inference.outputs)?;
            computed = builder.apply_all(call, &operands)?;
        }
        let mut results = Vec::new();
        for (number, (view, ty)) in views.into_iter().zip(&inference.outputs).enumerate() {
            let result = match view {
                Some(owner) => window(builder, &arguments[owner], ty, offsets[number])?,
                None => computed[number],
            };
            let is_truth = data_type(ty.element) == Some(DType::Bool);
            results.push(if is_truth { builder.cast(result, DType::Bool)? } else { result });
        }
        Ok(results)
    }

    /// The call of an operator's C.
    fn call(
        &mut self,
        builder: &Builder,
        implementation: Implementation,
        operands: &[Value],
        results: &[TensorDescription],
    ) -> Result<Extern, Fault> {
        let sources = implementation.files.iter().map(|file| self.file(file)).collect();
        let operands = operands.iter().map(|&operand| builder.ty(operand).clone()).collect();
        let results = results.iter().map(tensor_type).collect::<Result<_, _>>()?;
        self.effects += usize::from(!implementation.pure);
        let Implementation { call, begin, end, structure, header, initialiser, overwrites, persistent, .. } =
            implementation;
        Ok(Extern {
            workspace: implementation.workspace,
            alignment: implementation.alignment,
            operations: implementation.operations,
            overwrites,
            persistent,
            effect: if implementation.pure { 0 } else { self.effects },
            begin,
            end,
            instance: Some(Instance { structure, header: header.into(), initialiser: initialiser.into() }),
            ..Extern::new(call, CallConvention::Unpacked, operands, results, sources)
        })
    }

    /// A file, shared with the calls before.
    fn file(&mut self, file: &mlc_descriptions::CFile) -> CFile {
        let made = || CFile::new(file.name.to_string(), file.text.as_bytes().to_vec());
        self.files.entry(file.name.to_string()).or_insert_with(made).clone()
    }
}

/// The type of an operator's result in the graph: truth values are integers there.
fn tensor_type(ty: &TensorDescription) -> Result<TensorType, Fault> {
    let dtype = data_type(ty.element).map(|dtype| if dtype == DType::Bool { DType::I32 } else { dtype });
    let dtype = dtype.ok_or_else(|| Fault::variant(format!("`{}` is of an unknown type", ty.name)))?;
    Ok(TensorType::new(dtype, ty.extents.iter().map(|&extent| extent as usize).collect::<Vec<_>>()))
}

/// A part of an operand, so many bytes from its start: all of its memory is dense.
fn window(builder: &mut Builder, owner: &Argument, view: &TensorDescription, offset: u64) -> Result<Value, Fault> {
    let ty = tensor_type(view)?;
    let size = ty.dtype.size();
    let start = offset as usize / size;
    if builder.dtype(owner.value) != ty.dtype || !(offset as usize).is_multiple_of(size) {
        let message = format!(
            "`{}` looks at the memory of `{}` as elements of another type, or between two elements: views don't do that",
            view.name, owner.ty.name
        );
        return Err(Fault::variant(message));
    }
    let (whole, part) = (builder.shape(owner.value), &ty.shape);
    let row: usize = whole[1..].iter().product();
    if whole[1..] == part[1..] && start.is_multiple_of(row) {
        return Ok(builder.slice_axis(owner.value, 0, start / row, part[0], 1)?);
    }
    let flat = builder.reshape(owner.value, &[whole.iter().product()])?;
    let part = builder.slice_axis(flat, 0, start, ty.shape.iter().product(), 1)?;
    Ok(builder.reshape(part, &ty.shape)?)
}
