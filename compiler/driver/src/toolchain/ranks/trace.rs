//! What happened when in a run of several ranks.

use super::rank::Rank;
use crate::toolchain::faults::temporary;
use mlc_ir::{Code, Diagnostic, Location};
use serde_json::{Value, json};
use std::path::Path;

/// Something that happened on a rank, in nanoseconds since the first rank began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A kernel ran.
    Kernel {
        /// Its number.
        kernel: usize,
        /// When it began.
        begin: u64,
        /// When it ended.
        end: u64,
    },
    /// A message was sent, or its memory became ready, and later it was waited for.
    Message {
        /// Its number.
        message: usize,
        /// When it was started.
        start: u64,
        /// When the rank began to wait for it.
        wait: u64,
        /// When it was complete.
        end: u64,
    },
}

/// The last run of several ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// For each rank when it began, and what happened.
    pub ranks: Vec<(u64, Vec<Event>)>,
}

/// Reads what the ranks wrote down.
///
/// # Errors
/// When a file is missing or isn't as it should be.
pub(super) fn read(folder: &Path, ranks: &[Rank]) -> Result<Timeline, Diagnostic> {
    let mut all = Vec::new();
    for number in 0..ranks.len() {
        let text =
            std::fs::read_to_string(folder.join(format!("rank{number}.trace"))).map_err(|error| temporary(&error))?;
        let parsed = parse(&text).ok_or_else(|| {
            let message = format!("rank {number} didn't write down what happened");
            Diagnostic::error(Code::ToolFailed, Location::default(), message)
        })?;
        all.push(parsed);
    }
    let first = all.iter().map(|(begin, _)| *begin).min().unwrap_or_default();
    for (begin, events) in &mut all {
        *begin -= first;
        for event in events {
            match event {
                Event::Kernel { begin, end, .. } => shift([begin, end], first),
                Event::Message { start, wait, end, .. } => shift([start, wait, end], first),
            }
        }
    }
    Ok(Timeline { ranks: all })
}

fn shift<const COUNT: usize>(times: [&mut u64; COUNT], by: u64) {
    for time in times {
        *time = time.saturating_sub(by);
    }
}

/// When the last run began, and what happened in it.
fn parse(text: &str) -> Option<(u64, Vec<Event>)> {
    let (mut began, mut events) = (0, Vec::new());
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (index, begin, end) = (number()? as usize, number()?, number()?);
        match kind {
            "b" => {
                began = begin;
                events.clear();
            }
            "k" => events.push(Event::Kernel { kernel: index, begin, end }),
            "s" | "r" => events.push(Event::Message { message: index, start: begin, wait: begin, end: begin }),
            "w" => {
                let own = events.iter_mut().find_map(|event| match event {
                    Event::Message { message, wait, end, .. } if *message == index => Some((wait, end)),
                    _ => None,
                });
                let (wait, complete) = own?;
                (*wait, *complete) = (begin, end);
            }
            _ => return None,
        }
    }
    Some((began, events))
}

impl Timeline {
    /// Nanoseconds from when the first rank began to when the last one ended.
    pub fn duration(&self) -> u64 {
        let end = |event: &Event| match event {
            Event::Kernel { end, .. } | Event::Message { end, .. } => *end,
        };
        self.ranks.iter().flat_map(|(_, events)| events).map(end).max().unwrap_or_default()
    }

    /// The events in the form that Chrome's trace viewer and Perfetto read. Each rank is a process with a thread for its kernels
    /// and what it waits for, and one for each way of the messages that are under way.
    pub fn to_chrome(&self, ranks: &[Rank]) -> Value {
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        let mut list = Vec::new();
        let span = |name: &str, rank: usize, thread: usize, begin: u64, end: u64| {
            json!({
                "name": name, "ph": "X", "pid": rank, "tid": thread, "ts": micros(begin), "dur": micros(end.saturating_sub(begin)),
            })
        };
        for (number, ((_, events), rank)) in self.ranks.iter().zip(ranks).enumerate() {
            for event in events {
                match event {
                    Event::Kernel { kernel, begin, end } => {
                        let name = rank.kernels.get(*kernel).map_or("kernel", |kernel| &kernel.node);
                        list.push(span(name, number, 0, *begin, *end));
                    }
                    Event::Message { message, start, wait, end } => {
                        let Some(message) = rank.messages.messages.get(*message) else { continue };
                        let (thread, way) = if message.sent { (1, "to") } else { (2, "from") };
                        let name = format!("{} {way} {}", message.tensor, message.peer);
                        list.push(span(&name, number, thread, *start, *end));
                        list.push(span(&format!("wait for {name}"), number, 0, *wait, *end));
                    }
                }
            }
            for (thread, name) in ["kernels and waits", "sending", "receiving"].into_iter().enumerate() {
                list.push(
                    json!({ "name": "thread_name", "ph": "M", "pid": number, "tid": thread, "args": { "name": name } }),
                );
            }
            let name = format!("rank {number}");
            list.push(json!({ "name": "process_name", "ph": "M", "pid": number, "args": { "name": name } }));
        }
        json!({ "displayTimeUnit": "ns", "traceEvents": list })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_counts() {
        let text = "b 0 5 0\nk 0 6 7\nb 0 10 0\nr 1 11 0\nk 0 12 20\nw 1 20 30\n";
        let message = Event::Message { message: 1, start: 11, wait: 20, end: 30 };
        assert_eq!(parse(text), Some((10, vec![message, Event::Kernel { kernel: 0, begin: 12, end: 20 }])));
        assert_eq!(parse("w 1 20 30\n"), None);
        assert_eq!(parse("k 1\n"), None);
    }
}
