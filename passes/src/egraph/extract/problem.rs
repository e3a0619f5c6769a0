//! The e-graph as extraction sees it: the options of each class, what they need and what they cost.

use super::constants;
use super::price_list::{Goal, PriceList, operands};
use crate::egraph::language::{ENode, Head};
use crate::egraph::maps::Map;
use crate::egraph::space::Space;
use crate::rewrite::View;
use egg::{Id, Language};
use mlc_ir::{Category, Known, Op, TensorType};
use std::sync::Arc;

/// What any application costs beside its price, so that of equal prices the smaller graph is taken.
const NODE: u64 = 1;

/// One node of a class, with dense class numbers.
pub(super) struct Candidate {
    cost: u64,
    pub(super) children: Vec<usize>,
    pub(super) node: ENode,
    /// What it costs more where a child takes some of its options.
    links: Vec<Link>,
}

/// What a node costs more for each option of a class: that of an operand, or of what the operand is a view of.
struct Link {
    class: usize,
    extras: Vec<Extra>,
}

/// What a node costs more with an option.
struct Extra {
    cost: u64,
    /// The same by the options of what the option is a view of, where these matter.
    below: Option<Box<Link>>,
}

impl Link {
    fn cost(&self, chosen: &impl Fn(usize) -> Option<usize>) -> Option<u64> {
        let extra = &self.extras[chosen(self.class)?];
        extra.below.as_ref().and_then(|below| below.cost(chosen)).or(Some(extra.cost))
    }
}

impl Candidate {
    /// Its cost, where others chose so.
    pub(super) fn cost(&self, chosen: impl Fn(usize) -> Option<usize>) -> u64 {
        let links = self.links.iter().filter_map(|link| link.cost(&chosen));
        links.fold(self.cost, u64::saturating_add)
    }

    /// Whether it shows the memory of its only child.
    pub(super) fn is_view(&self) -> bool {
        self.node.op.as_ref().is_some_and(|op| op.category() == Category::View)
    }
}

/// The number of the class of each e-node.
struct Numbers(Vec<usize>);

impl Numbers {
    fn new(space: &Space, classes: &[Id]) -> Numbers {
        let mut own = vec![0; space.egraph.nodes().len()];
        classes.iter().enumerate().for_each(|(number, &class)| own[usize::from(class)] = number);
        Numbers((0..own.len()).map(|id| own[usize::from(space.egraph.find(Id::from(id)))]).collect())
    }

    fn of(&self, id: Id) -> usize {
        self.0[usize::from(id)]
    }
}

/// The e-graph with dense class numbers and costs.
pub struct Problem {
    /// Class of each number.
    pub(super) ids: Vec<Id>,
    numbers: Numbers,
    pub(super) options: Vec<Vec<Candidate>>,
    pub(super) root: usize,
    pub(super) start: Vec<Option<usize>>,
    pub(super) constants: Map<Id, ENode>,
}

/// For each class number the option chosen, where the class can be computed.
pub(super) type Choice = Vec<Option<usize>>;

impl Problem {
    /// Reads a space.
    pub fn new(space: &Space, prices: &mut PriceList<'_>) -> Problem {
        let ids = space.classes();
        let constants = constants::computed_by(space, &ids);
        let numbers = Numbers::new(space, &ids);
        let mut options: Vec<Vec<Candidate>> =
            ids.iter().map(|&id| options(space, id, &numbers, &constants, prices)).collect();
        link(space, &numbers, &mut options, prices.goal);
        let mut start = vec![None; ids.len()];
        for (&node, &id) in &space.ids {
            let number = numbers.of(id);
            if constants.contains_key(&ids[number]) {
                // Its only option is as good as the source's own way to compute it: both are leaves.
                start[number] = Some(0);
                continue;
            }
            let children: Vec<Id> = space.egraph.nodes()[usize::from(id)]
                .children()
                .iter()
                .map(|&child| space.egraph.find(child))
                .collect();
            let head = &space.egraph.nodes()[usize::from(id)].head;
            let same = |option: &Candidate| option.node.head == *head && option.node.children[..] == children[..];
            if start[number].is_none() {
                start[number] = options[number].iter().position(same);
            }
            debug_assert!(space.source.node(node).results.len() != 1 || !options[number].is_empty());
        }
        let root = numbers.of(space.root);
        for (number, options) in options.iter().enumerate() {
            let structural = |option: &Candidate| matches!(option.node.head, Head::Projection(_) | Head::Outputs);
            if start[number].is_none() && options.iter().any(structural) {
                start[number] = options.iter().position(structural);
            }
        }
        Problem { ids, numbers, options, root, start, constants }
    }

    /// What was chosen of the space earlier, as far as its classes are needed still.
    pub(super) fn choice_of(&self, space: &Space, earlier: &Map<Id, ENode>) -> Choice {
        let mut choice: Choice = vec![None; self.ids.len()];
        for (&class, node) in earlier {
            let node = node.clone().map_children(|child| space.egraph.find(child));
            let number = self.numbers.of(class);
            let is_leaf = self.constants.contains_key(&self.ids[number]);
            let same = |option: &Candidate| is_leaf || option.node == node;
            choice[number] = choice[number].or(self.options[number].iter().position(same));
        }
        choice
    }

    /// The classes that a choice needs, operands before users, and their cost; `None` on a cycle or a gap.
    pub(super) fn schedule(&self, choice: &Choice) -> Option<(Vec<usize>, u64)> {
        let mut state = vec![0u8; self.ids.len()];
        let mut order = Vec::new();
        let mut cost = 0u64;
        let mut stack = vec![(self.root, 0usize)];
        state[self.root] = 1;
        while let Some((class, position)) = stack.pop() {
            let option = &self.options[class][choice[class]?];
            match option.children.get(position) {
                Some(&child) => {
                    stack.push((class, position + 1));
                    match state[child] {
                        0 => {
                            state[child] = 1;
                            stack.push((child, 0));
                        }
                        1 => return None,
                        _ => {}
                    }
                }
                None => {
                    state[class] = 2;
                    cost = cost.saturating_add(option.cost(|child| choice[child]));
                    order.push(class);
                }
            }
        }
        Some((order, cost))
    }
}

fn options(
    space: &Space,
    id: Id,
    numbers: &Numbers,
    constants: &Map<Id, ENode>,
    prices: &mut PriceList<'_>,
) -> Vec<Candidate> {
    let class = &space.egraph[id];
    if let Some(node) = constants.get(&id) {
        let known = if class.data.splat.is_some() { Known::Splat } else { Known::Constant };
        let cost = prices.goal.weights.weigh(prices.goal.prices.constant(&class.data.results[0], known));
        return vec![Candidate { cost, children: Vec::new(), node: node.clone(), links: Vec::new() }];
    }
    let mut option = |node: &ENode| {
        let cost = match (&node.head, &node.op) {
            (Head::Op(_), Some(op)) => prices.application(space, node, op).saturating_add(NODE),
            _ => 0,
        };
        let mut children: Vec<usize> = Vec::new();
        for child in &node.children {
            let number = numbers.of(*child);
            if !children.contains(&number) {
                children.push(number);
            }
        }
        Candidate { cost, children, node: node.clone(), links: Vec::new() }
    };
    class.nodes.iter().map(&mut option).collect()
}

/// A view or an input, and the type of what it shows.
struct Source {
    op: Arc<Op>,
    ty: TensorType,
    /// Number of the class that it shows; none for an input.
    shown: Option<usize>,
}

/// What the options of each class are.
type Sources = Vec<Vec<Option<Source>>>;

/// Views of views that are looked at.
const DEPTH: usize = 2;
/// Where an operand can be so many views of views, only the views that give it are looked at: an orbit of transposes has as many
/// as the square of its size, and the composed ones are among its views themselves.
const CHAINS: usize = 256;

/// Finds what nodes cost more where an operand is a view, or an input.
fn link(space: &Space, numbers: &Numbers, options: &mut [Vec<Candidate>], goal: Goal<'_>) {
    let sources: Sources = options
        .iter()
        .map(|options| options.iter().map(|option| source(space, numbers, &option.node)).collect())
        .collect();
    for option in options.iter_mut().flatten() {
        let (Head::Op(_), Some(op)) = (&option.node.head, &option.node.op) else { continue };
        let is_made = |&child: &usize| sources[child].iter().all(Option::is_none);
        if option.children.iter().all(is_made) {
            continue;
        }
        let operands = operands(space, &option.node);
        for (number, child) in option.node.children.iter().enumerate() {
            let price = |chain: &[(&Op, &TensorType)]| {
                goal.weights.weigh(goal.prices.operand(op, &operands, &option.node.results, number, chain))
            };
            let class = numbers.of(*child);
            let shown = sources[class].iter().flatten().filter_map(|source| source.shown);
            let is_orbit = shown.map(|shown| sources[shown].iter().flatten().count()).sum::<usize>() > CHAINS;
            let found = chains(&sources, class, &mut Vec::new(), 0, if is_orbit { 1 } else { DEPTH }, &price);
            if found.extras.iter().any(|extra| extra.cost != 0 || extra.below.is_some()) {
                option.links.push(found);
            }
        }
    }
}

/// What a reader costs more that sees a chain of views.
type Price<'a> = dyn Fn(&[(&Op, &TensorType)]) -> u64 + 'a;

/// What a reader costs more by the options of a class that it sees through a chain of views, of at most `depth`, and without them.
fn chains<'s>(
    sources: &'s Sources,
    class: usize,
    chain: &mut Vec<(&'s Op, &'s TensorType)>,
    without: u64,
    depth: usize,
    price: &Price<'_>,
) -> Link {
    let mut extras = Vec::with_capacity(sources[class].len());
    for source in &sources[class] {
        let Some(source) = source else {
            extras.push(Extra { cost: without, below: None });
            continue;
        };
        chain.push((&*source.op, &source.ty));
        let cost = price(chain);
        let below =
            source.shown.filter(|_| chain.len() < depth).map(|shown| chains(sources, shown, chain, cost, depth, price));
        let matters = |link: &Link| link.extras.iter().any(|extra| extra.cost != cost || extra.below.is_some());
        extras.push(Extra { cost, below: below.filter(matters).map(Box::new) });
        chain.pop();
    }
    Link { class, extras }
}

/// The view or input that a node is.
fn source(space: &Space, numbers: &Numbers, node: &ENode) -> Option<Source> {
    let op = node.op.clone()?;
    match (&node.head, &node.children[..]) {
        (Head::Input(_), _) => Some(Source { ty: node.results[0].clone(), shown: None, op }),
        (Head::Op(_), [child]) if op.category() == Category::View => {
            let ty = space.egraph[*child].data.results.first()?.clone();
            Some(Source { op, ty, shown: Some(numbers.of(*child)) })
        }
        _ => None,
    }
}
