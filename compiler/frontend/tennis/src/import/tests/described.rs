//! Operators that the user describes.

use super::*;
use mlc_descriptions::Library;
use mlc_import::CustomOperators;

/// An operator that cuts a list in two, at an attribute.
const PARTS: &str = r#"{"optype": "parts_cpu", "author": "a", "arch": "cpu",
    "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU", "ndim": 1}],
    "tensors_out": [
        {"arg_name": "head", "mtype": "LN_MEM_CPU", "owner": "src", "ndim": 1, "dims": ["at"], "dtype": "src->dtype"},
        {"arg_name": "tail", "mtype": "LN_MEM_CPU", "owner": "src", "ndim": 1, "dims": ["src->len - at"], "dtype": "src->dtype"}],
    "params": [{"arg_name": "at", "ptype": "LN_PARAM_NUMBER", "realtype": "int", "ge": 1, "lt": "src->len"}],
    "calc_offset": "return src_entry->offset + (te == tail_entry ? at * tl_size_of(src->dtype) : 0);"}"#;

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
