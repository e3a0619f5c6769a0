//! What names mean: a scope for the model, one for each graph of a control-flow operator and each call of a function that is
//! being imported.

use super::{Importer, Item};
use crate::proto::{AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto};
use crate::read::{Model, Opsets};
use crate::tensor;
use indexmap::IndexMap;
use mlc_import::Fault;
use mlc_ir::{Code, Value};
use std::rc::Rc;

/// Attributes by name.
pub(super) type Attributes<'a> = IndexMap<&'a str, &'a AttributeProto>;

/// A constant of a graph, read when it is used.
#[derive(Debug, Clone, Copy)]
pub(super) enum Initializer<'a> {
    Dense(&'a TensorProto),
    Sparse(&'a SparseTensorProto),
}

/// The names of a graph or of a function.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    /// What is defined so far.
    pub items: IndexMap<&'a str, Item>,
    /// Constants that haven't been used yet.
    pub initializers: IndexMap<&'a str, Initializer<'a>>,
    pub opsets: Rc<Opsets>,
    /// Put before the names of operators.
    pub prefix: String,
    /// The attributes of the call, when it is a function's.
    pub attributes: Option<Attributes<'a>>,
}

impl<'a> Scope<'a> {
    pub fn new(opsets: Rc<Opsets>, prefix: String) -> Self {
        Scope { items: IndexMap::new(), initializers: IndexMap::new(), opsets, prefix, attributes: None }
    }

    pub fn of_model(model: &'a Model) -> Self {
        let mut scope = Scope::new(Rc::new(model.opsets.clone()), String::new());
        scope.add_graph(&model.graph);
        scope
    }

    /// Makes a graph's constants known.
    pub fn add_graph(&mut self, graph: &'a GraphProto) {
        let dense = graph.initializer.iter().map(|tensor| (tensor.name.as_str(), Initializer::Dense(tensor)));
        let sparse = graph.sparse_initializer.iter().filter_map(|tensor| {
            let name = tensor.values.as_ref()?.name.as_str();
            Some((name, Initializer::Sparse(tensor)))
        });
        self.initializers.extend(dense.chain(sparse));
    }
}

impl<'a> Importer<'a> {
    /// The innermost scope.
    pub(super) fn scope(&self) -> &Scope<'a> {
        &self.scopes[self.scopes.len() - 1]
    }

    pub(super) fn scope_mut(&mut self) -> &mut Scope<'a> {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// The scopes that the innermost one sees, itself first: graphs see what is around them, functions don't.
    fn visible(&self) -> impl Iterator<Item = usize> + use<> {
        let outermost = self.scopes.iter().rposition(|scope| scope.attributes.is_some()).unwrap_or(0);
        (outermost..self.scopes.len()).rev()
    }

    /// What a name stands for, seen from the innermost scope.
    pub(super) fn resolve(&mut self, name: &str) -> Result<Item, Fault> {
        if name.is_empty() {
            return Ok(Item::Absent);
        }
        for index in self.visible() {
            let depth = self.depth_of(index);
            if let Some(item) = self.scopes[index].items.get(name) {
                let item = item.clone();
                return Ok(self.seen_inside(item, depth));
            }
            if let Some((&key, &initializer)) = self.scopes[index].initializers.get_key_value(name) {
                let item = self.constant_of(key, initializer, depth)?;
                self.scopes[index].items.insert(key, item.clone());
                return Ok(self.seen_inside(item, depth));
            }
        }
        let message = format!("`{name}` is used, but nothing before defines it");
        Err(Fault::new(Code::UndefinedValue, message)
            .with_help("the operators must be in topological order; a cycle has none"))
    }

    /// The constant of an initialiser, in the graph at a depth.
    fn constant_of(&mut self, name: &str, initializer: Initializer<'a>, depth: usize) -> Result<Item, Fault> {
        let attribute = match initializer {
            Initializer::Dense(tensor) => tensor::to_attribute(tensor, self.external),
            Initializer::Sparse(tensor) => tensor::sparse_to_attribute(tensor, self.external),
        };
        let attribute = attribute
            .map_err(|fault| Fault { message: format!("the constant `{name}`: {}", fault.message), ..fault })?;
        let value = self.builder_at(depth).named_constant(name, attribute);
        if let Initializer::Dense(tensor) = initializer {
            self.note_packed(value, depth, tensor.data_type);
        }
        Ok(Item::Tensor(value))
    }

    /// Notes that a tensor of the graph at a depth holds integers narrower than a byte, when its element type says so.
    pub(super) fn note_packed(&mut self, value: Value, depth: usize, element_type: i32) {
        if let Ok(Some(bits)) = tensor::packed_bits(i64::from(element_type)) {
            self.packed[depth].insert(value, bits);
        }
    }

    /// Defines a name in the innermost scope.
    pub(super) fn define(&mut self, name: &'a str, item: Item) -> Result<(), Fault> {
        if self.scope_mut().items.insert(name, item).is_some() {
            return Err(Fault::new(Code::DuplicateDefinition, format!("`{name}` is defined twice")));
        }
        Ok(())
    }

    /// The attributes of an operator; in a function, those that stand for the call's are replaced by them.
    pub(super) fn attributes(&self, node: &'a NodeProto) -> Result<Attributes<'a>, Fault> {
        let call = self.scopes.iter().rev().find_map(|scope| scope.attributes.as_ref());
        let mut attributes = Attributes::new();
        for attribute in &node.attribute {
            let name = attribute.name.as_str();
            let value = match (attribute.ref_attr_name.as_str(), call) {
                ("", _) => Some(attribute),
                (reference, Some(call)) => call.get(reference).copied(),
                (reference, None) => {
                    let message = format!("attribute `{name}` refers to `{reference}` of a function, but is in none");
                    return Err(Fault::new(Code::UndefinedValue, message));
                }
            };
            let Some(value) = value else { continue };
            if attributes.insert(name, value).is_some() {
                return Err(Fault::new(Code::DuplicateDefinition, format!("attribute `{name}` is there twice")));
            }
        }
        Ok(attributes)
    }
}
