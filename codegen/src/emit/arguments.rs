//! The arguments of kernels, as C expressions over the variables of the function that calls them.

use super::emitter::{Emitter, Scope};
use crate::constants::array;
use crate::execution::WeightsAs;
use crate::graph::Place;
use crate::loops::spelling::c_type;
use crate::lower::homes::BufferKind;
use crate::lower::{Binding, Program};
use crate::module::StatePlace;
use mlc_ir::Attribute;
use std::collections::BTreeSet;
use std::fmt::Write;

/// An argument of a kernel.
pub(super) struct CallArgument {
    /// C expression.
    pub text: String,
    /// The variable of the calling function that the expression needs; `None` for what the file itself defines.
    pub variable: Option<String>,
}

impl CallArgument {
    /// The expression as an operand of a cast or a sum.
    pub fn as_operand(&self) -> String {
        // Casts bind tighter than sums.
        match self.text.contains(" + ") && !self.text.ends_with(')') {
            true => format!("({})", self.text),
            false => self.text.clone(),
        }
    }

    /// Something that the file defines, such as a constant.
    fn own(text: String) -> CallArgument {
        CallArgument { text, variable: None }
    }

    /// An address of `element`s some of them into a variable; `qualifier` is empty or `const` and a space.
    fn moved(qualifier: &str, element: &str, variable: String, offset: i64) -> CallArgument {
        CallArgument { text: moved(format!("({qualifier}{element} *){variable}"), offset), variable: Some(variable) }
    }

    /// An address of elements some bytes into memory of bytes.
    fn placed(qualifier: &str, element: &str, memory: &str, bytes: i64) -> CallArgument {
        let address = if bytes == 0 { memory.to_owned() } else { format!("({memory} + {bytes})") };
        CallArgument { text: format!("({qualifier}{element} *){address}"), variable: Some(memory.to_owned()) }
    }

    /// An address of elements some bytes into the arena, which may be divided among pieces of memory.
    fn in_arena(program: &Program, qualifier: &str, element: &str, bytes: i64) -> CallArgument {
        let pools = &program.layout.plan.pools;
        match pools.iter().rposition(|pool| pool.offset as i64 <= bytes) {
            Some(number) => {
                let bytes = bytes - pools[number].offset as i64;
                CallArgument::placed(qualifier, element, &format!("{WORKSPACE}{number}"), bytes)
            }
            None => CallArgument::placed(qualifier, element, WORKSPACE, bytes),
        }
    }
}

/// Rows of the fed input that were given in earlier calls.
pub(super) const FED: &str = "fed";

/// Those and the ones that are given now.
pub(super) const GIVEN: &str = "given";

/// The arena, or, with a number, a piece of memory that a part of it is in.
pub(super) const WORKSPACE: &str = "workspace";

/// The variables of functions: how their names begin, and how they are declared as parameters.
const VARIABLES: [(&str, &str); 13] = [
    ("constants", "const uint8_t *"),
    (FED, "int32_t "),
    (GIVEN, "int32_t "),
    ("input", "const void *"),
    ("next", "void *"),
    ("output", "void *"),
    ("row", "void *"),
    ("slice", "const void *"),
    ("state", "const void *"),
    ("state_pool", "uint8_t *"),
    ("tensor", "void *"),
    ("turn", "int64_t "),
    (WORKSPACE, "uint8_t *"),
];

/// The declaration of a variable as a parameter.
pub(super) fn parameter(name: &str) -> String {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let ty = VARIABLES.iter().find(|(known, _)| *known == kind).map_or("", |(_, ty)| *ty);
    format!("{ty}{name}")
}

impl Emitter {
    /// A constant. Equal ones share their memory.
    fn constant(&mut self, name: &str, value: &Attribute) -> CallArgument {
        let number = self.constants.number(&mut self.names, name, value);
        if self.execution.weights == WeightsAs::Binary && !self.in_code_only {
            let offset = self.constants.pooled(number, self.alignment);
            let element = c_type(value.ty().dtype);
            let text = format!("(const {element} *)(const void *)(constants + {offset})");
            return CallArgument { text, variable: Some("constants".to_owned()) };
        }
        CallArgument::own(self.linked(number))
    }

    /// The array of a constant that is part of the code.
    pub(super) fn linked(&mut self, number: usize) -> String {
        let constant = &mut self.constants.list[number];
        constant.in_code = true;
        array(constant)
    }

    /// The address that a parameter of a kernel gets, by its position and number.
    pub(super) fn argument(&mut self, scope: Scope<'_>, key: (usize, usize), binding: &Binding) -> CallArgument {
        let (qualifier, element) = match binding {
            Binding::Packed { value, .. } => ("const ", c_type(value.ty().dtype)),
            Binding::Scratch { dtype, .. } => ("", c_type(*dtype)),
            Binding::Buffer { dtype, constant, .. } => (if *constant { "const " } else { "" }, c_type(*dtype)),
        };
        let offset = if let Binding::Buffer { offset, .. } = binding { *offset } else { 0 };
        if let Some(call) = scope.call {
            match call.places[&key] {
                Place::Own => {}
                Place::Nothing => return CallArgument::own("NULL".to_owned()),
                Place::Tensor(tensor) => {
                    return CallArgument::moved(qualifier, element, format!("tensor{tensor}"), offset);
                }
                Place::Scratch(bytes) => return CallArgument::placed(qualifier, element, WORKSPACE, bytes as i64),
            }
        }
        let program = scope.program;
        match binding {
            // Of a finished program, all values are known.
            Binding::Packed { name, value } => match value.values() {
                Some(values) => self.constant(name, values),
                None => CallArgument::own("NULL".to_owned()),
            },
            Binding::Scratch { .. } => {
                CallArgument::in_arena(program, qualifier, element, program.layout.scratch[&key] as i64)
            }
            Binding::Buffer { buffer, dtype, .. } => match &program.buffers[*buffer].kind {
                BufferKind::Input(k) => CallArgument::moved("const ", element, format!("input{k}"), offset),
                BufferKind::State(k) => match &self.states[*k].place {
                    StatePlace::Symbol(symbol) => CallArgument::own(moved(symbol.clone(), offset)),
                    StatePlace::Offset(start) => {
                        let bytes = *start as i64 + offset * dtype.size() as i64;
                        CallArgument::placed(qualifier, element, "state_pool", bytes)
                    }
                },
                BufferKind::Output(k) => CallArgument::moved(qualifier, element, format!("output{k}"), offset),
                BufferKind::Constant(value) => {
                    let name = program.buffers[*buffer].values.first().map_or("", String::as_str);
                    let CallArgument { text, variable } = self.constant(name, value);
                    CallArgument { text: moved(text, offset), variable }
                }
                BufferKind::Persistent => {
                    let symbol = program.persistent_symbol(*buffer).unwrap_or_default();
                    CallArgument::own(moved(symbol.to_owned(), offset))
                }
                BufferKind::Moving => {
                    let (expression, variable) = self.variables.get(buffer).cloned().unwrap_or_default();
                    let text = moved(format!("({qualifier}{element} *){expression}"), offset);
                    CallArgument { text, variable: Some(variable) }
                }
                BufferKind::Arena => {
                    let bytes = program.layout.offsets[buffer] as i64 + offset * dtype.size() as i64;
                    CallArgument::in_arena(program, qualifier, element, bytes)
                }
            },
        }
    }
}

fn moved(base: String, offset: i64) -> String {
    if offset == 0 { base } else { format!("{base} + {offset}") }
}

/// Statements that tell the C compiler which variables aren't used.
pub(super) fn unused(names: &[String], used: &BTreeSet<String>, indent: &str) -> String {
    let mut text = String::new();
    for name in names.iter().filter(|name| !used.contains(*name)) {
        let _ = writeln!(text, "{indent}(void){name};");
    }
    text
}
