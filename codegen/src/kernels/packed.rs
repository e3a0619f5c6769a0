//! [`Packed`]: a constant in the layout that a kernel wants.

use mlc_ir::{Attribute, Code, Diagnostic, Location, TensorType, parallel};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A constant whose values are found when they are first asked for: a program that is only looked at packs nothing.
#[derive(Clone)]
pub struct Packed {
    ty: TensorType,
    values: Arc<dyn Fn() -> Option<Attribute> + Send + Sync>,
    known: Arc<OnceLock<Option<Attribute>>>,
}

impl Packed {
    /// A constant of a type that `values` finds; `None` where what it is made of has too few elements.
    pub fn new(ty: TensorType, values: impl Fn() -> Option<Attribute> + Send + Sync + 'static) -> Packed {
        Packed { ty, values: Arc::new(values), known: Arc::default() }
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The values; `None` where [`Packed::find`] fails.
    pub fn values(&self) -> Option<&Attribute> {
        self.known.get_or_init(|| (self.values)()).as_ref()
    }

    /// Finds the values of all `constants`, those of large ones at the same time.
    ///
    /// # Errors
    /// When one has fewer elements than its type says, which is a defect.
    pub fn find(constants: &[&Packed]) -> Result<(), Diagnostic> {
        let bytes: usize = constants.iter().map(|own| own.ty.bytes()).sum();
        // Modules keep equal constants once, so they ask for hashes.
        let values = |own: &&Packed| own.values().map(Attribute::word_hash).is_some();
        let found = parallel::map(constants, parallel::threads(bytes), values);
        let message = "a constant has fewer elements than its type says";
        let missing = || Diagnostic::error(Code::InvalidGraph, Location::default(), message);
        found.into_iter().all(|found| found).then_some(()).ok_or_else(missing)
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
        self.ty == other.ty && (Arc::ptr_eq(&self.known, &other.known) || self.values() == other.values())
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("ty", &self.ty).finish_non_exhaustive()
    }
}
