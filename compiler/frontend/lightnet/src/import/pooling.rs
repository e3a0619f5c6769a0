//! Pools of images [N, C, rows, columns].

use super::call::{Call, Parameters, Table};
use super::signature::Signature;
use super::signature::Type::{self, Numbers, Text};
use super::window::Geometry;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::PoolWindow;
use mlc_ir::Value;

pub(super) const OPERATORS: Table = &[
    (Signature::new("avgpool2d", &["src"], &["dst"], PARAMETERS), One(average)),
    (Signature::new("maxpool2d", &["src"], &["dst"], PARAMETERS), One(maximum)),
];

const PARAMETERS: &[(&str, Type)] = &[("size", Numbers), ("stride", Numbers), ("padding", Numbers), ("autopad", Text)];

fn window(call: &mut Call<'_, '_>, x: Value) -> Result<PoolWindow, Fault> {
    call.check_rank(0, x, 4)?;
    let geometry =
        Geometry { size: call.fixed_list("size", 1)?, stride: call.fixed_list("stride", 1)?, dilation: [1; 2] };
    let shape = call.shape(x);
    let pads = geometry.pads(call, [shape[2], shape[3]])?;
    Ok(PoolWindow {
        window: geometry.size.to_vec(),
        strides: geometry.stride.to_vec(),
        dilations: geometry.dilation.to_vec(),
        pads: pads.to_vec(),
    })
}

/// Windows that lie in the padding as a whole have no element.
fn check_overlap(window: &PoolWindow) -> Result<(), Fault> {
    for (&size, &(before, after)) in window.window.iter().zip(&window.pads) {
        if before >= size || after >= size {
            return Err(Fault::parameter(format!(
                "a window of {size} lies in the pads ({before}, {after}) as a whole: smaller pads expected"
            )));
        }
    }
    Ok(())
}

fn maximum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let window = window(call, x)?;
    check_overlap(&window)?;
    Ok(call.builder.max_pool(x, window)?)
}

/// Pads don't count in the divisor.
fn average(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let window = window(call, x)?;
    check_overlap(&window)?;
    Ok(call.builder.average_pool(x, window, vec![(0, 0); 2])?)
}
