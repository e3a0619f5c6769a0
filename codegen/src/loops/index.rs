//! [`Index`]: integer arithmetic for addresses and bounds, kept as a sum of multiples so that it stays simple as it is built.

use super::{Expr, Var};

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
