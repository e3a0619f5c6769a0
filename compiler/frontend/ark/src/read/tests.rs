use super::read;
use crate::{Dialect, Model};
use mlc_ir::{Code, Diagnostic};
use serde_json::{Value, json};

/// A tensor that is all of a buffer of the same number.
fn tensor(id: u64, buffer: u64, shape: &[usize]) -> Value {
    json!({
        "Id": id, "DataType": "FP32", "Shape": shape, "Strides": shape, "Offsets": vec![0; shape.len()], "PaddedShape": shape,
        "Buffer": {"Id": buffer, "Rank": -1, "SendTags": [], "RecvTags": []}
    })
}

/// A model that computes one exponential function.
fn exponential() -> Value {
    let declaration = |id: u64, name: &str, tensor: Value| {
        json!({
            "Id": id, "ProducerNodeIds": [], "ConsumerNodeIds": [2],
            "Op": {
                "Type": "Tensor", "Name": name, "IsVirtual": true, "ReadTensors": [], "WriteTensors": [],
                "ResultTensors": [tensor], "Args": {}
            }
        })
    };
    let (x, y) = (tensor(3, 3, &[2, 9]), tensor(4, 7, &[2, 9]));
    json!({"Rank": 0, "WorldSize": 1, "Nodes": [
        declaration(0, "x", x.clone()),
        declaration(1, "", y.clone()),
        {
            "Id": 2, "ProducerNodeIds": [0, 1], "ConsumerNodeIds": [],
            "Op": {
                "Type": "Exp", "Name": "exp", "IsVirtual": false, "ReadTensors": [x], "WriteTensors": [y],
                "ResultTensors": [tensor(5, 7, &[2, 9])], "Args": {}
            }
        }
    ]})
}

fn read_value(value: &Value) -> Result<Model, Vec<Diagnostic>> {
    read(value.to_string().as_bytes())
}

#[test]
fn tensors_and_buffers_are_held_once() {
    let model = read_value(&exponential()).unwrap();
    assert_eq!(model.tensors.iter().map(|tensor| tensor.id).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(model.buffers.iter().map(|buffer| (buffer.id, buffer.bytes)).collect::<Vec<_>>(), [(3, 72), (7, 72)]);
    let operation = &model.nodes[2].operations[0];
    assert_eq!(operation.reads, model.nodes[0].operations[0].results);
    assert_eq!(operation.location().to_string(), "$.Nodes[2].Op, Exp \"exp\"");
}

#[test]
fn all_mistakes_are_told_at_once_with_their_places() {
    let mut value = exponential();
    value["Nodes"][0]["Op"]["ResultTensors"][0]["DataType"] = "FP8".into();
    value["Nodes"][1]["Op"]["Args"] = json!({"Axis": {"INT": 1.5}});
    value["Nodes"][2]["Op"]["ResultTensors"][0]["Offsets"][1] = 1.into();
    let errors = read_value(&value).unwrap_err();
    let found: Vec<_> = errors.iter().map(|error| (error.code, error.location.to_string())).collect();
    assert_eq!(
        found,
        [
            (Code::VariantUnsupported, "$.Nodes[0].Op.ResultTensors[0].DataType, Tensor \"x\"".to_owned()),
            (Code::Syntax, "$.Nodes[1].Op.Args[\"Axis\"][\"INT\"], Tensor \"\"".into()),
            (Code::ShapeMismatch, "$.Nodes[2].Op.ResultTensors[0], Exp \"exp\"".into()),
        ]
    );
}

/// The codes and paths of the errors about a text.
fn faults(text: &str) -> Vec<(Code, String)> {
    let errors = read(text.as_bytes()).err().unwrap_or_default();
    let errors = errors.into_iter().filter(Diagnostic::is_error);
    errors.map(|error| (error.code, error.location.json_path.unwrap_or_default())).collect()
}

#[test]
fn texts_that_are_not_json_are_refused_with_line_and_column() {
    for (text, place) in [
        ("", "line 1:1"),
        ("{\n \"Rank\": 0,,", "line 2:12"),
        ("[]", "line 1:1"),
        ("{\"Rank\": NaN}", "line 1:10"),
        ("{} {}", "line 1:4"),
        ("{\"a\": 1,\n\"a\": 2}", "line 2:3"),
    ] {
        let errors = read(text.as_bytes()).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.location.to_string()).collect::<Vec<_>>(), [place], "{text}");
    }
    assert_eq!(read(b"{\"\xff\": 1}").unwrap_err()[0].location.byte_offset, Some(2));
}

#[test]
fn keys_are_there_once() {
    let text = exponential().to_string();
    for (key, path) in
        [("\"IsVirtual\":false", "$.Nodes[2].Op"), ("\"Id\":7,", "$.Nodes[2].Op"), ("\"Id\":2,", "$.Nodes[2]")]
    {
        let at = text.rfind(key).unwrap();
        let twice = format!("{}{},{}", &text[..at], key.trim_end_matches(','), &text[at..]);
        assert!(faults(&twice).contains(&(Code::Syntax, path.into())), "{key}: {:?}", faults(&twice));
    }
    let ignored = text.replacen('{', "{\"Comment\": {\"a\": [{\"b\": 1, \"b\": 2}]}, ", 1);
    assert_eq!(faults(&ignored), [(Code::Syntax, "$[\"Comment\"]".into())]);
}

#[test]
fn unknown_keys_are_passed_over_with_one_warning_each() {
    let mut value = exponential();
    value["Comment"] = json!({"any": [1, null]});
    for node in [0, 1] {
        value["Nodes"][node]["Color"] = "red".into();
        value["Nodes"][node]["Op"]["Color"] = "red".into();
    }
    let model = read_value(&value).unwrap();
    let found: Vec<_> = model.warnings.iter().map(|warning| (warning.code, warning.message.as_str())).collect();
    let message = |key: &str| format!("the key {key:?} isn't known, and passed over");
    assert_eq!(found, [(Code::Unused, message("Color").as_str()), (Code::Unused, &message("Comment"))]);
}

#[test]
fn deep_nesting_is_refused_wherever_it_is() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for place in ["/Comment", "/Rank", "/Nodes/2/Op/Args"] {
        let mut value = exponential();
        value["Comment"] = 0.into();
        *value.pointer_mut(place).unwrap() = "deep".into();
        let text = value.to_string().replace("\"deep\"", &deep);
        let errors = read(text.as_bytes()).unwrap_err();
        let first = text.find("[[[").unwrap();
        assert_eq!(errors.len(), 1, "{place}: {errors:?}");
        let found = errors[0].location.byte_offset.unwrap() as usize;
        assert!((first..first + 70).contains(&found), "{place}: {errors:?}");
    }
    let mut value = exponential();
    value["Nodes"][2]["Op"]["Name"] = "[[\\\"[".repeat(100).into();
    assert!(read_value(&value).is_ok(), "a name isn't nested");
}

#[test]
fn nodes_hang_together() {
    type Edit = fn(&mut Value);
    let edits: [(Edit, Code, &str); 8] = [
        (|nodes| nodes[2]["Id"] = 0.into(), Code::DuplicateDefinition, "$.Nodes[2].Id"),
        (|nodes| nodes[2]["ProducerNodeIds"] = json!([0]), Code::CountMismatch, "$.Nodes[1].ConsumerNodeIds[0]"),
        (|nodes| nodes[1]["ConsumerNodeIds"] = json!([]), Code::CountMismatch, "$.Nodes[2].ProducerNodeIds[1]"),
        (|nodes| nodes[2]["ProducerNodeIds"] = json!([0, 1, 9]), Code::UndefinedValue, "$.Nodes[2].ProducerNodeIds[2]"),
        (
            |nodes| nodes[2]["ProducerNodeIds"] = json!([0, 1, 1]),
            Code::DuplicateDefinition,
            "$.Nodes[2].ProducerNodeIds",
        ),
        (|nodes| nodes[2]["ProducerNodeIds"] = json!([0, 1, 2]), Code::UndefinedValue, "$.Nodes[2].ProducerNodeIds[2]"),
        (|nodes| nodes.as_array_mut().unwrap().swap(1, 2), Code::UndefinedValue, "$.Nodes[1].ProducerNodeIds[1]"),
        (
            |nodes| nodes[1]["Op"]["ResultTensors"][0]["Id"] = 5.into(),
            Code::DuplicateDefinition,
            "$.Nodes[2].Op.ResultTensors[0]",
        ),
    ];
    for (edit, code, path) in edits {
        let mut value = exponential();
        edit(&mut value["Nodes"]);
        assert_eq!(faults(&value.to_string()), [(code, path.into())]);
    }
}

#[test]
fn dialects_are_told_by_their_keys_and_not_mixed() {
    let base = exponential();
    assert_eq!(read_value(&base).unwrap().dialect, Dialect::Model2024b);
    let mut several = base.clone();
    let mut seed = base.clone();
    let mut newest = base.clone();
    for node in 0..3 {
        several["Nodes"][node]["Ops"] = json!([several["Nodes"][node]["Op"].take()]);
        several["Nodes"][node].as_object_mut().unwrap().remove("Op");
        for tensors in ["ReadTensors", "WriteTensors", "ResultTensors"] {
            for tensor in newest["Nodes"][node]["Op"][tensors].as_array_mut().unwrap() {
                tensor["Buffer"]["IsExternal"] = false.into();
            }
            for tensor in seed["Nodes"][node]["Op"][tensors].as_array_mut().unwrap() {
                tensor.as_object_mut().unwrap().remove("PaddedShape");
                tensor["Pads"] = json!([1, 3]);
            }
        }
    }
    assert_eq!(read_value(&several).unwrap().dialect, Dialect::Model2024a);
    assert_eq!(read_value(&newest).unwrap().dialect, Dialect::Model2026);
    for key in ["Rank", "WorldSize"] {
        assert_eq!(read_value(&seed).unwrap().dialect, Dialect::Seed);
        seed.as_object_mut().unwrap().remove(key);
        let mut base = base.clone();
        base.as_object_mut().unwrap().remove(key);
        assert_eq!(faults(&base.to_string()), [(Code::ParameterMissing, "$".into())]);
    }
    assert_eq!(read_value(&seed).unwrap().tensors, read_value(&base).unwrap().tensors);
    seed["Nodes"][0]["Op"]["ResultTensors"][0]["Pads"] = json!([1, 2]);
    assert!(faults(&seed.to_string()).contains(&(Code::ShapeMismatch, "$.Nodes[0].Op.ResultTensors[0]".into())));
    several["Nodes"][1]["Op"] = several["Nodes"][1]["Ops"][0].take();
    assert_eq!(faults(&several.to_string()), [(Code::Syntax, "$.Nodes[1]".into())], "both");
    several["Nodes"][1].as_object_mut().unwrap().remove("Ops");
    assert_eq!(faults(&several.to_string()), [(Code::Syntax, "$.Nodes[1]".into())], "mixed");
    several["Nodes"][0]["Ops"] = json!([]);
    assert!(faults(&several.to_string()).contains(&(Code::Syntax, "$.Nodes[0]".into())), "none");
}

#[test]
fn windows_lie_inside_of_their_storage() {
    for (field, extents, code, place) in [
        ("Shape", json!([2, 0]), Code::ShapeMismatch, ""),
        ("Shape", json!([3, 9]), Code::ShapeMismatch, ""),
        ("Shape", json!([]), Code::VariantUnsupported, ".Shape"),
        ("Shape", json!([2, -9]), Code::NumberOutOfRange, ".Shape[1]"),
        ("Shape", json!([2, 9.0]), Code::Syntax, ".Shape[1]"),
        ("Strides", json!([2, 8]), Code::ShapeMismatch, ""),
        ("Strides", json!([2, 9, 1]), Code::ShapeMismatch, ""),
        ("Strides", json!([2, u64::MAX]), Code::NumberOutOfRange, ""),
        ("Strides", json!([4294967296_u64, 4294967296_u64]), Code::NumberOutOfRange, ""),
        ("Offsets", json!([0, 1]), Code::ShapeMismatch, ""),
        ("Offsets", json!([u64::MAX, 0]), Code::ShapeMismatch, ""),
        ("PaddedShape", json!([2, 10]), Code::ShapeMismatch, ""),
        ("DataType", json!("NONE"), Code::VariantUnsupported, ".DataType"),
    ] {
        let mut value = exponential();
        value["Nodes"][0]["Op"]["ResultTensors"][0][field] = extents.clone();
        let path = format!("$.Nodes[0].Op.ResultTensors[0]{place}");
        assert_eq!(faults(&value.to_string()), [(code, path)], "{field} {extents}");
    }
}

#[test]
fn mistakes_are_bounded() {
    let node = json!({"Id": 0, "ProducerNodeIds": [], "ConsumerNodeIds": []});
    let value = json!({"Rank": 0, "WorldSize": 1, "Nodes": vec![node; 10_000]});
    let errors = read_value(&value).unwrap_err();
    assert_eq!(errors.len(), 100);
    assert_eq!(errors[99].notes, ["the rest of the file wasn't looked at"]);
}

/// A plan of one task.
fn plan() -> Value {
    let mut operation = exponential()["Nodes"][2]["Op"].take();
    operation["Config"] = json!({"NumWarps": 1, "NumTasks": 4});
    let group =
        |id: u32, range: Value| json!({"ResourceGroups": [{"TaskGroups": [{"TaskId": id, "TaskRange": range}]}]});
    json!({
        "Rank": 0, "WorldSize": 1, "Architecture": "ANY", "NumProcessors": 2, "NumWarpsPerProcessor": 1,
        "TaskInfos": [{"Id": 7, "NumWarps": 1, "SramBytes": 0, "Ops": [operation]}],
        "ProcessorGroups": [group(7, json!([2, 4])), group(7, json!([0, 2]))]
    })
}

#[test]
fn plans_are_read_as_compressed_models() {
    let model = read_value(&plan()).unwrap();
    assert_eq!((model.dialect, model.nodes.len(), model.nodes[0].id), (Dialect::Plan, 1, 7));
    assert_eq!(model.nodes[0].operations[0].location().to_string(), "$.TaskInfos[0].Ops[0], Exp \"exp\"");
    assert_eq!(model.warnings, []);
}

#[test]
fn plans_run_every_piece_of_every_task() {
    type Edit = fn(&mut Value);
    let edits: [(Edit, Code, &str); 7] = [
        (|plan| plan["ProcessorGroups"] = json!([]), Code::CountMismatch, "$.ProcessorGroups"),
        (|plan| plan["ProcessorGroups"].as_array_mut().unwrap().truncate(1), Code::CountMismatch, "$.ProcessorGroups"),
        (
            |plan| plan["ProcessorGroups"][1]["ResourceGroups"][0]["TaskGroups"][0]["TaskRange"] = json!([0, 3, 2]),
            Code::CountMismatch,
            "$.ProcessorGroups",
        ),
        (
            |plan| plan["ProcessorGroups"][0]["ResourceGroups"][0]["TaskGroups"][0]["TaskRange"] = json!([0, 4, 0]),
            Code::Syntax,
            "$.ProcessorGroups[0].ResourceGroups[0].TaskGroups[0].TaskRange",
        ),
        (
            |plan| plan["ProcessorGroups"][1]["ResourceGroups"][0]["TaskGroups"][0]["TaskId"] = 8.into(),
            Code::UndefinedValue,
            "$.ProcessorGroups[1].ResourceGroups[0].TaskGroups[0].TaskId",
        ),
        (|plan| plan["TaskInfos"][0]["Ops"] = json!([]), Code::Syntax, "$.TaskInfos[0]"),
        (
            |plan| plan["TaskInfos"] = json!([plan["TaskInfos"][0], plan["TaskInfos"][0]]),
            Code::DuplicateDefinition,
            "$.TaskInfos[1]",
        ),
    ];
    for (edit, code, path) in edits {
        let mut plan = plan();
        edit(&mut plan);
        let found = faults(&plan.to_string());
        assert!(found.contains(&(code, path.into())), "{path}: {found:?}");
    }
}
