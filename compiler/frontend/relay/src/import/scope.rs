//! What expressions mean, and the names that they see.

use super::item::Item;
use crate::syntax::FunctionId;
use mlc_ir::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What an expression stands for.
#[derive(Clone)]
pub(super) enum Meaning<'a> {
    /// A tensor, a tuple, or what couldn't be imported.
    Operand(Item),
    /// A function, and the names that it sees.
    Function(FunctionId, Rc<Scope<'a>>),
}

impl Meaning<'_> {
    /// What couldn't be imported.
    pub const UNKNOWN: Self = Meaning::Operand(Item::Unknown);

    /// A tensor.
    pub fn of(value: Value) -> Self {
        Meaning::Operand(Item::Tensor(value))
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Meaning::Operand(Item::Unknown))
    }
}

/// Names of a function or a branch, and behind them those around it.
#[derive(Default)]
pub(super) struct Scope<'a> {
    locals: RefCell<BTreeMap<&'a str, Meaning<'a>>>,
    graph: RefCell<BTreeMap<u32, Meaning<'a>>>,
    outer: Option<Rc<Scope<'a>>>,
}

impl<'a> Scope<'a> {
    pub fn inside(outer: &Rc<Scope<'a>>) -> Rc<Scope<'a>> {
        Rc::new(Scope { outer: Some(Rc::clone(outer)), ..Scope::default() })
    }

    /// Forgets all names.
    pub fn clear(&self) {
        self.locals.borrow_mut().clear();
        self.graph.borrow_mut().clear();
    }

    pub fn bind(&self, name: &'a str, item: Meaning<'a>) {
        self.locals.borrow_mut().insert(name, item);
    }

    pub fn bind_graph(&self, number: u32, item: Meaning<'a>) {
        self.graph.borrow_mut().insert(number, item);
    }

    pub fn local(&self, name: &str) -> Option<Meaning<'a>> {
        self.find(|scope| scope.locals.borrow().get(name).cloned())
    }

    pub fn graph(&self, number: u32) -> Option<Meaning<'a>> {
        self.find(|scope| scope.graph.borrow().get(&number).cloned())
    }

    fn find(&self, get: impl Fn(&Scope<'a>) -> Option<Meaning<'a>>) -> Option<Meaning<'a>> {
        let mut scope = self;
        loop {
            match (get(scope), &scope.outer) {
                (Some(item), _) => return Some(item),
                (None, Some(outer)) => scope = outer,
                (None, None) => return None,
            }
        }
    }
}
