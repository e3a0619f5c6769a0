//! The names that an expression sees.

use super::Item;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Names of a function or a branch, and behind them those around it.
#[derive(Default)]
pub(super) struct Scope<'a> {
    locals: RefCell<BTreeMap<&'a str, Item<'a>>>,
    graph: RefCell<BTreeMap<u32, Item<'a>>>,
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

    pub fn bind(&self, name: &'a str, item: Item<'a>) {
        self.locals.borrow_mut().insert(name, item);
    }

    pub fn bind_graph(&self, number: u32, item: Item<'a>) {
        self.graph.borrow_mut().insert(number, item);
    }

    pub fn local(&self, name: &str) -> Option<Item<'a>> {
        self.find(|scope| scope.locals.borrow().get(name).cloned())
    }

    pub fn graph(&self, number: u32) -> Option<Item<'a>> {
        self.find(|scope| scope.graph.borrow().get(&number).cloned())
    }

    fn find(&self, get: impl Fn(&Scope<'a>) -> Option<Item<'a>>) -> Option<Item<'a>> {
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
