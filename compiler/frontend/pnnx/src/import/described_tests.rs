//! Operators that the user describes.

use super::tests::{floats, model};
use crate::import;
use mlc_descriptions::Library;
use mlc_import::{CustomOperators, ImportOptions};
use mlc_ir::evaluate;

/// An operator that cuts a list in two, at an attribute.
const PARTS: &str = include_str!("../../../import/samples/parts.json");

fn described() -> ImportOptions {
    let library = Library::read(&[("parts", PARTS.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    ImportOptions { custom: Some(CustomOperators::new(library).into()), ..ImportOptions::default() }
}

/// The two parts of 0, 1, 2, 3, 4 by an operator's line.
fn parts(operator: &str) -> Result<[Vec<f64>; 2], String> {
    let model = model(&["pnnx.Input in 0 1 0 #0=(5)f32", operator, "pnnx.Output a 1 0 1", "pnnx.Output b 1 0 2"]);
    let imported = import(&model, &described()).map_err(|errors| errors[0].message.clone())?;
    let outputs = evaluate(&imported.graph, &[floats(&[5], &[0.0, 1.0, 2.0, 3.0, 4.0])]).unwrap();
    Ok([outputs[0].to_floats(), outputs[1].to_floats()])
}

#[test]
fn namespaces_can_be_left_out_and_operands_be_named() {
    let expected = Ok([vec![0.0, 1.0], vec![2.0, 3.0, 4.0]]);
    assert_eq!(parts("acme::parts cut 1 2 0 1 2 at=2"), expected);
    assert_eq!(parts("parts cut 1 2 0 1 2 at=2 $src=0"), expected);
    let found = parts("parts cut 1 2 0 1 2 at=2 $from=0").unwrap_err();
    assert!(found.contains("it needs a `src` input tensor"), "{found}");
    let found = parts("parts cut 1 2 0 1 2 at=high").unwrap_err();
    assert!(
        found.contains("`at` param's value should be of type LN_PARAM_NUMBER, but gets a LN_PARAM_STRING"),
        "{found}"
    );
}
