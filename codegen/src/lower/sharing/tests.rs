use super::super::blocks;
use super::super::legalize::{legalize, simplify};
use super::super::lower;
use super::super::maker::Item;
use super::super::patch::Halo;
use super::super::sequence::{OF_MODELS, Sequence, sequence};
use super::super::steps::steps;
use super::tags::Tags;
use super::*;
use crate::ScheduleOptions;
use crate::names::Names;
use crate::target::{Target, VectorSpelling};
use mlc_ir::{Generator, Graph, evaluate, text};

/// A network that is written line by line: what a value is called, and its rows, columns and channels.
struct Draft {
    dtype: &'static str,
    lines: Vec<String>,
    values: Vec<(String, [usize; 3])>,
}

impl Draft {
    fn new(dtype: &'static str, shape: [usize; 3]) -> Draft {
        Draft { dtype, lines: Vec::new(), values: vec![("%x".to_owned(), shape)] }
    }

    fn last(&self) -> (String, [usize; 3]) {
        self.values.last().unwrap().clone()
    }

    fn add(&mut self, shape: [usize; 3], operator: &str) {
        let name = format!("%v{}", self.values.len());
        self.lines.push(format!("  {name} = {operator}"));
        self.values.push((name, shape));
    }

    fn window(&mut self, generator: &mut Generator, is_depthwise: bool, outputs: usize) -> Option<()> {
        let (x, [rows, columns, channels]) = self.last();
        let window = [generator.range(1, 3), generator.range(1, 3)];
        let stride = generator.choose(&[1, 1, 1, 2]);
        let pads = window.map(|taps| (generator.range(0, taps - 1), generator.range(0, taps - 1)));
        let extent = |size: usize, axis: usize| {
            Some((size + pads[axis].0 + pads[axis].1).checked_sub(window[axis])? / stride + 1)
        };
        let (outputs, groups, inner) = if is_depthwise { (channels, channels, 1) } else { (outputs, 1, channels) };
        let (dtype, seed) = (self.dtype, self.lines.len());
        let weights = format!("%w{seed}");
        let taps = format!("{}, {}", window[0], window[1]);
        self.lines.push(format!("  {weights} = constant {dtype}[{taps}, {inner}, {outputs}] random(seed = {seed})"));
        let [(above, below), (left, right)] = pads;
        let fields = format!(
            "strides = [{stride}, {stride}], dilations = [1, 1], pads = [[{above}, {below}], [{left}, {right}]], groups = {groups}"
        );
        let expression = "cast_i8(minimum(maximum(shift_right(x0, 4_i32), -128_i32), 127_i32))";
        let operator = match dtype {
            "i8" => format!(
                "kernel {x}, {weights} {{anchor = convolution {{{fields}, border = 1, sums = i32}}, anchor_operands = 2, expression = {expression}}}"
            ),
            _ => format!("convolution {x}, {weights} {{{fields}}}"),
        };
        self.add([extent(rows, 0)?, extent(columns, 1)?, outputs], &operator);
        Some(())
    }

    fn layer(&mut self, generator: &mut Generator) -> Option<()> {
        let (x, shape) = self.last();
        let [rows, columns, channels] = shape;
        match generator.range(0, 7) {
            0..=1 => {
                let outputs = generator.range(1, 9);
                self.window(generator, false, outputs)?;
            }
            2..=3 => self.window(generator, true, 0)?,
            4 => {
                let [window, stride] = [generator.range(1, 2), generator.range(1, 2)];
                let extent = |size: usize| Some(size.checked_sub(window)? / stride + 1);
                let fields = format!(
                    "window = [{window}, {window}], strides = [{stride}, {stride}], dilations = [1, 1], pads = [[0, 0], [0, 0]]"
                );
                self.add([extent(rows)?, extent(columns)?, channels], &format!("max_pool {x} {{{fields}}}"));
            }
            5 => {
                let like = |own: &&(String, [usize; 3])| own.1 == shape && own.0 != x;
                let other = self.values.iter().skip(1).find(like).map(|own| own.0.clone());
                let other = other.filter(|_| self.dtype == "f32")?;
                self.add(shape, &format!("binary {x}, {other} {{function = add}}"));
            }
            6 => {
                let like = |own: &&(String, [usize; 3])| own.1[..2] == shape[..2] && own.0 != x;
                let (other, [.., more]) = self.values.iter().skip(1).find(like)?.clone();
                self.add([rows, columns, channels + more], &format!("concat {x}, {other} {{axis = 3}}"));
            }
            _ => {
                let fields = format!(
                    "axes = [1, 2], sizes = [{}, {}], ratios = [0.5, 0.5], mode = nearest, coordinates = asymmetric",
                    2 * rows,
                    2 * columns
                );
                self.add([2 * rows, 2 * columns, channels], &format!("resize {x} {{{fields}}}"));
            }
        }
        Some(())
    }

    fn graph(&self) -> Graph {
        let dtype = self.dtype;
        let list = |[rows, columns, channels]: [usize; 3]| format!("{dtype}[1, {rows}, {columns}, {channels}]");
        let (last, shape) = self.last();
        let (input, lines) = (list(self.values[0].1), self.lines.join("\n"));
        let source =
            format!("mlc 1\ngraph @net(%x: {input}) -> (\"y\": {}) {{\n{lines}\n  return {last}\n}}\n", list(shape));
        text::parse(&source, &()).unwrap_or_else(|error| panic!("{error:?}\n{source}"))
    }
}

fn random(generator: &mut Generator, layers: usize, [rows, columns]: [usize; 2]) -> Graph {
    let dtype = generator.choose(&["f32", "f32", "i8"]);
    let mut draft = Draft::new(dtype, [generator.range(3, rows), generator.range(2, columns), generator.range(1, 5)]);
    draft.window(generator, false, 4);
    let mut made = 0;
    while made < layers {
        made += 1;
        // What doesn't fit is left out.
        let before = (draft.lines.len(), draft.values.len());
        if draft.layer(generator).is_none() {
            draft.lines.truncate(before.0);
            draft.values.truncate(before.1);
        }
    }
    draft.window(generator, false, 3);
    draft.graph()
}

fn targets() -> Vec<Target> {
    let boards = Target::embedded().into_iter().filter(|target| ["cortex-m4", "riscv32"].contains(&&*target.name));
    let all = [Target::generic(), Target::host(32)].into_iter().chain(boards);
    all.map(|target| target.with_objective(Objective::Ram)).collect()
}

/// The parts of a graph, some of whose nodes are a stripe, before there is a plan.
fn items(graph: &Graph, blocks: &[crate::lower::block::Block], target: &Target) -> (Vec<Item>, Homes) {
    let mut chooser = Chooser::new(target, 0, &ScheduleOptions::default());
    let in_stripe = |node: &str| blocks.iter().any(|block| block.has(node));
    let graph = legalize(&simplify(graph).unwrap(), target, |_| false, in_stripe).unwrap();
    let by_rows = blocks.iter().flat_map(|block| block.found(&graph)).collect();
    let mut homes = Homes::assign(&graph, by_rows, OF_MODELS);
    let none = |_: &Graph, _: usize, _: &mut Chooser, _: &mut Names| panic!("there are no loops");
    let made = steps(&graph, blocks, &mut homes, &mut chooser, &mut Names::new("net"), none);
    (made.unwrap().0, homes)
}

/// Whether a routine does something whose places aren't known one by one.
fn has_routines(part: &Part) -> bool {
    fn calls(body: &[loops::Stmt]) -> bool {
        body.iter().any(|statement| match statement {
            loops::Stmt::Routine { routine, .. } => !matches!(routine, loops::Routine::CopyBytes { .. }),
            loops::Stmt::For { body, .. } | loops::Stmt::IfValue { then: body, .. } => calls(body),
            loops::Stmt::If { then, otherwise, .. } => calls(then) || calls(otherwise),
            _ => false,
        })
    }
    match part {
        Part::Step(step) => matches!(&step.routine, Routine::Kernel(function) if calls(&function.body)),
        other => other.inner().any(|(part, _)| has_routines(part)),
    }
}

/// Gives kernels the text that they have where there are no vectors.
fn take_vectors(part: &mut Part) {
    match part {
        Part::Step(step) => {
            if let Routine::Kernel(function) = &mut step.routine {
                *function = loops::lanes::without_vectors(function);
            }
        }
        Part::Stripe(code) => code.acts.iter_mut().flat_map(|act| &mut act.body).for_each(take_vectors),
        Part::Loop(_) | Part::Exchange(_) | Part::Fetch(_) => panic!("only steps and stripes are run"),
    }
}

/// Whether a part loses anything whose loops go some way, with a result so many bytes ahead.
fn is_lost(part: &Part, homes: &Homes, overlay: &Overlay, direction: Direction, ahead: i64) -> bool {
    let before = if direction == Direction::Upwards { ahead } else { -ahead };
    let mut tags = Tags::pair(&homes.buffers, overlay.operand, overlay.result, before);
    tags.run([part], 0);
    tags.lost > 0
}

const DIRECTIONS: [Direction; 2] = [Direction::Upwards, Direction::Downwards];

#[test]
fn at_the_distance_every_read_finds_its_bytes_and_with_a_byte_less_one_does_not() {
    let mut generator = Generator::new(5);
    let (mut steps, mut stripes, mut tight, mut in_steps) = ([0; 2], 0, [0; 2], [0; 2]);
    for round in 0..80 {
        let graph = random(&mut generator, 3, [9, 8]);
        for target in targets() {
            let folded = simplify(&graph).unwrap();
            let plans = [Vec::new()].into_iter().chain(blocks::plans(&folded, &target, None).into_iter().take(2));
            let plans: Vec<_> = plans.collect();
            for (blocks, direction) in plans.iter().flat_map(|blocks| DIRECTIONS.map(|direction| (blocks, direction))) {
                let (mut items, homes) = items(&graph, blocks, &target);
                let mut parts: Vec<&mut Part> = items.iter_mut().map(|item| &mut item.part).collect();
                parts.retain(|part| !has_routines(part));
                for part in &mut parts {
                    settle(part, &|overlay| overlay.distance(direction).map(|_| direction));
                }
                if target.vectors == VectorSpelling::Either {
                    for part in &parts {
                        for overlay in part.overlays() {
                            let Distance { least, .. } = overlay.distance(direction).unwrap();
                            let place = format!("{} {direction:?}: {overlay:?}", part.name());
                            assert!(!is_lost(part, &homes, overlay, direction, least), "{place}");
                        }
                    }
                    parts.iter_mut().for_each(|part| take_vectors(part));
                }
                let way = usize::from(direction == Direction::Downwards);
                for part in parts {
                    for overlay in part.overlays() {
                        let Distance { least, modulus } = overlay.distance(direction).unwrap();
                        let place = format!("{} of round {round} for {}: {overlay:?}", part.name(), target.name);
                        let is_lost = |ahead: i64| is_lost(part, &homes, overlay, direction, ahead);
                        assert!(!is_lost(least), "{place}");
                        assert!(!is_lost(least + modulus as i64), "{place}, further");
                        *if matches!(part, Part::Step(_)) { &mut steps[way] } else { &mut stripes } += 1;
                        // Nothing is read after something has been written, or the buffers end before they meet.
                        let behind = if direction == Direction::Upwards { overlay.operand } else { overlay.result };
                        if least == -(homes.buffers[behind].bytes as i64) {
                            continue;
                        }
                        assert!(is_lost(least - modulus as i64), "{place} isn't tight");
                        tight[way] += 1;
                        in_steps[way] += usize::from(modulus > 1);
                    }
                }
            }
        }
    }
    let are_many = |[up, down]: [usize; 2], least: usize| up > least && down > least;
    let counts = format!("{steps:?} {stripes} {tight:?} {in_steps:?}");
    assert!(are_many(steps, 60) && stripes > 20 && are_many(tight, 40) && are_many(in_steps, 4), "{counts}");
}

#[test]
fn every_read_of_a_planned_program_finds_its_bytes() {
    let mut generator = Generator::new(11);
    let (mut used, mut down, mut stripes) = (0, 0, 0);
    for round in 0..14 {
        let graph = random(&mut generator, 6, [9, 8]);
        for target in targets() {
            let mut chooser = Chooser::new(&target, 0, &ScheduleOptions::default());
            let mut program = lower(&graph, None, &mut chooser, &mut Names::new("net")).unwrap();
            if program.parts.iter().any(has_routines) {
                continue;
            }
            let mut tags = Tags::planned(&program.layout, &program.buffers);
            tags.run(&program.parts, 0);
            assert_eq!(tags.lost, 0, "round {round} for {}", target.name);
            if target.vectors == VectorSpelling::Either {
                program.parts.iter_mut().for_each(take_vectors);
                let mut tags = Tags::planned(&program.layout, &program.buffers);
                tags.run(&program.parts, 0);
                assert_eq!(tags.lost, 0, "round {round} for {} without vectors", target.name);
            }
            let overlays = || program.parts.iter().flat_map(Part::overlays);
            used += overlays().count();
            down += overlays().filter(|overlay| overlay.up.is_none()).count();
            stripes += program.parts.iter().filter(|part| matches!(part, Part::Stripe(_))).count();
        }
    }
    assert!(used > 10 && down > 4 && stripes > 10, "{used} {down} {stripes}");
}

#[test]
fn results_of_patches_lie_over_operands_at_the_distance_of_all_of_them() {
    let mut generator = Generator::new(17);
    let (mut held, mut tight) = (0, 0);
    for round in 0..80 {
        let graph = random(&mut generator, 4, [9, 12]);
        for target in targets().into_iter().filter(|target| target.vectors != VectorSpelling::Either) {
            let folded = simplify(&graph).unwrap();
            let plans = |wanted, count| blocks::in_patches(&folded, &target, wanted).unwrap().into_iter().take(count);
            for plan in plans(blocks::Wanted::All, 4).chain(plans(blocks::Wanted::Once, 2)) {
                let (items, homes) = items(&plan.graph, &plan.blocks, &target);
                let parts: Vec<&Part> = items.iter().map(|item| &item.part).collect();
                let first = |overlay: &&Overlay| overlay.part.1 > 1 && overlay.part.0 == 0;
                for overlay in parts.iter().flat_map(|part| part.overlays()).filter(first) {
                    let is_of_it = |own: &Overlay| (own.result, own.operand) == (overlay.result, overlay.operand);
                    let together = || parts.iter().copied().filter(|part| part.overlays().iter().any(is_of_it));
                    assert_eq!(together().count(), overlay.part.1, "round {round}: {overlay:?}");
                    if together().any(has_routines) {
                        continue;
                    }
                    let lost = |distance: i64| {
                        let mut tags = Tags::pair(&homes.buffers, overlay.operand, overlay.result, distance);
                        tags.run(together(), 0);
                        tags.lost > 0
                    };
                    let Distance { least, modulus } = overlay.up.unwrap();
                    assert!(!lost(least), "round {round} for {}: {overlay:?}", target.name);
                    held += 1;
                    if least > -(homes.buffers[overlay.operand].bytes as i64) {
                        assert!(lost(least - modulus as i64), "round {round} for {}: {overlay:?}", target.name);
                        tight += 1;
                    }
                }
            }
        }
    }
    assert!(held > 40 && tight > 40, "{tight} of {held}");
}

/// Runs a planned program, in which a buffer may be a byte nearer to the one before it than planned; how many reads don't find their bytes.
fn lost(program: &Sequence, nearer: Option<BufferId>) -> usize {
    let mut tags = Tags::planned(&program.layout, &program.buffers);
    nearer.into_iter().for_each(|buffer| tags.shift(buffer, -1));
    tags.run(&program.parts, 0);
    tags.lost
}

/// The rings and tensors that begin where another one ends.
fn behind_others(program: &Sequence) -> Vec<BufferId> {
    let ends: BTreeSet<usize> =
        program.layout.offsets.iter().map(|(&id, &offset)| offset + program.buffers[id].bytes).collect();
    program.layout.offsets.iter().filter(|(_, offset)| ends.contains(offset)).map(|(&id, _)| id).collect()
}

#[test]
fn patches_compute_what_the_graph_does_and_every_read_of_their_programs_finds_its_bytes() {
    let mut generator = Generator::new(3);
    let (mut programs, mut keeping, mut overlaid, mut nearer, mut missed) = (0, 0, 0, 0, 0);
    for round in 0..26 {
        let graph = random(&mut generator, 5, [9, 24]);
        let input = generator.tensor(&graph.node(graph.inputs()[0]).results[0]);
        let expected = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        for target in targets() {
            let folded = simplify(&graph).unwrap();
            let of = |wanted, count| blocks::in_patches(&folded, &target, wanted).unwrap().into_iter().take(count);
            let plans = || of(blocks::Wanted::All, 3).chain(of(blocks::Wanted::Once, 2));
            for (plan, again) in plans().zip(plans()) {
                let place = format!("round {round} for {}: {:?}", target.name, plan.given);
                assert_eq!(text::print(&plan.graph), text::print(&again.graph), "{place}");
                let found = evaluate(&plan.graph, std::slice::from_ref(&input)).unwrap();
                assert_eq!(found[0].to_floats(), expected[0].to_floats(), "{place}");
                let mut chooser = Chooser::new(&target, 0, &ScheduleOptions::default());
                let names = &mut Names::new("net");
                let program = sequence(&plan.graph, &plan.blocks, OF_MODELS, None, &mut chooser, names).unwrap();
                if program.parts.iter().any(has_routines) {
                    continue;
                }
                programs += 1;
                keeping += usize::from(plan.given.iter().any(|block| block.halo == Halo::Kept && block.patches > 1));
                let apart = |overlay: &&Overlay| overlay.part.1 > 1;
                overlaid += program.parts.iter().flat_map(Part::overlays).filter(apart).count();
                assert_eq!(lost(&program, None), 0, "{place}");
                for buffer in behind_others(&program) {
                    nearer += 1;
                    missed += usize::from(lost(&program, Some(buffer)) > 0);
                }
            }
        }
    }
    assert!(keeping > 20, "{keeping} programs keep rows");
    assert!(programs > 20 && missed > 20 && missed * 4 > nearer, "{programs} programs; {missed} of {nearer}");
    assert!(overlaid > 20, "{overlaid} patches lie over operands");
}

/// How many of the rings of a program slide and are moved to their front.
fn moved(program: &Sequence) -> usize {
    let codes = program.parts.iter().filter_map(|part| if let Part::Stripe(code) = part { Some(code) } else { None });
    let rings = codes.flat_map(|code| &code.acts).filter_map(|act| Some((act.ring.as_ref()?, act.turns.appended)));
    rings.filter(|(ring, appended)| ring.slides > 1 && ring.moves(*appended) > 0).count()
}

#[test]
fn every_read_of_a_program_with_rings_that_slide_finds_its_bytes() {
    let mut generator = Generator::new(23);
    let (mut sliding, mut nearer, mut missed) = (0, 0, 0);
    for round in 0..40 {
        let graph = simplify(&random(&mut generator, 5, [60, 8])).unwrap();
        for target in [Target::host(32), Target::host(64).with_objective(Objective::Balanced)] {
            for blocks in blocks::plans(&graph, &target, None).into_iter().take(3) {
                let mut chooser = Chooser::new(&target, 0, &ScheduleOptions::default());
                let names = &mut Names::new("net");
                let program = sequence(&graph, &blocks, OF_MODELS, None, &mut chooser, names).unwrap();
                if program.parts.iter().any(has_routines) {
                    continue;
                }
                assert_eq!(lost(&program, None), 0, "round {round} for {}: {blocks:?}", target.name);
                sliding += moved(&program);
                for buffer in behind_others(&program) {
                    nearer += 1;
                    missed += usize::from(lost(&program, Some(buffer)) > 0);
                }
            }
        }
    }
    assert!(sliding > 60, "{sliding} rings are moved");
    assert!(missed > 20 && missed * 4 > nearer, "{missed} of {nearer}");
}

/// An inverted residual block whose result is added to what it read, channels apart: blocks of outputs are the outermost loop, so that all pixels of
/// a row are read again when the first channels of them have been written.
#[test]
fn a_residual_stripe_lies_over_its_operand_exactly() {
    let fields = |pads: &str, groups: usize| {
        format!("{{strides = [1, 1], dilations = [1, 1], pads = [[{pads}], [{pads}]], groups = {groups}}}")
    };
    let source = format!(
        "mlc 1\ngraph @block(%x: f32[1, 12, 9, 16]) -> (\"y\": f32[1, 12, 9, 16]) {{\n  \
           %c0 = softmax %x {{axis = 1, logarithm = false}}\n  \
           %w1 = constant f32[1, 1, 16, 32] random(seed = 2)\n  \
           %c1 = convolution %c0, %w1 {one}\n  \
           %w2 = constant f32[3, 3, 1, 32] random(seed = 3)\n  \
           %c2 = convolution %c1, %w2 {apart}\n  \
           %w3 = constant f32[1, 1, 32, 16] random(seed = 4)\n  \
           %s = kernel %c2, %w3, %c0 {{anchor = convolution {one}, anchor_operands = 2, expression = add(x0, x1)}}\n  \
           %y = softmax %s {{axis = 1, logarithm = false}}\n  \
           return %y\n}}\n",
        one = fields("0, 0", 1),
        apart = fields("1, 1", 32),
    );
    let graph = text::parse(&source, &()).unwrap_or_else(|error| panic!("{error:?}\n{source}"));
    let target = targets().into_iter().find(|target| target.name == "cortex-m4").unwrap();
    let folded = simplify(&graph).unwrap();
    let plans = blocks::plans(&folded, &target, None);
    let (items, homes) = items(&graph, &plans[0], &target);
    let stripe = items.iter().map(|item| &item.part).find(|part| matches!(part, Part::Stripe(_))).unwrap();
    let [overlay] = stripe.overlays() else { panic!("{:?}", stripe.overlays()) };
    assert_eq!((overlay.up, overlay.down), (Some(Distance { least: 0, modulus: 64 }), None));
    let is_lost = |ahead: i64| is_lost(stripe, &homes, overlay, Direction::Upwards, ahead);
    assert!(!is_lost(0) && is_lost(-64));
}
