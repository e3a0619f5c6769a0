//! The memory plan: offsets of the arena's buffers, so that buffers that live at the same time don't overlap.

use crate::module::{MemoryPlan, PlannedBuffer};
use mlc_ir::Generator;
use std::collections::BTreeSet;

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

/// A request that may lie over another one, by their numbers: one is written while the other is read for the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lap {
    /// What is written.
    pub result: usize,
    /// What is read.
    pub operand: usize,
    /// Bytes from the result's offset to the operand's, at least.
    pub distance: i64,
    /// What that must be a multiple of.
    pub modulus: usize,
}

impl Lap {
    /// The least distance that is a multiple of an alignment, too.
    fn aligned(&self, alignment: usize) -> i64 {
        let multiple =
            (1..=alignment).map(|factor| factor * self.modulus.max(1)).find(|all| all.is_multiple_of(alignment));
        let multiple = multiple.unwrap_or(alignment) as i64;
        multiple_from(self.distance, multiple)
    }

    /// Bytes that both take less than one behind the other.
    fn saved(&self, requests: &[Request], alignment: usize) -> usize {
        let [result, operand] =
            [self.result, self.operand].map(|number| requests[number].bytes.next_multiple_of(alignment));
        let ahead = usize::try_from(self.aligned(alignment)).unwrap_or(0);
        (result + operand).saturating_sub(result.max(operand + ahead))
    }
}

/// Places all requests, each at a multiple of `alignment` or its own, whichever is larger; so is the arena. The result's buffers are
/// in the order of the requests. Those that live at one time are apart, but for `laps`.
///
/// Two orders of a first-fit search are tried, by size and by start of life, and the smaller arena wins. Where both take more
/// than lives at one time, two searches follow: one with second thoughts for a plan that takes no more than that, and one for a smaller
/// plan, whose order is changed by what didn't fit.
pub fn plan(requests: &[Request], laps: &[Lap], alignment: usize) -> MemoryPlan {
    let all = Requests::new(requests, laps, alignment);
    let mut by_size: Vec<usize> = (0..requests.len()).collect();
    by_size.sort_by_key(|&index| (std::cmp::Reverse(requests[index].bytes), requests[index].first, index));
    let mut by_start: Vec<usize> = (0..requests.len()).collect();
    by_start.sort_by_key(|&index| (requests[index].first, std::cmp::Reverse(requests[index].bytes), index));
    let candidates = [all.place(&by_size), all.place(&by_start)];
    // What fits where depends on the order: more freedom could end in more memory.
    let apart = (!laps.is_empty()).then(|| plan(requests, &[], alignment).buffers);
    let apart = apart.map(|buffers| buffers.iter().map(|buffer| buffer.offset).collect::<Vec<usize>>());
    let mut offsets =
        apart.into_iter().chain(candidates).min_by_key(|offsets| end(requests, offsets)).unwrap_or_default();
    let bound = all.bound(alignment);
    if end(requests, &offsets) > bound {
        match all.place_within(&by_start, bound) {
            Some(tight) => offsets = tight,
            None => all.improve(&by_size, &mut offsets, bound),
        }
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
        liveness_bound_bytes: all.bound(1).min(end(requests, &offsets)),
        pools: Vec::new(),
    }
}

/// Places tried by [`Requests::place_within`], beside some for each request.
const MOST_TRIES: usize = 4096;

/// Offsets that a request can't have: those between two numbers.
type Barred = (i64, i64);

/// Rooms that are tried, from the least one to what was found before, in hundredths.
const SHARES: [usize; 6] = [0, 10, 30, 50, 80, 99];

/// Requests that [`Requests::improve`] places below a room, about.
const MOST_PLACED: usize = 1 << 16;

struct Requests<'a> {
    requests: &'a [Request],
    laps: &'a [Lap],
    /// Numbers of the laps of each request.
    lapped: Vec<Vec<usize>>,
    /// All that live at the same time as each, itself among them.
    neighbours: Vec<Vec<usize>>,
    alignment: usize,
}

impl<'a> Requests<'a> {
    fn new(requests: &'a [Request], laps: &'a [Lap], alignment: usize) -> Requests<'a> {
        let mut lapped = vec![Vec::new(); requests.len()];
        for (number, lap) in laps.iter().enumerate() {
            lapped[lap.result].push(number);
            lapped[lap.operand].push(number);
        }
        let others = |own: &Request| {
            let all = requests.iter().enumerate();
            let alive = all.filter(|(_, other)| own.first <= other.last && other.first <= own.last);
            alive.map(|(number, _)| number).collect::<Vec<usize>>()
        };
        let neighbours = requests.iter().map(others).collect();
        Requests { requests, laps, lapped, neighbours, alignment }
    }

    /// Largest sum of the sizes, rounded up to an alignment, of buffers that live at one time, less what one of them has in common with another one
    /// that it may lie over.
    fn bound(&self, alignment: usize) -> usize {
        let is_alive = |request: &&Request, time: usize| request.first <= time && time <= request.last;
        let at = |time: usize| {
            let live = self.requests.iter().filter(|request| is_alive(request, time));
            let laps = self
                .laps
                .iter()
                .filter(|lap| [lap.result, lap.operand].iter().all(|&number| is_alive(&&self.requests[number], time)));
            let saved = laps.map(|lap| lap.saved(self.requests, alignment)).max().unwrap_or(0);
            live.map(|request| request.bytes.next_multiple_of(alignment)).sum::<usize>() - saved
        };
        self.requests.iter().map(|request| at(request.first)).max().unwrap_or(0)
    }

    fn alignment_of(&self, number: usize) -> i64 {
        self.alignment.max(self.requests[number].alignment) as i64
    }

    /// Where a request can't be since others are placed that live at the same time, in order.
    fn barred(&self, offsets: &[Option<i64>], number: usize) -> Vec<Barred> {
        let own = &self.requests[number];
        let mut barred = Vec::new();
        for &other in self.neighbours[number].iter().filter(|&&other| other != number) {
            let (request, Some(offset)) = (&self.requests[other], offsets[other]) else { continue };
            let (low, high) = (offset - own.bytes as i64, offset + request.bytes as i64);
            let meets = |lap: &&Lap| {
                (lap.result, lap.operand) == (number, other) || (lap.result, lap.operand) == (other, number)
            };
            match self.lapped[number].iter().map(|&lap| &self.laps[lap]).find(meets) {
                Some(lap) => {
                    let distance = lap.aligned(self.alignment);
                    // Only in steps there is more than one distance.
                    let nearest =
                        if lap.result == number { offset - distance } else { offset + distance }.clamp(low, high);
                    let (below, above) = match (lap.modulus > 1, lap.result == number) {
                        (true, _) => (Some((low, nearest)), Some((nearest, high))),
                        (false, true) => (None, Some((nearest, high))),
                        (false, false) => (Some((low, nearest)), None),
                    };
                    barred.extend([below, above].into_iter().flatten().filter(|(low, high)| low < high));
                }
                None => barred.push((low, high)),
            }
        }
        barred.sort_unstable();
        barred
    }

    /// The first place of a request that isn't barred.
    fn lowest(barred: &[Barred], alignment: i64) -> i64 {
        let mut offset = 0;
        for &(low, high) in barred {
            if low < offset && offset < high {
                offset = multiple_from(high, alignment);
            }
        }
        offset
    }

    /// The last place of a request below `room` that isn't barred.
    fn highest(barred: &[Barred], bytes: usize, alignment: i64, room: usize) -> Option<i64> {
        let down = |offset: i64| offset.div_euclid(alignment) * alignment;
        let mut by_end = barred.to_vec();
        by_end.sort_unstable_by_key(|&(low, high)| std::cmp::Reverse((high, low)));
        let mut offset = down(room as i64 - bytes as i64);
        for (low, high) in by_end {
            if low < offset && offset < high {
                offset = down(low);
            }
        }
        (offset >= 0).then_some(offset)
    }

    fn place(&self, order: &[usize]) -> Vec<usize> {
        let mut offsets = vec![None; self.requests.len()];
        for &index in order {
            let barred = self.barred(&offsets, index);
            offsets[index] = Some(Self::lowest(&barred, self.alignment_of(index)));
        }
        whole(&offsets)
    }

    /// Looks for places that end before those which are known, and before those that are found: below some rooms, in an order of which each that
    /// finds no place moves towards the front. One that may lie over another goes where it meets that one; others go where they went the last
    /// time, or to the other end after they found no place there. So that a search doesn't come round to where it was, some moves are random.
    fn improve(&self, order: &[usize], best: &mut Vec<usize>, bound: usize) {
        let mut generator = Generator::new(order.len() as u64);
        for share in SHARES {
            let (mut order, mut is_high) = (order.to_vec(), vec![false; self.requests.len()]);
            let (mut left, mut most) = (MOST_PLACED, end(self.requests, best));
            while left > 0 && most > bound {
                match self.place_below(&order, &is_high, bound + (most - bound) * share / 100) {
                    Ok(offsets) => {
                        left = left.saturating_sub(order.len());
                        *best = offsets;
                        most = end(self.requests, best);
                    }
                    Err(count) => {
                        left = left.saturating_sub(count + 1);
                        self.reorder(&mut order[..=count], &mut is_high, &mut generator);
                    }
                }
            }
        }
    }

    /// Moves the last one of some towards their front, and to the other end of its room.
    fn reorder(&self, order: &mut [usize], is_high: &mut [bool], generator: &mut Generator) {
        let [others @ .., index] = &*order else { return };
        let (others, index) = (others.len(), *index);
        is_high[index] ^= true;
        let front = if generator.one_in(16) { generator.range(0, others) } else { 0 };
        if generator.one_in(8) {
            is_high[generator.choose(&self.neighbours[index])] ^= true;
        }
        order[front..].rotate_right(1);
    }

    /// Places all requests below `room` in an order; or the place in it of the one that finds none.
    fn place_below(&self, order: &[usize], is_high: &[bool], room: usize) -> Result<Vec<usize>, usize> {
        let mut offsets = vec![None; self.requests.len()];
        for (count, &index) in order.iter().enumerate() {
            let (bytes, alignment) = (self.requests[index].bytes, self.alignment_of(index));
            let barred = self.barred(&offsets, index);
            let laps = || self.lapped[index].iter().map(|&lap| &self.laps[lap]);
            let is_over = laps().any(|lap| lap.result == index && offsets[lap.operand].is_some());
            let is_under = laps().any(|lap| lap.operand == index && offsets[lap.result].is_some());
            let lowest = Self::lowest(&barred, alignment);
            let fits = lowest + bytes as i64 <= room as i64;
            let highest = Self::highest(&barred, bytes, alignment, room).filter(|_| fits);
            let own = if is_over || is_high[index] && !is_under { highest } else { Some(lowest).filter(|_| fits) };
            offsets[index] = Some(own.ok_or(count)?);
        }
        Ok(whole(&offsets))
    }

    /// Places all requests below `room`: each at the lowest or the highest free place, with a bounded number of second thoughts. What finds no
    /// place is the fault of those that live at the same time, the last of which moves up (conflict-directed backjumping, Prosser 1993).
    fn place_within(&self, order: &[usize], room: usize) -> Option<Vec<usize>> {
        let mut offsets = vec![None; self.requests.len()];
        let mut is_high = vec![false; order.len()];
        let mut faults = vec![BTreeSet::new(); order.len()];
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(count, &index)| place[index] = count);
        let mut count = 0;
        for _ in 0..MOST_TRIES + 4 * self.requests.len() {
            let Some(&index) = order.get(count) else { return Some(whole(&offsets)) };
            let (bytes, alignment) = (self.requests[index].bytes, self.alignment_of(index));
            let barred = self.barred(&offsets, index);
            let low = Some(Self::lowest(&barred, alignment)).filter(|offset| offset + bytes as i64 <= room as i64);
            let high = Self::highest(&barred, bytes, alignment, room).filter(|_| low.is_some());
            if let Some(offset) = if is_high[count] { high.filter(|_| high != low) } else { low } {
                offsets[index] = Some(offset);
                count += 1;
                continue;
            }
            let earlier = self.neighbours[index].iter().map(|&other| place[other]);
            let mut own: BTreeSet<usize> = earlier.filter(|&earlier| earlier < count).collect();
            own.append(&mut faults[count]);
            // One that has been at both of its places hands on what it is at fault for.
            let mut last = own.pop_last()?;
            while is_high[last] {
                own.append(&mut faults[last]);
                own.retain(|&earlier| earlier < last);
                last = own.pop_last()?;
            }
            faults[last].append(&mut own);
            faults[last + 1..=count].iter_mut().for_each(BTreeSet::clear);
            is_high[last + 1..=count].fill(false);
            order[last..count].iter().for_each(|&index| offsets[index] = None);
            is_high[last] = true;
            count = last;
        }
        None
    }
}

/// The first multiple of some bytes that isn't less than a number.
pub fn multiple_from(number: i64, bytes: i64) -> i64 {
    -(-number).div_euclid(bytes.max(1)) * bytes.max(1)
}

/// Offsets from 0 on.
fn whole(offsets: &[Option<i64>]) -> Vec<usize> {
    offsets.iter().map(|&offset| offset.and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0)).collect()
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
        let mut generator = Generator::new(7);
        for _ in 0..200 {
            let count = generator.range(1, 12);
            let requests: Vec<Request> = (0..count)
                .map(|_| {
                    let first = generator.range(0, 9);
                    let alignment = generator.choose(&[1, 1, 8, 64, 256]);
                    Request { alignment, ..request(generator.range(1, 500), first, first + generator.range(0, 4)) }
                })
                .collect();
            let plan = plan(&requests, &[], 16);
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
    fn results_lie_over_operands_at_their_distance_or_apart() {
        let mut generator = Generator::new(9);
        let mut met = 0;
        for _ in 0..300 {
            let count = generator.range(2, 8);
            let requests: Vec<Request> =
                (0..count).map(|at| request(generator.range(1, 40) * 16, at, at + 1)).collect();
            let laps: Vec<Lap> = (1..count)
                .map(|result| {
                    let modulus = generator.choose(&[1, 1, 24]);
                    let distance = generator.range(0, 12) as i64 * 24 - 48;
                    Lap { result, operand: result - 1, distance, modulus }
                })
                .collect();
            let whole = plan(&requests, &[], 16);
            let plan = plan(&requests, &laps, 16);
            assert!(plan.liveness_bound_bytes <= plan.arena_bytes && plan.arena_bytes <= whole.arena_bytes);
            for lap in &laps {
                let (result, operand) = (&plan.buffers[lap.result], &plan.buffers[lap.operand]);
                let [over, under] = [result, operand].map(|own| own.offset as i64);
                let (over_end, under_end) = (over + result.bytes as i64, under + operand.bytes as i64);
                if over_end <= under || under_end <= over {
                    continue;
                }
                let distance = under - over;
                assert!(distance >= lap.distance && distance % lap.modulus as i64 == 0, "{distance} for {lap:?}");
                met += 1;
            }
        }
        assert!(met > 200, "{met}");
    }

    #[test]
    fn a_chain_of_kernels_that_run_ahead_takes_the_larger_tensor_and_a_row() {
        let requests: Vec<Request> = (0..2).map(|at| request(1024, at, at + 1)).collect();
        let lap = Lap { result: 1, operand: 0, distance: 100, modulus: 1 };
        assert_eq!(plan(&requests, &[lap], 16).arena_bytes, 1024 + 112);
        // In steps of a pixel: the first multiple of both.
        let lap = Lap { modulus: 24, distance: 120, ..lap };
        assert_eq!(plan(&requests, &[lap], 16).arena_bytes, 1024 + 144);
    }

    #[test]
    fn small_buffers_do_not_push_large_ones_apart() {
        let sizes = [512, 512, 512, 512, 32, 512, 512, 512, 512];
        let requests: Vec<Request> = (0..sizes.len()).map(|at| request(sizes[at], at, at + 1)).collect();
        assert_eq!(plan(&requests, &[], 16).arena_bytes, 1024);
    }

    #[test]
    fn a_chain_takes_two_buffers() {
        let requests = [request(64, 0, 1), request(64, 1, 2), request(64, 2, 3), request(64, 3, 4)];
        assert_eq!(plan(&requests, &[], 16).arena_bytes, 128);
    }

    /// Residual blocks one after the other: each result lies a row of 5 bytes before its operand, beside rings of 100 and 30 bytes. What lives at
    /// one time takes 235 bytes, but a result has moved on by a row where the next block begins.
    #[test]
    fn results_that_wander_leave_their_rings_room() {
        for blocks in 2..=6 {
            let tensor = |number: usize| request(100, (2 * number).saturating_sub(1), 2 * number + 1);
            let ring = |bytes: usize| move |block: usize| request(bytes, 2 * block + 1, 2 * block + 1);
            let tensors = (0..=blocks).map(tensor);
            let requests: Vec<Request> =
                tensors.chain((0..blocks).map(ring(100))).chain((0..blocks).map(ring(30))).collect();
            let laps: Vec<Lap> =
                (0..blocks).map(|block| Lap { result: block + 1, operand: block, distance: 5, modulus: 1 }).collect();
            let plan = plan(&requests, &laps, 1);
            assert_eq!(plan.liveness_bound_bytes, 235);
            assert_eq!(plan.arena_bytes, 235 + 5 * (blocks - 1), "{blocks} blocks");
        }
    }
}
