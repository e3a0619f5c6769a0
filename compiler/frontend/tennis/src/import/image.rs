//! Images as flat tensors, and how elements between theirs are made.

use super::call::Call;
use mlc_import::Fault;
use mlc_ir::{DType, Value};

/// How an element is made of those around a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of the four neighbours, by distance.
    Linear,
    /// Of sixteen neighbours.
    Cubic,
    /// The nearest one, halves away from zero.
    Nearest,
    /// The one before it.
    Hard,
}

impl Kind {
    /// The kind of a parameter `type`.
    pub fn of(number: i64) -> Result<Self, Fault> {
        match number {
            0 => Ok(Kind::Linear),
            1 => Ok(Kind::Cubic),
            2 => Ok(Kind::Nearest),
            3 => Ok(Kind::Hard),
            other => Err(Fault::parameter(format!("parameter `type` is {other}, 0 to 3 expected"))),
        }
    }

    /// Whether several elements are combined.
    pub fn combines(self) -> bool {
        matches!(self, Kind::Linear | Kind::Cubic)
    }
}

/// Numbers that can be combined: integers as doubles.
pub(super) fn as_floats(call: &mut Call<'_, '_>, x: Value) -> Result<Value, Fault> {
    let dtype = call.dtype_of(x);
    Ok(call.builder.cast(x, if dtype.is_float() { dtype } else { DType::F64 })?)
}

/// What is made of a tensor's numbers in its data type; integers are cut.
pub(super) fn of_floats(call: &mut Call<'_, '_>, y: Value, x: Value) -> Result<Value, Fault> {
    let dtype = call.dtype_of(x);
    Ok(call.builder.cast(y, dtype)?)
}

/// Most elements of a result whose places are listed.
const MOST_PLACES: usize = 1 << 22;

/// Two axes of a tensor that are read at other places.
pub(super) struct Image {
    /// The tensor as [outer, rows * columns, inner]; numbers that can be combined, where that is to be.
    pub flat: Value,
    /// Rows and columns.
    pub extents: [usize; 2],
    /// Rows and columns of the result.
    pub sizes: [usize; 2],
    /// The result's shape.
    shape: Vec<usize>,
}

impl Image {
    /// The axes from one on, of which a result of these sizes is to be made.
    pub fn new(call: &mut Call<'_, '_>, x: Value, axis: usize, sizes: [usize; 2], kind: Kind) -> Result<Self, Fault> {
        if kind == Kind::Cubic {
            return Err(Fault::variant("images that a matrix moves aren't defined for cubic interpolation"));
        }
        let shape = call.shape(x);
        let (Some(&rows), Some(&columns)) = (shape.get(axis), shape.get(axis + 1)) else {
            let ty = call.builder.ty(x);
            return Err(Fault::parameter(format!("{ty} doesn't have two axes from {axis} on")));
        };
        let count = sizes[0].saturating_mul(sizes[1]);
        if count > MOST_PLACES || rows == 0 || columns == 0 {
            let ty = call.builder.ty(x);
            return Err(Fault::operands(format!("{ty} can't be sampled at {count} places")));
        }
        let (outer, inner): (usize, usize) = (shape[..axis].iter().product(), shape[axis + 2..].iter().product());
        let flat = call.builder.reshape(x, &[outer, rows * columns, inner])?;
        let flat = if kind.combines() { as_floats(call, flat)? } else { flat };
        let shape = [&shape[..axis], &sizes, &shape[axis + 2..]].concat();
        Ok(Image { flat, extents: [rows, columns], sizes, shape })
    }

    /// Elements of the result for each of outer and inner axes.
    pub fn places(&self) -> usize {
        self.sizes[0] * self.sizes[1]
    }

    /// The result of elements [outer, places, inner], of the data type of the tensor `x`.
    pub fn result(self, call: &mut Call<'_, '_>, y: Value, x: Value) -> Result<Value, Fault> {
        let y = of_floats(call, y, x)?;
        Ok(call.builder.reshape(y, &self.shape)?)
    }
}
