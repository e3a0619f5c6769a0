//! What is called once: `begin` of a function before the first run, `end` after the last.

use super::signature::{pointers, prototype};
use crate::lower::{ExternRoutine, Once};
use std::fmt::Write;

/// The functions that begin and end. `known` says of each parameter of the call whether its value is there before a run.
pub(super) fn functions(code: &ExternRoutine, once: &Once, known: &[bool]) -> String {
    let op = &code.op;
    let all = pointers(op);
    let is_known = |number: usize| known.get(number).copied().unwrap_or(false);
    let given: Vec<&(&str, String)> = all.iter().enumerate().filter(|(k, _)| is_known(*k)).map(|(_, p)| p).collect();
    let own = code.instance.as_ref().map(|instance| format!("&{instance}"));
    let arguments = |spelled: &dyn Fn(usize) -> String| -> String {
        let rest = (0..all.len()).map(|k| if is_known(k) { spelled(k) } else { "NULL".to_owned() });
        own.clone().into_iter().chain(rest).collect::<Vec<_>>().join(", ")
    };
    let Once { begin, end, begun } = once;
    let kept = format!("{begun}_with");
    let keeps = op.end.is_some() && !given.is_empty();
    let mut text = String::new();
    for symbol in [&op.begin, &op.end].into_iter().flatten() {
        text += &prototype(op, symbol);
    }
    // No formatting of a String fails.
    let _ = writeln!(text, "\nstatic uint8_t {begun};");
    if keeps {
        let _ = writeln!(text, "static const void *{kept}[{}];", given.len());
    }
    let parameters: Vec<String> = given.iter().map(|(ty, name)| format!("{ty}{name}")).collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    let _ = writeln!(text, "\nstatic int32_t {begin}({parameters}) {{\n  int32_t status = 0;");
    let mut body = String::new();
    if let Some(symbol) = &op.begin {
        let _ = writeln!(body, "    status = {symbol}({});", arguments(&|k| all[k].1.clone()));
    }
    body += "    if (status == 0) {\n";
    for (number, (_, name)) in given.iter().enumerate().filter(|_| keeps) {
        let _ = writeln!(body, "      {kept}[{number}] = {name};");
    }
    let _ = write!(text, "  if ({begun} == 0) {{\n{body}      {begun} = 1;\n    }}\n  }}\n");
    if op.begin.is_none() && !keeps {
        for (_, name) in &given {
            let _ = writeln!(text, "  (void){name};");
        }
    }
    text += "  return status;\n}\n";
    let _ = writeln!(text, "\nstatic int32_t {end}(void) {{\n  int32_t status = 0;\n  if ({begun} != 0) {{");
    if let Some(symbol) = &op.end {
        let place = |k: usize| (0..k).filter(|&earlier| is_known(earlier)).count();
        let spelled = |k: usize| match all[k].0 {
            "const void *" => format!("{kept}[{}]", place(k)),
            ty => format!("({ty})(uintptr_t){kept}[{}]", place(k)),
        };
        let _ = writeln!(text, "    status = {symbol}({});", arguments(&spelled));
    }
    let _ = writeln!(text, "    {begun} = 0;\n  }}\n  return status;\n}}");
    text
}
