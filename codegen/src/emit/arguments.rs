//! The arguments of kernels, as C expressions.

use super::Emitter;
use crate::execution::WeightsAs;
use crate::graph::{Call, Place};
use crate::loops::spelling::c_type;
use crate::lower::Program;
use crate::lower::homes::BufferKind;
use crate::lower::steps::Binding;
use mlc_ir::{Attribute, Op};

impl Emitter {
    /// The address of a constant. Equal ones share it.
    pub(super) fn constant(&mut self, name: &str, value: &Attribute) -> String {
        let number = self.constants.number(&mut self.names, name, value);
        if self.execution.weights == WeightsAs::Binary && !self.in_code_only {
            let offset = self.constants.pooled(number, self.alignment);
            let element = c_type(value.ty().dtype);
            return format!("(const {element} *)(const void *)(constants + {offset})");
        }
        self.linked(number)
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
    ) -> String {
        if let Some(call) = call {
            match call.places[number] {
                Place::Own => {}
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
                    BufferKind::Input(k) => moved(format!("(const {element} *)input{k}"), *offset),
                    BufferKind::State(k) => moved(self.states[*k].symbol.clone(), *offset),
                    BufferKind::Output(k) => moved(format!("({qualifier}{element} *)output{k}"), *offset),
                    BufferKind::Constant(node) => {
                        let node = program.graph.node(*node);
                        let Op::Constant(constant) = &node.op else { return String::new() };
                        moved(self.constant(&node.name, &constant.value), *offset)
                    }
                    BufferKind::Arena => {
                        let start = program.offsets[buffer];
                        let bytes = start as i64 + offset * dtype.size() as i64;
                        let address = if bytes == 0 { "workspace".into() } else { format!("(workspace + {bytes})") };
                        format!("({qualifier}{element} *){address}")
                    }
                }
            }
        }
    }
}

fn moved(base: String, offset: i64) -> String {
    if offset == 0 { base } else { format!("{base} + {offset}") }
}

fn tensor_argument(tensor: usize, binding: &Binding) -> String {
    let (dtype, offset, qualifier) = match binding {
        Binding::Buffer { dtype, offset, constant, .. } => (*dtype, *offset, if *constant { "const " } else { "" }),
        Binding::Packed { value, .. } => (value.ty().dtype, 0, "const "),
        Binding::Scratch { dtype, .. } => (*dtype, 0, ""),
    };
    moved(format!("({qualifier}{} *)tensor{tensor}", c_type(dtype)), offset)
}

fn scratch_argument(offset: usize, binding: &Binding) -> String {
    let element = if let Binding::Scratch { dtype, .. } = binding { c_type(*dtype) } else { "uint8_t" };
    format!("({element} *)(workspace + {offset})")
}
