//! [`Packed`]: a constant in the layout that a kernel wants.

use mlc_ir::{Attribute, Code, Diagnostic, Location, TensorType};
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

/// A constant whose values are found when they are first asked for: a program that is only looked at packs nothing.
#[derive(Clone)]
pub struct Packed {
    ty: TensorType,
    values: Rc<dyn Fn() -> Option<Attribute>>,
    known: Rc<OnceCell<Option<Attribute>>>,
}

impl Packed {
    /// A constant of a type that `values` finds; `None` where what it is made of has too few elements.
    pub fn new(ty: TensorType, values: impl Fn() -> Option<Attribute> + 'static) -> Packed {
        Packed { ty, values: Rc::new(values), known: Rc::default() }
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The values; `None` where [`Packed::check`] fails.
    pub fn values(&self) -> Option<&Attribute> {
        self.known.get_or_init(|| (self.values)()).as_ref()
    }

    /// Finds the values.
    ///
    /// # Errors
    /// When there are fewer elements than the type says, which is a defect.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let message = "a constant has fewer elements than its type says";
        let missing = || Diagnostic::error(Code::InvalidGraph, Location::default(), message);
        self.values().map(|_| ()).ok_or_else(missing)
    }
}

impl From<Attribute> for Packed {
    fn from(value: Attribute) -> Packed {
        Packed::new(value.ty().clone(), move || Some(value.clone()))
    }
}

/// Constants of equal values are equal, however they are found.
impl PartialEq for Packed {
    fn eq(&self, other: &Packed) -> bool {
        self.ty == other.ty && (Rc::ptr_eq(&self.known, &other.known) || self.values() == other.values())
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("ty", &self.ty).finish_non_exhaustive()
    }
}
