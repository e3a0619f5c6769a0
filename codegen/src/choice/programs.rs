//! [`is_better`]: which of two programs is better for what they are made for.

use mlc_ir::Objective;

/// Part of a program's time by which prices of rows and of whole results may err beside each other.
const ERROR_OF_ROWS: u64 = 30;

/// Tenths of the memory for which a program is better whose predicted time is the same within less than prices err.
const LITTLE_MEMORY: u128 = 6;

/// Part of a program's time by which another one may take more and still count as taking the same.
const SAME_TIME: u64 = 100;

/// Whether a program is better for an objective than another one, by the bytes of their arenas and their times; `usual` is what whole tensors
/// and the usual schedules cost. For speed, it takes less time by more than prices err, or the same and so little memory. To be balanced,
/// half of the memory is worth a fifth more time, but a program takes a twentieth more than the usual one at most, and for no less than a
/// tenth of the memory.
pub fn is_better(objective: Objective, own: (usize, u64), other: (usize, u64), usual: (usize, u64)) -> bool {
    match objective {
        Objective::Speed => {
            let is_small = own.0 as u128 * 10 <= other.0 as u128 * LITTLE_MEMORY;
            let most = if is_small { other.1 + other.1 / SAME_TIME } else { other.1 - other.1 / ERROR_OF_ROWS };
            return own.1 < most;
        }
        Objective::Size | Objective::Ram => return own < other,
        Objective::Balanced => {}
    }
    let parts = |amount: u64, of: u64| u128::from(amount) * 1_000_000 / u128::from(of.max(1));
    let relative = |(arena, time): (usize, u64)| (parts(arena as u64, usual.0 as u64), parts(time, usual.1));
    let (arena, time) = relative(own);
    let weight = |(arena, time): (u128, u128)| arena * time.pow(4);
    arena <= 900_000 && time <= 1_050_000 && weight((arena, time)) < weight(relative(other))
}
