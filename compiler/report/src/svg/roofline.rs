//! The roofline: what kernels do in a unit of time, beside what the machine can do where they move so many bytes.

use super::axis::{Axis, Frame, Tick};
use crate::report::{KernelReport, Report};
use crate::template::{fill, tenths};
use serde::Serialize;

/// Width and height of the plot without its labels, in pixels.
const SIZE: (f64, f64) = (640.0, 300.0);

#[derive(Serialize)]
struct Picture<'a> {
    #[serde(flatten)]
    frame: Frame,
    unit: &'a str,
    has_roof: bool,
    roofs: Vec<Roof>,
    dots: Vec<Dot>,
    across: Vec<Tick>,
    up: Vec<Tick>,
}

#[derive(Serialize)]
struct Roof {
    path: String,
    text: String,
    x: f64,
    y: f64,
}

#[derive(Serialize)]
struct Dot {
    kernel: usize,
    x: f64,
    y: f64,
    radius: f64,
    title: String,
}

/// Draws the kernels that multiply: products in a unit of time over products per byte that has to be moved. The machine's ceilings are
/// there where times are in the unit of its prices. `None` where no kernel multiplies.
pub fn roofline(report: &Report) -> Option<String> {
    let kernels: Vec<Multiplying<'_>> = multiplying(report);
    if kernels.is_empty() {
        return None;
    }
    let machine = report.ceilings.as_ref().filter(|_| Some(report.time_unit()) == report.unit.as_deref());
    let peak = machine.map_or(0.0, |machine| machine.multiply_adds);
    let slopes = machine.map_or(&[][..], |machine| &machine.bytes);
    let mut across: Vec<f64> = kernels.iter().map(Multiplying::intensity).collect();
    let mut up: Vec<f64> = kernels.iter().map(Multiplying::rate).collect();
    across.extend(slopes.iter().map(|(_, bytes)| peak / bytes));
    up.extend(machine.map(|_| peak));
    let (plot_width, plot_height) = SIZE;
    let (across, up) = (Axis::of(&across, plot_width), Axis::of(&up, plot_height));
    let point = |x: f64, y: f64| (across.at(x), tenths(plot_height - up.at(y)));
    let most_time = kernels.iter().map(|kernel| kernel.time).fold(0.0, f64::max);
    let dot = |kernel: &Multiplying<'_>| {
        let (x, y) = point(kernel.intensity(), kernel.rate());
        let unit = singular(report.time_unit());
        Dot {
            kernel: kernel.number,
            x,
            y,
            radius: tenths(3.0 + 9.0 * (kernel.time / most_time).sqrt()),
            title: format!("{}: {:.3} MACs per {unit}, {:.2} per byte", kernel.node, kernel.rate(), kernel.intensity()),
        }
    };
    let roof = |(name, bytes): &(String, f64)| {
        let low = 10f64.powf(across.low).max(10f64.powf(up.low) / bytes);
        let (from, bend, to) =
            (point(low, low * bytes), point(peak / bytes, peak), point(10f64.powf(across.high), peak));
        Roof {
            path: format!("M{} {}L{} {}L{} {}", from.0, from.1, bend.0, bend.1, to.0, to.1),
            text: format!("{name}: {bytes:.0} bytes"),
            x: tenths(f64::midpoint(from.0, bend.0) + 4.0),
            y: tenths(f64::midpoint(from.1, bend.1) + 10.0),
        }
    };
    Some(fill(
        "roofline.xml",
        Picture {
            frame: Frame::around(SIZE, 64.0, 16.0),
            unit: singular(report.time_unit()),
            has_roof: machine.is_some(),
            roofs: slopes.iter().map(roof).collect(),
            dots: kernels.iter().map(dot).collect(),
            across: across.ticks(|at| at),
            up: up.ticks(|at| tenths(plot_height - at)),
        },
    ))
}

/// A kernel that multiplies, and of which it is known how often, what it moves and how long it takes.
struct Multiplying<'a> {
    number: usize,
    node: &'a str,
    macs: f64,
    moved_bytes: f64,
    time: f64,
}

impl Multiplying<'_> {
    /// Products per byte that has to be moved.
    fn intensity(&self) -> f64 {
        self.macs / self.moved_bytes
    }

    /// Products in a unit of time.
    fn rate(&self) -> f64 {
        self.macs / self.time
    }
}

fn multiplying<'a>(report: &'a Report) -> Vec<Multiplying<'a>> {
    let known = |figure: Option<u64>| figure.filter(|&figure| figure > 0).map(|figure| figure as f64);
    let one = |(number, kernel): (usize, &'a KernelReport)| {
        let (macs, moved_bytes) = (known(kernel.macs)?, known(kernel.moved_bytes)?);
        Some(Multiplying { number, node: &kernel.node, macs, moved_bytes, time: known(report.time_of(kernel))? })
    };
    let kernels = report.kernels.iter().enumerate().filter(|(_, kernel)| kernel.inside == 0);
    kernels.filter_map(one).collect()
}

fn singular(unit: &str) -> &str {
    if unit == "ns" { unit } else { unit.trim_end_matches('s') }
}
