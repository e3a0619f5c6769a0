use super::read;
use crate::Model;
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
