use super::*;
use crate::{Execution, KernelSummary, Options, generate};

fn cortex_m4() -> Target {
    Target::embedded().into_iter().find(|target| target.name == "cortex-m4").unwrap()
}

fn offers(times: &[u64]) -> Vec<Offer> {
    let schedule = Schedule { kind: "tiles", settings: kernels::schedule::Settings::default() };
    let offer = |&time| Offer { schedule: schedule.clone(), price: Price { time, ..Price::default() } };
    times.iter().map(offer).collect()
}

#[test]
fn the_cheapest_is_taken_where_prices_differ_by_more_than_they_err() {
    let mut target = cortex_m4();
    let mut best = |trust: Option<f64>, times: &[u64]| {
        target.machine.trust = trust;
        Chooser::new(&target, 0, &ScheduleOptions::default()).best(&offers(times))
    };
    assert_eq!(best(Some(0.1), &[100]), (0, Reason::Only));
    assert_eq!(best(Some(0.1), &[100, 95, 91]), (0, Reason::First));
    assert_eq!(best(Some(0.1), &[100, 95, 89, 89]), (2, Reason::Cheapest));
    assert_eq!(best(Some(0.0), &[100, 100, 99]), (2, Reason::Cheapest));
    assert_eq!(best(None, &[100, 1]), (0, Reason::First));
}

/// Two equal products with matrices that aren't constant, whose rows are the result's columns.
fn products(target: &Target, tell_all: bool) -> Vec<KernelSummary> {
    let text = "mlc 1
graph @g(%x: f32[12, 8], %w: f32[5, 8], %v: f32[5, 8]) -> (\"y\": f32[12, 5], \"z\": f32[12, 5]) {
  %y = matmul %x, %w {transpose_left = false, transpose_right = true} : f32[12, 5]
  %z = matmul %x, %v {transpose_left = false, transpose_right = true} : f32[12, 5]
  return %y, %z
}
";
    let graph = mlc_ir::text::parse(text, &()).unwrap();
    let (execution, schedules) = (Execution::default(), ScheduleOptions { tell_all, ..ScheduleOptions::default() });
    let options = Options { model_name: "g".into(), target: target.clone(), execution, schedules };
    generate(&graph, &options).unwrap().kernels
}

#[test]
fn machines_without_vectors_copy_no_weights() {
    let kernels = products(&cortex_m4(), true);
    let Choice { offers, reason, .. } = &kernels[0].choice;
    let taken = kernels[0].choice.taken().unwrap();
    assert!(offers[0].schedule.is_named("tiles:weights=copied"), "{offers:?}");
    assert!(taken.schedule.is_named("tiles:weights=direct") && *reason == Reason::Cheapest, "{taken:?}");
    assert!(offers[0].price.scratch_bytes > 0 && kernels[0].workspace_bytes == 0);
    assert_eq!(kernels[1].choice, kernels[0].choice, "equal problems are solved alike");
    let host = products(&Target::host(32), true);
    assert_eq!((host[0].choice.taken, host[0].choice.reason), (0, Reason::First));
}

#[test]
fn where_prices_decide_nothing_only_the_first_schedule_is_priced_unless_all_are_told() {
    let told = |target: &Target, tell_all| products(target, tell_all).remove(0).choice;
    let (all, first) = (told(&Target::host(32), true), told(&Target::host(32), false));
    assert!(all.offers.len() > 1);
    assert_eq!(first.offers, all.offers[..1]);
    assert_eq!(told(&cortex_m4(), false), told(&cortex_m4(), true));
}
