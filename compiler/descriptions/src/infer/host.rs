//! The structures that a description's text sees while types are inferred.

use super::operator::TensorDescription;
use crate::c::{Base, IntType, Member, Memory, Pointer, Record, Target, Type, Value, ValueKind};
use crate::parameter::{Parameter, ParameterKind, ParameterValue};

/// A tensor with its entry and its list entry, which have the same number.
#[derive(Debug, Clone)]
pub(super) struct TensorRecord {
    pub arg_name: Value,
    pub name_text: String,
    pub name: Value,
    /// What is known of it; nothing of an output that isn't defined yet.
    pub known: Option<Known>,
    /// Number of the tensor whose memory it lies in.
    pub owner: Option<usize>,
    /// Byte offset in its pool; 0 before memory is planned.
    pub offset: u64,
}

/// A tensor's type, and the object that holds its extents.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub ty: TensorDescription,
    pub dims: Value,
}

/// A parameter's value in all the ways it can be looked at.
#[derive(Debug, Clone)]
pub(super) struct ParameterRecord {
    pub name_text: String,
    pub name: Value,
    /// Number of its type.
    pub kind: usize,
    pub length: usize,
    pub double: Value,
    pub float: Value,
    pub int: Value,
    pub truth: Value,
    pub string: Value,
    /// How its own variable looks at it.
    pub view: ValueKind,
}

/// All structures of an operator.
#[derive(Debug, Clone)]
pub(super) struct Records {
    pub optype: String,
    pub operator_name: String,
    pub optype_value: Value,
    pub name_value: Value,
    /// Inputs, then outputs.
    pub tensors: Vec<TensorRecord>,
    pub parameters: Vec<ParameterRecord>,
}

/// A text as a value.
pub(super) fn text(memory: &mut Memory, text: &str) -> Result<Value, String> {
    let object = memory.constant(&[text.as_bytes(), &[0]].concat())?;
    Ok(Value::Pointer(Pointer::object(object, Type::CHAR)))
}

/// A list of values of a type as a value.
fn list(memory: &mut Memory, ty: Type, values: &[Value]) -> Result<Value, String> {
    let object = memory.variable(ty, values.len())?;
    let start = Pointer::object(object, ty);
    for (number, value) in values.iter().enumerate() {
        let place = memory.moved(start, number as i128)?;
        memory.store(place, *value)?;
    }
    Ok(Value::Pointer(start))
}

/// A tensor's extents as a value.
pub(super) fn extents(memory: &mut Memory, extents: &[i32]) -> Result<Value, String> {
    let bytes: Vec<u8> = extents.iter().flat_map(|extent| extent.to_le_bytes()).collect();
    let object = memory.constant(&bytes)?;
    Ok(Value::Pointer(Pointer::object(object, Type::INT)))
}

/// A number as an integer, the nearest one of the range.
fn saturated(number: f64) -> Value {
    // The conversion saturates.
    Value::int(number as i32)
}

impl ParameterRecord {
    /// A parameter's value as the text sees it.
    pub fn new(memory: &mut Memory, parameter: &Parameter, value: &ParameterValue) -> Result<ParameterRecord, String> {
        let null = Value::Pointer(Pointer::NULL);
        let kind = crate::c::PARAMETERS.iter().position(|name| *name == value.type_name()).unwrap_or(0);
        let view = match (parameter.kind, parameter.real_type.as_deref()) {
            (ParameterKind::Bool, _) => ValueKind::Bool,
            (ParameterKind::Text, None) => ValueKind::String,
            (_, Some("float")) => ValueKind::Float,
            (_, Some("double")) => ValueKind::Double,
            _ => ValueKind::Int,
        };
        let name = text(memory, &parameter.name)?;
        let mut record = ParameterRecord {
            name_text: parameter.name.clone(),
            name,
            kind,
            length: value.length(),
            double: null,
            float: null,
            int: null,
            truth: null,
            string: null,
            view,
        };
        match value {
            ParameterValue::Null => {}
            ParameterValue::Text(string) => record.string = text(memory, string)?,
            ParameterValue::Bool(truth) => record.truth = Value::truth(*truth),
            ParameterValue::Number(number) => {
                record.double = Value::Double(*number);
                record.float = Value::Single(*number as f32);
                record.int = saturated(*number);
            }
            ParameterValue::Texts(strings) => {
                let strings = strings.iter().map(|string| text(memory, string)).collect::<Result<Vec<_>, _>>()?;
                record.string = list(memory, Type::CHAR.pointer(), &strings)?;
            }
            ParameterValue::Bools(truths) => {
                let truths: Vec<Value> = truths.iter().map(|truth| Value::truth(*truth)).collect();
                record.truth = list(memory, Type::INT, &truths)?;
            }
            ParameterValue::Numbers(numbers) => {
                let doubles: Vec<Value> = numbers.iter().map(|number| Value::Double(*number)).collect();
                let ints: Vec<Value> = numbers.iter().map(|number| saturated(*number)).collect();
                record.double = list(memory, Type::DOUBLE, &doubles)?;
                record.float = list(memory, Type::FLOAT, &doubles)?;
                record.int = list(memory, Type::INT, &ints)?;
            }
        }
        Ok(record)
    }

    /// The value looked at in a way.
    pub fn value(&self, kind: ValueKind) -> Value {
        match kind {
            ValueKind::Double => self.double,
            ValueKind::Float => self.float,
            ValueKind::Int => self.int,
            ValueKind::Bool => self.truth,
            ValueKind::String => self.string,
        }
    }

    /// Stores what a function made of the string.
    pub fn set(&mut self, value: Value) {
        match self.view {
            ValueKind::Double => self.double = value,
            ValueKind::Float => self.float = value,
            _ => self.int = value,
        }
    }

    fn is_array(&self) -> bool {
        crate::c::PARAMETERS[self.kind].starts_with("LN_PARAM_ARRAY")
    }
}

impl Records {
    /// The pointer to a tensor's entry, or null if it isn't defined yet.
    pub fn entry(&self, number: usize) -> Value {
        let known = self.tensors[number].known.is_some();
        Value::Pointer(if known { Pointer::record(Record::TensorEntry, number) } else { Pointer::NULL })
    }

    /// The value of a structure's member.
    pub fn member(&self, record: Record, number: usize, member: Member) -> Result<Value, String> {
        let found = match record {
            Record::Tensor => self.tensor_member(number, member)?,
            Record::TensorEntry => self.entry_member(number, member)?,
            Record::ListEntry => match member {
                Member::Name => Some(self.tensors[number].name),
                Member::ArgName => Some(self.tensors[number].arg_name),
                Member::Offset => Some(Value::Int(self.tensors[number].offset.into(), IntType::SIZE)),
                _ => None,
            },
            Record::ParamEntry => {
                let parameter = &self.parameters[number];
                match member {
                    Member::ArgName => Some(parameter.name),
                    Member::Type => Some(Value::int(parameter.kind as i32)),
                    Member::ArrayLen => Some(Value::int(parameter.length as i32)),
                    Member::Value(kind, array) if array == parameter.is_array() => Some(parameter.value(kind)),
                    _ => None,
                }
            }
            Record::Operator => match member {
                Member::Name => Some(self.name_value),
                Member::Optype => Some(self.optype_value),
                Member::TensorTable => Some(Value::Pointer(Pointer::record(Record::Table, 0))),
                _ => None,
            },
            Record::Table => None,
        };
        found.ok_or_else(|| format!("`{}` has no such member, or none with a value", Type::record(record)))
    }

    fn known(&self, number: usize) -> Result<&Known, String> {
        let tensor = &self.tensors[number];
        tensor.known.as_ref().ok_or_else(|| format!("the tensor '{}' isn't defined yet", tensor.name_text))
    }

    fn tensor_member(&self, number: usize, member: Member) -> Result<Option<Value>, String> {
        let Known { ty, dims } = self.known(number)?;
        Ok(match member {
            Member::Ndim => Some(Value::int(ty.extents.len() as i32)),
            Member::Dims => Some(*dims),
            Member::Len => Some(Value::int(ty.length())),
            Member::Dtype => Some(Value::int(ty.element as i32)),
            _ => None,
        })
    }

    fn entry_member(&self, number: usize, member: Member) -> Result<Option<Value>, String> {
        let tensor = &self.tensors[number];
        Ok(match member {
            Member::Tensor => {
                self.known(number)?;
                Some(Value::Pointer(Pointer::record(Record::Tensor, number)))
            }
            Member::Name => Some(tensor.name),
            Member::Offset => Some(Value::Int(tensor.offset.into(), IntType::SIZE)),
            Member::IsStatic => Some(Value::truth(self.known(number)?.ty.is_static)),
            Member::Mtype => Some(Value::int(self.known(number)?.ty.memory)),
            Member::Owner => Some(tensor.owner.map_or(Value::Pointer(Pointer::NULL), |owner| self.tensors[owner].name)),
            _ => None,
        })
    }
}

/// The number of the structure that a value points to.
pub(super) fn number_of(record: Record, value: Value) -> Result<usize, String> {
    match value {
        Value::Pointer(Pointer { target: Target::Record(found, number), .. }) if found == record => Ok(number),
        Value::Pointer(Pointer { target: Target::Null, .. }) => Err("it follows the null pointer".into()),
        _ => Err(format!("`{} *` expected, `{}` found", Type::record(record), value.describe())),
    }
}

/// A pointer that is an argument.
pub(super) fn pointer(value: Value) -> Result<Pointer, String> {
    match value {
        Value::Pointer(pointer) => Ok(pointer),
        _ => Err(format!("a pointer expected, `{}` found", value.describe())),
    }
}

/// An argument that is converted to `int`.
pub(super) fn integer(value: Value) -> Result<i32, String> {
    match value.converted(Type::INT)? {
        Value::Int(number, _) => i32::try_from(number).map_err(|_| "the number is too large".to_owned()),
        _ => Err("an int expected".into()),
    }
}

/// An argument that is a number of bytes.
pub(super) fn count(value: Value) -> Result<usize, String> {
    match value.converted(Type { base: Base::Int(IntType::SIZE), stars: 0 })? {
        Value::Int(number, _) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        _ => Err("a number of bytes expected".into()),
    }
}
