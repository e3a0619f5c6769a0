//! The engine's types for LightNet, and checked access to what its operators have. Signatures are checked before, so that tensors and
//! parameters are there.

use super::format::Lightnet;
use super::signature::Signature;
use mlc_import::Fault;
use mlc_ir::{Code, DType, Value};

/// An operator while it is imported.
pub(super) type Call<'c, 'm> = mlc_import::Call<'c, 'm, Lightnet>;

/// A model while it becomes a graph.
pub(super) type Importer<'m> = mlc_import::Importer<'m, Lightnet>;

/// How an operator is imported.
pub(super) type Handler = mlc_import::Handler<Lightnet>;

/// Operators with what they have.
pub(super) type Table = &'static [(Signature, Handler)];

/// Access to parameters and tensors by the format's rules.
pub(super) trait Parameters<'m> {
    /// A whole number.
    fn required_int(&mut self, key: &str) -> Result<i64, Fault>;

    /// A whole number of at least `least`.
    fn count(&mut self, key: &str, least: i64) -> Result<usize, Fault>;

    /// Whole numbers of at least `least`.
    fn list(&mut self, key: &str, least: i64) -> Result<Vec<usize>, Fault>;

    /// As many whole numbers as wanted, of at least `least`.
    fn fixed_list<const N: usize>(&mut self, key: &str, least: i64) -> Result<[usize; N], Fault>;

    /// A number.
    fn required_float(&mut self, key: &str) -> Result<f64, Fault>;

    /// A word.
    fn required_word(&mut self, key: &str) -> Result<&'m str, Fault>;

    /// A data type.
    fn required_dtype(&mut self, key: &str) -> Result<DType, Fault>;

    /// The axis of a tensor; none counts from the end.
    fn plain_axis(&mut self, x: Value, key: &str) -> Result<usize, Fault>;

    /// The text that a tensor is called by in messages: `bias` (`b`).
    fn title(&self, operand: usize) -> String;

    /// Refuses tensors of different data types.
    fn check_same_type(&self, x: Value, y: Value) -> Result<(), Fault>;

    /// Refuses tensors of different shapes.
    fn check_same_shape(&self, x: (usize, Value), y: (usize, Value)) -> Result<(), Fault>;

    /// Refuses a tensor of another number of axes.
    fn check_rank(&self, operand: usize, x: Value, rank: usize) -> Result<(), Fault>;

    /// Refuses a tensor of another data type.
    fn check_dtype(&self, operand: usize, x: Value, dtype: DType) -> Result<(), Fault>;
}

fn least_fault(key: &str, least: i64, found: i64) -> Fault {
    Fault::parameter(format!("parameter `{key}` has {found}, at least {least} expected"))
}

impl<'m> Parameters<'m> for Call<'_, 'm> {
    fn required_int(&mut self, key: &str) -> Result<i64, Fault> {
        let number = self.int(key)?;
        self.required(key, number)
    }

    fn count(&mut self, key: &str, least: i64) -> Result<usize, Fault> {
        let number = self.required_int(key)?;
        if number < least { Err(least_fault(key, least, number)) } else { Ok(number as usize) }
    }

    fn list(&mut self, key: &str, least: i64) -> Result<Vec<usize>, Fault> {
        let numbers = self.required_ints(key)?;
        match numbers.iter().find(|&&number| number < least) {
            Some(&number) => Err(least_fault(key, least, number)),
            None => Ok(numbers.into_iter().map(|number| number as usize).collect()),
        }
    }

    fn fixed_list<const N: usize>(&mut self, key: &str, least: i64) -> Result<[usize; N], Fault> {
        let numbers = self.list(key, least)?;
        let found = numbers.len();
        numbers.try_into().map_err(|_| Fault::parameter(format!("parameter `{key}` has {found} numbers, {N} expected")))
    }

    fn required_float(&mut self, key: &str) -> Result<f64, Fault> {
        let number = self.float(key)?;
        self.required(key, number)
    }

    fn required_word(&mut self, key: &str) -> Result<&'m str, Fault> {
        let word = self.word(key)?;
        self.required(key, word)
    }

    fn required_dtype(&mut self, key: &str) -> Result<DType, Fault> {
        let dtype = self.dtype(key)?;
        self.required(key, dtype)
    }

    fn plain_axis(&mut self, x: Value, key: &str) -> Result<usize, Fault> {
        let (axis, rank) = (self.count(key, 0)?, self.rank(x));
        if axis >= rank {
            let ty = self.builder.ty(x);
            return Err(Fault::parameter(format!("parameter `{key}` is {axis}, but {ty} has {rank} axes")));
        }
        Ok(axis)
    }

    fn title(&self, operand: usize) -> String {
        match self.site.operator.operands.get(operand) {
            Some((label, name)) => format!("`{label}` (`{name}`)"),
            None => format!("operand {operand}"),
        }
    }

    fn check_same_type(&self, x: Value, y: Value) -> Result<(), Fault> {
        let (x, y) = (self.builder.ty(x), self.builder.ty(y));
        if x.dtype == y.dtype {
            return Ok(());
        }
        Err(Fault::operands(format!("the tensors must have the same data type, found {x} and {y}")))
    }

    fn check_same_shape(&self, x: (usize, Value), y: (usize, Value)) -> Result<(), Fault> {
        let (first, second) = (self.shape(x.1), self.shape(y.1));
        if first == second {
            return Ok(());
        }
        let (x, y) = (self.title(x.0), self.title(y.0));
        let message = format!("{x} has the shape {first:?} and {y} has {second:?}; they must be the same");
        Err(Fault::new(Code::ShapeMismatch, message))
    }

    fn check_rank(&self, operand: usize, x: Value, rank: usize) -> Result<(), Fault> {
        if self.rank(x) == rank {
            return Ok(());
        }
        let (title, ty) = (self.title(operand), self.builder.ty(x));
        Err(Fault::operands(format!("{title} is {ty}, {rank} axes expected")))
    }

    fn check_dtype(&self, operand: usize, x: Value, dtype: DType) -> Result<(), Fault> {
        if self.dtype_of(x) == dtype {
            return Ok(());
        }
        let (title, ty) = (self.title(operand), self.builder.ty(x));
        Err(Fault::operands(format!("{title} is {ty}, {dtype} expected")))
    }
}
