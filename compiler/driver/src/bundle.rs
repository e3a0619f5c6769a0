//! Archives that are read back: the Model Library Format tarballs that mlc makes.
//!
//! An archive is untrusted data: names that lead out of its folder, links and devices are refused, and identifiers that
//! reach generated C are checked. Building and running it, which `mlc run` does on request, runs its code.

use bytes::Bytes;
use indexmap::IndexMap;
use mlc_codegen::FloatingPoint;
use mlc_ir::{Code, DType, Diagnostic, Location, TensorType};
use serde::Deserialize;
use std::io::Cursor;
use std::path::{Component, Path};

/// An input or output of a compiled model.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Its name in the model.
    pub name: String,
    /// Its name in the C structure.
    pub field: String,
    /// Its type.
    pub ty: TensorType,
}

/// A generated kernel, as the archive describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Kernel {
    /// Its C function.
    pub function: String,
    /// The node that it computes.
    pub node: String,
    /// What it computes, such as `convolution with epilogue`.
    pub operator: String,
    /// Multiply-accumulate operations.
    pub macs: u64,
}

/// A Model Library Format archive in memory.
#[derive(Debug, Clone)]
pub struct Bundle {
    files: IndexMap<String, Bytes>,
    /// Name of the model, a C identifier.
    pub model_name: String,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// Kernels in the order in which they run.
    pub kernels: Vec<Kernel>,
    /// Name of the target that it was compiled for.
    pub target: String,
    /// How closely its code keeps to floating-point operations.
    pub floating_point: FloatingPoint,
    /// `metadata.json`.
    pub metadata: serde_json::Value,
}

/// `src/<model>.json`, as far as it is read.
#[derive(Deserialize)]
struct Description {
    inputs: Vec<PortDescription>,
    outputs: Vec<PortDescription>,
    kernels: Vec<Kernel>,
    target: String,
    /// Archives of older versions don't say it.
    #[serde(default)]
    floating_point: FloatingPoint,
}

#[derive(Deserialize)]
struct PortDescription {
    dtype: String,
    field: String,
    name: String,
    shape: Vec<usize>,
}

impl Bundle {
    /// Reads an archive. The contents of its files are slices of the given bytes.
    ///
    /// # Errors
    /// `MLC0107` when the archive is damaged or dangerous, `MLC0110` when mlc didn't make it.
    pub fn parse(archive: &Bytes) -> Result<Bundle, Diagnostic> {
        let files = read_entries(archive).map_err(damaged)?;
        let json = |path: &str| -> Result<serde_json::Value, Diagnostic> {
            let bytes = files.get(path).ok_or_else(|| damaged(format!("it has no '{path}'")))?;
            serde_json::from_slice(bytes).map_err(|error| damaged(format!("'{path}': {error}")))
        };
        let metadata = json("metadata.json")?;
        let model_name = only_model(&metadata)?;
        let path = format!("src/{model_name}.json");
        if !files.contains_key(&path) {
            let message = format!("the archive wasn't made by mlc: it has no '{path}'");
            return Err(Diagnostic::error(Code::RelatedFormat, Location::default(), message)
                .with_help("compile the model that it was made from"));
        }
        let description: Description =
            serde_json::from_value(json(&path)?).map_err(|error| damaged(format!("'{path}': {error}")))?;
        let ports = |list: Vec<PortDescription>| list.into_iter().map(port).collect::<Result<Vec<_>, _>>();
        Ok(Bundle {
            inputs: ports(description.inputs).map_err(damaged)?,
            outputs: ports(description.outputs).map_err(damaged)?,
            kernels: description.kernels,
            target: description.target,
            floating_point: description.floating_point,
            model_name,
            metadata,
            files,
        })
    }

    /// Writes the files below a folder that exists.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn unpack(&self, folder: &Path) -> std::io::Result<()> {
        for (path, bytes) in &self.files {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }

    /// Paths of the C sources, sorted.
    pub fn sources(&self) -> Vec<&str> {
        let paths = self.files.keys().map(String::as_str);
        let mut sources: Vec<&str> =
            paths.filter(|path| path.starts_with("codegen/host/src/") && path.ends_with(".c")).collect();
        sources.sort_unstable();
        sources
    }

    /// All files with their contents, in the archive's order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.files.iter().map(|(path, contents)| (path.as_str(), contents))
    }
}

fn damaged(message: impl Into<String>) -> Diagnostic {
    let message = format!("the archive is damaged: {}", message.into());
    Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
}

fn read_entries(archive: &Bytes) -> Result<IndexMap<String, Bytes>, String> {
    let mut files = IndexMap::new();
    let mut reader = tar::Archive::new(Cursor::new(archive.as_ref()));
    let entries = reader.entries().map_err(|error| error.to_string())?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let path = entry.path().map_err(|error| error.to_string())?;
        let name = normalise(&path).ok_or_else(|| format!("the path '{}' leads out of it", path.display()))?;
        match entry.header().entry_type() {
            tar::EntryType::Directory | tar::EntryType::XGlobalHeader => continue,
            tar::EntryType::Regular => {}
            _ => return Err(format!("'{name}' is neither a file nor a folder")),
        }
        let start = usize::try_from(entry.raw_file_position()).ok();
        let size = usize::try_from(entry.size()).ok();
        let range = start.zip(size).and_then(|(start, size)| Some(start..start.checked_add(size)?));
        let range = range.filter(|range| range.end <= archive.len());
        let range = range.ok_or_else(|| format!("it ends inside '{name}'"))?;
        if files.insert(name.clone(), archive.slice(range)).is_some() {
            return Err(format!("it holds '{name}' twice"));
        }
    }
    Ok(files)
}

/// A path below the archive's root with `/` between folders, `None` when it leads elsewhere.
fn normalise(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str()?),
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

fn only_model(metadata: &serde_json::Value) -> Result<String, Diagnostic> {
    let modules = metadata["modules"].as_object().ok_or_else(|| {
        let message = "the archive isn't of version 7 of the Model Library Format, the only one that mlc reads";
        Diagnostic::error(Code::RelatedFormat, Location::default(), message)
    })?;
    let names: Vec<&String> = modules.keys().collect();
    match names.as_slice() {
        [name] if is_identifier(name) => Ok((*name).clone()),
        [name] => Err(damaged(format!("the model's name '{name}' isn't a C identifier"))),
        _ => {
            let message = format!("the archive holds {} models, one is expected", names.len());
            Err(Diagnostic::error(Code::RelatedFormat, Location::default(), message))
        }
    }
}

fn port(description: PortDescription) -> Result<Port, String> {
    let PortDescription { dtype, field, name, shape } = description;
    let dtype = DType::parse(&dtype).ok_or_else(|| format!("'{name}' has the unknown data type '{dtype}'"))?;
    if !is_identifier(&field) {
        return Err(format!("the field '{field}' isn't a C identifier"));
    }
    let ty = TensorType::new(dtype, shape);
    ty.checked_bytes().ok_or_else(|| format!("'{name}' is too large"))?;
    Ok(Port { name, field, ty })
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{"modules": {"tiny": {}}, "version": 7}"#;
    const DESCRIPTION: &str = r#"{"inputs": [{"dtype": "f32", "field": "x", "name": "x", "shape": [2]}], "outputs": [],
        "target": "generic", "kernels": []}"#;

    fn archive(entries: &[(&str, &str)]) -> Bytes {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, text) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(text.len() as u64);
            header.set_cksum();
            builder.append(&header, text.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap().into()
    }

    #[test]
    fn our_archives_are_read_back() {
        let bytes = archive(&[
            ("./metadata.json", METADATA),
            ("./src/tiny.json", DESCRIPTION),
            ("./codegen/host/src/tiny_lib1.c", "1"),
            ("./codegen/host/src/tiny_lib0.c", "0"),
        ]);
        let bundle = Bundle::parse(&bytes).unwrap();
        assert_eq!((bundle.model_name.as_str(), bundle.target.as_str()), ("tiny", "generic"));
        assert_eq!(bundle.inputs[0].ty, TensorType::new(DType::F32, [2]));
        assert_eq!(bundle.sources(), ["codegen/host/src/tiny_lib0.c", "codegen/host/src/tiny_lib1.c"]);
        let folder = tempfile::tempdir().unwrap();
        bundle.unpack(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("codegen/host/src/tiny_lib1.c")).unwrap(), "1");
    }

    #[test]
    fn dangerous_and_damaged_archives_are_refused() {
        let good = [("./metadata.json", METADATA), ("./src/tiny.json", DESCRIPTION)];
        for (entries, message) in [
            (&[("../evil", "x")][..], "leads out"),
            (&[("/etc/evil", "x")], "leads out"),
            (&[("a/../../evil", "x")], "leads out"),
            (&[("./a", "x"), ("a", "x")], "twice"),
            (&[("a", "x")], "no 'metadata.json'"),
            (&[("metadata.json", "{")], "metadata.json"),
            (&[("metadata.json", "{\"version\": 5}")], "version 7"),
            (&[("metadata.json", "{\"modules\": {\"a\": {}, \"b\": {}}}")], "2 models"),
            (&[("metadata.json", "{\"modules\": {\"a;system()\": {}}}")], "isn't a C identifier"),
            (&good[..1], "wasn't made by mlc"),
            (&[good[0], ("src/tiny.json", "{}")], "missing field"),
            (
                &[good[0], ("src/tiny.json", &DESCRIPTION.replace("\"x\", \"name\"", "\"x;\", \"name\""))],
                "C identifier",
            ),
            (&[good[0], ("src/tiny.json", &DESCRIPTION.replace("[2]", "[9999999999999]"))], "too large"),
        ] {
            let error = Bundle::parse(&archive(entries)).unwrap_err();
            assert!(error.message.contains(message), "{error}");
        }
        let mut cut = archive(&good).to_vec();
        cut.truncate(600);
        assert!(Bundle::parse(&cut.into()).is_err());
    }

    #[test]
    fn damage_anywhere_does_no_harm() {
        let good = archive(&[("./metadata.json", METADATA), ("./src/tiny.json", DESCRIPTION)]);
        let mut generator = mlc_ir::Generator::new(1);
        let mut refused = 0;
        for _ in 0..2000 {
            let mut bytes = good.to_vec();
            for _ in 0..generator.range(1, 4) {
                let at = generator.range(0, bytes.len() - 1);
                bytes[at] = generator.bits() as u8;
            }
            bytes.truncate(generator.range(0, 2 * bytes.len()));
            refused += usize::from(Bundle::parse(&bytes.into()).is_err());
        }
        assert!(refused > 0);
    }

    #[test]
    fn links_are_refused() {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "link", "/etc/passwd").unwrap();
        let error = Bundle::parse(&builder.into_inner().unwrap().into()).unwrap_err();
        assert!(error.message.contains("neither a file nor a folder"), "{error}");
    }
}
