//! The arguments of kernels, as C expressions over the variables of the function that calls them.

use super::emitter::Emitter;
use crate::execution::WeightsAs;
use crate::graph::{Call, Place};
use crate::loops::spelling::c_type;
use crate::lower::homes::BufferKind;
use crate::lower::{Binding, Program};
use mlc_ir::{Attribute, Op};
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

    /// The symbol of a constant that is part of the code.
    pub(super) fn linked(&mut self, number: usize) -> String {
        let constant = &mut self.constants.list[number];
        constant.in_code = true;
        constant.symbol.clone()
    }

    /// The address that a parameter of a kernel gets: in the main function, or in a function of the graph.
    pub(super) fn argument(
        &mut self,
        program: &Program,
        (step, number): (usize, usize),
        binding: &Binding,
        call: Option<&Call>,
    ) -> CallArgument {
        if let Some(call) = call {
            match call.places[number] {
                Place::Own => {}
                Place::Nothing => return CallArgument::own("NULL".to_owned()),
                Place::Tensor(tensor) => return tensor_argument(tensor, binding),
                Place::Scratch(offset) => return scratch_argument(offset, binding),
            }
        }
        match binding {
            Binding::Packed { name, value } => self.constant(name, value),
            Binding::Scratch { .. } => scratch_argument(program.scratch[&(step, number)], binding),
            Binding::Buffer { buffer, offset, dtype, constant } => {
                let element = c_type(*dtype);
                let qualifier = if *constant { "const " } else { "" };
                match &program.buffers[*buffer].kind {
                    BufferKind::Input(k) => CallArgument::moved("const ", element, format!("input{k}"), *offset),
                    BufferKind::State(k) => CallArgument::own(moved(self.states[*k].symbol.clone(), *offset)),
                    BufferKind::Output(k) => CallArgument::moved(qualifier, element, format!("output{k}"), *offset),
                    BufferKind::Constant(node) => {
                        let node = program.graph.node(*node);
                        let Op::Constant(constant) = &node.op else { return CallArgument::own(String::new()) };
                        let CallArgument { text, variable } = self.constant(&node.name, &constant.value);
                        CallArgument { text: moved(text, *offset), variable }
                    }
                    BufferKind::Persistent(value) => {
                        let symbol = program.persistent_symbol(*value).unwrap_or_default();
                        CallArgument::own(moved(symbol.to_owned(), *offset))
                    }
                    BufferKind::Arena => {
                        let bytes = program.offsets[buffer] as i64 + offset * dtype.size() as i64;
                        CallArgument::placed(qualifier, element, "workspace", bytes)
                    }
                }
            }
        }
    }
}

fn moved(base: String, offset: i64) -> String {
    if offset == 0 { base } else { format!("{base} + {offset}") }
}

fn tensor_argument(tensor: usize, binding: &Binding) -> CallArgument {
    let (dtype, offset, qualifier) = match binding {
        Binding::Buffer { dtype, offset, constant, .. } => (*dtype, *offset, if *constant { "const " } else { "" }),
        Binding::Packed { value, .. } => (value.ty().dtype, 0, "const "),
        Binding::Scratch { dtype, .. } => (*dtype, 0, ""),
    };
    CallArgument::moved(qualifier, c_type(dtype), format!("tensor{tensor}"), offset)
}

fn scratch_argument(offset: usize, binding: &Binding) -> CallArgument {
    let element = if let Binding::Scratch { dtype, .. } = binding { c_type(*dtype) } else { "uint8_t" };
    CallArgument::placed("", element, "workspace", offset as i64)
}

/// Statements that tell the C compiler which variables aren't used.
pub(super) fn unused(names: &[String], used: &BTreeSet<String>, indent: &str) -> String {
    let mut text = String::new();
    for name in names.iter().filter(|name| !used.contains(*name)) {
        let _ = writeln!(text, "{indent}(void){name};");
    }
    text
}
