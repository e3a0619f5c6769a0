use super::*;
use crate::{Execution, KernelSummary, Options, generate};
use mlc_ir::scalar::Expression;

fn cortex_m4() -> Target {
    Target::embedded().into_iter().find(|target| target.name == "cortex-m4").unwrap()
}

fn offers(times: &[u64]) -> Vec<Offer> {
    let schedule = Schedule { kind: "tiles", settings: kernels::schedule::Settings::default() };
    let offer = |&time| Offer { schedule: schedule.clone(), price: Price { time, ..Price::default() } };
    times.iter().map(offer).collect()
}

fn copy() -> Op {
    mlc_ir::ops::Map { expression: Expression::operand(0) }.into()
}

/// What is taken of offers of (time, bytes of code, of scratch memory, that overlap).
fn taken(target: &Target, prices: &[(u64, u64, u64, u64)]) -> (usize, Reason) {
    let schedule = Schedule { kind: "tiles", settings: kernels::schedule::Settings::default() };
    let price = |(time, code_bytes, scratch_bytes, overlap_bytes)| Price {
        time,
        code_bytes,
        scratch_bytes,
        overlap_bytes,
        ..Price::default()
    };
    let offer = |&facts| Offer { schedule: schedule.clone(), price: price(facts) };
    let offers: Vec<Offer> = prices.iter().map(offer).collect();
    Chooser::new(target, 0, &ScheduleOptions::default()).best(&copy(), &offers)
}

#[test]
fn objectives_take_what_weighs_least() {
    let taken = |objective, prices: &[_]| taken(&cortex_m4().with_objective(objective), prices);
    let smaller = [(1000, 800, 0, 0), (1004, 500, 0, 0), (1400, 200, 0, 0), (1700, 100, 0, 0)];
    assert_eq!(taken(Objective::Speed, &smaller), (0, Reason::First));
    assert_eq!(taken(Objective::Balanced, &smaller), (1, Reason::Weighed));
    assert_eq!(taken(Objective::Size, &smaller), (2, Reason::Weighed));
    let narrower = [(1000, 100, 400, 0), (1500, 100, 100, 0), (1500, 100, 100, 100)];
    assert_eq!(taken(Objective::Speed, &narrower), (0, Reason::First));
    assert_eq!(taken(Objective::Ram, &narrower), (2, Reason::Weighed));
    for dearer in [(1000, 700, 0, 0), (1009, 500, 0, 0)] {
        assert_eq!(taken(Objective::Balanced, &[(1000, 800, 0, 0), dearer]), (0, Reason::First));
    }
    // A tenth less time is to be trusted, whatever else is weighed.
    assert_eq!(taken(Objective::Balanced, &[(1000, 100, 0, 0), (850, 300, 0, 0)]), (1, Reason::Cheapest));
}

#[test]
fn nothing_is_saved_on_the_quiet_where_prices_are_not_trusted() {
    let mut target = cortex_m4();
    target.machine.trust = None;
    assert_eq!(taken(&target, &[(1000, 800, 0, 0), (1000, 200, 0, 0)]), (0, Reason::First));
    let small = target.with_objective(Objective::Size);
    assert_eq!(taken(&small, &[(1000, 800, 0, 0), (1000, 200, 0, 0)]), (1, Reason::Weighed));
}

#[test]
fn the_cheapest_is_taken_where_prices_differ_by_more_than_they_err() {
    let mut target = cortex_m4().with_objective(Objective::Speed);
    let mut best = |trust: Option<f64>, times: &[u64]| {
        target.machine.trust = trust;
        Chooser::new(&target, 0, &ScheduleOptions::default()).best(&copy(), &offers(times))
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
    let mut trusting = cortex_m4().with_objective(Objective::Speed);
    trusting.machine.trust = Some(0.0);
    let kernels = products(&trusting, true);
    let Choice { offers, reason, .. } = &kernels[0].choice;
    let taken = kernels[0].choice.taken().unwrap();
    assert!(offers[0].schedule.is_named("tiles:weights=copied"), "{offers:?}");
    assert!(taken.schedule.is_named("tiles:weights=direct") && *reason == Reason::Cheapest, "{taken:?}");
    assert!(offers[0].price.scratch_bytes > 0 && kernels[0].workspace_bytes == 0);
    assert_eq!(kernels[1].choice, kernels[0].choice, "equal problems are solved alike");
    let balanced = products(&cortex_m4(), true);
    assert_eq!(balanced[0].choice.taken().unwrap().price.scratch_bytes, 0, "{:?}", balanced[0].choice);
    let host = products(&Target::host(32), true);
    assert_eq!((host[0].choice.taken, host[0].choice.reason), (0, Reason::First));
}

#[test]
fn parts_of_lines_are_not_walked_for_again_and_again() {
    let text = "mlc 1\ngraph @g(%x: f32[1, 14, 14, 64]) -> (\"y\": f32[1, 12, 12, 64]) {
  %w = constant f32[3, 3, 1, 64] random(seed = 1)
  %y = convolution %x, %w {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 64}
  return %y
}
";
    let graph = mlc_ir::text::parse(text, &()).unwrap();
    let kind = |target: Target| {
        let schedules = ScheduleOptions::default();
        let options = Options { model_name: "g".into(), target, execution: Execution::default(), schedules };
        generate(&graph, &options).unwrap().kernels[0].choice.taken().unwrap().schedule.kind
    };
    assert_eq!(
        [16, 32, 64].map(|bytes| kind(Target::host(bytes))),
        ["pixels-outside", "pixels-outside", "channels-outside"]
    );
}

#[test]
fn where_prices_decide_nothing_only_the_first_schedule_is_priced_unless_all_are_told() {
    let told = |target: &Target, tell_all| products(target, tell_all).remove(0).choice;
    let (all, first) = (told(&Target::host(32), true), told(&Target::host(32), false));
    assert!(all.offers.len() > 1);
    assert_eq!(first.offers, all.offers[..1]);
    assert_eq!(told(&cortex_m4(), false), told(&cortex_m4(), true));
    let fast = cortex_m4().with_objective(Objective::Speed);
    let (some, all) = (told(&fast, false), told(&fast, true));
    assert!(some.offers.len() < all.offers.len(), "schedules of small code aren't looked at");
    assert_eq!((some.taken(), some.reason), (all.taken(), all.reason));
}

/// A convolution with a border over an image that is computed, and a softmax of its result, which is larger or smaller than that.
fn bordered(inputs: usize, outputs: usize) -> mlc_ir::Graph {
    let text = format!(
        "mlc 1
graph @g(%x: f32[1, 12, 12, {inputs}]) -> (\"y\": f32[1, 12, 12, {outputs}]) {{
  %w = constant f32[3, 3, {inputs}, {outputs}] random(seed = 1)
  %a = map %x {{expression = relu(x0)}} : f32[1, 12, 12, {inputs}]
  %b = convolution %a, %w {{strides = [1, 1], pads = [[1, 1], [1, 1]], dilations = [1, 1], groups = 1}} : f32[1, 12, 12, {outputs}]
  %c = softmax %b {{axis = 3, logarithm = false}} : f32[1, 12, 12, {outputs}]
  %y = map %c {{expression = multiply(x0, x0)}} : f32[1, 12, 12, {outputs}]
  return %y
}}
"
    );
    mlc_ir::text::parse(&text, &()).unwrap()
}

#[test]
fn what_is_made_for_little_memory_takes_the_smallest_arena() {
    let arenas = |graph: &mlc_ir::Graph, target: &Target| {
        Objective::ALL.map(|objective| {
            let target = target.clone().with_objective(objective);
            let (execution, schedules) = (Execution::default(), ScheduleOptions::default());
            let options = Options { model_name: "g".into(), target, execution, schedules };
            generate(graph, &options).unwrap().plan.arena_bytes
        })
    };
    // The softmax overwrites its operand.
    for target in [Target::host(32), Target::generic(), cortex_m4()] {
        let [speed, size, ram, balanced] = arenas(&bordered(1, 16), &target);
        assert!(ram < speed && ram < size && ram < balanced, "{}: {ram} of {speed}", target.name);
    }
    // The border isn't in memory.
    let [speed, size, ram, balanced] = arenas(&bordered(16, 1), &Target::host(32));
    assert!(ram < speed && ram < size && ram < balanced, "{ram} of {speed}");
}

#[test]
fn much_memory_is_worth_little_time() {
    let usual = (1000, 1000);
    let balanced = |own, other| is_better(Objective::Balanced, own, other, usual);
    assert!(balanced((900, 1026), usual) && !balanced((900, 1027), usual));
    assert!(balanced((500, 1050), usual) && !balanced((100, 1051), usual) && !balanced((901, 1000), usual));
    assert!(balanced((250, 1050), (500, 1000)) && !balanced((450, 1050), (500, 1000)));
    assert!(!balanced((usize::MAX, u64::MAX), usual));
    let least = |own, other| is_better(Objective::Ram, own, other, usual);
    assert!(least((999, 9000), usual) && !least((1001, 1), usual));
    // For speed, more than prices err, unless it is far less memory: then the same time within a hundredth.
    let fastest = |own, other| is_better(Objective::Speed, own, other, usual);
    assert!(fastest((5000, 966), usual) && !fastest((5000, 967), usual) && !fastest((601, 967), usual));
    assert!(fastest((600, 1009), usual) && !fastest((600, 1010), usual) && !fastest((1, 1010), usual));
    // Of programs that take the same memory, the faster one.
    assert!(least((1000, 999), usual) && !least((1000, 1000), usual));
}
