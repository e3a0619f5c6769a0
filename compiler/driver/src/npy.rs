//! NumPy's `.npy` arrays: every data type of the intermediate representation, both byte orders, both element orders.
//! Complex arrays are read as arrays of floats with one more axis, the last, of real and imaginary part.
//!
//! The header is parsed by hand, because a file may be hostile: nothing here reserves memory for a number in the file, or
//! recurses. A bf16 array is stored as `uint16` bits, since NumPy has no such type.

use crate::files;
use bytes::Bytes;
use mlc_ir::{Code, DType, Diagnostic, Location, Tensor, TensorType};
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Most axes of an array that is read; NumPy's own limit.
const MAX_RANK: usize = 64;

const TOO_LARGE: &str = "the array is too large for this machine";

/// An array as the file says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Data type of the elements; `u16` may hold the bits of bf16.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<usize>,
    /// The elements, dense, row-major, little-endian.
    pub bytes: Bytes,
}

impl Array {
    /// The tensor of this type.
    ///
    /// # Errors
    /// A message when data type or shape differ from the type's.
    pub fn into_tensor(self, ty: &TensorType) -> Result<Tensor, String> {
        let bf16 = ty.dtype == DType::Bf16 && self.dtype == DType::U16;
        if self.dtype != ty.dtype && !bf16 {
            let expected = if ty.dtype == DType::Bf16 { "u16 (the bits of bf16)" } else { ty.dtype.name() };
            return Err(format!("the array has elements of type {}, {expected} expected", self.dtype));
        }
        if self.shape != ty.shape.as_slice() {
            return Err(format!("the array has shape {:?}, {:?} expected", self.shape, ty.shape.as_slice()));
        }
        Ok(Tensor::from_le_bytes(ty.clone(), &self.bytes))
    }
}

/// Reads an array file and checks it against the type of the tensor that it is for.
///
/// # Errors
/// `MLC0001` when the file can't be read, `MLC0006` when it is damaged or has another type or shape.
pub fn read_tensor(path: &Path, ty: &TensorType) -> Result<Tensor, Diagnostic> {
    let bytes = files::read(path)?;
    parse(&bytes).and_then(|array| array.into_tensor(ty)).map_err(|message| {
        Diagnostic::error(Code::ArrayMismatch, Location::default().in_file(path.display().to_string()), message)
    })
}

/// Parses an array file.
///
/// # Errors
/// A message about what is wrong with it.
pub fn parse(file: &Bytes) -> Result<Array, String> {
    let (header, start) = split_header(file)?;
    let header = Header::parse(header)?;
    let (Element { dtype, big_endian, complex }, shape, expected) = header.elements()?;
    let parts = if complex { 2 } else { 1 };
    let found = file.len() - start;
    if expected != found {
        return Err(format!("the array's header asks for {expected} bytes of elements, the file has {found}"));
    }
    let mut bytes = file.slice(start..);
    if big_endian && dtype.size() > 1 {
        bytes = bytes.chunks_exact(dtype.size()).flat_map(|element| element.iter().rev().copied()).collect();
    }
    if header.fortran_order {
        let outer = shape.len() - usize::from(complex);
        bytes = from_fortran(&bytes, &shape[..outer], parts * dtype.size());
    }
    if dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
        return Err("an element of type bool is neither 0 nor 1".into());
    }
    Ok(Array { dtype, shape, bytes })
}

/// Bytes of the array file that starts so, by what its header says.
///
/// # Errors
/// A message about what is wrong with the header, or that it doesn't end here.
pub fn length(start: &[u8]) -> Result<usize, String> {
    let (header, start) = split_header(start)?;
    let (_, _, elements) = Header::parse(header)?.elements()?;
    elements.checked_add(start).ok_or_else(|| TOO_LARGE.into())
}

/// The header's text, and where the elements start.
fn split_header(file: &[u8]) -> Result<(&[u8], usize), String> {
    let body = file.strip_prefix(MAGIC).ok_or("not a .npy file: it doesn't start with \\x93NUMPY")?;
    let (length, start) = match *body {
        [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), 10),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 12),
        [version @ (0 | 4..), ..] => return Err(format!("version {version} of .npy isn't known")),
        _ => return Err("the file ends inside its header".into()),
    };
    let text = file.get(start..).and_then(|rest| rest.get(..length)).ok_or("the file ends inside its header")?;
    Ok((text, start + length))
}

/// The three entries of the header.
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }`, in any order.
    fn parse(text: &[u8]) -> Result<Header, String> {
        let mut scanner = Scanner { rest: text };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        scanner.expect(b'{')?;
        while !scanner.accept(b'}') {
            let key = scanner.string()?;
            scanner.expect(b':')?;
            match key.as_str() {
                "descr" => descr = Some(scanner.string()?),
                "fortran_order" => fortran_order = Some(scanner.boolean()?),
                "shape" => shape = Some(scanner.tuple()?),
                _ => return Err(format!("the array's header has an unknown entry '{key}'")),
            }
            if !scanner.accept(b',') {
                scanner.expect(b'}')?;
                break;
            }
        }
        match (descr, fortran_order, shape) {
            (Some(descr), Some(fortran_order), Some(shape)) => Ok(Header { descr, fortran_order, shape }),
            _ => Err("the array's header lacks 'descr', 'fortran_order' or 'shape'".into()),
        }
    }

    /// What the elements are, their shape with an axis for the parts of complex ones, and how many bytes they take.
    fn elements(&self) -> Result<(Element, Vec<usize>, usize), String> {
        let element = element_type(&self.descr)?;
        let mut shape = self.shape.clone();
        if element.complex {
            shape.push(2);
        }
        let bytes = TensorType::new(element.dtype, &shape).checked_bytes().ok_or(TOO_LARGE)?;
        Ok((element, shape, bytes))
    }
}

struct Scanner<'a> {
    rest: &'a [u8],
}

impl Scanner<'_> {
    fn accept(&mut self, byte: u8) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.accept(byte) { Ok(()) } else { Err(self.unexpected(&format!("'{}'", char::from(byte)))) }
    }

    fn unexpected(&self, expected: &str) -> String {
        let found = self.rest.first().map_or("its end".into(), |&byte| format!("'{}'", byte.escape_ascii()));
        format!("the array's header has {found} where {expected} is expected")
    }

    fn string(&mut self) -> Result<String, String> {
        let quote = if self.accept(b'\'') {
            b'\''
        } else if self.accept(b'"') {
            b'"'
        } else {
            return Err(match self.rest.first() {
                Some(b'[') => "an array of records can't be a tensor".into(),
                _ => self.unexpected("a string"),
            });
        };
        let end = self.rest.iter().position(|&byte| byte == quote).ok_or("the array's header has an open string")?;
        let text = String::from_utf8_lossy(&self.rest[..end]).into_owned();
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_ascii_start();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        let mut extents = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            extents.push(self.number()?);
            if extents.len() > MAX_RANK {
                return Err(format!("the array has more than {MAX_RANK} axes"));
            }
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(extents)
    }

    fn number(&mut self) -> Result<usize, String> {
        self.rest = self.rest.trim_ascii_start();
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        if number.is_empty() {
            return Err(self.unexpected("a number"));
        }
        self.rest = rest;
        // Python 2 wrote long integers with a suffix.
        self.accept(b'L');
        let text = String::from_utf8_lossy(number);
        text.parse().map_err(|_| format!("the array's extent {text} is too large for this machine"))
    }
}

/// What an array's elements are.
struct Element {
    dtype: DType,
    big_endian: bool,
    complex: bool,
}

/// The elements of a type string such as `<f4`.
fn element_type(descr: &str) -> Result<Element, String> {
    let (order, kind) = match descr.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), ..] => (*order, &descr[1..]),
        _ => (b'<', descr),
    };
    let dtype = match kind {
        "f2" => DType::F16,
        "f4" | "c8" => DType::F32,
        "f8" | "c16" => DType::F64,
        "i1" => DType::I8,
        "u1" => DType::U8,
        "i2" => DType::I16,
        "u2" => DType::U16,
        "i4" => DType::I32,
        "u4" => DType::U32,
        "i8" => DType::I64,
        "u8" => DType::U64,
        "b1" => DType::Bool,
        _ => return Err(format!("an array of type '{descr}' can't be a tensor")),
    };
    Ok(Element { dtype, big_endian: order == b'>', complex: kind.starts_with('c') })
}

/// Row-major elements of column-major ones.
fn from_fortran(bytes: &[u8], shape: &[usize], size: usize) -> Bytes {
    let elements = bytes.len() / size;
    let mut strides = vec![1usize; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut dense = Vec::with_capacity(bytes.len());
    for element in 0..elements {
        let mut rest = element;
        let mut source = 0;
        for axis in (0..shape.len()).rev() {
            source += rest % shape[axis] * strides[axis];
            rest /= shape[axis];
        }
        dense.extend_from_slice(&bytes[source * size..(source + 1) * size]);
    }
    dense.into()
}

/// An array file of a tensor.
pub fn format(tensor: &Tensor) -> Vec<u8> {
    let ty = tensor.ty();
    let descr = match ty.dtype {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::U16 | DType::Bf16 => "<u2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::I64 => "<i8",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
    };
    let extents: Vec<String> = ty.shape.iter().map(usize::to_string).collect();
    let comma = if extents.len() == 1 { "," } else { "" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", extents.join(", "));
    // Elements start at a multiple of 64, after a line feed.
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = MAGIC.to_vec();
    // Version 1. Its length field holds 65535; a tensor in memory has far fewer axes than such a header could list.
    file.extend([1, 0]);
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(tensor.to_le_bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Literal;

    fn array(header: &str, elements: &[u8]) -> Bytes {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(elements);
        file.into()
    }

    #[test]
    fn every_data_type_survives_a_round_trip() {
        for dtype in DType::ALL {
            for shape in [&[][..], &[3], &[2, 0], &[2, 3, 1]] {
                let tensor = Tensor::splat(TensorType::new(dtype, shape), Literal::of(dtype, 1.0));
                let file = Bytes::from(format(&tensor));
                assert_eq!((file.len() - tensor.to_le_bytes().len()) % 64, 0);
                assert_eq!(parse(&file).unwrap().into_tensor(tensor.ty()).unwrap(), tensor);
            }
        }
    }

    #[test]
    fn byte_order_and_element_order_are_undone() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
        let parsed = parse(&array(header, &[0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6])).unwrap();
        let tensor = parsed.into_tensor(&TensorType::new(DType::I16, [2, 3])).unwrap();
        assert_eq!(tensor.to_integers(), [1, 3, 5, 2, 4, 6]);
    }

    #[test]
    fn complex_arrays_have_a_last_axis_of_two() {
        let header = "{'descr': '>c8', 'fortran_order': True, 'shape': (2, 2)}";
        let elements: Vec<u8> = (0..8).flat_map(|value| (value as f32).to_be_bytes()).collect();
        let tensor =
            parse(&array(header, &elements)).unwrap().into_tensor(&TensorType::new(DType::F32, [2, 2, 2])).unwrap();
        assert_eq!(tensor.to_floats(), [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0]);
    }

    #[test]
    fn other_types_and_shapes_are_refused_with_both_sides_named() {
        let tensor = Tensor::splat(TensorType::new(DType::F32, [2]), Literal::of(DType::F32, 1.0));
        let parsed = parse(&format(&tensor).into()).unwrap();
        assert_eq!(
            parsed.clone().into_tensor(&TensorType::new(DType::F64, [2])).unwrap_err(),
            "the array has elements of type f32, f64 expected"
        );
        assert_eq!(
            parsed.into_tensor(&TensorType::new(DType::F32, [1, 2])).unwrap_err(),
            "the array has shape [2], [1, 2] expected"
        );
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
        for (file, message) in [
            (Bytes::from("PK"), "not a .npy file"),
            (Bytes::from_static(b"\x93NUMPY\x01"), "ends inside its header"),
            (Bytes::from_static(b"\x93NUMPY\x07\x00\x00\x00"), "version 7"),
            (Bytes::from_static(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"), "ends inside its header"),
            (array(good, &[0; 5]), "asks for 4 bytes of elements, the file has 5"),
            (array(&good.replace("1,", "99999999999, 99999999999"), &[]), "too large"),
            (array(&good.replace("1,", "99999999999999999999999"), &[]), "too large"),
            (array(&good.replace("1,", "-1"), &[]), "'-' where a number is expected"),
            (array(&good.replace("<f4", "|O"), &[0; 4]), "type '|O'"),
            (array(&good.replace("<f4", "<c32"), &[0; 32]), "type '<c32'"),
            (array(&good.replace("'<f4'", "[('x', '<f4')]"), &[0; 4]), "records"),
            (array(&good.replace("'shape': (1,), ", ""), &[]), "lacks"),
            (array(&good.replace("<f4", "|b1"), &[2]), "neither 0 nor 1"),
            (array("{'descr", &[]), "open string"),
            (array("", &[]), "its end"),
        ] {
            let error = parse(&file).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
