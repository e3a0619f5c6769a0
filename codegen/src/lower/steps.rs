//! The parts of a legal graph over the homes of its values, in the order of the graph.

use super::block::Block;
use super::exchange::{Copies, needs_copy};
use super::homes::{BufferId, BufferKind, Home, Homes, moved};
use super::maker::{Item, Lower, Maker};
use super::part::{Binding, Part, ResultPlace, Routine, Step};
use super::roles::{is_computed, is_view};
use super::sharing::{Sharing, share};
use super::view::View;
use crate::choice::{Choice, Chooser};
use crate::kernels::{self, Argument, Epilogue, KernelWriter};
use crate::loops::{self, Function, Holds, LoopBuilder, Overlaps, Parameter, Var};
use crate::names::Names;
use crate::target::Target;
use mlc_ir::folding;
use mlc_ir::ops::{Map, Pad, PadMode, Slice};
use mlc_ir::scalar::Expression;
use mlc_ir::{Attribute, Code, DType, Diagnostic, Graph, Location, NodeId, Objective, Op, TensorType, Value};
use std::rc::Rc;

/// Makes the parts of a legal graph, of which the nodes of each block become a stripe; adds the buffers of outputs that must be copied, and
/// gives those of them that are sent, by number. `lower_body` lowers the bodies of loops.
///
/// # Errors
/// All nodes that the target can't run.
pub fn steps(
    graph: &Graph,
    blocks: &[Block],
    homes: &mut Homes,
    chooser: &mut Chooser,
    names: &mut Names,
    lower_body: Lower,
) -> Result<(Vec<Item>, Copies), Vec<Diagnostic>> {
    let target = &*Rc::clone(&chooser.target);
    let (items, errors) = (Vec::new(), Vec::new());
    let mut maker = Maker { graph, target, chooser, names, items, errors, lower_body };
    let blocks: Vec<(Vec<NodeId>, &Block)> = blocks.iter().map(|block| (block.found(graph), block)).collect();
    for id in graph.topological_order() {
        match blocks.iter().find(|(nodes, _)| nodes.contains(&id)) {
            Some((nodes, block)) if nodes.last() == Some(&id) => maker.stripe(homes, nodes, block),
            Some(_) => {}
            None => maker.node(homes, id),
        }
    }
    maker.overlay_patches(homes, &blocks);
    for (number, output) in graph.open_outputs().into_iter().enumerate() {
        let output = &graph.outputs()[output];
        if !homes.is_output(output.value, number) {
            let ty = graph.ty(output.value);
            let buffer = homes.buffer(BufferKind::Output(number), ty.bytes());
            homes.buffers[buffer].values.push(output.name.to_string());
            let target = (buffer, View::dense(ty.dtype, &ty.shape));
            let source = homes.view(output.value).clone();
            maker.copy(output.value.node, "copy", output.value, &source, &target);
        }
    }
    let copies = maker.copy_messages(homes);
    maker.keep_states(homes);
    if maker.errors.is_empty() { Ok((maker.items, copies)) } else { Err(maker.errors) }
}

/// A computed node, or some rows of it.
pub(super) struct Computation<'a> {
    /// What is computed.
    pub op: &'a Op,
    /// Where the operands are, each with the value of the graph that it is, or of which it is some rows.
    pub operands: Vec<(Home, Option<Value>)>,
    /// Where the results are to be.
    pub results: Vec<Home>,
    /// What the result may overwrite.
    pub overlap: Overlap,
}

/// Which operands a result may lie over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// None: they are needed again.
    None,
    /// Those that die with it, where the schedule allows it.
    Dying,
    /// The same, but exactly or not at all.
    InPlace,
    /// The last one, which is where the result is.
    Last,
}

impl Maker<'_> {
    fn node(&mut self, homes: &mut Homes, id: NodeId) {
        let node = self.graph.node(id);
        let value = Value::from(id);
        let operands = self.graph.operands(id);
        match &node.op {
            op if is_view(op) && homes.is_copied(value) => self.movement(homes, id, &operands[0], op),
            Op::Concat(concat) => {
                let (buffer, whole) = homes.view(value).clone();
                let mut start = 0;
                for part in operands {
                    let shape = &self.graph.ty(part).shape;
                    if !homes.is_inside(part, value) {
                        let mut starts = vec![0; whole.rank()];
                        starts[concat.axis] = start;
                        let place = whole.slice(&starts, shape, &vec![1; whole.rank()]);
                        let source = homes.view(part).clone();
                        self.copy(id, "concat", part, &source, &(buffer, place));
                    }
                    start += shape[concat.axis];
                }
            }
            Op::Pad(pad) if pad.mode == PadMode::Constant => {
                let whole = homes.view(value).clone();
                if !homes.is_inside(operands[0], value) {
                    let inside = (whole.0, whole.1.interior(&pad.pads));
                    let source = homes.view(operands[0]).clone();
                    self.copy(id, "pad", operands[0], &source, &inside);
                }
                self.border(id, pad, &whole);
            }
            Op::Loop(op) => self.repeat(homes, id, op),
            Op::Extern(op) => self.call(homes, id, op),
            op if is_computed(op) => self.computed(homes, id, &operands),
            _ => {}
        }
    }

    /// Copies what can't be sent from where it lies; gives the copies' buffers by output.
    fn copy_messages(&mut self, homes: &mut Homes) -> Copies {
        let mut copies = Copies::new();
        for number in self.graph.messages().iter().filter_map(|message| message.transfer.output()) {
            let output = &self.graph.outputs()[number];
            if copies.contains_key(&number) || !needs_copy(homes, output.value) {
                continue;
            }
            let ty = self.graph.ty(output.value);
            let buffer = homes.buffer(BufferKind::Arena, ty.bytes());
            homes.buffers[buffer].values.push(output.name.to_string());
            let source = homes.view(output.value).clone();
            let target = (buffer, View::dense(ty.dtype, &ty.shape));
            self.copy(output.value.node, "message", output.value, &source, &target);
            copies.insert(number, buffer);
        }
        copies
    }

    /// Copies what the next run gets into the states, after everything that reads them: first aside what lies in a state, which
    /// may be overwritten before it is copied.
    fn keep_states(&mut self, homes: &mut Homes) {
        let mut copies = Vec::new();
        for (number, state) in self.graph.states.iter().enumerate() {
            let value = self.graph.outputs()[state.output].value;
            let ty = self.graph.ty(value);
            let dense = View::dense(ty.dtype, &ty.shape);
            let mut source = homes.view(value).clone();
            let target = (homes.state(number, ty.bytes(), &state.name), dense.clone());
            if source == target {
                continue;
            }
            if matches!(homes.buffers[source.0].kind, BufferKind::State(_)) {
                let aside = (homes.buffer(BufferKind::Arena, ty.bytes()), dense);
                homes.buffers[aside.0].values.push(state.name.to_string());
                self.copy(value.node, "aside", value, &source, &aside);
                source = aside;
            }
            copies.push((value, source, target));
        }
        for (value, source, target) in copies {
            self.copy(value.node, "keep", value, &source, &target);
        }
    }

    fn movement(&mut self, homes: &Homes, id: NodeId, operand: &Value, op: &Op) {
        let result = homes.view(id.into()).clone();
        let (buffer, source) = homes.view(*operand).clone();
        let view = match op {
            Op::Reshape(_) => result.1.reshape(&source.shape).map(|target| (source, target)),
            _ => moved(op, &source, &result.1.shape).map(|source| (source, result.1)),
        };
        match view {
            Some((source, target)) => {
                self.copy(id, "copy", id.into(), &(buffer, source), &(result.0, target));
            }
            None => self.errors.push(self.error(id, "the elements of this reshape can't be addressed")),
        }
    }

    fn error(&self, id: NodeId, message: &str) -> Diagnostic {
        let node = self.graph.node(id);
        let place = Location::default().at_operator(node.op.name(), node.name.to_string());
        Diagnostic::error(Code::TargetLimit, place, message)
    }

    /// A step that moves the elements of a value.
    pub(super) fn copy(&mut self, id: NodeId, what: &str, value: Value, source: &Home, target: &Home) {
        let mut made = Making::new(self.target);
        let operand = made.bindings.argument(&mut made.kernel, "x", source, true, None);
        made.kernel.operands.push(operand);
        let result = made.bindings.argument(&mut made.kernel, "y", target, false, None);
        made.values.push((value, result.pointer, result.view.clone()));
        made.kernel.results.push(result);
        match self.write(&mut made, &Map { expression: Expression::operand(0) }.into(), id) {
            Ok(()) => self.push(made, id, what, 0, Sharing::default()),
            Err(error) => self.errors.push(error),
        }
    }

    /// A step that fills the border around what is padded.
    fn border(&mut self, id: NodeId, pad: &Pad, whole: &Home) {
        let mut made = Making::new(self.target);
        let result = made.bindings.argument(&mut made.kernel, "y", whole, false, None);
        made.kernel.results.push(result);
        kernels::fill_border(&mut made.kernel, &pad.pads, pad.value);
        self.push(made, id, "border", 0, Sharing::default());
    }

    fn computed(&mut self, homes: &Homes, id: NodeId, operands: &[Value]) {
        let node = self.graph.node(id);
        if self.chooser.leaves_out(&node.name) {
            return;
        }
        let results = (0..node.results.len()).map(|slot| homes.view(Value { node: id, slot: slot as u32 }).clone());
        let operands = operands.iter().map(|&operand| (homes.view(operand).clone(), Some(operand))).collect();
        let results = results.collect();
        self.compute(homes, id, &Computation { op: &node.op, operands, results, overlap: Overlap::Dying });
    }

    /// A step that computes a node, or some rows of it.
    pub(super) fn compute(&mut self, homes: &Homes, id: NodeId, computation: &Computation<'_>) {
        let Computation { op, operands, results, overlap } = computation;
        let node = self.graph.node(id);
        let ty = |(_, view): &Home| TensorType::new(view.dtype, &view.shape);
        let types: Vec<TensorType> = operands.iter().map(|(home, _)| ty(home)).collect();
        let (anchor, own, expression) = match op {
            Op::Kernel(kernel) => ((*kernel.anchor).clone(), kernel.anchor_operands, Some(kernel.expression.clone())),
            op => match op.expression(&types) {
                Some(expression) => (Map { expression }.into(), operands.len(), None),
                None => (Op::clone(op), operands.len(), None),
            },
        };
        let mut made = Making::new(self.target);
        let names = operand_names(&anchor, own, operands.len());
        let mut arguments: Vec<Argument> = Vec::new();
        for (index, (home, value)) in operands.iter().enumerate() {
            let mut argument = made.bindings.argument(&mut made.kernel, &names[index], home, true, Some(index));
            if self.target.half_pairs && is_at_words(homes, home) {
                made.kernel.b.pair_halves(argument.pointer);
            }
            argument.constant = value.and_then(|value| self.constant_values(value)).and_then(|all| first(all, &home.1));
            arguments.push(argument);
        }
        let extras = arguments.split_off(own);
        made.kernel.operands = arguments;
        for (slot, home) in results.iter().enumerate() {
            let name = if results.len() == 1 { "y".to_owned() } else { format!("y{slot}") };
            let argument = made.bindings.argument(&mut made.kernel, &name, home, false, None);
            let value = Value { node: id, slot: slot as u32 };
            made.values.push((value, argument.pointer, argument.view.clone()));
            made.kernel.results.push(argument);
        }
        made.kernel.epilogue = expression.map(|expression| Epilogue { expression, operands: extras });
        let before = made.kernel.clone();
        if let Err(mut error) = self.write(&mut made, &anchor, id) {
            error.location = Location::default().at_operator(node.op.name(), node.name.to_string());
            return self.errors.push(error);
        }
        let mut candidates = Vec::new();
        let in_place = match overlap {
            Overlap::None => Vec::new(),
            Overlap::Dying | Overlap::InPlace => {
                if *overlap == Overlap::Dying {
                    candidates = self.candidates(homes, operands, &results[0]);
                }
                let overwritable = self.overwritable(&anchor, &made.choice, &before, own);
                in_place(homes, operands, &overwritable, &results[0])
            }
            Overlap::Last => vec![(results[0].0, results[0].0)],
        };
        let what = if own < operands.len() || !matches!(op, Op::Kernel(_)) {
            format!("{}{}", anchor.name(), if matches!(op, Op::Kernel(_)) { " with epilogue" } else { "" })
        } else {
            format!("{} with epilogue", anchor.name())
        };
        let results: Vec<TensorType> = results.iter().map(ty).collect();
        let macs = op.work(&types, &results).macs;
        self.push(made, id, &what, macs, Sharing { in_place, candidates });
    }

    /// Numbers of the operands that the result may lie over: all that the schedule allows where memory counts, or where routines do the
    /// work. Elsewhere those of elementwise arithmetic alone, `own` operands being the operator's: C compilers make more of
    /// pointers that nothing else writes through.
    fn overwritable(&self, anchor: &Op, choice: &Choice, kernel: &KernelWriter<'_>, own: usize) -> Vec<usize> {
        let all = own + kernel.epilogue.as_ref().map_or(0, |epilogue| epilogue.operands.len());
        let elementwise = || (if matches!(anchor, Op::Map(_)) { 0 } else { own }..all).collect();
        match choice.taken() {
            Some(taken)
                if self.target.objective == Objective::Ram || kernels::is_by_routines(anchor, &taken.schedule) =>
            {
                kernels::overwritable(anchor, &taken.schedule, kernel).unwrap_or_default()
            }
            _ => elementwise(),
        }
    }

    /// Writes a kernel by the schedule that is chosen, and binds what that asks for.
    fn write(&mut self, made: &mut Making<'_>, anchor: &Op, id: NodeId) -> Result<(), Diagnostic> {
        let kernel = &mut made.kernel;
        made.choice = self.chooser.choose(&self.graph.node(id).name, anchor, kernel)?;
        if let Some(taken) = made.choice.taken() {
            kernels::write(anchor, &taken.schedule, kernel)?;
        }
        let operands = self.graph.operands(id);
        for packed in std::mem::take(&mut kernel.packed) {
            let operand = packed.operand.and_then(|operand| operands.get(operand));
            let source = operand.map_or(id, |operand| operand.node);
            let name = self.graph.node(source).name.to_string();
            made.bindings.list.push((packed.pointer, Binding::Packed { name, value: packed.value }));
        }
        for (pointer, bytes, dtype) in std::mem::take(&mut kernel.scratch) {
            made.bindings.list.push((pointer, Binding::Scratch { bytes, dtype, alignment: 1 }));
        }
        Ok(())
    }

    /// The values of a constant behind views, in the order of the view.
    pub(super) fn constant_values(&self, value: Value) -> Option<Attribute> {
        let node = self.graph.node(value.node);
        match &node.op {
            Op::Constant(constant) => Some(constant.value.clone()),
            op if is_view(op) => {
                let inner = self.constant_values(self.graph.operands(value.node)[0])?;
                folding::compute(op, &[&inner]).ok()?.into_iter().next()
            }
            _ => None,
        }
    }

    fn push(&mut self, made: Making<'_>, id: NodeId, what: &str, macs: u64, sharing: Sharing) {
        let node = self.graph.node(id);
        let (vars, body) = made.kernel.b.finish();
        if body.is_empty() {
            return;
        }
        let used = loops::mentioned(&body);
        let (mut parameters, mut bindings, mut results) = (Vec::new(), Vec::new(), Vec::new());
        let mut list = made.bindings.list;
        list.sort_by_key(|(var, binding)| {
            (matches!(binding, Binding::Buffer { constant: false, .. } | Binding::Scratch { .. }), *var)
        });
        for (var, binding) in list {
            if used.contains(&var) {
                parameters.push(Parameter { var, restrict: true, overlaps: Overlaps::Never });
                let values = made.values.iter().filter(|(_, pointer, _)| *pointer == var);
                results.extend(values.map(|(value, _, view)| ResultPlace {
                    node: self.graph.node(value.node).name.to_string(),
                    slot: value.slot as usize,
                    binding: bindings.len(),
                    view: view.clone(),
                }));
                bindings.push(binding);
            }
        }
        let moves = !is_computed(&node.op);
        let base =
            if moves && !node.name.contains(what) { format!("{}_{what}", node.name) } else { node.name.to_string() };
        let mut function =
            Function { name: self.names.symbol(&base), comment: self.comment(id, what, macs), parameters, vars, body };
        let Sharing { in_place, candidates } = sharing;
        share(&mut function, &bindings, &in_place, &[]);
        let overlays = self.overlays(&function, &bindings, &made.choice, &candidates);
        share(&mut function, &bindings, &in_place, &overlays);
        let routine = Routine::Kernel(function);
        let mut label = self.label(id, what.to_owned(), macs);
        if moves {
            let copied = |view: &View| (view.elements() * view.dtype.size()) as u64;
            label.bytes = 2 * made.values.iter().map(|(_, _, view)| copied(view)).sum::<u64>();
        }
        let step = Step { routine, bindings, label, results, in_place, overlays, choice: made.choice };
        self.push_part(id, Part::Step(Box::new(step)));
    }
}

/// The result's buffer with those of some operands, by number, that lie exactly as the result does and are read nowhere else in
/// the step.
fn in_place(
    homes: &Homes,
    operands: &[(Home, Option<Value>)],
    overwritable: &[usize],
    result: &Home,
) -> Vec<(BufferId, BufferId)> {
    let buffers: Vec<BufferId> = operands.iter().map(|(home, _)| home.0).collect();
    let lies_alike = |number: &usize| operands[*number].0.1 == result.1;
    let candidates = overwritable.iter().copied().filter(lies_alike);
    candidates.filter_map(|number| homes.overwritten(&buffers, number, result.0)).collect()
}

/// The values of a constant that a view shows: all of them, or its first ones along some axes.
fn first(all: Attribute, view: &View) -> Option<Attribute> {
    if all.ty().shape == view.shape {
        return Some(all);
    }
    let rank = view.rank();
    let slice = Slice { starts: vec![0; rank], sizes: view.shape.to_vec(), steps: vec![1; rank] };
    folding::compute(&slice.into(), &[&all]).ok()?.into_iter().next()
}

/// Names of the operands in C: by role where the operator gives roles; the epilogue's operands as its expression names them.
fn operand_names(anchor: &Op, own: usize, count: usize) -> Vec<String> {
    let roles = anchor.roles();
    let name = |index: usize| match roles.get(index) {
        _ if index >= own => format!("x{}", index - own + 1),
        Some(role) => (*role).to_owned(),
        None => format!("x{index}"),
    };
    (0..count).map(name).collect()
}

/// Whether the elements of a home are halves whose first is at a multiple of words, wherever the buffer is: what the caller gives may be
/// a slice in a loop's body.
fn is_at_words(homes: &Homes, (buffer, view): &Home) -> bool {
    let is_aligned = matches!(homes.buffers[*buffer].kind, BufferKind::Arena | BufferKind::Constant(_));
    view.dtype == DType::F16 && view.offset % 2 == 0 && is_aligned
}

#[derive(Default)]
struct Bindings {
    list: Vec<(Var, Binding)>,
}

impl Bindings {
    fn argument(
        &mut self,
        kernel: &mut KernelWriter<'_>,
        name: &str,
        home: &Home,
        constant: bool,
        operand: Option<usize>,
    ) -> Argument {
        let (buffer, view) = home;
        let pointer = kernel.b.parameter(name, view.dtype, if constant { Holds::Operand } else { Holds::Result });
        let binding = Binding::Buffer { buffer: *buffer, offset: view.offset, dtype: view.dtype, constant };
        self.list.push((pointer, binding));
        Argument { pointer, view: View { offset: 0, ..view.clone() }, constant: None, operand }
    }
}

struct Making<'a> {
    kernel: KernelWriter<'a>,
    bindings: Bindings,
    /// What it computes, by the pointers that it is written through.
    values: Vec<(Value, Var, View)>,
    choice: Choice,
}

impl<'a> Making<'a> {
    fn new(target: &'a Target) -> Self {
        let kernel = KernelWriter {
            b: LoopBuilder::new(),
            target,
            operands: Vec::new(),
            results: Vec::new(),
            epilogue: None,
            packed: Vec::new(),
            scratch: Vec::new(),
            scalar: false,
            halves: false,
            bounds: Vec::new(),
        };
        Making { kernel, bindings: Bindings::default(), values: Vec::new(), choice: Choice::default() }
    }
}
