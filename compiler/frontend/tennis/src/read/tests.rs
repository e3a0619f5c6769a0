use super::*;
use crate::model::{Node, NodeId};
use crate::tensor::{Field, Tensor};
use crate::write;
use mlc_ir::Code;

/// The format's own example: relu of an input x, f32 [2, 3].
fn example() -> Model {
    let parameters = [("#dtype", Field::of_ints(&[], &[10])), ("#shape", Field::of_ints(&[2], &[2, 3]))];
    let parameters = parameters.map(|(key, field)| (key.to_owned(), Tensor::from(field)));
    let node = |kind: &str, name: &str, inputs: &[u32]| Node {
        kind: kind.into(),
        name: name.into(),
        parameters: Default::default(),
        inputs: inputs.iter().copied().map(NodeId).collect(),
        offset: 0,
        number: 0,
    };
    let nodes = vec![Node { parameters: parameters.into(), ..node("<param>", "x", &[]) }, node("relu", "y", &[0])];
    Model { inputs: vec![NodeId(0)], outputs: vec![NodeId(1)], nodes }
}

fn bytes(model: &Model) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(model, &mut bytes).unwrap();
    bytes
}

fn errors(bytes: Vec<u8>) -> Vec<Diagnostic> {
    let errors = read(&bytes.into()).unwrap_err();
    assert!(errors.iter().all(|error| error.is_error() && error.location.byte_offset.is_some()), "{errors:?}");
    errors
}

#[test]
fn the_example_has_the_bytes_of_the_format() {
    let bytes = bytes(&example());
    assert_eq!(bytes.len(), 319);
    assert_eq!(bytes[..8], [0, 0, 0, 0, 0x29, 0x09, 0x91, 0x19]);
    assert!(bytes[8..128].iter().all(|&byte| byte == 0));
    assert_eq!(bytes[0x80..0x9b], *b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\x04\0\0\0\x06\0\0");
    assert_eq!(bytes[0x11f..0x13f], *b"\x03\0\0\0#op\x01\0\0\0\x0d\x01\0\0\0\x04\0\0\0relu\x01\0\0\0\0\0\0\0");
    assert_eq!(read(&bytes.into()).unwrap(), (example(), vec![]));
}

#[test]
fn nodes_come_in_an_order_in_which_they_can_be_computed() {
    let mut model = example();
    model.nodes.reverse();
    (model.inputs[0], model.outputs[0], model.nodes[0].inputs[0]) = (NodeId(1), NodeId(0), NodeId(1));
    let (read, _) = read(&bytes(&model).into()).unwrap();
    assert_eq!(read, example());
    assert_eq!((read.nodes[1].number, read.nodes[0].number), (0, 1));
}

#[test]
fn long_chains_need_no_stack() {
    let mut model = example();
    for index in 2..50_000 {
        model.nodes.push(Node { inputs: vec![NodeId(index - 1)], ..model.nodes[1].clone() });
    }
    model.outputs = vec![NodeId(49_999)];
    assert_eq!(read(&bytes(&model).into()).unwrap().0, model);
    model.nodes[1].inputs[0] = NodeId(49_999);
    let errors = errors(bytes(&model));
    assert!(errors[0].message.contains("`y`, `y`"), "{errors:?}");
}

#[test]
fn every_truncation_is_told_with_its_place() {
    let whole = bytes(&example());
    for length in 0..whole.len() {
        let errors = errors(whole[..length].to_vec());
        assert_eq!(errors.len(), 1, "{errors:?}");
        let offset = errors[0].location.byte_offset.unwrap() as usize;
        assert!(offset <= length, "{length}: {errors:?}");
    }
}

#[test]
fn independent_faults_are_told_at_once() {
    let mut model = example();
    model.nodes[1].inputs = vec![NodeId(7), NodeId(8)];
    model.outputs = vec![NodeId(9)];
    let constant = Node { kind: "<const>".into(), parameters: Default::default(), ..model.nodes[0].clone() };
    model.nodes.push(constant.clone());
    assert_eq!(errors(bytes(&model)).len(), 3);
    model.nodes[1].inputs = vec![];
    model.outputs = vec![NodeId(1), NodeId(2)];
    model.inputs = vec![NodeId(2), NodeId(2)];
    let codes: Vec<Code> = errors(bytes(&model)).iter().map(|error| error.code).collect();
    assert_eq!(
        codes,
        [
            Code::OperandCount,
            Code::ParameterMissing,
            Code::ParameterInvalid,
            Code::ParameterInvalid,
            Code::DuplicateDefinition,
        ]
    );
}

#[test]
fn containers_and_encrypted_files_are_named() {
    let mut bytes = vec![0u8; 200];
    bytes[..4].copy_from_slice(&CODE);
    assert_eq!(errors(bytes)[0].code, Code::RelatedFormat);
    let noise: Vec<u8> = (0..400u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert!(errors(noise)[0].notes[0].contains("encrypted"));
    let mut reversed = vec![0u8; 200];
    reversed[4..8].copy_from_slice(&[0x19, 0x91, 0x09, 0x29]);
    assert!(errors(reversed)[0].notes[0].contains("reverse order"));
}

#[test]
fn what_writers_of_old_left_is_read() {
    let mut model = example();
    model.nodes[1].parameters.insert("#output_count".into(), Field::of_ints(&[], &[1]).into());
    let mut bytes = bytes(&model);
    bytes[..4].copy_from_slice(b"user");
    bytes[100] = 7;
    bytes.extend(b"more");
    let (read, notes) = read(&bytes.into()).unwrap();
    assert_eq!(read, model);
    assert_eq!(notes.len(), 1);
    model.nodes[1].parameters.insert("#output_count".into(), Field::of_ints(&[], &[2]).into());
    let mut bytes = Vec::new();
    write(&model, &mut bytes).unwrap();
    assert!(errors(bytes)[0].message.contains("`#output_count`"));
}
