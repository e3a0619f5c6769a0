//! [`write()`]: a model as a file, nodes in their order and parameters by name, so that the same model gives the same bytes.

use crate::model::{Model, NodeId};
use crate::read::{CODE, HEADER};
use crate::tensor::{Field, Tensor};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes a model. What [`read`](crate::read()) makes of the file equals the model, when its nodes are in topological order.
///
/// # Errors
/// When the output refuses bytes, or the model has more of something than the format can count.
pub fn write(model: &Model, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0; 4])?;
    out.write_all(&CODE)?;
    out.write_all(&[0; HEADER - 8])?;
    write_nodes(out, &model.inputs)?;
    write_nodes(out, &model.outputs)?;
    write_count(out, model.nodes.len())?;
    for node in &model.nodes {
        let own =
            [("#name", &node.name), ("#op", &node.kind)].map(|(key, text)| (key, Tensor::from(Field::of_text(text))));
        let mut parameters: BTreeMap<&str, &Tensor> = own.iter().map(|(key, text)| (*key, text)).collect();
        parameters.extend(node.parameters.iter().map(|(key, value)| (key.as_str(), value)));
        write_count(out, parameters.len())?;
        for (key, value) in parameters {
            write_count(out, key.len())?;
            out.write_all(key.as_bytes())?;
            write_tensor(out, value)?;
        }
        write_nodes(out, &node.inputs)?;
    }
    out.flush()
}

fn write_count(out: &mut impl Write, count: usize) -> io::Result<()> {
    let count = i32::try_from(count).map_err(|_| io::Error::other(format!("the format can't count to {count}")))?;
    out.write_all(&count.to_le_bytes())
}

fn write_nodes(out: &mut impl Write, nodes: &[NodeId]) -> io::Result<()> {
    write_count(out, nodes.len())?;
    nodes.iter().try_for_each(|node| write_count(out, node.index()))
}

fn write_tensor(out: &mut impl Write, tensor: &Tensor) -> io::Result<()> {
    write_count(out, tensor.fields.len())?;
    for field in &tensor.fields {
        out.write_all(&[field.element_type.code()])?;
        write_count(out, field.shape.len())?;
        field.shape.iter().try_for_each(|&extent| write_count(out, extent))?;
        out.write_all(&field.data)?;
    }
    Ok(())
}
