//! The engine's types for TenniS, and what its operators have besides what the engine reads for all formats: parameters of a shape,
//! packed operands, numbers of any data type as operands.

use super::format::Tennis;
use super::item::Item;
use crate::tensor::{Field, Tensor};
use mlc_import::Fault;
use mlc_ir::{Attribute, Code, DType, TensorType, Value};

/// An operator while it is imported.
pub(super) type Call<'c, 'm> = mlc_import::Call<'c, 'm, Tennis>;

/// A model while it becomes a graph.
pub(super) type Importer<'m> = mlc_import::Importer<'m, Tennis>;

/// Names and handlers.
pub(super) type Table = mlc_import::Table<Tennis>;

/// Access to what only TenniS has.
pub(super) trait Parameters<'m> {
    /// A tensor.
    fn field(&mut self, key: &str) -> Result<Option<&'m Field>, Fault>;

    /// A whole number that the operator can't do without.
    fn required_int(&mut self, key: &str) -> Result<i64, Fault>;

    /// A number that the operator can't do without.
    fn required_float(&mut self, key: &str) -> Result<f64, Fault>;

    /// A word that the operator can't do without.
    fn required_word(&mut self, key: &str) -> Result<&'m str, Fault>;

    /// As many whole numbers as wanted, in a list.
    fn required_list(&mut self, key: &str, wanted: usize) -> Result<Vec<i64>, Fault>;

    /// The axis of a tensor that a parameter names; the operator can't do without.
    fn required_axis(&mut self, x: Value, key: &str) -> Result<usize, Fault>;

    /// Such an axis where negative numbers mean none.
    fn required_plain_axis(&mut self, x: Value, key: &str) -> Result<usize, Fault>;

    /// Shape and whole numbers of an operand that is known while the model is imported; fractions are cut off.
    fn whole_numbers(&mut self, index: usize, what: &str) -> Result<(Vec<usize>, Vec<i64>), Fault>;

    /// As many whole numbers as wanted, of an operand that is known while the model is imported.
    fn known_list(&mut self, index: usize, what: &str, wanted: usize) -> Result<Vec<i64>, Fault>;

    /// The tensors of a packed operand; a tensor by itself counts as a tuple of one.
    fn packed(&mut self, index: usize) -> Result<std::rc::Rc<[Value]>, Fault>;

    /// A tensor of floating-point numbers.
    fn floats_input(&mut self, index: usize) -> Result<Value, Fault>;

    /// A constant of 32-bit integers, as the format's operators give shapes.
    fn constant_of_ints(&mut self, shape: &[usize], values: &[i64]) -> Value;
}

impl<'m> Parameters<'m> for Call<'_, 'm> {
    fn field(&mut self, key: &str) -> Result<Option<&'m Field>, Fault> {
        self.typed(key, "a tensor", |tensor: &&'m Tensor| {
            let tensor: &'m Tensor = tensor;
            tensor.single()
        })
    }

    fn required_int(&mut self, key: &str) -> Result<i64, Fault> {
        let number = self.int(key)?;
        self.required(key, number)
    }

    fn required_float(&mut self, key: &str) -> Result<f64, Fault> {
        let number = self.float(key)?;
        self.required(key, number)
    }

    fn required_word(&mut self, key: &str) -> Result<&'m str, Fault> {
        let word = self.word(key)?;
        self.required(key, word)
    }

    fn required_list(&mut self, key: &str, wanted: usize) -> Result<Vec<i64>, Fault> {
        let numbers = self.required_ints(key)?;
        if numbers.len() != wanted {
            let message = format!("parameter `{key}` has {} numbers, {wanted} expected", numbers.len());
            return Err(Fault::parameter(message));
        }
        Ok(numbers)
    }

    fn required_axis(&mut self, x: Value, key: &str) -> Result<usize, Fault> {
        let axis = self.required_int(key)?;
        self.axis(x, axis)
    }

    fn required_plain_axis(&mut self, x: Value, key: &str) -> Result<usize, Fault> {
        let axis = self.required_int(key)?;
        if axis < 0 {
            return Err(Fault::parameter(format!("parameter `{key}` is {axis}, at least 0 expected")));
        }
        self.axis(x, axis)
    }

    fn whole_numbers(&mut self, index: usize, what: &str) -> Result<(Vec<usize>, Vec<i64>), Fault> {
        let missing = || Fault::new(Code::OperandCount, format!("operand {index} ({what}) is missing"));
        let attribute = self.constant(index, what)?.ok_or_else(missing)?;
        let tensor = attribute.to_tensor();
        let numbers = match attribute.ty().dtype.is_float() {
            true => tensor.to_floats().into_iter().map(|number| number as i64).collect(),
            false => tensor.to_integers(),
        };
        Ok((attribute.ty().shape.to_vec(), numbers))
    }

    fn known_list(&mut self, index: usize, what: &str, wanted: usize) -> Result<Vec<i64>, Fault> {
        let (_, numbers) = self.whole_numbers(index, what)?;
        if numbers.len() != wanted {
            let message = format!("{what} (operand {index}) has {} numbers, {wanted} expected", numbers.len());
            return Err(Fault::operands(message));
        }
        Ok(numbers)
    }

    fn packed(&mut self, index: usize) -> Result<std::rc::Rc<[Value]>, Fault> {
        match self.item(index) {
            Item::Packed(values) => Ok(values),
            other => Ok([self.as_tensor(&index.to_string(), &other)?].into()),
        }
    }

    fn floats_input(&mut self, index: usize) -> Result<Value, Fault> {
        let x = self.input(index)?;
        if !self.dtype_of(x).is_float() {
            let ty = self.builder.ty(x);
            return Err(Fault::operands(format!("operand {index} must hold floating-point numbers, found {ty}")));
        }
        Ok(x)
    }

    fn constant_of_ints(&mut self, shape: &[usize], values: &[i64]) -> Value {
        let tensor = mlc_ir::Tensor::from_integers(TensorType::new(DType::I32, shape), values.to_vec());
        self.builder.constant("value", Attribute::from_tensor(&tensor))
    }
}
