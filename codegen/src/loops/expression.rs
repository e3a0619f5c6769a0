//! Values and indices of a loop program. A value can be loaded from an index, and an index can be computed from a value.
//!
//! An [`Index`] is integer arithmetic for addresses and bounds, kept as a sum of multiples so that it stays simple as it is built.

use super::variable::{ValueType, Var, VarInfo, VarKind};
use mlc_ir::scalar::{BinaryFunction, Rounding, UnaryFunction};
use mlc_ir::{DType, Literal};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number.
    Literal(Literal),
    /// A variable.
    Var(Var),
    /// Consecutive elements from an address on; one for a scalar.
    Load {
        /// Where it starts.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
        /// What is loaded.
        ty: ValueType,
    },
    /// Lanes gathered with a stride; lanes from `valid` on are 0 and aren't read.
    Gather {
        /// Where it starts.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
        /// Elements between lanes.
        stride: i64,
        /// How many lanes are read.
        valid: usize,
        /// What is loaded.
        ty: ValueType,
    },
    /// Two neighbouring numbers of 16 bits as one word, the first in its lower half; halves that lie at a multiple of words.
    Pair {
        /// Where they are.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
    },
    /// The lower or the upper half of a word of two halves, as a single.
    HalfOf {
        /// Whether it is the upper one, which is the second in memory.
        is_upper: bool,
        /// The word, an [`Expr::Pair`] of halves.
        pair: Box<Expr>,
    },
    /// Of each lane a sum of 32 bits and the products of the halves of two words, as numbers of 16 bits.
    Dot(Box<[Expr; 3]>),
    /// Neighbouring signed bytes, two for each lane, as words of two numbers of 16 bits.
    WidePairs {
        /// Where they are.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
        /// How many words.
        lanes: usize,
    },
    /// Four neighbouring bytes as one word, the first in its lowest bits.
    Quad {
        /// Where they are.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
    },
    /// Of each lane a sum of 32 bits and the products of the bytes of two words: unsigned ones times signed ones.
    QuadDot(Box<[Expr; 3]>),
    /// A primitive function of one value.
    Unary(UnaryFunction, Box<Expr>),
    /// A function of two values of one type.
    Binary(BinaryFunction, Box<Expr>, Box<Expr>),
    /// `condition ? first : second`, per lane.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion of each lane.
    Cast(DType, Box<Expr>),
    /// The bits of each lane as a number of another type of the same size.
    BitCast(DType, Box<Expr>),
    /// An integer times a multiplier by two to the power of a shift, rounded; the shift may be known to be one to the right.
    Rescale(Rescaling, Box<[Expr; 3]>),
    /// Of each lane an integer times a slope and with an offset, both singles, rounded to an integer: exact where the integer is below
    /// 2^24, and within what is exact there for any other one.
    Line(Integers, Box<[Expr; 3]>),
    /// A scalar integer as one of a narrow type, the nearest end of whose range it is where it is outside.
    Saturate(DType, Box<Expr>),
    /// The same scalar in all lanes.
    Splat(Box<Expr>, usize),
    /// One lane of a vector.
    Lane(Box<Expr>, usize),
    /// All lanes of a vector combined by an associative function, in pairs.
    Fold(BinaryFunction, Box<Expr>),
    /// A vector that is read from memory once: C compilers may not read it again where it is used.
    Held(Box<Expr>),
    /// An index as an integer of a type.
    Index(DType, Index),
}

/// How an integer is rescaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rescaling {
    /// How it is rounded.
    pub rounding: Rounding,
    /// What is known of it.
    pub known: Known,
    /// Added to the result, of a small number only: then it costs nothing.
    pub added: i32,
}

/// How integers are made of a line's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Integers {
    /// The largest ones that aren't larger: all steps round down, as AVX-512 can, so that all of them together do.
    Below,
    /// The nearest ones, of which a value is never halfway between two; nor does it matter how products round.
    Nearest,
}

/// What is known of an integer that is rescaled, and of its multiplier and shift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// The shift is from 32 to 62 bits.
    Right,
    /// That, and the number is from -2^30 to 2^30 - 1.
    Small,
    /// The shift is 31 bits, of vectors.
    Middle,
    /// The number is small, the multiplier isn't negative and the shift is from 32 to 52 bits, of vectors.
    Near,
    /// That, and a result that isn't above what is added may be any other of these.
    Cut,
}

impl Known {
    /// Whether what is added to the result is a part of the rescaling.
    pub fn takes_added(self) -> bool {
        matches!(self, Known::Small | Known::Near | Known::Cut)
    }
}

impl From<Literal> for Expr {
    fn from(literal: Literal) -> Expr {
        Expr::Literal(literal)
    }
}

impl Expr {
    /// A number, in all lanes of a vector if there are several.
    pub fn splat(value: Literal, lanes: usize) -> Expr {
        let value = Expr::Literal(value);
        if lanes == 1 { value } else { Expr::Splat(Box::new(value), lanes) }
    }

    /// Zero, in all lanes of a vector if there are several.
    pub fn zero(dtype: DType, lanes: usize) -> Expr {
        Expr::splat(Literal::of(dtype, 0.0), lanes)
    }

    /// `function(x, y)`.
    pub fn binary(function: BinaryFunction, x: Expr, y: Expr) -> Expr {
        Expr::Binary(function, Box::new(x), Box::new(y))
    }

    /// `function(x)`.
    pub fn unary(function: UnaryFunction, x: Expr) -> Expr {
        Expr::Unary(function, Box::new(x))
    }

    /// `x + y`.
    pub fn plus(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Add, self, y)
    }

    /// `x - y`.
    pub fn minus(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Subtract, self, y)
    }

    /// `x * y`.
    pub fn times(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Multiply, self, y)
    }

    /// `x / y`.
    pub fn over(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Divide, self, y)
    }

    /// The values that it is computed of, without those in indices.
    pub fn children(&self) -> impl Iterator<Item = &Expr> {
        let children: [Option<&Expr>; 3] = match self {
            Expr::Rescale(_, children) | Expr::Dot(children) | Expr::QuadDot(children) | Expr::Line(_, children) => {
                children.each_ref().map(Some)
            }
            Expr::Literal(_)
            | Expr::Var(_)
            | Expr::Load { .. }
            | Expr::Gather { .. }
            | Expr::Pair { .. }
            | Expr::WidePairs { .. }
            | Expr::Quad { .. }
            | Expr::Index(..) => [None; 3],
            Expr::Unary(_, x)
            | Expr::Cast(_, x)
            | Expr::BitCast(_, x)
            | Expr::Splat(x, _)
            | Expr::Saturate(_, x)
            | Expr::Lane(x, _)
            | Expr::HalfOf { pair: x, .. }
            | Expr::Held(x)
            | Expr::Fold(_, x) => [Some(x), None, None],
            Expr::Binary(_, x, y) => [Some(x), Some(y), None],
            Expr::Select(condition, x, y) => [Some(condition), Some(x), Some(y)],
        };
        children.into_iter().flatten()
    }

    /// The same, to change them.
    pub fn children_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let children: [Option<&mut Expr>; 3] = match self {
            Expr::Rescale(_, children) | Expr::Dot(children) | Expr::QuadDot(children) | Expr::Line(_, children) => {
                children.each_mut().map(Some)
            }
            Expr::Literal(_)
            | Expr::Var(_)
            | Expr::Load { .. }
            | Expr::Gather { .. }
            | Expr::Pair { .. }
            | Expr::WidePairs { .. }
            | Expr::Quad { .. }
            | Expr::Index(..) => [None, None, None],
            Expr::Unary(_, x)
            | Expr::Cast(_, x)
            | Expr::BitCast(_, x)
            | Expr::Splat(x, _)
            | Expr::Saturate(_, x)
            | Expr::Lane(x, _)
            | Expr::HalfOf { pair: x, .. }
            | Expr::Held(x)
            | Expr::Fold(_, x) => [Some(x), None, None],
            Expr::Binary(_, x, y) => [Some(x), Some(y), None],
            Expr::Select(condition, x, y) => [Some(condition), Some(x), Some(y)],
        };
        children.into_iter().flatten()
    }

    /// Calls `visit` for all that is read to compute the value, indices first: with the pointer, the index, and the elements' distance
    /// and count.
    pub fn reads<'a>(&'a self, visit: &mut dyn FnMut(Var, &'a Index, (i64, usize))) {
        let (pointer, index, elements) = match self {
            Expr::Load { pointer, index, ty } => (pointer, index, (1, ty.lanes)),
            Expr::Pair { pointer, index } => (pointer, index, (1, 2)),
            Expr::WidePairs { pointer, index, lanes } => (pointer, index, (1, 2 * lanes)),
            Expr::Quad { pointer, index } => (pointer, index, (1, 4)),
            Expr::Gather { pointer, index, stride, valid, .. } => (pointer, index, (*stride, *valid)),
            Expr::Index(_, index) => return index.reads(visit),
            other => return other.children().for_each(|child| child.reads(visit)),
        };
        index.reads(visit);
        visit(*pointer, index, elements);
    }
}

/// What a sum is made of besides its constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Atom {
    /// An index variable.
    Var(Var),
    /// An index divided by a positive constant, rounded down; the index isn't negative.
    Quotient(Box<Index>, i64),
    /// What that division leaves.
    Remainder(Box<Index>, i64),
    /// The larger of two.
    Maximum(Box<Index>, Box<Index>),
    /// The smaller of two.
    Minimum(Box<Index>, Box<Index>),
    /// A scalar integer value.
    Value(Box<Expr>),
}

/// `constant + sum of factor * atom`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Index {
    /// The constant.
    pub constant: i64,
    /// Atoms with factors other than 0, each atom once.
    pub terms: Vec<(Atom, i64)>,
}

impl From<i64> for Index {
    fn from(constant: i64) -> Index {
        Index { constant, terms: Vec::new() }
    }
}

impl From<usize> for Index {
    fn from(constant: usize) -> Index {
        Index::from(constant as i64)
    }
}

impl Index {
    /// A variable.
    pub fn var(var: Var) -> Index {
        Index::atom(Atom::Var(var))
    }

    /// A scalar integer value.
    pub fn value(value: Expr) -> Index {
        Index::atom(Atom::Value(Box::new(value)))
    }

    fn atom(atom: Atom) -> Index {
        Index { constant: 0, terms: vec![(atom, 1)] }
    }

    /// Calls `visit` for all that is read to compute it, as [`Expr::reads`] does.
    pub fn reads<'a>(&'a self, visit: &mut dyn FnMut(Var, &'a Index, (i64, usize))) {
        for (atom, _) in &self.terms {
            match atom {
                Atom::Var(_) => {}
                Atom::Quotient(inner, _) | Atom::Remainder(inner, _) => inner.reads(visit),
                Atom::Maximum(left, right) | Atom::Minimum(left, right) => {
                    left.reads(visit);
                    right.reads(visit);
                }
                Atom::Value(value) => value.reads(visit),
            }
        }
    }

    /// Its value when it is constant.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The sum of two.
    pub fn plus(&self, other: &Index) -> Index {
        let mut sum = self.clone();
        sum.constant += other.constant;
        for (atom, factor) in &other.terms {
            match sum.terms.iter_mut().find(|(own, _)| own == atom) {
                Some((_, own)) => *own += factor,
                None => sum.terms.push((atom.clone(), *factor)),
            }
        }
        sum.terms.retain(|(_, factor)| *factor != 0);
        sum
    }

    /// The sum with a constant.
    pub fn offset(&self, constant: i64) -> Index {
        Index { constant: self.constant + constant, terms: self.terms.clone() }
    }

    /// The product with a constant.
    pub fn times(&self, factor: i64) -> Index {
        if factor == 0 {
            return Index::default();
        }
        let terms = self.terms.iter().map(|(atom, own)| (atom.clone(), own * factor)).collect();
        Index { constant: self.constant * factor, terms }
    }

    /// The quotient by a positive constant, rounded down. Precondition: it isn't negative.
    pub fn divided_by(&self, divisor: i64) -> Index {
        match self.as_constant() {
            Some(constant) => Index::from(constant.div_euclid(divisor)),
            None if divisor == 1 => self.clone(),
            None => Index::atom(Atom::Quotient(Box::new(self.clone()), divisor)),
        }
    }

    /// What the division by a positive constant leaves. Precondition: it isn't negative.
    pub fn modulo(&self, divisor: i64) -> Index {
        match self.as_constant() {
            Some(constant) => Index::from(constant.rem_euclid(divisor)),
            None if divisor == 1 => Index::default(),
            None => Index::atom(Atom::Remainder(Box::new(self.clone()), divisor)),
        }
    }

    /// The larger of two.
    pub fn maximum(&self, other: &Index) -> Index {
        match (self.as_constant(), other.as_constant()) {
            (Some(left), Some(right)) => Index::from(left.max(right)),
            _ => Index::atom(Atom::Maximum(Box::new(self.clone()), Box::new(other.clone()))),
        }
    }

    /// The smaller of two.
    pub fn minimum(&self, other: &Index) -> Index {
        match (self.as_constant(), other.as_constant()) {
            (Some(left), Some(right)) => Index::from(left.min(right)),
            _ => Index::atom(Atom::Minimum(Box::new(self.clone()), Box::new(other.clone()))),
        }
    }
}

/// Calls `visit` with every variable that a value mentions.
pub(super) fn visit_expr(expr: &Expr, visit: &mut dyn FnMut(Var)) {
    match expr {
        Expr::Var(var) => visit(*var),
        Expr::Load { pointer, index, .. }
        | Expr::Gather { pointer, index, .. }
        | Expr::Pair { pointer, index }
        | Expr::WidePairs { pointer, index, .. }
        | Expr::Quad { pointer, index } => {
            visit(*pointer);
            visit_index(index, visit);
        }
        Expr::Index(_, index) => visit_index(index, visit),
        other => other.children().for_each(|child| visit_expr(child, visit)),
    }
}

/// Calls `visit` with every variable that an index mentions.
pub(super) fn visit_index(index: &Index, visit: &mut dyn FnMut(Var)) {
    for (atom, _) in &index.terms {
        match atom {
            Atom::Var(var) => visit(*var),
            Atom::Quotient(inner, _) | Atom::Remainder(inner, _) => visit_index(inner, visit),
            Atom::Maximum(left, right) | Atom::Minimum(left, right) => {
                visit_index(left, visit);
                visit_index(right, visit);
            }
            Atom::Value(value) => visit_expr(value, visit),
        }
    }
}

/// Type of a value over these variables.
pub fn value_type(vars: &[VarInfo], expr: &Expr) -> ValueType {
    match expr {
        Expr::Literal(literal) => ValueType::scalar(literal.dtype()),
        Expr::Var(var) => match vars[*var as usize].kind {
            VarKind::Value(ty) => ty,
            VarKind::Index => ValueType::scalar(DType::I32),
            VarKind::Pointer { dtype, .. } => ValueType::scalar(dtype),
        },
        Expr::Load { ty, .. } | Expr::Gather { ty, .. } => *ty,
        Expr::Unary(function, x) => {
            let ty = value_type(vars, x);
            ValueType { dtype: function.result_dtype(ty.dtype).unwrap_or(ty.dtype), ..ty }
        }
        Expr::Binary(function, x, y) => {
            let (left, right) = (value_type(vars, x), value_type(vars, y));
            let dtype = function.result_dtype(left.dtype).unwrap_or(left.dtype);
            ValueType { dtype, lanes: left.lanes.max(right.lanes) }
        }
        Expr::Select(condition, x, y) => {
            // Each is looked at once: twice would be as often as two to the power of how deep selections nest.
            let [condition, x, y] = [condition, x, y].map(|operand| value_type(vars, operand));
            ValueType { dtype: x.dtype, lanes: condition.lanes.max(x.lanes).max(y.lanes) }
        }
        Expr::Cast(dtype, x) | Expr::BitCast(dtype, x) | Expr::Saturate(dtype, x) => {
            ValueType { dtype: *dtype, ..value_type(vars, x) }
        }
        Expr::Splat(x, lanes) => ValueType { lanes: *lanes, ..value_type(vars, x) },
        Expr::Held(x) => value_type(vars, x),
        Expr::Lane(x, _) | Expr::Fold(_, x) => ValueType { lanes: 1, ..value_type(vars, x) },
        Expr::Rescale(_, children) => {
            let types = children.each_ref().map(|child| value_type(vars, child));
            ValueType { lanes: types.iter().map(|ty| ty.lanes).max().unwrap_or(1), ..types[0] }
        }
        Expr::Dot(children) | Expr::QuadDot(children) | Expr::Line(_, children) => value_type(vars, &children[0]),
        Expr::HalfOf { .. } => ValueType::scalar(DType::F32),
        Expr::Pair { .. } | Expr::Quad { .. } => ValueType::scalar(DType::I32),
        Expr::WidePairs { lanes, .. } => ValueType::vector(DType::I32, *lanes),
        Expr::Index(dtype, _) => ValueType::scalar(*dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_nested_selections_are_found_at_once() {
        let zero = || Expr::Literal(Literal::float(DType::F32, 0.0));
        let condition = || Box::new(Expr::Literal(Literal::Integer(DType::Bool, 1)));
        let nested = (0..200).fold(zero(), |x, _| Expr::Select(condition(), Box::new(x), Box::new(zero())));
        assert_eq!(value_type(&[], &nested), ValueType::scalar(DType::F32));
    }
}
