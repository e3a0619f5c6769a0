//! What is evaluated of a description, in order: how an operator's operands and parameters are looked up, the checks, the
//! definitions of its results.

use crate::c::{Names, Record, Statement, Type};
use crate::parameter::{Parameter, ParameterKind};
use crate::syntax::Text;

/// Statements of one field, and what messages say of it.
#[derive(Debug, Clone)]
pub struct Snippet {
    /// What is run.
    pub statements: Vec<Statement>,
    /// The field's text, which the statements' offsets point into.
    pub text: Text,
    /// The field, such as "`custom` of output 'dst'".
    pub field: String,
}

/// A step of the evaluation.
#[derive(Debug, Clone)]
pub enum Step {
    /// An input gets its variables.
    Input(usize),
    /// A parameter gets its variables.
    Parameter(usize),
    /// A field is run.
    Run(Snippet),
    /// An output's type is taken from its variables.
    Define(usize),
}

/// The variables of a tensor.
#[derive(Debug, Clone, Copy)]
pub struct TensorSlots {
    /// `A`
    pub tensor: usize,
    /// `A_entry`
    pub entry: usize,
}

/// The variables of a tensor that only checks see.
#[derive(Debug, Clone, Copy)]
pub struct NameSlots {
    /// `A_name`
    pub name: usize,
    /// `A_list_entry`
    pub list_entry: usize,
}

/// The variables that define an output.
#[derive(Debug, Clone, Copy)]
pub struct TypeSlots {
    /// `A_ndim`
    pub ndim: usize,
    /// `A_dims`
    pub dims: usize,
    /// `A_dtype`
    pub dtype: usize,
}

/// The variables of a parameter.
#[derive(Debug, Clone, Copy)]
pub struct ParameterSlots {
    /// `A`
    pub value: usize,
    /// Type of `A`.
    pub ty: Type,
    /// `A_entry`
    pub entry: usize,
}

/// Variables that all phases see.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Those of the inputs, then those of the outputs.
    pub tensors: Vec<TensorSlots>,
    /// Those of the parameters.
    pub parameters: Vec<ParameterSlots>,
    /// `op_arg`
    pub operator: usize,
}

/// What is run when an operator's types are inferred.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// All variables.
    pub names: Names,
    /// All strings.
    pub strings: Vec<Vec<u8>>,
    /// The variables of all phases.
    pub layout: Layout,
    /// Names of the tensors, as in [`Layout::tensors`].
    pub tensor_names: Vec<NameSlots>,
    /// Those that define outputs.
    pub types: Vec<TypeSlots>,
    /// The variable without a name for the number of scalar operations of a run.
    pub operations: Option<usize>,
    /// The one for the bytes of scratch memory.
    pub workspace: Option<usize>,
}

/// What is run when memory has been planned.
#[derive(Debug, Clone)]
pub struct OffsetProgram {
    /// The text.
    pub snippet: Snippet,
    /// All variables.
    pub names: Names,
    /// All strings.
    pub strings: Vec<Vec<u8>>,
    /// The variables of all phases.
    pub layout: Layout,
    /// `te`: the tensor whose offset is wanted.
    pub wanted: usize,
}

/// Type of a parameter's variable.
pub fn parameter_type(parameter: &Parameter) -> Type {
    let real = || match parameter.real_type.as_deref() {
        Some("float") => Type::FLOAT,
        Some("double") => Type::DOUBLE,
        // Enumerations.
        _ => Type::INT,
    };
    let single = match parameter.kind {
        ParameterKind::Null => return Type::VOID.pointer(),
        ParameterKind::Text if parameter.real_type.is_none() => Type::CHAR.pointer(),
        ParameterKind::Text | ParameterKind::Number => real(),
        ParameterKind::Bool => Type::INT,
    };
    if parameter.array { single.pointer() } else { single }
}

/// Declares the variables that all phases see. Names that clash have been reported, and so have too many.
pub fn declare<'a>(names: &mut Names, tensors: impl Iterator<Item = &'a str>, parameters: &[Parameter]) -> Layout {
    let mut declare = |name: String, ty: Type| names.declare(&name, ty, false).unwrap_or(0);
    let operator = declare("op_arg".into(), Type::record(Record::Operator).pointer());
    let tensors = tensors.map(|name| TensorSlots {
        tensor: declare(name.to_owned(), Type::record(Record::Tensor).pointer()),
        entry: declare(format!("{name}_entry"), Type::record(Record::TensorEntry).pointer()),
    });
    let tensors = tensors.collect();
    let parameters = parameters.iter().map(|parameter| {
        let ty = parameter_type(parameter);
        ParameterSlots {
            value: declare(parameter.name.clone(), ty),
            ty,
            entry: declare(format!("{}_entry", parameter.name), Type::record(Record::ParamEntry).pointer()),
        }
    });
    Layout { parameters: parameters.collect(), tensors, operator }
}

/// Declares the names of tensors.
pub fn declare_names<'a>(names: &mut Names, tensors: impl Iterator<Item = &'a str>) -> Vec<NameSlots> {
    let mut declare = |name: String, ty: Type| names.declare(&name, ty, false).unwrap_or(0);
    let slots = tensors.map(|name| NameSlots {
        name: declare(format!("{name}_name"), Type::CHAR.pointer()),
        list_entry: declare(format!("{name}_list_entry"), Type::record(Record::ListEntry).pointer()),
    });
    slots.collect()
}

/// Declares what defines outputs.
pub fn declare_types<'a>(names: &mut Names, outputs: impl Iterator<Item = &'a str>) -> Vec<TypeSlots> {
    let mut declare = |name: String, ty: Type| names.declare(&name, ty, false).unwrap_or(0);
    let slots = outputs.map(|name| TypeSlots {
        ndim: declare(format!("{name}_ndim"), Type::INT),
        dims: declare(format!("{name}_dims"), Type::INT.pointer()),
        dtype: declare(format!("{name}_dtype"), Type::INT),
    });
    slots.collect()
}
