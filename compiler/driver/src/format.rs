//! The formats of model files, and how to tell them apart by their first bytes.

use crate::signatures::{self, JsonContents, ZipContents};
use clap::ValueEnum;
use mlc_archive::is_gzip;
use mlc_json::without_comments;
use std::fmt;
use std::path::Path;

/// A format of model files. The ones without a reader are recognised, so that the message can name them, but can't be asked
/// for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// PNNX: a .param text with a .bin archive beside it
    Pnnx,
    /// ONNX (.onnx)
    Onnx,
    /// Relay text (.relay), with its weights in it or in a .params file
    Relay,
    /// TensorFlow Lite (.tflite)
    Tflite,
    /// TenniS (.tsm)
    Tennis,
    /// ARK model JSON (.json), its weights in a file of their own
    Ark,
    /// LightNet: JSON (.json), or a text of its intermediate language (.il, .net)
    Lightnet,
    /// TensorFlow's SavedModel (saved_model.pb)
    #[value(skip)]
    SavedModel,
    /// A graph of TensorFlow (.pb)
    #[value(skip)]
    GraphDef,
    /// Keras: HDF5 (.h5), or a zip archive (.keras)
    #[value(skip)]
    Keras,
    /// TorchScript (.pt)
    #[value(skip)]
    TorchScript,
    /// A program of torch.export (.pt2)
    #[value(skip)]
    TorchExport,
    /// What torch.save has pickled (.pt, .pth)
    #[value(skip)]
    TorchPickle,
    /// Weights alone (.safetensors)
    #[value(skip)]
    Safetensors,
    /// The graph of TVM's graph executor, without the rest of its archive
    #[value(skip)]
    ExecutorGraph,
    /// Relay as JSON
    #[value(skip)]
    RelayNodes,
    /// The metadata of a Model Library Format archive, without the rest of it
    #[value(skip)]
    ArchiveMetadata,
    /// Model Library Format archive (.tar)
    Mlf,
    /// The text of mlc's intermediate representation (.mlc)
    Ir,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Pnnx => "PNNX",
            Format::Onnx => "ONNX",
            Format::Relay => "Relay",
            Format::Tflite => "TensorFlow Lite",
            Format::Tennis => "TenniS",
            Format::Ark => "ARK",
            Format::Lightnet => "LightNet",
            Format::SavedModel => "TensorFlow SavedModel",
            Format::GraphDef => "TensorFlow GraphDef",
            Format::Keras => "Keras",
            Format::TorchScript => "TorchScript",
            Format::TorchExport => "torch.export",
            Format::TorchPickle => "PyTorch (pickled)",
            Format::Safetensors => "safetensors",
            Format::ExecutorGraph => "graph of TVM's graph executor",
            Format::RelayNodes => "Relay as JSON",
            Format::ArchiveMetadata => "metadata of a Model Library Format archive",
            Format::Mlf => "Model Library Format",
            Format::Ir => "intermediate representation",
        })
    }
}

impl Format {
    /// The Cargo feature that a format's reader is behind.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Format::Ark => Some("ark"),
            Format::Lightnet => Some("lightnet"),
            Format::Pnnx => Some("pnnx"),
            Format::Onnx => Some("onnx"),
            Format::Relay => Some("relay"),
            Format::Tennis => Some("tennis"),
            Format::Tflite => Some("tflite"),
            Format::Mlf => Some("mlf"),
            _ => None,
        }
    }

    /// Whether its models convert what inputs are given, or take it as it is.
    pub fn has_open_inputs(self) -> bool {
        self == Format::Tennis
    }

    /// Whether the user can say what an input always is.
    pub fn takes_input_values(self) -> bool {
        matches!(self, Format::Tennis | Format::Onnx)
    }

    /// Whether its files don't say what is input, weight and output.
    pub fn leaves_interface_open(self) -> bool {
        matches!(self, Format::Ark | Format::Lightnet)
    }

    /// How a model of a format without a reader gets into one that has a reader.
    pub fn way_in(self) -> Option<&'static str> {
        Some(match self {
            Format::Pnnx
            | Format::Onnx
            | Format::Relay
            | Format::Tflite
            | Format::Ark
            | Format::Lightnet
            | Format::Tennis
            | Format::Mlf
            | Format::Ir => return None,
            Format::SavedModel => {
                "tf2onnx makes ONNX of it: 'python -m tf2onnx.convert --saved-model FOLDER --output model.onnx', with the folder \
                 that the file is in"
            }
            Format::GraphDef => {
                "tf2onnx makes ONNX of it: 'python -m tf2onnx.convert --graphdef FILE --inputs NAME:0 --outputs NAME:0 --output \
                 model.onnx', with the names of the graph's inputs and outputs"
            }
            Format::Keras => {
                "load it in Python; 'model.export(\"model.onnx\", format=\"onnx\")' of Keras 3 makes ONNX of it, or tf2onnx of what \
                 'model.export(\"folder\")' writes: 'python -m tf2onnx.convert --saved-model folder --output model.onnx'"
            }
            Format::TorchScript => {
                "pnnx makes PNNX of it: 'pnnx FILE inputshape=[1,3,224,224]', with the shapes of the model's inputs"
            }
            Format::TorchExport => {
                "load it in Python with 'torch.export.load'; 'torch.onnx.export(program, f=\"model.onnx\")' makes ONNX of it"
            }
            Format::TorchPickle => {
                "load it into the module in Python; 'torch.onnx.export(module, inputs, \"model.onnx\")' makes ONNX of that, \
                 'pnnx.export(module, \"model.pt\", inputs)' PNNX"
            }
            Format::Safetensors => {
                "the file has weights and no network: load them into the model in Python, and export that, for example with \
                 'torch.onnx.export(module, inputs, \"model.onnx\")'"
            }
            Format::ExecutorGraph | Format::ArchiveMetadata => {
                "the file is a part of a Model Library Format archive: give mlc the whole archive (.tar)"
            }
            Format::RelayNodes => {
                "load it in Python with 'tvm.ir.load_json', and write what 'module.astext()' gives to a .relay file"
            }
        })
    }
}

/// What is at byte 4 of a TenniS module, and at byte 0 of the containers that hold modules.
const TENNIS_CODE: [u8; 4] = [0x29, 0x09, 0x91, 0x19];

/// The format of a file, by its content alone.
pub fn detect(bytes: &[u8]) -> Option<Format> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if text.split(|byte| byte.is_ascii_whitespace()).next() == Some(b"7767517") {
        return Some(Format::Pnnx);
    }
    if is_ir(text) {
        return Some(Format::Ir);
    }
    if is_relay(text) {
        return Some(Format::Relay);
    }
    if bytes.get(4..8) == Some(b"TFL3") {
        return Some(Format::Tflite);
    }
    if bytes.get(4..8) == Some(&TENNIS_CODE) || bytes.starts_with(&TENNIS_CODE) {
        return Some(Format::Tennis);
    }
    // One that is compressed is recognised, so that the message can say so.
    if bytes.get(257..262) == Some(b"ustar") || is_gzip(bytes) {
        return Some(Format::Mlf);
    }
    if matches!(text.first(), Some(b'{' | b'[' | b'/')) {
        // LightNet's files may have comments.
        let json = without_comments(text);
        let json = json.trim_ascii_start();
        if matches!(json.first(), Some(b'{' | b'[')) {
            return detect_json(json);
        }
    }
    if signatures::is_lightnet_text(text) {
        return Some(Format::Lightnet);
    }
    if signatures::is_onnx(bytes) {
        return Some(Format::Onnx);
    }
    detect_foreign(bytes)
}

/// The format of a file of a name, for formats of whose files the content may tell nothing: what is encrypted, or damaged at the
/// start.
pub fn of_name(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?;
    match extension {
        "tsm" | "sta" | "csta" => Some(Format::Tennis),
        "il" => Some(Format::Lightnet),
        _ => None,
    }
}

/// The formats of other frameworks, none of which has a reader.
fn detect_foreign(bytes: &[u8]) -> Option<Format> {
    if let Some(contents) = signatures::zip_contents(bytes) {
        return Some(match contents {
            ZipContents::TorchScript => Format::TorchScript,
            ZipContents::TorchExport => Format::TorchExport,
            ZipContents::TorchPickle => Format::TorchPickle,
            ZipContents::Keras => Format::Keras,
        });
    }
    if bytes.starts_with(signatures::HDF5) {
        Some(Format::Keras)
    } else if bytes.starts_with(signatures::TORCH_PICKLE) {
        Some(Format::TorchPickle)
    } else if signatures::is_safetensors(bytes) {
        Some(Format::Safetensors)
    } else if signatures::is_saved_model(bytes) {
        Some(Format::SavedModel)
    } else if signatures::is_graph_def(bytes) {
        Some(Format::GraphDef)
    } else {
        None
    }
}

/// Whether the first line that isn't empty or a comment is `mlc` and a version.
fn is_ir(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"//")).unwrap_or_default();
    first.strip_prefix(b"mlc ").is_some_and(|version| version.first().is_some_and(u8::is_ascii_digit))
}

/// Whether the text, after comments, starts with a version of Relay or with the definition of a function.
fn is_relay(mut text: &[u8]) -> bool {
    loop {
        let end: &[u8] = match text {
            [b'/', b'/', ..] => b"\n",
            [b'/', b'*', ..] => b"*/",
            _ => return text.starts_with(b"#[version") || text.starts_with(b"def @"),
        };
        let Some(place) = text.windows(end.len()).position(|window| window == end) else { return false };
        text = text[place + end.len()..].trim_ascii_start();
    }
}

fn detect_json(text: &[u8]) -> Option<Format> {
    Some(match signatures::json_contents(text)? {
        JsonContents::Ark => Format::Ark,
        JsonContents::Lightnet => Format::Lightnet,
        JsonContents::ExecutorGraph => Format::ExecutorGraph,
        JsonContents::RelayNodes => Format::RelayNodes,
        JsonContents::ArchiveMetadata => Format::ArchiveMetadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_from_their_content() {
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let mut tennis = vec![0, 0, 0, 0];
        tennis.extend(TENNIS_CODE);
        for (bytes, expected) in [
            (&b"7767517\n4 3\n"[..], Some(Format::Pnnx)),
            (b"\xef\xbb\xbf7767517\r\n4 3\r\n", Some(Format::Pnnx)),
            (b"77675170\n", None),
            (b"\x1c\0\0\0TFL3\0\0", Some(Format::Tflite)),
            (&tennis, Some(Format::Tennis)),
            (&TENNIS_CODE, Some(Format::Tennis)),
            (&tar, Some(Format::Mlf)),
            (b"\x1f\x8b\x08\0", Some(Format::Mlf)),
            (b" {\"Rank\": 0, \"Nodes\": []}", Some(Format::Ark)),
            (b"{\"ops\": [{\"optype\": \"create\"}]}", Some(Format::Lightnet)),
            (b"// a \"net\n/* { */ {\"ops\" /* all */: [{\"optype\": \"create\"}]}", Some(Format::Lightnet)),
            (b"#define N 2\n/* a net */ create(| dst=x | dims=[N]);", Some(Format::Lightnet)),
            (b"// a comment\n\nmlc 1\ngraph @g", Some(Format::Ir)),
            (b"mlc is a compiler", None),
            (b"#[version = \"0.0.5\"]\ndef @main() {}", Some(Format::Relay)),
            (b"// a net\n/* of mine */ def @main(%x: int32) { %x }", Some(Format::Relay)),
            (b"define @main", None),
            (b"{\"name\": 1}", None),
            (b"\x08\x07\x12\x02ab\x3a\x01\x00", Some(Format::Onnx)),
            (b"\x08\x07\x12\x7fab", None),
            (b"\x89HDF\r\n\x1a\n\0", Some(Format::Keras)),
            (signatures::TORCH_PICKLE, Some(Format::TorchPickle)),
            (b"\x08\x01\x12\x04\x0a\x02ab", Some(Format::SavedModel)),
            (b"\x0a\x0a\x0a\x01x\x12\x05Const", Some(Format::GraphDef)),
            (b"\x02\0\0\0\0\0\0\0{}", Some(Format::Safetensors)),
            (b"", None),
            (b"hello", None),
        ] {
            assert_eq!(detect(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
