//! [`Onnx`]: what the format brings to the import engine.

use crate::external::ExternalData;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto};
use crate::read::{self, Model, Opsets, normalized_domain};
use crate::tensor;
use indexmap::IndexMap;
use mlc_import::{AttributeValue, Attributes, Constant, Description, Fault, Format, Operand};
use mlc_ir::{Code, DType, Location};
use std::rc::Rc;

/// The format.
pub struct Onnx;

/// A model, and the files beside it.
#[derive(Clone, Copy)]
pub struct Source<'m> {
    pub model: &'m Model,
    pub external: &'m dyn ExternalData,
}

/// A graph, or the body of one of the model's functions.
#[derive(Clone, Copy)]
pub enum Region<'m> {
    Graph(&'m GraphProto),
    Function(&'m FunctionProto),
}

/// A constant of a graph, read when it is used.
#[derive(Clone, Copy)]
enum Initializer<'m> {
    Dense(&'m TensorProto),
    Sparse(&'m SparseTensorProto),
}

/// What is known in a graph or a function besides values.
#[derive(Clone)]
pub struct Scope<'m> {
    opsets: Rc<Opsets>,
    initializers: Rc<IndexMap<&'m str, Initializer<'m>>>,
    /// The attributes of the call, inside of a function.
    call: Option<Rc<IndexMap<&'m str, &'m AttributeProto>>>,
}

impl<'m> Scope<'m> {
    pub fn of_model(model: &'m Model) -> Self {
        Scope { opsets: Rc::new(model.opsets.clone()), initializers: initializers(&model.graph), call: None }
    }

    /// Whether the graph has a constant of that name.
    pub fn has_initializer(&self, name: &str) -> bool {
        self.initializers.contains_key(name)
    }
}

fn initializers(graph: &GraphProto) -> Rc<IndexMap<&str, Initializer<'_>>> {
    let dense = graph.initializer.iter().map(|tensor| (tensor.name.as_str(), Initializer::Dense(tensor)));
    let sparse = graph
        .sparse_initializer
        .iter()
        .filter_map(|tensor| Some((tensor.values.as_ref()?.name.as_str(), Initializer::Sparse(tensor))));
    Rc::new(dense.chain(sparse).collect())
}

/// A name; an empty one stands for nothing.
fn named(name: &str) -> Option<&str> {
    (!name.is_empty()).then_some(name)
}

fn function<'m>(model: &'m Model, node: &NodeProto) -> Option<&'m FunctionProto> {
    model.functions.get(&(normalized_domain(&node.domain).to_owned(), node.op_type.clone()))
}

impl Format for Onnx {
    const NAME: &'static str = "onnx";
    const HELP_FOR_OLD_VERSION: &'static str =
        "convert the model to a newer opset, for example with onnx.version_converter";
    const LEADING_DIMENSION_IS_BATCH: bool = true;
    const TAKES_INPUT_VALUES: bool = true;

    type Model<'m> = Source<'m>;
    type Operator<'m> = &'m NodeProto;
    type Name<'m> = &'m str;
    type Item = Operand;
    type Attribute<'m> = &'m AttributeProto;
    type Region<'m> = Region<'m>;
    type Scope<'m> = Scope<'m>;
    /// Bits of an element, for values that hold integers narrower than a byte.
    type Note = usize;

    fn describe(node: Self::Operator<'_>) -> Description<'_> {
        let own = match (node.name.as_str(), node.output.iter().find(|output| !output.is_empty())) {
            ("", Some(output)) => output.as_str(),
            ("", None) => node.op_type.as_str(),
            (name, _) => name,
        };
        let domain = normalized_domain(&node.domain);
        Description { kind: &node.op_type, domain, name: own.to_owned(), location: Location::default() }
    }

    fn version<'m>(scope: &Self::Scope<'m>, node: Self::Operator<'m>) -> Result<Option<i64>, Fault> {
        let domain = normalized_domain(&node.domain);
        scope.opsets.get(domain).copied().map(Some).ok_or_else(|| {
            let set = if domain.is_empty() { "standard operators" } else { domain };
            let message = format!("the model doesn't say which version of the {set} it uses");
            Fault::new(Code::UndefinedValue, message)
        })
    }

    fn operands<'m>(_source: Self::Model<'m>, node: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        node.input.iter().map(|name| named(name)).collect()
    }

    fn results<'m>(_source: Self::Model<'m>, node: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        node.output.iter().map(|name| named(name)).collect()
    }

    /// In a function, attributes that stand for the call's are replaced by them.
    fn attributes<'m>(scope: &Self::Scope<'m>, node: Self::Operator<'m>) -> Result<Attributes<'m, Self>, Fault> {
        let mut attributes = IndexMap::new();
        for attribute in &node.attribute {
            let name = attribute.name.as_str();
            let value = match (attribute.ref_attr_name.as_str(), &scope.call) {
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

    fn constant<'m>(
        source: Self::Model<'m>,
        scope: &Self::Scope<'m>,
        name: Self::Name<'m>,
    ) -> Option<Result<Constant<Self>, Fault>> {
        let read = |initializer: Initializer<'m>| match initializer {
            Initializer::Dense(proto) => {
                let bits = tensor::packed_bits(proto.data_type.into()).unwrap_or_default();
                Ok((tensor::to_attribute(proto, source.external)?, bits))
            }
            Initializer::Sparse(proto) => Ok((tensor::sparse_to_attribute(proto, source.external)?, None)),
        };
        scope.initializers.get(name).copied().map(read)
    }

    fn regions(node: Self::Operator<'_>) -> Vec<Self::Region<'_>> {
        node.graphs().map(Region::Graph).collect()
    }

    fn region_name<'m>(region: Self::Region<'m>) -> &'m str {
        match region {
            Region::Graph(graph) => &graph.name,
            Region::Function(function) => &function.name,
        }
    }

    fn operators(region: Self::Region<'_>) -> Vec<Self::Operator<'_>> {
        match region {
            Region::Graph(graph) => graph.node.iter().collect(),
            Region::Function(function) => function.node.iter().collect(),
        }
    }

    fn region_inputs(region: Self::Region<'_>) -> Vec<Self::Name<'_>> {
        match region {
            Region::Graph(graph) => graph.input.iter().map(|input| input.name.as_str()).collect(),
            Region::Function(function) => function.input.iter().map(String::as_str).collect(),
        }
    }

    fn region_outputs(region: Self::Region<'_>) -> Vec<Self::Name<'_>> {
        match region {
            Region::Graph(graph) => graph.output.iter().map(|output| output.name.as_str()).collect(),
            Region::Function(function) => function.output.iter().map(String::as_str).collect(),
        }
    }

    fn inner_scope<'m>(outer: &Self::Scope<'m>, region: Self::Region<'m>) -> Self::Scope<'m> {
        let initializers = match region {
            Region::Graph(graph) => initializers(graph),
            Region::Function(_) => Rc::default(),
        };
        Scope { initializers, ..outer.clone() }
    }

    fn function<'m>(
        source: Self::Model<'m>,
        scope: &Self::Scope<'m>,
        node: Self::Operator<'m>,
    ) -> Result<Option<(Self::Region<'m>, Self::Scope<'m>)>, Fault> {
        let Some(function) = function(source.model, node) else { return Ok(None) };
        let mut call: IndexMap<&str, &AttributeProto> =
            function.attribute_proto.iter().map(|attribute| (attribute.name.as_str(), attribute)).collect();
        call.extend(Self::attributes(scope, node)?);
        let opsets = read::opsets(&function.opset_import).map_err(|errors| {
            let message = errors.first().map_or(String::new(), |error| error.message.clone());
            Fault::variant(format!("function `{}`: {message}", function.name))
        })?;
        // Old writers leave the imports of functions out; the model's count then.
        let opsets = if opsets.is_empty() { Rc::clone(&scope.opsets) } else { Rc::new(opsets) };
        let scope = Scope { opsets, initializers: Rc::default(), call: Some(Rc::new(call)) };
        Ok(Some((Region::Function(function), scope)))
    }

    fn calls_function<'m>(source: Self::Model<'m>, node: Self::Operator<'m>) -> bool {
        function(source.model, node).is_some()
    }

    fn help_for_unknown(_kind: &str) -> String {
        "'mlc ops --format onnx' lists what is supported; a function of that name in the model would be inlined".into()
    }
}

/// Whether an attribute says that it is of a type, or says no type but has a value.
fn is(attribute: &AttributeProto, ty: i32, given: bool) -> bool {
    attribute.r#type == ty || (attribute.r#type == 0 && given)
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

impl<'m> AttributeValue for &'m AttributeProto {
    type Word = &'m str;

    fn description(&self) -> String {
        match self.r#type {
            1 => format!("the number {}", self.f.unwrap_or(0.0)),
            2 => format!("the whole number {}", self.i.unwrap_or(0)),
            3 => format!("the word `{}`", text(self.s.as_deref().unwrap_or_default()).unwrap_or("?")),
            4 => "a tensor".into(),
            5 => "a graph".into(),
            6 => format!("a list of {} numbers", self.floats.len()),
            7 => format!("a list of {} whole numbers", self.ints.len()),
            8 => format!("a list of {} words", self.strings.len()),
            11 => "a sparse tensor".into(),
            _ => "something else".into(),
        }
    }

    /// Zero is left out of the file by writers that follow proto3 strictly.
    fn int(&self) -> Option<i64> {
        self.i.or((self.r#type == 2).then_some(0))
    }

    /// The standard's attributes are floats: the double that the shortest decimal text stands for isn't needed.
    fn float(&self) -> Option<f64> {
        self.f.map(f64::from).or((self.r#type == 1).then_some(0.0))
    }

    fn ints(&self) -> Option<Vec<i64>> {
        is(self, 7, !self.ints.is_empty()).then(|| self.ints.clone())
    }

    fn floats(&self) -> Option<Vec<f64>> {
        is(self, 6, !self.floats.is_empty()).then(|| self.floats.iter().copied().map(f64::from).collect())
    }

    fn word(&self) -> Option<&'m str> {
        match &self.s {
            Some(bytes) => text(bytes),
            None => (self.r#type == 3).then_some(""),
        }
    }

    fn words(&self) -> Option<Vec<String>> {
        let words = || self.strings.iter().map(|bytes| text(bytes).map(str::to_owned)).collect::<Option<_>>();
        is(self, 8, !self.strings.is_empty()).then(words).flatten()
    }

    /// A data type by its number in the standard.
    fn dtype(&self) -> Option<Result<DType, Fault>> {
        self.int().map(tensor::dtype_of)
    }
}
