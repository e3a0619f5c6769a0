use super::*;

fn request(bytes: usize, first: usize, last: usize) -> Request {
    Request { values: vec![format!("{first}..{last}")], bytes, alignment: 1, first, last }
}

fn upwards(result: usize, operand: usize, least: i64) -> Lap {
    Lap { result, operand, up: Some(Distance { least, modulus: 1 }), down: None }
}

/// A tensor of 1000 bytes at the bottom, the next one a row of 100 bytes higher, the next at the bottom again: upwards alone, each would begin a row before
/// the last one.
#[test]
fn results_that_go_up_and_down_take_a_row_in_all() {
    for count in 2..=8 {
        let requests: Vec<Request> = (0..count).map(|at| request(1000, at, at + 1)).collect();
        let up: Vec<Lap> = (1..count).map(|result| upwards(result, result - 1, 100)).collect();
        let both: Vec<Lap> = up.iter().map(|lap| Lap { down: lap.up, ..*lap }).collect();
        let down: Vec<Lap> = both.iter().map(|lap| Lap { up: None, ..*lap }).collect();
        assert_eq!(plan(&requests, &both, 1).arena_bytes, 1100, "{count} tensors");
        for one_way in [up, down] {
            assert_eq!(plan(&requests, &one_way, 1).arena_bytes > 1100, count > 2, "{count} tensors");
        }
    }
}

#[test]
fn buffers_that_live_together_do_not_overlap() {
    let mut generator = Generator::new(7);
    for _ in 0..200 {
        let count = generator.range(1, 12);
        let requests: Vec<Request> = (0..count)
            .map(|_| {
                let first = generator.range(0, 9);
                let alignment = generator.choose(&[1, 1, 8, 64, 256]);
                Request { alignment, ..request(generator.range(1, 500), first, first + generator.range(0, 4)) }
            })
            .collect();
        let plan = plan(&requests, &[], 16);
        let largest = requests.iter().map(|request| request.alignment).fold(16, usize::max);
        assert_eq!((plan.alignment, plan.arena_bytes % largest), (largest, 0));
        for (buffer, request) in plan.buffers.iter().zip(&requests) {
            assert_eq!(buffer.offset % request.alignment, 0);
        }
        assert!(plan.arena_bytes >= plan.liveness_bound_bytes);
        for (index, left) in plan.buffers.iter().enumerate() {
            assert_eq!(left.offset % 16, 0);
            assert!(left.offset + left.bytes <= plan.arena_bytes);
            for right in &plan.buffers[..index] {
                let together = left.first <= right.last && right.first <= left.last;
                let apart = left.offset + left.bytes <= right.offset || right.offset + right.bytes <= left.offset;
                assert!(!together || apart, "{left:?} {right:?}");
            }
        }
    }
}

#[test]
fn results_lie_over_operands_at_their_distance_or_apart() {
    let mut generator = Generator::new(9);
    let mut met = [0; 2];
    for _ in 0..300 {
        let count = generator.range(2, 8);
        let requests: Vec<Request> = (0..count).map(|at| request(generator.range(1, 40) * 16, at, at + 1)).collect();
        let distance = |generator: &mut Generator| {
            let modulus = generator.choose(&[1, 1, 24]);
            let least = generator.range(0, 12) as i64 * 24 - 48;
            generator.one_in(2).then_some(Distance { least, modulus })
        };
        let laps: Vec<Lap> = (1..count)
            .map(|result| {
                let [up, down] = [(); 2].map(|()| distance(&mut generator));
                Lap { result, operand: result - 1, up, down }
            })
            .collect();
        let whole = plan(&requests, &[], 16);
        let plan = plan(&requests, &laps, 16);
        assert!(plan.liveness_bound_bytes <= plan.arena_bytes && plan.arena_bytes <= whole.arena_bytes);
        for lap in &laps {
            let (result, operand) = (&plan.buffers[lap.result], &plan.buffers[lap.operand]);
            let [over, under] = [result, operand].map(|own| own.offset as i64);
            let (over_end, under_end) = (over + result.bytes as i64, under + operand.bytes as i64);
            if over_end <= under || under_end <= over {
                continue;
            }
            let allows = |distance: Option<Distance>, bytes: i64| distance.is_some_and(|own| own.allows(bytes));
            let (is_up, is_down) = (allows(lap.up, under - over), allows(lap.down, over - under));
            assert!(is_up || is_down, "{over} over {under} for {lap:?}");
            met[usize::from(is_down)] += 1;
        }
    }
    assert!(met.iter().all(|&met| met > 60), "{met:?}");
}

#[test]
fn a_chain_of_kernels_that_run_ahead_takes_the_larger_tensor_and_a_row() {
    let requests: Vec<Request> = (0..2).map(|at| request(1024, at, at + 1)).collect();
    let lap = |least: i64, modulus: usize| Lap { up: Some(Distance { least, modulus }), ..upwards(1, 0, 0) };
    assert_eq!(plan(&requests, &[lap(100, 1)], 16).arena_bytes, 1024 + 112);
    // In steps of a pixel: the first multiple of both.
    assert_eq!(plan(&requests, &[lap(120, 24)], 16).arena_bytes, 1024 + 144);
}

#[test]
fn small_buffers_do_not_push_large_ones_apart() {
    let sizes = [512, 512, 512, 512, 32, 512, 512, 512, 512];
    let requests: Vec<Request> = (0..sizes.len()).map(|at| request(sizes[at], at, at + 1)).collect();
    assert_eq!(plan(&requests, &[], 16).arena_bytes, 1024);
}

#[test]
fn a_chain_takes_two_buffers() {
    let requests = [request(64, 0, 1), request(64, 1, 2), request(64, 2, 3), request(64, 3, 4)];
    assert_eq!(plan(&requests, &[], 16).arena_bytes, 128);
}

/// Residual blocks one after the other: each result lies a row of 5 bytes before its operand, beside rings of 100 and 30 bytes. What lives at
/// one time takes 235 bytes, but a result has moved on by a row where the next block begins.
#[test]
fn results_that_wander_leave_their_rings_room() {
    for blocks in 2..=6 {
        let tensor = |number: usize| request(100, (2 * number).saturating_sub(1), 2 * number + 1);
        let ring = |bytes: usize| move |block: usize| request(bytes, 2 * block + 1, 2 * block + 1);
        let tensors = (0..=blocks).map(tensor);
        let requests: Vec<Request> =
            tensors.chain((0..blocks).map(ring(100))).chain((0..blocks).map(ring(30))).collect();
        let laps: Vec<Lap> = (0..blocks).map(|block| upwards(block + 1, block, 5)).collect();
        let plan = plan(&requests, &laps, 1);
        assert_eq!(plan.liveness_bound_bytes, 235);
        assert_eq!(plan.arena_bytes, 235 + 5 * (blocks - 1), "{blocks} blocks");
    }
}

/// A result over two operands that die, of some bytes.
fn over_two([result, one, other]: [usize; 3], laps: [[Option<Distance>; 2]; 2]) -> (Vec<Request>, Vec<Lap>) {
    let requests = vec![request(one, 0, 1), request(other, 0, 1), request(result, 1, 2)];
    let lap = |(operand, [up, down]): (usize, [Option<Distance>; 2])| Lap { result: 2, operand, up, down };
    (requests, laps.into_iter().enumerate().map(lap).collect())
}

#[test]
fn a_result_goes_one_way_over_all_of_its_operands() {
    let near = |least: i64| Some(Distance { least, modulus: 1 });
    // Over the first one alone upwards, over the other one alone downwards: it can't lie between both.
    let (requests, laps) = over_two([96, 64, 64], [[near(0), None], [None, near(0)]]);
    assert_eq!(plan(&requests, &laps, 16).arena_bytes, 160);
    // Over both, downwards is nearer.
    let (requests, laps) = over_two([64, 64, 64], [[near(48), near(16)], [near(48), near(16)]]);
    assert_eq!(plan(&requests, &laps, 16).arena_bytes, 144);
    let mut generator = Generator::new(12);
    let mut met = [0; 2];
    for _ in 0..600 {
        let distance = |generator: &mut Generator| {
            generator.one_in(2).then_some(Distance { least: generator.range(0, 8) as i64 * 16 - 48, modulus: 1 })
        };
        let sizes = [(); 3].map(|()| generator.range(1, 20) * 16);
        let (requests, laps) = over_two(sizes, [(); 2].map(|()| [(); 2].map(|()| distance(&mut generator))));
        let plan = plan(&requests, &laps, 16);
        let [result, one, other] = [2, 0, 1].map(|number| &plan.buffers[number]);
        let meets =
            |own: &PlannedBuffer| result.offset < own.offset + own.bytes && own.offset < result.offset + result.bytes;
        let before = |own: &PlannedBuffer| own.offset as i64 - result.offset as i64;
        let needed: Vec<(&Lap, i64)> = (laps.iter().zip([one, other]))
            .filter(|(_, own)| meets(own))
            .map(|(lap, own)| (lap, before(own)))
            .collect();
        let allows = |distance: Option<Distance>, bytes: i64| distance.is_some_and(|own| own.allows(bytes));
        let is_up = needed.iter().all(|&(lap, before)| allows(lap.up, before));
        let is_down = needed.iter().all(|&(lap, before)| allows(lap.down, -before));
        assert!(is_up || is_down, "{plan:?} for {laps:?}");
        met[0] += usize::from(!needed.is_empty() && is_down && !is_up);
        met[1] += usize::from(needed.len() == 2);
    }
    assert!(met[0] > 60 && met[1] > 5, "{met:?}");
}
