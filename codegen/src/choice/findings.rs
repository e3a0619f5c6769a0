//! [`Findings`]: what the choosers for one program have found out, which they share.

use super::Problem;
use crate::kernels::Schedule;
use crate::loops::{Function, Lead, Leads, Question};
use crate::price::Price;
use crate::target::{Borders, Target};
use mlc_ir::{Diagnostic, Objective};
use std::cell::RefCell;
use std::collections::HashMap;
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

#[derive(Debug, Default)]
struct Found {
    prices: HashMap<(Variant, Rc<Problem>), Vec<(Schedule, Price)>>,
    leads: HashMap<Variant, Leads>,
}

impl Findings {
    /// The price of a schedule of a kernel, which `price` finds out the first time.
    pub fn price(
        &self,
        target: &Target,
        problem: &Rc<Problem>,
        schedule: &Schedule,
        price: impl FnOnce() -> Result<Price, Diagnostic>,
    ) -> Result<Price, Diagnostic> {
        let key = (Variant::of(target), Rc::clone(problem));
        if let Some((_, known)) = self.0.borrow().prices.get(&key).into_iter().flatten().find(|own| own.0 == *schedule)
        {
            return Ok(*known);
        }
        let price = price()?;
        self.0.borrow_mut().prices.entry(key).or_default().push((schedule.clone(), price));
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
