//! [`Space`]: an e-graph with what it needs to talk to rules and graphs. Two doors only: [`Space::into_egraph`] lets a graph
//! in, [`super::rebuild::from_egraph`] lets the chosen one out.

use super::language::{self, ENode, Graph as EGraph, Head, TypeAnalysis};
use super::maps::{Map, Set};
use crate::rewrite::{Application, Class, Term, View};
use egg::Id;
use mlc_ir::{Attribute, Graph, Literal, NodeId, Op, TensorType};
use smallvec::SmallVec;
use std::sync::Arc;

/// A graph's e-graph.
pub struct Space {
    /// The classes.
    pub egraph: EGraph,
    /// The graph that came in.
    pub source: Graph,
    /// For each node of the source, the id of its e-node, which names the term as it came in.
    pub ids: Map<NodeId, Id>,
    /// The root, whose children are the outputs, and behind them what has effects, used or not.
    pub root: Id,
    /// For each class that rules built, the ids of the classes on which they fired.
    pub built_for: Map<Id, Set<Id>>,
    /// For each e-node that a rule built, the rule's name.
    pub built_by: Map<Id, &'static str>,
    /// For classes that a graph was chosen of already, the node that was taken: see [`View::applications`].
    chosen: Map<Id, ENode>,
    operators: Set<Arc<Op>>,
    outputs: Set<Id>,
    /// The e-nodes in the order in which they were made. What egg keeps for explanations beside them isn't among them, so
    /// that whatever is counted and decided by these is the same with and without.
    made: Vec<Id>,
}

impl Space {
    /// Lets a graph in. `explain` keeps what explanations need.
    pub fn into_egraph(source: Graph, explain: bool) -> Space {
        let mut egraph = EGraph::new(TypeAnalysis);
        if explain {
            egraph = egraph.with_explanations_enabled().without_explanation_length_optimization();
        }
        let mut space = Space {
            egraph,
            ids: Map::default(),
            root: Id::from(0),
            built_for: Map::default(),
            built_by: Map::default(),
            chosen: Map::default(),
            operators: Set::default(),
            outputs: Set::default(),
            made: Vec::new(),
            source: Graph::default(),
        };
        for id in source.topological_order() {
            space.import(&source, id);
        }
        let outputs: SmallVec<[Id; 4]> =
            source.outputs().iter().map(|output| space.value_id(&source, output.value)).collect();
        space.outputs = outputs.iter().copied().collect();
        let effects = source.node_ids().filter(|&id| source.node(id).op.effects().is_some());
        let needed = outputs.iter().copied().chain(effects.map(|id| space.ids[&id])).collect();
        space.root = space.add(Head::Outputs, None, needed, Arc::from([]));
        space.restore();
        space.source = source;
        space
    }

    /// Has congruent e-nodes be in one class again. egg times that, and asking the machine's clock for the first time takes a tenth of a
    /// second: it gets a clock that stands still.
    pub fn restore(&mut self) {
        let (clock, _) = quanta::Clock::mock();
        quanta::with_clock(&clock, || self.egraph.rebuild());
    }

    fn import(&mut self, source: &Graph, id: NodeId) {
        let node = source.node(id);
        let results: Arc<[TensorType]> = node.results.clone().into();
        if let Some(number) = source.inputs().iter().position(|&input| input == id) {
            let added = self.add(Head::Input(number as u32), Some(Arc::new(node.op.clone())), SmallVec::new(), results);
            self.ids.insert(id, added);
            return;
        }
        let children = source.operands(id).into_iter().map(|value| self.value_id(source, value)).collect();
        let (head, op) = self.intern(&node.op);
        let added = self.add(head, Some(op), children, results);
        self.ids.insert(id, added);
    }

    fn value_id(&mut self, source: &Graph, value: mlc_ir::Value) -> Id {
        let id = self.ids[&value.node];
        let results = &source.node(value.node).results;
        if results.len() == 1 {
            return id;
        }
        let ty: Arc<[TensorType]> = Arc::from([results[value.slot as usize].clone()]);
        self.add(Head::Projection(value.slot), None, SmallVec::from_slice(&[id]), ty)
    }

    fn intern(&mut self, op: &Op) -> (Head, Arc<Op>) {
        let number = match self.operators.get_index_of(op) {
            Some(number) => number,
            None => self.operators.insert_full(Arc::new(op.clone())).0,
        };
        (Head::Op(number as u32), self.operators[number].clone())
    }

    fn add(&mut self, head: Head, op: Option<Arc<Op>>, children: SmallVec<[Id; 4]>, results: Arc<[TensorType]>) -> Id {
        let classes = self.egraph.number_of_classes();
        let added = self.egraph.add_uncanonical(ENode { head, op, children, results });
        if self.egraph.number_of_classes() > classes {
            self.made.push(added);
        }
        added
    }

    /// Has rules look at these nodes before others of the same class.
    pub fn prefer(&mut self, nodes: &Map<Id, ENode>) {
        self.chosen = nodes.iter().map(|(&class, node)| (self.egraph.find(class), node.clone())).collect();
    }

    fn is_taken(&self, class: Class, node: &ENode) -> bool {
        let same = |chosen: &ENode| {
            let mut pairs = chosen.children.iter().zip(&node.children);
            chosen.head == node.head && pairs.all(|(&own, &other)| self.egraph.find(own) == self.egraph.find(other))
        };
        self.chosen.get(&class).is_some_and(same)
    }

    /// The class of an application of one result that there is already. Explanations tell the same e-node in two places apart.
    fn known(&self, op: &Op, children: &SmallVec<[Id; 4]>) -> Option<Id> {
        let number = self.operators.get_index_of(op).filter(|_| !self.egraph.are_explanations_enabled())?;
        let (head, children) = (Head::Op(number as u32), children.clone());
        let class = self.egraph.lookup(ENode { head, op: None, children, results: Arc::from([]) })?;
        (self.egraph[class].data.results.len() == 1).then_some(class)
    }

    /// The e-nodes in the order in which they were made.
    pub fn made(&self) -> &[Id] {
        &self.made
    }

    /// Adds a term for a class on which a rule fired. `None` when an operator doesn't accept its operands.
    pub fn build(&mut self, term: &Term, site: Id, rule: &'static str) -> Option<Id> {
        match term {
            Term::Value(class) => Some(*class),
            Term::Apply(op, operands) => {
                let mut children = SmallVec::new();
                for operand in operands {
                    children.push(self.build(operand, site, rule)?);
                }
                if let Some(known) = self.known(op, &children) {
                    self.built_for.entry(known).or_default().insert(site);
                    return Some(known);
                }
                let types: Vec<TensorType> =
                    children.iter().map(|&child| language::ty(&self.egraph, child).clone()).collect();
                let results = op.infer(&types).ok()?;
                if results.len() != 1 || results[0].checked_bytes().is_none() {
                    return None;
                }
                let before = self.made.len();
                let (head, op) = self.intern(op);
                let added = self.add(head, Some(op), children, results.into());
                if self.made.len() > before {
                    self.built_by.insert(added, rule);
                }
                self.built_for.entry(self.egraph.find(added)).or_default().insert(site);
                Some(added)
            }
        }
    }
}

impl View for Space {
    fn ty(&self, class: Class) -> &TensorType {
        language::ty(&self.egraph, class)
    }

    fn applications(&self, class: Class) -> SmallVec<[Application<'_>; 4]> {
        let nodes = self.egraph[class].nodes.iter();
        let of_one_result = nodes.filter(|node| matches!(node.head, Head::Op(_)) && node.results.len() == 1);
        let mut found: SmallVec<[Application<'_>; 4]> = SmallVec::new();
        for node in of_one_result {
            let Some(op) = node.op.as_deref() else { continue };
            let place = if self.is_taken(class, node) { 0 } else { found.len() };
            found.insert(place, Application { op, operands: &node.children });
        }
        found
    }

    fn is_chosen(&self, class: Class) -> bool {
        self.chosen.is_empty() || self.chosen.contains_key(&class)
    }

    fn is_constant(&self, class: Class) -> bool {
        self.egraph[class].data.constant
    }

    fn splat(&self, class: Class) -> Option<Literal> {
        self.egraph[class].data.splat
    }

    fn value(&self, class: Class) -> Option<&Attribute> {
        self.egraph[class].data.value.as_ref()
    }

    fn classes(&self) -> Vec<Class> {
        let mut classes: Vec<Class> = self.egraph.classes().map(|class| class.id).collect();
        classes.sort_unstable();
        classes
    }

    fn is_output(&self, class: Class) -> bool {
        self.outputs.iter().any(|&output| self.egraph.find(output) == self.egraph.find(class))
    }
}
