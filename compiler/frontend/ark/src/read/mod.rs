//! Bytes to a [`Model`]: JSON, the dialects, and what the format demands of every file. Everything in a file is untrusted, and one
//! run tells all that is wrong with it.

mod evidence;
mod faults;
mod nodes;
mod operation;
mod plan;
mod raw;
mod tables;
mod unknown;

#[cfg(test)]
mod tests;

use super::check::{DERIVED, Subject, check_graph, check_operation};
use super::model::{Dialect, Model};
use evidence::Evidence;
use faults::{Faults, at};
use mlc_ir::{Code, Diagnostic, Location};
use mlc_json::Json;
use operation::Reading;
use raw::Members;
use tables::Tables;

/// Reads a model file of any dialect.
///
/// # Errors
/// All that is wrong with the file, up to a bound: each with its JSON path and operation, or line and column where the text isn't
/// JSON.
pub fn read(bytes: &[u8]) -> Result<Model, Vec<Diagnostic>> {
    read_with(bytes, &|_| false)
}

/// Reads a model file in which some operators aren't ARK's: `is_described` says which; nothing is demanded of their operands.
///
/// # Errors
/// As [`read`].
pub fn read_with(bytes: &[u8], is_described: &dyn Fn(&str) -> bool) -> Result<Model, Vec<Diagnostic>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = Location::byte_offset(error.valid_up_to() as u64);
        vec![Diagnostic::error(Code::Syntax, place, "the file is damaged: it isn't UTF-8")]
    })?;
    if let Some(deep) = raw::too_deep(bytes) {
        let message = format!("lists and objects are nested more than {} deep", raw::MOST_DEPTH);
        return Err(vec![Diagnostic::error(Code::Syntax, Location::byte_offset(deep as u64), message)]);
    }
    let file: Members = serde_json::from_str(text).map_err(|error| {
        let place = Location::line_column(error.line().max(1) as u32, error.column().max(1) as u32);
        let message = format!("the file is damaged: {}", raw::without_place(&error));
        vec![Diagnostic::error(Code::Syntax, place, message)]
    })?;
    let mut faults = Faults::default();
    let rank = number(&file, "Rank", &mut faults);
    let world_size = number(&file, "WorldSize", &mut faults);
    let (first, count) = (rank.unwrap_or(0), world_size.unwrap_or(1));
    if first >= count {
        let message = format!("the rank {first} isn't one of {count} ranks");
        faults.push(Diagnostic::error(Code::NumberOutOfRange, at("$.Rank"), message));
    }
    let mut reading =
        Reading { tables: Tables::new(first, count), evidence: Evidence::default(), faults, pieces: None };
    let is_plan = file.0.contains_key("TaskInfos");
    let (nodes, complete) = if is_plan { reading.tasks(&file) } else { reading.nodes(&file) };
    let own: &[&str] = if is_plan { &plan::KEYS } else { &["Nodes"] };
    let known = |key: &str| own.contains(&key) || ["Rank", "WorldSize"].contains(&key);
    for (key, value) in file.0.iter().filter(|(key, _)| !known(key)) {
        reading.faults.push(unknown::finding(key, at("$")));
        if let Err(error) = mlc_json::check(value.get().as_bytes()) {
            let location = at(&format!("$[{key:?}]"));
            reading.faults.push(Diagnostic::error(Code::Syntax, location, raw::without_place(&error)));
        }
    }
    let dialect = match reading.evidence.dialect(&mut reading.faults) {
        _ if is_plan => Dialect::Plan,
        dialect => dialect,
    };
    for (key, found) in [("Rank", rank), ("WorldSize", world_size)] {
        if found.is_none() && dialect != Dialect::Seed && !file.0.contains_key(key) {
            let message = format!("the key '{key}' is missing");
            reading.faults.push(Diagnostic::error(Code::ParameterMissing, at("$"), message));
        }
    }
    let Reading { tables, mut faults, .. } = reading;
    let mut model = Model {
        dialect,
        rank: first,
        world_size: count,
        nodes,
        tensors: tables.tensors.into_values().collect(),
        buffers: tables.buffers.into_values().collect(),
        warnings: Vec::new(),
    };
    check(&mut model, complete, is_described, &mut faults);
    if faults.failed() { Err(faults.finish()) } else { Ok(Model { warnings: faults.finish(), ..model }) }
}

/// What must hold beyond the schema. The graph is only looked at when all of its nodes could be read.
fn check(model: &mut Model, complete: bool, is_described: &dyn Fn(&str) -> bool, faults: &mut Faults) {
    if complete {
        check_graph(model).into_iter().for_each(|finding| faults.push(finding));
    }
    for operation in model.nodes.iter().flat_map(|node| &node.operations) {
        if faults.many() {
            return;
        }
        check_operation(&Subject { model, operation }, is_described)
            .into_iter()
            .for_each(|finding| faults.push(finding));
    }
    for operation in model.nodes.iter_mut().flat_map(|node| &mut node.operations) {
        if &*operation.kind == "Matmul" {
            operation.arguments.retain(|name, _| !DERIVED.contains(&&**name));
        }
    }
}

/// A number of the whole file, if it is there and right.
fn number(file: &Members, key: &str, faults: &mut Faults) -> Option<u32> {
    let text = file.0.get(key)?;
    let value = raw::value(text).map_err(|message| Diagnostic::error(Code::Syntax, at("$"), message));
    let value = faults.note(value)?;
    faults.note(Json::root(format!("$.{key}"), "", &value).integer())
}
