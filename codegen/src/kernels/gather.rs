//! Gathers: each index is resolved once, then the slice behind it is copied in vectors. An index outside of the axis is
//! clamped to it: generated code never leaves its buffers, whatever the data.

use super::Kernel;
use super::space::for_shape_in_vectors;
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::Gather;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Diagnostic, Literal};

/// The schedule of `gather`.
pub fn gather(kernel: &mut Kernel<'_>, op: &Gather) -> Result<(), Diagnostic> {
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
            let place = resolved(kernel, index, extent);
            for_shape_in_vectors(kernel, &["j0", "j1", "j2", "j3"], &inner, lanes, dtype, |kernel, inner, lanes| {
                let source = [outer, std::slice::from_ref(&place), inner].concat();
                let value = kernel.load(&data, &source, lanes, lanes);
                kernel.finish(value, &[outer, position, inner].concat(), lanes);
            });
        });
    });
    Ok(())
}

/// The element of an axis that an index means; negative ones count from the end.
fn resolved(kernel: &mut Kernel<'_>, index: Expr, extent: usize) -> Index {
    let dtype = kernel.b.ty(&index).dtype;
    let literal = |value: usize| Expr::Literal(Literal::integer(dtype, value as i64));
    // Indices of a narrow type may not reach the end, which is then no bound.
    let last = extent - 1;
    let reaches = Literal::integer(dtype, last as i64) == Literal::Integer(dtype, last as i64);
    let index = kernel.b.define("index", index);
    if !dtype.is_signed() {
        let bounded = if reaches { Expr::binary(BinaryFunction::Minimum, index, literal(last)) } else { index };
        return kernel.b.define_index("place", Index::value(bounded));
    }
    let wide = if dtype.size() < 4 { kernel.b.define("wide", Expr::Cast(DType::I32, Box::new(index))) } else { index };
    let dtype = kernel.b.ty(&wide).dtype;
    let literal = |value: usize| Expr::Literal(Literal::integer(dtype, value as i64));
    let negative = Expr::binary(BinaryFunction::Less, wide.clone(), literal(0));
    let from_end = wide.clone().plus(literal(extent));
    let place = Expr::Select(Box::new(negative), Box::new(from_end), Box::new(wide));
    let bounded = Expr::binary(BinaryFunction::Minimum, place, literal(last));
    let bounded = Expr::binary(BinaryFunction::Maximum, bounded, literal(0));
    kernel.b.define_index("place", Index::value(bounded))
}
