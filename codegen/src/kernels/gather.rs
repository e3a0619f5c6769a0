//! Gathers: each index is resolved once, then the slice behind it is copied in vectors. An index outside of the axis is
//! clamped to it: generated code never leaves its buffers, whatever the data.

use super::KernelWriter;
use super::place::Place;
use super::schedule::{Kind, Scheduled, Settings};
use super::space::for_shape_in_vectors;
use crate::loops::Nest;
use mlc_ir::Diagnostic;
use mlc_ir::ops::{Gather, GatherElements};

impl Scheduled for Gather {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("slices", gather)];
}

fn gather(op: &Gather, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let (data, places) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let dtype = data.view.dtype;
    let extent = data.view.shape[op.axis];
    let (outer, inner) = (data.view.shape[..op.axis].to_vec(), data.view.shape[op.axis + 1..].to_vec());
    let lanes = if data.view.last_stride() == 1 && !inner.is_empty() { kernel.epilogue_lanes(dtype) } else { 1 };
    let shape = places.view.shape.to_vec();
    kernel.for_shape(&["i0", "i1", "i2", "i3"], &outer, &mut |kernel, outer| {
        kernel.for_shape(&["k0", "k1", "k2", "k3"], &shape, &mut |kernel, position| {
            let index = kernel.load(&places, position, 1, 1);
            let place = Place::new(kernel, index, extent).clamped(kernel);
            for_shape_in_vectors(kernel, &["j0", "j1", "j2", "j3"], &inner, lanes, dtype, |kernel, inner, lanes| {
                let source = [outer, std::slice::from_ref(&place), inner].concat();
                let value = kernel.load(&data, &source, lanes, lanes);
                kernel.finish(value, &[outer, position, inner].concat(), lanes);
            });
        });
    });
    Ok(())
}

impl Scheduled for GatherElements {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("elements", gather_elements)];
}

fn gather_elements(op: &GatherElements, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (data, places) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let extent = data.view.shape[op.axis];
    let shape = places.view.shape.to_vec();
    kernel.for_shape(&["i0", "i1", "i2", "i3", "i4", "i5"], &shape, &mut |kernel, position| {
        let index = kernel.load(&places, position, 1, 1);
        let mut source = position.to_vec();
        source[op.axis] = Place::new(kernel, index, extent).clamped(kernel);
        let value = kernel.load(&data, &source, 1, 1);
        kernel.finish(value, position, 1);
    });
    Ok(())
}
