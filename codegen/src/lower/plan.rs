//! The memory plan: offsets of the arena's buffers, so that buffers that live at the same time don't overlap.

use crate::module::{MemoryPlan, PlannedBuffer};

/// A buffer that needs a place in the arena.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Names of the values that live in it.
    pub values: Vec<String>,
    /// Size in bytes.
    pub bytes: usize,
    /// Alignment in bytes, a power of two, where it is more than the arena's.
    pub alignment: usize,
    /// First kernel that writes it.
    pub first: usize,
    /// Last kernel that touches it.
    pub last: usize,
}

/// Places all requests, each at a multiple of `alignment` or its own, whichever is larger; so is the arena. The result's buffers are
/// in the order of the requests.
///
/// Two orders of a first-fit search are tried, by size and by start of life, and the smaller arena wins. Where both take more
/// than lives at one time, a search for a plan that doesn't follows.
pub fn plan(requests: &[Request], alignment: usize) -> MemoryPlan {
    let mut by_size: Vec<usize> = (0..requests.len()).collect();
    by_size.sort_by_key(|&index| (std::cmp::Reverse(requests[index].bytes), requests[index].first, index));
    let mut by_start: Vec<usize> = (0..requests.len()).collect();
    by_start.sort_by_key(|&index| (requests[index].first, std::cmp::Reverse(requests[index].bytes), index));
    let candidates = [place(requests, &by_size, alignment), place(requests, &by_start, alignment)];
    let mut offsets = candidates.into_iter().min_by_key(|offsets| end(requests, offsets)).unwrap_or_default();
    let room = liveness_bound(requests, alignment);
    if end(requests, &offsets) > room
        && let Some(tight) = place_within(requests, &by_start, alignment, room)
    {
        offsets = tight;
    }
    let buffers = requests.iter().zip(&offsets).map(|(request, &offset)| PlannedBuffer {
        values: request.values.clone(),
        offset,
        bytes: request.bytes,
        first: request.first,
        last: request.last,
    });
    let whole = requests.iter().map(|request| request.alignment).fold(alignment, usize::max);
    MemoryPlan {
        arena_bytes: end(requests, &offsets).next_multiple_of(whole),
        alignment: whole,
        buffers: buffers.collect(),
        liveness_bound_bytes: liveness_bound(requests, 1),
        pools: Vec::new(),
    }
}

/// Largest sum of the sizes, rounded up to the alignment, of buffers that live at one time.
pub fn liveness_bound(requests: &[Request], alignment: usize) -> usize {
    let at = |time: usize| {
        let live = requests.iter().filter(|request| request.first <= time && time <= request.last);
        live.map(|request| request.bytes.next_multiple_of(alignment)).sum::<usize>()
    };
    requests.iter().map(|request| at(request.first)).max().unwrap_or(0)
}

/// What other buffers take while a request lives, in order of their offsets.
fn taken(requests: &[Request], placed: &[usize], offsets: &[usize], request: &Request) -> Vec<(usize, usize)> {
    let together = |other: &Request| other.first <= request.last && request.first <= other.last;
    let mut taken: Vec<(usize, usize)> = placed
        .iter()
        .filter(|&&other| together(&requests[other]))
        .map(|&other| (offsets[other], offsets[other] + requests[other].bytes))
        .collect();
    taken.sort_unstable();
    taken
}

/// The first place that is free for some bytes.
fn lowest(taken: &[(usize, usize)], bytes: usize, alignment: usize) -> usize {
    let mut offset = 0;
    for &(start, end) in taken {
        if offset + bytes <= start {
            break;
        }
        offset = offset.max(end.next_multiple_of(alignment));
    }
    offset
}

/// The last place below `room` that is free for some bytes.
fn highest(taken: &[(usize, usize)], bytes: usize, alignment: usize, room: usize) -> Option<usize> {
    let below = |top: usize| top.checked_sub(bytes).map(|offset| offset / alignment * alignment);
    let mut offset = below(room)?;
    for &(start, end) in taken.iter().rev() {
        if offset >= end {
            break;
        }
        offset = offset.min(below(start)?);
    }
    Some(offset)
}

fn place(requests: &[Request], order: &[usize], alignment: usize) -> Vec<usize> {
    let mut offsets = vec![0; requests.len()];
    for (count, &index) in order.iter().enumerate() {
        let request = &requests[index];
        let taken = taken(requests, &order[..count], &offsets, request);
        offsets[index] = lowest(&taken, request.bytes, alignment.max(request.alignment));
    }
    offsets
}

/// Places tried by [`place_within`], beside some for each request.
const MOST_TRIES: usize = 4096;

/// Places all requests below `room`: each at the lowest or the highest free place, with a bounded number of second thoughts.
fn place_within(requests: &[Request], order: &[usize], alignment: usize, room: usize) -> Option<Vec<usize>> {
    let mut offsets = vec![0; requests.len()];
    let mut is_high = vec![false; requests.len()];
    let mut count = 0;
    for _ in 0..MOST_TRIES + 4 * requests.len() {
        let Some(&index) = order.get(count) else { return Some(offsets) };
        let request = &requests[index];
        let alignment = alignment.max(request.alignment);
        let taken = taken(requests, &order[..count], &offsets, request);
        let low = Some(lowest(&taken, request.bytes, alignment)).filter(|offset| offset + request.bytes <= room);
        let high = highest(&taken, request.bytes, alignment, room).filter(|_| low.is_some());
        match if is_high[count] { high.filter(|_| high != low) } else { low } {
            Some(offset) => {
                offsets[index] = offset;
                count += 1;
            }
            None => {
                // The last that is at its lowest place moves up; those behind it start again.
                is_high[count] = false;
                count = (0..count).rev().find(|&earlier| !is_high[earlier])?;
                is_high[count..].fill(false);
                is_high[count] = true;
            }
        }
    }
    None
}

fn end(requests: &[Request], offsets: &[usize]) -> usize {
    requests.iter().zip(offsets).map(|(request, offset)| offset + request.bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize, first: usize, last: usize) -> Request {
        Request { values: vec![format!("{first}..{last}")], bytes, alignment: 1, first, last }
    }

    #[test]
    fn buffers_that_live_together_do_not_overlap() {
        let mut generator = mlc_ir::Generator::new(7);
        for _ in 0..200 {
            let count = generator.range(1, 12);
            let requests: Vec<Request> = (0..count)
                .map(|_| {
                    let first = generator.range(0, 9);
                    let alignment = generator.choose(&[1, 1, 8, 64, 256]);
                    Request { alignment, ..request(generator.range(1, 500), first, first + generator.range(0, 4)) }
                })
                .collect();
            let plan = plan(&requests, 16);
            let largest = requests.iter().map(|request| request.alignment).fold(16, usize::max);
            assert_eq!((plan.alignment, plan.arena_bytes % largest), (largest, 0));
            for (buffer, request) in plan.buffers.iter().zip(&requests) {
                assert_eq!(buffer.offset % request.alignment, 0);
            }
            assert!(plan.arena_bytes >= plan.liveness_bound_bytes);
            for (index, left) in plan.buffers.iter().enumerate() {
                assert_eq!(left.offset % 16, 0);
                assert!(left.offset + left.bytes <= plan.arena_bytes);
                for right in &plan.buffers[..index] {
                    let together = left.first <= right.last && right.first <= left.last;
                    let apart = left.offset + left.bytes <= right.offset || right.offset + right.bytes <= left.offset;
                    assert!(!together || apart, "{left:?} {right:?}");
                }
            }
        }
    }

    #[test]
    fn small_buffers_do_not_push_large_ones_apart() {
        let sizes = [512, 512, 512, 512, 32, 512, 512, 512, 512];
        let requests: Vec<Request> = (0..sizes.len()).map(|at| request(sizes[at], at, at + 1)).collect();
        assert_eq!(plan(&requests, 16).arena_bytes, 1024);
    }

    #[test]
    fn a_chain_takes_two_buffers() {
        let requests = [request(64, 0, 1), request(64, 1, 2), request(64, 2, 3), request(64, 3, 4)];
        assert_eq!(plan(&requests, 16).arena_bytes, 128);
    }
}
