//! What C compilers make vectors of by themselves: loops over single words that are computed by sums and products.

use super::{Walker, defined};
use crate::loops::{Atom, Expr, Index, Stmt, Var};
use crate::target::{Target, VectorSpelling};
use mlc_ir::Objective;
use mlc_ir::scalar::BinaryFunction;

/// Elements of a vector.
const LANES: f64 = 4.0;

/// Instructions of a loop's turn as it is written, and of four turns as one with vectors.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    one: f64,
    four: f64,
}

impl Turn {
    fn add(&mut self, four: f64) {
        self.one += 1.0;
        self.four += four;
    }
}

/// By how many elements an index moves in a turn of the loop over a variable; `None` where it is no sum of loop counters.
fn moved(index: &Index, var: Var) -> Option<i64> {
    let mut moved = 0;
    for (atom, factor) in &index.terms {
        match atom {
            Atom::Var(own) if *own == var => moved = *factor,
            Atom::Var(_) => {}
            _ => return None,
        }
    }
    Some(moved)
}

/// Adds what a value takes; `None` where it isn't made of words by sums and products.
fn computed(value: &Expr, var: Var, turn: &mut Turn) -> Option<()> {
    match value {
        Expr::Load { index, ty, .. } if ty.lanes == 1 && ty.dtype.size() == 4 => turn.add(match moved(index, var)? {
            0 | 1 => 1.0,
            // Vectors that are taken apart while they are loaded.
            2 => 2.0,
            4 => 4.0,
            // By way of memory.
            _ => 2.0 * LANES + 1.0,
        }),
        Expr::Binary(BinaryFunction::Add | BinaryFunction::Subtract | BinaryFunction::Multiply, ..) => turn.add(1.0),
        Expr::Literal(_) | Expr::Var(_) => {}
        _ => return None,
    }
    value.children().try_for_each(|child| computed(child, var, turn))
}

/// Adds what a statement takes; `begun` are the variables that a turn begins.
fn stated(statement: &Stmt, var: Var, begun: &[Var], turn: &mut Turn) -> Option<()> {
    match statement {
        Stmt::Define { value, .. } => computed(value, var, turn),
        // What turns add up has an order.
        Stmt::Assign { var: own, value } => begun.contains(own).then(|| computed(value, var, turn)).flatten(),
        Stmt::Store { index, value, .. } => {
            turn.add(match moved(index, var)? {
                1 => 1.0,
                // Lane by lane.
                _ => 2.0 * LANES - 1.0,
            });
            computed(value, var, turn)
        }
        Stmt::Comment(_) => Some(()),
        _ => None,
    }
}

impl Walker<'_> {
    /// What is left of the instructions of a loop over single elements that C compilers make vectors of: as many turns as fill vectors, and
    /// the others as they are.
    pub(super) fn vector_share(&self, var: Var, step: i64, turns: f64, body: &[Stmt]) -> f64 {
        let Target { vectors, objective, .. } = self.counter.target;
        if *vectors != VectorSpelling::Mve || *objective == Objective::Size || step != 1 {
            return 1.0;
        }
        let begun: Vec<Var> = body.iter().filter_map(defined).collect();
        let mut turn = Turn::default();
        let is_computed = body.iter().try_for_each(|statement| stated(statement, var, &begun, &mut turn)).is_some();
        if !is_computed || turn.four >= LANES * turn.one {
            return 1.0;
        }
        let full = (turns / LANES).floor();
        (full * turn.four + (turns - full * LANES) * turn.one) / (turns * turn.one).max(1.0)
    }
}
