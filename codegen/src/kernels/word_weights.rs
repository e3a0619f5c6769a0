//! Weights as the words that vectors of sums are multiplied by ([`super::vector_quads`]).

use super::contraction::Contraction;
use super::dots::runs;
use super::grain::{Grain, QUAD, pair, quad};
use super::tile::Block;
use crate::target::ByteDots;
use mlc_ir::{Attribute, Tensor, TensorType};

impl Contraction {
    /// Where the weights of an output have their runs: of each position of the axes along which they move, those that it is summed over.
    pub(super) fn weight_starts(&self) -> Vec<i64> {
        let mut starts = vec![self.weights_offset];
        for axis in self.outer.iter().filter(|axis| axis.weights != 0) {
            let moved = |&start: &i64| (0..axis.extent as i64).map(move |at| start + at * axis.weights);
            starts = starts.iter().flat_map(moved).collect();
        }
        let (_, own) = runs(self);
        starts.iter().flat_map(|start| own.iter().map(move |(_, weights)| start + weights)).collect()
    }

    /// The weights, which are constant bytes, or what they are transformed to.
    fn weight_numbers(&self) -> Option<Vec<i16>> {
        let constant = self.weights.constant.as_ref()?;
        match &self.transform {
            Some((windows, group)) => windows.transformed_words(group, constant),
            None => Some(constant.bytes().iter().map(|&byte| i16::from(byte as i8)).collect()),
        }
    }

    /// One of them, by its output, the start of its run, and its place there.
    fn weight(&self, numbers: &[i16], output: usize, start: i64, step: usize) -> Option<i16> {
        let stride = self.reduction.last().map_or(0, |axis| axis.weights);
        let element = start + output as i64 * self.output_stride + step as i64 * stride;
        numbers.get(usize::try_from(element).ok()?).copied()
    }

    /// Sums of the outputs' weights, if these are constant.
    pub(super) fn weight_sums(&self) -> Option<Vec<i64>> {
        let (numbers, starts, (run, _)) = (self.weight_numbers()?, self.weight_starts(), runs(self));
        let of_output = |output: usize| {
            let mut all = starts.iter().flat_map(|&start| (0..run).map(move |step| (start, step)));
            all.try_fold(0, |sum, (start, step)| Some(sum + i64::from(self.weight(&numbers, output, start, step)?)))
        };
        (0..self.outputs).map(of_output).collect()
    }

    /// Words of weights, block by block, run by run, word by word, output by output; outputs that aren't there have zeros. Vectors of
    /// words may have an [order](Grain::order) of their own.
    pub(super) fn weight_words(&self, blocks: &[Block], grain: Grain, dots: ByteDots) -> Option<Attribute> {
        let (numbers, starts, (run, _)) = (self.weight_numbers()?, self.weight_starts(), runs(self));
        let (count, (dtype, size)) = (grain.count(), grain.weights());
        let mut words: Vec<i64> = Vec::new();
        let mut output = 0;
        for block in blocks {
            for _ in 0..block.count {
                let own = output..output + block.outputs();
                output = own.end;
                for &start in &starts {
                    for first in (0..run).step_by(count) {
                        for output in own.clone() {
                            let mut part = [0; QUAD];
                            for (place, step) in part.iter_mut().zip(first..run.min(first + count)) {
                                *place = self.weight(&numbers, output, start, step)?;
                            }
                            match grain {
                                Grain::Quads => words.push(quad(&part.map(|number| number as i8))),
                                Grain::Words => words.push(pair([part[0], part[1]])),
                                Grain::Pairs => words.extend(part[..count].iter().map(|&number| i64::from(number))),
                            }
                        }
                        words.extend(std::iter::repeat_n(0, (block.width() - block.outputs()) * size));
                        if let Some(order) = grain.order(dots) {
                            let first = words.len() - block.width();
                            words[first..]
                                .chunks_exact_mut(QUAD)
                                .for_each(|lanes| lanes.copy_from_slice(&order(lanes)));
                        }
                    }
                }
            }
        }
        let ty = TensorType::new(dtype, [words.len()]);
        Some(Attribute::from_tensor(&Tensor::from_integers(ty, words)))
    }
}
