use crate::includes::NoIncludes;
use crate::write::{Form, write};
use mlc_ir::{Code, Diagnostic};

fn refusals(text: &str) -> Vec<Diagnostic> {
    super::read(text.as_bytes(), &NoIncludes).map(|_| ()).unwrap_err()
}

/// A model of one operator, with this in the place of its tensors and parameters.
fn with(tensors: &str, parameters: &str) -> String {
    format!(
        r#"{{"ops": [{{"name": "a0", "optype": "a", "tensors_in": [{tensors}], "tensors_out": [], "params": [{parameters}]}}]}}"#
    )
}

#[test]
fn what_is_wrong_is_told_with_the_operator_and_its_path() {
    for (text, path, words) in [
        ("{}", "$", "'ops' is missing"),
        (r#"{"ops": 1}"#, "$.ops", "a list expected"),
        (r#"{"ops": [1]}"#, "$.ops[0]", "an object expected"),
        (r#"{"ops": [{"optype": "a"}]}"#, "$.ops[0]", "'name' is missing"),
        (r#"{"ops": [{"name": "a0"}]}"#, "$.ops[0]", "operator `a0`: the key 'optype' is missing"),
        (
            r#"{"ops": [{"name": "a0", "optype": "a", "tensors_out": [], "params": []}]}"#,
            "$.ops[0]",
            "a `a0`: the key 'tensors_in' is missing",
        ),
        (&with(r#"{"name": "x"}"#, ""), "$.ops[0].tensors_in[0]", "'arg_name' is missing"),
        (
            &with(r#"{"arg_name": "src"}"#, ""),
            "$.ops[0].tensors_in[0]",
            "a `a0`: tensor `src`: the key 'name' is missing",
        ),
        (&with("", r#"{"value": 1}"#), "$.ops[0].params[0]", "'arg_name' is missing"),
        (&with("", r#"{"arg_name": "p"}"#), "$.ops[0].params[0]", "parameter `p`: the key 'value' is missing"),
        (&with("", r#"{"arg_name": "p", "value": {}}"#), "$.ops[0].params[0].value", "it is an object"),
        (&with("", r#"{"arg_name": "p", "value": []}"#), "$.ops[0].params[0].value", "an empty list"),
        (&with("", r#"{"arg_name": "p", "value": [1, true]}"#), "$.ops[0].params[0].value", "element 1 is true"),
        (&with("", r#"{"arg_name": "p", "value": [null]}"#), "$.ops[0].params[0].value", "must hold"),
    ] {
        let found = refusals(text);
        let [finding] = &found[..] else { panic!("{text}: {found:?}") };
        assert_eq!(finding.location.json_path.as_deref(), Some(path), "{text}");
        assert!(finding.message.contains(words), "{text}: {}", finding.message);
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let text = r#"// two operators
        {"ops": [{"name": "a0", "optype": "a", "tensors_in": [{}], "tensors_out": 3, "params": [{"arg_name": "p"}]},
                 {"name": "b0", "optype": "b", "tensors_in": [], "tensors_out": [], "params": []},
                 {"name": "b0", "optype": "b", "tensors_in": [], "tensors_out": [], "params": []}]}"#;
    let codes: Vec<Code> = refusals(text).iter().map(|finding| finding.code).collect();
    let missing = Code::ParameterMissing;
    assert_eq!(codes, [missing, missing, Code::Syntax, missing, Code::DuplicateDefinition]);
}

#[test]
fn damage_is_told_with_line_and_column() {
    let found = refusals("/* a\n */ {\"ops\": [}");
    assert_eq!((found[0].location.line, found[0].location.column), (Some(2), Some(14)));
    assert!(refusals("{\"ops\": [], \"ops\": []}")[0].message.contains("twice"));
    assert!(!refusals("").is_empty());
    let found = super::read(b"{\"ops\"\xff", &NoIncludes).unwrap_err();
    assert_eq!(found[0].location.byte_offset, Some(6));
}

#[test]
fn what_is_written_is_read_back_equal() {
    let values = r#"{"arg_name": "a", "value": null}, {"arg_name": "b", "value": true}, {"arg_name": "c", "value": -0.0},
        {"arg_name": "d", "value": [0.1, 1e300, 5e-324, 3, 9007199254740993, 18446744073709551615]},
        {"arg_name": "e", "value": "a\"\\\nä"}, {"arg_name": "f", "value": ["x", ""]}, {"arg_name": "g", "value": [false]}"#;
    let text = with(r#"{"arg_name": "src", "name": "x y", "dims": [1], "offset_h": 0, "offset_l": 1}"#, values);
    let (model, _) = super::read(text.as_bytes(), &NoIncludes).unwrap();
    assert!(model.is_planned);
    for form in [Form::Pretty, Form::Compact] {
        let mut written = Vec::new();
        write(&model, form, &mut written).unwrap();
        let (again, _) = super::read(&written, &NoIncludes).unwrap();
        assert!(!again.is_planned);
        for (first, second) in model.operators.iter().zip(&again.operators) {
            assert_eq!((&first.name, &first.kind), (&second.name, &second.kind));
            assert_eq!((&first.inputs, &first.outputs), (&second.inputs, &second.outputs));
            assert_eq!(first.parameters, second.parameters);
        }
    }
}
