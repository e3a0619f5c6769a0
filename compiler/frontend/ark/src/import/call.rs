//! The engine's types for ARK, and what ARK operations have besides what the engine reads for all formats: the tensors that they
//! write say shape and type of the results.

use super::format::Ark;
use mlc_import::Fault;
use mlc_ir::{DType, Shape, Value};

/// An operation while it is imported.
pub(super) type Call<'c, 'm> = mlc_import::Call<'c, 'm, Ark>;

/// A model while it becomes a graph.
pub(super) type Importer<'m> = mlc_import::Importer<'m, Ark>;

/// Operation types with their handlers.
pub(super) type Table = mlc_import::Table<Ark>;

/// What is known of results.
pub(super) trait Results {
    /// The shape of a tensor that is written.
    ///
    /// # Errors
    /// When the operation writes no tensor of this number; so with the others.
    fn result_shape(&self, result: usize) -> Result<Shape, Fault>;

    /// The type of a tensor that is written.
    fn result_dtype(&self, result: usize) -> Result<DType, Fault>;

    /// The value, repeated along axes of extent 1 up to the shape of the first tensor that is written.
    fn spread(&mut self, value: Value) -> Result<Value, Fault>;

    /// The value's elements under the shape of a tensor that is written.
    fn shaped(&mut self, value: Value, result: usize) -> Result<Value, Fault>;
}

impl Results for Call<'_, '_> {
    fn result_shape(&self, result: usize) -> Result<Shape, Fault> {
        let written = self.site.operator.results.get(result);
        let written = written.ok_or_else(|| Fault::operands(format!("there is no tensor {result} to write to")))?;
        Ok(self.model.ty(*written).shape.clone())
    }

    fn result_dtype(&self, result: usize) -> Result<DType, Fault> {
        let written = self.site.operator.results.get(result);
        let written = written.ok_or_else(|| Fault::operands(format!("there is no tensor {result} to write to")))?;
        Ok(self.model.ty(*written).data_type.dtype())
    }

    fn spread(&mut self, value: Value) -> Result<Value, Fault> {
        let shape = self.result_shape(0)?;
        Ok(self.builder.broadcast(value, &shape)?)
    }

    fn shaped(&mut self, value: Value, result: usize) -> Result<Value, Fault> {
        let shape = self.result_shape(result)?;
        Ok(self.builder.reshape(value, &shape)?)
    }
}
