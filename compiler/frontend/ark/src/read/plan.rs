//! Plans: what the scheduler makes of a model. Tasks hold the operations of a compressed model, and processors run them in an order.

use super::faults::at;
use super::operation::Reading;
use super::raw::{self, Members};
use crate::model::{Node, Place};
use mlc_ir::{Code, Diagnostic};
use mlc_json::Json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The keys of a plan beside `Rank` and `WorldSize`. All but two are about processors.
pub(super) const KEYS: [&str; 5] =
    ["TaskInfos", "ProcessorGroups", "Architecture", "NumProcessors", "NumWarpsPerProcessor"];

/// Most pieces of a task that is run by ranges with steps.
const MOST_PIECES: u64 = 1 << 20;

/// A task, and when it is run.
struct Task {
    node: Node,
    /// How many pieces its operations are cut into, if they say so.
    pieces: Option<u64>,
    /// When it is first run.
    turn: Option<usize>,
    /// The pieces that are run: from, to, step.
    ranges: Vec<[u64; 3]>,
}

impl Reading {
    /// The tasks that could be read in the order in which they are first run, and whether that is all of them.
    pub fn tasks(&mut self, file: &Members) -> (Vec<Node>, bool) {
        let mut tasks = BTreeMap::new();
        let mut turns = 0;
        self.walk(file, "TaskInfos", |reading, text, position| {
            if let Some((id, task)) = reading.task(text, position)
                && tasks.insert(id, task).is_some()
            {
                let message = format!("two tasks have the number {id}");
                reading.faults.push(Diagnostic::error(
                    Code::DuplicateDefinition,
                    at(&path("TaskInfos", position)),
                    message,
                ));
            }
        });
        self.walk(file, "ProcessorGroups", |reading, text, position| {
            let found = raw::value(text)
                .map_err(|message| Diagnostic::error(Code::Syntax, at(&path("ProcessorGroups", position)), message));
            let Some(group) = reading.faults.note(found) else { return };
            let group = Json::root(path("ProcessorGroups", position), "", &group);
            let scheduled = schedule(&group, &mut tasks, &mut turns);
            reading.faults.note(scheduled);
        });
        let mut tasks: Vec<Task> = tasks.into_values().collect();
        tasks.sort_by_key(|task| task.turn);
        for task in &tasks {
            let message = match task.pieces {
                _ if task.turn.is_none() => format!("no processor runs task {}", task.node.id),
                Some(pieces) if !is_covered(&task.ranges, pieces) => {
                    format!("processors don't run all {pieces} pieces of task {}", task.node.id)
                }
                _ => continue,
            };
            self.faults.push(Diagnostic::error(Code::CountMismatch, at("$.ProcessorGroups"), message));
        }
        let complete = !self.faults.failed();
        (tasks.into_iter().map(|task| task.node).collect(), complete)
    }

    fn walk(&mut self, file: &Members, key: &str, mut see: impl FnMut(&mut Reading, &RawValue, usize)) {
        let Some(list) = file.0.get(key) else {
            self.faults.push(Diagnostic::error(Code::ParameterMissing, at("$"), format!("the key '{key}' is missing")));
            return;
        };
        let walked = raw::walk_list(list, |position, text| {
            see(self, text, position);
            !self.faults.many()
        });
        if let Err(error) = walked {
            let location = at(&format!("$.{key}"));
            self.faults.push(Diagnostic::error(Code::Syntax, location, raw::without_place(&error)));
        }
    }

    fn task(&mut self, text: &RawValue, position: usize) -> Option<(u32, Task)> {
        let path = path("TaskInfos", position);
        let syntax = |message: String| Diagnostic::error(Code::Syntax, at(&path), message);
        let members = serde_json::from_str::<Members>(text.get()).map_err(|error| syntax(raw::without_place(&error)));
        let members = self.faults.note(members)?;
        let id: Option<u32> = self.member(&members, &path, "Id", |id| id.integer());
        let Some(list) = members.0.get("Ops") else {
            self.faults.push(Diagnostic::error(Code::ParameterMissing, at(&path), "the key 'Ops' is missing"));
            return None;
        };
        self.pieces = None;
        let operations = self.operations(list, &path, |operation| Place {
            list: "TaskInfos",
            node: position as u32,
            operation: Some(operation),
        });
        let node = Node { id: id?, producers: Vec::new(), consumers: Vec::new(), operations };
        Some((node.id, Task { node, pieces: self.pieces, turn: None, ranges: Vec::new() }))
    }
}

fn path(key: &str, position: usize) -> String {
    format!("$.{key}[{position}]")
}

/// Notes which pieces of which tasks a group of processors runs.
fn schedule(group: &Json, tasks: &mut BTreeMap<u32, Task>, turns: &mut usize) -> Result<(), Diagnostic> {
    for resources in group.get("ResourceGroups")?.list()? {
        for run in resources.get("TaskGroups")?.list()? {
            let id = run.get("TaskId")?;
            let number = id.integer::<u32>()?;
            let range = run.get("TaskRange")?;
            let numbers: Vec<u64> = range.list()?.iter().map(Json::integer).collect::<Result<_, _>>()?;
            let range = match numbers[..] {
                [from, to] => [from, to, 1],
                [from, to, step] if step > 0 => [from, to, step],
                _ => return Err(range.fault(Code::Syntax, "a range of two or three numbers expected")),
            };
            let Some(task) = tasks.get_mut(&number) else {
                return Err(id.fault(Code::UndefinedValue, format!("no task has the number {number}")));
            };
            task.turn.get_or_insert(*turns);
            task.ranges.push(range);
            *turns += 1;
        }
    }
    Ok(())
}

/// Whether ranges have all numbers below a count.
fn is_covered(ranges: &[[u64; 3]], count: u64) -> bool {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    if sorted.iter().all(|[.., step]| *step == 1) {
        let next = |reached: u64, [from, to, _]: &[u64; 3]| if *from <= reached { reached.max(*to) } else { reached };
        return sorted.iter().fold(0, next) >= count;
    }
    let mut runs = vec![false; count.min(MOST_PIECES) as usize];
    for [from, to, step] in sorted {
        let numbers = (from..to.min(count).min(MOST_PIECES)).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        numbers.for_each(|number| {
            if let Some(runs) = runs.get_mut(number as usize) {
                *runs = true;
            }
        });
    }
    count <= MOST_PIECES && runs.iter().all(|&runs| runs)
}
