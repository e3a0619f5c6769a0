//! Bodies of loops: graphs of their own inside of the model's graph. What a body uses of the graphs around it becomes an input
//! of the body; constants are copied into it.

use super::{Importer, Item};
use indexmap::IndexMap;
use mlc_import::Builder;
use mlc_ir::Value;

/// A body that is being imported.
pub(super) struct Body {
    /// The graph around it.
    outer: Builder,
    /// The first scope whose names belong to it.
    scope: usize,
    /// Values of the graph around it that it uses, by what they are in the body.
    known: IndexMap<Value, Value>,
    /// Those of them that are inputs, in order.
    captured: Vec<Value>,
}

impl Importer<'_> {
    /// Starts a body: from now on the importer's builder is the body's, and scopes are.
    pub(super) fn begin_body(&mut self, builder: Builder) {
        let outer = std::mem::replace(&mut self.builder, builder);
        let scope = self.scopes.len();
        self.bodies.push(Body { outer, scope, known: IndexMap::new(), captured: Vec::new() });
        self.packed.push(IndexMap::new());
    }

    /// Ends a body. Gives its builder and the values that became inputs behind those it had; `None` when there is no body.
    pub(super) fn end_body(&mut self) -> Option<(Builder, Vec<Value>)> {
        let body = self.bodies.pop()?;
        self.packed.pop();
        Some((std::mem::replace(&mut self.builder, body.outer), body.captured))
    }

    /// How many bodies a scope is in.
    pub(super) fn depth_of(&self, scope: usize) -> usize {
        self.bodies.iter().filter(|body| body.scope <= scope).count()
    }

    /// The builder of the graph at a depth.
    pub(super) fn builder_at(&mut self, depth: usize) -> &mut Builder {
        match self.bodies.get_mut(depth) {
            Some(body) => &mut body.outer,
            None => &mut self.builder,
        }
    }

    /// What an item of a graph around the body is inside of it.
    pub(super) fn seen_inside(&mut self, item: Item, depth: usize) -> Item {
        match item {
            Item::Tensor(value) => Item::Tensor(self.captured(value, depth)),
            Item::Sequence(values) => {
                Item::Sequence(values.into_iter().map(|value| self.captured(value, depth)).collect())
            }
            other => other,
        }
    }

    fn captured(&mut self, mut value: Value, depth: usize) -> Value {
        for depth in depth..self.bodies.len() {
            if let Some(&known) = self.bodies[depth].known.get(&value) {
                value = known;
                continue;
            }
            let graph = self.bodies[depth].outer.graph();
            let (name, ty) = (graph.node(value.node).name.clone(), graph.ty(value).clone());
            let constant = graph.constant(value).cloned();
            let body = &mut self.bodies[depth];
            if constant.is_none() {
                body.captured.push(value);
            }
            let inner = self.builder_at(depth + 1);
            let inside = match constant {
                Some(constant) => inner.named_constant(&name, constant),
                None => inner.input(&name, ty),
            };
            self.bodies[depth].known.insert(value, inside);
            if let Some(&bits) = self.packed[depth].get(&value) {
                self.packed[depth + 1].insert(inside, bits);
            }
            value = inside;
        }
        value
    }
}
