//! Heads of loops, upwards and downwards.

use super::Printer;
use crate::loops::Var;
use crate::loops::expression::Index;
use crate::loops::statement::last_turn;

impl Printer<'_> {
    /// What stands before the body of a loop.
    pub(super) fn loop_head(&mut self, var: Var, (start, end): (&Index, &Index), step: i64, descends: bool) -> String {
        let name = self.name(var).to_owned();
        let last = last_turn(start, end, step).filter(|_| descends);
        let first = self.index(last.as_ref().unwrap_or(start));
        let (goes_on, sign) = match last {
            Some(_) => (format!("{name} >= {}", self.index(start)), '-'),
            None => (format!("{name} < {}", self.index(end)), '+'),
        };
        let step = if step == 1 { format!("{sign}{sign}{name}") } else { format!("{name} {sign}= {step}") };
        format!("for (int32_t {name} = {first}; {goes_on}; {step})")
    }
}
