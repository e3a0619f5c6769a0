//! An operator of a model in C: what its structure holds at the start, and what a compiler must know to call it.

use crate::c::{ELEMENTS, MEMORIES, PARAMETERS};
use crate::definition::CFile;
use crate::description::{Arch, Body, Description, Output};
use crate::infer::{Inference, InferredParameter, OperatorInstance, TensorDescription};
use crate::parameter::{Parameter, ParameterValue};
use std::fmt::Write;

/// How a model's code runs an operator.
///
/// The functions take a pointer to the structure, one to the elements of each operand, one to those of each result, and one to
/// scratch memory if any is asked for. They return 0, or the status of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Implementation {
    /// The function that is called at each run.
    pub call: String,
    /// The one that is called once, before the first run.
    pub begin: Option<String>,
    /// The one that is called once, at the end.
    pub end: Option<String>,
    /// The name of the structure.
    pub structure: String,
    /// The file that declares it.
    pub header: String,
    /// The structure's content at the start, as an initialiser at file scope.
    pub initialiser: String,
    /// Bytes of scratch memory; 0 if none is asked for.
    pub workspace: usize,
    /// To what multiple of bytes operands, results and scratch memory are aligned, a power of two; 1 for what the elements need.
    pub alignment: usize,
    /// Scalar operations of a run; 0 if nobody says.
    pub operations: usize,
    /// Results that may lie in the memory of an operand, each with the operand: they have the same size.
    pub overwrites: Vec<(usize, usize)>,
    /// Results that are computed once, before the first run.
    pub persistent: Vec<usize>,
    /// Whether two operators of the same operands and parameters are one.
    pub pure: bool,
    /// The files of C that define the functions and the structure.
    pub files: Vec<CFile>,
}

impl Description {
    /// Whether an output is a part of its owner as it stands, and not computed.
    pub fn is_view(&self, output: &Output) -> bool {
        output.owner.is_some() && self.run.is_none()
    }

    /// An operator of a model in C. `offsets` are the bytes that each output lies into its owner.
    ///
    /// # Errors
    /// When it runs on no processor, a phase is only announced, or nothing computes an output.
    pub fn implementation(
        &self,
        operator: &OperatorInstance,
        inference: &Inference,
        offsets: &[u64],
    ) -> Result<Implementation, String> {
        let Description { optype, arch, .. } = self;
        if *arch != Arch::Cpu {
            return Err(format!("no code can be generated for '{optype}', whose architecture is {}", arch.name()));
        }
        let uncomputed = |output: &&Output| self.run.is_none() && output.owner.is_none() && !self.is_persistent(output);
        if let Some(output) = self.outputs.iter().find(uncomputed) {
            return Err(format!("'{optype}' has no `run`: nothing computes the output '{}'", output.name));
        }
        let files = self.definition()?.into_iter().chain(self.support()).collect();
        let persistent = self.outputs.iter().enumerate().filter(|(_, output)| self.is_persistent(output));
        Ok(Implementation {
            call: self.call_symbol(),
            begin: self.begin_symbol(),
            end: self.end_symbol(),
            structure: self.structure(),
            header: format!("{optype}.h"),
            initialiser: self.initialiser(operator, inference, offsets),
            // The function's last argument is there whatever the expression says of this operator.
            workspace: if self.has_workspace() { inference.workspace.max(1) } else { 0 },
            alignment: self.alignment,
            operations: inference.operations,
            overwrites: self.overwrites(operator, inference, offsets),
            persistent: persistent.map(|(number, _)| number).collect(),
            pure: self.pure && !self.inputs.is_empty(),
            files,
        })
    }

    /// Whether an output is computed before the first run.
    fn is_persistent(&self, output: &Output) -> bool {
        output.is_static && self.static_run.is_some()
    }

    /// What each output may overwrite, or lies in: all of an operand, which no other output overwrites.
    fn overwrites(&self, operator: &OperatorInstance, inference: &Inference, offsets: &[u64]) -> Vec<(usize, usize)> {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (number, (output, ty)) in self.outputs.iter().zip(&inference.outputs).enumerate() {
            let Some(operand) = output.overwrites.or(output.owner) else { continue };
            let whole = ty.bytes() == operator.inputs[operand].bytes() && offsets[number] == 0;
            if whole && !self.is_persistent(output) && pairs.iter().all(|(_, taken)| *taken != operand) {
                pairs.push((number, operand));
            }
        }
        pairs
    }

    /// Whether a body asks for the names that the model has for the operator and its tensors.
    fn uses_names(&self) -> bool {
        let asks = |body: &Body| body.words.iter().any(|word| word == "name" || word.ends_with("_name"));
        self.phases().any(|phase| asks(phase.body))
    }

    /// The content of the structure. Two operators that compute the same have the same, unless they ask for their names.
    fn initialiser(&self, operator: &OperatorInstance, inference: &Inference, offsets: &[u64]) -> String {
        let Description { optype, inputs, outputs, parameters, arch, .. } = self;
        let named = self.uses_names();
        let mut members = Vec::new();
        for (input, ty) in inputs.iter().zip(&operator.inputs) {
            let name = if named { &ty.name } else { &input.name };
            members.push(format!(".{}_entry = {}", input.name, entry(name, ty, "")));
        }
        for ((output, ty), offset) in outputs.iter().zip(&inference.outputs).zip(offsets) {
            let name = if named { &ty.name } else { &output.name };
            let mut rest = format!(", .isstatic = {}", u8::from(ty.is_static));
            if let Some(owner) = output.owner {
                let owner = if named { &operator.inputs[owner].name } else { &inputs[owner].name };
                // No formatting of a String fails.
                let _ = write!(rest, ", .owner = {}, .offset = {offset}", quoted(owner));
            }
            members.push(format!(".{}_entry = {}", output.name, entry(name, ty, &rest)));
        }
        for (parameter, inferred) in parameters.iter().zip(&inference.parameters) {
            members.push(format!(".{}_entry = {}", parameter.name, parameter_entry(parameter, inferred)));
        }
        let members = if members.is_empty() { "0".to_owned() } else { members.join(",\n    ") };
        let name = if named { &operator.name } else { optype };
        format!(
            "{{.op_arg = {{.name = {}, .optype = \"{optype}\", .arch = \"{}\", .priv = &(struct {optype}_priv){{\n    \
             {members}}}}}}}",
            quoted(name),
            arch.name()
        )
    }
}

/// The record of a tensor.
fn entry(name: &str, ty: &TensorDescription, rest: &str) -> String {
    let dims: Vec<String> = ty.extents.iter().map(ToString::to_string).collect();
    format!(
        "&(ln_tensor_entry){{.name = {}, .tensor = &(tl_tensor){{.dtype = {}, .len = {}, .ndim = {}, .dims = (int[]){{{}}}}}, \
         .mtype = {}{rest}}}",
        quoted(name),
        ELEMENTS[ty.element],
        ty.length(),
        dims.len(),
        dims.join(", "),
        MEMORIES[usize::from(ty.memory)]
    )
}

/// The record of a parameter.
fn parameter_entry(parameter: &Parameter, InferredParameter { value, converted }: &InferredParameter) -> String {
    let mut members = match value {
        ParameterValue::Null => String::new(),
        ParameterValue::Text(text) => format!(", .value_string = {}", quoted(text)),
        ParameterValue::Bool(truth) => format!(", .value_bool = {}", u8::from(*truth)),
        ParameterValue::Number(number) => numbers(std::slice::from_ref(number), false),
        ParameterValue::Texts(texts) => {
            format!(", .value_array_string = {}", array("char *", texts.iter().map(|text| quoted(text))))
        }
        ParameterValue::Bools(truths) => {
            let truths = truths.iter().map(|truth| u8::from(*truth).to_string());
            format!(", .value_array_bool = {}", array("ln_bool", truths))
        }
        ParameterValue::Numbers(list) => numbers(list, true),
    };
    match converted {
        Some(ParameterValue::Number(number)) => members += &numbers(std::slice::from_ref(number), false),
        Some(ParameterValue::Numbers(list)) => members += &numbers(list, true),
        _ => {}
    }
    let kind = PARAMETERS.iter().find(|kind| **kind == value.type_name()).copied().unwrap_or_default();
    format!(
        "&(ln_param_entry){{.arg_name = \"{}\", .type = {kind}, .array_len = {}{members}}}",
        parameter.name,
        value.length()
    )
}

/// Writes a number as C has it.
type Literal = fn(f64) -> String;

/// The members of a record for a number, or for an array of them, in all three types.
fn numbers(list: &[f64], is_array: bool) -> String {
    let kinds: [(&str, Literal); 3] = [("double", double), ("float", single), ("int", integer)];
    let mut text = String::new();
    for (name, literal) in kinds {
        let _ = match (is_array, list) {
            (false, [number]) => write!(text, ", .value_{name} = {}", literal(*number)),
            _ => write!(text, ", .value_array_{name} = {}", array(name, list.iter().map(|number| literal(*number)))),
        };
    }
    text
}

/// An array as a literal; one without elements has one that nobody looks at.
fn array(element: &str, elements: impl Iterator<Item = String>) -> String {
    let elements: Vec<String> = elements.collect();
    let elements = if elements.is_empty() { "0".to_owned() } else { elements.join(", ") };
    format!("({element}[]){{{elements}}}")
}

fn double(number: f64) -> String {
    match number {
        _ if number.is_nan() => "(double)NAN".into(),
        _ if number.is_infinite() => format!("{}(double)INFINITY", if number < 0.0 { "-" } else { "" }),
        _ => format!("{number:?}"),
    }
}

fn single(number: f64) -> String {
    let number = number as f32;
    match number {
        _ if number.is_nan() => "NAN".into(),
        _ if number.is_infinite() => format!("{}INFINITY", if number < 0.0 { "-" } else { "" }),
        _ => format!("{number:?}f"),
    }
}

/// The nearest integer of the range, towards zero.
fn integer(number: f64) -> String {
    match number as i32 {
        i32::MIN => "-2147483647 - 1".into(),
        number => number.to_string(),
    }
}

/// A text as a string of C, whatever is in it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            // Three digits always: what follows isn't taken for one.
            _ => drop(write!(quoted, "\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_written_as_c_reads_them() {
        assert_eq!(quoted("a\"b\\c\n1 ??/ é"), r#""a\"b\\c\0121 \?\?/ \303\251""#);
        assert_eq!([1.0, -0.5, 1e300].map(double), ["1.0", "-0.5", "1e300"]);
        assert_eq!([0.1, 1e300, f64::NAN].map(single), ["0.1f", "INFINITY", "NAN"]);
        assert_eq!([2.9, -1e300, f64::NAN].map(integer), ["2", "-2147483647 - 1", "0"]);
        assert_eq!(array("int", std::iter::empty()), "(int[]){0}");
    }
}
