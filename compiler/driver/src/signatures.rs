//! What files of other programs look like: enough of them to name the format, and nothing of what is in them.

use safetensors::SafeTensors;
use std::io::Cursor;

/// Start of an HDF5 file.
pub(crate) const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Start of what `torch.save` wrote before it made zip archives: a pickled number.
pub(crate) const TORCH_PICKLE: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

/// What a zip archive is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZipContents {
    /// TorchScript: code and weights.
    TorchScript,
    /// A program of `torch.export`.
    TorchExport,
    /// A pickled module, or weights, of PyTorch.
    TorchPickle,
    /// A Keras model.
    Keras,
}

/// What a zip archive is of, by the names of its files.
pub(crate) fn zip_contents(bytes: &[u8]) -> Option<ZipContents> {
    if !bytes.starts_with(b"PK\x03\x04") {
        return None;
    }
    let archive = zip::ZipArchive::new(Cursor::new(bytes)).ok()?;
    let has = |is: &dyn Fn(&str) -> bool| archive.file_names().filter_map(Result::ok).any(|name| is(&name));
    if has(&|name| name == "constants.pkl" || name.ends_with("/constants.pkl") || name.contains("/code/")) {
        Some(ZipContents::TorchScript)
    } else if has(&|name| name.ends_with("/archive_format")) && has(&|name| name.ends_with(".json")) {
        Some(ZipContents::TorchExport)
    } else if has(&|name| name == "data.pkl" || name.ends_with("/data.pkl")) {
        Some(ZipContents::TorchPickle)
    } else if has(&|name| name == "model.weights.h5") {
        Some(ZipContents::Keras)
    } else {
        None
    }
}

/// What a JSON text is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonContents {
    /// A model of ARK, or a plan for one.
    Ark,
    /// A network of LightNet.
    Lightnet,
    /// The graph of TVM's graph executor.
    ExecutorGraph,
    /// A module of Relay, as TVM saves its nodes.
    RelayNodes,
    /// The metadata of a Model Library Format archive.
    ArchiveMetadata,
}

/// What a JSON text is of, by the keys of its outermost object. The text may be damaged behind them.
pub(crate) fn json_contents(text: &[u8]) -> Option<JsonContents> {
    /// More keys than any such object has.
    const MOST: usize = 100;
    let keys: Vec<&[u8]> = outermost_keys(text).take(MOST).collect();
    let has = |key: &str| keys.contains(&key.as_bytes());
    // The nodes alone, which are a list, are told from other lists by what each of them has.
    let has_nodes =
        text.first() == Some(&b'[') && text.windows(17).take(MOST).any(|window| window == b"\"ProducerNodeIds\"");
    if has_nodes || has("Nodes") || has("TaskInfos") || (has("Rank") && has("WorldSize")) {
        Some(JsonContents::Ark)
    } else if has("nodes") && has("arg_nodes") {
        Some(JsonContents::ExecutorGraph)
    } else if has("nodes") && has("root") {
        Some(JsonContents::RelayNodes)
    } else if has("version") && (has("modules") || has("model_name")) {
        Some(JsonContents::ArchiveMetadata)
    } else if has("ops") {
        Some(JsonContents::Lightnet)
    } else {
        None
    }
}

/// Whether a text looks like one of LightNet's intermediate language: behind comments and lines for the preprocessor, a name with an
/// opening parenthesis, and somewhere the bar that no other such text has.
pub(crate) fn is_lightnet_text(text: &[u8]) -> bool {
    let Some(mut rest) = std::str::from_utf8(text).ok() else { return false };
    loop {
        rest = rest.trim_start();
        let end = if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n')
        } else if rest.starts_with('#') {
            // A line that ends in a backslash goes on.
            let mut ends = rest.match_indices('\n').map(|(at, _)| at);
            ends.find(|&at| !rest[..at].trim_end_matches('\r').ends_with('\\'))
        } else {
            let name = rest.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
            let is_name = name.len() < rest.len() && !rest.starts_with(|letter: char| letter.is_ascii_digit());
            return is_name && name.trim_start().starts_with('(') && text.contains(&b'|');
        };
        let Some(end) = end else { return false };
        rest = &rest[end..];
    }
}

/// The keys of the outermost object of a JSON text, without their escapes undone.
fn outermost_keys(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut depth = 0_usize;
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = text.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let start = at;
                    while let Some(&byte) = text.get(at).filter(|&&byte| byte != b'"') {
                        at += if byte == b'\\' { 2 } else { 1 };
                    }
                    let end = at.min(text.len());
                    at = end + 1;
                    let behind = text.get(at..).unwrap_or_default().trim_ascii_start();
                    if depth == 1 && behind.first() == Some(&b':') {
                        return Some(&text[start..end]);
                    }
                }
                _ => {}
            }
        }
        None
    })
}

/// Whether the bytes are a safetensors file.
pub(crate) fn is_safetensors(bytes: &[u8]) -> bool {
    bytes.get(8) == Some(&b'{') && SafeTensors::read_metadata(bytes).is_ok()
}

/// A field of a protobuf message.
pub(crate) struct Field<'a> {
    /// Its number.
    pub number: u64,
    /// What it holds.
    pub value: Wire<'a>,
}

/// A field's value; fixed numbers, which no message that is looked at has, are left out.
pub(crate) enum Wire<'a> {
    /// A number.
    Varint(u64),
    /// A string or a message: its length, and its bytes as far as they are there.
    Bytes(u64, &'a [u8]),
}

/// The next field of a message, and what is behind it.
pub(crate) fn field(bytes: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (key, rest) = varint(bytes)?;
    let (value, after) = match key & 7 {
        0 => varint(rest).map(|(value, after)| (Wire::Varint(value), after))?,
        2 => {
            let (length, rest) = varint(rest)?;
            let end = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
            (Wire::Bytes(length, &rest[..end]), &rest[end..])
        }
        _ => return None,
    };
    Some((Field { number: key >> 3, value }, after))
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

/// Whether the bytes look like a protobuf `ModelProto` of ONNX: from the start, fields that it has, with the wire types they have,
/// as far as the graph.
pub(crate) fn is_onnx(mut bytes: &[u8]) -> bool {
    /// More fields than any model has before its graph.
    const MOST: usize = 1000;
    for _ in 0..MOST {
        let Some((Field { number, value }, after)) = field(bytes) else { return false };
        match (number, value) {
            // ir_version, model_version
            (1 | 5, Wire::Varint(_)) => {}
            // The graph itself: large, so that its end isn't looked at.
            (7, Wire::Bytes(length, found)) => return length == found.len() as u64,
            // producer_name, producer_version, domain, doc_string, opset_import, metadata_props, training_info, functions
            (2 | 3 | 4 | 6 | 8 | 14 | 20 | 25, Wire::Bytes(length, found)) if length == found.len() as u64 => {}
            _ => return false,
        }
        bytes = after;
    }
    false
}

/// Whether the bytes look like a `SavedModel` of TensorFlow: the version of its schema, and graphs with what is said of them.
pub(crate) fn is_saved_model(bytes: &[u8]) -> bool {
    let Some((Field { number: 1, value: Wire::Varint(1) }, rest)) = field(bytes) else { return false };
    let Some((Field { number: 2, value: Wire::Bytes(_, graph) }, _)) = field(rest) else { return false };
    matches!(field(graph), Some((Field { number: 1 | 2, value: Wire::Bytes(..) }, _)))
}

/// Whether the bytes look like a `GraphDef` of TensorFlow: a node with a name and the name of an operator, which is a word with a
/// capital letter.
pub(crate) fn is_graph_def(bytes: &[u8]) -> bool {
    let Some((Field { number: 1, value: Wire::Bytes(_, node) }, _)) = field(bytes) else { return false };
    let Some((Field { number: 1, value: Wire::Bytes(..) }, rest)) = field(node) else { return false };
    let Some((Field { number: 2, value: Wire::Bytes(_, operator) }, _)) = field(rest) else { return false };
    operator.first().is_some_and(|first| first.is_ascii_uppercase() || *first == b'_')
        && operator.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn zipped(names: &[&str]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in names {
            let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            archive.start_file(*name, options).unwrap();
            archive.write_all(b"x").unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn zip_archives_are_told_apart_by_their_files() {
        for (names, expected) in [
            (&["net/data.pkl", "net/code/__torch__.py", "net/constants.pkl"][..], Some(ZipContents::TorchScript)),
            (&["net/data.pkl", "net/data/0", "net/version"], Some(ZipContents::TorchPickle)),
            (&["net/archive_format", "net/models/model.json"], Some(ZipContents::TorchExport)),
            (&["metadata.json", "config.json", "model.weights.h5"], Some(ZipContents::Keras)),
            (&["conv.weight", "conv.bias"], None),
        ] {
            assert_eq!(zip_contents(&zipped(names)), expected, "{names:?}");
        }
        assert_eq!(zip_contents(b"PK\x03\x04 and nothing else"), None);
    }

    #[test]
    fn json_texts_are_told_apart_by_their_outermost_keys() {
        for (text, expected) in [
            (r#"{"Rank": 0, "WorldSize": 1, "Nodes": []}"#, Some(JsonContents::Ark)),
            (r#"{ "Nodes" : [{"Id": 0,"#, Some(JsonContents::Ark)),
            (r#"{"Rank": 0, "WorldSize": 1}"#, Some(JsonContents::Ark)),
            (r#"{"Architecture": "ANY", "TaskInfos": []}"#, Some(JsonContents::Ark)),
            (r#"[{"Id": 0, "ProducerNodeIds": []"#, Some(JsonContents::Ark)),
            (r#"[{"Id": 0}]"#, None),
            (r#"{"nodes": [], "arg_nodes": [0], "heads": []}"#, Some(JsonContents::ExecutorGraph)),
            (r#"{"root": 1, "nodes": [{"type_key": ""}], "b64ndarrays": []}"#, Some(JsonContents::RelayNodes)),
            (r#"{"modules": {"default": {}}, "version": 7}"#, Some(JsonContents::ArchiveMetadata)),
            (r#"{"version": 3, "model_name": "a"}"#, Some(JsonContents::ArchiveMetadata)),
            (r#"{"name": "\"ops", "ops": [{"optype": "create"}]}"#, Some(JsonContents::Lightnet)),
            (r#"{"graph": {"Nodes": []}, "text": "Nodes", "list": ["Nodes"]}"#, None),
            (r#"{"Nodes"#, None),
            (r#"{"Nodes\"#, None),
            ("{", None),
        ] {
            assert_eq!(json_contents(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn texts_of_lightnet_are_told_from_others() {
        for (text, expected) in [
            ("create(| dst=a |)", true),
            ("#define A(x) \\\n relu(x || )\n// b\n/* c */ A (src=y)", true),
            ("#version 1\n# 2", false),
            ("main()", false),
            ("(a | b)", false),
            ("2x(a|b)", false),
            ("a = f(b | c)", false),
            ("/* open", false),
            ("", false),
        ] {
            assert_eq!(is_lightnet_text(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn messages_of_tensorflow_and_onnx_are_told_apart() {
        let saved = b"\x08\x01\x12\x04\x0a\x02ab";
        let graph = b"\x0a\x0a\x0a\x01x\x12\x05Const";
        let onnx = b"\x08\x07\x12\x02ab\x3a\x01\x00";
        for (bytes, expected) in [
            (&saved[..], [true, false, false]),
            (graph, [false, true, false]),
            (onnx, [false, false, true]),
            (b"\x08\x07\x12\x7fab", [false; 3]),
            (b"\x0a\x08\x0a\x01x\x12\x03no ", [false; 3]),
            (b"\x0a", [false; 3]),
        ] {
            assert_eq!([is_saved_model(bytes), is_graph_def(bytes), is_onnx(bytes)], expected, "{bytes:?}");
        }
    }
}
