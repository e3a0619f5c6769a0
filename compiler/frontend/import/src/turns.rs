//! The turns of loops: written out one by one where they are few, or as one loop over a body.

use crate::call::Site;
use crate::fault::Fault;
use crate::format::Format;
use crate::importer::{Importer, Operators, new_builder};
use crate::item::Item;
use mlc_ir::ops::{Binary, Loop, SliceAxis};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Code, DType, Literal, Subgraph, TensorType, Value};

/// A loop whose turns have no more operators than this in all is written out.
const MOST_UNROLLED: usize = 64;

/// A loop that can't be one over a body, because shapes or indices depend on the turn, is written out up to this many operators.
const MOST_FORCED: usize = 4096;

/// A loop to import.
pub struct Turns<'m, F: Format> {
    /// What each turn does.
    pub body: F::Region<'m>,
    /// The number of turns, at most where a condition ends them, if constants decide on it.
    pub trip_count: Option<usize>,
    /// The same, one i64, where data decide on it.
    pub bound: Option<Value>,
    /// Whether the first turn is taken, where that isn't sure.
    pub condition: Option<Value>,
    /// What finds by the carried values whether another turn is taken, where that isn't the body.
    pub again: Option<F::Region<'m>>,
    /// Whether the body's inputs start with the number of the turn and the condition, its outputs with the next condition.
    pub numbered: bool,
    /// First carried values.
    pub carried: Vec<F::Item>,
    /// Scanned tensors, and how they are walked.
    pub scanned: Vec<(Value, SliceAxis)>,
    /// How results are stacked.
    pub stacked: Vec<SliceAxis>,
}

/// The end of an attempt to write turns out.
enum Unrolled<I> {
    Done(Vec<I>),
    /// The data decide how many turns there are.
    Conditional,
    TooLong,
}

/// The end of an attempt to make one loop.
enum Rolled<I> {
    Done(Vec<I>),
    /// The condition must be carried.
    Conditional,
    /// Something in the body couldn't be imported, and was reported.
    Failed,
}

/// Outputs of a body: the next condition, carried values, slices.
struct Outputs<I> {
    condition: I,
    carried: Vec<I>,
    slices: Vec<I>,
}

/// Operators that a turn takes to write out, those of inner graphs included; one for a body without any.
fn count<F: Format>(region: F::Region<'_>) -> usize {
    let inner = |operator| F::regions(operator).into_iter().map(count::<F>).sum::<usize>();
    F::operators(region).into_iter().map(|operator| 1 + inner(operator)).sum::<usize>().max(1)
}

/// Refuses so many copies of a body, should they be too many.
///
/// # Errors
/// When they have more than 4,096 operators in all.
pub fn check_copies<F: Format>(body: F::Region<'_>, copies: usize) -> Result<(), Fault> {
    if copies.saturating_mul(count::<F>(body)) <= MOST_FORCED {
        return Ok(());
    }
    Err(Fault::variant(format!("{copies} copies of the body have more than {MOST_FORCED} operators")))
}

impl<'m, F: Format> Turns<'m, F> {
    fn split(&self, mut outputs: Vec<F::Item>) -> Result<Outputs<F::Item>, Fault> {
        let head = usize::from(self.numbered);
        let expected = head + self.carried.len() + self.stacked.len();
        if outputs.len() != expected {
            let message = format!("the body gives {} results, {expected} expected", outputs.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        let slices = outputs.split_off(head + self.carried.len());
        let carried = outputs.split_off(head);
        Ok(Outputs { condition: outputs.pop().unwrap_or_else(F::Item::absent), carried, slices })
    }

    /// Whether data may end it, as far as that is known before the body is.
    fn is_conditional(&self) -> bool {
        self.condition.is_some() || self.bound.is_some() || self.again.is_some()
    }

    fn results(&self) -> usize {
        self.carried.len() + self.stacked.len()
    }

    fn unknown(&self) -> Vec<F::Item> {
        vec![F::Item::unknown(); self.results()]
    }
}

fn tensors<I: Item>(items: &[I], what: &str) -> Result<Vec<Value>, Fault> {
    let tensor = |item: &I| item.tensor().ok_or_else(|| Fault::variant(format!("{what} must be tensors")));
    items.iter().map(tensor).collect()
}

impl<'m, F: Operators> Importer<'m, F> {
    /// The results of a loop: carried values, then stacked ones.
    pub fn import_turns(&mut self, site: &Site<'m, F>, turns: &Turns<'m, F>) -> Result<Vec<F::Item>, Fault> {
        let operators = turns.trip_count.map(|trips| trips.saturating_mul(count::<F>(turns.body)));
        let sequences = turns.carried.iter().any(|item| item.tensor().is_none());
        let few = operators.is_none_or(|operators| operators <= MOST_UNROLLED);
        // Without turns only a body tells the shape of what is stacked.
        let stacks_nothing = turns.trip_count == Some(0) && !turns.stacked.is_empty();
        let (mark, unsupported) = (self.findings.mark(), self.findings.count_unsupported());
        if let (true, Some(trips)) = (sequences, turns.trip_count) {
            check_copies::<F>(turns.body, trips)?;
        }
        if (few || sequences) && !stacks_nothing {
            match self.unrolled(site, turns)? {
                Unrolled::Done(results) => return Ok(results),
                // What the attempt warned of, the next one does again.
                Unrolled::TooLong | Unrolled::Conditional => drop(self.findings.take_since(mark)),
            }
        }
        if sequences {
            return Err(Fault::variant("the loop carries a sequence, and data decide how often it runs"));
        }
        let rolled = match self.rolled(site, turns, turns.is_conditional()) {
            Ok(Rolled::Conditional) => {
                drop(self.findings.take_since(mark));
                self.rolled(site, turns, true)
            }
            other => other,
        };
        let fault = match rolled {
            Ok(Rolled::Done(results)) => return Ok(results),
            Ok(Rolled::Failed | Rolled::Conditional) => None,
            Err(fault) => Some(fault),
        };
        let possible =
            operators.is_some_and(|operators| operators <= MOST_FORCED) && !few && turns.trip_count > Some(0);
        if possible && self.findings.count_unsupported() == unsupported {
            let reported = self.findings.take_since(mark);
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

    fn scalar(&mut self, dtype: DType, value: i64) -> F::Item {
        F::Item::of(self.builder.literal(Literal::integer(dtype, value)))
    }

    /// What a region finds of carried values: whether another turn is taken.
    pub fn import_condition(
        &mut self,
        region: F::Region<'m>,
        carried: Vec<F::Item>,
        prefix: String,
    ) -> Result<F::Item, Fault> {
        let mut results = self.import_region(region, carried, prefix)?;
        match (results.pop(), &results[..]) {
            (Some(condition), []) => Ok(condition),
            (last, others) => {
                let count = others.len() + usize::from(last.is_some());
                let message = format!("the condition's graph gives {count} results, one expected");
                Err(Fault::new(Code::OperandCount, message))
            }
        }
    }

    /// A truth value as one without axes.
    fn truth(&mut self, item: &F::Item) -> Result<Value, Fault> {
        let condition = tensors(std::slice::from_ref(item), "conditions")?[0];
        self.decided(condition)?;
        Ok(self.builder.reshape(condition, &[])?)
    }

    /// Whether a condition holds and a turn's number is below a bound, if there is one.
    fn within(&mut self, bound: Option<Value>, turn: Value, condition: Value) -> Result<Value, Fault> {
        let Some(bound) = bound else { return Ok(condition) };
        let bound = self.builder.reshape(bound, &[])?;
        let below = self.builder.apply(Binary { function: BinaryFunction::Less }, &[turn, bound])?;
        Ok(self.builder.apply(Binary { function: BinaryFunction::And }, &[below, condition])?)
    }

    /// The bool that a value is known to be.
    fn known_bool(&self, item: &F::Item) -> Option<bool> {
        let value = item.tensor()?;
        let tensor = self.builder.graph().constant(value).filter(|value| value.ty().elements() == 1)?.to_tensor();
        tensor.to_integers().first().map(|&value| value != 0)
    }

    fn unrolled(&mut self, site: &Site<'m, F>, turns: &Turns<'m, F>) -> Result<Unrolled<F::Item>, Fault> {
        let mark = self.findings.mark();
        let mut going = turns.condition.map_or_else(F::Item::absent, F::Item::of);
        let mut carried = turns.carried.clone();
        let mut slices: Vec<Vec<Value>> = vec![Vec::new(); turns.stacked.len()];
        let mut turn = 0;
        while turns.trip_count.is_none_or(|trips| turn < trips) {
            match self.known_bool(&going) {
                Some(false) => break,
                None if !going.is_absent() => return Ok(Unrolled::Conditional),
                _ if turns.bound.is_some() => return Ok(Unrolled::Conditional),
                _ => {}
            }
            if turns.trip_count.is_none() && turn * count::<F>(turns.body) > MOST_FORCED {
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
                inputs.push(F::Item::of(self.builder.pick(whole, way.axis, place)?));
            }
            let outputs = self.import_region(turns.body, inputs, format!("{}.{turn}.", site.name))?;
            let unknown = outputs.iter().any(Item::is_unknown);
            if unknown || self.findings.failed_since(mark) {
                return Ok(Unrolled::Done(turns.unknown()));
            }
            let outputs = turns.split(outputs)?;
            (going, carried) = (outputs.condition, outputs.carried);
            if let Some(again) = turns.again {
                going = self.import_condition(again, carried.clone(), format!("{}.{turn}.", site.name))?;
                if going.is_unknown() || self.findings.failed_since(mark) {
                    return Ok(Unrolled::Done(turns.unknown()));
                }
            }
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
            carried.push(F::Item::of(self.builder.stack(list, way.axis)?));
        }
        Ok(Unrolled::Done(carried))
    }

    /// One loop over a body. `conditional` says whether its condition depends on the data.
    fn rolled(
        &mut self,
        site: &Site<'m, F>,
        turns: &Turns<'m, F>,
        conditional: bool,
    ) -> Result<Rolled<F::Item>, Fault> {
        let first = tensors(&turns.carried, "carried values")?;
        let unbounded = turns.trip_count.is_none();
        if unbounded && self.undecided > 0 {
            return Err(undecided());
        }
        if (conditional || unbounded) && !turns.stacked.is_empty() {
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
        let mut builder = new_builder::<F>(F::region_name(turns.body));
        let turn = builder.input("turn", TensorType::new(DType::I64, []));
        if conditional {
            builder.input("condition", TensorType::new(DType::Bool, []));
        }
        let names = F::region_inputs(turns.body).into_iter().skip(if turns.numbered { 2 } else { 0 });
        let names = names.map(|name| name.to_string()).chain(std::iter::repeat("input".into()));
        let values: Vec<F::Item> =
            types.iter().zip(names).map(|(ty, name)| F::Item::of(builder.input(&name, ty.clone()))).collect();
        self.begin_body(builder);
        let rolled = self.import_body(site, turns, turn, values, conditional);
        let body = self.end_body();
        let (outputs, Some((mut builder, captured))) = (rolled?, body) else { return Ok(Rolled::Failed) };
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(ended) => return Ok(ended),
        };
        if unbounded && !conditional {
            return Err(Fault::variant(
                "the loop never ends: nothing bounds its turns, and its condition is always true",
            ));
        }
        for (number, value) in outputs.into_iter().enumerate() {
            builder.output(&format!("{number}"), value);
        }
        let op = Loop {
            body: Subgraph::new(builder.finish()),
            trip_count: turns.trip_count,
            carried: usize::from(conditional) + first.len(),
            scanned: turns.scanned.iter().map(|(_, way)| *way).collect(),
            stacked: turns.stacked.clone(),
            conditional,
        };
        self.builder.begin(&site.name);
        let mut operands = Vec::new();
        if conditional {
            let first = match turns.condition {
                Some(condition) => self.truth(&F::Item::of(condition))?,
                None => self.builder.literal(Literal::integer(DType::Bool, 1)),
            };
            let turn = self.builder.literal(Literal::integer(DType::I64, 0));
            operands.push(self.within(turns.bound, turn, first)?);
        }
        operands.extend(first);
        operands.extend(turns.scanned.iter().map(|(whole, _)| *whole));
        operands.extend(captured);
        let results = self.builder.apply_all(op, &operands)?;
        Ok(Rolled::Done(results[usize::from(conditional)..].iter().copied().map(F::Item::of).collect()))
    }

    /// The outputs of a loop's body in its graph; or how the attempt ended.
    fn import_body(
        &mut self,
        site: &Site<'m, F>,
        turns: &Turns<'m, F>,
        turn: Value,
        values: Vec<F::Item>,
        conditional: bool,
    ) -> Result<Result<Vec<Value>, Rolled<F::Item>>, Fault> {
        let mark = self.findings.mark();
        let expected: Vec<TensorType> = tensors(&values[..turns.carried.len()], "carried values")?
            .into_iter()
            .map(|value| self.builder.ty(value).clone())
            .collect();
        self.builder.begin(&site.name);
        let mut inputs = Vec::new();
        if turns.numbered {
            // A turn that is taken has found its condition true.
            inputs.extend([F::Item::of(turn), self.scalar(DType::Bool, 1)]);
        }
        inputs.extend(values);
        let outputs = self.import_region(turns.body, inputs, format!("{}.", site.name))?;
        if outputs.iter().any(Item::is_unknown) || self.findings.failed_since(mark) {
            return Ok(Err(Rolled::Failed));
        }
        let mut outputs = turns.split(outputs)?;
        if let Some(again) = turns.again {
            outputs.condition = self.import_condition(again, outputs.carried.clone(), format!("{}.", site.name))?;
            if outputs.condition.is_unknown() || self.findings.failed_since(mark) {
                return Ok(Err(Rolled::Failed));
            }
        }
        let sure = outputs.condition.is_absent() || self.known_bool(&outputs.condition) == Some(true);
        if !sure && !conditional {
            return Ok(Err(Rolled::Conditional));
        }
        self.builder.begin(&site.name);
        let mut all = Vec::new();
        if conditional {
            let next = match outputs.condition.is_absent() {
                true => self.builder.literal(Literal::integer(DType::Bool, 1)),
                false => self.truth(&outputs.condition)?,
            };
            let one = self.builder.literal(Literal::integer(DType::I64, 1));
            let behind = self.builder.apply(Binary { function: BinaryFunction::Add }, &[turn, one])?;
            let bound = turns.bound.map(|bound| self.seen_in_body(bound));
            all.push(self.within(bound, behind, next)?);
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

/// Of a branch that data decide on both sides are computed, and the loop in the one that isn't taken might have no end.
fn undecided() -> Fault {
    let message = "data decide how many turns the loop takes, and whether it is run at all";
    Fault::variant(message).with_help("give the loop a constant number of turns at most, or take it out of the branch")
}
