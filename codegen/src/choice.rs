//! Which of its schedules a kernel takes: [`Chooser`]. Each is written once to be priced; kernels of equal operators, types and
//! layouts share what was found.

mod by_pixels;
mod findings;
mod problem;
mod programs;

pub use by_pixels::ByPixels;
pub use programs::is_better;

use crate::ScheduleOptions;
use crate::kernels::{self, KernelWriter, Schedule};
use crate::loops::{Direction, Function, Lead, Question, downwards, lanes, lead, mentioned};
use crate::price::{Price, StripeTurns, WorkingSet, price};
use crate::target::{Borders, Machine, Target, VectorSpelling};
use findings::Findings;
use indexmap::IndexMap;
use mlc_ir::{Cost, DType, Diagnostic, Objective, Op};
use problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A schedule that a kernel could take, and what it would cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The schedule.
    pub schedule: Schedule,
    /// Its price.
    pub price: Price,
}

/// Why a schedule was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reason {
    /// There is no other.
    #[default]
    Only,
    /// It is the first of the list, which has proved best, and none is so much cheaper that prices are to be trusted.
    First,
    /// It is so much cheaper than the first of the list.
    Cheapest,
    /// Time and memories together, it is the cheapest for what the program is made for.
    Weighed,
    /// It is the fastest one whose scratch memory fits where nothing else is while the kernel runs.
    Fits,
    /// All outputs of a pixel are there before the next one's begin, so that its result can lie over more of its operand.
    ByPixels,
    /// It was measured to be the fastest on the machine.
    Measured,
    /// The user asked for it.
    Forced,
}

/// The schedules that there were for a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// What kernel it is, by operator, types and layouts and not by name: kernels of one key have the same schedules and prices.
    pub key: String,
    /// All that were looked at ([`ScheduleOptions::tell_all`]), those that have proved better first; none for what isn't scheduled.
    pub offers: Vec<Offer>,
    /// Number of the one that was taken.
    pub taken: usize,
    /// Why.
    pub reason: Reason,
}

impl Choice {
    /// The one that was taken.
    pub fn taken(&self) -> Option<&Offer> {
        self.offers.get(self.taken)
    }
}

/// What makes a program the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// What it is made for.
    Objective(Objective),
    /// Time, within so many bytes of arena.
    Arena(usize),
    /// Memory, within such a share of time beyond the fastest one's, in thousandths.
    Time(u64),
}

/// Chooses schedules for the kernels of a program.
pub struct Chooser {
    /// The machine.
    pub target: Rc<Target>,
    /// What is touched between two runs of a kernel, about.
    working_set: WorkingSet,
    options: ScheduleOptions,
    /// Whether one schedule of a kernel is enough, the one that is best as far as is known without writing it.
    is_quick: bool,
    is_for_threads: bool,
    /// Nodes so far.
    seen: BTreeSet<String>,
    known: IndexMap<(Rc<Problem>, Option<StripeTurns>), Choice>,
    /// Bytes of scratch memory that there is room for, by node.
    room: BTreeMap<String, usize>,
    by_pixels: ByPixels,
    /// Nodes whose kernels aren't written.
    left_out: BTreeSet<String>,
    findings: Findings,
}

impl Chooser {
    /// A chooser for a program that touches `working_set` bytes in all, about.
    pub fn new(target: &Target, working_set: usize, options: &ScheduleOptions) -> Chooser {
        let (target, options) = (Rc::new(target.clone()), options.clone());
        let (seen, known, room) = (BTreeSet::new(), IndexMap::new(), BTreeMap::new());
        let (is_quick, is_for_threads, by_pixels) = (false, false, ByPixels::None);
        let (left_out, findings, working_set) = (BTreeSet::new(), Findings::default(), WorkingSet::from(working_set));
        Chooser {
            target,
            working_set,
            options,
            is_quick,
            is_for_threads,
            seen,
            known,
            room,
            by_pixels,
            left_out,
            findings,
        }
    }

    /// A chooser for callers who ask about far more kernels than will be written: it looks at one schedule of each, the one that is
    /// best as far as is known without writing it. Those of one kernel differ by a few hundredths (`docs/prices.md`).
    pub fn quick(target: &Target, working_set: usize) -> Chooser {
        Chooser { is_quick: true, ..Chooser::new(target, working_set, &ScheduleOptions::default()) }
    }

    /// Other choosers for the same program, whose arena may turn out smaller; none unless memory counts. One has borders of bytes in bands,
    /// where the program has any. If memory is the objective, one has borders where this one leaves them out, or the other way round; one computes
    /// tiles pixel by pixel, where the program has any; and others choose as for the other objectives, so that nothing that is made for one of
    /// them takes less.
    pub fn alternatives(&self, has_bands: bool, has_tiles: bool) -> Vec<Chooser> {
        let Target { borders, objective, .. } = *self.target;
        let like = |target: Target| {
            let (left_out, findings) = (self.left_out.clone(), self.findings.clone());
            Chooser { left_out, findings, ..Chooser::new(&target, self.working_set.bytes, &self.options) }
        };
        let banded = || like(Target { bands: true, ..(*self.target).clone() });
        let banded = (has_bands && !self.is_quick).then(banded).into_iter();
        let with =
            |borders: Borders, objective: Objective| like(Target { borders, objective, ..(*self.target).clone() });
        let others = match borders {
            Borders::Memory => Borders::Clipped,
            Borders::Clipped => Borders::Memory,
        };
        match objective {
            Objective::Ram => {
                let usual = [Objective::Speed, Objective::Balanced, Objective::Size];
                let usual = usual.into_iter().map(|objective| with(borders, objective));
                let by_pixels = || Chooser { by_pixels: ByPixels::All, ..with(borders, objective) };
                let by_pixels = (has_tiles && !self.is_quick).then(by_pixels);
                banded.chain([with(others, objective)]).chain(usual).chain(by_pixels).collect()
            }
            Objective::Balanced => banded.collect(),
            Objective::Speed | Objective::Size => Vec::new(),
        }
    }

    /// The same for a program whose kernels are computed by several threads each.
    pub fn for_threads(self, threads: usize) -> Chooser {
        Chooser { is_for_threads: threads > 1, ..self }
    }

    /// Whether kernels are computed by several threads each.
    pub fn is_for_threads(&self) -> bool {
        self.is_for_threads
    }

    /// Whether it looks at one schedule of each kernel, see [`Chooser::quick`].
    pub fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// Has no kernels be written of some nodes from here on: their results are taken to be there, and to be read.
    pub fn leave_out(&mut self, nodes: BTreeSet<String>) {
        self.left_out = nodes;
    }

    /// Whether the kernel of a node isn't written.
    pub fn leaves_out(&self, node: &str) -> bool {
        self.left_out.contains(node)
    }

    /// From how many bytes on constants are copied into the arena before they are read, if they are.
    pub fn fetched(&self) -> Option<usize> {
        self.options.fetched_bytes
    }

    /// What of the programs that there are is the best one.
    pub fn goal(&self) -> Goal {
        match (self.options.arena_bytes, self.options.extra_work) {
            (Some(limit), _) => Goal::Arena(limit),
            (None, Some(share)) if self.target.objective == Objective::Ram => Goal::Time(share),
            _ => Goal::Objective(self.target.objective),
        }
    }

    /// Has nodes take the fastest schedules whose scratch memory isn't larger than there is room for; others choose as before.
    pub fn give_room(&mut self, room: BTreeMap<String, usize>) {
        self.room = room;
    }

    /// Says which nodes compute tiles pixel by pixel; what was said before.
    pub fn take_by_pixels(&mut self, nodes: ByPixels) -> ByPixels {
        std::mem::replace(&mut self.by_pixels, nodes)
    }

    /// Says which turns the kernels take that are asked about from here on, if they are in a stripe; what was said before.
    pub fn take_turns(&mut self, turns: Option<StripeTurns>) -> Option<StripeTurns> {
        let own = self.working_set.in_turns(turns, &self.target.machine.caches);
        std::mem::replace(&mut self.working_set, own).turns
    }

    /// Whether any tiles are computed pixel by pixel.
    pub fn is_by_pixels(&self) -> bool {
        self.by_pixels != ByPixels::None
    }

    /// Whether the border of a convolution is to be in a band, where it can be: in all of the program, unless the user says a schedule.
    pub fn takes_band(&self, node: &str) -> bool {
        match self.options.forced.get(node) {
            Some(text) => text.starts_with("band-"),
            None => self.target.bands,
        }
    }

    /// See [`loops::lead`](crate::loops::lead()), of the function downwards if that is asked for; found out once for each kernel, schedule and
    /// question. `None`, too, where it can't go downwards.
    pub fn lead(&self, own: &Choice, function: &Function, question: Question) -> Option<Lead> {
        let schedule = own.taken().map_or(String::new(), |taken| taken.schedule.to_string());
        let spelling = self.target.vectors;
        self.findings.lead(&self.target, format!("{} {schedule}", own.key), function, question, || {
            let turned = match question.direction {
                Direction::Upwards => None,
                Direction::Downwards => Some(downwards(function, question.written)?),
            };
            let function = turned.as_ref().unwrap_or(function);
            match spelling == VectorSpelling::Either && lanes::has_vectors(function) {
                // A vector's lanes are read before one is stored, which isn't so where each is computed for itself.
                true => lead(&lanes::without_vectors(function), question),
                false => lead(function, question),
            }
        })
    }

    /// Chooses among the schedules of a kernel that nothing has been written to.
    ///
    /// # Errors
    /// When there is no schedule, or not the one that the user asked for.
    pub fn choose(&mut self, node: &str, op: &Op, kernel: &KernelWriter<'_>) -> Result<Choice, Diagnostic> {
        let place = (Rc::new(Problem::new(op, kernel)), self.working_set.turns);
        let choice = match self.known.get(&place) {
            Some(choice) => choice.clone(),
            None => {
                let offers = self.offers(op, kernel, &place.0)?;
                let (taken, reason) = self.best(op, &offers);
                let choice = Choice { key: place.0.key(), offers, taken, reason };
                self.known.insert(place, choice.clone());
                choice
            }
        };
        self.seen.insert(node.to_owned());
        match self.options.forced.get(node) {
            Some(text) => forced(choice, node, text),
            None => {
                let own = self.measured(&choice);
                Ok(own.unwrap_or_else(|| self.with_pixels(node, self.with_room(node, op, choice))))
            }
        }
    }

    /// The choice of the schedule that was measured to be the fastest, if one was and the kernel has it.
    fn measured(&self, choice: &Choice) -> Option<Choice> {
        let text = self.options.measured.get(&choice.key)?;
        let taken = choice.offers.iter().position(|offer| offer.schedule.is_named(text))?;
        Some(Choice { taken, reason: Reason::Measured, ..choice.clone() })
    }

    /// The fastest of the schedules that there is room for; of those that are as fast, one of little code.
    fn with_room(&self, node: &str, op: &Op, choice: Choice) -> Choice {
        let (Some(&room), Some(own)) = (self.room.get(node), choice.taken()) else { return choice };
        let room = own.price.scratch_bytes.max(room as u64);
        let fits = |number: &usize| {
            let Offer { schedule, price } = &choice.offers[*number];
            price.scratch_bytes <= room && !kernels::is_by_pixels(schedule)
        };
        let numbers: Vec<usize> = (0..choice.offers.len()).filter(fits).collect();
        let offers: Vec<Offer> = numbers.iter().map(|&number| choice.offers[number].clone()).collect();
        let (mut best, _) = self.fastest(op, &offers);
        if self.target.machine.trust.is_some() {
            best = lightest(&offers, best, Objective::Balanced);
        }
        let taken = numbers[best];
        if taken == choice.taken { choice } else { Choice { taken, reason: Reason::Fits, ..choice } }
    }

    /// The choice of the fastest schedule that goes pixel by pixel, where the node is to take one that needs no more scratch memory than its own.
    fn with_pixels(&self, node: &str, choice: Choice) -> Choice {
        let (true, Some(own)) = (self.by_pixels.has(node), choice.taken()) else { return choice };
        let fits = |offer: &Offer| {
            kernels::is_by_pixels(&offer.schedule) && offer.price.scratch_bytes <= own.price.scratch_bytes
        };
        let all = choice.offers.iter().enumerate().filter(|(_, offer)| fits(offer));
        match all.min_by_key(|(number, offer)| (offer.price.time, *number)) {
            Some((taken, _)) => Choice { taken, reason: Reason::ByPixels, ..choice },
            None => choice,
        }
    }

    /// Reports nodes that schedules were asked for, but that there aren't.
    ///
    /// # Errors
    /// The nodes that there are.
    pub fn finish(self) -> Result<(), Vec<Diagnostic>> {
        let unknown: Vec<&str> =
            self.options.forced.keys().map(String::as_str).filter(|&node| !self.seen.contains(node)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let message = format!("there is no kernel \"{}\" to choose a schedule for", unknown.join("\", \""));
        let seen: Vec<&str> = self.seen.iter().map(String::as_str).collect();
        let error = Diagnostic::option_mismatch(message);
        Err(vec![error.with_note(format!("there are {}", seen.join(", ")))])
    }

    fn offers(&self, op: &Op, kernel: &KernelWriter<'_>, problem: &Rc<Problem>) -> Result<Vec<Offer>, Diagnostic> {
        let offer = |schedule: Schedule| {
            let found = || self.price(op, &schedule, kernel);
            let price = self.findings.price(&self.target, self.working_set.turns, problem, &schedule, found)?;
            Ok(Offer { schedule, price })
        };
        // Each is written to be priced, which is for nothing where the first one is taken anyway.
        let is_sparing = self.options.spares_flash && self.options.forced.is_empty();
        let all = kernels::schedules(op, kernel)?.into_iter();
        let is_told = !self.options.forced.is_empty() || !self.options.measured.is_empty();
        let goes_by_pixels = self.is_by_pixels() || is_told;
        let all = all.filter(|schedule| goes_by_pixels || !kernels::is_by_pixels(schedule));
        let all = all.filter(|schedule| !is_sparing || !kernels::spends_flash(op, schedule));
        let tells_all = self.options.tell_all || is_told;
        let list: Vec<Schedule> = match self.target.objective {
            Objective::Size if self.is_quick => {
                let all: Vec<Schedule> = all.collect();
                let small = all.iter().find(|schedule| kernels::is_small(op, schedule));
                small.or(all.first()).cloned().into_iter().collect()
            }
            _ if self.is_quick => all.take(1).collect(),
            _ if tells_all => all.collect(),
            Objective::Speed | Objective::Balanced if self.target.machine.trust.is_none() => {
                let all: Vec<Schedule> = all.collect();
                let numbers = self.trusted(op, &all.iter().collect::<Vec<_>>());
                numbers.into_iter().map(|number| all[number].clone()).collect()
            }
            Objective::Speed => all.filter(|schedule| !kernels::is_small(op, schedule)).collect(),
            _ => all.collect(),
        };
        list.into_iter().map(offer).collect()
    }

    /// What a schedule costs, read off what it writes.
    fn price(&self, op: &Op, schedule: &Schedule, kernel: &KernelWriter<'_>) -> Result<Price, Diagnostic> {
        let mut draft = kernel.clone();
        kernels::write(op, schedule, &mut draft)?;
        let packed: usize = draft.packed.iter().map(|packed| packed.value.ty().bytes()).sum();
        let scratch: usize = draft.scratch.iter().map(|(_, bytes, _)| bytes).sum();
        let (vars, body) = draft.b.finish();
        let used = mentioned(&body);
        let epilogue = kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands);
        let constants = kernel.operands.iter().chain(epilogue).filter(|argument| used.contains(&argument.pointer));
        let constants = constants.filter_map(|argument| argument.constant.as_ref());
        let constants: usize = constants.map(|constant| constant.ty().bytes()).sum();
        let result = kernel.results.first().map_or(0, |result| result.view.elements() * result.view.dtype.size());
        let overlaps = !kernels::overwritable(op, schedule, kernel)?.is_empty();
        let function = Function { name: String::new(), comment: Vec::new(), parameters: Vec::new(), vars, body };
        Ok(Price {
            scratch_bytes: scratch as u64,
            constant_bytes: (packed + constants) as u64,
            overlap_bytes: if overlaps { result as u64 } else { 0 },
            ..price(&function, &self.target, &self.working_set)
        })
    }

    /// The one that the program's objective is best served by.
    fn best(&self, op: &Op, offers: &[Offer]) -> (usize, Reason) {
        if offers.len() < 2 {
            return (0, Reason::Only);
        }
        let fastest = self.fastest(op, offers);
        let best = match self.target.objective {
            Objective::Speed => fastest.0,
            // What is to cost next to nothing must be known to.
            Objective::Balanced if self.target.machine.trust.is_none() => fastest.0,
            objective => lightest(offers, fastest.0, objective),
        };
        if best == fastest.0 { fastest } else { (best, Reason::Weighed) }
    }

    /// The numbers of the schedules that prices may tell from the first of a list: the first one, then all that aren't of small code, or for speed
    /// the first that does without some of the products.
    fn trusted(&self, op: &Op, list: &[&Schedule]) -> Vec<usize> {
        let machine = &self.target.machine;
        let saving = list.iter().position(|schedule| kernels::saves_products(op, schedule));
        let is_for_speed = matches!(self.target.objective, Objective::Speed | Objective::Balanced);
        let is_trusted = |number: usize| match (machine.trust, self.trust_of_saving(op)) {
            _ if kernels::is_small(op, list[number]) || kernels::is_by_pixels(list[number]) => false,
            (Some(_), _) => true,
            (None, Some(_)) => is_for_speed && saving == Some(number),
            (None, None) => false,
        };
        (0..list.len()).filter(|&number| number == 0 || is_trusted(number)).collect()
    }

    /// By how much the price must be lower of a schedule that does without some of the products.
    fn trust_of_saving(&self, op: &Op) -> Option<f64> {
        let Machine { trust_of_saving, trust_of_saved_bytes, .. } = self.target.machine;
        if matches!(op, Op::Convolution(own) if own.sums == Some(DType::I32)) {
            trust_of_saved_bytes
        } else {
            trust_of_saving
        }
    }

    /// The first of the list, unless another one's price is lower by more than prices err. Those that prices aren't trusted to tell aren't
    /// looked at, so that the choice is the same whether they are told or not.
    fn fastest(&self, op: &Op, offers: &[Offer]) -> (usize, Reason) {
        let time = |number: usize| offers[number].price.time;
        let list: Vec<&Schedule> = offers.iter().map(|offer| &offer.schedule).collect();
        let trusted = self.trusted(op, &list).into_iter();
        let cheapest = trusted.min_by_key(|&number| (time(number), number)).unwrap_or(0);
        match self.target.machine.trust.or(self.trust_of_saving(op)) {
            Some(trust) if (time(cheapest) as f64) < (1.0 - trust) * time(0) as f64 => (cheapest, Reason::Cheapest),
            _ => (0, Reason::First),
        }
    }
}

/// Whether a schedule may be taken for what a program is made for, by its cost in thousandths of that of the fastest one.
fn is_allowed(objective: Objective, cost: Cost) -> bool {
    match objective {
        Objective::Speed => false,
        // So little is less than prices err by, so that a good deal must be saved.
        Objective::Balanced => cost.time <= 1005 && cost.flash <= 750,
        Objective::Size => cost.time <= 1500,
        Objective::Ram => true,
    }
}

/// The offer whose price weighs least for an objective, in thousandths of that of the fastest one: kernels run for a thousand
/// instructions or for a hundred million, and what is saved on one of them must not depend on how many others there are. Of
/// flash, only what schedules differ by is looked at, and of RAM what a schedule needs beside the operands.
fn lightest(offers: &[Offer], fastest: usize, objective: Objective) -> usize {
    let weights = objective.weights();
    let constants = offers.iter().map(|offer| offer.price.constant_bytes).min().unwrap_or_default();
    let overlap = offers.iter().map(|offer| offer.price.overlap_bytes).max().unwrap_or_default();
    let cost = |price: &Price| Cost {
        time: price.time,
        flash: price.code_bytes + price.constant_bytes - constants,
        ram: price.scratch_bytes + overlap - price.overlap_bytes,
    };
    let own = cost(&offers[fastest].price);
    let thousandths = |amount: u64, of: u64| amount.saturating_mul(1000) / of.max(1);
    let relative = |offer: &Offer| {
        let Cost { time, flash, ram } = cost(&offer.price);
        Cost { time: thousandths(time, own.time), flash: thousandths(flash, own.flash), ram: thousandths(ram, own.ram) }
    };
    let weighed = offers.iter().enumerate().map(|(number, offer)| (number, relative(offer)));
    // Whether it pays to go pixel by pixel is known when the arena is planned.
    let by_blocks = weighed.filter(|(number, _)| !kernels::is_by_pixels(&offers[*number].schedule));
    let allowed = by_blocks.filter(|(number, cost)| *number == fastest || is_allowed(objective, *cost));
    let lightest = allowed.min_by_key(|(number, cost)| (weights.weigh(*cost), *number != fastest, *number));
    lightest.map_or(fastest, |(number, _)| number)
}

fn forced(choice: Choice, node: &str, text: &str) -> Result<Choice, Diagnostic> {
    if let Some(taken) = choice.offers.iter().position(|offer| offer.schedule.is_named(text)) {
        return Ok(Choice { taken, reason: Reason::Forced, ..choice });
    }
    let list: Vec<String> = choice.offers.iter().map(|offer| offer.schedule.to_string()).collect();
    let message = format!("kernel \"{node}\" has no schedule \"{text}\"");
    let error = Diagnostic::option_mismatch(message);
    Err(error.with_note(format!("there are {}", list.join(", "))))
}

#[cfg(test)]
mod tests;
