//! [`Evidence`]: which dialect a file is of, by the keys that were seen. A file is of one.

use super::super::model::Dialect;
use super::faults::Faults;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_json::Json;

/// What was seen, each with the first place.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Nodes with `Op`, and with `Ops`.
    one: Option<String>,
    several: Option<String>,
    /// Tensors with `Pads`, and with `PaddedShape`.
    pads: Option<String>,
    padded: Option<String>,
    /// Whether something has a key of the newest dialect.
    newest: bool,
}

impl Evidence {
    /// A node, with one operation or several.
    pub fn node(&mut self, path: &str, several: bool) {
        let seen = if several { &mut self.several } else { &mut self.one };
        seen.get_or_insert_with(|| path.to_owned());
    }

    /// A tensor.
    pub fn tensor(&mut self, json: &Json, pads: bool) {
        let seen = if pads { &mut self.pads } else { &mut self.padded };
        if seen.is_none() {
            *seen = Some(json.path());
        }
        self.newest |= matches!(json.find("Location"), Ok(Some(_)));
    }

    /// A buffer that says whether it is external.
    pub fn buffer(&mut self, says: bool) {
        self.newest |= says;
    }

    /// The dialect.
    pub fn dialect(&self, faults: &mut Faults) -> Dialect {
        let pairs = [(&self.one, "Op", &self.several, "Ops"), (&self.pads, "Pads", &self.padded, "PaddedShape")];
        for (first, first_key, second, second_key) in pairs {
            if let (Some(first), Some(second)) = (first, second) {
                let location = |path: &String| Location { json_path: Some(path.clone()), ..Location::default() };
                let message = format!("the file mixes dialects: {first_key} here, and {second_key} at {second}");
                faults.push(Diagnostic::error(Code::Syntax, location(first), message));
            }
        }
        match (&self.pads, &self.several) {
            (Some(_), _) => Dialect::Seed,
            (None, Some(_)) => Dialect::Model2024a,
            (None, None) if self.newest => Dialect::Model2026,
            (None, None) => Dialect::Model2024b,
        }
    }
}
