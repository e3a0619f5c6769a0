//! What a description says, checked.

use crate::parameter::Parameter;
use crate::program::{OffsetProgram, Program};
use crate::source::Place;

/// What an operator runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// Nothing: shapes and checks only.
    None,
    /// Any processor, by C code.
    Cpu,
    /// A device for which no code is generated.
    Device(&'static str),
}

impl Arch {
    /// All architectures by name.
    pub const ALL: [Arch; 6] = [
        Arch::None,
        Arch::Cpu,
        Arch::Device("cuda"),
        Arch::Device("cudnn"),
        Arch::Device("tensorrt"),
        Arch::Device("dpu"),
    ];

    /// Its name in descriptions.
    pub fn name(self) -> &'static str {
        match self {
            Arch::None => "none",
            Arch::Cpu => "cpu",
            Arch::Device(name) => name,
        }
    }

    /// Whether anything is done with its operators beyond reading them.
    pub fn is_supported(self) -> bool {
        !matches!(self, Arch::Device(_))
    }
}

/// C text of a phase that runs on the machine that the model is compiled for.
#[derive(Debug, Clone)]
pub struct Body {
    /// The text as it is pasted.
    pub text: String,
    /// The names in it.
    pub words: Vec<String>,
}

impl Body {
    /// Whether a name occurs in the text.
    pub fn mentions(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }
}

/// A tensor that goes into an operator.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its name in the description.
    pub name: String,
}

/// A tensor that comes out of an operator.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its name in the description.
    pub name: String,
    /// Number of the input whose memory it lies in.
    pub owner: Option<usize>,
    /// Whether it is computed once, before the first run.
    pub is_static: bool,
    /// Number of its type of memory.
    pub memory: u8,
    /// Number of the input whose memory it may overwrite, when that isn't used any more.
    pub overwrites: Option<usize>,
}

/// A member of the structure that an operator keeps between its phases.
#[derive(Debug, Clone)]
pub struct PrivateMember {
    /// Its type.
    pub ty: String,
    /// Its declarator: the name, perhaps with extents of an array.
    pub declarator: String,
}

/// A description of an operator.
#[derive(Debug, Clone)]
pub struct Description {
    /// The operator's type.
    pub optype: String,
    /// Who wrote it.
    pub author: String,
    /// What it runs on.
    pub arch: Arch,
    /// Tensors that go in, in order.
    pub inputs: Vec<Input>,
    /// Tensors that come out, in order.
    pub outputs: Vec<Output>,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// What the operator keeps between its phases.
    pub private: Vec<PrivateMember>,
    /// What is done once, before the first run.
    pub static_run: Option<Body>,
    /// What is done at each run.
    pub run: Option<Body>,
    /// What is done at the end.
    pub post_run: Option<Body>,
    /// Whether two operators of the same operands and parameters are one.
    pub pure: bool,
    /// To what multiple of bytes its tensors and its scratch memory are aligned: a power of two; 1 for what the elements need.
    pub alignment: usize,
    pub(crate) place: Place,
    pub(crate) program: Program,
    pub(crate) offset: Option<OffsetProgram>,
}

impl Description {
    /// Whether it asks for scratch memory.
    pub(crate) fn has_workspace(&self) -> bool {
        self.program.workspace.is_some()
    }
}
