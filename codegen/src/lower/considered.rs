//! [`Considered`]: what was looked at when it was decided which nodes are computed row by row.

use super::patch::Halo;
use serde::Serialize;

/// The programs of which one was taken, and why its stripes end where they do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Considered {
    /// Whether the objective or a limit asks for rows.
    pub asks_for_rows: bool,
    /// Of each plan of stripes the smallest program, or the one that was taken. The first has whole results, unless rows of an input are
    /// given one after the other.
    pub programs: Vec<Candidate>,
    /// Number of the program that was taken.
    pub taken: usize,
    /// Where its stripes begin and end amid the nodes.
    pub cuts: Vec<Cut>,
}

impl Considered {
    /// The program that was taken.
    pub fn taken(&self) -> Option<&Candidate> {
        self.programs.get(self.taken)
    }

    /// Operations that patches of the program do beyond those of the whole.
    pub fn twice(&self) -> u64 {
        self.taken().map_or(0, |taken| taken.stripes.iter().map(|span| span.twice).sum())
    }

    /// The program whose results are whole, where one of stripes was taken.
    pub fn whole(&self) -> Option<&Candidate> {
        let has_stripes = self.taken().is_some_and(|taken| !taken.stripes.is_empty());
        self.programs.iter().find(|program| has_stripes && program.stripes.is_empty())
    }

    /// What stripes are predicted to take beside whole results, such as `4.6 % more time`; whole results have schedules of their own, so that it
    /// may be less.
    pub fn time_beside_whole(&self) -> Option<String> {
        let (taken, whole) = (self.taken()?, self.whole()?);
        let more = 100.0 * (taken.time as f64 / whole.time.max(1) as f64 - 1.0);
        Some(format!("{:.1} % {} time", more.abs(), if more < 0.0 { "less" } else { "more" }))
    }
}

/// A program that a graph could be lowered to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Bytes of the arena.
    pub arena_bytes: usize,
    /// Predicted time, in the unit of the target's prices.
    pub time: u64,
    /// The nodes that are computed row by row, in order.
    pub stripes: Vec<Span>,
}

/// Neighbours in the order of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Name of the first node.
    pub first: String,
    /// Name of the last node.
    pub last: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// In how many patches of rows they are computed.
    pub patches: usize,
    /// What becomes of rows that two of them read.
    pub halo: Halo,
    /// Operations, such as multiply–accumulates, that patches do beyond those of the whole: rows that neighbours need of each other are
    /// computed twice.
    pub twice: u64,
}

/// Two neighbours, one of which is in a stripe that the other one isn't in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Name of the node before the cut.
    pub before: String,
    /// Name of the node behind it.
    pub behind: String,
    /// Why the stripe doesn't go on.
    pub reason: CutReason,
}

/// Why a stripe ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CutReason {
    /// The operator of a node isn't computed row by row.
    Operator(String),
    /// A stripe has no more nodes.
    MostNodes,
    /// No turns give both the rows that they need of each other.
    Turns,
    /// What lives meanwhile, in bytes, before the memory is planned. Stripes that stay below the limit move more rows.
    Bytes {
        /// In one stripe.
        together: usize,
        /// In the whole program as it is.
        limit: usize,
    },
}
