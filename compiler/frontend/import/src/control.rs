//! Branches. What constants decide leaves no trace; of a branch that data decide on, both sides are computed and one is
//! selected.

use crate::call::Site;
use crate::fault::Fault;
use crate::format::Format;
use crate::importer::{Importer, Operators};
use crate::item::Item;
use mlc_ir::ops::Select;
use mlc_ir::{Code, DType, Value};

impl<'m, F: Format> Importer<'m, F> {
    /// What a condition is known to be while the model is imported; `None` when it depends on the data.
    ///
    /// # Errors
    /// When it isn't one truth value.
    pub fn decided(&self, condition: Value) -> Result<Option<bool>, Fault> {
        let ty = self.builder.ty(condition);
        if ty.dtype != DType::Bool || ty.elements() != 1 {
            return Err(Fault::operands(format!("the condition must be one bool, it is {ty}")));
        }
        let known = self.builder.graph().constant(condition);
        Ok(known.map(|known| known.to_tensor().to_integers() != [0]))
    }
}

impl<'m, F: Operators> Importer<'m, F> {
    /// The results of one of two regions.
    ///
    /// # Errors
    /// When the regions' results have different types and data decide between them.
    pub fn import_branch(
        &mut self,
        site: &Site<'m, F>,
        condition: Value,
        [then, otherwise]: [F::Region<'m>; 2],
        inputs: &[F::Item],
    ) -> Result<Vec<F::Item>, Fault> {
        if let Some(decided) = self.decided(condition)? {
            let taken = if decided { then } else { otherwise };
            return self.import_region(taken, inputs.to_vec(), format!("{}.", site.name));
        }
        self.undecided += 1;
        let first = self.import_region(then, inputs.to_vec(), format!("{}.then.", site.name));
        let both = first.and_then(|first| {
            Ok((first, self.import_region(otherwise, inputs.to_vec(), format!("{}.else.", site.name))?))
        });
        self.undecided -= 1;
        let (first, second) = both?;
        if first.len() != second.len() {
            let message = format!("one branch gives {} results, the other one {}", first.len(), second.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        self.builder.begin(&site.name);
        let condition = self.builder.reshape(condition, &[])?;
        let pairs = first.into_iter().zip(second).enumerate();
        pairs.map(|(number, (first, second))| self.selected(condition, number, first, second)).collect()
    }

    fn selected(&mut self, condition: Value, number: usize, first: F::Item, second: F::Item) -> Result<F::Item, Fault> {
        if first.is_unknown() || second.is_unknown() {
            return Ok(F::Item::unknown());
        }
        let merged = first.merged(second, &mut |first, second| {
            let (left, right) = (self.builder.ty(first), self.builder.ty(second));
            if (left.dtype, &left.shape) != (right.dtype, &right.shape) {
                let message = format!("data decide whether result {number} is {left} or {right}");
                return Err(Fault::new(Code::DataDependentShape, message)
                    .with_help("make the condition a constant, or give both branches' results one type"));
            }
            Ok(if first == second { first } else { self.builder.apply(Select {}, &[condition, first, second])? })
        });
        merged.unwrap_or_else(|| {
            Err(Fault::new(
                Code::DataDependentShape,
                format!("data decide whether result {number} is a tensor, a sequence of which length, or absent"),
            ))
        })
    }
}
