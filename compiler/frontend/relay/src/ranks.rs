//! A graph's place among several ranks as the value of an attribute: the list of rank, count and messages, each of which is the
//! list of its way, the number of its output or input, its peer and its tag.

use super::syntax::AttributeValue;
use mlc_ir::{Distribution, Message, Transfer};

pub(super) fn ranks_value(distribution: &Distribution) -> AttributeValue {
    let number = |number: usize| AttributeValue::Integer(number as i64);
    let message = |message: &Message| {
        let (way, port) = match message.transfer {
            Transfer::Send { output } => ("send", output),
            Transfer::Receive { input } => ("receive", input),
        };
        let tag = AttributeValue::Integer(message.tag.into());
        AttributeValue::List(vec![AttributeValue::Text(way.into()), number(port), number(message.peer), tag])
    };
    let own = [number(distribution.rank), number(distribution.count)];
    AttributeValue::List(own.into_iter().chain(distribution.messages.iter().map(message)).collect())
}

/// `None` when the value isn't of this form.
pub(super) fn parse_ranks(value: &AttributeValue) -> Option<Distribution> {
    let AttributeValue::List(parts) = value else { return None };
    let [rank, count, messages @ ..] = &parts[..] else { return None };
    let messages = messages.iter().map(parse_message).collect::<Option<_>>()?;
    Some(Distribution { rank: number(rank)?, count: number(count)?, messages })
}

fn parse_message(value: &AttributeValue) -> Option<Message> {
    let AttributeValue::List(parts) = value else { return None };
    let [AttributeValue::Text(way), port, peer, AttributeValue::Integer(tag)] = &parts[..] else { return None };
    let port = number(port)?;
    let transfer = match &way[..] {
        "send" => Transfer::Send { output: port },
        "receive" => Transfer::Receive { input: port },
        _ => return None,
    };
    Some(Message { transfer, peer: number(peer)?, tag: (*tag).try_into().ok()? })
}

fn number(value: &AttributeValue) -> Option<usize> {
    match value {
        AttributeValue::Integer(number) => (*number).try_into().ok(),
        _ => None,
    }
}
