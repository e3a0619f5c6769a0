//! Axes of pictures.

use crate::template::{grouped, tenths};
use serde::Serialize;

/// A plot with room for its labels, in pixels.
#[derive(Serialize)]
pub struct Frame {
    width: f64,
    height: f64,
    left: f64,
    top: f64,
    plot_width: f64,
    plot_height: f64,
}

impl Frame {
    /// One around a plot of a width and a height, with so much to the left and the right of it.
    pub fn around((plot_width, plot_height): (f64, f64), left: f64, right: f64) -> Frame {
        let (above, below) = (16.0, 48.0);
        let (width, height) = (left + plot_width + right, above + plot_height + below);
        Frame { width, height, left, top: above, plot_width, plot_height }
    }
}

/// A number on an axis.
#[derive(Serialize)]
pub struct Tick {
    /// Where it is, in pixels.
    pub at: f64,
    /// The number.
    pub text: String,
}

/// A range of powers of ten on an axis of so many pixels.
pub struct Axis {
    /// The power of ten at its beginning.
    pub low: f64,
    /// The power of ten at its end.
    pub high: f64,
    pixels: f64,
}

impl Axis {
    /// One that shows all numbers, which are positive.
    pub fn of(numbers: &[f64], pixels: f64) -> Axis {
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min).log10().floor();
        let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max).log10().ceil();
        Axis { low, high: high.max(low + 1.0), pixels }
    }

    /// Where a number is, in pixels.
    pub fn at(&self, number: f64) -> f64 {
        tenths((number.log10() - self.low) / (self.high - self.low) * self.pixels)
    }

    /// The powers of ten, each where a place of the axis is drawn.
    pub fn ticks(&self, place: impl Fn(f64) -> f64) -> Vec<Tick> {
        let powers = self.low as i32..=self.high as i32;
        let tick = |power: i32| {
            let number = 10f64.powi(power);
            Tick { at: place(self.at(number)), text: format!("{number}") }
        };
        powers.map(tick).collect()
    }
}

/// An axis of so many pixels from nothing on.
pub struct FromNothing {
    step: f64,
    pixels_of_step: f64,
    steps: usize,
}

impl FromNothing {
    /// One that shows all numbers, with about five steps of 1, 2 or 5 times a power of ten.
    pub fn of(most: u64, pixels: f64) -> FromNothing {
        let least = most.max(1) as f64 / 5.0;
        let power = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|&step| step >= least);
        let step = step.unwrap_or(10.0 * power).max(1.0);
        let steps = (most.max(1) as f64 / step).ceil().max(1.0);
        FromNothing { step, pixels_of_step: pixels / steps, steps: steps as usize }
    }

    /// Where a number is, in pixels.
    pub fn at(&self, number: u64) -> f64 {
        tenths(number as f64 / self.step * self.pixels_of_step)
    }

    /// The steps, each where a place of the axis is drawn.
    pub fn ticks(&self, place: impl Fn(f64) -> f64) -> Vec<Tick> {
        let tick = |step: usize| {
            let number = (step as f64 * self.step).round() as u64;
            Tick { at: place(self.at(number)), text: grouped(number) }
        };
        (0..=self.steps).map(tick).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_numbers() {
        let axis = FromNothing::of(64_000, 160.0);
        let ticks = axis.ticks(|at| at);
        assert_eq!((ticks.len(), ticks[1].text.as_str(), ticks[1].at), (5, "20\u{202f}000", 40.0));
        assert_eq!(FromNothing::of(0, 10.0).at(0), 0.0);
    }

    #[test]
    fn an_axis_shows_all_numbers_between_powers_of_ten() {
        let axis = Axis::of(&[0.02, 3.0], 100.0);
        assert_eq!((axis.at(0.01), axis.at(10.0)), (0.0, 100.0));
        assert_eq!(
            axis.ticks(|at| at).iter().map(|tick| tick.text.as_str()).collect::<Vec<_>>(),
            ["0.01", "0.1", "1", "10"]
        );
        assert_eq!(Axis::of(&[1.0], 10.0).at(1.0), 0.0);
    }
}
