//! Bodies of loops: graphs of their own inside of the model's graph. What a body uses of the graphs around it becomes an input
//! of the body; constants are copied into it.

use crate::builder::Builder;
use indexmap::IndexMap;
use mlc_ir::Value;

/// A body that is being imported.
struct Body {
    /// The graph around it.
    outer: Builder,
    /// The first region whose names belong to it.
    region: usize,
    /// Values of the graph around it that it uses, by what they are there.
    known: IndexMap<Value, Value>,
    /// Those of them that are inputs, in order.
    captured: Vec<Value>,
}

/// The bodies around what is being imported, outermost first.
#[derive(Default)]
pub(crate) struct Bodies(Vec<Body>);

impl Bodies {
    /// How many there are.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// How many there are around a region.
    pub fn around(&self, region: usize) -> usize {
        self.0.iter().filter(|body| body.region <= region).count()
    }

    /// Starts a body in the graph that was built so far.
    pub fn push(&mut self, outer: Builder, region: usize) {
        self.0.push(Body { outer, region, known: IndexMap::new(), captured: Vec::new() });
    }

    /// Ends the innermost body: the graph around it, and the values of it that the body takes.
    pub fn pop(&mut self) -> Option<(Builder, Vec<Value>)> {
        self.0.pop().map(|body| (body.outer, body.captured))
    }

    /// The builder of the graph at a depth; `None` for the innermost one, which isn't held here.
    pub fn builder_at(&mut self, depth: usize) -> Option<&mut Builder> {
        self.0.get_mut(depth).map(|body| &mut body.outer)
    }

    /// What a value of the graph at a depth is in the innermost graph. `notes` are by graph, outermost first.
    pub fn captured<N: Clone>(
        &mut self,
        mut value: Value,
        depth: usize,
        innermost: &mut Builder,
        notes: &mut [IndexMap<Value, N>],
    ) -> Value {
        for depth in depth..self.0.len() {
            if let Some(&known) = self.0[depth].known.get(&value) {
                value = known;
                continue;
            }
            let graph = self.0[depth].outer.graph();
            let (name, ty) = (graph.node(value.node).name.clone(), graph.ty(value).clone());
            let constant = graph.constant(value).cloned();
            if constant.is_none() {
                self.0[depth].captured.push(value);
            }
            let inner = self.0.get_mut(depth + 1).map_or(&mut *innermost, |body| &mut body.outer);
            let inside = match constant {
                Some(constant) => inner.named_constant(&name, constant),
                None => inner.input(&name, ty),
            };
            self.0[depth].known.insert(value, inside);
            if let Some(note) = notes[depth].get(&value).cloned() {
                notes[depth + 1].insert(inside, note);
            }
            value = inside;
        }
        value
    }
}
