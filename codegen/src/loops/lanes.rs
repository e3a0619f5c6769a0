//! What a loop program with vectors is on a machine that has none: [`without_vectors`].
//!
//! Where nothing passes from one lane to another, as in a tile of sums, the statements from the first to the last one that mention a tile's
//! vectors become a loop over the lanes around the same statements of single values: as many registers hold the tile as vector registers
//! would, and what is in memory, packed weights above all, stays where it is. Other statements are written lane by lane.

mod region;
#[cfg(test)]
mod tests;

use super::builder::remove_all_unused;
use super::expression::{Expr, Index, value_type};
use super::statement::{Function, Relation, Stmt};
use super::variable::{ValueType, Var, VarInfo, VarKind};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};
use region::{Memory, Region};
use std::collections::BTreeMap;

/// Whether there are vectors in a function.
pub fn has_vectors(function: &Function) -> bool {
    function.body.iter().any(|statement| region::has_vectors(&function.vars, statement))
}

/// The same function of single values. Sums are added up in the same order: of several lanes by pairs, as vectors add theirs.
pub fn without_vectors(function: &Function) -> Function {
    let mut vars = function.vars.clone();
    let memory = Memory::of(&function.body);
    let mut body = {
        let (parts, moved) = (BTreeMap::new(), BTreeMap::new());
        let mut writer = Writer { vars: &function.vars, own: &mut vars, memory: &memory, parts, moved };
        writer.block(&function.body)
    };
    remove_all_unused(&mut body);
    Function { vars, body, ..function.clone() }
}

/// Which lane is written.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// That of a loop over lanes, which ends before a number of them; without a counter, the first one.
    Counter(Option<Var>, usize),
    /// This one.
    Number(usize),
}

impl Place {
    /// The lane's number.
    fn index(self) -> Index {
        match self {
            Place::Counter(counter, _) => counter.map_or_else(Index::default, Index::var),
            Place::Number(lane) => Index::from(lane),
        }
    }

    /// Lanes that there may be.
    fn end(self) -> usize {
        match self {
            Place::Counter(_, lanes) => lanes,
            Place::Number(lane) => lane + 1,
        }
    }
}

struct Writer<'a> {
    /// Variables as they were.
    vars: &'a [VarInfo],
    /// Variables as they are then.
    own: &'a mut Vec<VarInfo>,
    memory: &'a Memory,
    /// Of vectors that are written lane by lane, a variable for each lane.
    parts: BTreeMap<Var, Vec<Var>>,
    /// In a loop over lanes, pointers to the lane's element of what is apart by a stride: indices stay as they were, so that what they have
    /// in common is computed once.
    moved: BTreeMap<(Var, i64), Var>,
}

impl Writer<'_> {
    fn block(&mut self, statements: &[Stmt]) -> Vec<Stmt> {
        let mut list = Vec::new();
        let mut next = 0;
        while let Some(statement) = statements.get(next) {
            if !region::has_vectors(self.vars, statement) {
                list.push(statement.clone());
                next += 1;
            } else if region::is_closed(self.vars, statement) {
                list.push(self.nest(statement, Writer::block));
                next += 1;
            } else {
                let end = region::end(statements, next);
                self.region(&statements[next..end], &mut list);
                next = end;
            }
        }
        list
    }

    /// A statement around blocks.
    fn nest(&mut self, statement: &Stmt, block: impl Fn(&mut Self, &[Stmt]) -> Vec<Stmt>) -> Stmt {
        let mut statement = statement.clone();
        match &mut statement {
            Stmt::For { body, .. } => *body = block(self, body),
            Stmt::IfValue { then, .. } => *then = block(self, then),
            Stmt::If { then, otherwise, .. } => {
                *then = block(self, then);
                *otherwise = block(self, otherwise);
            }
            _ => {}
        }
        statement
    }

    fn region(&mut self, statements: &[Stmt], list: &mut Vec<Stmt>) {
        let Some(Region { lanes }) = Region::of(self.vars, self.memory, statements) else {
            return self.lane_by_lane(statements, list);
        };
        if lanes == 1 {
            return list.extend(self.all_at_counter(statements, Place::Counter(None, lanes)));
        }
        let var = self.variable("lane", VarKind::Index);
        self.moved = region::accesses(self.vars, statements)
            .into_iter()
            .map(|(pointer, stride)| {
                (
                    (pointer, stride),
                    self.variable(
                        &format!("{}_lane", self.vars[pointer as usize].name),
                        self.vars[pointer as usize].kind,
                    ),
                )
            })
            .collect();
        let place = Place::Counter(Some(var), lanes);
        let own = region::defined(statements);
        let outside: Vec<Var> =
            self.moved.keys().map(|(pointer, _)| *pointer).filter(|var| !own.contains(var)).collect();
        let mut body: Vec<Stmt> = outside.into_iter().flat_map(|pointer| self.moved_pointers(pointer, place)).collect();
        body.append(&mut self.all_at_counter(statements, place));
        self.moved.clear();
        let (start, end) = (Index::default(), Index::from(lanes));
        list.push(Stmt::For { var, start, end, step: 1, parallel: false, descends: false, rolled: false, body });
    }

    /// Definitions of what points to a lane's elements behind a pointer.
    fn moved_pointers(&self, base: Var, place: Place) -> Vec<Stmt> {
        let own = self.moved.iter().filter(|((pointer, _), _)| *pointer == base);
        let pointer = |((_, stride), var): (&(Var, i64), &Var)| Stmt::Pointer {
            var: *var,
            base,
            offset: place.index().times(*stride),
        };
        own.map(pointer).collect()
    }

    /// A lane's element of those behind a pointer, apart by a stride.
    fn element(&self, pointer: Var, index: &Index, stride: i64, place: Place) -> (Var, Index) {
        match (self.moved.get(&(pointer, stride)), place) {
            (Some(&moved), Place::Counter(..)) => (moved, index.clone()),
            _ => (pointer, index.plus(&place.index().times(stride))),
        }
    }

    /// A statement in the body of a loop over lanes.
    fn at_counter(&mut self, statement: &Stmt, place: Place, list: &mut Vec<Stmt>) {
        match statement {
            Stmt::Define { var, value, mutable } => {
                let value = self.lane(value, place);
                if let VarKind::Value(ty) = &mut self.own[*var as usize].kind {
                    ty.lanes = 1;
                }
                list.push(Stmt::Define { var: *var, value, mutable: *mutable });
            }
            Stmt::Assign { var, value } => {
                let value = self.lane(value, place);
                list.push(Stmt::Assign { var: *var, value });
            }
            Stmt::Store { pointer, index, stride, valid, value } => {
                let (pointer, index) = self.element(*pointer, index, *stride, place);
                let value = self.lane(value, place);
                let store = Stmt::Store { pointer, index, stride: 1, valid: 1, value };
                let condition = (place.index(), Relation::Less, Index::from(*valid));
                list.push(match *valid < place.end() {
                    true => Stmt::If { conditions: vec![condition], then: vec![store], otherwise: Vec::new() },
                    false => store,
                });
            }
            Stmt::Pointer { var, .. } => {
                list.push(statement.clone());
                list.append(&mut self.moved_pointers(*var, place));
            }
            other => list.push(self.nest(other, |writer, block| writer.all_at_counter(block, place))),
        }
    }

    fn all_at_counter(&mut self, statements: &[Stmt], place: Place) -> Vec<Stmt> {
        let mut list = Vec::new();
        for statement in statements {
            self.at_counter(statement, place, &mut list);
        }
        list
    }

    fn lane_by_lane(&mut self, statements: &[Stmt], list: &mut Vec<Stmt>) {
        for statement in statements {
            match statement {
                Stmt::Define { var, value, mutable } => {
                    let ty = value_type(self.vars, value);
                    if ty.lanes == 1 {
                        let value = self.lane(value, Place::Number(0));
                        list.push(Stmt::Define { var: *var, value, mutable: *mutable });
                        continue;
                    }
                    let name = self.vars[*var as usize].name.clone();
                    let parts = self.define_lanes(&name, value, *mutable, list);
                    self.parts.insert(*var, parts);
                }
                Stmt::Assign { var, value } => self.assign_lanes(*var, value, list),
                Stmt::Store { pointer, index, stride, valid, value } => {
                    let ty = value_type(self.vars, value);
                    if ty.lanes == 1 {
                        let value = self.lane(value, Place::Number(0));
                        list.push(Stmt::Store { pointer: *pointer, index: index.clone(), stride: 1, valid: 1, value });
                        continue;
                    }
                    // Nothing is stored before all of it has been read.
                    let parts = self.define_lanes("lane", value, false, list);
                    for (lane, part) in parts.into_iter().enumerate().take(*valid) {
                        let at = index.offset(lane as i64 * stride);
                        let value = Expr::Var(part);
                        list.push(Stmt::Store { pointer: *pointer, index: at, stride: 1, valid: 1, value });
                    }
                }
                Stmt::IfValue { condition, then } => {
                    let condition = self.lane(condition, Place::Number(0));
                    let mut inner = Vec::new();
                    self.lane_by_lane(then, &mut inner);
                    list.push(Stmt::IfValue { condition, then: inner });
                }
                other => list.push(self.nest(other, |writer, block| {
                    let mut inner = Vec::new();
                    writer.lane_by_lane(block, &mut inner);
                    inner
                })),
            }
        }
    }

    fn assign_lanes(&mut self, var: Var, value: &Expr, list: &mut Vec<Stmt>) {
        let Some(parts) = self.parts.get(&var).cloned() else {
            let value = self.lane(value, Place::Number(0));
            return list.push(Stmt::Assign { var, value });
        };
        let mut values: Vec<Expr> = (0..parts.len()).map(|lane| self.lane(value, Place::Number(lane))).collect();
        if region::mixes_lanes(value) {
            let named = values.into_iter().map(|value| Expr::Var(self.define("lane", value, false, list)));
            values = named.collect();
        }
        list.extend(parts.into_iter().zip(values).map(|(var, value)| Stmt::Assign { var, value }));
    }

    /// A variable for each lane of a value.
    fn define_lanes(&mut self, name: &str, value: &Expr, mutable: bool, list: &mut Vec<Stmt>) -> Vec<Var> {
        let lanes = value_type(self.vars, value).lanes;
        (0..lanes)
            .map(|lane| {
                let value = self.lane(value, Place::Number(lane));
                self.define(name, value, mutable, list)
            })
            .collect()
    }

    fn define(&mut self, name: &str, value: Expr, mutable: bool, list: &mut Vec<Stmt>) -> Var {
        let ty = value_type(self.own, &value);
        let var = self.variable(name, VarKind::Value(ty));
        list.push(Stmt::Define { var, value, mutable });
        var
    }

    /// A new variable with a name of its own.
    fn variable(&mut self, name: &str, kind: VarKind) -> Var {
        let number = self.own.len();
        let is_taken = |name: &str| self.own.iter().any(|own| own.name == name);
        let plain = if is_taken(name) { format!("{name}_{number}") } else { name.to_owned() };
        let name = if is_taken(&plain) { format!("{name}_lane_{number}") } else { plain };
        self.own.push(VarInfo { name, kind });
        number as Var
    }

    /// An element of those that a vector is loaded from.
    fn loaded(&self, pointer: Var, index: &Index, stride: i64, ty: ValueType, place: Place) -> Expr {
        let (pointer, index) = self.element(pointer, index, stride, place);
        Expr::Load { pointer, index, ty: ValueType { lanes: 1, ..ty } }
    }

    /// One lane of a value; a single value is the same in all lanes.
    fn lane(&self, value: &Expr, place: Place) -> Expr {
        match value {
            Expr::Var(var) => match (self.parts.get(var), place) {
                (Some(parts), Place::Number(lane)) => Expr::Var(parts[lane.min(parts.len() - 1)]),
                _ => value.clone(),
            },
            Expr::Load { pointer, index, ty } if ty.lanes > 1 => self.loaded(*pointer, index, 1, *ty, place),
            Expr::Gather { pointer, index, stride, valid, ty } if ty.lanes > 1 => {
                let load = self.loaded(*pointer, index, *stride, *ty, place);
                match place {
                    Place::Number(lane) if lane >= *valid => Expr::zero(ty.dtype, 1),
                    Place::Counter(_, lanes) if *valid < lanes => {
                        let lane = Expr::Index(DType::I32, place.index());
                        let valid = Expr::Literal(Literal::of(DType::I32, *valid as f64));
                        let condition = Expr::binary(BinaryFunction::Less, lane, valid);
                        Expr::Select(Box::new(condition), Box::new(load), Box::new(Expr::zero(ty.dtype, 1)))
                    }
                    _ => load,
                }
            }
            Expr::Splat(x, _) => self.lane(x, Place::Number(0)),
            Expr::Lane(x, lane) => self.lane(x, Place::Number(*lane)),
            Expr::Fold(function, x) => {
                let lanes = value_type(self.vars, x).lanes;
                let values = (0..lanes).map(|lane| self.lane(x, Place::Number(lane))).collect();
                folded(*function, values)
            }
            other => {
                let mut other = other.clone();
                other.children_mut().for_each(|child| *child = self.lane(child, place));
                other
            }
        }
    }
}

/// Values combined as a vector's lanes are: the first half with the second one, then what that gives.
fn folded(function: BinaryFunction, mut values: Vec<Expr>) -> Expr {
    while values.len() > 1 {
        let second = values.split_off(values.len() / 2);
        values = values.into_iter().zip(second).map(|(x, y)| Expr::binary(function, x, y)).collect();
    }
    values.pop().unwrap_or_else(|| Expr::zero(DType::F32, 1))
}
