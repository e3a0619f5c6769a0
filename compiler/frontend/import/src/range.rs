//! Numbers in equal steps, an operator that several formats have.

use crate::axes::MOST_ELEMENTS;
use crate::call::Call;
use crate::fault::Fault;
use crate::format::Format;
use mlc_ir::{Attribute, Code, Tensor, TensorType, Value};

/// Most numbers, which are written out.
const MOST_NUMBERS: usize = MOST_ELEMENTS / 8;

fn too_large() -> Fault {
    Fault::new(Code::NumberOutOfRange, "the range isn't finite, or too large to be written out")
}

impl<F: Format> Call<'_, '_, F> {
    /// The numbers from the first operand on, before the second, in steps of the third, with the data type of the first.
    ///
    /// # Errors
    /// When an operand isn't known while compiling, or there are too many numbers.
    pub fn range(&mut self) -> Result<Value, Fault> {
        let x = self.input(0)?;
        let dtype = self.dtype_of(x);
        let numbers = if dtype.is_integer() {
            let values = self.whole_steps()?;
            Tensor::from_integers(TensorType::new(dtype, [values.len()]), values)
        } else {
            let values = self.real_steps()?;
            Tensor::from_floats(TensorType::new(dtype, [values.len()]), values)
        };
        Ok(self.builder.constant("value", Attribute::from_tensor(&numbers)))
    }

    fn whole_steps(&mut self) -> Result<Vec<i64>, Fault> {
        let mut number = |index: usize, what: &str| -> Result<i64, Fault> {
            let number = self.constant_int(index, what)?;
            self.required(what, number)
        };
        let (start, limit, delta) = (number(0, "start")?, number(1, "limit")?, number(2, "delta")?);
        let distance = i128::from(limit) - i128::from(start);
        let delta = i128::from(delta);
        let whole = distance.checked_div(delta).ok_or_else(too_large)?;
        let count = whole + i128::from(distance % delta != 0 && (distance < 0) == (delta < 0));
        let count = usize::try_from(count.max(0)).ok().filter(|&count| count <= MOST_NUMBERS);
        let count = count.ok_or_else(too_large)?;
        Ok((0..count as i128).map(|place| (i128::from(start) + place * delta) as i64).collect())
    }

    fn real_steps(&mut self) -> Result<Vec<f64>, Fault> {
        let mut number = |index: usize, what: &str| -> Result<f64, Fault> {
            let number = self.constant_float(index, what)?;
            self.required(what, number)
        };
        let (start, limit, delta) = (number(0, "start")?, number(1, "limit")?, number(2, "delta")?);
        let count = ((limit - start) / delta).ceil().max(0.0);
        if !count.is_finite() || count > MOST_NUMBERS as f64 || delta == 0.0 {
            return Err(too_large());
        }
        Ok((0..count as usize).map(|place| start + place as f64 * delta).collect())
    }
}
