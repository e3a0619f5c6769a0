//! [`LoopBuilder`]: what schedules write loop programs with.

use super::{Expr, Holds, Index, Relation, Stmt, ValueType, Var, VarInfo, VarKind, mentioned, value_type};
use super::{half_pairs, halves, selection};
use mlc_ir::DType;
use std::collections::{BTreeMap, BTreeSet};

/// Control flow: what any writer of statements can nest. The bodies get the writer back.
pub trait Nest: Sized {
    /// The builder that statements go to.
    fn builder(&mut self) -> &mut LoopBuilder;

    /// What `body` writes, as a block of its own.
    fn block(&mut self, body: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.builder().blocks.push(Vec::new());
        body(self);
        self.builder().blocks.pop().unwrap_or_default()
    }

    /// A loop over `0..extent`. An extent of 1 needs no loop.
    fn for_each(&mut self, name: &str, extent: usize, body: impl FnOnce(&mut Self, Index)) {
        self.for_range(name, Index::default(), Index::from(extent), 1, body);
    }

    /// A loop from `start` while below `end`. A loop of one turn is its body, one of no turn is nothing.
    fn for_range(&mut self, name: &str, start: Index, end: Index, step: i64, body: impl FnOnce(&mut Self, Index)) {
        self.for_turns(name, [start, end], step, false, body);
    }

    /// The same, where C compilers can be kept from writing the turns one after the other: what each turn of a loop around several such loops reads
    /// at the same places, clang would read before that loop, into more registers than there are.
    fn for_turns(
        &mut self,
        name: &str,
        [start, end]: [Index; 2],
        step: i64,
        rolled: bool,
        body: impl FnOnce(&mut Self, Index),
    ) {
        if let (Some(first), Some(bound)) = (start.as_constant(), end.as_constant()) {
            if first >= bound {
                return;
            }
            if first + step >= bound {
                return body(self, start);
            }
        }
        let var = self.builder().variable(name, VarKind::Index);
        let body = self.block(|writer| body(writer, Index::var(var)));
        self.builder().push(Stmt::For { var, start, end, step, parallel: false, descends: false, rolled, body });
    }

    /// Nested loops over all positions of a shape; the body gets an index per axis.
    fn for_shape(&mut self, names: &[&str], shape: &[usize], body: &mut dyn FnMut(&mut Self, &[Index])) {
        if !shape.contains(&0) {
            for_level(self, names, shape, &mut Vec::new(), body);
        }
    }

    /// Runs `body` when all conditions hold; constant conditions are decided here.
    fn when(&mut self, conditions: Vec<(Index, Relation, Index)>, body: impl FnOnce(&mut Self)) {
        let mut open = Vec::new();
        for (left, relation, right) in conditions {
            match (left.as_constant(), right.as_constant()) {
                (Some(left), Some(right)) => {
                    let holds = match relation {
                        Relation::Less => left < right,
                        Relation::GreaterEqual => left >= right,
                        Relation::Equal => left == right,
                    };
                    if !holds {
                        return;
                    }
                }
                _ => open.push((left, relation, right)),
            }
        }
        if open.is_empty() {
            return body(self);
        }
        let then = self.block(body);
        self.builder().push(Stmt::If { conditions: open, then, otherwise: Vec::new() });
    }

    /// Runs `body` when a scalar bool is true.
    fn when_value(&mut self, condition: Expr, body: impl FnOnce(&mut Self)) {
        let then = self.block(body);
        self.builder().push(Stmt::IfValue { condition, then });
    }
}

fn for_level<W: Nest>(
    writer: &mut W,
    names: &[&str],
    shape: &[usize],
    indices: &mut Vec<Index>,
    body: &mut dyn FnMut(&mut W, &[Index]),
) {
    let axis = indices.len();
    if axis == shape.len() {
        return body(writer, indices);
    }
    let name = names.get(axis).copied().unwrap_or("i");
    writer.for_each(name, shape[axis], |writer, index| {
        indices.push(index);
        for_level(writer, names, shape, indices, body);
        indices.pop();
    });
}

impl Nest for LoopBuilder {
    fn builder(&mut self) -> &mut LoopBuilder {
        self
    }
}

/// Removes definitions that nothing uses.
pub fn remove_all_unused(body: &mut Vec<Stmt>) {
    while remove_unused(body, &mentioned(body)) {}
}

/// Removes definitions of variables that aren't used; says whether there were any.
fn remove_unused(body: &mut Vec<Stmt>, used: &BTreeSet<Var>) -> bool {
    let before = body.len();
    body.retain(|statement| match statement {
        Stmt::Define { var, .. }
        | Stmt::DefineIndex { var, .. }
        | Stmt::Pointer { var, .. }
        | Stmt::Array { var, .. } => used.contains(var),
        _ => true,
    });
    let mut removed = body.len() < before;
    for statement in body {
        removed |= match statement {
            Stmt::For { body, .. } => remove_unused(body, used),
            Stmt::IfValue { then, .. } => remove_unused(then, used),
            Stmt::If { then, otherwise, .. } => remove_unused(then, used) | remove_unused(otherwise, used),
            _ => false,
        };
    }
    removed
}

/// Builds the body of a function, statement by statement.
#[derive(Debug, Clone, Default)]
pub struct LoopBuilder {
    vars: Vec<VarInfo>,
    names: BTreeMap<String, usize>,
    blocks: Vec<Vec<Stmt>>,
    /// Pointers to halves at multiples of words, which may be loaded as pairs.
    paired: BTreeSet<Var>,
}

impl LoopBuilder {
    /// An empty body.
    pub fn new() -> Self {
        LoopBuilder { blocks: vec![Vec::new()], ..LoopBuilder::default() }
    }

    /// The variables and the finished body, without definitions that nothing uses.
    pub fn finish(mut self) -> (Vec<VarInfo>, Vec<Stmt>) {
        let mut body = self.blocks.pop().unwrap_or_default();
        halves::convert(&mut self.vars, &mut body);
        selection::compute_arms_first(&mut self.vars, &mut body);
        half_pairs::pair(&mut self.vars, &mut body, &self.paired);
        remove_all_unused(&mut body);
        (self.vars, body)
    }

    /// A new variable. The name is made unique by a number.
    pub fn variable(&mut self, name: &str, kind: VarKind) -> Var {
        let count = self.names.entry(name.to_owned()).or_insert(0);
        let unique = if *count == 0 { name.to_owned() } else { format!("{name}_{count}") };
        *count += 1;
        if unique != name && self.names.contains_key(&unique) {
            return self.variable(name, kind);
        }
        self.names.entry(unique.clone()).or_insert(1);
        self.vars.push(VarInfo { name: unique, kind });
        self.vars.len() as Var - 1
    }

    /// A pointer that the function gets as a parameter.
    pub fn parameter(&mut self, name: &str, dtype: DType, holds: Holds) -> Var {
        self.variable(name, VarKind::Pointer { dtype, holds })
    }

    /// Has neighbouring halves behind a pointer be loaded as one word, a multiple of which the pointer is.
    pub fn pair_halves(&mut self, pointer: Var) {
        self.paired.insert(pointer);
    }

    /// Whether that is so.
    pub fn pairs_halves(&self, pointer: Var) -> bool {
        self.paired.contains(&pointer)
    }

    /// An array on the stack, whose elements have no values yet. It ends with the block that it begins in.
    pub fn array(&mut self, name: &str, dtype: DType, elements: usize, holds: Holds) -> Var {
        let var = self.variable(name, VarKind::Pointer { dtype, holds });
        self.push(Stmt::Array { var, elements });
        var
    }

    /// Type of the elements that a pointer points at; of the value for other variables.
    pub fn element_dtype(&self, var: Var) -> DType {
        match self.vars[var as usize].kind {
            VarKind::Pointer { dtype, .. } => dtype,
            _ => self.ty(&Expr::Var(var)).dtype,
        }
    }

    /// Type of a value.
    pub fn ty(&self, expr: &Expr) -> ValueType {
        value_type(&self.vars, expr)
    }

    /// Appends a statement.
    pub fn push(&mut self, statement: Stmt) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement);
        }
    }

    /// A named constant value; variables and literals stay as they are.
    pub fn define(&mut self, name: &str, value: Expr) -> Expr {
        if matches!(value, Expr::Var(_) | Expr::Literal(_)) {
            return value;
        }
        let var = self.variable(name, VarKind::Value(self.ty(&value)));
        self.push(Stmt::Define { var, value, mutable: false });
        Expr::Var(var)
    }

    /// A variable that can be assigned.
    pub fn mutable(&mut self, name: &str, value: Expr) -> Var {
        let var = self.variable(name, VarKind::Value(self.ty(&value)));
        self.push(Stmt::Define { var, value, mutable: true });
        var
    }

    /// A named integer; constants stay as they are.
    pub fn define_index(&mut self, name: &str, value: Index) -> Index {
        if value.as_constant().is_some() {
            return value;
        }
        let var = self.variable(name, VarKind::Index);
        self.push(Stmt::DefineIndex { var, value });
        Index::var(var)
    }

    /// A pointer moved by some elements.
    pub fn pointer(&mut self, name: &str, base: Var, offset: Index) -> Var {
        if offset.as_constant() == Some(0) {
            return base;
        }
        let var = self.variable(name, self.vars[base as usize].kind);
        self.push(Stmt::Pointer { var, base, offset });
        var
    }

    /// Assigns a mutable variable.
    pub fn assign(&mut self, var: Var, value: Expr) {
        self.push(Stmt::Assign { var, value });
    }

    /// Stores a value's lanes in consecutive elements.
    pub fn store(&mut self, pointer: Var, index: Index, value: Expr) {
        let valid = self.ty(&value).lanes;
        self.push(Stmt::Store { pointer, index, stride: 1, valid, value });
    }

    /// A remark for the reader of the C.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.push(Stmt::Comment(text.into()));
    }
}
