//! Rewriting of scalars: a rule looks at one step of a scalar computation and the steps below it. It doesn't know whether these
//! are steps of an expression, of a `map` or an epilogue, or elementwise operators of the graph: it serves both.

use crate::rewrite::{Application, Class, Match, Term};
use indexmap::IndexMap;
use mlc_ir::ops::{Binary, Broadcast, Cast, Constant, Kernel, Map, Select, Unary};
use mlc_ir::scalar::{BinaryFunction, Expression, ExpressionBuilder, ScalarId, ScalarNode, UnaryFunction};
use mlc_ir::{DType, Literal, Op, OpKind};

/// The operators that are one scalar function, and those that hold an expression.
pub(super) const KINDS: &[OpKind] =
    &[OpKind::Binary, OpKind::Cast, OpKind::Kernel, OpKind::Map, OpKind::Select, OpKind::Unary];

/// Ways to compute the operands of one operator that are looked at, at most.
const SPELLINGS: usize = 16;

/// Steps of a computation, the last of which a rule may replace.
pub(super) struct Scalars<'s> {
    nodes: &'s [ScalarNode],
    dtypes: &'s [DType],
}

impl Scalars<'_> {
    /// The step to be replaced, and its type.
    pub(super) fn root(&self) -> (ScalarNode, DType) {
        let last = self.nodes.len() - 1;
        (self.nodes[last], self.dtypes[last])
    }

    /// Another step.
    pub(super) fn node(&self, id: ScalarId) -> ScalarNode {
        self.nodes[id as usize]
    }

    /// A step's type.
    pub(super) fn dtype(&self, id: ScalarId) -> DType {
        self.dtypes[id as usize]
    }

    /// The number that a step is.
    pub(super) fn literal(&self, id: ScalarId) -> Option<Literal> {
        match self.node(id) {
            ScalarNode::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// Whether a step is this number.
    pub(super) fn is_number(&self, id: ScalarId, number: f64) -> bool {
        self.literal(id).is_some_and(|literal| literal.to_f64() == number)
    }
}

/// What replaces a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScalarTerm {
    /// Another step.
    Step(ScalarId),
    /// A number.
    Number(Literal),
    /// A function of one scalar.
    Unary(UnaryFunction, Box<ScalarTerm>),
    /// A function of two scalars.
    Binary(BinaryFunction, Box<(ScalarTerm, ScalarTerm)>),
    /// A choice by a step, a condition, between two others.
    Select(ScalarId, ScalarId, ScalarId),
    /// A conversion.
    Cast(DType, Box<ScalarTerm>),
}

impl ScalarTerm {
    /// `function(x)`
    pub(super) fn unary(function: UnaryFunction, x: impl Into<ScalarTerm>) -> ScalarTerm {
        ScalarTerm::Unary(function, Box::new(x.into()))
    }

    /// A conversion to another type.
    pub(super) fn cast(dtype: DType, x: impl Into<ScalarTerm>) -> ScalarTerm {
        ScalarTerm::Cast(dtype, Box::new(x.into()))
    }

    /// `function(x, y)`
    pub(super) fn binary(function: BinaryFunction, x: impl Into<ScalarTerm>, y: impl Into<ScalarTerm>) -> ScalarTerm {
        ScalarTerm::Binary(function, Box::new((x.into(), y.into())))
    }

    /// Adds the term to an expression whose steps became those of `map`.
    fn build(&self, b: &mut ExpressionBuilder, map: &[ScalarId]) -> ScalarId {
        let step = |id: ScalarId| map[id as usize];
        match self {
            ScalarTerm::Step(id) => step(*id),
            ScalarTerm::Number(literal) => b.literal(*literal),
            ScalarTerm::Unary(function, x) => {
                let x = x.build(b, map);
                b.unary(*function, x)
            }
            ScalarTerm::Binary(function, operands) => {
                let (x, y) = (operands.0.build(b, map), operands.1.build(b, map));
                b.binary(*function, x, y)
            }
            ScalarTerm::Select(c, x, y) => b.select(step(*c), step(*x), step(*y)),
            ScalarTerm::Cast(dtype, x) => {
                let x = x.build(b, map);
                b.cast(*dtype, x)
            }
        }
    }

    /// The term over tensors, where each step is a value.
    fn over(&self, classes: &[Class]) -> Term {
        let value = |id: ScalarId| Term::Value(classes[id as usize]);
        match self {
            ScalarTerm::Step(id) => value(*id),
            ScalarTerm::Number(literal) => Term::apply(Constant { value: literal.to_attribute() }, []),
            ScalarTerm::Unary(function, x) => Term::apply(Unary { function: *function }, [x.over(classes)]),
            ScalarTerm::Binary(function, operands) => {
                Term::apply(Binary { function: *function }, [operands.0.over(classes), operands.1.over(classes)])
            }
            ScalarTerm::Select(c, x, y) => Term::apply(Select {}, [value(*c), value(*x), value(*y)]),
            ScalarTerm::Cast(dtype, x) => Term::apply(Cast { dtype: *dtype }, [x.over(classes)]),
        }
    }
}

impl From<ScalarId> for ScalarTerm {
    fn from(id: ScalarId) -> ScalarTerm {
        ScalarTerm::Step(id)
    }
}

/// Finds what a step can be replaced by.
pub(super) type FindScalar = fn(&Scalars<'_>) -> Option<ScalarTerm>;

/// What a rule makes of an operator.
pub(super) fn rewrites(m: &Match<'_>, find: FindScalar) -> Vec<Term> {
    match m.op {
        Op::Map(map) => {
            let dtypes: Vec<DType> = m.operand_types().iter().map(|ty| ty.dtype).collect();
            in_expression(&map.expression, &dtypes, find).into_iter().map(|body| map_of(m, &body)).collect()
        }
        Op::Kernel(kernel) => {
            let types = m.operand_types();
            let Ok(results) = kernel.anchor_results(&types) else { return Vec::new() };
            let further = types[kernel.anchor_operands..].iter().map(|ty| ty.dtype);
            let dtypes: Vec<DType> = std::iter::once(results[0].dtype).chain(further).collect();
            in_expression(&kernel.expression, &dtypes, find)
                .into_iter()
                .map(|body| kernel_of(m, kernel, &body))
                .collect()
        }
        _ => in_operators(m, find),
    }
}

/// The expression in which the first step that can be is replaced.
fn in_expression(expression: &Expression, operands: &[DType], find: FindScalar) -> Option<Expression> {
    let dtypes = expression.dtypes(operands).ok()?;
    let nodes = expression.nodes();
    (0..nodes.len()).find_map(|root| {
        let term = find(&Scalars { nodes: &nodes[..=root], dtypes: &dtypes[..=root] })?;
        let rewritten = Expression::build(|b| {
            let mut map: Vec<ScalarId> = Vec::new();
            for (place, node) in nodes.iter().enumerate() {
                let id = if place == root {
                    term.build(b, &map)
                } else {
                    b.push(node.map_children(|child| map[child as usize]))
                };
                map.push(id);
            }
            map.last().copied().unwrap_or(0)
        });
        (rewritten != *expression).then_some(rewritten)
    })
}

/// The operands of number `first` or more that an expression reads, and the expression over those below and these.
fn pruned(body: &Expression, first: u32) -> (Expression, Vec<u32>) {
    let reads = |k: &u32| body.nodes().contains(&ScalarNode::Operand(*k));
    let read: Vec<u32> = (first..body.operand_count() as u32).filter(reads).collect();
    let number = |k: u32| read.iter().position(|&own| own == k).map_or(k, |place| first + place as u32);
    (body.renumber(number), read)
}

/// The operator of an expression over the operands of a `map`: the simplest that computes it.
fn map_of(m: &Match<'_>, body: &Expression) -> Term {
    let (body, read) = pruned(body, 0);
    let operands: Vec<Term> = read.iter().map(|&k| m.operands[k as usize].into()).collect();
    let over = |op: Op, places: &[ScalarId]| {
        Term::Apply(Box::new(op), places.iter().map(|&place| operands[place as usize].clone()).collect())
    };
    // Operands are numbered in the order in which they are read, so that the steps before a single function are theirs.
    let (last, before) = body.nodes().split_last().unwrap_or((&ScalarNode::Operand(0), &[]));
    let leaves = before.iter().enumerate().all(|(place, node)| *node == ScalarNode::Operand(place as u32));
    match *last {
        ScalarNode::Operand(_) => operands[0].clone(),
        ScalarNode::Literal(literal) => {
            let number = Term::apply(Constant { value: literal.to_attribute() }, []);
            Term::apply(Broadcast { shape: m.ty.shape.clone() }, [number])
        }
        ScalarNode::Unary(function, x) if leaves => over(Unary { function }.into(), &[x]),
        ScalarNode::Binary(function, x, y) if leaves => over(Binary { function }.into(), &[x, y]),
        ScalarNode::Select(c, x, y) if leaves => over(Select {}.into(), &[c, x, y]),
        ScalarNode::Cast(dtype, x) if leaves => over(Cast { dtype }.into(), &[x]),
        _ => Term::apply(Map { expression: body }, operands),
    }
}

/// The kernel with another epilogue, or its anchor alone.
fn kernel_of(m: &Match<'_>, kernel: &Kernel, body: &Expression) -> Term {
    let (own, further) = m.operands.split_at(kernel.anchor_operands);
    let (body, read) = pruned(body, 1);
    if body.is_identity() {
        return Term::Apply(kernel.anchor.clone(), own.iter().map(|&operand| operand.into()).collect());
    }
    let further = read.iter().map(|&k| further[k as usize - 1]);
    let operands: Vec<Term> = own.iter().copied().chain(further).map(Term::from).collect();
    Term::apply(Kernel { expression: body, ..kernel.clone() }, operands)
}

/// An elementwise operator of one function as a step over its operands' steps.
fn step(op: &Op, operands: &[ScalarId]) -> Option<ScalarNode> {
    Some(match (op, operands) {
        (Op::Unary(op), &[x]) => ScalarNode::Unary(op.function, x),
        (Op::Binary(op), &[x, y]) => ScalarNode::Binary(op.function, x, y),
        (Op::Select(_), &[c, x, y]) => ScalarNode::Select(c, x, y),
        (Op::Cast(op), &[x]) => ScalarNode::Cast(op.dtype, x),
        _ => return None,
    })
}

/// What a rule makes of an operator of the graph, looking at the operators below it too.
fn in_operators(m: &Match<'_>, find: FindScalar) -> Vec<Term> {
    // Constants are computed whatever they look like.
    if m.operands.iter().all(|&operand| m.view.is_constant(operand)) {
        return Vec::new();
    }
    let mut terms: Vec<Term> = Vec::new();
    for spelling in spellings(m) {
        let Some((nodes, dtypes, classes)) = scalars_of(m, &spelling) else { continue };
        let term = match find(&Scalars { nodes: &nodes, dtypes: &dtypes }) {
            None => continue,
            // A step that the others widen is left alone.
            Some(ScalarTerm::Step(id)) if m.view.ty(classes[id as usize]) != m.ty => continue,
            Some(term @ ScalarTerm::Number(_)) => {
                Term::apply(Broadcast { shape: m.ty.shape.clone() }, [term.over(&classes)])
            }
            Some(term) => term.over(&classes),
        };
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

/// For each operand the operator that it is looked at as, if it is looked into, in every combination.
fn spellings<'a>(m: &Match<'a>) -> Vec<Vec<Option<Application<'a>>>> {
    let mut spellings: Vec<Vec<Option<Application<'a>>>> = vec![Vec::new()];
    for (k, &operand) in m.operands.iter().enumerate() {
        let inner = if m.view.is_constant(operand) { Default::default() } else { m.inner(k) };
        // A value may be computed from itself, as x is x + 0.
        let single = inner.into_iter().filter(|inner| {
            matches!(inner.op.kind(), OpKind::Unary | OpKind::Binary | OpKind::Select | OpKind::Cast)
                && !inner.operands.contains(&operand)
        });
        let mut ways: Vec<Option<Application<'a>>> = single.map(Some).collect();
        if ways.is_empty() || m.view.splat(operand).is_some() {
            ways = vec![None];
        }
        let longer = spellings
            .iter()
            .flat_map(|start| ways.iter().map(move |&way| start.iter().copied().chain([way]).collect::<Vec<_>>()));
        spellings = longer.take(SPELLINGS).collect();
    }
    spellings
}

/// The steps of an operator and of those below it with their types, and the value that each step but the last is.
fn scalars_of(
    m: &Match<'_>,
    spelling: &[Option<Application<'_>>],
) -> Option<(Vec<ScalarNode>, Vec<DType>, Vec<Class>)> {
    let mut steps: IndexMap<Class, ScalarNode> = IndexMap::new();
    let leaf = |steps: &mut IndexMap<Class, ScalarNode>, class: Class| -> ScalarId {
        let next = steps.len() as u32;
        let node = || m.view.splat(class).map_or(ScalarNode::Operand(next), ScalarNode::Literal);
        let entry = steps.entry(class);
        let place = entry.index();
        entry.or_insert_with(node);
        place as ScalarId
    };
    let mut operands: Vec<ScalarId> = Vec::new();
    for (&class, way) in m.operands.iter().zip(spelling) {
        let known = steps.get_index_of(&class).map(|place| place as ScalarId);
        let id = match (known, way) {
            (Some(id), _) => id,
            (None, None) => leaf(&mut steps, class),
            (None, Some(inner)) => {
                let below: Vec<ScalarId> = inner.operands.iter().map(|&operand| leaf(&mut steps, operand)).collect();
                steps.insert_full(class, step(inner.op, &below)?).0 as ScalarId
            }
        };
        operands.push(id);
    }
    let root = step(m.op, &operands)?;
    let (classes, mut nodes): (Vec<Class>, Vec<ScalarNode>) = steps.into_iter().unzip();
    let mut dtypes: Vec<DType> = classes.iter().map(|&class| m.view.ty(class).dtype).collect();
    nodes.push(root);
    dtypes.push(m.ty.dtype);
    Some((nodes, dtypes, classes))
}
