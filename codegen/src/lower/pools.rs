//! Several memories: what of an arena lies in which piece. What is accessed most often, for its size, is placed first, each in the first
//! piece that has room for it; slow ones come last.

use super::plan::{self, Lap, Request};
use crate::execution::MemoryPool;
use crate::module::{MemoryPlan, PlannedPool};
use mlc_ir::{Code, Diagnostic, Location};

/// What is to be placed in pieces of memory.
pub(super) struct Wanted<'a> {
    pub(super) requests: &'a [Request],
    /// Those that may lie over each other, where one piece holds both.
    pub(super) laps: &'a [Lap],
    pub(super) pools: &'a [MemoryPool],
    pub(super) alignment: usize,
}

/// Places all requests, of each of which so many bytes are accessed in a run, in pieces of memory. Offsets are those of an arena in which
/// what is in one piece is behind what is in the one before.
///
/// # Errors
/// `MLC0402` when they don't fit, with what found no place.
pub(super) fn plan(wanted: &Wanted<'_>, accessed: &[f64]) -> Result<MemoryPlan, Diagnostic> {
    let requests = wanted.requests;
    let all = || (0..requests.len()).collect::<Vec<usize>>();
    let heat = |index: usize| accessed[index] / requests[index].bytes.max(1) as f64;
    let mut by_heat = all();
    by_heat.sort_by(|&left, &right| heat(right).total_cmp(&heat(left)).then(left.cmp(&right)));
    // What is large finds a place more easily where nothing else is yet.
    let mut by_size = all();
    by_size.sort_by_key(|&index| (std::cmp::Reverse(requests[index].bytes), index));
    let mut failed = None;
    for order in [by_heat, by_size] {
        match wanted.assigned(&order) {
            Ok(held) => return Ok(wanted.joined(&held)),
            Err(index) => failed = failed.or(Some(index)),
        }
    }
    Err(wanted.refusal(failed))
}

impl Wanted<'_> {
    /// The requests that each piece of memory holds; or the first that none has room for.
    fn assigned(&self, order: &[usize]) -> Result<Vec<Vec<usize>>, usize> {
        let pools = self.pools;
        let mut held: Vec<Vec<usize>> = vec![Vec::new(); pools.len()];
        let fast_first =
            || [false, true].into_iter().flat_map(|slow| (0..pools.len()).filter(move |&k| pools[k].is_slow == slow));
        for &index in order {
            let fits = |pool: &usize| {
                let together: Vec<usize> = held[*pool].iter().copied().chain([index]).collect();
                self.part(&together).arena_bytes <= pools[*pool].bytes
            };
            let pool = fast_first().find(fits).ok_or(index)?;
            held[pool].push(index);
        }
        held.iter_mut().for_each(|list| list.sort_unstable());
        Ok(held)
    }

    /// The plan of all in one piece of memory.
    fn whole(&self) -> MemoryPlan {
        plan::plan(self.requests, self.laps, self.alignment)
    }

    /// The plan of some requests alone.
    fn part(&self, some: &[usize]) -> MemoryPlan {
        let requests: Vec<Request> = some.iter().map(|&index| self.requests[index].clone()).collect();
        let place = |index: usize| some.iter().position(|&one| one == index);
        let lap = |lap: &Lap| Some(Lap { result: place(lap.result)?, operand: place(lap.operand)?, ..*lap });
        let laps: Vec<Lap> = self.laps.iter().filter_map(lap).collect();
        plan::plan(&requests, &laps, self.alignment)
    }

    /// One plan of what all pieces hold.
    fn joined(&self, held: &[Vec<usize>]) -> MemoryPlan {
        let whole = self.requests.iter().map(|request| request.alignment).fold(self.alignment, usize::max);
        let mut joined = self.whole();
        let mut offset = 0;
        for (pool, list) in self.pools.iter().zip(held) {
            // Sorted as they were when it was found that they fit in any order: plans don't depend on it.
            let own = self.part(list);
            for (&index, buffer) in list.iter().zip(&own.buffers) {
                joined.buffers[index].offset = offset + buffer.offset;
            }
            let bytes = own.arena_bytes;
            joined.pools.push(PlannedPool { name: pool.name.clone(), offset, bytes, is_slow: pool.is_slow });
            offset = (offset + bytes).next_multiple_of(whole);
        }
        joined.arena_bytes = offset;
        if offset == 0 {
            joined.pools.clear();
        }
        joined
    }

    fn refusal(&self, failed: Option<usize>) -> Diagnostic {
        let size = |pool: &MemoryPool| format!("'{}' has {}", pool.name, pool.bytes);
        let sizes: Vec<String> = self.pools.iter().map(size).collect();
        let needed = self.whole().arena_bytes;
        let message = format!("the {needed} bytes of working memory don't fit the pools: {}", sizes.join(", "));
        let fault = Diagnostic::error(Code::MemoryExceeded, Location::default(), message);
        let fault = match failed.map(|index| &self.requests[index]) {
            Some(Request { values, bytes, .. }) => {
                let name = values.first().map_or("scratch", String::as_str);
                fault.with_note(format!("'{name}', {bytes} bytes, finds no place in any of them"))
            }
            None => fault,
        };
        fault.with_help("make a pool larger, or ask for a smaller program by '--optimize ram' or '--ram'")
    }
}

#[cfg(test)]
mod tests {
    use super::super::overlay::Distance;
    use super::*;

    fn request(name: &str, bytes: usize, first: usize, last: usize) -> Request {
        Request { values: vec![name.into()], bytes, alignment: 1, first, last }
    }

    fn pool(name: &str, bytes: usize, is_slow: bool) -> MemoryPool {
        MemoryPool { name: name.into(), bytes, is_slow }
    }

    #[test]
    fn one_pool_holds_what_lies_over_each_other() {
        let requests = [request("operand", 512, 0, 1), request("result", 512, 1, 2)];
        let pools = [pool("only", 600, false)];
        let up = Some(Distance { least: 64, modulus: 1 });
        let laps = [Lap { result: 1, operand: 0, up, down: None }];
        let wanted = Wanted { requests: &requests, laps: &laps, pools: &pools, alignment: 16 };
        let offsets: Vec<usize> =
            plan(&wanted, &[1.0, 1.0]).unwrap().buffers.iter().map(|buffer| buffer.offset).collect();
        assert_eq!(offsets, [64, 0]);
        assert!(plan(&Wanted { laps: &[], ..wanted }, &[1.0, 1.0]).is_err());
    }

    #[test]
    fn what_is_hot_is_in_fast_memory() {
        let requests = [request("cold", 96, 0, 2), request("hot", 64, 0, 1), request("warm", 64, 1, 2)];
        let pools = [pool("slow", 1000, true), pool("fast", 128, false)];
        let plan =
            plan(&Wanted { requests: &requests, laps: &[], pools: &pools, alignment: 16 }, &[96.0, 6400.0, 640.0])
                .unwrap();
        let ends: Vec<(usize, usize)> = plan.pools.iter().map(|pool| (pool.offset, pool.bytes)).collect();
        assert_eq!((ends, plan.arena_bytes), (vec![(0, 96), (96, 128)], 224));
        assert_eq!(plan.buffers.iter().map(|buffer| buffer.offset).collect::<Vec<_>>(), [0, 96, 160]);
    }

    #[test]
    fn random_requests_keep_to_their_pools() {
        let mut generator = mlc_ir::Generator::new(3);
        let mut refused = 0;
        for _ in 0..300 {
            let count = generator.range(1, 10);
            let requests: Vec<Request> = (0..count)
                .map(|_| {
                    let first = generator.range(0, 6);
                    let alignment = generator.choose(&[1, 1, 64]);
                    Request { alignment, ..request("x", generator.range(1, 300), first, first + generator.range(0, 3)) }
                })
                .collect();
            let accessed: Vec<f64> = (0..count).map(|_| generator.range(0, 5000) as f64).collect();
            let pools = [pool("a", generator.range(0, 400), false), pool("b", generator.range(100, 900), true)];
            let Ok(plan) = plan(&Wanted { requests: &requests, laps: &[], pools: &pools, alignment: 16 }, &accessed)
            else {
                refused += 1;
                continue;
            };
            for (number, buffer) in plan.buffers.iter().enumerate() {
                assert_eq!(buffer.offset % requests[number].alignment.max(16), 0);
                let holds = |pool: &&PlannedPool| {
                    pool.offset <= buffer.offset && buffer.offset + buffer.bytes <= pool.offset + pool.bytes
                };
                assert_eq!(plan.pools.iter().filter(holds).count(), 1, "{plan:?}");
                for other in &plan.buffers[..number] {
                    let together = other.first <= buffer.last && buffer.first <= other.last;
                    let apart =
                        other.offset + other.bytes <= buffer.offset || buffer.offset + buffer.bytes <= other.offset;
                    assert!(!together || apart, "{plan:?}");
                }
            }
            assert!(plan.pools.iter().zip(&pools).all(|(planned, pool)| planned.bytes <= pool.bytes));
        }
        assert!((1..200).contains(&refused), "{refused}");
    }

    #[test]
    fn what_does_not_fit_is_told_with_figures() {
        let requests = [request("small", 32, 0, 1), request("large", 512, 0, 1)];
        let pools = [pool("fast", 256, false), pool("slow", 256, true)];
        let fault =
            plan(&Wanted { requests: &requests, laps: &[], pools: &pools, alignment: 16 }, &[1.0, 1.0]).unwrap_err();
        assert_eq!(fault.code, Code::MemoryExceeded);
        assert_eq!(
            fault.message,
            "the 544 bytes of working memory don't fit the pools: 'fast' has 256, 'slow' has 256"
        );
        assert!(fault.notes[0].contains("'large', 512 bytes"), "{fault:?}");
    }
}
