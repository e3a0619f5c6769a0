//! `src/<model>.json`: our own description of a module.

use super::metadata::to_json;
use crate::execution::Execution;
use crate::module::{KeptState, KernelSummary, MemoryPlan, Module, Port, RankSummary, StatePlace};
use crate::target::{FloatingPoint, Target};
use mlc_ir::{Objective, Quantization};
use serde::Serialize;

/// `src/<model>.json`: what `metadata.json` has no place for. The interface in order, with C names and shapes; the kernels;
/// the memory plan, whose kernel numbers refer to them.
pub(super) fn description(module: &Module, target: &Target) -> String {
    #[derive(Serialize)]
    struct Description<'a> {
        execution: Execution,
        floating_point: FloatingPoint,
        inputs: Vec<PortDescription<'a>>,
        kernels: &'a [KernelSummary],
        model_name: &'a str,
        objective: Objective,
        outputs: Vec<PortDescription<'a>>,
        plan: &'a MemoryPlan,
        #[serde(skip_serializing_if = "Option::is_none")]
        ranks: Option<&'a RankSummary>,
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
    fn describe(port: &Port) -> PortDescription<'_> {
        let Port { name, field, ty, quantization } = port;
        PortDescription { dtype: ty.dtype.name(), field, name, quantization: *quantization, shape: &ty.shape }
    }
    to_json(&Description {
        execution: module.execution,
        floating_point: target.floating_point,
        inputs: module.inputs.iter().map(describe).collect(),
        kernels: &module.kernels,
        model_name: &module.model_name,
        objective: target.objective,
        outputs: module.outputs.iter().map(describe).collect(),
        plan: &module.plan,
        ranks: module.ranks.as_ref(),
        states: module.states.iter().map(describe_state).collect(),
        target: &target.name,
    })
}
