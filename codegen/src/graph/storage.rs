//! Blocks of memory for tensors whose lives don't overlap. The executor knows blocks, not offsets.

/// The memory of some tensors over a part of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Life {
    /// Size in bytes.
    pub bytes: usize,
    /// First step that touches it.
    pub first: usize,
    /// Last step that touches it.
    pub last: usize,
}

/// Number of a block for each life, counted from 0: of the blocks that are free, the smallest that is large enough; else the
/// largest, which grows.
pub(super) fn assign(lives: &[Life]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by_key(|&index| (lives[index].first, std::cmp::Reverse(lives[index].bytes), index));
    // Size of each block and the step after which it is free.
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    let mut numbers = vec![0; lives.len()];
    for index in order {
        let life = &lives[index];
        let free = || (0..blocks.len()).filter(|&number| blocks[number].1 < life.first);
        let fitting = free().filter(|&number| blocks[number].0 >= life.bytes).min_by_key(|&number| blocks[number].0);
        let number = fitting.or_else(|| free().max_by_key(|&number| blocks[number].0)).unwrap_or(blocks.len());
        if number == blocks.len() {
            blocks.push((0, 0));
        }
        blocks[number] = (blocks[number].0.max(life.bytes), life.last);
        numbers[index] = number;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(bytes: usize, first: usize, last: usize) -> Life {
        Life { bytes, first, last }
    }

    #[test]
    fn a_chain_takes_two_blocks() {
        let lives = [life(8, 0, 1), life(6, 1, 2), life(8, 2, 3), life(4, 3, 4)];
        assert_eq!(assign(&lives), [0, 1, 0, 1]);
    }

    #[test]
    fn the_smallest_fitting_block_is_taken_or_the_largest_grows() {
        let lives = [life(10, 0, 0), life(4, 0, 0), life(3, 1, 1), life(20, 1, 1)];
        // The larger of the two that begin together chooses first.
        assert_eq!(assign(&lives), [0, 1, 1, 0]);
    }

    #[test]
    fn lives_that_overlap_never_share_a_block() {
        let mut generator = mlc_ir::Generator::new(3);
        for _ in 0..100 {
            let lives: Vec<Life> = (0..generator.range(1, 12))
                .map(|_| {
                    let first = generator.range(0, 9);
                    life(generator.range(1, 50), first, first + generator.range(0, 4))
                })
                .collect();
            let numbers = assign(&lives);
            for (index, left) in lives.iter().enumerate() {
                for (other, right) in lives.iter().enumerate().take(index) {
                    let together = left.first <= right.last && right.first <= left.last;
                    assert!(!together || numbers[index] != numbers[other], "{lives:?} {numbers:?}");
                }
            }
        }
    }
}
