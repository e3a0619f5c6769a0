//! [`Cursor`]: bytes from the front to the back, never beyond the end.

use bytes::Bytes;
use mlc_ir::{Code, Diagnostic, Location};

/// A place in the file.
pub(super) struct Cursor<'a> {
    bytes: &'a Bytes,
    place: usize,
    /// The operator and the name of the node that is being read, as far as they are known.
    pub node: (Option<String>, Option<String>),
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a Bytes, place: usize) -> Self {
        Cursor { bytes, place, node: (None, None) }
    }

    pub fn place(&self) -> usize {
        self.place
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.place
    }

    /// A place of the node that is being read.
    pub fn location(&self, place: usize) -> Location {
        let (operator, node) = self.node.clone();
        Location { operator, node, ..Location::byte_offset(place as u64) }
    }

    /// An error at a place.
    pub fn fault(&self, code: Code, place: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.location(place), message)
    }

    /// The next bytes, shared with the file.
    pub fn take(&mut self, count: usize, what: &str) -> Result<Bytes, Diagnostic> {
        if count > self.left() {
            let message = format!("the file ends inside of {what}: {count} bytes expected, {} left", self.left());
            return Err(self.fault(Code::Syntax, self.place, message));
        }
        let taken = self.bytes.slice(self.place..self.place + count);
        self.place += count;
        Ok(taken)
    }

    pub fn byte(&mut self, what: &str) -> Result<u8, Diagnostic> {
        Ok(self.take(1, what)?[0])
    }

    pub fn int(&mut self, what: &str) -> Result<i32, Diagnostic> {
        let bytes = self.take(4, what)?;
        Ok(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A number of things of which each takes at least so many bytes.
    pub fn count(&mut self, what: &str, least: usize) -> Result<usize, Diagnostic> {
        let place = self.place;
        let found = self.int(what)?;
        let Ok(count) = usize::try_from(found) else {
            return Err(self.fault(Code::CountMismatch, place, format!("{what} is {found}, which is negative")));
        };
        if count > self.left() / least {
            let message = format!("{what} is {count}, but {} bytes are left", self.left());
            return Err(self.fault(Code::CountMismatch, place, message));
        }
        Ok(count)
    }
}
