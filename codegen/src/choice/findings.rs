//! [`Findings`]: what the choosers for one program have found out, which they share.

use super::problem::Problem;
use crate::kernels::Schedule;
use crate::loops::{Function, Lead, Leads, Question};
use crate::price::{Price, StripeTurns};
use crate::target::{Borders, Target};
use indexmap::IndexMap;
use mlc_ir::{Diagnostic, Objective};
use std::cell::RefCell;
use std::rc::Rc;

/// What the text of a kernel by some schedule, and its price, depend on of what choosers for one program differ in. Objectives differ in which
/// schedules there are, and little code in how loops are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Variant {
    borders: Borders,
    bands: bool,
    is_small: bool,
}

impl Variant {
    fn of(target: &Target) -> Variant {
        let Target { borders, bands, objective, .. } = *target;
        Variant { borders, bands, is_small: objective == Objective::Size }
    }
}

/// Prices of schedules, and what functions do with their pointers. Clones share it all.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings(Rc<RefCell<Found>>);

/// The prices of schedules that have been asked for, by kernel.
type Prices = IndexMap<Rc<Problem>, Vec<(Schedule, Price)>>;

#[derive(Debug, Default)]
struct Found {
    prices: IndexMap<(Variant, Option<StripeTurns>), Prices>,
    leads: IndexMap<Variant, Leads>,
}

impl Findings {
    /// The price of a schedule of a kernel amid turns, if it takes any, which `price` finds out the first time.
    pub fn price(
        &self,
        target: &Target,
        turns: Option<StripeTurns>,
        problem: &Rc<Problem>,
        schedule: &Schedule,
        price: impl FnOnce() -> Result<Price, Diagnostic>,
    ) -> Result<Price, Diagnostic> {
        let variant = (Variant::of(target), turns);
        let known = |found: &Found| {
            let own = found.prices.get(&variant)?.get(problem)?;
            own.iter().find(|(own, _)| own == schedule).map(|(_, price)| *price)
        };
        if let Some(price) = known(&self.0.borrow()) {
            return Ok(price);
        }
        let price = price()?;
        let mut found = self.0.borrow_mut();
        let own = found.prices.entry(variant).or_default().entry(Rc::clone(problem)).or_default();
        own.push((schedule.clone(), price));
        Ok(price)
    }

    /// See [`Leads::of`].
    pub fn lead(
        &self,
        target: &Target,
        name: String,
        function: &Function,
        question: Question,
        found: impl FnOnce() -> Option<Lead>,
    ) -> Option<Lead> {
        let mut own = self.0.borrow_mut();
        own.leads.entry(Variant::of(target)).or_default().of(name, function, question, found)
    }
}
