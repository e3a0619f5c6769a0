//! `parameters/<model>.params`: the named arrays of a model, and the single array that Relay text holds in base64. Plain data:
//! what a data type or a shape means is left to whoever asks.
//!
//! All numbers are little-endian, without padding. Reading borrows: an array is a slice of the file, and nothing is allocated
//! in proportion to a number that the file merely claims.

use std::borrow::Cow;
use std::io::{self, Write};

/// First word of a list of arrays.
const LIST_MAGIC: u64 = 0xF7E5_8D4F_0504_9CB7;

/// First word of an array.
const ARRAY_MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

/// The device type of arrays in memory that the processor sees.
const CPU: i32 = 1;

/// Most axes that are read; the formats that use these arrays have far fewer.
const MOST_AXES: usize = 32;

/// Kind of an element's type: signed integer.
pub const INT: u8 = 0;
/// Kind of an element's type: integer without a sign; with one bit, a truth value in a byte.
pub const UINT: u8 = 1;
/// Kind of an element's type: IEEE floating point.
pub const FLOAT: u8 = 2;
/// Kind of an element's type: the upper half of an IEEE single.
pub const BFLOAT: u8 = 4;

/// Type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementType {
    /// [`INT`], [`UINT`], [`FLOAT`], [`BFLOAT`], or a number that only others know.
    pub code: u8,
    /// Bits of an element; less than 8 still take a byte.
    pub bits: u8,
    /// Numbers in an element, 1 for all ordinary arrays.
    pub lanes: u16,
}

impl ElementType {
    /// A type with one number in each element.
    pub const fn new(code: u8, bits: u8) -> Self {
        ElementType { code, bits, lanes: 1 }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        usize::from(self.bits).div_ceil(8) * usize::from(self.lanes)
    }
}

/// A dense array in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array<'a> {
    /// Type of each element.
    pub element: ElementType,
    /// Extents, slowest axis first; empty for a single number.
    pub shape: Vec<usize>,
    /// The elements, little-endian; as many bytes as element type and shape say.
    pub data: Cow<'a, [u8]>,
}

/// An array and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'a> {
    /// Unique in a sound list, but that isn't checked.
    pub name: Cow<'a, str>,
    /// The array.
    pub array: Array<'a>,
}

/// What is wrong with bytes, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (byte {offset})")]
pub struct ParamsError {
    /// Where, from the start of the bytes.
    pub offset: usize,
    /// What is and what was expected; lower case, no full stop.
    pub message: String,
}

/// Reads a list of named arrays, which must be all of the bytes.
///
/// # Errors
/// When a magic number, a size or a count is wrong, when the bytes end early, or when some are left.
pub fn read_list(bytes: &[u8]) -> Result<Vec<Named<'_>>, ParamsError> {
    let mut reader = Reader { bytes, at: 0 };
    reader.magic(LIST_MAGIC, "a list of parameters")?;
    reader.u64("a reserved word")?;
    let count = reader.count("names")?;
    let mut names = Vec::new();
    for _ in 0..count {
        let length = reader.count("bytes of a name")?;
        let start = reader.at;
        let name = std::str::from_utf8(reader.take(length, "a name")?);
        names.push(name.map_err(|_| ParamsError { offset: start, message: "a name isn't UTF-8".into() })?);
    }
    let start = reader.at;
    let arrays = reader.count("arrays")?;
    if arrays != count {
        return Err(ParamsError { offset: start, message: format!("{arrays} arrays for {count} names") });
    }
    let mut list = Vec::new();
    for name in names {
        list.push(Named { name: Cow::Borrowed(name), array: reader.array()? });
    }
    reader.end()?;
    Ok(list)
}

/// Reads one array, which must be all of the bytes.
///
/// # Errors
/// As [`read_list`].
pub fn read_array(bytes: &[u8]) -> Result<Array<'_>, ParamsError> {
    let mut reader = Reader { bytes, at: 0 };
    let array = reader.array()?;
    reader.end()?;
    Ok(array)
}

/// Writes a list of named arrays.
///
/// # Errors
/// When the writer refuses.
pub fn write_list<W: Write + ?Sized>(arrays: &[Named<'_>], out: &mut W) -> io::Result<()> {
    let count = arrays.len() as u64;
    for word in [LIST_MAGIC, 0, count] {
        out.write_all(&word.to_le_bytes())?;
    }
    for Named { name, .. } in arrays {
        out.write_all(&(name.len() as u64).to_le_bytes())?;
        out.write_all(name.as_bytes())?;
    }
    out.write_all(&count.to_le_bytes())?;
    arrays.iter().try_for_each(|named| write_array(&named.array, out))
}

/// Writes an array.
///
/// # Errors
/// When the writer refuses.
pub fn write_array<W: Write + ?Sized>(array: &Array<'_>, out: &mut W) -> io::Result<()> {
    out.write_all(&array_header(array.element, &array.shape, array.data.len()))?;
    out.write_all(&array.data)
}

/// What stands before the data of an array of so many bytes.
pub fn array_header(element: ElementType, shape: &[usize], bytes: usize) -> Vec<u8> {
    let mut header = Vec::with_capacity(40 + 8 * shape.len());
    header.extend_from_slice(&ARRAY_MAGIC.to_le_bytes());
    header.extend_from_slice(&0u64.to_le_bytes());
    for number in [CPU, 0, shape.len() as i32] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header.extend_from_slice(&[element.code, element.bits]);
    header.extend_from_slice(&element.lanes.to_le_bytes());
    for &extent in shape {
        header.extend_from_slice(&(extent as i64).to_le_bytes());
    }
    header.extend_from_slice(&(bytes as i64).to_le_bytes());
    header
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn fault<T>(&self, message: impl Into<String>) -> Result<T, ParamsError> {
        Err(ParamsError { offset: self.at, message: message.into() })
    }

    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], ParamsError> {
        let rest = &self.bytes[self.at..];
        if count > rest.len() {
            return self.fault(format!("{what} needs {count} bytes, {} are left", rest.len()));
        }
        self.at += count;
        Ok(&rest[..count])
    }

    fn number<const N: usize>(&mut self, what: &str) -> Result<[u8; N], ParamsError> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(N, what)?);
        Ok(number)
    }

    fn u64(&mut self, what: &str) -> Result<u64, ParamsError> {
        Ok(u64::from_le_bytes(self.number(what)?))
    }

    fn i32(&mut self, what: &str) -> Result<i32, ParamsError> {
        Ok(i32::from_le_bytes(self.number(what)?))
    }

    fn magic(&mut self, expected: u64, what: &str) -> Result<(), ParamsError> {
        let start = self.at;
        match self.u64(what)? {
            found if found == expected => Ok(()),
            found => Err(ParamsError {
                offset: start,
                message: format!("{found:#018x} found where {what} starts, {expected:#018x} expected"),
            }),
        }
    }

    /// A number of things of which each takes at least a byte.
    fn count(&mut self, what: &str) -> Result<usize, ParamsError> {
        let start = self.at;
        let count = self.u64(&format!("the number of {what}"))?;
        let left = self.bytes.len() - self.at;
        usize::try_from(count).ok().filter(|&count| count <= left).ok_or_else(|| ParamsError {
            offset: start,
            message: format!("{count} {what} can't be in the {left} bytes that are left"),
        })
    }

    fn array(&mut self) -> Result<Array<'a>, ParamsError> {
        self.magic(ARRAY_MAGIC, "an array")?;
        self.u64("a reserved word")?;
        let device = self.i32("the device of an array")?;
        self.i32("the number of a device")?;
        if device != CPU {
            return self.fault(format!("the array is for the device type {device}, 1 expected"));
        }
        let rank = self.i32("the number of axes")?;
        let rank = match usize::try_from(rank) {
            Ok(rank) if rank <= MOST_AXES => rank,
            _ => return self.fault(format!("the array has {rank} axes, at most {MOST_AXES} expected")),
        };
        let [code, bits] = self.number("a data type")?;
        let element = ElementType { code, bits, lanes: u16::from_le_bytes(self.number("a data type")?) };
        if bits == 0 || element.lanes == 0 {
            return self.fault("elements have no bits");
        }
        let mut shape = Vec::with_capacity(rank);
        for _ in 0..rank {
            let extent = i64::from_le_bytes(self.number("an extent")?);
            match usize::try_from(extent) {
                Ok(extent) => shape.push(extent),
                Err(_) => return self.fault(format!("an extent is {extent}")),
            }
        }
        let expected = shape.iter().try_fold(element.bytes(), |product, &extent| product.checked_mul(extent));
        let size = i64::from_le_bytes(self.number("the size of an array")?);
        match (expected, usize::try_from(size)) {
            (Some(expected), Ok(size)) if expected == size => {
                Ok(Array { element, shape, data: Cow::Borrowed(self.take(size, "the data of an array")?) })
            }
            _ => self.fault(format!("an array of the shape {shape:?} has {size} bytes")),
        }
    }

    fn end(&self) -> Result<(), ParamsError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => self.fault(format!("{left} bytes are left at the end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Named<'static>> {
        let array = |element: ElementType, shape: &[usize]| {
            let bytes = element.bytes() * shape.iter().product::<usize>();
            Array { element, shape: shape.to_vec(), data: (0..bytes).map(|byte| byte as u8).collect() }
        };
        vec![
            Named { name: "p0".into(), array: array(ElementType::new(FLOAT, 32), &[2, 3]) },
            Named { name: "b\u{e9}ta".into(), array: array(ElementType::new(UINT, 1), &[4]) },
            Named { name: "".into(), array: array(ElementType::new(INT, 64), &[]) },
            Named { name: "none".into(), array: array(ElementType::new(INT, 4), &[0, 5]) },
        ]
    }

    fn bytes(list: &[Named<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_list(list, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let written = bytes(&sample());
        assert_eq!(read_list(&written).unwrap(), sample());
        assert!(read_list(&written).unwrap().iter().all(|named| matches!(named.array.data, Cow::Borrowed(_))));
        let mut single = Vec::new();
        write_array(&sample()[0].array, &mut single).unwrap();
        assert_eq!(read_array(&single).unwrap(), sample()[0].array);
    }

    #[test]
    fn an_empty_list_has_32_bytes() {
        let expected: Vec<u8> = [LIST_MAGIC, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
        assert_eq!(bytes(&[]), expected);
        assert_eq!(bytes(&[])[..8], [0xb7, 0x9c, 0x04, 0x05, 0x4f, 0x8d, 0xe5, 0xf7]);
        assert_eq!(read_list(&bytes(&[])).unwrap(), []);
    }

    #[test]
    fn no_prefix_and_no_suffix_is_a_list() {
        let written = bytes(&sample());
        for end in 0..written.len() {
            let error = read_list(&written[..end]).unwrap_err();
            assert!(error.offset <= end, "{error}");
        }
        let longer = [&written[..], &[0, 0]].concat();
        let error = read_list(&longer).unwrap_err();
        assert_eq!(error.to_string(), format!("2 bytes are left at the end (byte {})", written.len()));
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let written = bytes(&sample());
        let with = |at: usize, new: &[u8]| {
            let mut damaged = written.clone();
            damaged[at..at + new.len()].copy_from_slice(new);
            read_list(&damaged).unwrap_err().to_string()
        };
        let arrays = written.windows(8).position(|word| word == ARRAY_MAGIC.to_le_bytes()).unwrap();
        assert_eq!(
            with(0, &[0]),
            "0xf7e58d4f05049c00 found where a list of parameters starts, 0xf7e58d4f05049cb7 expected (byte 0)"
        );
        assert!(with(16, &[0xff; 8]).starts_with("18446744073709551615 names can't be in the"));
        assert!(with(arrays - 8, &[3]).starts_with("3 arrays for 4 names"));
        assert!(with(arrays, &[0]).contains("where an array starts"));
        assert!(with(arrays + 16, &[2]).starts_with("the array is for the device type 2"));
        assert!(with(arrays + 24, &[0xff; 4]).starts_with("the array has -1 axes"));
        assert!(with(arrays + 24, &[33]).starts_with("the array has 33 axes"));
        assert!(with(arrays + 29, &[0]).starts_with("elements have no bits"));
        assert!(with(arrays + 32, &[0xff; 8]).starts_with("an extent is -1"));
        assert!(with(arrays + 38, &[0xff]).contains("has 24 bytes"));
        assert!(with(arrays + 48, &[25]).starts_with("an array of the shape [2, 3] has 25 bytes"));
    }
}
