//! Which nodes of a graph are computed row by row: [`plans`].
//!
//! In the order of the graph, neighbours that could be a stripe are a block, and any node alone is one. What a block needs is all whole
//! tensors that live meanwhile and its rings. Under a limit of bytes, the blocks that move least in rings are a shortest path. Blocks in
//! [patches](Patches) need less, and compute rows twice.

use super::block::Block;
use super::chain::{Chain, Taken};
use super::considered::Cut;
use super::patch::{Halo, Patches};
use super::patches::Patched;
use super::transposed::Transposed;
use crate::target::Target;
use mlc_ir::{Diagnostic, Graph, NodeId};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Nodes that are computed row by row, and the graph that they are of.
pub struct Plan {
    /// The graph, in which some nodes may compute patches.
    pub graph: Rc<Graph>,
    /// What each stripe computes.
    pub blocks: Vec<Block>,
    /// What that is of the graph that was given: a block in patches is one.
    pub given: Vec<Block>,
}

impl Plan {
    /// Stripes of a graph as it was given.
    pub fn of_rows(graph: &Rc<Graph>, blocks: Vec<Block>) -> Plan {
        Plan { graph: Rc::clone(graph), given: blocks.clone(), blocks }
    }

    /// Whether some nodes compute patches.
    pub fn has_patches(&self) -> bool {
        self.given.iter().any(|block| block.patches > 1)
    }

    /// Operations that patches do beyond those of the whole.
    pub fn twice(&self) -> u64 {
        self.given.iter().map(|block| block.twice).sum()
    }
}

/// Limits that plans are made for, in hundredths of the least one.
const LIMITS: [usize; 8] = [100, 115, 135, 170, 220, 300, 420, 600];

/// Which plans in patches are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Those that take about so many bytes of arena, and less.
    Arena(usize),
    /// Those that compute about such a share of all products twice, in thousandths, and less.
    Twice(u64),
    /// Those that compute nothing twice, but keep rows.
    Once,
    /// All kinds.
    All,
}

/// How many plans are looked at that compute nothing twice.
const MOST_ONCE: usize = 15;

/// The part of the memory that these save at least.
const LEAST_SAVED: usize = 20;

/// How many plans in patches of those that take least are planned at least.
const LEAST: usize = 3;

/// Shares of products, in thousandths, that plans of all kinds compute twice at most.
const SHARES: [u64; 11] = [0, 5, 10, 20, 35, 50, 75, 100, 130, 170, 220];

/// Blocks for which what lives meanwhile fits into the second cache, or as few bytes as can be; `None` where it does without, or where there is
/// no such cache.
pub fn in_cache(graph: &Graph, target: &Target) -> Option<Vec<Block>> {
    let capacity = target.machine.caches.get(1)?.bytes;
    let chain = Chain::new(graph, target, None);
    if chain.plain() <= capacity {
        return None;
    }
    let limit = chain.least_from(capacity);
    let path = chain.path(&chain.choices_within(limit), limit)?;
    Some(stripes(&chain, &path)).filter(|blocks| !blocks.is_empty())
}

/// Blocks that take less memory than the nodes one by one, those that take least first. If the rows of an input are given one after the
/// other, all that reads it is in one block, whatever that takes.
pub fn plans(graph: &Graph, target: &Target, fed: Option<NodeId>) -> Vec<Vec<Block>> {
    let chain = Chain::new(graph, target, fed);
    let choices = chain.choices();
    let plain = if fed.is_some() { usize::MAX } else { chain.plain() };
    let Some(least) = chain.least(&choices) else { return Vec::new() };
    let limits = LIMITS.iter().map(|hundredths| least.saturating_mul(*hundredths) / 100);
    let mut plans: Vec<Vec<Block>> = Vec::new();
    for path in limits.filter(|&limit| limit < plain).filter_map(|limit| chain.path(&choices, limit)) {
        let blocks = stripes(&chain, &path);
        if !blocks.is_empty() && !plans.contains(&blocks) {
            plans.push(blocks);
        }
    }
    plans
}

/// Plans in which some nodes compute patches, so that they take less memory than any without: some that take least, and some of those that
/// are wanted, the smallest ones first.
///
/// # Errors
/// When what computes a patch doesn't fit: a defect of mlc.
pub fn in_patches(graph: &Graph, target: &Target, wanted: Wanted) -> Result<Vec<Plan>, Diagnostic> {
    let chain = Chain::new(graph, target, None);
    let choices = chain.choices();
    let Some(once) = chain.least(&choices) else { return Ok(Vec::new()) };
    // Each kind has paths of its own: which of both moves less says little of which takes less time.
    let kinds: &[Halo] = if wanted == Wanted::Once { &[Halo::Kept] } else { &[Halo::Computed, Halo::Kept] };
    let transposed = Transposed::new(graph)?;
    let mut plans = Vec::new();
    for &halo in kinds {
        let mut own = choices.clone();
        chain.add_patches(&transposed, &mut own, once, halo);
        let mut paths = Vec::new();
        let mut limit = once;
        while let Some(path) = limit.checked_sub(1).and_then(|limit| chain.path(&own, limit)) {
            limit = chain.bytes(&own, &path);
            paths.push((limit, path));
        }
        paths.reverse();
        let wanted = if halo == Halo::Kept && wanted == Wanted::All { Wanted::Once } else { wanted };
        for number in some_of(&paths, once, &chain, wanted) {
            plans.extend(plan(graph, &chain, &paths[number].1)?);
        }
    }
    Ok(plans)
}

/// Numbers of those paths that are planned, of all that none is better than in both bytes and operations, the smallest ones first: what they
/// take in the end is known then, so that some around what is wanted are, and fewer further away. Without any patches they take `once`.
fn some_of(paths: &[(usize, Vec<Taken>)], once: usize, chain: &Chain<'_>, wanted: Wanted) -> Vec<usize> {
    let products = chain.products();
    let smallest = |share: u64| {
        let most = products.saturating_mul(share) / 1000;
        paths.partition_point(|(_, path)| path.iter().map(|taken| taken.twice).sum::<u64>() > most)
    };
    let steps = || std::iter::once(0).chain((0..).map(|exponent| 1 << exponent));
    let wanted: Vec<usize> = match wanted {
        // What is estimated may be a little more than what is planned.
        Wanted::Arena(bytes) => {
            let behind = paths.partition_point(|(own, _)| *own <= bytes + bytes / 50);
            steps().map_while(|step: usize| behind.checked_sub(1 + step)).collect()
        }
        Wanted::Twice(share) => {
            let first = smallest(share);
            steps().map(|step: usize| first + step).take_while(|&number| number < paths.len()).collect()
        }
        Wanted::Once => {
            let behind = paths.partition_point(|(own, _)| *own <= once - once / LEAST_SAVED);
            return (0..behind).step_by(behind.div_ceil(MOST_ONCE).max(1)).collect();
        }
        Wanted::All => SHARES.into_iter().map(smallest).collect(),
    };
    let numbers: BTreeSet<usize> = (0..LEAST).chain(wanted).filter(|&number| number < paths.len()).collect();
    numbers.into_iter().collect()
}

/// The plan of what is taken of a chain; `None` where there are no patches.
fn plan(graph: &Graph, chain: &Chain<'_>, path: &[Taken]) -> Result<Option<Plan>, Diagnostic> {
    let taken: Vec<&Taken> = path.iter().filter(|taken| taken.patches > 1).collect();
    let nodes = |taken: &Taken| chain.nodes[taken.first..taken.first + taken.count].to_vec();
    let patches: Vec<Patches> =
        taken.iter().map(|taken| Patches { nodes: nodes(taken), count: taken.patches, halo: taken.halo }).collect();
    if patches.is_empty() {
        return Ok(None);
    }
    let Some(Patched { graph, nodes }) = Patched::new(graph, &patches)? else { return Ok(None) };
    let places = taken.iter().flat_map(|taken| (0..taken.patches).map(|number| (number, taken.patches)));
    let own = nodes.into_iter().zip(places).map(|(nodes, patch)| Block { nodes, patch, ..Block::default() });
    let given = stripes(chain, path);
    let blocks = given.iter().filter(|block| block.patches == 1).cloned().chain(own).collect();
    Ok(Some(Plan { graph: Rc::new(graph), blocks, given }))
}

/// The blocks of what is taken of a chain.
fn stripes(chain: &Chain<'_>, path: &[Taken]) -> Vec<Block> {
    let name = |id: NodeId| chain.graph.node(id).name.to_string();
    let block = |taken: &Taken| Block {
        nodes: chain.nodes[taken.first..taken.first + taken.count].iter().map(|&id| name(id)).collect(),
        rows: taken.rows,
        patches: taken.patches,
        halo: taken.halo,
        twice: taken.twice,
        fed: chain.fed(taken.first, taken.count).map(name),
        ..Block::default()
    };
    path.iter().filter(|taken| taken.rows > 0).map(block).collect()
}

/// Where blocks begin and end amid the nodes, and why.
pub fn cuts(graph: &Graph, target: &Target, fed: Option<NodeId>, blocks: &[Block]) -> Vec<Cut> {
    let chain = Chain::new(graph, target, fed);
    let number = |name: &String| chain.nodes.iter().position(|&id| *graph.node(id).name == **name);
    let mut cuts: Vec<Cut> = Vec::new();
    for block in blocks {
        let Some(first) = block.nodes.first().and_then(number) else { continue };
        let behind = first + block.nodes.len();
        let ends = [first.checked_sub(1).map(|before| (before, first)), Some((behind - 1, behind))];
        for (before, behind) in ends.into_iter().flatten().filter(|(_, behind)| *behind < chain.nodes.len()) {
            let name = |node: usize| graph.node(chain.nodes[node]).name.to_string();
            let cut = Cut { before: name(before), behind: name(behind), reason: chain.reason(blocks, before, behind) };
            if !cuts.contains(&cut) {
                cuts.push(cut);
            }
        }
    }
    cuts
}
