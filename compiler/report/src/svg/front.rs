//! Programs between little memory and little time.

use super::axis::{Frame, FromNothing, Tick};
use crate::template::{bytes, fill, grouped, tenths};
use serde::Serialize;

/// Width and height of the plot without its labels, in pixels.
const SIZE: (f64, f64) = (520.0, 260.0);

#[derive(Serialize)]
struct Picture<'a> {
    #[serde(flatten)]
    frame: Frame,
    unit: &'a str,
    line: String,
    dots: Vec<Dot>,
    across: Vec<Tick>,
    up: Vec<Tick>,
}

#[derive(Serialize)]
struct Dot {
    x: f64,
    y: f64,
    title: String,
}

/// Draws programs, each with its bytes of working memory and its time in a unit, as points.
pub fn front(programs: &[(u64, u64)], unit: &str) -> String {
    let (plot_width, plot_height) = SIZE;
    let most = |figure: fn(&(u64, u64)) -> u64| programs.iter().map(figure).max().unwrap_or(0);
    let across = FromNothing::of(most(|program| program.0), plot_width);
    let up = FromNothing::of(most(|program| program.1), plot_height);
    let dot = |&(memory, time): &(u64, u64)| Dot {
        x: across.at(memory),
        y: tenths(plot_height - up.at(time)),
        title: format!("{} of working memory, {} {unit}", bytes(memory), grouped(time)),
    };
    let dots: Vec<Dot> = programs.iter().map(dot).collect();
    let line: Vec<String> = dots.iter().map(|dot| format!("{} {}", dot.x, dot.y)).collect();
    fill(
        "front.xml",
        Picture {
            frame: Frame::around(SIZE, 92.0, 40.0),
            unit,
            line: if line.is_empty() { String::new() } else { format!("M{}", line.join("L")) },
            across: across.ticks(|at| at),
            up: up.ticks(|at| tenths(plot_height - at)),
            dots,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_memory_is_further_left_and_more_time_further_up() {
        let picture = front(&[(1_000, 90_000), (10_000, 20_000)], "instructions");
        let circles: Vec<&str> = picture.lines().filter(|line| line.contains("<circle")).collect();
        let number = |line: &str, name: &str| -> f64 {
            let start = line.find(name).unwrap() + name.len();
            line[start..].split('"').next().unwrap().parse().unwrap()
        };
        assert_eq!(circles.len(), 2, "{picture}");
        assert!(number(circles[0], "cx=\"") < number(circles[1], "cx=\""), "{picture}");
        assert!(number(circles[0], "cy=\"") < number(circles[1], "cy=\""), "{picture}");
        assert!(picture.contains("1\u{202f}000 B of working memory, 90\u{202f}000 instructions"), "{picture}");
    }
}
