//! The messages of ONNX's `onnx.proto3`, as far as compiling a model needs them. Field numbers are the standard's; fields
//! left out here are skipped while reading. Weights stay slices of the file.

use bytes::Bytes;
use prost::{Enumeration, Message};

/// A model file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the file format itself.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The tool that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Its version.
    #[prost(string, tag = "3")]
    pub producer_version: String,
    /// The network.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Versions of the operator sets.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// Functions that the model defines for itself.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
}

/// The version of one operator set.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Name of the set; empty for the standard operators.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// Its version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A graph, or the body of a control-flow operator.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// Operators in topological order.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// Name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants, and default values of inputs.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Constants that list their non-zero elements.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
}

/// An operator's application.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of the operands; empty for an absent one.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the results; empty for an unwanted one.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// Name; often empty.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Parameters.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The operator's set.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// A parameter of an operator.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    /// A whole number.
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    /// A text.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// A graph.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Numbers.
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    /// Whole numbers.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// Texts.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Tensors.
    #[prost(message, repeated, tag = "10")]
    pub tensors: Vec<TensorProto>,
    /// Graphs.
    #[prost(message, repeated, tag = "11")]
    pub graphs: Vec<GraphProto>,
    /// Which of the fields counts; 0 in very old files.
    #[prost(enumeration = "AttributeType", tag = "20")]
    pub r#type: i32,
    /// In a function: the function's attribute that gives the value.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
    /// A sparse tensor.
    #[prost(message, optional, tag = "22")]
    pub sparse_tensor: Option<SparseTensorProto>,
}

/// What an attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum AttributeType {
    /// Not said.
    Undefined = 0,
    /// A number.
    Float = 1,
    /// A whole number.
    Int = 2,
    /// A text.
    String = 3,
    /// A tensor.
    Tensor = 4,
    /// A graph.
    Graph = 5,
    /// Numbers.
    Floats = 6,
    /// Whole numbers.
    Ints = 7,
    /// Texts.
    Strings = 8,
    /// Tensors.
    Tensors = 9,
    /// Graphs.
    Graphs = 10,
    /// A sparse tensor.
    SparseTensor = 11,
}

/// A tensor's values.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Shape.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// Element type, by its number in the standard.
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Values of f32 (and complex) tensors.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Values of the narrow types, as integers or bit patterns.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Values of i64 tensors.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// Name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// The bytes, little-endian, row-major.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub raw_data: Option<Bytes>,
    /// Values of f64 tensors.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Values of u32 and u64 tensors.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Where the bytes are when they aren't in the file.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 1 when the bytes are in another file.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// A tensor by its non-zero elements.
#[derive(Clone, PartialEq, Message)]
pub struct SparseTensorProto {
    /// The elements that aren't zero [N].
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorProto>,
    /// Their places: i64 [N] in row-major order, or [N, rank].
    #[prost(message, optional, tag = "2")]
    pub indices: Option<TensorProto>,
    /// Shape of the whole.
    #[prost(int64, repeated, tag = "3")]
    pub dims: Vec<i64>,
}

/// A key and a value.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// Key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Name and type of a value.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type. Types other than tensors and optional values are read for their presence only.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// A tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
    /// A sequence.
    #[prost(message, optional, tag = "4")]
    pub sequence_type: Option<EmptyProto>,
    /// A map.
    #[prost(message, optional, tag = "5")]
    pub map_type: Option<EmptyProto>,
    /// A sparse tensor.
    #[prost(message, optional, tag = "8")]
    pub sparse_tensor_type: Option<EmptyProto>,
    /// A value that may be absent.
    #[prost(message, optional, tag = "9")]
    pub optional_type: Option<OptionalTypeProto>,
}

/// Type of a value that may be absent.
#[derive(Clone, PartialEq, Message)]
pub struct OptionalTypeProto {
    /// What it is if it is there.
    #[prost(message, optional, boxed, tag = "1")]
    pub elem_type: Option<Box<TypeProto>>,
}

/// A message whose fields don't matter.
#[derive(Clone, PartialEq, Message)]
pub struct EmptyProto {}

/// Type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// Element type, by its number in the standard.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// Shape; absent when even the rank is unknown.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// Extents.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// An extent: a number, a name, or unknown.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// The number.
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub dim_param: Option<String>,
}

/// A function that the model defines for itself.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Formal operands.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Formal results.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Names of attributes without a default.
    #[prost(string, repeated, tag = "6")]
    pub attribute: Vec<String>,
    /// The body, in topological order.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// Versions of the operator sets that the body uses.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// The function's set.
    #[prost(string, tag = "10")]
    pub domain: String,
    /// Attributes with their defaults.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// Which of several functions of one name.
    #[prost(string, tag = "13")]
    pub overload: String,
}
