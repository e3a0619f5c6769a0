//! `parameters/<model>.params`: the arrays that the graph executor loads by name. Empty where constants are part of the code.

use crate::module::Module;
use mlc_ir::DType;
use mlc_runtime::params::{Array, ElementType, Named, write_list};
use std::borrow::Cow;
use std::io;

/// Writes the file.
pub(super) fn write(module: &Module, out: &mut dyn io::Write) -> io::Result<()> {
    let graph = module.graph.iter();
    let names = graph.clone().flat_map(|graph| {
        let parameters = graph.nodes.iter().filter(|node| !node.calls).skip(module.inputs.len());
        parameters.map(|node| node.name.as_str())
    });
    let constants = graph.flat_map(|graph| &graph.parameters).map(|&number| &module.constants[number].value);
    let arrays = names.zip(constants).map(|(name, value)| {
        let array = Array {
            element: element_type(value.ty().dtype),
            // Runtimes know no tensors of rank 0.
            shape: if value.ty().shape.is_empty() { vec![1] } else { value.ty().shape.to_vec() },
            data: Cow::Borrowed(value.bytes()),
        };
        Named { name: Cow::Borrowed(name), array }
    });
    write_list(&arrays.collect::<Vec<_>>(), out)
}

/// A data type in the codes of the format (Model Library Format, section 5.3).
pub(super) fn element_type(dtype: DType) -> ElementType {
    let (code, bits) = dtype.dlpack();
    ElementType::new(code, bits)
}
