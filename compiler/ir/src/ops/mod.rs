//! The operators, one file each. [`op_set!`] below is the one list of them; everything that must know all operators derives from it.

pub mod elementwise;
mod numbers;
mod sums;
mod table;
pub mod window;

pub use table::ops_table;

use crate::fields::{Field, FieldValue, Fields, Nested};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::ops::Range;

macro_rules! op_set {
    ($($module:ident => $name:ident,)+) => {
        $(mod $module; pub use $module::*;)+

        /// An operator with its fields.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Op {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)+
        }

        $(impl From<$name> for Op {
            fn from(operator: $name) -> Op {
                Op::$name(operator)
            }
        })+

        /// An operator without its fields.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum OpKind {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name,)+
        }

impl FieldValue {
    /// An operator as a field's value.
    pub fn of_operator(op: Op) -> Self {
        FieldValue::Nested(Nested::new(op))
    }

    /// The operator, if the value is one.
    pub fn as_operator(&self) -> Option<&Op> {
        match self {
            FieldValue::Nested(nested) => nested.get(),
            _ => None,
        }
    }
}

impl Field for Box<Op> {
    fn to_value(&self) -> FieldValue {
        FieldValue::of_operator(Op::clone(self))
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        value.as_operator().cloned().map(Box::new)
    }
}

        impl OpKind {
            /// Every operator, alphabetically.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$name,)+];

            /// Name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(OpKind::$name => <$name as Operator>::NAME,)+ }
            }

            /// See [`Operator::CATEGORY`].
            pub const fn category(self) -> Category {
                match self { $(OpKind::$name => <$name as Operator>::CATEGORY,)+ }
            }

            /// Names and documentation of its fields.
            pub fn field_descriptions(self) -> &'static [(&'static str, &'static str)] {
                match self { $(OpKind::$name => <$name as Fields>::DESCRIPTIONS,)+ }
            }

            /// The documentation at the start of the operator's file.
            pub fn source(self) -> &'static str {
                match self { $(OpKind::$name => include_str!(concat!(stringify!($module), ".rs")),)+ }
            }

            /// Builds the operator from fields by name.
            ///
            /// # Errors
            /// A sentence that names the field that is missing, unknown or of the wrong kind.
            pub fn with_fields(self, values: &[(String, FieldValue)]) -> Result<Op, String> {
                match self { $(OpKind::$name => <$name as Fields>::from_fields(values).map(Op::from),)+ }
            }

            /// A random legal instance with types of operands.
            pub fn sample(self, generator: &mut Generator) -> (Op, Vec<TensorType>) {
                match self {
                    $(OpKind::$name => {
                        let (operator, operands) = <$name as Operator>::sample(generator);
                        (operator.into(), operands)
                    })+
                }
            }
        }

        impl Op {
            /// Which operator it is.
            pub fn kind(&self) -> OpKind {
                match self { $(Op::$name(_) => OpKind::$name,)+ }
            }

            /// Names and values of its fields.
            pub fn fields(&self) -> Vec<(&'static str, FieldValue)> {
                match self { $(Op::$name(operator) => operator.fields(),)+ }
            }

            /// See [`Operator::roles`].
            pub fn roles(&self) -> Vec<&'static str> {
                match self { $(Op::$name(operator) => operator.roles(),)+ }
            }

            /// See [`Operator::reads_rows`].
            pub fn reads_rows(&self) -> bool {
                match self { $(Op::$name(operator) => operator.reads_rows(),)+ }
            }

            /// See [`Operator::integer_form`].
            pub fn integer_form(&self) -> IntegerForm {
                match self { $(Op::$name(operator) => operator.integer_form(),)+ }
            }

            /// See [`Operator::by_rows`].
            pub fn by_rows(&self, operands: &[TensorType]) -> Option<(Op, RowReads)> {
                match self {
                    $(Op::$name(operator) => {
                        operator.by_rows(operands).map(|(operator, reads)| (Op::from(operator), reads))
                    })+
                }
            }

            /// See [`Operator::patch`].
            pub fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Op, PatchReads)> {
                match self {
                    $(Op::$name(operator) => {
                        operator.patch(operands, rows).map(|(operator, reads)| (Op::from(operator), reads))
                    })+
                }
            }

            /// See [`Operator::share_of_rows`].
            pub fn share_of_rows(&self, operands: &[TensorType], rows: usize) -> Option<(Op, f64)> {
                match self {
                    $(Op::$name(operator) => {
                        operator.share_of_rows(operands, rows).map(|(operator, factor)| (Op::from(operator), factor))
                    })+
                }
            }

            /// See [`Operator::infer`].
            ///
            /// # Errors
            /// When operands or fields don't fit.
            pub fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
                match self { $(Op::$name(operator) => operator.infer(operands),)+ }
            }

            /// See [`Operator::evaluate`].
            ///
            /// # Errors
            /// When the values have no result.
            pub fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
                match self { $(Op::$name(operator) => operator.evaluate(operands, results),)+ }
            }

            /// See [`Operator::work`].
            pub fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
                match self { $(Op::$name(operator) => operator.work(operands, results),)+ }
            }

            /// See [`Operator::expression`].
            pub fn expression(&self, operands: &[TensorType]) -> Option<Expression> {
                match self { $(Op::$name(operator) => operator.expression(operands),)+ }
            }
        }
    };
}

op_set! {
    adaptive_pool => AdaptivePool,
    arg_reduce => ArgReduce,
    average_pool => AveragePool,
    binary => Binary,
    bit_cast => BitCast,
    broadcast => Broadcast,
    cast => Cast,
    celu => Celu,
    clamp => Clamp,
    concat => Concat,
    constant => Constant,
    convolution => Convolution,
    cumulative => Cumulative,
    elu => Elu,
    gather => Gather,
    gather_elements => GatherElements,
    input => Input,
    kernel => Kernel,
    leaky_relu => LeakyRelu,
    loops => Loop,
    map => Map,
    matmul => Matmul,
    max_pool => MaxPool,
    normalize => Normalize,
    pad => Pad,
    recurrent => Recurrent,
    reduce => Reduce,
    reshape => Reshape,
    resize => Resize,
    scatter => Scatter,
    search_sorted => SearchSorted,
    select => Select,
    slice => Slice,
    softmax => Softmax,
    sort => Sort,
    transpose => Transpose,
    transposed_convolution => TransposedConvolution,
    unary => Unary,
    // Last, since it is none of mlc's own, and the numbers of the others are seeds of tests.
    external => Extern,
}

impl OpKind {
    /// The operators that mlc itself defines, so that they can be evaluated: all but [`Extern`].
    pub const OWN: &'static [OpKind] = match OpKind::ALL.split_last() {
        Some((_, own)) => own,
        None => &[],
    };

    /// The elementwise operators.
    pub const ELEMENTWISE: &'static [OpKind] =
        &OpKind::of_category::<{ OpKind::count(Category::Elementwise) }>(Category::Elementwise);

    const fn count(category: Category) -> usize {
        let (mut count, mut next) = (0, 0);
        while next < OpKind::ALL.len() {
            count += (OpKind::ALL[next].category() as u8 == category as u8) as usize;
            next += 1;
        }
        count
    }

    /// All operators of a category, `N` in number.
    const fn of_category<const N: usize>(category: Category) -> [OpKind; N] {
        let mut found = [OpKind::Input; N];
        let (mut count, mut next) = (0, 0);
        while next < OpKind::ALL.len() {
            if OpKind::ALL[next].category() as u8 == category as u8 {
                found[count] = OpKind::ALL[next];
                count += 1;
            }
            next += 1;
        }
        found
    }

    /// The operator of a name in the text form.
    pub fn parse(name: &str) -> Option<OpKind> {
        OpKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// What it computes: the documentation of its file, without markers.
    pub fn documentation(self) -> String {
        let lines = self.source().lines().take_while(|line| line.starts_with("//!"));
        let text: Vec<&str> = lines.map(|line| line.trim_start_matches("//!").trim()).collect();
        text.join(" ").trim().to_owned()
    }
}

impl Op {
    /// Name in the text form.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// See [`Operator::CATEGORY`].
    pub fn category(&self) -> Category {
        self.kind().category()
    }

    /// The first and the last of the places that its calls with effects have in the order of all such calls of the model; `None` of
    /// what is pure, and so may be shared, or left out where nobody uses it.
    pub fn effects(&self) -> Option<(usize, usize)> {
        match self {
            Op::Extern(op) => (op.effect > 0).then_some((op.effect, op.effect)),
            Op::Loop(op) => {
                let inside = op.body.node_ids().filter_map(|id| op.body.node(id).op.effects());
                inside.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod patch_tests;
#[cfg(test)]
mod row_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_infer_and_evaluate() {
        for &kind in OpKind::ALL {
            let mut generator = Generator::new(kind as u64);
            for round in 0..200 {
                let (op, types) = kind.sample(&mut generator);
                let results = op.infer(&types).unwrap_or_else(|error| panic!("{op:?} {types:?}: {error}"));
                assert!(results.iter().all(|ty| ty.checked_bytes().is_some()));
                let work = op.work(&types, &results);
                assert!(work.macs < 1 << 30, "{op:?}");
                let operands: Vec<Tensor> = types.iter().map(|ty| generator.tensor(ty)).collect();
                let operands: Vec<&Tensor> = operands.iter().collect();
                if matches!(kind, OpKind::Input | OpKind::Extern) {
                    assert!(op.evaluate(&operands, &results).is_err());
                    continue;
                }
                let values = op.evaluate(&operands, &results);
                let values = values.unwrap_or_else(|error| panic!("{round}: {op:?} {types:?}: {error}"));
                let found: Vec<TensorType> = values.iter().map(|value| value.ty().clone()).collect();
                assert_eq!(found, results, "{op:?}");
                assert!(values.iter().all(|value| value.to_floats().len() == value.ty().elements()));
            }
        }
    }

    #[test]
    fn all_operators_but_one_are_our_own() {
        assert!(!OpKind::OWN.contains(&OpKind::Extern));
        assert_eq!(OpKind::OWN.len() + 1, OpKind::ALL.len());
    }

    #[test]
    fn elementwise_operators_are_those_with_an_expression() {
        for &kind in OpKind::ALL {
            let (op, types) = kind.sample(&mut Generator::new(1));
            assert_eq!(OpKind::ELEMENTWISE.contains(&kind), op.expression(&types).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn every_operator_is_documented() {
        for &kind in OpKind::ALL {
            assert!(kind.documentation().starts_with(&format!("`{}`: ", kind.name())), "{kind:?}");
            assert_eq!(OpKind::parse(kind.name()), Some(kind));
            for (field, text) in kind.field_descriptions() {
                assert!(!text.is_empty(), "{kind:?}.{field}");
            }
        }
    }

    /// Changes some of a field's numbers and lists.
    fn disturb(value: &mut FieldValue, generator: &mut Generator) {
        match value {
            FieldValue::Bool(value) => *value = !*value,
            FieldValue::Integer(value) => {
                *value = generator.choose(&[0, 1, 2, 3, 7, -1, 1 << 20, 1 << 40, 1 << 62, i64::MAX, i64::MIN, *value]);
            }
            FieldValue::Float(value) => value.0 = generator.choose(&[0.0, -1.0, 1e30, f64::NAN, f64::INFINITY]),
            FieldValue::List(values) if values.is_empty() || generator.one_in(4) => {
                values.push(FieldValue::Integer(generator.range(0, 3) as i64));
            }
            FieldValue::List(values) if generator.one_in(4) => drop(values.pop()),
            FieldValue::List(values) => {
                let place = generator.range(0, values.len() - 1);
                disturb(&mut values[place], generator);
            }
            _ => {}
        }
    }

    fn disturb_type(ty: &mut TensorType, generator: &mut Generator) {
        let place = generator.range(0, ty.shape.len());
        match generator.range(0, 3) {
            0 => ty.shape.insert(place, generator.choose(&[0, 1, 2])),
            1 if place < ty.shape.len() => drop(ty.shape.remove(place)),
            2 if place < ty.shape.len() => ty.shape[place] = generator.choose(&[0, 1, 2, 3]),
            _ => ty.dtype = generator.choose(&crate::DType::ALL),
        }
    }

    #[test]
    fn odd_fields_and_operands_are_refused_or_evaluated() {
        let (mut refused, mut evaluated) = (0, 0);
        for &kind in OpKind::ALL {
            let mut generator = Generator::new(kind as u64 + 77);
            for _ in 0..400 {
                let (op, mut types) = kind.sample(&mut generator);
                let mut fields: Vec<(String, FieldValue)> =
                    op.fields().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                if !fields.is_empty() && generator.one_in(2) {
                    let place = generator.range(0, fields.len() - 1);
                    disturb(&mut fields[place].1, &mut generator);
                }
                if !types.is_empty() && generator.one_in(2) {
                    let place = generator.range(0, types.len() - 1);
                    disturb_type(&mut types[place], &mut generator);
                }
                if !types.is_empty() && generator.one_in(10) {
                    types.pop();
                }
                let (Ok(op), true) = (kind.with_fields(&fields), !matches!(kind, OpKind::Input | OpKind::Extern))
                else {
                    continue;
                };
                let Ok(results) = op.infer(&types) else {
                    refused += 1;
                    continue;
                };
                if results.iter().any(|ty| ty.checked_bytes().is_none_or(|bytes| bytes > 1 << 20)) {
                    continue;
                }
                if op.work(&types, &results).scalar_operations > 1 << 22 {
                    continue;
                }
                let operands: Vec<Tensor> = types.iter().map(|ty| generator.tensor(ty)).collect();
                if let Ok(values) = op.evaluate(&operands.iter().collect::<Vec<_>>(), &results) {
                    evaluated += 1;
                    assert!(values.iter().map(Tensor::ty).eq(&results), "{op:?} {types:?}");
                }
            }
        }
        assert!(refused > 1000 && evaluated > 3000, "{refused} {evaluated}");
    }
}
