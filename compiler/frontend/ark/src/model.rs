//! A model as its file has it, in the words of one dialect whatever the file's was, and with each tensor and each buffer once.

use indexmap::IndexMap;
use mlc_ir::{DType, Diagnostic, Location};
use mlc_json::shortened;
use smallvec::SmallVec;
use std::fmt;

/// The rank of a program that a file describes, as far as it is understood without knowing the operators.
///
/// Everything is as dialect [`Dialect::Model2024b`] has it. What the text repeats at each use is here once: operations hold
/// indices of [`Model::tensors`], tensors those of [`Model::buffers`].
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The dialect of the file that it was read from.
    pub dialect: Dialect,
    /// The number of this rank.
    pub rank: u32,
    /// How many ranks the program has.
    pub world_size: u32,
    /// In the order of execution.
    pub nodes: Vec<Node>,
    /// In the order of their first use in the file.
    pub tensors: Vec<Tensor>,
    /// In the order of their first use in the file.
    pub buffers: Vec<Buffer>,
    /// What the file holds that is strange, but does no harm.
    pub warnings: Vec<Diagnostic>,
}

/// A time's way to write model files. The files don't say theirs, their keys do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Spring 2024: padding as alignment units, no ranks.
    Seed,
    /// May to July 2024: several operations in a node.
    Model2024a,
    /// Since August 2024: the dialect that everything is normalised to.
    Model2024b,
    /// 2025 and 2026: external buffers, fused operators.
    Model2026,
    /// What the scheduler makes of a model: tasks.
    Plan,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Seed => "seed",
            Dialect::Model2024a => "2024a",
            Dialect::Model2024b => "2024b",
            Dialect::Model2026 => "2026",
            Dialect::Plan => "plan",
        })
    }
}

/// A step of a model: one operation, or in old compressed files several, which run in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its number, unique in the file.
    pub id: u32,
    /// Numbers of nodes that make what it uses.
    pub producers: Vec<u32>,
    /// Numbers of nodes that use what it makes: the reverse.
    pub consumers: Vec<u32>,
    /// At least one.
    pub operations: Vec<Operation>,
}

/// An operator at work.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The operator's type, such as `Matmul`.
    pub kind: Box<str>,
    /// The user's name for it: neither unique nor always there.
    pub name: Box<str>,
    /// Whether it computes nothing: a declaration, or a view.
    pub is_virtual: bool,
    /// What it reads.
    pub reads: Vec<TensorIndex>,
    /// What it writes, wholly.
    pub writes: Vec<TensorIndex>,
    /// New names of what it wrote, from now on.
    pub results: Vec<TensorIndex>,
    /// By name, in the file's order.
    pub arguments: IndexMap<Box<str>, Argument>,
    /// Where it stands.
    pub place: Place,
}

impl Operation {
    /// An argument's value.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.get(name)
    }

    /// Whether it introduces a tensor, and does nothing else.
    pub fn is_declaration(&self) -> bool {
        self.is_virtual && self.reads.is_empty()
    }

    /// The tensor that it is another window on the buffer of; what else a view reads only has to be computed before.
    pub fn view_of(&self) -> Option<TensorIndex> {
        if self.is_virtual { self.reads.first().copied() } else { None }
    }

    /// Its place in the file, with its type and its name.
    pub fn location(&self) -> Location {
        let location = Location { json_path: Some(self.place.to_string()), ..Location::default() };
        location.at_operator(shortened(&self.kind), shortened(&self.name))
    }
}

/// Where an operation stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The key of the list of nodes: `Nodes`, or `TaskInfos` of a plan.
    pub list: &'static str,
    /// Position of the node in it.
    pub node: u32,
    /// Position in the node's list, where it has one.
    pub operation: Option<u32>,
}

impl Place {
    /// Path of the node.
    pub fn node_path(&self) -> String {
        format!("$.{}[{}]", self.list, self.node)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.node_path())?;
        match self.operation {
            Some(operation) => write!(f, ".Ops[{operation}]"),
            None => f.write_str(".Op"),
        }
    }
}

/// An argument of an operation, with the type that the file gives it.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// `INT`
    Int(i32),
    /// `UINT32`
    Uint32(u32),
    /// `INT64`
    Int64(i64),
    /// `UINT64`
    Uint64(u64),
    /// `BOOL`
    Bool(bool),
    /// `FLOAT`, finite
    Float(f32),
    /// `DIMS`
    Dims(SmallVec<[i64; 4]>),
    /// `TENSOR`
    Tensor(TensorIndex),
    /// `OFFSET`: bytes from the start of a buffer
    Offset {
        /// The buffer's number in the file.
        buffer: u64,
        /// Bytes.
        value: u64,
    },
}

impl Argument {
    /// The name of its type.
    pub fn kind(&self) -> &'static str {
        match self {
            Argument::Int(_) => "INT",
            Argument::Uint32(_) => "UINT32",
            Argument::Int64(_) => "INT64",
            Argument::Uint64(_) => "UINT64",
            Argument::Bool(_) => "BOOL",
            Argument::Float(_) => "FLOAT",
            Argument::Dims(_) => "DIMS",
            Argument::Tensor(_) => "TENSOR",
            Argument::Offset { .. } => "OFFSET",
        }
    }
}

/// Number of a tensor in [`Model::tensors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorIndex(pub u32);

/// Number of a buffer in [`Model::buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferIndex(pub u32);

/// Extents of at most four axes.
pub type Extents = SmallVec<[usize; 4]>;

/// A window on a buffer: its geometry is in `window.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its number in the file.
    pub id: u64,
    /// Type of its elements.
    pub data_type: DataType,
    /// Extents of the value, one to four, none of them 0.
    pub shape: Extents,
    /// Extents of the array that it is a window of: the file's `Strides`, which aren't steps. As many as in `shape`.
    pub storage: Extents,
    /// Index of the first element in that array.
    pub offsets: Extents,
    /// Extents that kernels may touch, at least those of `shape`.
    pub padded_shape: Extents,
    /// The memory.
    pub buffer: BufferIndex,
}

/// A piece of memory, filled with zeros once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its number in the file.
    pub id: u64,
    /// The rank whose memory it is, `None` for this one: the file's -1, or its own rank.
    pub remote: Option<u32>,
    /// Whether the file says that it comes from outside; only the newest dialect does.
    pub is_external: bool,
    /// What is sent from it: the rank that gets it (`None`: this one, which only stand-ins have), and the message's tag.
    pub send_tags: Vec<Tag>,
    /// What is received into it, likewise.
    pub receive_tags: Vec<Tag>,
    /// Size: what the largest of its tensors needs.
    pub bytes: usize,
}

/// One message of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The other rank; in the list of a stand-in, `None` is the rank of this file.
    pub rank: Option<u32>,
    /// Tells messages between the same ranks apart.
    pub tag: i32,
}

/// Type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataType {
    /// IEEE single.
    Fp32,
    /// IEEE half.
    Fp16,
    /// The upper half of an IEEE single.
    Bf16,
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits.
    Uint32,
    /// Signed, 8 bits.
    Int8,
    /// Unsigned, 8 bits.
    Uint8,
    /// Memory without a type.
    Byte,
}

impl DataType {
    /// Every type, by the file's name.
    pub const ALL: [(&str, DataType); 8] = [
        ("FP32", DataType::Fp32),
        ("FP16", DataType::Fp16),
        ("BF16", DataType::Bf16),
        ("INT32", DataType::Int32),
        ("UINT32", DataType::Uint32),
        ("INT8", DataType::Int8),
        ("UINT8", DataType::Uint8),
        ("BYTE", DataType::Byte),
    ];

    /// The type of this name.
    pub fn parse(name: &str) -> Option<DataType> {
        DataType::ALL.iter().find(|(known, _)| *known == name).map(|(_, data_type)| *data_type)
    }

    /// The type of a graph's values.
    pub fn dtype(self) -> DType {
        match self {
            DataType::Fp32 => DType::F32,
            DataType::Fp16 => DType::F16,
            DataType::Bf16 => DType::Bf16,
            DataType::Int32 => DType::I32,
            DataType::Uint32 => DType::U32,
            DataType::Int8 => DType::I8,
            DataType::Uint8 | DataType::Byte => DType::U8,
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        self.dtype().size()
    }

    /// Whether it holds real numbers.
    pub fn is_float(self) -> bool {
        matches!(self, DataType::Fp32 | DataType::Fp16 | DataType::Bf16)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = DataType::ALL.iter().find(|(_, data_type)| data_type == self).map_or("NONE", |(name, _)| name);
        f.write_str(name)
    }
}

impl Model {
    /// A tensor.
    pub fn tensor(&self, index: TensorIndex) -> &Tensor {
        &self.tensors[index.0 as usize]
    }

    /// A buffer.
    pub fn buffer(&self, index: BufferIndex) -> &Buffer {
        &self.buffers[index.0 as usize]
    }

    /// The memory that a tensor is a window of.
    pub fn buffer_of(&self, index: TensorIndex) -> &Buffer {
        self.buffer(self.tensor(index).buffer)
    }

    /// All operations, in the order of execution.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.nodes.iter().flat_map(|node| &node.operations)
    }
}
