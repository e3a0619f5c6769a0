//! Stripes: some nodes of a graph as one part, in which their kernels take turns.

use super::block::Block;
use super::homes::{BufferId, BufferKind, Home, Homes};
use super::maker::Maker;
use super::outline::{Computed, Kept, Member, Outline, Source, Sum, Work};
use super::part::{Act, Binding, Label, Part, Stripe};
use super::rings::{Pads, Ring, RingOfRows, RowWalk};
use super::sharing::{overlay_stripes, pixel};
use super::steps::{Computation, Overlap};
use super::turns::Turns;
use super::view::View;
use crate::loops::Routine;
use crate::loops::spelling::comment;
use crate::price::StripeTurns;
use mlc_ir::{Code, DType, Diagnostic, Graph, Location, NodeId, Objective, Value};
use std::ops::Range;

impl Maker<'_> {
    /// The part of nodes that are a block.
    pub(super) fn stripe(&mut self, homes: &mut Homes, nodes: &[NodeId], block: &Block) {
        let Some(&last) = nodes.last() else { return };
        let rows = block.rows;
        let Some(outline) = Outline::new(self.graph, nodes, rows, block.fed(self.graph), self.target) else {
            let node = self.graph.node(last);
            let place = Location::default().at_operator(node.op.name(), node.name.to_string());
            let message = "this and what it reads from can't be computed row by row";
            return self.errors.push(Diagnostic::error(Code::TargetLimit, place, message));
        };
        let by_routine = self.target.copies_by_routine();
        let (turns, turn_bytes) = (outline.turns.count, outline.turn_bytes(self.graph, rows));
        let former = self.chooser.take_turns(Some(StripeTurns { count: turns, bytes: turn_bytes }));
        let mut draft = Draft { rows, by_routine, outline: &outline, bindings: Vec::new(), rings: Vec::new() };
        draft.make_rings(self.graph, homes);
        let acts: Vec<Act> = outline.turns.order.iter().map(|&number| draft.act(self, homes, number)).collect();
        self.chooser.take_turns(former);
        let what = format!("stripe of {} kernels, {rows} {} at a time", nodes.len(), plural(rows));
        let mut code = Stripe {
            name: self.names.symbol(&format!("{}_stripe", self.graph.node(last).name)),
            comment: comment(&self.comment(last, &what, 0)),
            // The kernels have the operations and what they move.
            label: Label { bytes: 0, ..self.label(last, what, 0) },
            turns,
            turn_bytes,
            acts,
            locals: draft.rings.iter().take(outline.members.len() - 1).map(|&(buffer, _)| buffer).collect(),
            bindings: draft.bindings,
            overlays: Vec::new(),
        };
        // Patches write their result together.
        if self.target.objective == Objective::Ram && block.patch.1 == 1 {
            overlay_stripes(&mut [&mut code], homes, self.chooser);
        }
        let sum = draft.rings.get(outline.members.len() - 1).map(|&(buffer, _)| buffer);
        self.push_part(last, Part::Stripe(Box::new(code)));
        if let (Some(sum), Some(member)) = (sum, outline.members.last()) {
            self.finish(homes, member, sum);
        }
    }

    /// Finds what the results of patches may lie over, each behind the last patch of others.
    pub(super) fn overlay_patches(&mut self, homes: &Homes, blocks: &[(Vec<NodeId>, &Block)]) {
        if self.target.objective != Objective::Ram {
            return;
        }
        for last in (0..blocks.len()).filter(|&number| {
            let (own, of) = blocks[number].1.patch;
            of > 1 && own + 1 == of
        }) {
            let of = blocks[last].1.patch.1;
            let nodes: Vec<Option<&NodeId>> =
                blocks[last + 1 - of..=last].iter().map(|(nodes, _)| nodes.last()).collect();
            let mut codes: Vec<(usize, &mut Stripe)> = Vec::new();
            for item in &mut self.items {
                let Part::Stripe(code) = &mut item.part else { continue };
                if let Some(place) = nodes.iter().position(|node| *node == Some(&item.node)) {
                    codes.push((place, code));
                }
            }
            codes.sort_by_key(|(place, _)| *place);
            let mut codes: Vec<&mut Stripe> = codes.into_iter().map(|(_, code)| code).collect();
            overlay_stripes(&mut codes, homes, self.chooser);
        }
    }

    /// The step that computes a result from a sum over rows.
    fn finish(&mut self, homes: &Homes, member: &Member, sum: BufferId) {
        let Work::Sum(sum_of_rows) = &member.work else { return };
        let Sum { finish, others, .. } = &**sum_of_rows;
        let result = homes.view(member.value).clone();
        let total = View::dense(member.ring.ty.dtype, &member.ring.ty.shape);
        let others = others.iter().map(|&value| (homes.view(value).clone(), Some(value)));
        let operands = [((sum, total), None)].into_iter().chain(others).collect();
        let computation = Computation { op: finish, operands, results: vec![result], overlap: Overlap::Dying };
        self.compute(homes, member.node, &computation);
    }
}

fn plural(rows: usize) -> &'static str {
    if rows == 1 { "row" } else { "rows" }
}

struct Draft<'a> {
    rows: usize,
    /// Whether rows are moved by a routine of our own.
    by_routine: bool,
    outline: &'a Outline,
    bindings: Vec<Binding>,
    /// The buffer of each ring, and the number of its binding where it lasts from one turn to the next.
    rings: Vec<(BufferId, Option<usize>)>,
}

impl Draft<'_> {
    fn make_rings(&mut self, graph: &Graph, homes: &mut Homes) {
        for (number, member) in self.outline.members.iter().enumerate() {
            // Rings are moved by bytes.
            let (what, dtype) = match member.work {
                Work::Sum(_) => ("sum", member.ring.ty.dtype),
                _ if number + 1 == self.outline.members.len() => break,
                _ => ("rows", DType::U8),
            };
            let buffer = homes.buffer(BufferKind::Arena, member.ring.ty.bytes());
            homes.buffers[buffer].values.push(format!("{what} of {}", graph.node(member.value.node).name));
            let lasts = self.outline.turns.workers[number].until.is_none();
            self.rings.push((buffer, lasts.then_some(self.bindings.len())));
            if lasts {
                self.bindings.push(Binding::Buffer { buffer, offset: 0, dtype, constant: false });
            }
        }
    }

    /// Rows of a whole tensor that lie elsewhere each time: `count` of them, `stride` further down from one time to the next that finds others.
    fn walk(&mut self, homes: &mut Homes, act: &mut OwnAct, walked: &Walked) -> Home {
        let (buffer, view) = homes.view(walked.value).clone();
        let rows = homes.buffer(BufferKind::Moving, view.dtype.size());
        let whole = self.bindings.len();
        self.bindings.push(Binding::Buffer { buffer, offset: 0, dtype: view.dtype, constant: walked.constant });
        let stride = view.strides[1] * (walked.stride * view.dtype.size()) as i64;
        let pixel = pixel(&view).unwrap_or(1);
        let turns = &self.outline.turns.workers[act.number];
        let (first, period) = (turns.first, turns.period * walked.repeat);
        act.walks.push(RowWalk { rows, whole, constant: walked.constant, stride, first, period, slides: None, pixel });
        (rows, some_rows(&view, 0, walked.count))
    }

    /// Rows of a ring from one on, with some of their border.
    fn ring(&self, homes: &mut Homes, act: &mut OwnAct, member: usize, rows: Range<usize>, pads: &Pads) -> Home {
        let RingOfRows { ty, pads: all, slides, .. } = &self.outline.members[member].ring;
        let whole = some_rows(&View::dense(ty.dtype, &ty.shape), rows.start, rows.len());
        let cut: Vec<(usize, usize)> = all.iter().zip(pads).map(|(all, own)| (all.0 - own.0, all.1 - own.1)).collect();
        let view = whole.interior(&cut);
        let (buffer, binding) = self.rings[member];
        let Some(whole) = binding.filter(|_| *slides > 1) else { return (buffer, view) };
        let rows = homes.buffer(BufferKind::Moving, view.dtype.size());
        let Turns { workers, order, .. } = &self.outline.turns;
        let place = |number: usize| order.iter().position(|&own| own == number);
        // Who reads in a turn of both before rows are appended finds those of the turn before.
        let first = workers[member].first + usize::from(place(act.number) < place(member));
        act.walks.push(RowWalk {
            rows,
            whole,
            constant: act.number != member,
            stride: self.appended_bytes(member) as i64,
            first,
            period: workers[member].period,
            slides: Some(*slides),
            pixel: 1,
        });
        (rows, view)
    }

    /// Bytes of the rows that a member appends at a time.
    fn appended_bytes(&self, member: usize) -> usize {
        self.outline.members[member].ring.held_row_bytes() * self.rows
    }

    fn act(&mut self, maker: &mut Maker<'_>, homes: &mut Homes, number: usize) -> Act {
        let outline = self.outline;
        let (member, turns) = (&outline.members[number], &outline.turns.workers[number]);
        let mut own = OwnAct { number, walks: Vec::new() };
        let result = match &member.work {
            Work::Sum(_) => (self.rings[number].0, View::dense(member.ring.ty.dtype, &member.ring.ty.shape)),
            _ if number + 1 == outline.members.len() => {
                let walked = Walked { constant: false, ..self.each_row(member.value) };
                self.walk(homes, &mut own, &walked)
            }
            _ => {
                let pads = vec![(0, 0); member.ring.pads.len()];
                self.ring(homes, &mut own, number, turns.ring - self.rows..turns.ring, &pads)
            }
        };
        let before = maker.items.len();
        self.work(maker, homes, &mut own, &result);
        self.keep(maker, homes, &mut own, &result);
        let mut body: Vec<Part> = maker.items.split_off(before).into_iter().map(|item| item.part).collect();
        for part in &mut body {
            // Some rows of a value, or a sum that it is made of, aren't the value.
            if let Part::Step(step) = part {
                step.results.clear();
                let in_all = match member.work {
                    Work::Copy => 2 * maker.graph.ty(member.value).bytes() as u64,
                    Work::Compute(_) | Work::Sum(_) => step.label.bytes,
                };
                step.label.bytes = in_all / turns.computed.max(1) as u64;
            }
        }
        let ring = self.rings.get(number).and_then(|_| self.appended_to(member, number));
        Act { turns: turns.clone(), walks: own.walks, ring, body }
    }

    /// What a member does with its rows.
    fn work(&mut self, maker: &mut Maker<'_>, homes: &mut Homes, act: &mut OwnAct, result: &Home) {
        let outline = self.outline;
        let member = &outline.members[act.number];
        match &member.work {
            Work::Copy => {
                let walked = self.each_row(member.value);
                let source = self.walk(homes, act, &walked);
                maker.copy(member.node, "rows", member.value, &source, result);
            }
            Work::Compute(parts) => {
                for part in parts {
                    let operands = self.operands(homes, act, &part.values, &part.operands);
                    let result = part.part.as_ref().map_or_else(|| result.clone(), |place| part_of(result, place));
                    match (&part.op, &operands[..]) {
                        (Some(op), _) => {
                            let (results, overlap) = (vec![result], self.overlap(act.number, parts));
                            maker.compute(homes, part.node, &Computation { op, operands, results, overlap });
                        }
                        (None, [(source, _), ..]) => maker.copy(part.node, "rows", part.values[0], source, &result),
                        (None, []) => {}
                    }
                }
            }
            Work::Sum(sum) => {
                let values = maker.graph.operands(member.node);
                let mut operands = self.operands(homes, act, &values, &sum.operands);
                operands.push((result.clone(), None));
                let (results, overlap) = (vec![result.clone()], Overlap::Last);
                maker.compute(homes, member.node, &Computation { op: &sum.op, operands, results, overlap });
            }
        }
    }

    /// Copies a member's new rows for who comes behind the stripe.
    fn keep(&mut self, maker: &mut Maker<'_>, homes: &mut Homes, act: &mut OwnAct, (buffer, rows): &Home) {
        let outline = self.outline;
        for Kept { node, skipped } in &outline.members[act.number].kept {
            let source = (*buffer, without_columns(rows, *skipped));
            let value = Value::from(*node);
            let walked = Walked { constant: false, ..self.each_row(value) };
            let target = self.walk(homes, act, &walked);
            maker.copy(*node, "rows", value, &source, &target);
        }
    }

    /// Rows of one turn alone may be overwritten by the last member that reads them, if it computes its own in one piece.
    fn overlap(&self, number: usize, parts: &[Computed]) -> Overlap {
        let [part] = parts else { return Overlap::None };
        let dies = |source: &Source| match source {
            Source::Ring { member, .. } => self.outline.turns.workers[*member].until == Some(number),
            _ => false,
        };
        if part.operands.iter().any(dies) { Overlap::InPlace } else { Overlap::None }
    }

    /// All rows of a tensor, as many each time as are computed.
    fn each_row(&self, value: Value) -> Walked {
        Walked { value, count: self.rows, stride: self.rows, repeat: 1, constant: true }
    }

    /// Where operands of a member are.
    fn operands(
        &mut self,
        homes: &mut Homes,
        act: &mut OwnAct,
        values: &[Value],
        sources: &[Source],
    ) -> Vec<(Home, Option<Value>)> {
        let outline = self.outline;
        let mut operands = Vec::new();
        for (&value, source) in values.iter().zip(sources) {
            let home = match source {
                Source::Whole => homes.view(value).clone(),
                Source::First(rows) => {
                    let (buffer, view) = homes.view(value);
                    let sizes: Vec<usize> = [*rows].into_iter().chain(view.shape.iter().copied().skip(1)).collect();
                    (*buffer, view.slice(&vec![0; view.rank()], &sizes, &vec![1; view.rank()]))
                }
                Source::Rows(window) => {
                    let (count, stride) = (window.reach(self.rows), window.stride * self.rows);
                    self.walk(homes, act, &Walked { value, count, stride, repeat: window.repeat, constant: true })
                }
                Source::Ring { member, window, read, pads, skipped } => {
                    let first = outline.turns.workers[act.number].places[*read];
                    let (buffer, rows) = self.ring(homes, act, *member, first..first + window.reach(self.rows), pads);
                    (buffer, without_columns(&rows, *skipped))
                }
            };
            operands.push((home, Some(value)));
        }
        operands
    }

    /// The ring of a member, if it lasts; a sum, of which nothing is moved.
    fn appended_to(&self, member: &Member, number: usize) -> Option<Ring> {
        let (bytes, binding) = (member.ring.ty.bytes(), self.rings[number].1?);
        let appended = if matches!(member.work, Work::Sum(_)) { bytes } else { self.appended_bytes(number) };
        let routine = self.by_routine.then_some(Routine::CopyBytes { size: 1 });
        let (border, slides) = (member.ring.border_byte().unwrap_or(0), member.ring.slides);
        let (row, around) = (member.ring.held_row_bytes(), member.ring.around());
        Some(Ring { binding, bytes, appended, slides, border, row, around, routine })
    }
}

/// One member's act while it is made.
struct OwnAct {
    /// Number of the member.
    number: usize,
    walks: Vec<RowWalk>,
}

/// Rows that are walked.
struct Walked {
    value: Value,
    count: usize,
    /// Rows from one time to the next that finds others.
    stride: usize,
    /// How often the same rows are found.
    repeat: usize,
    constant: bool,
}

/// Rows without some columns before and after the others.
fn without_columns(rows: &View, skipped: (usize, usize)) -> View {
    let mut around = vec![(0, 0); rows.rank()];
    around.iter_mut().skip(2).take(1).for_each(|columns| *columns = skipped);
    rows.interior(&around)
}

/// What of a home has some places along an axis.
fn part_of((buffer, view): &Home, (axis, places): &(usize, Range<usize>)) -> Home {
    let mut starts = vec![0; view.rank()];
    starts[*axis] = places.start;
    let mut sizes = view.shape.to_vec();
    sizes[*axis] = places.len();
    (*buffer, view.slice(&starts, &sizes, &vec![1; view.rank()]))
}

/// Rows of a view from one on.
fn some_rows(view: &View, first: usize, count: usize) -> View {
    let mut starts = vec![0; view.rank()];
    starts[1] = first;
    let mut sizes = view.shape.to_vec();
    sizes[1] = count;
    view.slice(&starts, &sizes, &vec![1; view.rank()])
}
