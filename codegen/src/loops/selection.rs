//! Selections between single values: where an arm loads or divides, both arms are computed before one is chosen.
//!
//! Arms have no effects, so nothing is lost but time. What is won is that C compilers see no condition around a load or a division:
//! gcc 11 and 12 at `-O3` with AVX2 or AVX-512 make masked loads of such ones, and where the condition is a byte, they mask
//! those of all parts of it by the first part.

use super::{Expr, Stmt, Var, VarInfo, VarKind, value_type};
use mlc_ir::scalar::BinaryFunction;

/// Defines variables for the arms of selections that load or divide, before the statements that select.
pub fn compute_arms_first(vars: &mut Vec<VarInfo>, body: &mut Vec<Stmt>) {
    for mut statement in std::mem::take(body) {
        let mut arms = Arms { vars, defined: Vec::new() };
        match &mut statement {
            Stmt::Define { value, .. } | Stmt::Assign { value, .. } | Stmt::Store { value, .. } => arms.visit(value),
            Stmt::IfValue { condition, .. } => arms.visit(condition),
            _ => {}
        }
        body.append(&mut arms.defined);
        match &mut statement {
            Stmt::For { body, .. } | Stmt::IfValue { then: body, .. } => compute_arms_first(vars, body),
            Stmt::If { then, otherwise, .. } => {
                compute_arms_first(vars, then);
                compute_arms_first(vars, otherwise);
            }
            _ => {}
        }
        body.push(statement);
    }
}

/// The arms found in a value.
struct Arms<'a> {
    vars: &'a mut Vec<VarInfo>,
    defined: Vec<Stmt>,
}

impl Arms<'_> {
    fn visit(&mut self, expr: &mut Expr) {
        expr.children_mut().for_each(|child| self.visit(child));
        if let Expr::Select(_, x, y) = expr
            && value_type(self.vars, x).lanes.max(value_type(self.vars, y).lanes) == 1
        {
            [x, y].into_iter().filter(|arm| loads_or_divides(arm)).for_each(|arm| self.define(arm));
        }
    }

    fn define(&mut self, arm: &mut Expr) {
        let var = self.vars.len() as Var;
        let kind = VarKind::Value(value_type(self.vars, arm));
        self.vars.push(VarInfo { name: format!("arm_{var}"), kind });
        let value = std::mem::replace(arm, Expr::Var(var));
        self.defined.push(Stmt::Define { var, value, mutable: false });
    }
}

fn loads_or_divides(expr: &Expr) -> bool {
    use BinaryFunction as B;
    match expr {
        Expr::Load { .. } | Expr::Gather { .. } => true,
        Expr::Binary(B::Divide | B::FloorDivide | B::Modulo | B::Remainder, ..) => true,
        other => other.children().any(loads_or_divides),
    }
}
