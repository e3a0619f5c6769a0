//! A conformance case: a folder with a model, its inputs, its golden outputs and `case.json`, which describes them.

use crate::array;
use crate::compare::Tolerance;
use mlc_import::Weight;
use mlc_ir::{Attribute, Tensor};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What must happen to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// It compiles and computes the golden outputs.
    Accept,
    /// It is refused.
    Error,
    /// It is refused, or compiles with a warning.
    ErrorOrWarn,
    /// Anything but a crash.
    #[serde(alias = "ok-or-error")]
    NoCrash,
}

#[derive(Debug, Deserialize)]
struct ArrayFile {
    file: String,
    #[serde(alias = "name")]
    operand: String,
    #[serde(rename = "type", default)]
    dtype: String,
}

/// What a folder of files without folders of their own says about them, in one of two forms.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Manifest {
    Described { files: BTreeMap<String, ManifestEntry> },
    Plain(BTreeMap<String, ManifestEntry>),
}

#[derive(Debug, Deserialize)]
struct ManifestEntry {
    expect: Expectation,
}

#[derive(Debug, Deserialize)]
struct CaseFile {
    format: String,
    #[serde(default)]
    ops: Vec<String>,
    #[serde(default)]
    rtol: Option<f64>,
    #[serde(default)]
    atol: Option<f64>,
    #[serde(default)]
    max_int_diff: Option<f64>,
    #[serde(default)]
    inputs: Vec<ArrayFile>,
    #[serde(default)]
    outputs: Vec<ArrayFile>,
    #[serde(default)]
    input_names: Vec<String>,
    #[serde(default)]
    output_names: Vec<String>,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    expect: Option<Expectation>,
    #[serde(default)]
    weights: Option<String>,
    #[serde(default)]
    mentions: Vec<String>,
}

/// The arrays of a case whose model file doesn't say what goes into it and comes out of it.
#[derive(Debug, Deserialize)]
struct PortsFile {
    inputs: Vec<PortFile>,
    outputs: Vec<PortFile>,
}

#[derive(Debug, Deserialize)]
struct PortFile {
    name: String,
    #[serde(default)]
    role: String,
    file: String,
    encoding: String,
}

/// A named array of a case.
#[derive(Debug, Clone)]
pub struct NamedTensor {
    /// The name of the operand in the model.
    pub name: String,
    /// Its value.
    pub value: Tensor,
}

impl NamedTensor {
    /// The tensor as a weight that a user gives.
    pub fn weight(&self) -> Weight {
        Weight { value: Attribute::from_tensor(&self.value), has_shape: true }
    }
}

/// A conformance case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Name of the folder.
    pub name: String,
    /// Format of the model.
    pub format: String,
    /// The file that the compiler is given.
    pub model: PathBuf,
    /// Operators of the model in the format's words, without inputs, outputs and constants.
    pub operators: Vec<String>,
    /// Inputs in order.
    pub inputs: Vec<NamedTensor>,
    /// Weights that aren't in the model's file.
    pub weights: Vec<NamedTensor>,
    /// A file of weights by their names in the model.
    pub weights_file: Option<PathBuf>,
    /// What the refusal must say.
    pub mentions: Vec<String>,
    /// Golden outputs in order.
    pub outputs: Vec<NamedTensor>,
    /// How far the outputs may be from the golden ones.
    pub tolerance: Tolerance,
    /// How far whole numbers may be from the golden ones, where the case says so.
    pub whole_tolerance: Option<Tolerance>,
    /// Whether the model leaves dimensions or data types open that the inputs must give.
    pub dynamic: bool,
    /// Whether it is a whole network.
    pub network: bool,
    /// What must happen.
    pub expectation: Expectation,
}

impl Case {
    /// Reads a case's folder.
    ///
    /// # Errors
    /// A sentence that names the file and what is wrong with it.
    pub fn read(folder: &Path) -> Result<Case, String> {
        Case::read_described(folder, &folder.join("case.json"))
    }

    /// Reads a folder that another file describes, such as that of one of several ranks.
    ///
    /// # Errors
    /// As [`Case::read`].
    pub fn read_described(folder: &Path, path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let file: CaseFile = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let model = model_file(folder, &file.format)?;
        let mut inputs = read_listed(folder, &file.inputs)?;
        let mut outputs = read_listed(folder, &file.outputs)?;
        let mut weights = Vec::new();
        if file.format == "ark" && file.expect.is_none() {
            let ports = read_ports(folder)?;
            (inputs, weights, outputs) = (ports.inputs, ports.weights, ports.outputs);
        } else if inputs.is_empty() && outputs.is_empty() {
            let names = if file.format == "pnnx" { pnnx_inputs(&model) } else { file.input_names };
            inputs = read_numbered(folder, "input", &names)?;
            outputs = read_numbered(folder, "output", &file.output_names)?;
        }
        let glue = ["pnnx.Input", "pnnx.Output", "pnnx.Attribute"];
        let default_tolerance = if file.expect.is_some() { 1e-4 } else { 0.0 };
        Ok(Case {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            operators: file.ops.into_iter().filter(|operator| !glue.contains(&operator.as_str())).collect(),
            tolerance: Tolerance {
                absolute: file.atol.unwrap_or(default_tolerance),
                relative: file.rtol.unwrap_or(default_tolerance),
            },
            whole_tolerance: file.max_int_diff.map(|absolute| Tolerance { absolute, relative: 0.0 }),
            dynamic: file.tag.as_deref() == Some("dynamic-shape")
                || file.format == "tennis"
                || (file.format == "pnnx" && has_open_shapes(&model)),
            network: file.tag.as_deref() == Some("net"),
            expectation: file.expect.unwrap_or(Expectation::Accept),
            format: file.format,
            weights_file: file.weights.map(|name| folder.join(name)),
            mentions: file.mentions,
            model,
            inputs,
            weights,
            outputs,
        })
    }
}

impl Case {
    /// The files that the `manifest.json`, or `index.json`, of a folder lists, none when there is neither. Nothing is known of them but what
    /// must happen.
    ///
    /// # Errors
    /// A sentence that names the file and what is wrong with it.
    pub fn listed(folder: &Path) -> Result<Vec<Case>, String> {
        let paths = ["manifest.json", "index.json"].map(|name| folder.join(name));
        let Some(path) = paths.iter().find(|path| path.is_file()) else { return Ok(Vec::new()) };
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let (Manifest::Described { files } | Manifest::Plain(files)) = manifest;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let format = name.strip_suffix("-malformed").unwrap_or(&name);
        let case = |(name, entry): (String, ManifestEntry)| Case {
            model: folder.join(&name),
            name,
            format: format.to_owned(),
            operators: Vec::new(),
            inputs: Vec::new(),
            weights: Vec::new(),
            weights_file: None,
            mentions: Vec::new(),
            outputs: Vec::new(),
            tolerance: Tolerance { absolute: 0.0, relative: 0.0 },
            whole_tolerance: None,
            dynamic: false,
            network: false,
            expectation: entry.expect,
        };
        Ok(files.into_iter().map(case).collect())
    }

    /// How far a result may be from a golden output.
    pub fn tolerance_of(&self, golden: &Tensor) -> Tolerance {
        let whole = self.whole_tolerance.filter(|_| golden.ty().dtype.is_integer());
        whole.unwrap_or(self.tolerance)
    }

    /// The same case with the ONNX file that lies beside its model, if one does. Its operators aren't known.
    pub fn as_onnx(&self) -> Option<Case> {
        let model = self.model.with_file_name("model.onnx");
        let known = self.format != "onnx" && model.is_file();
        let (operators, weights) = (Vec::new(), Vec::new());
        known.then(|| Case { model, format: "onnx".into(), operators, weights, dynamic: false, ..self.clone() })
    }

    /// The same case with the text beside its model that stands for the same model, if one does.
    pub fn as_text(&self) -> Option<Case> {
        let model = self.model.with_extension("il");
        let known = self.format == "lightnet" && model != self.model && model.is_file();
        known.then(|| Case { name: format!("{} (model.il)", self.name), model, ..self.clone() })
    }
}

fn model_file(folder: &Path, format: &str) -> Result<PathBuf, String> {
    let name = match format {
        "lightnet" if !folder.join("model.json").is_file() => "model.il",
        "pnnx" => "model.pnnx.param",
        "relay" => "model.relay",
        "onnx" => "model.onnx",
        "tflite" => "model.tflite",
        "tennis" => "model.tsm",
        _ => "model.json",
    };
    let path = folder.join(name);
    if path.is_file() { Ok(path) } else { Err(format!("{}: there is no {name}", folder.display())) }
}

fn read_listed(folder: &Path, files: &[ArrayFile]) -> Result<Vec<NamedTensor>, String> {
    let read = |file: &ArrayFile| {
        let value = array::read(&folder.join(&file.file), file.dtype == "bf16")?;
        Ok(NamedTensor { name: file.operand.clone(), value })
    };
    files.iter().map(read).collect()
}

struct Ports {
    inputs: Vec<NamedTensor>,
    weights: Vec<NamedTensor>,
    outputs: Vec<NamedTensor>,
}

/// The inputs, weights and outputs that `tensors.json` lists.
fn read_ports(folder: &Path) -> Result<Ports, String> {
    let path = folder.join("tensors.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let ports: PortsFile = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let read = |port: &PortFile| {
        let value = array::read(&folder.join(&port.file), port.encoding == "bf16-bits")?;
        Ok(NamedTensor { name: port.name.clone(), value })
    };
    let read = |ports: &mut dyn Iterator<Item = &PortFile>| ports.map(read).collect::<Result<Vec<_>, String>>();
    let is_weight = |port: &&PortFile| port.role == "weight";
    Ok(Ports {
        inputs: read(&mut ports.inputs.iter().filter(|port| !is_weight(port)))?,
        weights: read(&mut ports.inputs.iter().filter(is_weight))?,
        outputs: read(&mut ports.outputs.iter())?,
    })
}

/// Reads `<stem>_0.npy`, `<stem>_1.npy`, …, as many as there are.
fn read_numbered(folder: &Path, stem: &str, names: &[String]) -> Result<Vec<NamedTensor>, String> {
    let mut tensors = Vec::new();
    loop {
        let number = tensors.len();
        let path = folder.join(format!("{stem}_{number}.npy"));
        if !path.is_file() {
            return Ok(tensors);
        }
        let name = names.get(number).cloned().unwrap_or_else(|| number.to_string());
        tensors.push(NamedTensor { name, value: array::read(&path, false)? });
    }
}

/// Operands that the input operators of a PNNX file define, for cases whose description doesn't name them.
fn pnnx_inputs(model: &Path) -> Vec<String> {
    let text = std::fs::read(model).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|words| words.first() == Some(&"pnnx.Input")).filter_map(|w| w.get(4).map(|&w| w.to_owned())).collect()
}

/// Whether a PNNX file has an input without a shape, or with an open dimension.
fn has_open_shapes(model: &Path) -> bool {
    let text = std::fs::read(model).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut inputs = text.lines().filter(|line| line.trim_start().starts_with("pnnx.Input"));
    inputs.any(|line| !line.contains('#') || line.contains('?'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn a_case_of_the_repository_is_read() {
        let case = Case::read(&paths::data().join("pnnx/op_bmm")).unwrap();
        assert_eq!((case.name.as_str(), case.format.as_str()), ("op_bmm", "pnnx"));
        assert_eq!(case.operators, ["torch.bmm"]);
        assert_eq!((case.inputs.len(), case.outputs.len()), (2, 1));
        assert_eq!(case.expectation, Expectation::Accept);
        assert!(!case.dynamic);
    }

    #[test]
    fn inputs_of_an_undescribed_case_are_named_by_the_model() {
        let case = Case::read(&paths::data().join("pnnx-malformed/ok_no_shapes")).unwrap();
        assert!(case.dynamic);
        assert_eq!((case.inputs.len(), case.outputs.len()), (1, 1));
    }
}
