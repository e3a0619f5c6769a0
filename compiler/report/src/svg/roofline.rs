//! The roofline: what kernels do in a unit of time, beside what the machine can do where they move so many bytes.

use super::axis::{Axis, Frame, Tick};
use crate::report::Report;
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
    let multiplies = |kernel: &&crate::KernelReport| {
        kernel.macs > 0 && kernel.inside == 0 && kernel.moved_bytes > 0 && report.time_of(kernel) > 0
    };
    let kernels: Vec<(usize, &crate::KernelReport)> =
        report.kernels.iter().enumerate().filter(|(_, kernel)| multiplies(kernel)).collect();
    if kernels.is_empty() {
        return None;
    }
    let has_roof = report.time_unit() == report.unit;
    let intensity = |kernel: &crate::KernelReport| kernel.macs as f64 / kernel.moved_bytes as f64;
    let rate = |kernel: &crate::KernelReport| kernel.macs as f64 / report.time_of(kernel) as f64;
    let peak = report.ceilings.multiply_adds;
    let mut across: Vec<f64> = kernels.iter().map(|(_, kernel)| intensity(kernel)).collect();
    let mut up: Vec<f64> = kernels.iter().map(|(_, kernel)| rate(kernel)).collect();
    if has_roof {
        across.extend(report.ceilings.bytes.iter().map(|(_, bytes)| peak / bytes));
        up.push(peak);
    }
    let (plot_width, plot_height) = SIZE;
    let (across, up) = (Axis::of(&across, plot_width), Axis::of(&up, plot_height));
    let point = |x: f64, y: f64| (across.at(x), tenths(plot_height - up.at(y)));
    let most_time = kernels.iter().map(|(_, kernel)| report.time_of(kernel)).max().unwrap_or(1) as f64;
    let dot = |&(number, kernel): &(usize, &crate::KernelReport)| {
        let (x, y) = point(intensity(kernel), rate(kernel));
        Dot {
            kernel: number,
            x,
            y,
            radius: tenths(3.0 + 9.0 * (report.time_of(kernel) as f64 / most_time).sqrt()),
            title: format!(
                "{}: {:.3} MACs per {}, {:.2} per byte",
                kernel.node,
                rate(kernel),
                singular(report.time_unit()),
                intensity(kernel)
            ),
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
            has_roof,
            roofs: if has_roof { report.ceilings.bytes.iter().map(roof).collect() } else { Vec::new() },
            dots: kernels.iter().map(dot).collect(),
            across: across.ticks(|at| at),
            up: up.ticks(|at| tenths(plot_height - at)),
        },
    ))
}

fn singular(unit: &str) -> &str {
    if unit == "ns" { unit } else { unit.trim_end_matches('s') }
}
