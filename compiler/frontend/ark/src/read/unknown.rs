//! Keys that the format doesn't have: they are passed over, with a warning.

use super::faults::Faults;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_json::{Json, shortened};

/// Warns of an object's keys that aren't among the known ones.
pub(super) fn warn(json: &Json, known: &[&str], faults: &mut Faults) {
    for key in json.keys().filter(|key| !known.contains(key)) {
        let location = Location { json_path: Some(json.path()), ..Location::default() };
        faults.push(finding(key, location));
    }
}

/// The warning about a key.
pub(super) fn finding(key: &str, location: Location) -> Diagnostic {
    Diagnostic::warning(Code::Unused, location, format!("the key {:?} isn't known, and passed over", shortened(key)))
}
