//! A [`Model`] to a file of dialect 2024b, or 2026 where buffers are said to be external, which the former can't say.

mod nodes;
mod values;

use super::model::{Model, Operation, TensorIndex};
use nodes::{WrittenNode, single_nodes};
use std::io::{self, Write};
use values::{argument, tensor, text};

/// How a file looks. The data are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people: lines and indentation, as the format's own tools do by default.
    Pretty,
    /// Without white space.
    Compact,
}

/// Writes a model. What is written is read back as an equal model, save that each operation has a node of its own.
///
/// # Errors
/// Those of `out`.
pub fn write(model: &Model, form: Form, out: &mut impl Write) -> io::Result<()> {
    let is_external = model.buffers.iter().any(|buffer| buffer.is_external);
    let mut writer = Writer { out, model, pretty: form == Form::Pretty, is_external };
    writer.model()?;
    if form == Form::Pretty { writeln!(out) } else { Ok(()) }
}

struct Writer<'a, W> {
    out: &'a mut W,
    model: &'a Model,
    pretty: bool,
    /// Whether buffers say whether they are external.
    is_external: bool,
}

impl<W: Write> Writer<'_, W> {
    /// Starts a line.
    fn line(&mut self, depth: usize) -> io::Result<()> {
        if self.pretty { write!(self.out, "\n{:1$}", "", 2 * depth) } else { Ok(()) }
    }

    fn key(&mut self, depth: usize, key: &str) -> io::Result<()> {
        self.line(depth)?;
        text(self.out, key)?;
        self.out.write_all(if self.pretty { b": " } else { b":" })
    }

    /// A member with a short value, and what comes behind it.
    fn member(&mut self, depth: usize, key: &str, value: &str, behind: &str) -> io::Result<()> {
        self.key(depth, key)?;
        write!(self.out, "{value}{behind}")
    }

    fn model(&mut self) -> io::Result<()> {
        let model = self.model;
        write!(self.out, "{{")?;
        self.member(1, "Rank", &model.rank.to_string(), ",")?;
        self.member(1, "WorldSize", &model.world_size.to_string(), ",")?;
        let nodes = single_nodes(model);
        self.list(1, "Nodes", &nodes, Self::node)?;
        self.line(0)?;
        write!(self.out, "}}")
    }

    /// A list with each element on a line of its own.
    fn list<T>(
        &mut self,
        depth: usize,
        key: &str,
        elements: &[T],
        write_one: fn(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.key(depth, key)?;
        write!(self.out, "[")?;
        for (position, element) in elements.iter().enumerate() {
            write!(self.out, "{}", if position == 0 { "" } else { "," })?;
            self.line(depth + 1)?;
            write_one(self, element)?;
        }
        if !elements.is_empty() {
            self.line(depth)?;
        }
        write!(self.out, "]")
    }

    fn node(&mut self, node: &WrittenNode<'_>) -> io::Result<()> {
        let numbers = |ids: &[u32]| format!("[{}]", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
        write!(self.out, "{{")?;
        self.member(3, "Id", &node.id.to_string(), ",")?;
        self.member(3, "ProducerNodeIds", &numbers(&node.producers), ",")?;
        self.member(3, "ConsumerNodeIds", &numbers(&node.consumers), ",")?;
        self.key(3, "Op")?;
        self.operation(node.operation)?;
        self.line(2)?;
        write!(self.out, "}}")
    }

    fn operation(&mut self, operation: &Operation) -> io::Result<()> {
        write!(self.out, "{{")?;
        for (key, value) in [("Type", &operation.kind), ("Name", &operation.name)] {
            self.key(4, key)?;
            text(self.out, value)?;
            write!(self.out, ",")?;
        }
        self.member(4, "IsVirtual", &operation.is_virtual.to_string(), ",")?;
        for (key, tensors) in [
            ("ReadTensors", &operation.reads),
            ("WriteTensors", &operation.writes),
            ("ResultTensors", &operation.results),
        ] {
            self.list(4, key, tensors, Self::tensor)?;
            write!(self.out, ",")?;
        }
        self.key(4, "Args")?;
        write!(self.out, "{{")?;
        for (position, (name, value)) in operation.arguments.iter().enumerate() {
            write!(self.out, "{}", if position == 0 { "" } else { "," })?;
            self.key(5, name)?;
            argument(self.out, self.model, value, self.is_external)?;
        }
        if !operation.arguments.is_empty() {
            self.line(4)?;
        }
        write!(self.out, "}}")?;
        self.line(3)?;
        write!(self.out, "}}")
    }

    fn tensor(&mut self, index: &TensorIndex) -> io::Result<()> {
        tensor(self.out, self.model, *index, self.is_external)
    }
}
