//! One operation: its tensors and arguments, in the words of the dialect that everything is normalised to.

use super::super::model::{Argument, Operation, Place, TensorIndex};
use super::evidence::Evidence;
use super::faults::Faults;
use super::raw;
use super::tables::{MOST_AXES, Tables};
use super::unknown;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_json::{Json, shortened};
use serde_json::value::RawValue;

/// The keys of an operation; plans add the last one, which is about processors.
const KEYS: [&str; 8] = ["Type", "Name", "IsVirtual", "ReadTensors", "WriteTensors", "ResultTensors", "Args", "Config"];

/// Other names of arguments: operator, the name in old files, the name that everything is normalised to.
const OLD_ARGUMENTS: [(&str, &str, &str); 4] = [
    ("ScalarAdd", "Value", "Factor"),
    ("ScalarMul", "Value", "Factor"),
    ("Matmul", "IsInputColumnMajor", "TransposeInput"),
    ("Matmul", "IsOtherColumnMajor", "TransposeOther"),
];

/// What an operation is read into.
#[derive(Debug)]
pub(super) struct Reading {
    pub tables: Tables,
    pub evidence: Evidence,
    pub faults: Faults,
    /// How many pieces the operations of a plan's task are cut into, as far as they say it.
    pub pieces: Option<u64>,
}

impl Reading {
    /// Reads an operation; nothing if something in it is wrong.
    pub fn operation(&mut self, text: &RawValue, place: Place) -> Option<Operation> {
        let path = place.to_string();
        let value = match raw::value(text) {
            Ok(value) => value,
            Err(message) => {
                let location = Location { json_path: Some(path), ..Location::default() };
                self.faults.push(Diagnostic::error(Code::Syntax, location, message));
                return None;
            }
        };
        let json = Json::root(path, "", &value);
        let kind = json.find("Type").ok().flatten().and_then(|kind| kind.text().ok());
        let name = json.find("Name").ok().flatten().and_then(|name| name.text().ok());
        let mark = self.faults.mark();
        let operation = self.checked_operation(&json, place);
        for finding in self.faults.since(mark) {
            finding.location.operator = kind.map(|kind| shortened(kind).into_owned());
            finding.location.node = name.map(|name| shortened(name).into_owned());
        }
        operation
    }

    fn checked_operation(&mut self, json: &Json, place: Place) -> Option<Operation> {
        unknown::warn(json, &KEYS, &mut self.faults);
        let faults = &mut self.faults;
        let kind = faults.note(json.get("Type").and_then(|kind| kind.text()));
        let name = faults.note(json.get("Name").and_then(|name| name.text()));
        let is_virtual = faults.note(json.get("IsVirtual").and_then(|flag| flag.boolean()));
        let reads = self.tensors(json, "ReadTensors");
        let writes = self.tensors(json, "WriteTensors");
        let results = self.tensors(json, "ResultTensors");
        let arguments = self.arguments(json, kind.unwrap_or_default());
        if let Ok(Some(config)) = json.find("Config") {
            let pieces = config.find("NumTasks").and_then(|number| number.map(|number| number.integer()).transpose());
            self.pieces = self.pieces.max(self.faults.note(pieces).flatten());
        }
        Some(Operation {
            kind: kind?.into(),
            name: name?.into(),
            is_virtual: is_virtual?,
            reads: reads?,
            writes: writes?,
            results: results?,
            arguments: arguments?,
            place,
        })
    }

    fn tensors(&mut self, json: &Json, key: &str) -> Option<Vec<TensorIndex>> {
        let list = self.faults.note(json.get(key).and_then(|list| list.list()))?;
        let tensors: Vec<Option<TensorIndex>> =
            list.iter().map(|tensor| self.tables.tensor(tensor, &mut self.faults, &mut self.evidence)).collect();
        tensors.into_iter().collect()
    }

    fn arguments(&mut self, json: &Json, kind: &str) -> Option<IndexMap<Box<str>, Argument>> {
        let members = self.faults.note(json.get("Args").and_then(|arguments| arguments.members()))?;
        let mut arguments = IndexMap::with_capacity(members.len());
        let mut wrong = false;
        for (name, value) in members {
            let old = OLD_ARGUMENTS.iter().find(|(operator, old, _)| *operator == kind && *old == name);
            let name = old.map_or(name, |(_, _, new)| new);
            let Some(argument) = self.argument(&value) else {
                wrong = true;
                continue;
            };
            if arguments.insert(name.into(), argument).is_some() {
                let message = format!("the argument {} is there under two names", shortened(name));
                self.faults.push(value.fault(Code::DuplicateDefinition, message));
            }
        }
        (!wrong).then_some(arguments)
    }

    fn argument(&mut self, json: &Json) -> Option<Argument> {
        let members = self.faults.note(json.members())?;
        let [(kind, value)] = &members[..] else {
            let message = format!("an object with one key, the argument's type, expected, {} found", members.len());
            self.faults.push(json.fault(Code::Syntax, message));
            return None;
        };
        if *kind == "TENSOR" {
            return self.tables.tensor(value, &mut self.faults, &mut self.evidence).map(Argument::Tensor);
        }
        self.faults.note(simple_argument(kind, value))
    }
}

fn simple_argument(kind: &str, value: &Json) -> Result<Argument, Diagnostic> {
    Ok(match kind {
        "INT" => Argument::Int(value.integer()?),
        "UINT32" => Argument::Uint32(value.integer()?),
        "INT64" => Argument::Int64(value.integer()?),
        "UINT64" => Argument::Uint64(value.integer()?),
        "BOOL" => Argument::Bool(value.boolean()?),
        "FLOAT" => {
            let number = value.number()? as f32;
            if !number.is_finite() {
                return Err(value.fault(Code::NumberOutOfRange, "the number isn't in the range of FLOAT"));
            }
            Argument::Float(number)
        }
        "DIMS" => {
            let list = value.list()?;
            if list.len() > MOST_AXES {
                let message = format!("{} numbers found, at most {MOST_AXES} are possible", list.len());
                return Err(value.fault(Code::VariantUnsupported, message));
            }
            Argument::Dims(list.iter().map(Json::integer).collect::<Result<_, _>>()?)
        }
        "OFFSET" => {
            Argument::Offset { buffer: value.get("BufferId")?.integer()?, value: value.get("Value")?.integer()? }
        }
        _ => return Err(value.fault(Code::Syntax, format!("the type of arguments {:?} isn't known", shortened(kind)))),
    })
}
