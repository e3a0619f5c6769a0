//! Runs schedules by themselves: each case is one kernel over arguments of random layouts, all kernels of a batch are one C
//! program, and what the program leaves in the buffers is compared with the evaluator.

use crate::common::SANITIZERS;
use mlc_codegen::Target;
use mlc_codegen::kernels::{self, Argument, Epilogue, KernelWriter, Schedule};
use mlc_codegen::loops::{Function, Holds, LoopBuilder, Overlaps, Parameter, Var, downwards, mentioned};
use mlc_codegen::lower::view::View;
use mlc_ir::ops::Map;
use mlc_ir::{Attribute, Generator, Op, Shape, Tensor, TensorType};

/// How a batch is compiled.
pub struct Build {
    /// The machine.
    pub target: Target,
    /// Options of the C compiler.
    pub flags: Vec<&'static str>,
    /// What is run of each case.
    pub which: Which,
}

impl Build {
    /// Whether the program stops at undefined behaviour.
    pub fn is_sanitized(&self) -> bool {
        SANITIZERS.iter().all(|flag| self.flags.contains(flag))
    }
}

/// What of a case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All schedules.
    All,
    /// Those that finish a tile of pixels before they begin the next one.
    ByPixels,
    /// All that can write the first result from its end to its start, so.
    Downwards,
}

/// Memory that a kernel gets: a view of it is a tensor.
#[derive(Clone)]
pub struct Memory {
    /// All elements, also those that the view doesn't show.
    pub elements: Tensor,
    /// Where the tensor's elements are.
    pub view: View,
}

impl Memory {
    /// The tensor that the view shows.
    pub fn tensor(&self) -> Tensor {
        let addresses = addresses(&self.view);
        self.elements.rearrange(TensorType::new(self.view.dtype, self.view.shape.clone()), |place| addresses[place])
    }
}

/// Addresses of a view's elements in row-major order.
pub fn addresses(view: &View) -> Vec<usize> {
    let mut list = vec![view.offset];
    for (&extent, &stride) in view.shape.iter().zip(&view.strides) {
        list = list.iter().flat_map(|base| (0..extent as i64).map(move |step| base + step * stride)).collect();
    }
    list.into_iter().map(|address| usize::try_from(address).unwrap()).collect()
}

/// One application of an operator.
pub struct Case {
    /// What the test is told when it fails.
    pub name: String,
    /// The operator; elementwise ones as `map`.
    pub op: Op,
    /// Operands, with the epilogue's.
    pub operands: Vec<Memory>,
    /// Which operands are constants.
    pub constants: Vec<bool>,
    /// Memory of the results before the kernel runs.
    pub results: Vec<Memory>,
    /// What the evaluator says.
    pub expected: Vec<Tensor>,
    /// The operand that the first result lies over.
    pub overwritten: Option<usize>,
}

/// How operands and results lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Row-major.
    Dense,
    /// Axes in any order, with gaps; operands also repeat elements.
    Any,
}

impl Case {
    /// A random case of an operator.
    pub fn new(op: Op, types: &[TensorType], layout: Layout, generator: &mut Generator) -> Case {
        let results = op.infer(types).unwrap_or_else(|error| panic!("{op:?} {types:?}: {error}"));
        let with_nan = generator.one_in(6);
        let operands: Vec<Memory> = types.iter().map(|ty| memory(ty, layout, true, with_nan, generator)).collect();
        let tensors: Vec<Tensor> = operands.iter().map(Memory::tensor).collect();
        let references: Vec<&Tensor> = tensors.iter().collect();
        let expected = op.evaluate(&references, &results).unwrap_or_else(|error| panic!("{op:?} {types:?}: {error}"));
        let results = results.iter().map(|ty| memory(ty, layout, false, false, generator)).collect();
        let constants = types.iter().map(|_| generator.one_in(2)).collect();
        let name = format!("{op:?} of {types:?}");
        let op = match op.expression(types) {
            Some(expression) => Map { expression }.into(),
            None => op,
        };
        Case { name, op, operands, constants, results, expected, overwritten: None }
    }
}

impl Case {
    /// The same with the first result over an operand, which isn't constant then.
    pub fn over(mut self, operand: usize) -> Case {
        self.results[0] = self.operands[operand].clone();
        self.constants[operand] = false;
        self.overwritten = Some(operand);
        self
    }
}

fn memory(ty: &TensorType, layout: Layout, operand: bool, with_nan: bool, generator: &mut Generator) -> Memory {
    let view = match layout {
        Layout::Dense => View::dense(ty.dtype, &ty.shape),
        Layout::Any => random_view(ty, operand, generator),
    };
    let size = addresses(&view).into_iter().max().map_or(0, |last| last + 1) + generator.range(0, 2);
    let buffer = TensorType::new(ty.dtype, [size]);
    let elements = generator.tensor(&buffer);
    if !with_nan || !ty.dtype.is_float() {
        return Memory { elements, view };
    }
    let spoil = |value| if generator.one_in(9) { f64::NAN } else { value };
    let values = elements.to_floats().into_iter().map(spoil).collect();
    Memory { elements: Tensor::from_floats(buffer, values), view }
}

fn random_view(ty: &TensorType, operand: bool, generator: &mut Generator) -> View {
    let rank = ty.rank();
    let mut order: Vec<usize> = (0..rank).collect();
    if generator.one_in(2) {
        (1..rank).rev().for_each(|axis| order.swap(axis, generator.range(0, axis)));
    }
    let mut padded: Vec<usize> = Vec::new();
    let (mut starts, mut sizes) = (Vec::new(), Vec::new());
    for &axis in &order {
        let (before, after) = if generator.one_in(2) { (0, 0) } else { (generator.range(0, 2), generator.range(0, 2)) };
        padded.push(ty.shape[axis] + before + after);
        starts.push(before);
        sizes.push(ty.shape[axis]);
    }
    let whole = View::dense(ty.dtype, &padded).slice(&starts, &sizes, &vec![1; rank]);
    let mut back = vec![0; rank];
    order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
    let mut view = whole.transpose(&back);
    for axis in 0..rank {
        if operand && generator.one_in(8) {
            let first: Vec<usize> = vec![0; rank];
            let mut one: Shape = ty.shape.clone();
            one[axis] = one[axis].min(1);
            view = view.slice(&first, &one, &vec![1; rank]).broadcast(&ty.shape);
        }
    }
    view
}

impl Built {
    /// The same with its loops downwards.
    pub fn downwards(self) -> Option<Built> {
        let parameters = self.function.parameters.iter().zip(&self.arguments);
        let result = parameters.filter(|(_, (_, _, role))| *role == Role::Result(0)).map(|(own, _)| own.var).next()?;
        Some(Built { function: downwards(&self.function, result)?, ..self })
    }
}

/// A kernel as a function, and what its parameters point at.
pub struct Built {
    /// The loop program.
    pub function: Function,
    /// Memory and first element of each parameter, in their order.
    pub arguments: Vec<(Memory, i64, Role)>,
}

impl Built {
    /// The parameters that don't share another's memory.
    pub fn own_memory(&self) -> impl Iterator<Item = &(Memory, i64, Role)> {
        self.arguments.iter().filter(|(_, _, role)| *role != Role::Overwritten)
    }
}

/// What a parameter is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It must not change.
    Constant,
    /// Result number k.
    Result(usize),
    /// An operand in the memory of the first result.
    Overwritten,
    /// Anything may be left there.
    Scratch,
}

/// A kernel that nothing has been written to: its anchor and its parameters.
struct Blank<'a> {
    anchor: Op,
    kernel: KernelWriter<'a>,
    list: Vec<(Var, Memory, i64, Role)>,
}

fn blank<'a>(case: &Case, target: &'a Target) -> Blank<'a> {
    let mut b = LoopBuilder::new();
    let mut list: Vec<(Var, Memory, i64, Role)> = Vec::new();
    let mut argument = |b: &mut LoopBuilder, name: &str, memory: &Memory, role: Role| {
        let holds = if matches!(role, Role::Constant | Role::Overwritten) { Holds::Operand } else { Holds::Result };
        let pointer = b.parameter(name, memory.view.dtype, holds);
        list.push((pointer, memory.clone(), memory.view.offset, role));
        Argument { pointer, view: View { offset: 0, ..memory.view.clone() }, constant: None, operand: None }
    };
    let mut operands: Vec<Argument> = Vec::new();
    for (index, memory) in case.operands.iter().enumerate() {
        let constant = case.constants[index].then(|| Attribute::from_tensor(&memory.tensor()));
        let role = if case.overwritten == Some(index) { Role::Overwritten } else { Role::Constant };
        let own = argument(&mut b, &format!("x{index}"), memory, role);
        operands.push(Argument { constant, operand: Some(index), ..own });
    }
    let results = (case.results.iter().enumerate())
        .map(|(index, memory)| argument(&mut b, &format!("y{index}"), memory, Role::Result(index)))
        .collect();
    let (anchor, epilogue) = match &case.op {
        Op::Kernel(kernel) => {
            let operands = operands.split_off(kernel.anchor_operands);
            ((*kernel.anchor).clone(), Some(Epilogue { expression: kernel.expression.clone(), operands }))
        }
        op => (op.clone(), None),
    };
    let kernel = KernelWriter {
        b,
        target,
        operands,
        results,
        epilogue,
        packed: Vec::new(),
        scratch: Vec::new(),
        scalar: false,
        halves: false,
        bounds: Vec::new(),
    };
    Blank { anchor, kernel, list }
}

/// The schedules of a case on a target.
pub fn schedules(case: &Case, target: &Target) -> Result<Vec<Schedule>, String> {
    let Blank { anchor, kernel, .. } = blank(case, target);
    kernels::schedules(&anchor, &kernel).map_err(|error| format!("{}: {}", case.name, error.message))
}

/// The operands that the first result may lie over when a case is computed by a schedule.
pub fn overwritable(case: &Case, schedule: &Schedule, target: &Target) -> Vec<usize> {
    let Blank { anchor, kernel, .. } = blank(case, target);
    kernels::overwritable(&anchor, schedule, &kernel).unwrap()
}

/// Writes a case by a schedule.
pub fn build(case: &Case, schedule: &Schedule, target: &Target) -> Result<Built, String> {
    let Blank { anchor, mut kernel, mut list } = blank(case, target);
    kernels::write(&anchor, schedule, &mut kernel).map_err(|error| format!("{}: {}", case.name, error.message))?;
    for packed in std::mem::take(&mut kernel.packed) {
        let elements = packed.value.values().unwrap().to_tensor();
        assert_eq!(elements.ty(), packed.value.ty(), "{}", case.name);
        let view = View::dense(elements.ty().dtype, elements.shape());
        list.push((packed.pointer, Memory { elements, view }, 0, Role::Constant));
    }
    for (pointer, bytes, dtype) in std::mem::take(&mut kernel.scratch) {
        let ty = TensorType::new(dtype, [bytes / dtype.size()]);
        let view = View::dense(dtype, &ty.shape);
        list.push((pointer, Memory { elements: Generator::new(7).tensor(&ty), view }, 0, Role::Scratch));
    }
    let (vars, body) = kernel.b.finish();
    let used = mentioned(&body);
    list.retain(|(var, ..)| used.contains(var));
    let restrict = case.overwritten.is_none();
    let overlaps = if restrict { Overlaps::Never } else { Overlaps::Alike };
    let parameters = list.iter().map(|&(var, ..)| Parameter { var, restrict, overlaps }).collect();
    let comment = vec![format!("{} by {schedule}", case.name)];
    let function = Function { name: "kernel_0".into(), comment, parameters, vars, body };
    let arguments = list.into_iter().map(|(_, memory, offset, role)| (memory, offset, role)).collect();
    Ok(Built { function, arguments })
}
