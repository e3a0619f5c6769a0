//! Named arrays that a user gives for the weights of a model: a NumPy archive (`.npz`), a safetensors file, a folder of `.npy`
//! files, or TensorRT's old text of numbers (`.wts`).

use crate::{files, npy, signatures, weights};
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_import::Weight;
use mlc_ir::{Attribute, Code, DType, Diagnostic, Location, TensorType};
use std::io::{Cursor, Read};
use std::path::Path;
use zip::ZipArchive;
use zip::result::ZipError;

/// Most bytes of an array file that its header may take.
const MOST_HEADER: u64 = 1 << 16;

/// Arrays by name.
type Arrays = IndexMap<String, Weight>;

/// Reads the arrays of a file or a folder, whatever its format.
///
/// # Errors
/// `MLC0001` when something can't be read, `MLC0006` when an array is damaged, `MLC0107` when the file as a whole is, or is of no
/// format that holds arrays.
pub fn read(path: &Path) -> Result<Arrays, Diagnostic> {
    if path.is_dir() {
        return read_folder(path);
    }
    let bytes = files::read(path)?;
    let in_file = |diagnostic: Diagnostic| diagnostic.in_file(&path.display().to_string());
    let arrays = if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        read_npz(&bytes)
    } else if signatures::is_safetensors(&bytes) {
        weights::tensors(&bytes).map(|found| found.into_iter().map(|(name, value)| (name, shaped(value))).collect())
    } else if let Some(text) = text_of_numbers(&bytes) {
        read_wts(text)
    } else {
        let message = "the file of the weights is of no format that mlc reads";
        Err(damaged(message).with_help("it reads .npz, .safetensors, .wts and folders of .npy files"))
    };
    arrays.map_err(in_file)
}

fn shaped(value: Attribute) -> Weight {
    Weight { value, has_shape: true }
}

fn damaged(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
}

/// One array file.
fn parse_npy(name: &str, bytes: &Bytes) -> Result<Weight, Diagnostic> {
    let array = npy::parse(bytes).map_err(|message| {
        Diagnostic::error(Code::ArrayMismatch, Location::default(), format!("the array '{name}': {message}"))
    })?;
    let value = Attribute::new(TensorType::new(array.dtype, &array.shape), array.bytes)
        .map_err(|error| damaged(format!("the array '{name}': {error}")))?;
    Ok(shaped(value))
}

/// The `.npy` files of a folder, sorted, named without their extension.
fn read_folder(folder: &Path) -> Result<Arrays, Diagnostic> {
    let unreadable = |error: std::io::Error| {
        let location = Location::default().in_file(folder.display().to_string());
        Diagnostic::error(Code::FileUnreadable, location, format!("can't read the folder: {}", files::describe(&error)))
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "npy") {
            paths.push(path);
        }
    }
    paths.sort();
    let array = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let weight = parse_npy(&name, &files::read(path)?);
        Ok((name, weight.map_err(|error| error.in_file(&path.display().to_string()))?))
    };
    paths.iter().map(array).collect()
}

/// The arrays of a NumPy archive, which is a zip file of `.npy` files.
fn read_npz(bytes: &Bytes) -> Result<Arrays, Diagnostic> {
    let fault = |error: &dyn std::fmt::Display| damaged(format!("the archive of arrays is damaged: {error}"));
    let mut archive = ZipArchive::new(Cursor::new(&bytes[..])).map_err(|error| fault(&error))?;
    let mut arrays = Arrays::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| match error {
            ZipError::UnsupportedArchive(_) => {
                damaged("the archive of arrays is compressed by something else than deflate")
                    .with_help("write it with numpy.savez or numpy.savez_compressed")
            }
            error => fault(&error),
        })?;
        let name = entry.name().map_err(|error| fault(&error))?.into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let contents = read_entry(&name, entry.size(), &mut entry)?;
        arrays.insert(name.clone(), parse_npy(&name, &contents.into())?);
    }
    Ok(arrays)
}

/// Reads an array file that is said to have this size, which it may have to be unpacked to: no more of it than its own header
/// says, so that a small archive doesn't fill the memory unless it holds arrays that do.
fn read_entry(name: &str, size: u64, entry: &mut impl Read) -> Result<Vec<u8>, Diagnostic> {
    let fault = |message: String| {
        Diagnostic::error(Code::ArrayMismatch, Location::default(), format!("the array '{name}': {message}"))
    };
    let unreadable = |error: std::io::Error| damaged(format!("the archive of arrays is damaged: {error}"));
    let mut contents = Vec::new();
    entry.by_ref().take(MOST_HEADER).read_to_end(&mut contents).map_err(unreadable)?;
    let length = npy::length(&contents).map_err(fault)?;
    if size != length as u64 {
        return Err(fault(format!("the array's header asks for a file of {length} bytes, the archive has {size}")));
    }
    let rest = length.saturating_sub(contents.len());
    contents.try_reserve_exact(rest).map_err(|_| fault(format!("there is no memory for {length} bytes")))?;
    // One more byte than there should be, so that the end is seen, where checksums are compared.
    entry.take(rest as u64 + 1).read_to_end(&mut contents).map_err(unreadable)?;
    Ok(contents)
}

/// The text, if the bytes are one that starts with a number and nothing else on its line.
fn text_of_numbers(bytes: &[u8]) -> Option<&str> {
    let line = bytes.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let is_number = !line.is_empty() && line.len() < 20 && line.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(bytes).ok().filter(|_| is_number)
}

/// The arrays of a text of bit patterns in hexadecimal digits: each has a name, a type, a length, and no shape.
fn read_wts(text: &str) -> Result<Arrays, Diagnostic> {
    let mut words = text.split_ascii_whitespace();
    let count: usize = number(words.next(), "the number of arrays")?;
    let mut arrays = Arrays::new();
    for _ in 0..count {
        let name = words.next().ok_or_else(|| damaged(format!("the text has {} of {count} arrays", arrays.len())))?;
        let dtype = match words.next() {
            Some("0") => DType::F32,
            Some("2") => DType::I8,
            other => {
                let other = other.unwrap_or("nothing");
                return Err(damaged(format!("the array '{name}' has type {other}; 0, a single, or 2, i8, expected")));
            }
        };
        let length: usize = number(words.next(), &format!("the length of '{name}'"))?;
        let mut bytes = Vec::new();
        for element in 0..length {
            let word = words.next().unwrap_or_default();
            let bits = u32::from_str_radix(word, 16).ok().filter(|&bits| dtype == DType::F32 || bits <= 0xff);
            let bits = bits.ok_or_else(|| damaged(format!("element {element} of '{name}' is '{word}', no bits")))?;
            bytes.extend(&bits.to_le_bytes()[..dtype.size()]);
        }
        let value = Attribute::new(TensorType::new(dtype, [length]), bytes)
            .map_err(|error| damaged(format!("the array '{name}': {error}")))?;
        arrays.insert(name.to_owned(), Weight { value, has_shape: false });
    }
    Ok(arrays)
}

fn number(word: Option<&str>, what: &str) -> Result<usize, Diagnostic> {
    let word = word.unwrap_or_default();
    word.parse().map_err(|_| damaged(format!("{what} is '{word}', which is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn npy(shape: &str, data: &[f32]) -> Vec<u8> {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        data.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    }

    fn floats(arrays: &Arrays, name: &str) -> Vec<f64> {
        arrays[name].value.to_tensor().to_floats()
    }

    #[test]
    fn folders_and_archives_hold_arrays_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.w.npy"), npy("(2,)", &[1.0, 2.0])).unwrap();
        std::fs::write(folder.path().join("a.npy"), npy("()", &[3.0])).unwrap();
        std::fs::write(folder.path().join("notes.txt"), "no array").unwrap();
        let arrays = read(folder.path()).unwrap();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["a", "b.w"]);
        assert_eq!(floats(&arrays, "b.w"), [1.0, 2.0]);

        let path = folder.path().join("all.npz");
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        archive.start_file("layers.0/w.npy", options).unwrap();
        archive.write_all(&npy("(1, 1)", &[4.0])).unwrap();
        archive.finish().unwrap();
        let arrays = read(&path).unwrap();
        assert_eq!(floats(&arrays, "layers.0/w"), [4.0]);
        assert_eq!(arrays["layers.0/w"].value.ty().shape[..], [1, 1]);
    }

    /// An archive of files, compressed by deflate.
    fn compressed(files: &[(&str, Vec<u8>)]) -> Bytes {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        for (name, contents) in files {
            archive.start_file(*name, options).unwrap();
            archive.write_all(contents).unwrap();
        }
        archive.finish().unwrap().into_inner().into()
    }

    #[test]
    fn compressed_archives_are_unpacked() {
        let numbers: Vec<f32> = (0..50_000).map(|number| (number % 7) as f32).collect();
        let files = [("a.npy", npy("(50000,)", &numbers)), ("b.npy", npy("()", &[2.0]))];
        let archive = compressed(&files);
        assert!(archive.len() < 10_000);
        let arrays = read_npz(&archive).unwrap();
        assert_eq!(floats(&arrays, "a"), numbers.iter().map(|&number| f64::from(number)).collect::<Vec<_>>());
        assert_eq!(floats(&arrays, "b"), [2.0]);

        let mut broken = archive.to_vec();
        broken[60] ^= 0x55;
        assert!(read_npz(&broken.into()).is_err());
    }

    /// How much of a reader was read.
    struct Counted(std::io::Repeat, u64);

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1 += count as u64;
            Ok(count)
        }
    }

    #[test]
    fn no_more_is_unpacked_than_headers_say() {
        let mut more = npy("(2,)", &[1.0, 2.0]);
        more.extend([0; 1 << 20]);
        for contents in [more, npy("(3,)", &[1.0, 2.0]), b"\0".repeat(1 << 20)] {
            assert_eq!(read_npz(&compressed(&[("a.npy", contents)])).unwrap_err().code, Code::ArrayMismatch);
        }
        let start = npy("(2,)", &[]);
        let mut endless = Counted(std::io::repeat(0), 0);
        let error = read_entry("a", 1 << 40, &mut start.as_slice().chain(&mut endless)).unwrap_err();
        assert!(error.message.contains("1099511627776"), "{error}");
        assert!(endless.1 <= MOST_HEADER);
    }

    #[test]
    fn texts_of_numbers_have_no_shapes() {
        let arrays = read_wts("2\nconv.w 0 2 3f800000 0\nq 2 3 ff 1 80\n").unwrap();
        assert_eq!(floats(&arrays, "conv.w"), [1.0, 0.0]);
        assert_eq!(arrays["q"].value.to_tensor().to_integers(), [-1, 1, -128]);
        assert!(!arrays["q"].has_shape);
        for wrong in ["2\nw 0 1 0", "1\nw 1 1 0", "1\nw 0 2 0", "1\nw 0 x 0", "1\nw 2 1 100", "1\nw 0 99999999999 0"] {
            assert_eq!(read_wts(wrong).unwrap_err().code, Code::ArchiveDamaged, "{wrong}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        for bytes in [&b"hello"[..], b"PK\x03\x04junk", b"", b"12 3"] {
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err();
            assert_eq!(error.code, Code::ArchiveDamaged, "{bytes:?}");
            assert!(error.location.file.is_some());
        }
        std::fs::write(folder.path().join("x.npy"), "junk").unwrap();
        assert_eq!(read(folder.path()).unwrap_err().code, Code::ArrayMismatch);
    }
}
