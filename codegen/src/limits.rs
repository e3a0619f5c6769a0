//! Limits of a machine's memories, and what to say when a model exceeds them.
//!
//! Everything that is counted here is known exactly at compile time. The code's own size and its stack aren't: a C compiler
//! decides them, and what has built the code measures them.

use crate::module::{Module, PackedConstant};
use mlc_ir::{Code, Diagnostic, Location};

/// How much memory a model may take in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// RAM: working memory, states, inputs and outputs.
    pub ram_bytes: Option<usize>,
    /// Flash: constants and code.
    pub flash_bytes: Option<usize>,
}

/// How many contributors a message names.
const NAMED: usize = 6;

/// Something that takes memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contributor {
    /// How much.
    pub bytes: usize,
    /// What it is.
    pub what: String,
}

impl Limits {
    /// Checks what is known of a program's models before they are built: all of their RAM but the stack, and their constants.
    ///
    /// # Errors
    /// `MLC0402` for each memory that the models exceed together; the largest contributors are named.
    pub fn check(&self, modules: &[&Module]) -> Result<(), Vec<Diagnostic>> {
        let needed = |bytes: fn(&Module) -> usize| modules.iter().map(|module| bytes(module)).sum();
        let named = |contributors: fn(&Module) -> Vec<Contributor>| {
            let of_model = |module: &&Module| {
                let owner =
                    if modules.len() > 1 { format!(" of model '{}'", module.model_name) } else { String::new() };
                let own = contributors(module).into_iter();
                own.map(move |contributor| Contributor { what: contributor.what + &owner, ..contributor })
            };
            modules.iter().flat_map(of_model).collect()
        };
        let ram = self.ram_bytes.and_then(|limit| {
            let fault = exceeded("RAM", needed(ram_bytes), limit, named(ram_contributors))?;
            let fault = modules.iter().fold(fault, |fault, module| fault.with_note(fullest(module)));
            Some(fault.with_help(
                "working memory, states, inputs and outputs are counted; the stack isn't: 'mlc run --on' measures it",
            ))
        });
        let flash = self.flash_bytes.and_then(|limit| {
            let fault = exceeded("flash", needed(Module::constants_bytes), limit, named(constants))?;
            Some(fault.with_help("only constants are counted here; the code comes on top: 'mlc run --on' measures it"))
        });
        let faults: Vec<Diagnostic> = ram.into_iter().chain(flash).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

/// Bytes of RAM that a module takes but for the stack.
pub fn ram_bytes(module: &Module) -> usize {
    module.workspace_bytes() + module.state_bytes() + module.io_bytes()
}

fn constants(module: &Module) -> Vec<Contributor> {
    let contributor = |constant: &PackedConstant| Contributor {
        bytes: constant.value.ty().bytes(),
        what: format!("constant '{}'", constant.name),
    };
    module.constants.iter().map(contributor).collect()
}

/// The error that a memory is exceeded, if it is.
fn exceeded(memory: &str, needed: usize, limit: usize, mut contributors: Vec<Contributor>) -> Option<Diagnostic> {
    let excess = needed.checked_sub(limit).filter(|&excess| excess > 0)?;
    let message = format!("{needed} bytes of {memory} are needed, {excess} more than the limit of {limit}");
    contributors.sort_by_key(|contributor| std::cmp::Reverse(contributor.bytes));
    let named: Vec<String> = contributors
        .iter()
        .filter(|contributor| contributor.bytes > 0)
        .take(NAMED)
        .map(|contributor| format!("{:>10} bytes: {}", contributor.bytes, contributor.what))
        .collect();
    let fault = Diagnostic::error(Code::MemoryExceeded, Location::default(), message);
    Some(fault.with_note(format!("the largest contributors are\n{}", named.join("\n"))))
}

/// The kernel at which most memory is in use, and how much that is: a step's number and bytes.
fn fullest_step(module: &Module) -> (usize, usize) {
    let buffers = &module.plan.buffers;
    let live = |time: usize| {
        let live = buffers.iter().filter(|buffer| buffer.first <= time && time <= buffer.last);
        live.map(|buffer| buffer.bytes).sum::<usize>()
    };
    let steps = buffers.iter().map(|buffer| (buffer.first, live(buffer.first)));
    steps.max_by_key(|&(step, bytes)| (bytes, std::cmp::Reverse(step))).unwrap_or_default()
}

fn fullest(module: &Module) -> String {
    let (step, bytes) = fullest_step(module);
    let node = module.kernels.get(step).map_or("nothing", |kernel| &kernel.node);
    let arena = module.workspace_bytes();
    let model = &module.model_name;
    format!("the working memory of '{model}' is {arena} bytes long, and fullest while '{node}' runs: {bytes} bytes")
}

/// What takes RAM when it is fullest.
pub fn ram_contributors(module: &Module) -> Vec<Contributor> {
    let (step, _) = fullest_step(module);
    let live = module.plan.buffers.iter().filter(|buffer| buffer.first <= step && step <= buffer.last);
    let mut contributors: Vec<Contributor> = live
        .map(|buffer| {
            let more = buffer.values.len().saturating_sub(1);
            let others = if more > 0 { format!(" and {more} more in one buffer") } else { String::new() };
            let name = buffer.values.first().map_or("scratch", String::as_str);
            Contributor { bytes: buffer.bytes, what: format!("'{name}'{others}") }
        })
        .collect();
    contributors.extend(
        module
            .states
            .iter()
            .map(|state| Contributor { bytes: state.initial.ty().bytes(), what: format!("state '{}'", state.name) }),
    );
    for (kind, ports) in [("input", &module.inputs), ("output", &module.outputs)] {
        contributors.extend(
            ports.iter().map(|port| Contributor { bytes: port.ty.bytes(), what: format!("{kind} '{}'", port.name) }),
        );
    }
    if let Some(rows) = module.fed_rows() {
        let whole = format!("input '{}'", rows.port.name);
        for contributor in contributors.iter_mut().filter(|contributor| contributor.what == whole) {
            *contributor = Contributor { bytes: rows.row_bytes, what: format!("a row of {whole}") };
        }
    }
    contributors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice;
    use crate::module::{ConstantForm, KernelSummary, MemoryPlan, PlannedBuffer, Port};
    use crate::price::Price;
    use mlc_ir::{Attribute, DType, TensorType};

    fn buffer(name: &str, bytes: usize, first: usize, last: usize) -> PlannedBuffer {
        PlannedBuffer { values: vec![name.into()], offset: 0, bytes, first, last }
    }

    fn module() -> Module {
        let kernel = |node: &str| KernelSummary {
            function: node.into(),
            node: node.into(),
            operator: "map".into(),
            origins: vec![],
            inside: 0,
            macs: 0,
            bytes: 0,
            workspace_bytes: 0,
            results: Vec::new(),
            laid_over: Vec::new(),
            parallel_turns: 1,
            split: None,
            branch: None,
            price: Price::default(),
            choice: Choice::default(),
        };
        let port = |name: &str| Port {
            name: name.into(),
            field: name.into(),
            ty: TensorType::new(DType::F32, [10]),
            quantization: None,
        };
        Module {
            model_name: "m".into(),
            inputs: vec![port("x")],
            outputs: vec![port("y")],
            kernels: vec![kernel("first"), kernel("second"), kernel("third")],
            considered: crate::lower::Considered::default(),
            plan: MemoryPlan {
                arena_bytes: 704,
                alignment: 16,
                buffers: vec![buffer("a", 300, 0, 1), buffer("b", 400, 1, 2), buffer("c", 50, 2, 2)],
                liveness_bound_bytes: 700,
                pools: Vec::new(),
            },
            constants: ["w", "bias"]
                .into_iter()
                .zip([3, 1])
                .map(|(name, count)| PackedConstant {
                    symbol: name.into(),
                    name: name.into(),
                    value: Attribute::from_f32(&[count], &vec![0.0; count]).unwrap(),
                    form: ConstantForm::Numbers,
                    in_code: true,
                    pool_offset: None,
                })
                .collect(),
            ..Module::default()
        }
    }

    #[test]
    fn what_fits_is_no_fault() {
        assert_eq!(Limits::default().check(&[&module()]), Ok(()));
        assert_eq!(Limits { ram_bytes: Some(784), flash_bytes: Some(16) }.check(&[&module()]), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_largest_parts() {
        let faults = Limits { ram_bytes: Some(700), flash_bytes: Some(10) }.check(&[&module()]).unwrap_err();
        assert_eq!(faults.len(), 2);
        assert!(faults.iter().all(|fault| fault.code == Code::MemoryExceeded));
        assert_eq!(faults[0].message, "784 bytes of RAM are needed, 84 more than the limit of 700");
        let notes = faults[0].notes.join("\n");
        let order: Vec<Option<usize>> =
            ["400 bytes: 'b'", "300 bytes: 'a'", "40 bytes: input 'x'"].iter().map(|text| notes.find(text)).collect();
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{notes}");
        assert!(notes.contains("fullest while 'second' runs: 700 bytes") && !notes.contains("'c'"), "{notes}");
        assert_eq!(faults[1].message, "16 bytes of flash are needed, 6 more than the limit of 10");
        assert!(faults[1].notes[0].contains("12 bytes: constant 'w'"), "{:?}", faults[1].notes);
    }

    #[test]
    fn several_models_share_the_memory() {
        let second = Module { model_name: "other".into(), ..module() };
        let limits = Limits { ram_bytes: Some(1567), flash_bytes: Some(32) };
        let faults = limits.check(&[&module(), &second]).unwrap_err();
        assert_eq!(faults[0].message, "1568 bytes of RAM are needed, 1 more than the limit of 1567");
        assert!(faults.len() == 1 && faults[0].notes[0].contains("'b' of model 'other'"), "{faults:?}");
    }
}
