//! Operators that the user describes.

use super::*;
use mlc_descriptions::Library;
use mlc_import::CustomOperators;

/// An operator that cuts a list in two, at an attribute.
const PARTS: &str = include_str!("../../../../import/samples/parts.json");

fn described() -> ImportOptions {
    let library = Library::read(&[("parts", PARTS.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    ImportOptions { custom: Some(CustomOperators::new(library).into()), ..ImportOptions::default() }
}

#[test]
fn results_of_described_operators_are_packed() {
    let (model, fed) = model("parts", &[("at", int(2))], &[Fed(counted(&[5]))]);
    let imported = import(&model, &described()).unwrap_or_else(|errors| panic!("{errors:?}"));
    let found = evaluate(&imported.graph, &fed).unwrap();
    check_all(&found, &[floats(&[2], &[0.0, 1.0]), floats(&[3], &[2.0, 3.0, 4.0])]);
}
