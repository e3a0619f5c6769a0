//! [`Flat`]: tables, vectors and numbers of a FlatBuffer. Every place is checked by the verifier of the library before it is
//! read, so reading and verifying are one walk.

use flatbuffers::{InvalidFlatbuffer, Verifier, VerifierOptions};
use std::ops::Range;

/// Why something can't be read.
pub(super) type Fault = InvalidFlatbuffer;

/// So many times its size a file may be looked at: parts of it may be shared, but no small file may become much memory.
const SHARING: usize = 32;

/// Limits for a file of so many bytes.
pub(super) fn limits(bytes: usize) -> VerifierOptions {
    VerifierOptions {
        max_tables: bytes,
        max_apparent_size: bytes.saturating_mul(SHARING).saturating_add(1 << 16),
        ignore_missing_null_terminator: true,
        ..VerifierOptions::default()
    }
}

/// A file while it is read.
pub(super) struct Flat<'l, 'b> {
    bytes: &'b [u8],
    verifier: Verifier<'l, 'b>,
}

impl<'l, 'b> Flat<'l, 'b> {
    pub fn new(limits: &'l VerifierOptions, bytes: &'b [u8]) -> Self {
        Flat { bytes, verifier: Verifier::new(limits, bytes) }
    }

    /// The place that the offset at a place leads to.
    pub fn follow(&mut self, place: usize) -> Result<usize, Fault> {
        Ok(place.saturating_add(self.verifier.get_uoffset(place)? as usize))
    }

    /// The places of a table's first fields, in the order of the schema; `None` for those that are left out.
    pub fn fields<const N: usize>(&mut self, table: usize) -> Result<[Option<usize>; N], Fault> {
        let mut places = [None; N];
        let mut table = self.verifier.visit_table(table)?;
        for (slot, place) in places.iter_mut().enumerate() {
            // Before the fields' offsets the list has its own size and that of the table.
            *place = table.deref(4 + 2 * slot as u16)?;
        }
        table.finish();
        Ok(places)
    }

    fn number<const N: usize>(&mut self, place: usize) -> Result<[u8; N], Fault> {
        self.verifier.range_in_buffer(place, N)?;
        let mut number = [0; N];
        number.copy_from_slice(&self.bytes[place..place + N]);
        Ok(number)
    }

    /// A number of 8 bits.
    pub fn int8(&mut self, place: Option<usize>, default: i8) -> Result<i8, Fault> {
        place.map_or(Ok(default), |place| Ok(i8::from_le_bytes(self.number(place)?)))
    }

    /// A number of 32 bits.
    pub fn int32(&mut self, place: Option<usize>, default: i32) -> Result<i32, Fault> {
        place.map_or(Ok(default), |place| Ok(i32::from_le_bytes(self.number(place)?)))
    }

    /// A number of 64 bits.
    pub fn int64(&mut self, place: Option<usize>) -> Result<i64, Fault> {
        place.map_or(Ok(0), |place| Ok(i64::from_le_bytes(self.number(place)?)))
    }

    /// A floating-point number of 32 bits.
    pub fn float32(&mut self, place: Option<usize>) -> Result<f32, Fault> {
        place.map_or(Ok(0.0), |place| Ok(f32::from_le_bytes(self.number(place)?)))
    }

    /// The place of a vector's elements of so many bytes; an empty one where it is left out.
    pub fn vector(&mut self, field: Option<usize>, size: usize) -> Result<Range<usize>, Fault> {
        let Some(field) = field else { return Ok(0..0) };
        let place = self.follow(field)?;
        let length = self.verifier.get_uoffset(place)? as usize;
        let start = place.saturating_add(4);
        let size = length.saturating_mul(size);
        self.verifier.range_in_buffer(start, size)?;
        Ok(start..start + size)
    }

    /// The end of bytes behind the tables.
    pub fn outside(&mut self, start: usize, size: usize) -> Result<usize, Fault> {
        self.verifier.range_in_buffer(start, size)?;
        Ok(start + size)
    }

    fn numbers<const N: usize>(
        &mut self,
        field: Option<usize>,
    ) -> Result<impl Iterator<Item = [u8; N]> + use<'b, N>, Fault> {
        let place = self.vector(field, N)?;
        let bytes: &'b [u8] = &self.bytes[place];
        Ok(bytes.chunks_exact(N).map(|chunk| {
            let mut number = [0; N];
            number.copy_from_slice(chunk);
            number
        }))
    }

    /// Numbers of 16 bits without a sign.
    pub fn unsigned16(&mut self, field: Option<usize>) -> Result<Vec<u16>, Fault> {
        Ok(self.numbers(field)?.map(u16::from_le_bytes).collect())
    }

    /// Numbers of 32 bits.
    pub fn ints32(&mut self, field: Option<usize>) -> Result<Vec<i32>, Fault> {
        Ok(self.numbers(field)?.map(i32::from_le_bytes).collect())
    }

    /// Numbers of 64 bits.
    pub fn ints64(&mut self, field: Option<usize>) -> Result<Vec<i64>, Fault> {
        Ok(self.numbers(field)?.map(i64::from_le_bytes).collect())
    }

    /// Floating-point numbers of 32 bits.
    pub fn floats32(&mut self, field: Option<usize>) -> Result<Vec<f32>, Fault> {
        Ok(self.numbers(field)?.map(f32::from_le_bytes).collect())
    }

    /// The places of the tables in a vector.
    pub fn tables(&mut self, field: Option<usize>) -> Result<Vec<usize>, Fault> {
        let place = self.vector(field, 4)?;
        place.step_by(4).map(|place| self.follow(place)).collect()
    }

    /// A text; what isn't UTF-8 in it is replaced.
    pub fn text(&mut self, field: Option<usize>) -> Result<String, Fault> {
        let place = self.vector(field, 1)?;
        Ok(String::from_utf8_lossy(&self.bytes[place]).into_owned())
    }
}
