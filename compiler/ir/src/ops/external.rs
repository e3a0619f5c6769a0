//! `extern`: a function in C of the packed convention (DLTensor arguments: operands, then results), which a Model Library Format
//! archive brought along. Nothing is known of it but its types and the scratch memory that it asks for, so it has no reference evaluation.

use crate::attribute::Attribute;
use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// A call of a C function.
    pub struct Extern {
        /// Name of the C function.
        pub symbol: String,
        /// Types of the operands.
        pub operands: Vec<TensorType>,
        /// Types of the results.
        pub results: Vec<TensorType>,
        /// The most bytes of scratch memory that it has at once, from `TVMBackendAllocWorkspace`.
        pub workspace: usize,
        /// The C files that define it and what it calls, each as its bytes; the nodes of a graph share them.
        pub sources: Vec<Attribute>,
    }
}

impl Extern {
    /// Whether the symbol is an identifier of C.
    fn has_identifier(&self) -> bool {
        let mut letters = self.symbol.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    }
}

impl Operator for Extern {
    const NAME: &'static str = "extern";
    const CATEGORY: Category = Category::Control;

    fn roles(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        if operands.len() != self.operands.len() {
            let expected = self.operands.len().to_string();
            return Err(OperatorError::OperandCount { expected, found: operands.len() });
        }
        for (number, (found, expected)) in operands.iter().zip(&self.operands).enumerate() {
            if (found.dtype, &found.shape) != (expected.dtype, &expected.shape) {
                return Err(OperatorError::types(format!("operand {number} is {found}, {expected} expected")));
            }
        }
        if !self.has_identifier() {
            return Err(OperatorError::field(format!("the symbol {:?} isn't a C identifier", self.symbol)));
        }
        if self.results.is_empty() {
            return Err(OperatorError::field("the function has no results"));
        }
        if self.sources.iter().any(|source| source.ty().dtype != DType::U8 || source.ty().rank() != 1) {
            return Err(OperatorError::field("a C file is a tensor of u8 with one axis"));
        }
        Ok(self.results.clone())
    }

    fn evaluate(&self, _operands: &[&Tensor], _results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let message = format!("the C function {} is from an archive and has no reference evaluation", self.symbol);
        Err(OperatorError::Evaluation(message))
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let types = |generator: &mut Generator, least: usize| -> Vec<TensorType> {
            let count = generator.range(least, 3);
            (0..count).map(|_| TensorType::new(generator.choose(&DType::ALL), generator.shape(0, 3))).collect()
        };
        let (operands, results) = (types(generator, 0), types(generator, 1));
        let symbol = format!("tvmgen_default_f{}", generator.range(0, 99));
        let text = format!("/* {symbol} */");
        let bytes = TensorType::new(DType::U8, [text.len()]);
        let sources = Attribute::new(bytes, text.into_bytes()).into_iter().collect();
        (Extern { symbol, operands: operands.clone(), results, workspace: generator.range(0, 4096), sources }, operands)
    }
}
