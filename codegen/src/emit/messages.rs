//! Messages: the table of them, and what the main function does with them between kernels.

use super::emitter::{Emitter, Scope};
use super::sequence::Calls;
use crate::execution::{Execution, Interface, refused};
use crate::loops::spelling::comment;
use crate::lower::{Action, Binding, Exchange, LoweredMessage, Program};
use crate::module::{Exchanged, MessageSummary, RankSummary};
use crate::names::c_escape;
use mlc_ir::{Diagnostic, Graph};
use std::fmt::Write;

/// Checks that a graph that is one of several ranks can be run in the way that is asked for.
///
/// # Errors
/// When it can't be given a transport.
pub(super) fn check(graph: &Graph, execution: Execution) -> Result<(), Diagnostic> {
    if graph.distribution.is_none() {
        return Ok(());
    }
    if execution.aot != Some(Interface::C) || execution.graph {
        let message = "a model that is one of several ranks is compiled for the C interface only";
        return refused(message, "leave '--executor' and '--interface-api' out");
    }
    if execution.threads > 1 {
        return refused("each of several ranks is computed by one thread", "leave '--threads' out");
    }
    Ok(())
}

/// What is said of a program's messages; `None` when it isn't one of several.
pub(super) fn summary(graph: &Graph, program: &Program) -> Option<RankSummary> {
    let distribution = graph.distribution.as_ref()?;
    let described = distribution.messages.iter().zip(&program.messages).map(|(message, lowered)| MessageSummary {
        bytes: lowered.bytes,
        channel: lowered.channel,
        dtype: lowered.dtype.name(),
        peer: lowered.peer,
        sent: lowered.sent.is_some(),
        tag: message.tag,
        tensor: lowered.name.clone(),
    });
    let exchange = |(before, exchange): (usize, Exchange)| Exchanged {
        action: match exchange.action {
            Action::Send => "send",
            Action::Receive => "receive",
            Action::Wait => "wait",
        },
        before,
        message: exchange.message,
    };
    Some(RankSummary {
        count: distribution.count,
        exchanges: program.exchanges().into_iter().map(exchange).collect(),
        messages: described.collect(),
        rank: distribution.rank,
    })
}

impl Emitter {
    /// The table of the messages, by number.
    pub(super) fn message_table(&self, program: &Program, model: &str) -> String {
        if program.messages.is_empty() {
            return String::new();
        }
        let count = program.messages.len();
        let mut text =
            "\n".to_owned() + &comment(&["The messages: peer, channel, bytes, whether it is sent, tensor.".to_owned()]);
        let _ = write!(
            text,
            "extern const mlc_message mlc_{model}_messages[{count}];\nconst mlc_message mlc_{model}_messages[{count}] = {{\n"
        );
        for LoweredMessage { sent, peer, channel, bytes, name, .. } in &program.messages {
            let sent = i32::from(sent.is_some());
            let _ = writeln!(text, "  {{ {peer}, {channel}, {bytes}, {sent}, \"{}\" }},", c_escape(name));
        }
        text + "};\n"
    }

    /// What is done with a message.
    pub(super) fn exchange(&mut self, scope: Scope<'_>, exchange: Exchange, calls: &mut Calls) {
        let (model, Exchange { action, message: number }) = (scope.model, exchange);
        let (function, data) = match action {
            Action::Send => ("send", Some(true)),
            Action::Receive => ("receive", Some(false)),
            Action::Wait => ("wait", None),
        };
        let mut arguments = format!("transport->context, {number}, &mlc_{model}_messages[{number}]");
        if let Some(constant) = data {
            let LoweredMessage { buffer, offset, dtype, .. } = scope.program.messages[number];
            let binding = Binding::Buffer { buffer, offset, dtype, constant };
            let argument = self.argument(scope, (0, 0), &binding);
            calls.used.extend(argument.variable);
            let _ = write!(arguments, ", {}", argument.text);
        }
        calls.used.insert("transport".to_owned());
        let _ = writeln!(
            calls.text,
            "  status = transport->{function}({arguments});\n  if (status != 0) {{\n    return status;\n  }}"
        );
    }
}
