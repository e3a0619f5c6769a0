//! [`Budget`]: what reading a text may cost, whatever the text says: a few lines of macros can stand for more words than there are
//! atoms.

use super::token::Token;
use mlc_ir::{Code, Diagnostic};

/// Most words that are looked at, those that macros make counted each time. Large networks have some ten thousand.
pub const MOST_STEPS: usize = 1 << 20;

/// Most bytes of a text and of all that it includes.
pub const MOST_BYTES: usize = 1 << 22;

/// Most files that a text includes, each counted every time.
pub const MOST_INCLUDES: usize = 1000;

/// How deep macros, files, parentheses and expressions may be nested in each other.
pub const MOST_DEPTH: usize = 64;

/// The longest word that macros may make.
pub const LONGEST_WORD: usize = 1 << 12;

/// What is left of it.
#[derive(Debug)]
pub struct Budget {
    steps: usize,
    bytes: usize,
    includes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { steps: MOST_STEPS, bytes: MOST_BYTES, includes: MOST_INCLUDES }
    }
}

impl Budget {
    /// Takes a step at a word.
    ///
    /// # Errors
    /// When there were too many.
    pub fn step(&mut self, token: &Token) -> Result<(), Diagnostic> {
        let left = self.steps.checked_sub(1).ok_or_else(|| {
            let message = format!("the macros of the text stand for more than {MOST_STEPS} words");
            token.fault(Code::NumberOutOfRange, message)
        })?;
        self.steps = left;
        Ok(())
    }

    /// Takes the bytes of a file; `false` when they are too many.
    pub fn take_bytes(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(0);
        left.is_some()
    }

    /// Takes a file that is included; `false` when there were too many.
    pub fn take_include(&mut self) -> bool {
        let left = self.includes.checked_sub(1);
        self.includes = left.unwrap_or(0);
        left.is_some()
    }

    /// How many steps were taken.
    #[cfg(test)]
    pub fn steps(&self) -> usize {
        MOST_STEPS - self.steps
    }
}
