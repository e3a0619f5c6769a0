//! [`Budget`]: how many things a file may have.

use super::cursor::Cursor;
use mlc_ir::{Code, Diagnostic};

/// Most nodes, parameters and tensors in all; real modules have a few thousand. Each takes far more memory than a hostile file
/// spends on it.
const MOST_THINGS: usize = 1 << 18;

/// What may still be allocated.
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    /// Takes so many things.
    ///
    /// # Errors
    /// When there aren't so many left.
    pub fn take(&mut self, cursor: &Cursor<'_>, count: usize) -> Result<(), Diagnostic> {
        self.left = self.left.checked_sub(count).ok_or_else(|| {
            let message = format!("the file has more than {MOST_THINGS} nodes, parameters and tensors in all");
            cursor.fault(Code::NumberOutOfRange, cursor.place(), message)
        })?;
        Ok(())
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget { left: MOST_THINGS }
    }
}
