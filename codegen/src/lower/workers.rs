//! [`Worker`]: one who takes turns in a stripe, [`WorkerTurns`]: when it runs, and what follows from that for rings.

use mlc_ir::RowWindow;

/// One that appends rows to a tensor.
#[derive(Debug, Clone)]
pub struct Worker {
    /// Rows of the tensor.
    pub rows: usize,
    /// Bytes of a row in memory, its border's columns included.
    pub bytes: usize,
    /// Whether there is a border around the rows, which lasts.
    pub has_border: bool,
    /// The rows that it reads, each of an earlier worker's tensor.
    pub reads: Vec<(usize, RowWindow)>,
}

impl Worker {
    /// One that reads nothing yet.
    pub fn new(rows: usize) -> Worker {
        Worker { rows, bytes: 0, has_border: false, reads: Vec::new() }
    }
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
    /// The last worker that reads its ring, if all do in the turn in which rows are appended, and nothing is left for the next one.
    pub until: Option<usize>,
}

impl WorkerTurns {
    /// How often it has run before a turn, if that is one of its own.
    pub fn act(&self, turn: usize) -> Option<usize> {
        let since = turn.checked_sub(self.first).filter(|since| since.is_multiple_of(self.period))?;
        Some(since / self.period).filter(|&act| act < self.appended)
    }

    /// The last turn in which it appends rows.
    pub fn last(&self) -> usize {
        self.first + self.appended.saturating_sub(1) * self.period
    }

    /// The turn in which the rows are there that a window needs the first time.
    pub fn ready(&self, window: &RowWindow, step: usize) -> usize {
        self.first + self.period * first_acts(window, step)
    }
}

/// How often rows are appended to a tensor before those that a window needs the first time.
fn first_acts(window: &RowWindow, step: usize) -> usize {
    (window.reach(step) - 1).saturating_sub(window.pads.0) / step
}

/// Whether all workers that read rows several times find them.
pub fn are_in_step(workers: &[Worker], turns: &[WorkerTurns]) -> bool {
    workers.iter().zip(turns).all(|(worker, own)| in_step(worker, own.first, turns) == own.first)
}

/// The first turn from one on in which a worker finds the rows that it reads several times where it finds them later, too: none comes between
/// the times that it reads one.
pub fn in_step(worker: &Worker, first: usize, turns: &[WorkerTurns]) -> usize {
    let repeating = worker.reads.iter().filter(|(_, window)| window.repeat > 1);
    let first_in_step = |first: usize, (other, window): &(usize, RowWindow)| {
        let other = &turns[*other];
        let since = (first - other.first) % other.period;
        if since < other.period / window.repeat { first } else { first + other.period - since }
    };
    repeating.fold(first, first_in_step)
}

/// Rows from the first that a window reads to the newest of the ring, whenever who reads it runs: before who appends them in a turn of both, or
/// behind.
pub fn behind(own: &WorkerTurns, (other, window): (&WorkerTurns, &RowWindow), is_before: bool, step: usize) -> usize {
    appended(own.first, other, is_before) * step + window.pads.0
}

/// How often one has appended rows when another one runs in a turn: before it in a turn of both, or behind.
pub fn appended(turn: usize, other: &WorkerTurns, is_before: bool) -> usize {
    let since = turn - other.first;
    if is_before { since.div_ceil(other.period) } else { since / other.period + 1 }
}

/// The workers that read a worker's ring, and how.
pub fn readers(workers: &[Worker], number: usize) -> impl Iterator<Item = (usize, &RowWindow)> + Clone {
    let all = workers.iter().enumerate();
    all.flat_map(move |(reader, worker)| {
        let own = worker.reads.iter().filter(move |(other, _)| *other == number);
        own.map(move |(_, window)| (reader, window))
    })
}

/// The first turn in which all is there that a worker reads the first time; none of one that reads nothing.
pub fn earliest(worker: &Worker, turns: &[WorkerTurns], step: usize) -> Option<usize> {
    worker.reads.iter().map(|(other, window)| turns[*other].ready(window, step)).max()
}

/// The last turn in which a worker may begin, by when its readers do.
pub fn latest(workers: &[Worker], turns: &[WorkerTurns], number: usize, step: usize) -> Option<usize> {
    let own = &turns[number];
    let begin = |(reader, window): (usize, &RowWindow)| turns[reader].first - (own.ready(window, step) - own.first);
    readers(workers, number).map(begin).min()
}
