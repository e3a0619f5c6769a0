//! The picture of a memory plan: addresses upwards, kernels in their order to the right.

use crate::report::Report;
use crate::template::{fill, shortened, tenths};
use serde::Serialize;

/// Width and height of the plan without its labels, in pixels.
const SIZE: (f64, f64) = (960.0, 380.0);

/// Kernels up to which each has its name below the plan.
const NAMED: usize = 64;

#[derive(Serialize)]
struct Picture {
    width: f64,
    height: f64,
    left: f64,
    top: f64,
    plan_width: f64,
    plan_height: f64,
    blocks: Vec<Block>,
    steps: Vec<Step>,
    ticks: Vec<Tick>,
    bound: f64,
    bound_bytes: usize,
    live: String,
}

#[derive(Serialize)]
struct Block {
    color: usize,
    title: String,
    label: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

#[derive(Serialize)]
struct Step {
    x: f64,
    name: String,
}

#[derive(Serialize)]
struct Tick {
    y: f64,
    text: String,
}

/// Draws where each buffer of the arena is while kernels run, what is live beside each kernel, and the most that is live at once.
pub fn memory(report: &Report) -> String {
    let plan = &report.memory;
    let steps = report.kernels.len().max(1);
    let top_bytes = plan.arena_bytes.max(plan.liveness_bound_bytes).max(1);
    let (plan_width, plan_height) = SIZE;
    let step = plan_width / steps as f64;
    let height_of = |bytes: usize| bytes as f64 / top_bytes as f64 * plan_height;
    let y_of = |bytes: usize| plan_height - height_of(bytes);
    let block = |(number, buffer): (usize, &mlc_codegen::PlannedBuffer)| {
        let (x, width) = (buffer.first as f64 * step, (buffer.last + 1 - buffer.first) as f64 * step);
        let names = buffer.values.join(", ");
        let (first, last) = (name(report, buffer.first), name(report, buffer.last));
        let height = height_of(buffer.bytes);
        let room = (width / 7.0) as usize;
        Block {
            color: number % 8,
            title: format!("{names}: {} bytes at {}, from {first} to {last}", buffer.bytes, buffer.offset),
            label: if height > 12.0 && room > 3 { shortened(&names, room) } else { String::new() },
            x: tenths(x),
            y: tenths(y_of(buffer.offset + buffer.bytes)),
            width: tenths(width),
            height: tenths(height.max(1.0)),
        }
    };
    let named = |number: usize| Step {
        x: tenths((number as f64 + 0.5) * step),
        name: if steps <= NAMED { shortened(name(report, number), 18) } else { String::new() },
    };
    let tick = |quarter: usize| {
        let bytes = top_bytes * quarter / 4;
        Tick { y: tenths(y_of(bytes)), text: crate::template::bytes(bytes as u64) }
    };
    let live = |number: usize| {
        let buffers = plan.buffers.iter().filter(|buffer| buffer.first <= number && number <= buffer.last);
        let y = tenths(y_of(taken(buffers.map(|buffer| (buffer.offset, buffer.offset + buffer.bytes)).collect())));
        format!("{} {y} {} {y}", tenths(number as f64 * step), tenths((number + 1) as f64 * step))
    };
    // Names of kernels hang down to the right.
    let (left, top, rest) = (78.0, 16.0, if steps <= NAMED { 96.0 } else { 28.0 });
    fill(
        "memory.xml",
        Picture {
            width: plan_width + left + rest,
            height: plan_height + top + rest,
            left,
            top,
            plan_width,
            plan_height,
            blocks: plan.buffers.iter().enumerate().map(block).collect(),
            steps: (0..report.kernels.len()).map(named).collect(),
            ticks: (0..=4).map(tick).collect(),
            bound: tenths(y_of(plan.liveness_bound_bytes)),
            bound_bytes: plan.liveness_bound_bytes,
            live: (0..report.kernels.len()).map(live).collect::<Vec<_>>().join(" "),
        },
    )
}

/// Bytes that lie in some pieces of memory, from an offset to another one: where a result lies over an operand, they count once.
fn taken(mut pieces: Vec<(usize, usize)>) -> usize {
    pieces.sort_unstable();
    let (mut bytes, mut end) = (0, 0);
    for (first, last) in pieces {
        bytes += last.saturating_sub(first.max(end));
        end = end.max(last);
    }
    bytes
}

fn name(report: &Report, position: usize) -> &str {
    report.kernels.get(position).map_or("the end", |kernel| &kernel.node)
}

#[cfg(test)]
mod tests {
    use super::taken;

    #[test]
    fn bytes_that_pieces_have_in_common_count_once() {
        assert_eq!(taken(vec![(8, 12), (0, 4)]), 8);
        assert_eq!(taken(vec![(0, 10), (4, 12), (5, 6)]), 12);
        assert_eq!(taken(Vec::new()), 0);
    }
}
