//! [`Comparison`]: two reports beside each other.

use crate::report::{Report, sum};
use serde::Serialize;
use std::collections::BTreeSet;

/// What differs between two reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What each is, in a few words.
    pub names: [String; 2],
    /// Sums over the whole models.
    pub totals: Vec<Difference>,
    /// Kernels of both, by the nodes that they compute, with what they take; the order is the first one's, then the other's.
    pub kernels: Vec<Difference>,
    /// The unit of the kernels' times; of the second report first where the units differ, which makes them incomparable.
    pub units: [String; 2],
}

/// A number of two reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What it is of.
    pub name: String,
    /// Whether it is a number of bytes.
    pub is_bytes: bool,
    /// The numbers, where there are such.
    pub values: [Option<u64>; 2],
    /// The second one divided by the first.
    pub ratio: Option<f64>,
}

impl Difference {
    fn new(name: &str, is_bytes: bool, values: [Option<u64>; 2]) -> Difference {
        let ratio = match values {
            [Some(one), Some(other)] if one > 0 => Some(other as f64 / one as f64),
            _ => None,
        };
        Difference { name: name.to_owned(), is_bytes, values, ratio }
    }
}

impl Comparison {
    /// Compares the second report with the first one.
    pub fn new(one: &Report, other: &Report) -> Comparison {
        let both = [one, other];
        let units = both.map(|report| report.time_unit().to_owned());
        let names = both.map(|report| {
            let objective = report.objective.as_ref().map_or(String::new(), |objective| format!(", {objective}"));
            format!("{} for {}{objective}", report.model, report.target)
        });
        let total =
            |name: &str, is_bytes: bool, of: fn(&Report) -> Option<u64>| Difference::new(name, is_bytes, both.map(of));
        let mut totals = vec![
            total("working memory", true, |report| Some(report.totals.arena_bytes as u64)),
            total("constants", true, |report| Some(report.totals.constants_bytes as u64)),
            total("code, predicted", true, |report| report.totals.code_bytes),
            total("kernels", false, |report| Some(report.totals.kernels as u64)),
            total("multiply-adds", false, |report| report.totals.macs),
        ];
        let took = both.map(|report| sum(&report.kernels, |kernel| report.time_of(kernel)));
        let mut kernels = Vec::new();
        if units[0] == units[1] && !units[0].is_empty() {
            totals.push(Difference::new(&format!("time, {}", units[0]), false, took));
            kernels = pairs(one, other);
        }
        Comparison { names, totals, kernels, units }
    }

    /// As JSON text.
    pub fn json(&self) -> String {
        // Structures of strings, numbers and lists: writing them to memory can't fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// The times of kernels that compute nodes of one name.
fn pairs(one: &Report, other: &Report) -> Vec<Difference> {
    let time = |report: &Report, node: &str| {
        sum(report.kernels.iter().filter(|kernel| kernel.node == node), |kernel| report.time_of(kernel))
    };
    let mut seen = BTreeSet::new();
    let nodes = one.kernels.iter().chain(&other.kernels).map(|kernel| kernel.node.as_str());
    let nodes = nodes.filter(|node| seen.insert(*node));
    nodes.map(|node| Difference::new(node, false, [time(one, node), time(other, node)])).collect()
}
