//! Each rule of each operator: what it takes, and what it refuses.

use crate::read;
use mlc_ir::{Code, Diagnostic};
use serde_json::{Map, Value, json};

const LOCAL: i64 = -1;

/// A tensor that is all of a buffer.
fn tensor(data_type: &str, shape: &[usize]) -> Value {
    json!({
        "DataType": data_type, "Shape": shape, "Strides": shape, "Offsets": vec![0; shape.len()], "PaddedShape": shape,
        "Buffer": {"Rank": LOCAL, "SendTags": [], "RecvTags": []}
    })
}

fn f32(shape: &[usize]) -> Value {
    tensor("FP32", shape)
}

/// The same with other memory: a rank, what is sent from it and what is received into it.
fn on(rank: i64, sent: Value, received: Value, mut tensor: Value) -> Value {
    tensor["Buffer"] = json!({"Rank": rank, "SendTags": sent, "RecvTags": received});
    tensor
}

/// An operation on tensors, each of which has a buffer of its own.
#[derive(Clone)]
struct Case {
    kind: &'static str,
    reads: Vec<Value>,
    writes: Vec<Value>,
    arguments: Value,
    /// What the result renames, if there is one.
    renamed: Option<Value>,
}

fn case(kind: &'static str, reads: &[Value], write: Value, arguments: Value) -> Case {
    Case { kind, reads: reads.to_vec(), writes: vec![write.clone()], arguments, renamed: Some(write) }
}

fn number(tensor: &mut Value, id: usize, buffer: usize) {
    tensor["Id"] = id.into();
    tensor["Buffer"]["Id"] = buffer.into();
}

impl Case {
    /// The model of the second of three ranks that does this one operation.
    fn model(&self) -> Value {
        let (mut reads, mut writes) = (self.reads.clone(), self.writes.clone());
        for (id, tensor) in reads.iter_mut().chain(&mut writes).enumerate() {
            number(tensor, id, id);
        }
        let count = reads.len() + writes.len();
        let results: Vec<Value> = self
            .renamed
            .iter()
            .map(|renamed| {
                let place = self.writes.iter().position(|write| write == renamed).map(|place| reads.len() + place);
                let mut result = renamed.clone();
                number(&mut result, count, place.unwrap_or(0));
                result
            })
            .collect();
        json!({"Rank": 1, "WorldSize": 3, "Nodes": [{
            "Id": 0, "ProducerNodeIds": [], "ConsumerNodeIds": [],
            "Op": {
                "Type": self.kind, "Name": "op", "IsVirtual": false, "ReadTensors": reads, "WriteTensors": writes,
                "ResultTensors": results, "Args": self.arguments
            }
        }]})
    }

    fn errors(&self) -> Vec<Diagnostic> {
        read(self.model().to_string().as_bytes()).err().unwrap_or_default()
    }

    fn accepted(self) -> Case {
        assert_eq!(self.errors(), [], "{}", self.kind);
        self
    }

    /// One error, of this code and at this place of the operation.
    fn refused(self, code: Code, place: &str) {
        let errors = self.errors();
        let found: Vec<_> =
            errors.iter().map(|error| (error.code, error.location.json_path.clone().unwrap())).collect();
        assert_eq!(found, [(code, format!("$.Nodes[0].Op.{place}"))], "{}: {errors:?}", self.kind);
        assert_eq!(errors[0].location.operator.as_deref(), Some(self.kind));
    }

    fn reading(&self, position: usize, tensor: Value) -> Case {
        let mut case = self.clone();
        case.reads[position] = tensor;
        case
    }

    fn writing(&self, tensor: Value) -> Case {
        Case { writes: vec![tensor.clone()], renamed: Some(tensor), ..self.clone() }
    }

    fn with(&self, name: &str, value: Value) -> Case {
        let mut case = self.clone();
        case.arguments[name] = value;
        case
    }

    fn without(&self, name: &str) -> Case {
        let mut case = self.clone();
        case.arguments.as_object_mut().map(|arguments: &mut Map<String, Value>| arguments.remove(name));
        case
    }
}

const SHAPE: &str = "WriteTensors[0].Shape";

#[test]
fn elementwise_operators_broadcast() {
    for kind in ["Add", "Sub", "Mul", "Div"] {
        let add = case(kind, &[f32(&[2, 1, 3]), f32(&[4, 1])], f32(&[2, 4, 3]), json!({})).accepted();
        add.writing(f32(&[2, 4, 1])).refused(Code::ShapeMismatch, SHAPE);
        add.reading(1, f32(&[4, 2])).refused(Code::OperandTypes, "ReadTensors");
        add.reading(1, tensor("FP16", &[4, 1])).refused(Code::OperandTypes, "ReadTensors[1].DataType");
        add.writing(tensor("INT32", &[2, 4, 3])).refused(Code::OperandTypes, "ReadTensors[0].DataType");
    }
    for kind in ["Exp", "Sqrt", "Rsqrt", "Relu", "Gelu", "Sigmoid", "Copy", "Store"] {
        let unary = case(kind, &[f32(&[1, 3])], f32(&[2, 4, 3]), json!({})).accepted();
        unary.writing(f32(&[3])).refused(Code::ShapeMismatch, SHAPE);
        unary.writing(f32(&[2, 2])).refused(Code::ShapeMismatch, SHAPE);
        unary.writing(tensor("BF16", &[2, 3])).refused(Code::OperandTypes, "ReadTensors[0].DataType");
    }
    case("Cast", &[f32(&[3])], tensor("UINT8", &[3]), json!({}))
        .accepted()
        .writing(f32(&[4]))
        .refused(Code::ShapeMismatch, SHAPE);
    let rope = case("Rope", &[f32(&[2, 5, 6]), f32(&[5, 6])], f32(&[2, 5, 6]), json!({})).accepted();
    rope.reading(1, f32(&[5, 1])).refused(Code::OperandTypes, "ReadTensors");
    case("Rope", &[f32(&[5]), f32(&[5])], f32(&[5]), json!({})).refused(Code::OperandTypes, "ReadTensors");
}

#[test]
fn scalars_are_arguments() {
    for kind in ["ScalarAdd", "ScalarMul"] {
        let scalar = case(kind, &[f32(&[3])], f32(&[2, 3]), json!({"Factor": {"FLOAT": 0.5}})).accepted();
        scalar.without("Factor").with("Value", json!({"FLOAT": 2})).accepted();
        scalar.without("Factor").refused(Code::ParameterMissing, "Args");
        scalar.with("Factor", json!({"INT": 1})).refused(Code::ParameterInvalid, "Args[\"Factor\"]");
        scalar.with("Value", json!({"FLOAT": 1})).refused(Code::DuplicateDefinition, "Args[\"Value\"]");
        scalar.with("Factor", json!({"FLOAT": null})).refused(Code::Syntax, "Args[\"Factor\"][\"FLOAT\"]");
        scalar.with("Factor", json!({"FLOAT": 1e300})).refused(Code::NumberOutOfRange, "Args[\"Factor\"][\"FLOAT\"]");
    }
    case("ScalarAssign", &[], tensor("INT8", &[3]), json!({"Value": {"FLOAT": 1}})).accepted();
}

#[test]
fn products_follow_from_their_operands() {
    let flags = |a: bool, b: bool| json!({"TransposeInput": {"BOOL": a}, "TransposeOther": {"BOOL": b}});
    for (a, b, result, (first, second)) in [
        (&[2, 3][..], &[3, 4][..], &[2, 4][..], (false, false)),
        (&[3, 2], &[4, 3], &[2, 4], (true, true)),
        (&[3], &[3, 4], &[1, 4], (false, false)),
        (&[2, 3], &[3], &[2, 1], (false, false)),
        (&[3], &[3], &[1, 1], (true, true)),
        (&[5, 2, 3], &[3, 4], &[5, 2, 4], (false, false)),
        (&[5, 1, 2, 3], &[6, 3, 4], &[5, 6, 2, 4], (false, false)),
    ] {
        for kind in ["Matmul", "Mma", "MatmulGelu"] {
            let product = case(kind, &[f32(a), f32(b)], f32(result), flags(first, second)).accepted();
            product.writing(f32(&[7, 4])).refused(Code::ShapeMismatch, SHAPE);
            product.without("TransposeOther").refused(Code::ParameterMissing, "Args");
        }
    }
    let product = case("Matmul", &[f32(&[2, 3]), f32(&[4, 3])], f32(&[2, 4]), flags(false, true)).accepted();
    product.with("TransposeOther", json!({"BOOL": false})).refused(Code::OperandTypes, "ReadTensors");
    product.with("TransposeOther", json!({"BOOL": 1})).refused(Code::Syntax, "Args[\"TransposeOther\"][\"BOOL\"]");
    let stacks = case("Matmul", &[f32(&[2, 2, 3]), f32(&[3, 3, 4])], f32(&[2, 2, 4]), flags(false, false));
    stacks.refused(Code::OperandTypes, "ReadTensors");
    let mut padded = f32(&[2, 3]);
    padded["Strides"] = json!([2, 5]);
    padded["PaddedShape"] = json!([2, 4]);
    product.reading(0, padded).refused(Code::OperandTypes, "ReadTensors");
    case("MatmulScale", &[f32(&[2, 3]), f32(&[3, 4])], f32(&[2, 4]), flags(false, false))
        .refused(Code::ParameterMissing, "Args");
    let add =
        case("MatmulAdd", &[f32(&[2, 3]), f32(&[3, 4]), f32(&[2, 4])], f32(&[2, 4]), flags(false, false)).accepted();
    add.reading(2, f32(&[4])).refused(Code::OperandTypes, "ReadTensors[2].Shape");
}

#[test]
fn derived_arguments_of_products_only_warn() {
    let arguments = json!({
        "TransposeInput": {"BOOL": false}, "TransposeOther": {"BOOL": true}, "InputDimNC": {"DIMS": [1, 1]},
        "OtherDimNC": {"DIMS": [1, 1]}, "ShapeMNK": {"DIMS": [2, 4, 3]}, "StridesACDB": {"DIMS": [3, 4, 4, 3]}
    });
    let product = case("Matmul", &[f32(&[2, 3]), f32(&[4, 3])], f32(&[2, 4]), arguments).accepted();
    let model = read(product.model().to_string().as_bytes()).unwrap();
    assert_eq!((model.warnings.len(), model.nodes[0].operations[0].arguments.len()), (0, 2));
    for name in ["InputDimNC", "OtherDimNC", "ShapeMNK", "StridesACDB"] {
        let model = read(product.with(name, json!({"DIMS": [9]})).model().to_string().as_bytes()).unwrap();
        let path = format!("$.Nodes[0].Op.Args[{name:?}]");
        assert_eq!(model.warnings[0].location.json_path.as_deref(), Some(&*path));
    }
}

#[test]
fn arguments_that_an_operator_does_not_have_only_warn() {
    let copy = case("Copy", &[f32(&[4])], f32(&[4]), json!({"Factor": {"FLOAT": 1}})).accepted();
    let model = read(copy.model().to_string().as_bytes()).unwrap();
    let found: Vec<_> = model.warnings.iter().map(|warning| (warning.code, warning.location.to_string())).collect();
    assert_eq!(found, [(Code::Unused, "$.Nodes[0].Op.Args, Copy \"op\"".to_owned())]);
}

#[test]
fn axes_are_in_range() {
    for kind in ["ReduceSum", "ReduceMax", "ReduceMean"] {
        let arguments = json!({"Axis": {"INT": -2}, "KeepDim": {"BOOL": true}});
        let reduction = case(kind, &[f32(&[2, 3, 4])], f32(&[2, 1, 4]), arguments).accepted();
        reduction.with("KeepDim", json!({"BOOL": false})).writing(f32(&[2, 4])).accepted();
        reduction.with("KeepDim", json!({"BOOL": false})).refused(Code::ShapeMismatch, SHAPE);
        for axis in [3, -4] {
            reduction.with("Axis", json!({"INT": axis})).refused(Code::ParameterInvalid, "Args[\"Axis\"]");
        }
        let whole = reduction.with("KeepDim", json!({"BOOL": false})).with("Axis", json!({"INT": 0}));
        whole.reading(0, f32(&[3])).writing(f32(&[1])).accepted();
    }
    let transpose =
        case("Transpose", &[f32(&[2, 3, 4])], f32(&[4, 2, 3]), json!({"Permutation": {"DIMS": [2, 0, 1]}})).accepted();
    transpose.writing(f32(&[3, 4, 2])).refused(Code::ShapeMismatch, SHAPE);
    for permutation in [json!([2, 0]), json!([0, 1, 1]), json!([0, 1, -1])] {
        transpose
            .with("Permutation", json!({"DIMS": permutation}))
            .refused(Code::ParameterInvalid, "Args[\"Permutation\"]");
    }
}

#[test]
fn tables_caches_and_norms_fit() {
    let embedding = case("Embedding", &[tensor("INT32", &[7]), f32(&[9, 3])], f32(&[1, 1, 7, 3]), json!({})).accepted();
    embedding.reading(0, f32(&[7])).refused(Code::OperandTypes, "ReadTensors[0]");
    embedding.reading(1, f32(&[9, 3, 1])).refused(Code::OperandTypes, "ReadTensors[1]");
    embedding.writing(f32(&[3, 7])).refused(Code::ShapeMismatch, SHAPE);
    case("Softmax", &[f32(&[2, 3])], f32(&[2, 3]), json!({}))
        .accepted()
        .writing(f32(&[3, 2]))
        .refused(Code::ShapeMismatch, SHAPE);
    let norm = case("LayerNorm", &[f32(&[2, 3]), f32(&[3]), f32(&[1, 3])], f32(&[2, 3]), json!({})).accepted();
    norm.reading(1, f32(&[2])).refused(Code::OperandTypes, "ReadTensors[1].Shape");
    norm.reading(2, tensor("FP16", &[3])).refused(Code::OperandTypes, "ReadTensors[2].DataType");
}

#[test]
fn results_rename_what_is_written() {
    let copy = case("Copy", &[f32(&[4])], f32(&[4]), json!({})).accepted();
    let mut elsewhere = copy.model();
    elsewhere["Nodes"][0]["Op"]["ResultTensors"][0]["Buffer"]["Id"] = 0.into();
    let mut itself = copy.model();
    itself["Nodes"][0]["Op"]["ResultTensors"][0]["Id"] = 1.into();
    let mut none = copy.model();
    none["Nodes"][0]["Op"]["ResultTensors"] = json!([]);
    let mut beside = copy.model();
    let operation = &mut beside["Nodes"][0]["Op"];
    operation["WriteTensors"][0]["Buffer"]["Id"] = 0.into();
    operation["ResultTensors"][0]["Buffer"]["Id"] = 0.into();
    for tensor in ["WriteTensors", "ResultTensors"] {
        operation[tensor][0]["Strides"] = json!([6]);
        operation[tensor][0]["Offsets"] = json!([2]);
    }
    operation["ReadTensors"][0]["Strides"] = json!([6]);
    for (model, code, place) in [
        (elsewhere, Code::ShapeMismatch, "ResultTensors[0]"),
        (itself, Code::DuplicateDefinition, "ResultTensors[0]"),
        (none, Code::OperandCount, "ResultTensors"),
        (beside, Code::VariantUnsupported, "WriteTensors[0]"),
    ] {
        let errors = read(model.to_string().as_bytes()).unwrap_err();
        let found: Vec<_> =
            errors.iter().map(|error| (error.code, error.location.json_path.clone().unwrap())).collect();
        assert_eq!(found, [(code, format!("$.Nodes[0].Op.{place}"))], "{errors:?}");
    }
}

#[test]
fn only_communication_touches_other_ranks() {
    let far = |tensor: Value| on(2, json!([]), json!([]), tensor);
    let copy = case("Copy", &[f32(&[4])], f32(&[4]), json!({})).accepted();
    copy.reading(0, far(f32(&[4]))).refused(Code::OperandTypes, "ReadTensors[0]");
    copy.writing(far(f32(&[4]))).refused(Code::OperandTypes, "WriteTensors[0]");
    copy.reading(0, on(1, json!([]), json!([]), f32(&[4]))).accepted();
    copy.reading(0, on(3, json!([]), json!([]), f32(&[4])))
        .refused(Code::NumberOutOfRange, "ReadTensors[0].Buffer.Rank");
    let itself = on(LOCAL, json!([[1, 5]]), json!([]), f32(&[4]));
    copy.reading(0, itself).refused(Code::ParameterInvalid, "ReadTensors[0].Buffer.SendTags[0]");
    let odd = on(LOCAL, json!([[2]]), json!([]), f32(&[4]));
    copy.reading(0, odd).refused(Code::Syntax, "ReadTensors[0].Buffer.SendTags[0]");
}

#[test]
fn messages_have_one_tag() {
    let send = case(
        "Send",
        &[on(LOCAL, json!([[0, -7], [2, 5], [2, 6]]), json!([]), f32(&[4]))],
        on(2, json!([]), json!([[-1, 5]]), f32(&[4])),
        json!({}),
    )
    .accepted();
    send.writing(f32(&[4])).refused(Code::OperandTypes, "WriteTensors[0]");
    send.writing(on(2, json!([]), json!([[-1, 7]]), f32(&[4])))
        .refused(Code::ParameterMissing, "WriteTensors[0].Buffer");
    send.writing(on(2, json!([]), json!([[-1, 5], [-1, 6]]), f32(&[4])))
        .refused(Code::ParameterInvalid, "WriteTensors[0].Buffer");
    send.writing(on(2, json!([]), json!([[-1, 5]]), f32(&[2, 2]))).refused(Code::OperandTypes, "WriteTensors[0]");
    let receive = case(
        "Recv",
        &[on(0, json!([[-1, 3]]), json!([]), f32(&[4]))],
        on(LOCAL, json!([]), json!([[0, 3], [2, 3]]), f32(&[4])),
        json!({}),
    )
    .accepted();
    receive
        .reading(0, on(2, json!([[-1, 4]]), json!([]), f32(&[4])))
        .refused(Code::ParameterMissing, "WriteTensors[0].Buffer");
    receive.reading(0, f32(&[4])).refused(Code::OperandTypes, "ReadTensors[0]");
    let done = Case {
        writes: Vec::new(),
        renamed: Some(on(2, json!([]), json!([[-1, 5]]), f32(&[4]))),
        ..case("SendDone", &[on(2, json!([]), json!([[-1, 5]]), f32(&[4]))], f32(&[4]), json!({}))
    };
    done.accepted();
}

#[test]
fn packets_and_exchanges_fit() {
    let bytes = |count: usize| tensor("UINT8", &[count]);
    let flag = json!({"Flag": {"UINT32": 1}});
    let send = case("SendPacket", &[f32(&[4])], on(0, json!([]), json!([[-1, 0]]), bytes(32)), flag.clone()).accepted();
    send.writing(on(0, json!([]), json!([[-1, 0]]), bytes(16))).refused(Code::OperandTypes, "WriteTensors[0]");
    send.writing(on(0, json!([]), json!([]), bytes(32))).refused(Code::ParameterMissing, "WriteTensors[0].Buffer");
    let scratch = |count| on(LOCAL, json!([]), json!([[0, 1], [2, 9]]), bytes(count));
    let receive =
        case("RecvPacket", &[on(2, json!([]), json!([]), f32(&[4])), scratch(32)], f32(&[4]), flag).accepted();
    receive.reading(1, bytes(32)).refused(Code::ParameterMissing, "ReadTensors[1].Buffer");
    receive.reading(1, scratch(16)).refused(Code::OperandTypes, "ReadTensors[1]");
    let peers = |first: i64, second: i64| -> Vec<Value> {
        let far = |rank| on(rank, json!([]), json!([[-1, 4]]), bytes(32));
        vec![f32(&[4]), far(first), far(second)]
    };
    let arguments = json!({"Flag": {"UINT32": 1}, "NPeers": {"UINT32": 2}, "Rank": {"INT": 1}});
    let exchange = case("RecvReduceSendPacket", &[f32(&[4]), scratch(64)], f32(&[4]), arguments);
    let exchange = Case { writes: peers(0, 2), ..exchange }.accepted();
    exchange.with("Rank", json!({"INT": 0})).refused(Code::ParameterInvalid, "Args[\"Rank\"]");
    exchange.with("NPeers", json!({"UINT32": 1})).refused(Code::ParameterInvalid, "Args[\"NPeers\"]");
    exchange.reading(1, scratch(32)).refused(Code::OperandTypes, "ReadTensors[1]");
    Case { writes: peers(2, 2), ..exchange }.refused(Code::ParameterInvalid, "Args[\"NPeers\"]");
}

/// The sum over three ranks as the second of them has it.
fn sum_of_ranks(reads: &[Value], others: &[Value], arguments: Value) -> Case {
    let sum = case("AllReducePacketFused", reads, f32(&[4]), arguments);
    Case { writes: [&[f32(&[4])], others].concat(), ..sum }
}

#[test]
fn sums_over_all_ranks_have_all_ranks_and_one_tag_or_none() {
    let bytes = || tensor("UINT8", &[64]);
    let far = |rank: i64, received: Value| on(rank, json!([]), received, bytes());
    let x = || f32(&[4]);
    sum_of_ranks(&[x()], &[], json!({})).accepted();
    let arguments = json!({
        "Flag": {"UINT32": 1}, "NPeers": {"UINT32": 2}, "PeerNum": {"INT": 2}, "Rank": {"INT": 1}
    });
    let plain = [far(0, json!([])), far(2, json!([]))];
    let sum = sum_of_ranks(&[x(), bytes()], &plain, arguments).accepted();
    sum.reading(0, f32(&[5])).refused(Code::OperandTypes, "WriteTensors[0]");
    sum.reading(0, tensor("FP16", &[4])).refused(Code::OperandTypes, "WriteTensors[0]");
    sum.reading(0, on(0, json!([]), json!([]), x())).refused(Code::OperandTypes, "ReadTensors[0]");
    sum.reading(1, far(0, json!([]))).refused(Code::OperandTypes, "ReadTensors[1]");
    sum.with("Rank", json!({"INT": 2})).refused(Code::ParameterInvalid, "Args[\"Rank\"]");
    sum.with("Flag", json!({"INT": 1})).refused(Code::ParameterInvalid, "Args[\"Flag\"]");
    sum.with("NPeers", json!({"UINT32": 3})).refused(Code::ParameterInvalid, "Args[\"NPeers\"]");
    sum.with("PeerNum", json!({"INT": -1})).refused(Code::ParameterInvalid, "Args[\"PeerNum\"]");
    sum.with("Op", json!({"INT": 1})).refused(Code::ParameterInvalid, "Args[\"Op\"]");
    let with = |others: &[Value]| sum_of_ranks(&[x(), bytes()], others, json!({}));
    with(&plain[..1]).refused(Code::OperandTypes, "WriteTensors");
    with(&[far(0, json!([])), far(0, json!([]))]).refused(Code::OperandTypes, "WriteTensors");
    with(&[far(2, json!([])), bytes()]).refused(Code::OperandTypes, "WriteTensors[2]");

    let tagged = [far(0, json!([[-1, 7]])), far(2, json!([[-1, 7]]))];
    let scratch = on(1, json!([]), json!([[0, 7], [2, 8]]), bytes());
    let sum = sum_of_ranks(&[x(), scratch], &tagged, json!({})).accepted();
    sum.reading(1, bytes()).refused(Code::ParameterMissing, "ReadTensors[1].Buffer");
    let some = on(1, json!([]), json!([[0, 7]]), bytes());
    sum.reading(1, some).refused(Code::ParameterMissing, "ReadTensors[1].Buffer");
    let two = on(1, json!([]), json!([[0, 7], [2, 8], [2, 9]]), bytes());
    sum.reading(1, two).refused(Code::ParameterInvalid, "ReadTensors[1].Buffer");
    sum_of_ranks(&[x()], &tagged, json!({})).refused(Code::ParameterMissing, "ReadTensors");
    let half = [tagged[0].clone(), plain[1].clone()];
    with(&half).refused(Code::ParameterMissing, "WriteTensors[2].Buffer");
}

#[test]
fn sums_over_very_many_ranks_name_them() {
    let mut model = sum_of_ranks(&[f32(&[4])], &[], json!({})).model();
    model["WorldSize"] = 64.into();
    assert!(read(model.to_string().as_bytes()).is_ok());
    model["WorldSize"] = u32::MAX.into();
    let errors = read(model.to_string().as_bytes()).unwrap_err();
    assert_eq!((errors.len(), errors[0].code), (1, Code::OperandCount), "{errors:?}");
}

#[test]
fn operators_are_known() {
    let errors = case("Matmull", &[f32(&[4])], f32(&[4]), json!({})).errors();
    assert_eq!((errors[0].code, errors[0].notes.len()), (Code::OperatorUnsupported, 1));
    let mut add = case("Add", &[f32(&[4]), f32(&[4])], f32(&[4]), json!({})).model();
    add["Nodes"][0]["Op"]["IsVirtual"] = true.into();
    assert_eq!(read(add.to_string().as_bytes()).unwrap_err()[0].code, Code::ParameterInvalid);
    let mut view = case("Reshape", &[f32(&[4])], f32(&[4]), json!({})).model();
    let operation = &mut view["Nodes"][0]["Op"];
    operation["IsVirtual"] = true.into();
    operation["WriteTensors"] = json!([]);
    assert_eq!(read(view.to_string().as_bytes()).unwrap_err()[0].code, Code::ParameterInvalid, "another buffer");
    view["Nodes"][0]["Op"]["ResultTensors"][0]["Buffer"]["Id"] = 0.into();
    assert_eq!(read(view.to_string().as_bytes()).unwrap().warnings[0].code, Code::OperatorUnsupported);
}
