//! The memory plan: offsets of the arena's buffers, so that buffers that live at the same time don't overlap.

use crate::module::{MemoryPlan, PlannedBuffer};

/// A buffer that needs a place in the arena.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Names of the values that live in it.
    pub values: Vec<String>,
    /// Size in bytes.
    pub bytes: usize,
    /// First kernel that writes it.
    pub first: usize,
    /// Last kernel that touches it.
    pub last: usize,
}

/// Places all requests. The result's buffers are in the order of the requests.
///
/// Two orders of a first-fit search are tried, by size and by start of life, and the smaller arena wins.
pub fn plan(requests: &[Request], alignment: usize) -> MemoryPlan {
    let mut by_size: Vec<usize> = (0..requests.len()).collect();
    by_size.sort_by_key(|&index| (std::cmp::Reverse(requests[index].bytes), requests[index].first, index));
    let mut by_start: Vec<usize> = (0..requests.len()).collect();
    by_start.sort_by_key(|&index| (requests[index].first, std::cmp::Reverse(requests[index].bytes), index));
    let candidates = [place(requests, &by_size, alignment), place(requests, &by_start, alignment)];
    let offsets = candidates.into_iter().min_by_key(|offsets| end(requests, offsets)).unwrap_or_default();
    let buffers = requests.iter().zip(&offsets).map(|(request, &offset)| PlannedBuffer {
        values: request.values.clone(),
        offset,
        bytes: request.bytes,
        first: request.first,
        last: request.last,
    });
    MemoryPlan {
        arena_bytes: end(requests, &offsets).next_multiple_of(alignment),
        alignment,
        buffers: buffers.collect(),
        liveness_bound_bytes: liveness_bound(requests),
    }
}

/// Largest sum of the sizes of buffers that live at one time.
pub fn liveness_bound(requests: &[Request]) -> usize {
    let at = |time: usize| {
        let live = requests.iter().filter(|request| request.first <= time && time <= request.last);
        live.map(|request| request.bytes).sum::<usize>()
    };
    requests.iter().map(|request| at(request.first)).max().unwrap_or(0)
}

fn place(requests: &[Request], order: &[usize], alignment: usize) -> Vec<usize> {
    let mut offsets = vec![0; requests.len()];
    let mut placed: Vec<usize> = Vec::new();
    for &index in order {
        let request = &requests[index];
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(|&&other| requests[other].first <= request.last && request.first <= requests[other].last)
            .map(|&other| (offsets[other], offsets[other] + requests[other].bytes))
            .collect();
        taken.sort_unstable();
        let mut offset = 0;
        for (start, end) in taken {
            if offset + request.bytes <= start {
                break;
            }
            offset = offset.max(end.next_multiple_of(alignment));
        }
        offsets[index] = offset;
        placed.push(index);
    }
    offsets
}

fn end(requests: &[Request], offsets: &[usize]) -> usize {
    requests.iter().zip(offsets).map(|(request, offset)| offset + request.bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize, first: usize, last: usize) -> Request {
        Request { values: vec![format!("{first}..{last}")], bytes, first, last }
    }

    #[test]
    fn buffers_that_live_together_do_not_overlap() {
        let mut generator = mlc_ir::Generator::new(7);
        for _ in 0..200 {
            let count = generator.range(1, 12);
            let requests: Vec<Request> = (0..count)
                .map(|_| {
                    let first = generator.range(0, 9);
                    request(generator.range(1, 500), first, first + generator.range(0, 4))
                })
                .collect();
            let plan = plan(&requests, 16);
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
    fn a_chain_takes_two_buffers() {
        let requests = [request(64, 0, 1), request(64, 1, 2), request(64, 2, 3), request(64, 3, 4)];
        assert_eq!(plan(&requests, 16).arena_bytes, 128);
    }
}
