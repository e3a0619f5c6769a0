//! Loops that end when a graph of their own says so. Where that hangs on constants alone, their turns are counted while the model is
//! imported; else data end them when the model runs.

use crate::call::Site;
use crate::fault::Fault;
use crate::format::Format;
use crate::importer::{Importer, Operators, new_builder};
use crate::item::Item;
use crate::turns::Turns;
use mlc_ir::{Attribute, Category, Code, DType, Graph, Tensor, evaluate};

/// Most elements of a carried value on which the end of a loop may hang.
const MOST_COUNTED: usize = 1 << 10;

/// Turns times elements that are computed to count turns.
const MOST_WORK: usize = 1 << 22;

/// Most turns that are counted.
const MOST_TURNS: usize = 1 << 16;

/// A loop that goes on while a graph finds its carried values so.
pub struct Conditional<'m, F: Format> {
    /// Whether another turn is taken, by the carried values.
    pub condition: F::Region<'m>,
    /// What each turn does.
    pub body: F::Region<'m>,
    /// First carried values.
    pub carried: Vec<F::Item>,
}

/// What is known of the number of turns while a model is imported.
enum Count {
    Turns(usize),
    /// Data decide on it, or it is too large to be counted.
    ByData,
    /// An operator stands in the way, which has been told.
    Failed,
}

/// What a loop's end hangs on.
struct Counter {
    /// From those of the carried values that are known to the condition, and to themselves behind one more turn.
    graph: Graph,
    /// The first of those values.
    first: Vec<Tensor>,
}

impl<'m, F: Operators> Importer<'m, F> {
    /// The last carried values of a loop.
    ///
    /// # Errors
    /// When carried values change their types, or the loop can't be one for another reason.
    pub fn import_conditional(&mut self, site: &Site<'m, F>, turns: Conditional<'m, F>) -> Result<Vec<F::Item>, Fault> {
        let unknown = vec![F::Item::unknown(); turns.carried.len()];
        let counted = self.count_turns(site, &turns)?;
        let mut whole = Turns {
            body: turns.body,
            trip_count: None,
            bound: None,
            condition: None,
            again: None,
            numbered: false,
            carried: turns.carried,
            scanned: Vec::new(),
            stacked: Vec::new(),
        };
        match counted {
            Count::Failed => return Ok(unknown),
            Count::Turns(count) => whole.trip_count = Some(count),
            Count::ByData => {
                let prefix = format!("{}.", site.name);
                let first = self.import_condition(turns.condition, whole.carried.clone(), prefix)?;
                let Some(first) = first.tensor() else { return Ok(unknown) };
                (whole.condition, whole.again) = (Some(first), Some(turns.condition));
            }
        }
        self.import_turns(site, &whole)
    }

    /// The number of turns of a loop.
    fn count_turns(&mut self, site: &Site<'m, F>, turns: &Conditional<'m, F>) -> Result<Count, Fault> {
        let graph = self.builder.graph();
        let known = |item: &F::Item| graph.constant(item.tensor()?).filter(|own| own.ty().elements() <= MOST_COUNTED);
        let mut known: Vec<Option<Attribute>> = turns.carried.iter().map(|item| known(item).cloned()).collect();
        loop {
            let (mark, unsupported) = (self.findings.mark(), self.findings.count_unsupported());
            let outputs = self.counter(site, turns, &known)?;
            if self.is_full() || self.findings.count_unsupported() > unsupported {
                return Ok(Count::Failed);
            }
            // Without the values that aren't known much can't be imported, which the turns themselves tell if it is so.
            drop(self.findings.take_since(mark));
            let Some((mut builder, condition, next)) = outputs else { return Ok(Count::ByData) };
            let Some(condition) = condition.tensor() else { return Ok(Count::ByData) };
            let stays = |(own, next): (&Option<Attribute>, &F::Item)| {
                let (own, next) = (own.as_ref()?, builder.ty(next.tensor()?));
                ((next.dtype, &next.shape) == (own.ty().dtype, &own.ty().shape)).then(|| own.clone())
            };
            let staying: Vec<Option<Attribute>> = known.iter().zip(&next).map(stays).collect();
            if staying != known {
                known = staying;
                continue;
            }
            let ty = builder.ty(condition);
            if ty.dtype != DType::Bool || ty.elements() != 1 {
                return Err(Fault::operands(format!("the condition must be one bool, it is {ty}")));
            }
            builder.output("condition", condition);
            for (number, item) in next.iter().enumerate().filter(|(number, _)| known[*number].is_some()) {
                let Some(value) = item.tensor() else { return Ok(Count::ByData) };
                builder.output(&number.to_string(), value);
            }
            let first = known.iter().flatten().map(Attribute::to_tensor).collect();
            return Counter { graph: builder.finish(), first }.count();
        }
    }

    /// The condition and the next carried values in a graph whose inputs are the known ones; `None` when it takes more.
    #[allow(clippy::type_complexity)]
    fn counter(
        &mut self,
        site: &Site<'m, F>,
        turns: &Conditional<'m, F>,
        known: &[Option<Attribute>],
    ) -> Result<Option<(crate::Builder, F::Item, Vec<F::Item>)>, Fault> {
        let mut builder = new_builder::<F>(F::region_name(turns.condition));
        let input = |(number, known): (usize, &Option<Attribute>)| match known {
            Some(own) => F::Item::of(builder.input(&number.to_string(), own.ty().clone())),
            None => F::Item::unknown(),
        };
        let inputs: Vec<F::Item> = known.iter().enumerate().map(input).collect();
        self.begin_body(builder);
        let prefix = format!("{}.", site.name);
        let condition = self.import_condition(turns.condition, inputs.clone(), prefix.clone());
        let next = condition.and_then(|condition| Ok((condition, self.import_region(turns.body, inputs, prefix)?)));
        let ended = self.end_body();
        let (condition, next) = next?;
        if next.len() != turns.carried.len() {
            let message = format!("the body gives {} results, {} expected", next.len(), turns.carried.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        Ok(ended.filter(|(_, captured)| captured.is_empty()).map(|(builder, _)| (builder, condition, next)))
    }
}

impl Counter {
    fn count(mut self) -> Result<Count, Fault> {
        self.graph.remove_dead();
        if self.graph.node_ids().any(|id| self.graph.node(id).op.category() == Category::Control) {
            return Ok(Count::ByData);
        }
        let elements = self.graph.node_ids().map(|id| {
            let results = &self.graph.node(id).results;
            let macs = self.graph.node(id).op.work(&self.graph.operand_types(id), results).macs;
            let macs = usize::try_from(macs).unwrap_or(usize::MAX);
            results.iter().fold(macs, |sum, ty| sum.saturating_add(ty.elements()))
        });
        let work = elements.fold(1, usize::saturating_add);
        let most = (MOST_WORK / work).min(MOST_TURNS);
        let mut values = self.first;
        for turn in 0..=most {
            let found = evaluate(&self.graph, &values);
            let mut found = found.map_err(|finding| Fault::new(finding.code, finding.message))?;
            let next = found.split_off(1);
            if found[0].to_integers() == [0] {
                return Ok(Count::Turns(turn));
            }
            values = next;
        }
        Ok(Count::ByData)
    }
}
