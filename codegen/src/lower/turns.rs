//! [`Turns`]: when the kernels of a stripe run, and how many rows of each result are kept.
//!
//! All kernels compute the same number of rows at a time. A kernel runs as soon as what it reads has been computed, and then in step with
//! who computes it: half as often behind a stride of two. So what it reads lies at one place of the ring of rows whenever it runs. The
//! rows of the border behind an operand are appended in the place of computed ones; those before it are there when the first turn begins.
//! Who reads each row several times runs more often than who computes it, and as soon as a row is there, so that it is the newest one each time.

use mlc_ir::RowWindow;

/// One that appends rows to a tensor.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Rows of the tensor.
    pub rows: usize,
    /// The rows that it reads, each of an earlier worker's tensor.
    pub reads: Vec<(usize, RowWindow)>,
}

/// When workers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turns {
    /// The number of turns.
    pub count: usize,
    /// Each worker's.
    pub workers: Vec<WorkerTurns>,
}

/// When a worker runs: in turn `first` and each `period` turns later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerTurns {
    /// Its first turn.
    pub first: usize,
    /// Turns from one time to the next.
    pub period: usize,
    /// How often it computes rows.
    pub computed: usize,
    /// How often rows are appended, the border behind the last row included.
    pub appended: usize,
    /// Rows that its ring holds; none of the last worker's result, which is whole.
    pub ring: usize,
    /// For each of its reads, the row of the ring that is the first of those that it reads.
    pub places: Vec<usize>,
}

impl WorkerTurns {
    /// How often it has run before a turn, if that is one of its own.
    pub fn act(&self, turn: usize) -> Option<usize> {
        let since = turn.checked_sub(self.first).filter(|since| since.is_multiple_of(self.period))?;
        Some(since / self.period).filter(|&act| act < self.appended)
    }

    /// The last turn in which it appends rows.
    fn last(&self) -> usize {
        self.first + self.appended.saturating_sub(1) * self.period
    }
}

impl Turns {
    /// Finds the turns of workers, each behind those that it reads from, that append `step` rows at a time. The last one's result is the
    /// stripe's. `None` where some rows aren't read, or can't be read in step.
    pub fn new(workers: &[Worker], step: usize) -> Option<Turns> {
        let scales = scales(workers)?;
        let fastest = *scales.iter().max()?;
        let repeats = workers.iter().flat_map(|worker| &worker.reads).any(|(_, window)| window.repeat > 1);
        if repeats && step > 1 {
            return None;
        }
        let mut turns: Vec<WorkerTurns> = Vec::with_capacity(workers.len());
        for (worker, &scale) in workers.iter().zip(&scales) {
            if step == 0 || worker.rows == 0 || !worker.rows.is_multiple_of(step) || !fastest.is_multiple_of(scale) {
                return None;
            }
            let first = worker.reads.iter().map(|(other, window)| {
                let other = &turns[*other];
                other.first + other.period * (last_row(window, step).max(0) as usize / step)
            });
            let first = in_step(worker, first.max().unwrap_or(0), &turns);
            let computed = worker.rows / step;
            turns.push(WorkerTurns {
                first,
                period: fastest / scale,
                computed,
                appended: computed,
                ring: 0,
                places: Vec::new(),
            });
        }
        start_late(workers, &mut turns, step);
        if workers.iter().zip(&turns).any(|(worker, own)| in_step(worker, own.first, &turns) != own.first) {
            return None;
        }
        let count = turns.last()?.last() + 1;
        keep(workers, &mut turns, step)?;
        Some(Turns { count, workers: turns })
    }
}

/// The first turn from one on in which a worker finds the rows that it reads several times where it finds them later, too: none comes between
/// the times that it reads one.
fn in_step(worker: &Worker, first: usize, turns: &[WorkerTurns]) -> usize {
    let repeating = worker.reads.iter().filter(|(_, window)| window.repeat > 1);
    let first_in_step = |first: usize, (other, window): &(usize, RowWindow)| {
        let other = &turns[*other];
        let since = (first - other.first) % other.period;
        if since < other.period / window.repeat { first } else { first + other.period - since }
    };
    repeating.fold(first, first_in_step)
}

/// How many rows each worker appends, in proportion to what the others do.
fn scales(workers: &[Worker]) -> Option<Vec<usize>> {
    let within = |scale: &usize| *scale <= i32::MAX as usize;
    let mut scales: Vec<Option<usize>> = vec![None; workers.len()];
    let reads = workers.iter().flat_map(|worker| &worker.reads);
    let mut repeats = reads.map(|(_, window)| window.repeat);
    let own = repeats.try_fold(1, |product: usize, repeat| product.checked_mul(repeat).filter(within))?;
    *scales.last_mut()? = Some(own);
    for (number, worker) in workers.iter().enumerate().rev() {
        let own = scales[number]?;
        for &(other, window) in &worker.reads {
            let rows = own.checked_mul(window.stride).filter(within)?;
            let scale = rows.checked_div(window.repeat).filter(|scale| scale * window.repeat == rows)?;
            if window.repeat > 1 && window.stride > 1 {
                return None;
            }
            if scales[other].is_some_and(|known| known != scale) {
                return None;
            }
            scales[other] = Some(scale);
        }
    }
    scales.into_iter().collect()
}

/// The last row that is read for the first `step` rows, counted from the first row of the tensor.
fn last_row(window: &RowWindow, step: usize) -> i64 {
    window.reach(step) as i64 - 1 - window.pads.0 as i64
}

/// Has workers that read nothing begin no earlier than they must.
fn start_late(workers: &[Worker], turns: &mut [WorkerTurns], step: usize) {
    for number in (0..workers.len()).filter(|&number| workers[number].reads.is_empty()) {
        let readers = workers.iter().zip(&*turns).flat_map(|(reader, own)| {
            let reads = reader.reads.iter().filter(|(other, _)| *other == number);
            reads.map(|(_, window)| (own.first, last_row(window, step).max(0) as usize / step))
        });
        let period = turns[number].period;
        let latest = readers.map(|(first, acts)| first - acts * period).min();
        turns[number].first = latest.unwrap_or(0);
    }
}

/// Finds how many rows the rings hold, where they are read, and how often rows are appended.
fn keep(workers: &[Worker], turns: &mut [WorkerTurns], step: usize) -> Option<()> {
    // Rows from the first that is read to the newest of the ring, whenever a worker runs.
    let behind = |own: &WorkerTurns, other: &WorkerTurns, window: &RowWindow| {
        let newest = ((own.first - other.first) / other.period + 1) * step;
        newest + window.pads.0
    };
    for (number, worker) in workers.iter().enumerate().rev() {
        // What nobody reads any more isn't computed.
        turns[number].computed = turns[number].computed.min(turns[number].appended);
        for (other, window) in &worker.reads {
            let rows = behind(&turns[number], &turns[*other], window);
            let last = turns[number].first + turns[number].computed.checked_sub(1)? * turns[number].period;
            let other = &mut turns[*other];
            let first_time = other.ring == 0;
            let appended = (last - other.first) / other.period + 1;
            other.appended = if first_time { appended } else { other.appended.max(appended) };
            other.ring = other.ring.max(rows).max(step);
        }
    }
    for (number, worker) in workers.iter().enumerate() {
        let place =
            |(other, window): &(usize, RowWindow)| turns[*other].ring - behind(&turns[number], &turns[*other], window);
        turns[number].places = worker.reads.iter().map(place).collect();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Generator;

    /// What is in a row of a ring: a row of the worker's tensor, or of its border.
    type Tag = Option<usize>;

    /// Runs turns on rings of tags; whether every read found the rows that it is for, and the stripe's result was computed.
    fn finds_all(workers: &[Worker], turns: &Turns, step: usize) -> bool {
        let mut rings: Vec<Vec<Tag>> = turns.workers.iter().map(|own| vec![None; own.ring]).collect();
        let mut written = 0;
        for turn in 0..turns.count {
            for (number, (worker, own)) in workers.iter().zip(&turns.workers).enumerate() {
                let Some(act) = own.act(turn) else { continue };
                let is_computed = act < own.computed;
                for ((other, window), &place) in worker.reads.iter().zip(&own.places).filter(|_| is_computed) {
                    for tap in (0..step).flat_map(|row| (0..window.taps).map(move |tap| (row, tap))) {
                        let inside = tap.0 * window.stride + tap.1 * window.dilation;
                        let row = (act * step / window.repeat * window.stride + inside).checked_sub(window.pads.0);
                        let meant = row.filter(|&row| row < workers[*other].rows);
                        if rings[*other].get(place + inside) != Some(&meant) {
                            return false;
                        }
                    }
                }
                if number + 1 == workers.len() {
                    written += step;
                    continue;
                }
                let kept = own.ring - step;
                rings[number].copy_within(step.., 0);
                for row in 0..step {
                    rings[number][kept + row] = is_computed.then_some(act * step + row);
                }
            }
        }
        Some(written) == workers.last().map(|worker| worker.rows)
    }

    fn window(generator: &mut Generator) -> RowWindow {
        let (taps, dilation) = (generator.range(1, 4), generator.choose(&[1, 1, 2]));
        let reach = (taps - 1) * dilation;
        let pads = (generator.range(0, reach), generator.range(0, reach));
        RowWindow { taps, stride: generator.choose(&[1, 1, 2, 3]), dilation, pads, border: 0, repeat: 1 }
    }

    /// Chains of windows with branches that read the same rows, and sums that join them.
    fn random(generator: &mut Generator) -> Option<Vec<Worker>> {
        let mut workers = vec![Worker { rows: generator.range(4, 40), reads: Vec::new() }];
        for _ in 0..generator.range(1, 6) {
            let last = workers.len() - 1;
            if generator.one_in(4) {
                // Each row several times, beside rows of as many that were there before.
                let repeat = generator.range(2, 3);
                let rows = workers[last].rows * repeat;
                let skipped = (0..last).rev().find(|&other| workers[other].rows == rows);
                let skipped = skipped.map(|other| (other, RowWindow::ROW));
                let reads = [(last, RowWindow { repeat, ..RowWindow::ROW })].into_iter().chain(skipped).collect();
                workers.push(Worker { rows, reads });
                continue;
            }
            let window = window(generator);
            let padded = workers[last].rows + window.pads.0 + window.pads.1;
            let rows = padded.checked_sub(window.reach(1))? / window.stride + 1;
            workers.push(Worker { rows, reads: vec![(last, window)] });
            if generator.one_in(3) {
                // A shortcut around the window, in its steps.
                let shortcut = RowWindow { taps: 1, dilation: 1, pads: (0, 0), ..window };
                if (rows - 1) * window.stride < workers[last].rows {
                    workers.push(Worker { rows, reads: vec![(last, shortcut), (last + 1, RowWindow::ROW)] });
                }
            }
        }
        Some(workers)
    }

    #[test]
    fn every_read_finds_its_rows_and_rings_have_none_to_spare() {
        let mut generator = Generator::new(7);
        let (mut found, mut tight, mut repeating) = (0, 0, 0);
        for _ in 0..4000 {
            let Some(workers) = random(&mut generator) else { continue };
            let step = generator.choose(&[1, 1, 2, 3]);
            let Some(turns) = Turns::new(&workers, step) else { continue };
            found += 1;
            repeating +=
                usize::from(workers.iter().flat_map(|worker| &worker.reads).any(|(_, window)| window.repeat > 1));
            assert!(finds_all(&workers, &turns, step), "{workers:?} {turns:?}");
            for number in 0..workers.len() - 1 {
                // With a row less, those that read the oldest miss it.
                let mut less = turns.clone();
                if less.workers[number].ring <= step {
                    continue;
                }
                less.workers[number].ring -= 1;
                for (worker, own) in workers.iter().zip(&mut less.workers) {
                    for ((other, _), place) in worker.reads.iter().zip(&mut own.places) {
                        *place = place.saturating_sub(usize::from(*other == number));
                    }
                }
                tight += 1;
                assert!(!finds_all(&workers, &less, step), "{number} of {workers:?} {turns:?}");
            }
        }
        assert!(found > 1000 && tight > 2000 && repeating > 300, "{found} {tight} {repeating}");
    }

    #[test]
    fn a_ring_for_one_reader_holds_its_window() {
        let same = RowWindow { taps: 3, pads: (1, 1), ..RowWindow::ROW };
        let chain = [
            Worker { rows: 25, reads: Vec::new() },
            Worker { rows: 25, reads: vec![(0, same)] },
            Worker { rows: 25, reads: vec![(1, RowWindow::ROW)] },
        ];
        let rings: Vec<usize> = Turns::new(&chain, 1).unwrap().workers.iter().map(|own| own.ring).collect();
        assert_eq!(rings, [3, 1, 0]);
    }

    #[test]
    fn a_residual_keeps_rows_until_they_are_added() {
        let same = RowWindow { taps: 3, pads: (1, 1), ..RowWindow::ROW };
        let block = [
            Worker { rows: 32, reads: Vec::new() },
            Worker { rows: 32, reads: vec![(0, same)] },
            Worker { rows: 32, reads: vec![(1, same), (0, RowWindow::ROW)] },
        ];
        let rings: Vec<usize> = Turns::new(&block, 1).unwrap().workers.iter().map(|own| own.ring).collect();
        assert_eq!(rings, [3, 3, 0]);
    }
}
