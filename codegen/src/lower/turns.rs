//! [`Turns`]: when the kernels of a stripe run, and how many rows of each result are kept.
//!
//! All kernels compute the same number of rows at a time, each in step with who computes what it reads: half as often behind a stride of two.
//! So what it reads lies at one place of the ring of rows whenever it runs. The last kernel runs as soon as what it reads can be there; of the
//! others, those that aren't needed so soon run later where rings hold fewer rows then ([`retiming`]). The rows of the border behind
//! an operand are appended in the place of computed ones; those before it are there when the first turn begins.
//! Who reads each row several times runs more often than who computes it, and as soon as a row is there, so that it is the newest one each time.

use super::retiming;
use super::workers::{Worker, WorkerTurns, appended, are_in_step, behind, earliest, in_step, latest, readers};
use mlc_ir::RowWindow;

/// When workers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turns {
    /// The number of turns.
    pub count: usize,
    /// Each worker's.
    pub workers: Vec<WorkerTurns>,
    /// The workers in the order in which they run in a turn; the last one is the last.
    pub order: Vec<usize>,
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
            let first = in_step(worker, earliest(worker, &turns, step).unwrap_or(0), &turns);
            let computed = worker.rows / step;
            turns.push(WorkerTurns {
                first,
                period: fastest / scale,
                computed,
                appended: computed,
                ring: 0,
                places: Vec::new(),
                until: None,
            });
        }
        start_late(workers, &mut turns, step);
        let soon = Turns::at(workers, turns.clone(), step);
        let late = [retiming::Local::Free, retiming::Local::Counted].into_iter().map(|local| {
            let mut turns = turns.clone();
            retiming::move_back(workers, &mut turns, step, local);
            Turns::at(workers, turns, step)
        });
        // The first one of those that take least.
        std::iter::once(soon).chain(late).flatten().min_by_key(|turns| turns.bytes(workers))
    }

    /// The turns of workers that begin when they do; `None` where one isn't in step with another.
    fn at(workers: &[Worker], mut turns: Vec<WorkerTurns>, step: usize) -> Option<Turns> {
        if !are_in_step(workers, &turns) {
            return None;
        }
        let count = turns.last()?.last() + 1;
        let order = retiming::order(workers, &turns, step);
        keep(workers, &mut turns, &order, step)?;
        Some(Turns { count, workers: turns, order })
    }

    /// Bytes of all rings at one time, at most, of how many each takes: those that last, and those of a turn alone that live then.
    pub fn most_alive(&self, bytes: &[usize]) -> usize {
        let place = places(&self.order);
        let at = |now: usize| -> usize {
            let lives = |number: usize| {
                self.workers[number].until.is_none_or(|until| place[number] <= now && now <= place[until])
            };
            bytes.iter().enumerate().filter(|(number, _)| lives(*number)).map(|(_, bytes)| bytes).sum()
        };
        (0..self.workers.len()).map(at).max().unwrap_or(0)
    }

    fn bytes(&self, workers: &[Worker]) -> usize {
        let rings: Vec<usize> =
            workers.iter().zip(&self.workers).map(|(worker, own)| worker.bytes * own.ring).collect();
        self.most_alive(&rings)
    }
}

/// Where each worker is in an order.
fn places(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &number)| places[number] = place);
    places
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

/// Has workers that read nothing begin no earlier than they must.
fn start_late(workers: &[Worker], turns: &mut [WorkerTurns], step: usize) {
    for number in (0..workers.len()).filter(|&number| workers[number].reads.is_empty()) {
        turns[number].first = latest(workers, turns, number, step).unwrap_or(0);
    }
}

/// Finds how many rows the rings hold, where they are read, how often rows are appended, and which are needed in a turn alone.
fn keep(workers: &[Worker], turns: &mut [WorkerTurns], order: &[usize], step: usize) -> Option<()> {
    let place = places(order);
    for (number, worker) in workers.iter().enumerate().rev() {
        // What nobody reads any more isn't computed.
        turns[number].computed = turns[number].computed.min(turns[number].appended);
        for (other, window) in &worker.reads {
            let is_before = place[number] < place[*other];
            let rows = behind(&turns[number], (&turns[*other], window), is_before, step);
            let last = turns[number].first + turns[number].computed.checked_sub(1)? * turns[number].period;
            let other = &mut turns[*other];
            let first_time = other.ring == 0;
            let appended = appended(last, other, is_before);
            other.appended = if first_time { appended } else { other.appended.max(appended) };
            other.ring = other.ring.max(rows).max(step);
        }
    }
    for (number, worker) in workers.iter().enumerate() {
        let place = |(other, window): &(usize, RowWindow)| {
            let is_before = place[number] < place[*other];
            turns[*other].ring - behind(&turns[number], (&turns[*other], window), is_before, step)
        };
        turns[number].places = worker.reads.iter().map(place).collect();
    }
    for number in 0..workers.len().saturating_sub(1) {
        turns[number].until = until(workers, turns, number, step).max_by_key(|&reader| place[reader]);
    }
    Some(())
}

/// The readers of a ring that is needed in a turn alone; none of another one.
fn until<'a>(
    workers: &'a [Worker],
    turns: &[WorkerTurns],
    number: usize,
    step: usize,
) -> impl Iterator<Item = usize> + use<'a> {
    let readers = readers(workers, number);
    let (own, worker) = (&turns[number], &workers[number]);
    let is_at_once = readers.clone().all(|(reader, window)| turns[reader].first == own.first && window.repeat == 1);
    let is_local = own.ring == step && !worker.has_border && is_at_once;
    readers.filter(move |_| is_local).map(|(reader, _)| reader)
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
            for &number in &turns.order {
                let (worker, own) = (&workers[number], &turns.workers[number]);
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
        let worker = |generator: &mut Generator, rows, reads| Worker {
            rows,
            bytes: generator.range(1, 9),
            has_border: generator.one_in(3),
            reads,
        };
        let rows = generator.range(4, 40);
        let mut workers = vec![worker(generator, rows, Vec::new())];
        for _ in 0..generator.range(1, 6) {
            let last = workers.len() - 1;
            if generator.one_in(4) {
                // Each row several times, beside rows of as many that were there before.
                let repeat = generator.range(2, 3);
                let rows = workers[last].rows * repeat;
                let skipped = (0..last).rev().find(|&other| workers[other].rows == rows);
                let skipped = skipped.map(|other| (other, RowWindow::ROW));
                let reads = [(last, RowWindow { repeat, ..RowWindow::ROW })].into_iter().chain(skipped).collect();
                workers.push(worker(generator, rows, reads));
                continue;
            }
            let window = window(generator);
            let padded = workers[last].rows + window.pads.0 + window.pads.1;
            let rows = padded.checked_sub(window.reach(1))? / window.stride + 1;
            workers.push(worker(generator, rows, vec![(last, window)]));
            if generator.one_in(3) {
                // A shortcut around the window, in its steps.
                let shortcut = RowWindow { taps: 1, dilation: 1, pads: (0, 0), ..window };
                if (rows - 1) * window.stride < workers[last].rows {
                    let mut reads = vec![(last, shortcut), (last + 1, RowWindow::ROW)];
                    if generator.one_in(2) {
                        workers.push(worker(generator, rows, vec![(last, shortcut)]));
                        reads[0] = (last + 2, RowWindow::ROW);
                    }
                    workers.push(worker(generator, rows, reads));
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

    fn worker(rows: usize, reads: &[(usize, RowWindow)]) -> Worker {
        Worker { bytes: 1, reads: reads.to_vec(), ..Worker::new(rows) }
    }

    fn rings(workers: &[Worker]) -> Vec<usize> {
        Turns::new(workers, 1).unwrap().workers.iter().map(|own| own.ring).collect()
    }

    const SAME: RowWindow = RowWindow { taps: 3, pads: (1, 1), ..RowWindow::ROW };

    #[test]
    fn a_ring_for_one_reader_holds_its_window() {
        let chain = [worker(25, &[]), worker(25, &[(0, SAME)]), worker(25, &[(1, RowWindow::ROW)])];
        assert_eq!(rings(&chain), [3, 1, 0]);
    }

    #[test]
    fn a_residual_keeps_rows_until_they_are_added() {
        let block = [worker(32, &[]), worker(32, &[(0, SAME)]), worker(32, &[(1, SAME), (0, RowWindow::ROW)])];
        assert_eq!(rings(&block), [3, 3, 0]);
    }

    /// A block of a ResNet that halves rows: two windows, and a shortcut that is computed of rows which the first window keeps anyway.
    #[test]
    fn a_shortcut_is_computed_when_its_row_is_about_to_go() {
        let half = RowWindow { stride: 2, pads: (0, 1), ..SAME };
        let block = [
            worker(32, &[]),
            worker(16, &[(0, half)]),
            worker(16, &[(1, SAME)]),
            worker(16, &[(0, RowWindow { stride: 2, ..RowWindow::ROW })]),
            worker(16, &[(2, RowWindow::ROW), (3, RowWindow::ROW)]),
            worker(16, &[(4, RowWindow::ROW)]),
        ];
        let turns = Turns::new(&block, 1).unwrap();
        assert!(finds_all(&block, &turns, 1));
        assert_eq!(rings(&block), [3, 3, 1, 1, 1, 0]);
        // It reads the oldest row before the next one is appended, which would go for that.
        assert_eq!(turns.order, [3, 0, 1, 2, 4, 5]);
        assert_eq!(turns.workers[3].until, None);
        assert_eq!(turns.workers[2].until, Some(4));
    }

    #[test]
    fn a_chain_beside_another_runs_late_as_a_whole() {
        let wide = |reads: &[(usize, RowWindow)]| Worker { bytes: 8, ..worker(32, reads) };
        let branches = [
            worker(32, &[]),
            worker(32, &[(0, RowWindow { taps: 9, pads: (4, 4), ..RowWindow::ROW })]),
            wide(&[(0, RowWindow::ROW)]),
            wide(&[(2, RowWindow::ROW)]),
            worker(32, &[(1, RowWindow::ROW), (3, RowWindow::ROW)]),
            worker(32, &[(4, RowWindow::ROW)]),
        ];
        let turns = Turns::new(&branches, 1).unwrap();
        assert!(finds_all(&branches, &turns, 1));
        assert_eq!(rings(&branches), [9, 1, 1, 1, 1, 0]);
        let local = |number: usize| turns.workers[number].until.is_some();
        assert!((1..5).all(local), "{turns:?}");
    }
}
