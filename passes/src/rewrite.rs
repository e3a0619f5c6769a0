//! Rewrite rules: what they match, what they build, and how they are checked.
//!
//! A [`Rule`] is a typed function from a matched application to a [`Term`] that equals it. It reads the program through a
//! [`View`], so that the same rule serves the canonicaliser (one application per value), the e-graph (several per class)
//! and the soundness check. A rule looks at operators' fields and at types, never at how often a value is used. It can't be
//! declared without a sampler, a function that makes a random graph on which the rule is meant to fire.

use egg::Id;
use mlc_ir::{Attribute, Generator, Graph, Literal, Op, OpKind, TensorType};
use smallvec::SmallVec;

/// A value as rules see it: a class of the e-graph, or a value of the graph under construction.
pub type Class = Id;

/// One way to compute a value.
#[derive(Debug, Clone, Copy)]
pub struct Application<'a> {
    /// The operator.
    pub op: &'a Op,
    /// Its operands.
    pub operands: &'a [Class],
}

/// The program as rules see it.
pub trait View {
    /// Type of a value.
    fn ty(&self, class: Class) -> &TensorType;

    /// The ways to compute a value, of operators with one result; first the one that a graph chosen earlier takes, if there is one.
    fn applications(&self, class: Class) -> SmallVec<[Application<'_>; 4]>;

    /// Whether a graph that was chosen earlier needs the value; always where there is none.
    fn is_chosen(&self, class: Class) -> bool;

    /// Whether the value depends on constants only.
    fn is_constant(&self, class: Class) -> bool;

    /// The number that all elements of a constant are known to be.
    fn splat(&self, class: Class) -> Option<Literal>;

    /// The elements of a constant, when they are at hand without computing.
    fn value(&self, class: Class) -> Option<&Attribute>;

    /// Every value in a fixed order.
    fn classes(&self) -> Vec<Class>;

    /// Whether an output of the graph is this value.
    fn is_output(&self, class: Class) -> bool;
}

/// An expression over values: what a rule builds.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// A value that is there.
    Value(Class),
    /// An operator of one result, applied.
    Apply(Box<Op>, Vec<Term>),
}

impl Term {
    /// Applies an operator.
    pub fn apply(op: impl Into<Op>, operands: impl IntoIterator<Item = Term>) -> Term {
        Term::Apply(Box::new(op.into()), operands.into_iter().collect())
    }
}

impl From<Class> for Term {
    fn from(class: Class) -> Term {
        Term::Value(class)
    }
}

/// What a rule is tried on.
#[derive(Clone, Copy)]
pub struct Match<'a> {
    /// The program around it.
    pub view: &'a dyn View,
    /// The operator.
    pub op: &'a Op,
    /// Its operands.
    pub operands: &'a [Class],
    /// Type of its result.
    pub ty: &'a TensorType,
}

impl<'a> Match<'a> {
    /// Type of operand `k`. Precondition: it has one.
    pub fn operand_type(&self, k: usize) -> &'a TensorType {
        self.view.ty(self.operands[k])
    }

    /// Types of all operands.
    pub fn operand_types(&self) -> Vec<TensorType> {
        self.operands.iter().map(|&operand| self.view.ty(operand).clone()).collect()
    }

    /// The ways to compute operand `k`.
    pub fn inner(&self, k: usize) -> SmallVec<[Application<'a>; 4]> {
        self.view.applications(self.operands[k])
    }
}

/// How strictly both sides of a rule agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exactness {
    /// Bit for bit, but for the sign of zero and the bits of a NaN, whatever the numbers are: infinities, denormals and the
    /// largest ones too.
    Exact,
    /// The same, where no element is NaN or infinite: a product with zero is left out, which would be NaN then.
    Finite,
    /// Up to rounding, for finite constants, and for sums and products that stay in the type's range: floating-point operations
    /// are reassociated. What is finite stays finite, and what is NaN or infinite stays one of them.
    Reassociation,
}

impl Exactness {
    /// Whether both sides of a rule give the same numbers, not only near ones.
    pub fn rounds_alike(self) -> bool {
        self != Exactness::Reassociation
    }
}

/// Finds what one application can be replaced by.
pub type Find = fn(&Match<'_>) -> Vec<Term>;

/// Finds what values can be replaced by, looking at the whole program.
pub type FindGroups = fn(&dyn View) -> Vec<(Class, Term)>;

/// How a rule finds its matches.
#[derive(Clone, Copy)]
pub enum Search {
    /// It is tried on every application of these operators.
    Each(&'static [OpKind], Find),
    /// It looks at the whole program once, for rules that join several values.
    Groups(FindGroups),
    /// The same for rules that remember what they have looked at: makes one that has seen nothing.
    Watch(fn() -> Box<dyn Watch>),
}

/// Finds what values can be replaced by, looking at the whole program again and again.
pub trait Watch {
    /// What was not found the last time.
    fn find(&mut self, view: &dyn View) -> Vec<(Class, Term)>;
}

/// A named rewrite.
#[derive(Clone, Copy)]
pub struct Rule {
    /// A phrase that reads well as a step of a proof. Public: it appears in reports.
    pub name: &'static str,
    /// How strictly both sides agree.
    pub exactness: Exactness,
    /// Why both sides are equal, in one line.
    pub reason: &'static str,
    /// How it finds its matches.
    pub search: Search,
    /// A random small graph with one output that the rule is meant to match.
    pub sample: fn(&mut Generator) -> Graph,
}

impl Rule {
    /// An exact rule that looks at one application at a time.
    pub const fn exact(
        name: &'static str,
        reason: &'static str,
        kinds: &'static [OpKind],
        find: Find,
        sample: fn(&mut Generator) -> Graph,
    ) -> Rule {
        Rule { name, exactness: Exactness::Exact, reason, search: Search::Each(kinds, find), sample }
    }

    /// A rule that is exact for finite numbers and looks at one application at a time.
    pub const fn finite(
        name: &'static str,
        reason: &'static str,
        kinds: &'static [OpKind],
        find: Find,
        sample: fn(&mut Generator) -> Graph,
    ) -> Rule {
        Rule { name, exactness: Exactness::Finite, reason, search: Search::Each(kinds, find), sample }
    }

    /// A reassociating rule that looks at one application at a time.
    pub const fn reassociation(
        name: &'static str,
        reason: &'static str,
        kinds: &'static [OpKind],
        find: Find,
        sample: fn(&mut Generator) -> Graph,
    ) -> Rule {
        Rule { name, exactness: Exactness::Reassociation, reason, search: Search::Each(kinds, find), sample }
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
