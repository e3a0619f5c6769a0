//! `src/<model>.json`: our own description of a module.

use super::metadata::to_json;
use crate::execution::Execution;
use crate::lower::Considered;
use crate::module::{KeptState, KernelSummary, MemoryPlan, Module, Port, RankSummary, StatePlace};
use crate::price::Price;
use crate::target::{FloatingPoint, Target};
use mlc_ir::{Objective, Quantization};
use serde::{Deserialize, Serialize};

/// What the prices say of all of a module's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    /// Unit of times: `cycles` or `instructions`.
    pub unit: String,
    /// Bytes of the kernels' code; kernels that do the same have it once.
    pub code_bytes: u64,
}

/// What the prices say of a kernel, in all turns of the loops around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredictedKernel {
    /// Its time, in [`Predicted::unit`].
    pub time: u64,
    /// Bytes of its code.
    pub code_bytes: u64,
    /// Bytes of its constants, in the layouts in which it reads them.
    pub constant_bytes: u64,
}

/// `src/<model>.json`: what `metadata.json` has no place for. The interface in order, with C names and shapes; the kernels;
/// the memory plan, whose kernel numbers refer to them.
pub(super) fn description(module: &Module, target: &Target) -> String {
    #[derive(Serialize)]
    struct Description<'a> {
        /// What was looked at besides the program of this code, if there was a choice.
        #[serde(skip_serializing_if = "Option::is_none")]
        considered: Option<&'a Considered>,
        execution: Execution,
        floating_point: FloatingPoint,
        inputs: Vec<PortDescription<'a>>,
        kernels: Vec<KernelDescription<'a>>,
        model_name: &'a str,
        objective: Objective,
        outputs: Vec<PortDescription<'a>>,
        plan: &'a MemoryPlan,
        predicted: Predicted,
        #[serde(skip_serializing_if = "Option::is_none")]
        ranks: Option<&'a RankSummary>,
        state_bytes: usize,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        states: Vec<StateDescription<'a>>,
        target: &'a str,
    }
    #[derive(Serialize)]
    struct PortDescription<'a> {
        dtype: &'static str,
        field: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        quantization: Option<Quantization>,
        shape: &'a [usize],
    }
    #[derive(Serialize)]
    struct KernelDescription<'a> {
        #[serde(flatten)]
        summary: &'a KernelSummary,
        predicted: PredictedKernel,
        #[serde(skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
    }
    #[derive(Serialize)]
    struct StateDescription<'a> {
        dtype: &'static str,
        name: &'a str,
        shape: &'a [usize],
        #[serde(flatten)]
        place: &'a StatePlace,
    }
    fn describe_state(state: &KeptState) -> StateDescription<'_> {
        let KeptState { name, place, initial } = state;
        StateDescription { dtype: initial.ty().dtype.name(), name, shape: &initial.ty().shape, place }
    }
    fn describe_kernel(summary: &KernelSummary) -> KernelDescription<'_> {
        let Price { time, code_bytes, constant_bytes, .. } = summary.price;
        let schedule = summary.choice.taken().map(|offer| offer.schedule.to_string());
        KernelDescription { summary, predicted: PredictedKernel { time, code_bytes, constant_bytes }, schedule }
    }
    fn describe(port: &Port) -> PortDescription<'_> {
        let Port { name, field, ty, quantization } = port;
        PortDescription { dtype: ty.dtype.name(), field, name, quantization: *quantization, shape: &ty.shape }
    }
    to_json(&Description {
        considered: Some(&module.considered).filter(|considered| considered.programs.len() > 1),
        execution: module.execution,
        floating_point: target.floating_point,
        inputs: module.inputs.iter().map(describe).collect(),
        kernels: module.kernels.iter().map(describe_kernel).collect(),
        model_name: &module.model_name,
        objective: target.objective,
        outputs: module.outputs.iter().map(describe).collect(),
        plan: &module.plan,
        predicted: Predicted { unit: target.machine.unit().into(), code_bytes: module.code_bytes() },
        ranks: module.ranks.as_ref(),
        state_bytes: module.state_bytes(),
        states: module.states.iter().map(describe_state).collect(),
        target: &target.name,
    })
}
