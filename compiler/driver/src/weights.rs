//! The large constants of a graph's text, which holds their names and hashes only: a safetensors file beside it.
//!
//! The weights of `net.mlc` are in `net.mlc.safetensors`, or in `weights.safetensors` beside it, which the texts of all stages in one
//! folder share. A tensor has the constant's name; where another constant had the name before, the hash behind it.

use crate::files;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::text::ConstantSource;
use mlc_ir::{Attribute, Code, DType, Diagnostic, Location, TensorType};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors, serialize};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The file that the texts of a folder share.
pub const SHARED_FILE: &str = "weights.safetensors";

/// What is behind the name of a text in the name of its weights.
const EXTENSION: &str = ".safetensors";

/// The file of a text's own weights.
pub fn file_of(text: &Path) -> PathBuf {
    let mut name = OsString::from(text);
    name.push(EXTENSION);
    name.into()
}

/// The file of a text's weights, if there is one beside it.
pub fn find(text: &Path) -> Option<PathBuf> {
    [file_of(text), text.with_file_name(SHARED_FILE)].into_iter().find(|path| path.is_file())
}

/// Large constants of graphs' texts, to be written.
#[derive(Debug, Default)]
pub struct Weights(IndexMap<String, Attribute>);

impl Weights {
    /// Adds the large constants of a graph's text.
    pub fn add(&mut self, constants: &IndexMap<String, Attribute>) {
        for (name, value) in constants {
            let taken = self.0.get(name).is_some_and(|other| other.content_hash() != value.content_hash());
            let key = if taken { key_with_hash(name, value.content_hash()) } else { name.clone() };
            self.0.insert(key, value.clone());
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// `MLC0002` when the names alone are larger than the format allows.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        let fault = |error: SafeTensorError| {
            let message = format!("the weights can't be written as safetensors: {error}");
            Diagnostic::error(Code::FileUnwritable, Location::default(), message)
        };
        let mut views = Vec::new();
        for (name, value) in &self.0 {
            let shape = value.ty().shape.to_vec();
            let view = TensorView::new(stored_dtype(value.ty().dtype), shape, value.bytes());
            views.push((name, view.map_err(fault)?));
        }
        serialize(views, None).map_err(fault)
    }
}

fn key_with_hash(name: &str, hash: u64) -> String {
    format!("{name} #{hash:016x}")
}

/// A tensor of a file: data type, shape, and where its bytes are.
#[derive(Debug)]
struct Stored {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Range<usize>,
}

/// The weights of a file. Their bytes are the file's, not copied.
#[derive(Debug, Default)]
pub struct StoredWeights {
    bytes: Bytes,
    tensors: IndexMap<String, Stored>,
}

/// Reads the weights of a text.
///
/// # Errors
/// `MLC0001` when the file can't be read, `MLC0107` when it isn't a safetensors file.
pub fn read(path: &Path) -> Result<StoredWeights, Diagnostic> {
    parse(files::read(path)?).map_err(|error| error.in_file(&path.display().to_string()))
}

fn parse(bytes: Bytes) -> Result<StoredWeights, Diagnostic> {
    let fault = |error: SafeTensorError| {
        let message = format!("the file of the weights isn't a safetensors file: {error}");
        Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
    };
    let start = bytes.as_ptr() as usize;
    let stored = |(name, view): (String, TensorView<'_>)| {
        let offset = view.data().as_ptr() as usize - start;
        let bytes = offset..offset + view.data().len();
        (name, Stored { dtype: view.dtype(), shape: view.shape().to_vec(), bytes })
    };
    let tensors = SafeTensors::deserialize(&bytes).map_err(fault)?.tensors().into_iter().map(stored).collect();
    Ok(StoredWeights { bytes, tensors })
}

/// The tensors of a safetensors file, by name.
///
/// # Errors
/// `MLC0107` when it isn't one, or a tensor has a type that the IR lacks.
pub fn tensors(bytes: &Bytes) -> Result<IndexMap<String, Attribute>, Diagnostic> {
    let StoredWeights { bytes, tensors } = parse(bytes.clone())?;
    let attribute = |(name, Stored { dtype, shape, bytes: range }): (String, Stored)| {
        let own = DType::ALL.into_iter().find(|&own| stored_dtype(own) == dtype).ok_or_else(|| {
            let message = format!("the tensor '{name}' has the type {dtype:?}, which isn't supported");
            Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
        })?;
        let value = Attribute::new(TensorType::new(own, shape), bytes.slice(range)).map_err(|error| {
            let message = format!("the tensor '{name}': {error}");
            Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
        })?;
        Ok((name, value))
    };
    tensors.into_iter().map(attribute).collect()
}

impl ConstantSource for StoredWeights {
    fn constant(&self, name: &str, hash: u64, ty: &TensorType) -> Option<Attribute> {
        let value = |key: &str| {
            let Stored { dtype, shape, bytes } = self.tensors.get(key)?;
            // What the integers stand for is in the text.
            let own = DType::ALL.into_iter().find(|&own| stored_dtype(own) == *dtype)?;
            let own = TensorType::new(own, shape);
            let ty = if (own.dtype, &own.shape) == (ty.dtype, &ty.shape) { ty.clone() } else { own };
            Attribute::new(ty, self.bytes.slice(bytes.clone())).ok()
        };
        let by_name = value(name);
        match by_name {
            Some(value) if value.content_hash() == hash => Some(value),
            other => value(&key_with_hash(name, hash)).or(other),
        }
    }
}

/// A data type in the format's own terms.
fn stored_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::BF16,
        DType::I8 => Dtype::I8,
        DType::U8 => Dtype::U8,
        DType::I16 => Dtype::I16,
        DType::U16 => Dtype::U16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
        DType::I64 => Dtype::I64,
        DType::U64 => Dtype::U64,
        DType::Bool => Dtype::BOOL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Generator;

    fn constants(names: &[(&str, DType, u64)]) -> IndexMap<String, Attribute> {
        let value = |&(name, dtype, seed): &(&str, DType, u64)| {
            let tensor = Generator::new(seed).tensor(&TensorType::new(dtype, [3, 5]));
            (name.to_owned(), Attribute::from_tensor(&tensor))
        };
        names.iter().map(value).collect()
    }

    fn written(weights: &Weights) -> StoredWeights {
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(&folder.path().join("net.mlc"));
        std::fs::write(&path, weights.to_bytes().unwrap()).unwrap();
        assert_eq!(find(&folder.path().join("net.mlc")), Some(path.clone()));
        read(&path).unwrap()
    }

    #[test]
    fn every_data_type_is_read_back() {
        let list: Vec<(&str, DType, u64)> =
            DType::ALL.iter().enumerate().map(|(seed, dtype)| (dtype.name(), *dtype, seed as u64)).collect();
        let constants = constants(&list);
        let mut weights = Weights::default();
        weights.add(&constants);
        let stored = written(&weights);
        for (name, value) in &constants {
            assert_eq!(stored.constant(name, value.content_hash(), value.ty()).as_ref(), Some(value), "{name}");
        }
        assert!(stored.constant("nobody", 0, &TensorType::new(DType::F32, [1])).is_none());
    }

    #[test]
    fn constants_of_one_name_are_told_apart() {
        let (first, second) = (constants(&[("w", DType::F32, 1)]), constants(&[("w", DType::F32, 2)]));
        let mut weights = Weights::default();
        for constants in [&first, &second, &first, &second] {
            weights.add(constants);
        }
        let stored = written(&weights);
        assert_eq!(stored.tensors.len(), 2);
        for value in [&first["w"], &second["w"]] {
            assert_eq!(stored.constant("w", value.content_hash(), value.ty()).as_ref(), Some(value));
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        for bytes in [&b""[..], b"1234567", &[0xff; 64], b"\x02\0\0\0\0\0\0\0{}junk"] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path).unwrap_err().code, Code::ArchiveDamaged, "{bytes:?}");
        }
    }
}
