//! The turns of `Loop` and `Scan`: written out one by one where they are few, or as one loop over a body.

use super::{Importer, Item, MOST_FOLDED_ELEMENTS, Site};
use crate::proto::GraphProto;
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_ir::ops::{Loop, SliceAxis};
use mlc_ir::{Code, DType, Literal, Subgraph, TensorType, Value};

/// A loop whose turns have no more operators than this in all is written out.
const MOST_UNROLLED: usize = 64;

/// A loop that can't be one over a body, because shapes or indices depend on the turn, is written out up to this many operators.
const MOST_FORCED: usize = 4096;

/// A loop to import.
pub(super) struct Turns<'a> {
    /// What each turn does.
    pub body: &'a GraphProto,
    /// The number of turns, if anything but the condition bounds it.
    pub trip_count: Option<usize>,
    /// Whether the first turn is taken, where that isn't sure.
    pub condition: Option<Value>,
    /// Whether the body's inputs start with the number of the turn and the condition, its outputs with the next condition.
    pub numbered: bool,
    /// First carried values.
    pub carried: Vec<Item>,
    /// Scanned tensors, and how they are walked.
    pub scanned: Vec<(Value, SliceAxis)>,
    /// How results are stacked.
    pub stacked: Vec<SliceAxis>,
}

/// The end of an attempt to write turns out.
enum Unrolled {
    Done(Vec<Item>),
    /// The data decide how many turns there are.
    Conditional,
    TooLong,
}

/// The end of an attempt to make one loop.
enum Rolled {
    Done(Vec<Item>),
    /// The condition must be carried.
    Conditional,
    /// Something in the body couldn't be imported, and was reported.
    Failed,
}

/// Outputs of a body: the next condition, carried values, slices.
struct Outputs {
    condition: Item,
    carried: Vec<Item>,
    slices: Vec<Item>,
}

/// Operators that a turn takes to write out, those of inner graphs included; one for a body without any.
fn count(graph: &GraphProto) -> usize {
    graph.node.iter().map(|node| 1 + node.graphs().map(count).sum::<usize>()).sum::<usize>().max(1)
}

/// Refuses so many copies of a body.
pub(super) fn check_copies(body: &GraphProto, copies: usize) -> Result<(), Fault> {
    if copies.saturating_mul(count(body)) <= MOST_FORCED {
        return Ok(());
    }
    Err(Fault::variant(format!("{copies} copies of the body have more than {MOST_FORCED} operators")))
}

impl Turns<'_> {
    fn split(&self, mut outputs: Vec<Item>) -> Result<Outputs, Fault> {
        let head = usize::from(self.numbered);
        let expected = head + self.carried.len() + self.stacked.len();
        if outputs.len() != expected {
            let message = format!("the body gives {} results, {expected} expected", outputs.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        let slices = outputs.split_off(head + self.carried.len());
        let carried = outputs.split_off(head);
        Ok(Outputs { condition: outputs.pop().unwrap_or(Item::Absent), carried, slices })
    }

    fn results(&self) -> usize {
        self.carried.len() + self.stacked.len()
    }

    fn unknown(&self) -> Vec<Item> {
        vec![Item::Unknown; self.results()]
    }
}

fn tensors(items: &[Item], what: &str) -> Result<Vec<Value>, Fault> {
    let tensor = |item: &Item| match item {
        Item::Tensor(value) => Ok(*value),
        _ => Err(Fault::variant(format!("{what} must be tensors"))),
    };
    items.iter().map(tensor).collect()
}

impl<'a> Importer<'a> {
    /// The results of a loop: carried values, then stacked ones.
    pub(super) fn import_turns(&mut self, site: &Site<'a>, turns: &Turns<'a>) -> Result<Vec<Item>, Fault> {
        let operators = turns.trip_count.map(|trips| trips.saturating_mul(count(turns.body)));
        let sequences = turns.carried.iter().any(|item| !matches!(item, Item::Tensor(_)));
        let few = operators.is_none_or(|operators| operators <= MOST_UNROLLED);
        // Without turns only a body tells the shape of what is stacked.
        let stacks_nothing = turns.trip_count == Some(0) && !turns.stacked.is_empty();
        let (findings, unsupported) = (self.findings.len(), self.unsupported.count());
        if let (true, Some(trips)) = (sequences, turns.trip_count) {
            check_copies(turns.body, trips)?;
        }
        if (few || sequences) && !stacks_nothing {
            match self.unrolled(site, turns)? {
                Unrolled::Done(results) => return Ok(results),
                // What the attempt warned of, the next one does again.
                Unrolled::TooLong | Unrolled::Conditional => self.findings.truncate(findings),
            }
        }
        let Some(trip_count) = turns.trip_count else { return Err(unbounded()) };
        if sequences {
            return Err(Fault::variant("the loop carries a sequence, and data decide how often it runs"));
        }
        let rolled = match self.rolled(site, turns, trip_count, turns.condition.is_some()) {
            Ok(Rolled::Conditional) => {
                self.findings.truncate(findings);
                self.rolled(site, turns, trip_count, true)
            }
            other => other,
        };
        let fault = match rolled {
            Ok(Rolled::Done(results)) => return Ok(results),
            Ok(Rolled::Failed | Rolled::Conditional) => None,
            Err(fault) => Some(fault),
        };
        let possible = operators.is_some_and(|operators| operators <= MOST_FORCED) && !few && trip_count > 0;
        if possible && self.unsupported.count() == unsupported {
            let reported = self.findings.split_off(findings);
            if let Unrolled::Done(results) = self.unrolled(site, turns)? {
                return Ok(results);
            }
            self.findings.extend(reported);
        }
        match fault {
            Some(fault) => Err(fault),
            None => Ok(turns.unknown()),
        }
    }

    fn scalar(&mut self, dtype: DType, value: i64) -> Item {
        Item::Tensor(self.builder.literal(Literal::integer(dtype, value)))
    }

    /// The bool that a value is known to be.
    fn known_bool(&self, item: &Item) -> Option<bool> {
        let Item::Tensor(value) = item else { return None };
        let tensor = self.builder.graph().constant(*value).filter(|value| value.ty().elements() == 1)?.to_tensor();
        tensor.to_integers().first().map(|&value| value != 0)
    }

    fn unrolled(&mut self, site: &Site<'a>, turns: &Turns<'a>) -> Result<Unrolled, Fault> {
        let findings = self.findings.len();
        let mut going = turns.condition.map_or(Item::Absent, Item::Tensor);
        let mut carried = turns.carried.clone();
        let mut slices: Vec<Vec<Value>> = vec![Vec::new(); turns.stacked.len()];
        let mut turn = 0;
        while turns.trip_count.is_none_or(|trips| turn < trips) {
            match (&going, self.known_bool(&going)) {
                (Item::Absent, _) | (_, Some(true)) => {}
                (_, Some(false)) => break,
                (_, None) => return Ok(Unrolled::Conditional),
            }
            if turns.trip_count.is_none() && turn * count(turns.body) > MOST_FORCED {
                return Ok(Unrolled::TooLong);
            }
            self.builder.begin(&site.name);
            let mut inputs = Vec::new();
            if turns.numbered {
                inputs.push(self.scalar(DType::I64, turn as i64));
                inputs.push(self.scalar(DType::Bool, 1));
            }
            inputs.append(&mut carried);
            for &(whole, way) in &turns.scanned {
                let place = way.place(turn, turns.trip_count.unwrap_or(0));
                inputs.push(Item::Tensor(self.builder.pick(whole, way.axis, place)?));
            }
            let outputs = self.import_subgraph(turns.body, inputs, format!("{}.{turn}.", site.name))?;
            let unknown = outputs.contains(&Item::Unknown);
            if unknown || self.findings[findings..].iter().any(mlc_ir::Diagnostic::is_error) {
                return Ok(Unrolled::Done(turns.unknown()));
            }
            let outputs = turns.split(outputs)?;
            (going, carried) = (outputs.condition, outputs.carried);
            for (list, slice) in slices.iter_mut().zip(tensors(&outputs.slices, "stacked results")?) {
                list.push(slice);
            }
            turn += 1;
        }
        self.builder.begin(&site.name);
        for (list, way) in slices.iter_mut().zip(&turns.stacked) {
            if way.reverse {
                list.reverse();
            }
            if list.is_empty() {
                return Err(Fault::variant("the loop takes no turn, so that the shape of what it stacks isn't known"));
            }
            carried.push(Item::Tensor(self.builder.stack(list, way.axis)?));
        }
        Ok(Unrolled::Done(carried))
    }

    /// One loop over a body. `conditional` says whether its condition depends on the data.
    fn rolled(
        &mut self,
        site: &Site<'a>,
        turns: &Turns<'a>,
        trip_count: usize,
        conditional: bool,
    ) -> Result<Rolled, Fault> {
        let first = tensors(&turns.carried, "carried values")?;
        if conditional && !turns.stacked.is_empty() {
            return Err(Fault::new(
                Code::DataDependentShape,
                "data decide how many turns the loop takes, and it stacks results of each turn: their size isn't known",
            ));
        }
        let mut types: Vec<TensorType> = first.iter().map(|&value| self.builder.ty(value).clone()).collect();
        for &(whole, way) in &turns.scanned {
            let mut ty = self.builder.ty(whole).clone();
            ty.shape.remove(way.axis);
            types.push(ty);
        }
        let mut builder = Builder::new(&turns.body.name);
        builder.fold_up_to(MOST_FOLDED_ELEMENTS);
        let turn = builder.input("turn", TensorType::new(DType::I64, []));
        if conditional {
            builder.input("condition", TensorType::new(DType::Bool, []));
        }
        let names = turns.body.input.iter().skip(if turns.numbered { 2 } else { 0 });
        let names = names.map(|input| input.name.as_str()).chain(std::iter::repeat("input"));
        let values: Vec<Item> =
            types.iter().zip(names).map(|(ty, name)| Item::Tensor(builder.input(name, ty.clone()))).collect();
        self.begin_body(builder);
        let rolled = self.import_body(site, turns, turn, values, conditional);
        let body = self.end_body();
        let (outputs, Some((mut builder, captured))) = (rolled?, body) else { return Ok(Rolled::Failed) };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(ended) => return Ok(ended),
        };
        for (number, value) in outputs.into_iter().enumerate() {
            builder.output(&format!("{number}"), value);
        }
        let op = Loop {
            body: Subgraph::new(builder.finish()),
            trip_count,
            carried: usize::from(conditional) + first.len(),
            scanned: turns.scanned.iter().map(|(_, way)| *way).collect(),
            stacked: turns.stacked.clone(),
            conditional,
        };
        self.builder.begin(&site.name);
        let mut operands = Vec::new();
        if conditional {
            operands.push(match turns.condition {
                Some(condition) => self.builder.reshape(condition, &[])?,
                None => self.builder.literal(Literal::integer(DType::Bool, 1)),
            });
        }
        operands.extend(first);
        operands.extend(turns.scanned.iter().map(|(whole, _)| *whole));
        operands.extend(captured);
        let results = self.builder.apply_all(op, &operands)?;
        Ok(Rolled::Done(results[usize::from(conditional)..].iter().copied().map(Item::Tensor).collect()))
    }

    /// The outputs of a loop's body in its graph; or how the attempt ended.
    fn import_body(
        &mut self,
        site: &Site<'a>,
        turns: &Turns<'a>,
        turn: Value,
        values: Vec<Item>,
        conditional: bool,
    ) -> Result<Result<Vec<Value>, Rolled>, Fault> {
        let findings = self.findings.len();
        let expected: Vec<TensorType> = tensors(&values[..turns.carried.len()], "carried values")?
            .into_iter()
            .map(|value| self.builder.ty(value).clone())
            .collect();
        self.builder.begin(&site.name);
        let mut inputs = Vec::new();
        if turns.numbered {
            // A turn that is taken has found its condition true.
            inputs.extend([Item::Tensor(turn), self.scalar(DType::Bool, 1)]);
        }
        inputs.extend(values);
        let outputs = self.import_subgraph(turns.body, inputs, format!("{}.", site.name))?;
        if outputs.contains(&Item::Unknown) || self.findings[findings..].iter().any(mlc_ir::Diagnostic::is_error) {
            return Ok(Err(Rolled::Failed));
        }
        let outputs = turns.split(outputs)?;
        let sure = outputs.condition == Item::Absent || self.known_bool(&outputs.condition) == Some(true);
        if !sure && !conditional {
            return Ok(Err(Rolled::Conditional));
        }
        self.builder.begin(&site.name);
        let mut all = Vec::new();
        if conditional {
            let next = tensors(&[outputs.condition], "conditions")?[0];
            all.push(self.builder.reshape(next, &[])?);
        }
        let carried = tensors(&outputs.carried, "carried values")?;
        for (number, (&value, expected)) in carried.iter().zip(&expected).enumerate() {
            let ty = self.builder.ty(value);
            if (ty.dtype, &ty.shape) != (expected.dtype, &expected.shape) {
                let message = format!("carried value {number} is {expected} in the first turn and {ty} behind it");
                return Err(Fault::new(Code::DataDependentShape, message)
                    .with_help("a value whose shape changes is possible in short loops only, which are written out"));
            }
        }
        all.extend(carried);
        all.extend(tensors(&outputs.slices, "stacked results")?);
        Ok(Ok(all))
    }
}

fn unbounded() -> Fault {
    Fault::new(Code::DataDependentShape, "data decide how many turns the loop takes, and nothing bounds their number")
        .with_help("give the loop a constant number of turns at most")
}
