//! What integers at a graph's inputs and outputs stand for as the value of an attribute: a list of ports, each of which is the list of its
//! way, its number, its scale and its zero point.

use super::syntax::AttributeValue;
use mlc_ir::{Float, InterfaceQuantization, Quantization};

/// `None` when nothing is known.
pub(super) fn value(interface: &InterfaceQuantization) -> Option<AttributeValue> {
    let port = |way: &str, number: usize, own: &Quantization| {
        AttributeValue::List(vec![
            AttributeValue::Text(way.into()),
            AttributeValue::Integer(number as i64),
            AttributeValue::Float(own.scale.0, false),
            AttributeValue::Integer(own.zero_point),
        ])
    };
    let inputs = interface.inputs.iter().map(|(&number, own)| port("input", number, own));
    let outputs = interface.outputs.iter().map(|(&number, own)| port("output", number, own));
    let ports: Vec<AttributeValue> = inputs.chain(outputs).collect();
    (!ports.is_empty()).then_some(AttributeValue::List(ports))
}

/// `None` when the value isn't of this form.
pub(super) fn parse(value: &AttributeValue) -> Option<InterfaceQuantization> {
    let AttributeValue::List(ports) = value else { return None };
    let mut interface = InterfaceQuantization::default();
    for port in ports {
        let AttributeValue::List(parts) = port else { return None };
        let [
            AttributeValue::Text(way),
            AttributeValue::Integer(number),
            AttributeValue::Float(scale, _),
            AttributeValue::Integer(zero_point),
        ] = &parts[..]
        else {
            return None;
        };
        let own = Quantization { scale: Float(*scale), zero_point: *zero_point };
        let ports = match &way[..] {
            "input" => &mut interface.inputs,
            "output" => &mut interface.outputs,
            _ => return None,
        };
        ports.insert(usize::try_from(*number).ok()?, own);
    }
    Some(interface)
}
