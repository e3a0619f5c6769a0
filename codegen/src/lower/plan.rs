//! The memory plan: offsets of the arena's buffers, so that buffers that live at the same time don't overlap.

use super::overlay::Distance;
use crate::loops::Direction;
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
    /// From the result's offset to the operand's, if it is written upwards.
    pub up: Option<Distance>,
    /// From the operand's offset to the result's, if that is written downwards.
    pub down: Option<Distance>,
}

impl Lap {
    /// Bytes that both take less than one behind the other.
    fn saved(&self, requests: &[Request], alignment: usize) -> usize {
        let [result, operand] =
            [self.result, self.operand].map(|number| requests[number].bytes.next_multiple_of(alignment));
        let ahead = |distance: Distance| usize::try_from(aligned(distance, alignment)).unwrap_or(0);
        let up = self.up.map(|distance| result.max(operand + ahead(distance)));
        let down = self.down.map(|distance| operand.max(result + ahead(distance)));
        up.into_iter().chain(down).min().map_or(0, |both| (result + operand).saturating_sub(both))
    }

    /// The same for loops that go one way only.
    fn towards(&self, direction: Direction) -> Lap {
        match direction {
            Direction::Upwards => Lap { down: None, ..*self },
            Direction::Downwards => Lap { up: None, ..*self },
        }
    }

    /// The number of the other one.
    fn beside(&self, number: usize) -> usize {
        if self.result == number { self.operand } else { self.result }
    }

    /// How far the one that has a number may be before the other one, and how far behind it.
    fn sides(&self, number: usize) -> [Option<Distance>; 2] {
        if self.result == number { [self.up, self.down] } else { [self.down, self.up] }
    }

    /// Whether that one can meet the other one on its own side alone: before it, or behind it.
    fn goes(&self, number: usize) -> Option<Side> {
        match self.sides(number) {
            [Some(_), None] => Some(Side::Before),
            [None, Some(_)] => Some(Side::Behind),
            _ => None,
        }
    }
}

/// Where one request is beside another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Behind,
}

/// The least distance that is a multiple of an alignment, too.
fn aligned(distance: Distance, alignment: usize) -> i64 {
    let modulus = distance.modulus.max(1);
    let multiple = (1..=alignment).map(|factor| factor * modulus).find(|all| all.is_multiple_of(alignment));
    multiple_from(distance.least, multiple.unwrap_or(alignment) as i64)
}

/// Places all requests, each at a multiple of `alignment` or its own, whichever is larger; so is the arena. The result's buffers are
/// in the order of the requests. Those that live at one time are apart, but for `laps`.
///
/// Two orders of a first-fit search are tried, by size and by start of life, and the smaller arena wins. Where both take more
/// than lives at one time, two searches follow: one with second thoughts for a plan that takes no more than that, and one for a smaller
/// plan, whose order is changed by what didn't fit.
pub fn plan(requests: &[Request], laps: &[Lap], alignment: usize) -> MemoryPlan {
    if let Some(one_way) = one_way(laps) {
        let plans = one_way.map(|laps| plan(requests, &laps, alignment));
        let [up, down] = plans;
        return if down.arena_bytes < up.arena_bytes { down } else { up };
    }
    let all = Requests::new(requests, laps, alignment);
    let mut by_size: Vec<usize> = (0..requests.len()).collect();
    by_size.sort_by_key(|&index| (std::cmp::Reverse(requests[index].bytes), requests[index].first, index));
    let mut by_start: Vec<usize> = (0..requests.len()).collect();
    by_start.sort_by_key(|&index| (requests[index].first, std::cmp::Reverse(requests[index].bytes), index));
    let candidates = [all.place(&by_size), all.place(&by_start)];
    // What fits where depends on the order: more freedom could end in more memory.
    let bound_ones = less_free(laps).map(|laps| plan(requests, &laps, alignment).buffers);
    let bound_ones = bound_ones.map(|buffers| buffers.iter().map(|buffer| buffer.offset).collect::<Vec<usize>>());
    let mut offsets =
        bound_ones.into_iter().chain(candidates).min_by_key(|offsets| end(requests, offsets)).unwrap_or_default();
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

/// The laps twice, those of results that lie over several operands upwards alone, and downwards alone: some would need loops one way, and others of
/// the same result the other one. `None` where there is no such result.
fn one_way(laps: &[Lap]) -> Option<[Vec<Lap>; 2]> {
    let is_one_of_several = |lap: &Lap| laps.iter().filter(|other| other.result == lap.result).count() > 1;
    let goes = |is_there: fn(&Lap) -> bool| laps.iter().any(|lap| is_there(lap) && is_one_of_several(lap));
    (goes(|lap| lap.up.is_some()) && goes(|lap| lap.down.is_some())).then_some(())?;
    let towards = |direction: Direction| {
        let one = |lap: &Lap| if is_one_of_several(lap) { lap.towards(direction) } else { *lap };
        laps.iter().map(one).filter(|lap| lap.up.is_some() || lap.down.is_some()).collect()
    };
    Some([Direction::Upwards, Direction::Downwards].map(towards))
}

/// Fewer ways to lie over each other: none downwards, or none at all; `None` where there is nothing to leave out.
fn less_free(laps: &[Lap]) -> Option<Vec<Lap>> {
    if laps.iter().all(|lap| lap.down.is_none()) {
        return (!laps.is_empty()).then(Vec::new);
    }
    Some(laps.iter().filter(|lap| lap.up.is_some()).map(|lap| Lap { down: None, ..*lap }).collect())
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
    /// Where each can't be beside others that live at the same time, from the offset of each of those on.
    beside: Vec<Vec<(usize, Barred)>>,
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
        let neighbours: Vec<Vec<usize>> = requests.iter().map(others).collect();
        let beside = neighbours.iter().enumerate().map(|(number, others)| {
            let others = others.iter().copied().filter(|&other| other != number);
            let laps =
                |other: usize| lapped[number].iter().map(|&lap| &laps[lap]).find(|lap| lap.beside(number) == other);
            let barred = |other: usize| {
                let all = barred_beside(requests[number].bytes, requests[other].bytes, laps(other), number, alignment);
                all.into_iter().map(move |own| (other, own))
            };
            others.flat_map(barred).collect()
        });
        let beside = beside.collect();
        Requests { requests, laps, lapped, neighbours, beside, alignment }
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

    /// Finds where a request can't be since others are placed that live at the same time, in order. Searches ask so often that `barred` is memory
    /// that was used before.
    fn find_barred(&self, offsets: &[Option<i64>], number: usize, barred: &mut Vec<Barred>) {
        barred.clear();
        let placed = self.beside[number].iter().filter_map(|&(other, own)| Some((offsets[other]?, own)));
        barred.extend(placed.map(|(offset, (low, high))| (offset + low, offset + high)));
        barred.sort_unstable();
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
    fn highest(barred: &mut [Barred], bytes: usize, alignment: i64, room: usize) -> Option<i64> {
        let down = |offset: i64| offset.div_euclid(alignment) * alignment;
        barred.sort_unstable_by_key(|&(low, high)| std::cmp::Reverse((high, low)));
        let mut offset = down(room as i64 - bytes as i64);
        for &mut (low, high) in barred {
            if low < offset && offset < high {
                offset = down(low);
            }
        }
        (offset >= 0).then_some(offset)
    }

    fn place(&self, order: &[usize]) -> Vec<usize> {
        let (mut offsets, mut barred) = (vec![None; self.requests.len()], Vec::new());
        for &index in order {
            self.find_barred(&offsets, index, &mut barred);
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
        let (mut offsets, mut barred) = (vec![None; self.requests.len()], Vec::new());
        for (count, &index) in order.iter().enumerate() {
            let (bytes, alignment) = (self.requests[index].bytes, self.alignment_of(index));
            self.find_barred(&offsets, index, &mut barred);
            let laps = || self.lapped[index].iter().map(|&lap| &self.laps[lap]);
            let goes = |side: Side| {
                let placed = laps().filter(|lap| offsets[lap.beside(index)].is_some());
                placed.map(|lap| lap.goes(index)).any(|own| own == Some(side))
            };
            let (is_over, is_under) = (goes(Side::Before), goes(Side::Behind));
            let lowest = Self::lowest(&barred, alignment);
            let own = match is_over || is_high[index] && !is_under {
                _ if lowest + bytes as i64 > room as i64 => None,
                true => Self::highest(&mut barred, bytes, alignment, room),
                false => Some(lowest),
            };
            offsets[index] = Some(own.ok_or(count)?);
        }
        Ok(whole(&offsets))
    }

    /// Places all requests below `room`: each at the lowest or the highest free place, with a bounded number of second thoughts. What finds no
    /// place is the fault of those that live at the same time, the last of which moves up (conflict-directed backjumping, Prosser 1993).
    fn place_within(&self, order: &[usize], room: usize) -> Option<Vec<usize>> {
        let (mut offsets, mut barred) = (vec![None; self.requests.len()], Vec::new());
        let mut is_high = vec![false; order.len()];
        let mut faults = vec![BTreeSet::new(); order.len()];
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(count, &index)| place[index] = count);
        let mut count = 0;
        for _ in 0..MOST_TRIES + 4 * self.requests.len() {
            let Some(&index) = order.get(count) else { return Some(whole(&offsets)) };
            let (bytes, alignment) = (self.requests[index].bytes, self.alignment_of(index));
            self.find_barred(&offsets, index, &mut barred);
            let low = Self::lowest(&barred, alignment);
            let own = match is_high[count] {
                _ if low + bytes as i64 > room as i64 => None,
                true => Self::highest(&mut barred, bytes, alignment, room).filter(|&high| high != low),
                false => Some(low),
            };
            if let Some(offset) = own {
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

/// Where a request of some bytes can't be beside another one, from whose offset the places count; `lap` says what both have in common.
fn barred_beside(own: usize, other: usize, lap: Option<&Lap>, number: usize, alignment: usize) -> Vec<Barred> {
    let (low, high) = (-(own as i64), other as i64);
    let Some(lap) = lap else { return vec![(low, high)] };
    // In steps, only the nearest one is looked at.
    let [before, behind] =
        lap.sides(number).map(|distance| distance.map(|own| (aligned(own, alignment), own.modulus > 1)));
    let mut free = vec![(low, low), (high, high)];
    free.extend(before.map(|(distance, is_in_steps)| {
        let nearest = (-distance).clamp(low, high);
        (if is_in_steps { nearest } else { low }, nearest)
    }));
    free.extend(behind.map(|(distance, is_in_steps)| {
        let nearest = distance.clamp(low, high);
        (nearest, if is_in_steps { nearest } else { high })
    }));
    between(free)
}

/// What is between intervals.
fn between(mut intervals: Vec<Barred>) -> Vec<Barred> {
    intervals.sort_unstable();
    let mut gaps = Vec::new();
    let mut end = i64::MAX;
    for (first, last) in intervals {
        if end < first {
            gaps.push((end, first));
        }
        end = if end == i64::MAX { last } else { end.max(last) };
    }
    gaps
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
mod tests;
