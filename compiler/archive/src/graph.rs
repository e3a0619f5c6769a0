//! The graph of a graph executor: nodes that call functions, and the type and storage of each of their results.

use super::archive::{self, Archive};
use super::is_identifier;
use mlc_ir::{Code, DType, Diagnostic, Shape, TensorType};
use mlc_json::Json;

/// A graph, checked: every reference is to an earlier node, every table has an element for each entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Nodes in the order in which they run.
    pub nodes: Vec<Node>,
    /// The entries, which are the results of all nodes, in order.
    pub entries: Vec<Entry>,
    /// The results of the graph: numbers of entries.
    pub heads: Vec<usize>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, of no meaning but for inputs and parameters.
    pub name: String,
    /// What it calls; `None` for an input or a parameter.
    pub call: Option<Call>,
    /// Numbers of the entries that it reads.
    pub inputs: Vec<usize>,
    /// Number of its first result.
    pub first: usize,
    /// How many results it has.
    pub results: usize,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// C symbol, or one of [`Call::NOP`] and [`Call::COPY`].
    pub function: String,
    /// Whether tensors are passed with one dimension.
    pub flatten: bool,
}

impl Call {
    /// The name that stands for a reshape in place.
    pub const NOP: &str = "__nop";
    /// The name that stands for a copy between devices.
    pub const COPY: &str = "__copy";

    /// Whether no function is called: the result is the operand in another shape.
    pub fn is_view(&self) -> bool {
        self.function == Call::NOP || self.function == Call::COPY
    }
}

/// A tensor of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its type.
    pub ty: TensorType,
    /// The block of memory that holds it.
    pub storage_id: usize,
}

impl Graph {
    /// Reads a graph of an archive.
    ///
    /// # Errors
    /// When the file is missing or damaged, or breaks the rules of graphs; with the place.
    pub fn read(archive: &Archive, path: &str) -> Result<Graph, Diagnostic> {
        let value = archive.json(path)?;
        Graph::of_json(&archive::root(path, &value))
    }

    /// Numbers of the nodes without a call.
    pub fn arguments(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(|&node| self.nodes[node].call.is_none())
    }

    fn of_json(root: &Json) -> Result<Graph, Diagnostic> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut count = 0;
        for item in root.get("nodes")?.list()? {
            let node = Node::read(&item, &nodes, count)?;
            count += node.results;
            nodes.push(node);
        }
        check_row_pointers(&root.get("node_row_ptr")?, &nodes, count)?;
        check_arguments(&root.get("arg_nodes")?, &nodes)?;
        let heads = root.get("heads")?;
        let heads = heads.list()?.iter().map(|head| reference(head, &nodes)).collect::<Result<_, _>>()?;
        Ok(Graph { entries: entries(&root.get("attrs")?, count)?, nodes, heads })
    }
}

/// The most results of a node.
const MOST_RESULTS: usize = 1 << 16;

impl Node {
    /// Reads a node that comes after others, which have `first` results.
    fn read(item: &Json, earlier: &[Node], first: usize) -> Result<Node, Diagnostic> {
        let name = item.get("name")?.text()?.to_owned();
        let inputs = item.find("inputs")?.map_or(Ok(Vec::new()), |inputs| inputs.list())?;
        let op = item.get("op")?;
        match op.text()? {
            "null" => match inputs.first() {
                Some(input) => Err(input.fault(Code::OperandCount, format!("'{name}' has no operator, so no inputs"))),
                None => Ok(Node { name, call: None, inputs: Vec::new(), first, results: 1 }),
            },
            "tvm_op" => {
                let attributes = item.get("attrs")?;
                let (call, results) = Call::read(&attributes, inputs.len())?;
                let inputs = inputs.iter().map(|input| reference(input, earlier)).collect::<Result<_, _>>()?;
                Ok(Node { name, call: Some(call), inputs, first, results })
            }
            other => Err(op.fault(Code::OperatorUnsupported, format!("the kind of node {other:?} isn't supported"))),
        }
    }
}

impl Call {
    fn read(attributes: &Json, inputs: usize) -> Result<(Call, usize), Diagnostic> {
        // All of these are numbers in strings.
        let number = |key: &str| {
            let item = attributes.get(key)?;
            let text = item.text()?;
            let value = text.parse::<usize>().ok().filter(|&value| value <= MOST_RESULTS);
            value.ok_or_else(|| item.fault(Code::NumberOutOfRange, format!("{text:?} isn't a number of tensors")))
        };
        let function = attributes.get("func_name")?;
        let name = function.text()?;
        if !is_identifier(name) {
            return Err(function.fault(Code::Syntax, format!("{name:?} isn't a C identifier")));
        }
        if number("num_inputs")? != inputs {
            let message = format!("the node has {inputs} inputs, {} are declared", number("num_inputs")?);
            return Err(attributes.fault(Code::CountMismatch, message));
        }
        let results = number("num_outputs")?;
        let call = Call { function: name.to_owned(), flatten: number("flatten_data")? != 0 };
        if call.is_view() && (inputs, results) != (1, 1) {
            let message = format!("{name} has one input and one output, {inputs} and {results} are given");
            return Err(attributes.fault(Code::OperandCount, message));
        }
        Ok((call, results))
    }
}

/// The number of the entry that `[node, output, version]` or `[node, output]` names.
fn reference(item: &Json, nodes: &[Node]) -> Result<usize, Diagnostic> {
    let numbers = item.counts()?;
    let (&[node, output] | &[node, output, _]) = numbers.as_slice() else {
        let message = format!("two or three numbers expected, {} found", numbers.len());
        return Err(item.fault(Code::Syntax, message));
    };
    let Some(source) = nodes.get(node) else {
        let message = format!("node {node} doesn't come before its use; {} nodes do", nodes.len());
        return Err(item.fault(Code::UndefinedValue, message));
    };
    if output >= source.results {
        let message = format!("output {output} of node {node} is used, it has {}", source.results);
        return Err(item.fault(Code::UndefinedValue, message));
    }
    Ok(source.first + output)
}

fn check_row_pointers(item: &Json, nodes: &[Node], count: usize) -> Result<(), Diagnostic> {
    let found = item.counts()?;
    let expected = nodes.iter().map(|node| node.first).chain([count]);
    if !expected.eq(found.iter().copied()) {
        let message = "the numbers of the nodes' first outputs don't follow from their numbers of outputs";
        return Err(item.fault(Code::CountMismatch, message));
    }
    Ok(())
}

fn check_arguments(item: &Json, nodes: &[Node]) -> Result<(), Diagnostic> {
    let found = item.counts()?;
    let expected = nodes.iter().enumerate().filter(|(_, node)| node.call.is_none()).map(|(number, _)| number);
    if !expected.eq(found.iter().copied()) {
        return Err(item.fault(Code::CountMismatch, "these aren't the numbers of the nodes without an operator"));
    }
    let mut names: Vec<&str> = found.iter().map(|&node| nodes[node].name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(item.fault(Code::DuplicateDefinition, format!("two inputs have the name '{}'", pair[0])));
    }
    Ok(())
}

fn entries(attributes: &Json, count: usize) -> Result<Vec<Entry>, Diagnostic> {
    let dtypes = table(attributes, "dltype", "list_str", count)?;
    let storage_ids = table(attributes, "storage_id", "list_int", count)?;
    let shapes = table(attributes, "shape", "list_shape", count)?;
    if attributes.find("device_index")?.is_some() {
        for device in table(attributes, "device_index", "list_int", count)? {
            if device.count()? != 1 {
                let message = format!("tensors on devices of kind {} aren't supported", device.count()?);
                return Err(device.fault(Code::VariantUnsupported, message));
            }
        }
    }
    if attributes.find("storage_scope")?.is_some() {
        for scope in table(attributes, "storage_scope", "list_str", count)? {
            if !matches!(scope.text()?, "" | "global") {
                let message = format!("the storage scope {:?} isn't supported", scope.text()?);
                return Err(scope.fault(Code::VariantUnsupported, message));
            }
        }
    }
    let entry = |((dtype_text, storage_id), shape): ((&Json, &Json), &Json)| {
        let text = dtype_text.text()?;
        let dtype = DType::parse_long_name(text).ok_or_else(|| {
            dtype_text.fault(Code::VariantUnsupported, format!("the data type {text:?} isn't supported"))
        })?;
        let ty = TensorType::new(dtype, shape.counts()?.into_iter().collect::<Shape>());
        // Offsets are 64-bit and signed in C.
        if ty.checked_bytes().is_none_or(|bytes| bytes > i64::MAX as usize) {
            return Err(shape.fault(Code::NumberOutOfRange, format!("a tensor {ty} is too large")));
        }
        Ok(Entry { ty, storage_id: storage_id.count()? })
    };
    dtypes.iter().zip(&storage_ids).zip(&shapes).map(entry).collect()
}

/// The elements of a table, which has one for each entry.
fn table<'a>(attributes: &Json<'a>, key: &str, kind: &str, count: usize) -> Result<Vec<Json<'a>>, Diagnostic> {
    let item = attributes.get(key)?;
    let parts = item.list()?;
    let [found, data] = parts.as_slice() else {
        return Err(item.fault(Code::Syntax, format!("a kind and a list expected, {} elements found", parts.len())));
    };
    if found.text()? != kind {
        return Err(found.fault(Code::Syntax, format!("the kind is {:?}, {kind:?} expected", found.text()?)));
    }
    let elements = data.list()?;
    if elements.len() != count {
        let message = format!("{} elements for {count} outputs of nodes", elements.len());
        return Err(data.fault(Code::CountMismatch, message));
    }
    Ok(elements)
}
