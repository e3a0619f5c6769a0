//! [`Outline`]: some nodes of a graph as kernels that take turns, and the rings between them.

use super::homes::is_constant;
use super::legalize::{anchor_mut, border_in_memory, take_pads};
use super::membership::{is_among, is_joined, is_kept};
use super::patches::rows_of;
use super::rings::{Pads, RingOfRows};
use super::turns::Turns;
use super::workers::{Worker, WorkerTurns};
use crate::target::Target;
use mlc_ir::ops::{Kernel, Map};
use mlc_ir::scalar::{BinaryFunction, Expression};
use mlc_ir::{Attribute, DType, Graph, NodeId, Op, RowWindow, Shape, TensorType, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What is appended to a ring that slides is so many times what is moved in it.
const LITTLE_MOVED: usize = 8;

/// A ring slides through this part of the tensor's rows at most.
const MOST_SLID: usize = 4;

/// See the module.
#[derive(Debug)]
pub struct Outline {
    /// Who takes turns, in order; the last one's result is the stripe's.
    pub members: Vec<Member>,
    /// When.
    pub turns: Turns,
}

/// One who takes turns.
#[derive(Debug)]
pub struct Member {
    /// The node that it computes, or reads for.
    pub node: NodeId,
    /// The tensor whose rows it appends.
    pub value: Value,
    /// What it does.
    pub work: Work,
    /// What of its rows is copied for who comes behind the stripe.
    pub kept: Vec<Kept>,
    /// The ring of its rows; the last member has none.
    pub ring: RingOfRows,
}

impl Member {
    /// How it reads the rows of a tensor outside.
    fn rows_of(&self, value: Value) -> Vec<RowWindow> {
        match &self.work {
            Work::Copy if self.value == value => vec![RowWindow::ROW],
            Work::Compute(parts) => {
                let all = parts.iter().flat_map(|part| part.values.iter().zip(&part.operands));
                let own = all.filter_map(|(&operand, source)| match source {
                    Source::Rows(window) if operand == value => Some(*window),
                    _ => None,
                });
                own.collect()
            }
            Work::Copy | Work::Sum(_) => Vec::new(),
        }
    }
}

/// Rows that are copied to a tensor outside of the stripe as they are appended.
#[derive(Debug)]
pub struct Kept {
    /// The node whose result they are.
    pub node: NodeId,
    /// Columns that aren't copied, before and after the others.
    pub skipped: (usize, usize),
}

/// What is done with rows.
#[derive(Debug)]
pub enum Work {
    /// They are copied from a tensor outside of the stripe.
    Copy,
    /// They are computed, some parts of them after the others.
    Compute(Vec<Computed>),
    /// The sum of what all rows contribute to the result, which is computed of it behind the stripe.
    Sum(Box<Sum>),
}

/// Rows, or a part of them along an axis.
#[derive(Debug)]
pub struct Computed {
    /// The node that computes them.
    pub node: NodeId,
    /// The operator, of as many rows as are computed at a time; `None` where the operand's are moved.
    pub op: Option<Op>,
    /// The operands.
    pub values: Vec<Value>,
    /// Where each operand is.
    pub operands: Vec<Source>,
    /// The axis along which they are joined to others, and their places on it.
    pub part: Option<(usize, Range<usize>)>,
}

/// A result as a sum over rows.
#[derive(Debug)]
pub struct Sum {
    /// What adds the share of some rows to the sum, its last operand.
    pub op: Op,
    /// Where the other operands are.
    pub operands: Vec<Source>,
    /// What the result is computed by from the sum and further operands.
    pub finish: Op,
    /// These operands.
    pub others: Vec<Value>,
}

/// Where an operand is.
#[derive(Debug, Clone)]
pub enum Source {
    /// Outside of the stripe, and read wholly.
    Whole,
    /// Outside of the stripe; all rows are alike, and some are read.
    First(usize),
    /// Outside of the stripe, and read row by row.
    Rows(RowWindow),
    /// In the ring of a member, with so much of the border around its columns.
    Ring {
        /// The member.
        member: usize,
        /// The rows that are read.
        window: RowWindow,
        /// Number of the read among those of rings.
        read: usize,
        /// The border.
        pads: Pads,
        /// Columns that aren't read, before and after the others.
        skipped: (usize, usize),
    },
}

impl Outline {
    /// An outline of nodes, each behind those that it reads from, that compute `rows` rows at a time; `None` where that can't be: where
    /// anything but the last one's result is needed elsewhere, or rows aren't computed alike. Rows of the input `fed` are given one after
    /// the other, so that they are copied, each in its turn.
    pub fn new(graph: &Graph, nodes: &[NodeId], rows: usize, fed: Option<NodeId>, target: &Target) -> Option<Outline> {
        let all: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let (kept, nodes): (Vec<NodeId>, Vec<NodeId>) = nodes.iter().partition(|id| is_kept(graph, **id, &all));
        let joined = nodes.iter().copied().filter(|&id| is_joined(graph, id, &all)).collect();
        let (members, workers, made) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut draft = Draft { graph, target, rows, joined, fed, members, workers, made };
        let (last, inner) = nodes.split_last()?;
        let is_needed = |id: &NodeId| {
            let is_output = graph.outputs().iter().any(|output| output.value.node == *id);
            is_output || graph.uses((*id).into()).iter().any(|(user, _)| !is_among(graph, *user, &all))
        };
        if inner.iter().any(is_needed) {
            return None;
        }
        inner.iter().try_for_each(|&id| draft.add(id))?;
        draft.sum(*last).or_else(|| draft.add(*last))?;
        kept.iter().try_for_each(|&id| draft.keep(id))?;
        let Draft { mut members, mut workers, .. } = draft;
        for (worker, Member { ring, .. }) in workers.iter_mut().zip(&members) {
            (worker.bytes, worker.has_border) = (ring.row_bytes(), ring.border.is_some());
        }
        let turns = Turns::new(&workers, rows)?;
        let rings = workers.len() - 1;
        let slide = fed.is_none() && target.rings_slide();
        for (member, own) in members.iter_mut().zip(&turns.workers).take(rings) {
            member.ring.border_byte()?;
            let slides = if own.until.is_some() || !slide { 1 } else { slides(own, rows) };
            member.ring.hold(own.ring, slides, rows);
        }
        Some(Outline { members, turns })
    }

    /// The rings of all members but the last one.
    fn rings(&self) -> impl Iterator<Item = &RingOfRows> {
        self.members.iter().take(self.members.len().saturating_sub(1)).map(|member| &member.ring)
    }

    /// Bytes of its rings and of a sum, each rounded up to an alignment: those that last, and the most of the others at one time. `columns`
    /// says which columns of a value there are, if not all.
    pub fn bytes(&self, alignment: usize, columns: impl Fn(Value) -> Option<Range<usize>>) -> usize {
        let sum = self.members.last().filter(|member| matches!(member.work, Work::Sum(_)));
        let sum = sum.map_or(0, |member| member.ring.ty.bytes().next_multiple_of(alignment));
        let bytes = |member: &Member| {
            let ring = &member.ring;
            let width = ring.ty.shape.get(2).copied().unwrap_or(1).max(1);
            let (before, behind) = ring.pads.get(2).copied().unwrap_or((0, 0));
            let own = columns(member.value).map_or(width, |own| {
                let end = own.end + before + behind;
                own.len() + if own.start == 0 { before } else { 0 } + if end == width { behind } else { 0 }
            });
            (ring.ty.bytes() / width * own).next_multiple_of(alignment)
        };
        let rings = self.members.len().saturating_sub(1);
        let all: Vec<usize> = self.members.iter().take(rings).map(bytes).collect();
        sum + self.turns.most_alive(&all)
    }

    /// Bytes that a turn of `rows` rows touches, about: rings and a sum, operands that are read wholly, and rows of tensors outside.
    pub fn turn_bytes(&self, graph: &Graph, rows: usize) -> usize {
        let part = |value: Value, axis: usize, count: usize| {
            let ty = graph.ty(value);
            ty.bytes() / ty.shape.get(axis).copied().unwrap_or(1).max(1) * count
        };
        let read = |(&value, source): (&Value, &Source)| match source {
            Source::Whole => graph.ty(value).bytes(),
            Source::First(rows) => part(value, 0, *rows),
            Source::Rows(window) => part(value, 1, window.reach(rows)),
            Source::Ring { .. } => 0,
        };
        let touched = |member: &Member| -> usize {
            match &member.work {
                Work::Copy => part(member.value, 1, rows),
                Work::Compute(parts) => {
                    parts.iter().flat_map(|own| own.values.iter().zip(&own.operands)).map(read).sum()
                }
                Work::Sum(sum) => graph.operands(member.node).iter().zip(&sum.operands).map(read).sum(),
            }
        };
        let written = self.members.last().filter(|member| !matches!(member.work, Work::Sum(_)));
        let written = written.map_or(0, |member| part(member.value, 1, rows));
        self.bytes(1, |_| None) + self.members.iter().map(touched).sum::<usize>() + written
    }

    /// How far the last one's result has to begin before a tensor outside that is read row by row, in bytes, so that rows which are still
    /// needed aren't overwritten: at most, since kernels are taken to read a row until they have written one. Rows have so many bytes. `None`
    /// where the result isn't computed row by row, or the tensor isn't read like that.
    pub fn lead(&self, rows: usize, operand: (Value, usize), result_bytes: usize) -> Option<i64> {
        let (value, bytes) = operand;
        let reads: Vec<Vec<RowWindow>> = self.members.iter().map(|member| member.rows_of(value)).collect();
        let is_sum = matches!(self.members.last()?.work, Work::Sum(_));
        if is_sum || reads.iter().all(Vec::is_empty) {
            return None;
        }
        let (mut lead, mut end) = (i64::MIN, 0);
        for turn in 0..self.turns.count {
            for &number in &self.turns.order {
                let (own, reads) = (&self.turns.workers[number], &reads[number]);
                let Some(act) = own.act(turn).filter(|&act| act < own.computed) else { continue };
                if number + 1 == self.members.len() {
                    end = ((act + 1) * rows * result_bytes) as i64;
                }
                for window in reads {
                    let first = act * rows / window.repeat * window.stride * bytes;
                    lead = lead.max(end - first as i64);
                }
            }
        }
        Some(lead)
    }

    /// Bytes that are moved up in rings, in all turns.
    pub fn moved_bytes(&self, rows: usize) -> usize {
        let moved = self
            .rings()
            .zip(&self.turns.workers)
            .map(|(ring, own)| (own.ring - rows) * ring.held_row_bytes() * own.appended / ring.slides);
        moved.sum()
    }
}

/// How often rows are appended to a ring before it is moved, so that little is moved beside what is appended.
fn slides(own: &WorkerTurns, step: usize) -> usize {
    (LITTLE_MOVED * (own.ring - step)).div_ceil(step).clamp(1, (own.appended / MOST_SLID).max(1))
}

struct Draft<'a> {
    graph: &'a Graph,
    target: &'a Target,
    rows: usize,
    /// Nodes whose rows are parts of those of one that joins them, and are computed there.
    joined: BTreeSet<NodeId>,
    fed: Option<NodeId>,
    members: Vec<Member>,
    workers: Vec<Worker>,
    /// Whose rows each member appends.
    made: BTreeMap<Value, usize>,
}

impl Draft<'_> {
    fn add(&mut self, id: NodeId) -> Option<()> {
        if self.joined.contains(&id) {
            return Some(());
        }
        let node = self.graph.node(id);
        let [result] = &node.results[..] else { return None };
        if result.rank() < 3 || result.shape[0] != 1 || result.elements() == 0 {
            return None;
        }
        let mut worker = Worker::new(result.shape[1]);
        let parts = match &node.op {
            Op::Concat(concat) => self.parts(id, concat.axis, &mut worker)?,
            op => vec![self.computed(id, op, self.graph.operands(id), &mut worker)?],
        };
        self.push(id, id.into(), Work::Compute(parts), worker);
        Some(())
    }

    /// The parts of rows that are joined.
    fn parts(&mut self, id: NodeId, axis: usize, worker: &mut Worker) -> Option<Vec<Computed>> {
        let graph = self.graph;
        graph.node(id).op.by_rows(&graph.operand_types(id))?;
        let mut parts = Vec::new();
        let mut end = 0;
        for operand in graph.operands(id) {
            let computed = if self.joined.contains(&operand.node) {
                let node = operand.node;
                self.computed(node, &graph.node(node).op, graph.operands(node), worker)?
            } else {
                let moved = Map { expression: Expression::operand(0) };
                Computed { op: None, ..self.computed(id, &moved.into(), vec![operand], worker)? }
            };
            let start = end;
            end += graph.ty(operand).shape[axis];
            parts.push(Computed { part: Some((axis, start..end)), ..computed });
        }
        Some(parts)
    }

    /// How an operator computes rows, which a worker is to read for that.
    fn computed(&mut self, id: NodeId, op: &Op, operands: Vec<Value>, worker: &mut Worker) -> Option<Computed> {
        let graph = self.graph;
        let types: Vec<TensorType> = operands.iter().map(|&operand| graph.ty(operand).clone()).collect();
        let (mut op, reads) = op.by_rows(&types)?;
        let (border, columns) = self.border(&mut op, &operands, &reads);
        let mut sources = Vec::new();
        for (number, (&operand, read)) in operands.iter().zip(reads).enumerate() {
            let is_fed = self.fed == Some(operand.node);
            let (operand, skipped) = self.whole(operand);
            let Some(mut window) = read else {
                if is_fed || self.made.contains_key(&operand) {
                    return None;
                }
                sources.push(Source::Whole);
                continue;
            };
            let mut pads = vec![(0, 0); types[number].rank()];
            if number == 0 {
                pads[2..2 + columns.len()].copy_from_slice(&columns);
                window.border = border.unwrap_or(window.border);
            }
            let is_surrounded = window.pads != (0, 0) || pads.iter().any(|&pad| pad != (0, 0));
            if !self.made.contains_key(&operand) {
                if is_constant(graph, operand) {
                    return None;
                }
                if !is_surrounded && !is_fed {
                    // As many are read at a time as are computed, so that none may be left over.
                    if window.repeat > 1 && !types[number].shape[1].is_multiple_of(self.rows) {
                        return None;
                    }
                    sources.push(Source::Rows(window));
                    continue;
                }
                self.push(id, operand, Work::Copy, Worker::new(types[number].shape[1]));
            }
            let member = self.made[&operand];
            if is_surrounded {
                self.members[member].ring.surround(&pads, window.border)?;
            }
            let columns = pads.get(2).copied().unwrap_or((0, 0));
            if (columns.0 > 0 && skipped.0 > 0) || (columns.1 > 0 && skipped.1 > 0) {
                return None;
            }
            sources.push(Source::Ring { member, window, read: worker.reads.len(), pads, skipped });
            worker.reads.push((member, window));
        }
        Some(Computed { node: id, op: Some(op), values: operands, operands: sources, part: None })
    }

    /// Where a value is some columns of what is computed in the stripe: all of it, and how many columns aren't read before and after those.
    fn whole(&self, value: Value) -> (Value, (usize, usize)) {
        let columns = rows_of(self.graph, value).filter(|(whole, _)| self.made.contains_key(whole));
        let skipped = |(whole, columns): (Value, Range<usize>)| {
            (whole, (columns.start, self.graph.ty(whole).shape[2] - columns.end))
        };
        columns.map_or((value, (0, 0)), skipped)
    }

    /// A node whose result is a sum over rows that are computed in the stripe.
    fn sum(&mut self, id: NodeId) -> Option<()> {
        let graph = self.graph;
        let node = graph.node(id);
        let (operands, types) = (graph.operands(id), graph.operand_types(id));
        let (anchor, own, expression) = match &node.op {
            Op::Kernel(kernel) => (&*kernel.anchor, kernel.anchor_operands, kernel.expression.clone()),
            op => (op, operands.len(), Expression::operand(0)),
        };
        let (x, others) = operands.split_first()?;
        let &member = self.made.get(x)?;
        let (share, factor) = anchor.share_of_rows(&types[..own], self.rows)?;
        let [total] = &anchor.infer(&types[..own]).ok()?[..] else { return None };
        let is_exact = factor == 1.0 && total.dtype.is_integer();
        let reads_more = others.iter().any(|other| self.made.contains_key(other));
        if reads_more || !(is_exact || total.dtype == DType::F32) || node.results.len() != 1 {
            return None;
        }
        let rows = self.rows;
        let mut sources = vec![Source::Ring {
            member,
            window: RowWindow::ROW,
            read: 0,
            pads: vec![(0, 0); types[0].rank()],
            skipped: (0, 0),
        }];
        for (&weights, ty) in operands[1..own].iter().zip(&types[1..own]) {
            has_equal_rows(graph, weights, ty).then(|| sources.push(Source::First(rows)))?;
        }
        let op = Kernel {
            anchor: Box::new(share),
            anchor_operands: own,
            expression: Expression::binary(BinaryFunction::Add),
        };
        let whole = Expression::build(|b| {
            let x = b.operand(0);
            if factor == 1.0 {
                return x;
            }
            let factor = b.number(DType::F32, factor);
            b.binary(BinaryFunction::Multiply, x, factor)
        });
        let others: Vec<Value> = operands[own..].to_vec();
        let own_operands = (1..=others.len()).map(|number| Expression::operand(number as u32));
        let finish = expression.substitute(&[whole].into_iter().chain(own_operands).collect::<Vec<_>>());
        let worker = Worker { reads: vec![(member, RowWindow::ROW)], ..Worker::new(types[0].shape[1]) };
        let sum = Sum { op: op.into(), operands: sources, finish: Map { expression: finish }.into(), others };
        self.push(id, id.into(), Work::Sum(Box::new(sum)), worker);
        self.members.last_mut()?.ring = RingOfRows::new(total);
        Some(())
    }

    /// Has who appends rows copy them, too.
    fn keep(&mut self, id: NodeId) -> Option<()> {
        let (whole, skipped) = self.whole(self.graph.operands(id)[0]);
        let member = self.made.get(&whole).copied().filter(|member| member + 1 < self.members.len())?;
        self.members[member].kept.push(Kept { node: id, skipped });
        Some(())
    }

    fn push(&mut self, node: NodeId, value: Value, work: Work, worker: Worker) {
        self.made.insert(value, self.members.len());
        let ring = RingOfRows::new(self.graph.ty(value));
        self.members.push(Member { node, value, work, kept: Vec::new(), ring });
        self.workers.push(worker);
    }

    /// What is to be around the columns of the first operand's rows, and how much; taken out of the operator.
    fn border(&self, op: &mut Op, operands: &[Value], reads: &[Option<RowWindow>]) -> (Option<i64>, Pads) {
        let nothing = (None, Pads::new());
        let Op::Convolution(convolution) = anchor_mut(op) else { return nothing };
        let [Some(window), ..] = reads else { return nothing };
        let [x, weights, ..] = operands else { return nothing };
        let mut shape: Shape = self.graph.ty(*x).shape.clone();
        shape[1] = window.reach(self.rows);
        let x = TensorType::new(self.graph.ty(*x).dtype, shape);
        match border_in_memory(convolution, &x, self.graph.constant(*weights), self.target, false) {
            Some(border) => (Some(border), take_pads(convolution).split_off(1)),
            None => nothing,
        }
    }
}

/// Whether a constant repeats its first axis.
fn has_equal_rows(graph: &Graph, value: Value, ty: &TensorType) -> bool {
    match &graph.node(value.node).op {
        Op::Broadcast(_) => {
            let operand = graph.ty(graph.operands(value.node)[0]);
            is_constant(graph, value) && (operand.rank() < ty.rank() || operand.shape[0] == 1)
        }
        Op::Constant(constant) => repeats_first_axis(&constant.value),
        _ => false,
    }
}

fn repeats_first_axis(value: &Attribute) -> bool {
    let ty = value.ty();
    let row = ty.shape.first().map_or(0, |&rows| ty.bytes() / rows.max(1)).max(1);
    let mut rows = value.bytes().chunks_exact(row);
    let first = rows.next();
    rows.all(|row| Some(row) == first)
}
