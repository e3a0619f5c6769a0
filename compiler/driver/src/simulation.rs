//! Ranks on paper: replays what each rank does, kernel by kernel and message by message, with prices of kernels and a model of the
//! link between ranks.
//!
//! A message starts when it has been sent, its receive has begun, and those that its sender sent before have left; then it takes
//! the link's latency and its size at the link's rate. Kernels take what they are said to take, whatever else goes on.

use mlc_codegen::Module;
use std::collections::BTreeMap;

/// What a message takes from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Bytes in a nanosecond.
    pub rate: f64,
    /// Nanoseconds that a message takes however small it is.
    pub latency: f64,
}

impl Link {
    /// Reads a rate and a latency, such as `10GBps,5us`.
    ///
    /// # Errors
    /// What it should look like.
    pub fn parse(text: &str) -> Result<Link, String> {
        let wrong = || "it must have the form 10GBps,5us".to_owned();
        let (rate, latency) = text.split_once(',').ok_or_else(wrong)?;
        let rate = quantity(rate, &[("GBps", 1.0), ("MBps", 1e-3), ("kBps", 1e-6), ("Bps", 1e-9)]).ok_or_else(wrong)?;
        let latency = quantity(latency, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]).ok_or_else(wrong)?;
        if rate > 0.0 { Ok(Link { rate, latency }) } else { Err("the rate must be positive".into()) }
    }
}

/// A finite number that isn't negative, with one of some units.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let (number, unit) = units.iter().find_map(|(unit, value)| Some((text.strip_suffix(unit)?, value)))?;
    let value = number.trim().parse::<f64>().ok()? * unit;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// How long a rank waited for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Number of the message.
    pub message: usize,
    /// When the wait began, in nanoseconds.
    pub begin: f64,
    /// Nanoseconds.
    pub duration: f64,
}

/// What a rank did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankReport {
    /// When it ended, in nanoseconds.
    pub time: f64,
    /// Nanoseconds in kernels.
    pub computing: f64,
    /// Its waits in order, but for those that took no time.
    pub waits: Vec<Wait>,
    /// Bytes that it sent.
    pub sent_bytes: usize,
}

/// One end of a message: (source, destination, channel) and how many came before it there.
type End = (usize, usize, usize, usize);

/// A rank on its way.
struct Walker<'a> {
    module: &'a Module,
    report: RankReport,
    next_exchange: usize,
    next_kernel: usize,
    /// For each of its messages, which one it is.
    ends: Vec<End>,
}

/// Replays the modules of all ranks, in order; `cycle` is the nanoseconds of a unit of the kernels' prices. `None` when the ranks
/// wait for ever, or something is sent that is never received: [`mlc_ir::ranks::schedule`] tells.
pub fn simulate(modules: &[&Module], link: Link, cycle: f64) -> Option<Vec<RankReport>> {
    let mut walkers: Vec<Walker<'_>> = modules.iter().enumerate().map(|(rank, module)| walker(rank, module)).collect();
    let mut sent: BTreeMap<End, f64> = BTreeMap::new();
    let mut received: BTreeMap<End, f64> = BTreeMap::new();
    let mut arrivals: BTreeMap<End, f64> = BTreeMap::new();
    let mut ports = vec![0.0_f64; modules.len()];
    loop {
        let mut moved = false;
        for walker in &mut walkers {
            while let Some(event) = walker.step(cycle, &arrivals) {
                moved = true;
                let Stepped::Started { end, bytes, time, is_send } = event else { continue };
                if is_send { &mut sent } else { &mut received }.insert(end, time);
                if let (Some(&from), Some(&to)) = (sent.get(&end), received.get(&end)) {
                    let start = from.max(to).max(ports[end.0]);
                    ports[end.0] = start + bytes as f64 / link.rate;
                    arrivals.insert(end, ports[end.0] + link.latency);
                }
            }
        }
        if !moved {
            break;
        }
    }
    let is_done = |walker: &Walker<'_>| {
        let exchanges = walker.module.ranks.as_ref().map_or(0, |ranks| ranks.exchanges.len());
        walker.next_exchange == exchanges && walker.next_kernel == walker.module.kernels.len()
    };
    walkers.iter().all(is_done).then(|| walkers.into_iter().map(|walker| walker.report).collect())
}

fn walker(rank: usize, module: &Module) -> Walker<'_> {
    let mut counts: BTreeMap<(usize, usize, usize), usize> = BTreeMap::new();
    let messages = module.ranks.iter().flat_map(|ranks| &ranks.messages);
    let ends = messages.map(|message| {
        let (source, destination) = if message.sent { (rank, message.peer) } else { (message.peer, rank) };
        let count = counts.entry((source, destination, message.channel)).or_default();
        *count += 1;
        (source, destination, message.channel, *count)
    });
    let ends = ends.collect();
    Walker { module, report: RankReport::default(), next_exchange: 0, next_kernel: 0, ends }
}

/// What a rank did in one step.
enum Stepped {
    Started { end: End, bytes: usize, time: f64, is_send: bool },
    Other,
}

impl Walker<'_> {
    /// Goes one step on; `None` at the end, and where it waits for a message of which one end isn't there yet.
    fn step(&mut self, cycle: f64, arrivals: &BTreeMap<End, f64>) -> Option<Stepped> {
        let ranks = self.module.ranks.as_ref();
        let exchange = ranks.and_then(|ranks| ranks.exchanges.get(self.next_exchange));
        let due = exchange.zip(ranks).filter(|(exchange, _)| exchange.before <= self.next_kernel);
        let Some((exchange, ranks)) = due else {
            let kernel = self.module.kernels.get(self.next_kernel)?;
            self.next_kernel += 1;
            let time = kernel.price.time as f64 * cycle;
            self.report.computing += time;
            self.report.time += time;
            return Some(Stepped::Other);
        };
        let (message, end) = (&ranks.messages[exchange.message], self.ends[exchange.message]);
        if exchange.action != "wait" {
            self.next_exchange += 1;
            self.report.sent_bytes += if message.sent { message.bytes } else { 0 };
            let time = self.report.time;
            return Some(Stepped::Started { end, bytes: message.bytes, time, is_send: message.sent });
        }
        let arrival = *arrivals.get(&end)?;
        self.next_exchange += 1;
        let begin = self.report.time;
        if arrival > begin {
            self.report.waits.push(Wait { message: exchange.message, begin, duration: arrival - begin });
            self.report.time = arrival;
        }
        Some(Stepped::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_codegen::Choice;
    use mlc_codegen::price::Price;
    use mlc_codegen::{Exchanged, KernelSummary, MessageSummary, RankSummary};

    #[test]
    fn links_are_read() {
        assert_eq!(Link::parse("10GBps,5us"), Ok(Link { rate: 10.0, latency: 5000.0 }));
        assert_eq!(Link::parse("500 MBps, 0ns"), Ok(Link { rate: 0.5, latency: 0.0 }));
        for wrong in ["", "10GBps", "10,5us", "0GBps,5us", "-1GBps,5us", "nanGBps,1us", "1GBps,5", "1GBps,infs"] {
            assert!(Link::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn module(
        rank: usize,
        kernels: &[u64],
        messages: &[(bool, usize)],
        exchanges: &[(&'static str, usize, usize)],
    ) -> Module {
        let kernel = |&time: &u64| KernelSummary {
            function: String::new(),
            node: String::new(),
            operator: String::new(),
            origins: Vec::new(),
            inside: 0,
            macs: 0,
            bytes: 0,
            workspace_bytes: 0,
            results: Vec::new(),
            laid_over: Vec::new(),
            parallel_turns: 1,
            split: None,
            branch: None,
            price: Price { time, ..Price::default() },
            choice: Choice::default(),
        };
        let message = |&(sent, bytes): &(bool, usize)| MessageSummary {
            bytes,
            channel: 0,
            dtype: "f32",
            peer: 1 - rank,
            sent,
            tag: 0,
            tensor: "t".into(),
        };
        let exchange =
            |&(action, before, message): &(&'static str, usize, usize)| Exchanged { action, before, message };
        let ranks = RankSummary {
            count: 2,
            exchanges: exchanges.iter().map(exchange).collect(),
            messages: messages.iter().map(message).collect(),
            rank,
        };
        Module { kernels: kernels.iter().map(kernel).collect(), ranks: Some(ranks), ..Module::default() }
    }

    /// The first rank computes 100, sends two messages and computes 50; the second computes 20 and waits for both.
    #[test]
    fn messages_take_turns_and_computing_goes_on() {
        let first = module(
            0,
            &[100, 50],
            &[(true, 40), (true, 60)],
            &[("send", 1, 0), ("send", 1, 1), ("wait", 2, 0), ("wait", 2, 1)],
        );
        let second = module(
            1,
            &[20, 10],
            &[(false, 40), (false, 60)],
            &[("receive", 0, 0), ("receive", 0, 1), ("wait", 1, 0), ("wait", 2, 1)],
        );
        let link = Link { rate: 2.0, latency: 5.0 };
        let reports = simulate(&[&first, &second], link, 1.0).unwrap();
        // The messages are there at 100 + 20 + 5 and at 120 + 30 + 5.
        assert_eq!(reports[0].time, 155.0);
        assert_eq!(reports[0].sent_bytes, 100);
        assert_eq!(reports[0].waits, [Wait { message: 1, begin: 150.0, duration: 5.0 }]);
        assert_eq!((reports[1].time, reports[1].computing), (155.0, 30.0));
        let waits =
            [Wait { message: 0, begin: 20.0, duration: 105.0 }, Wait { message: 1, begin: 135.0, duration: 20.0 }];
        assert_eq!(reports[1].waits, waits);
        let deaf = module(1, &[], &[], &[]);
        assert_eq!(simulate(&[&first, &deaf], link, 1.0), None);
    }
}
