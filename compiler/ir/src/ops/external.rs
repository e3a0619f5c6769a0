//! `extern`: a function in C that isn't mlc's own: one that a Model Library Format archive brought along, or an operator of the user's. It is called by one of two conventions: `packed`, with a DLTensor for each operand, then each result; or `unpacked`, `int32_t symbol([struct T *self,] const void *x0, …, void *y0, …[, void *scratch])`, which returns 0 unless the run has to end with another status. Operands and results are dense. Nothing is known of it but what its fields say, and there is no reference evaluation: whoever evaluates brings something that runs C.

use crate::attribute::Attribute;
use crate::fields::{Field, FieldValue, Text};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use std::collections::BTreeSet;
use std::ops::Range;

/// The largest alignment that a function may ask for, in bytes.
pub const MAXIMUM_ALIGNMENT: usize = 4096;

/// The most bytes of scratch memory that a function may ask for, as of a tensor.
pub const MAXIMUM_WORKSPACE: usize = 1 << 40;

crate::operator_fields! {
    /// A call of a C function.
    pub struct Extern {
        /// The C function that each run calls.
        pub symbol: String,
        /// How it is called.
        pub convention: CallConvention,
        /// Types of the operands.
        pub operands: Vec<TensorType>,
        /// Types of the results.
        pub results: Vec<TensorType>,
        /// Bytes of scratch memory: the last argument of an unpacked function; for a packed one the most that it has at once from `TVMBackendAllocWorkspace`.
        pub workspace: usize,
        /// Alignment of operands, results and scratch memory in bytes, a power of two; 1: that of the elements.
        pub alignment: usize,
        /// Scalar operations of a call, its price; 0 when they aren't known, its bytes are the price then.
        pub operations: usize,
        /// Pairs of a result and an operand of as many bytes: the result may be written over the operand.
        pub overwrites: Vec<(usize, usize)>,
        /// Results that `begin` computes, once: they keep their values from one run to the next.
        pub persistent: Vec<usize>,
        /// 0 of a pure function: equal calls are one, and a call whose results nobody uses goes. Others stay, and run in the order of these numbers.
        pub effect: usize,
        /// A function of the same arguments that is called once, before the first run; what isn't known then (operands that are neither constant nor persistent, results that aren't persistent) is NULL.
        pub begin: Option<String>,
        /// The same for the end, after the last run.
        pub end: Option<String>,
        /// What the functions keep: an object of their own, its address is their first argument.
        pub instance: Option<Instance>,
        /// The C files that define the functions and what they call; the nodes of a graph share them.
        pub sources: Vec<CFile>,
    }
}

crate::word_enum! {
    /// How a C function is called.
    pub enum CallConvention {
        /// Packed arguments: tensors with types and shapes.
        Packed = "packed",
        /// Plain pointers.
        Unpacked = "unpacked",
    }
}

/// A C object of static storage that belongs to one node. Prints as `[structure, header, initialiser]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instance {
    /// The tag of its type: it is a `struct` of C.
    pub structure: String,
    /// The name of the file among the sources that declares the type.
    pub header: Text,
    /// The C text of its initialiser, constant expressions all of it.
    pub initialiser: Text,
}

impl Field for Instance {
    fn to_value(&self) -> FieldValue {
        FieldValue::List(vec![self.structure.to_value(), self.header.to_value(), self.initialiser.to_value()])
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        let FieldValue::List(values) = value else { return None };
        let [structure, header, initialiser] = &values[..] else { return None };
        Some(Instance {
            structure: String::from_value(structure)?,
            header: Text::from_value(header)?,
            initialiser: Text::from_value(initialiser)?,
        })
    }
}

/// The most bytes of a C file that the text form shows as a string.
const MAXIMUM_SHOWN: usize = 600;

/// A C file. Prints as `[name, bytes]`; a small one as `[name, string]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CFile {
    /// Its name, without a folder. Files of one model that have the same name have the same text.
    pub name: Text,
    /// Its bytes, a tensor of u8 with one axis.
    pub text: Attribute,
}

impl CFile {
    /// A file of some text.
    pub fn new(name: impl Into<Text>, text: impl Into<bytes::Bytes>) -> Self {
        CFile { name: name.into(), text: Attribute::from_u8(text) }
    }

    /// Whether it is a header.
    pub fn is_header(&self) -> bool {
        self.name.ends_with(".h")
    }
}

impl Field for CFile {
    fn to_value(&self) -> FieldValue {
        let shown = std::str::from_utf8(self.text.bytes()).ok().filter(|text| text.len() <= MAXIMUM_SHOWN);
        let text = shown.map_or_else(|| self.text.to_value(), |text| Text::from(text).to_value());
        FieldValue::List(vec![self.name.to_value(), text])
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        let FieldValue::List(values) = value else { return None };
        let [name, text] = &values[..] else { return None };
        let text = match text {
            FieldValue::Text(text) => Attribute::from_u8(text.as_bytes().to_vec()),
            other => Attribute::from_value(other)?,
        };
        Some(CFile { name: Text::from_value(name)?, text })
    }
}

impl Extern {
    /// A pure function with neither scratch memory nor demands on alignment nor anything to keep.
    pub fn new(
        symbol: impl Into<String>,
        convention: CallConvention,
        operands: Vec<TensorType>,
        results: Vec<TensorType>,
        sources: Vec<CFile>,
    ) -> Self {
        Extern {
            symbol: symbol.into(),
            convention,
            operands,
            results,
            workspace: 0,
            alignment: 1,
            operations: 0,
            overwrites: Vec::new(),
            persistent: Vec::new(),
            effect: 0,
            begin: None,
            end: None,
            instance: None,
            sources,
        }
    }

    /// What is said where nothing runs functions in C.
    pub(crate) fn unavailable(&self) -> String {
        format!("{} is a function in C, and nothing is at hand to run it", self.symbol)
    }

    /// The functions that are called.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        [Some(&self.symbol), self.begin.as_ref(), self.end.as_ref()].into_iter().flatten().map(String::as_str)
    }

    /// Why the names aren't what C and file systems take, if so.
    fn fault_of_names(&self) -> Option<String> {
        let structure = self.instance.as_ref().map(|instance| instance.structure.as_str());
        if let Some(name) = self.symbols().chain(structure).find(|name| !is_identifier(name)) {
            return Some(format!("{name:?} isn't a C identifier"));
        }
        let mut names = BTreeSet::new();
        for CFile { name, text } in &self.sources {
            if !is_file_name(name) {
                return Some(format!("{:?} isn't a name of a C file or a header", &**name));
            }
            if text.ty().dtype != DType::U8 || text.ty().rank() != 1 {
                return Some("a C file is a tensor of u8 with one axis".into());
            }
            if !names.insert(&**name) {
                return Some(format!("two C files have the name {:?}", &**name));
            }
        }
        None
    }

    /// Why the demands on memory don't fit the types, if so.
    fn fault_of_memory(&self) -> Option<String> {
        if !self.alignment.is_power_of_two() || self.alignment > MAXIMUM_ALIGNMENT {
            return Some(format!("the alignment {} isn't a power of two of at most {MAXIMUM_ALIGNMENT}", self.alignment));
        }
        if self.workspace > MAXIMUM_WORKSPACE {
            return Some(format!("{} bytes of scratch memory are too many", self.workspace));
        }
        let mut taken = BTreeSet::new();
        for &(result, operand) in &self.overwrites {
            let (Some(written), Some(read)) = (self.results.get(result), self.operands.get(operand)) else {
                return Some(format!("result {result} overwrites operand {operand}: one of them doesn't exist"));
            };
            if written.checked_bytes() != read.checked_bytes() {
                return Some(format!("result {result}, {written}, can't overwrite operand {operand}, {read}"));
            }
            if !taken.insert((0, result)) || !taken.insert((1, operand)) {
                return Some(format!("result {result} or operand {operand} overwrites or is overwritten twice"));
            }
        }
        for &result in &self.persistent {
            if result >= self.results.len() || !taken.insert((0, result)) {
                return Some(format!("the persistent result {result} doesn't exist, or has other memory too"));
            }
        }
        None
    }

    /// Why the fields ask for what the convention hasn't, if so.
    fn fault_of_convention(&self) -> Option<String> {
        let keeps = self.begin.is_some() || self.end.is_some() || self.instance.is_some();
        if keeps && self.convention == CallConvention::Packed {
            return Some("a packed function has neither begin nor end nor an instance".into());
        }
        if !self.persistent.is_empty() && self.begin.is_none() {
            return Some("there is no begin to compute the persistent results".into());
        }
        let header = &self.instance.as_ref()?.header;
        let known = self.sources.iter().any(|file| file.is_header() && file.name == *header);
        (!known).then(|| format!("the instance's header {:?} isn't among the C files", &**header))
    }
}

/// Whether a name is an identifier of C, and not the word that stands for no name.
fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    name != "none"
        && letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether a name is that of a C file or a header, without a folder.
fn is_file_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let stem = name.strip_suffix(".c").or_else(|| name.strip_suffix(".h"));
    stem.is_some_and(|stem| !stem.is_empty() && !stem.starts_with(['.', '-']) && stem.chars().all(plain))
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

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::None
    }

    fn by_rows(&self, _operands: &[TensorType]) -> Option<(Self, RowReads)> {
        None
    }

    fn patch(&self, _operands: &[TensorType], _rows: Range<usize>) -> Option<(Self, PatchReads)> {
        None
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
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
        if self.results.is_empty() {
            return Err(OperatorError::field("the function has no results"));
        }
        let fault = self.fault_of_names().or_else(|| self.fault_of_memory()).or_else(|| self.fault_of_convention());
        fault.map_or_else(|| Ok(self.results.clone()), |fault| Err(OperatorError::field(fault)))
    }

    fn evaluate(&self, _operands: &[&Tensor], _results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        Err(OperatorError::Evaluation(self.unavailable()))
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work { scalar_operations: self.operations as u64, ..Work::moving(operands, results) }
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
        let file = CFile::new(format!("{symbol}.c"), format!("/* {symbol} */").into_bytes());
        let convention = generator.choose::<CallConvention>(CallConvention::ALL);
        let mut op = Extern::new(symbol, convention, operands.clone(), results, vec![file]);
        op.workspace = generator.range(0, 4096);
        op.alignment = generator.choose(&[1, 16, 64]);
        op.operations = generator.range(0, 1000);
        op.effect = generator.choose(&[0, 0, 1, 7]);
        let same = op.operands.first().is_some_and(|operand| operand.bytes() == op.results[0].bytes());
        op.overwrites = Vec::from_iter((same && generator.one_in(2)).then_some((0, 0)));
        if convention == CallConvention::Unpacked && generator.one_in(2) {
            op.keep(generator);
        }
        (op, operands)
    }
}

impl Extern {
    /// Gives a sample functions for begin and end, and what they keep.
    fn keep(&mut self, generator: &mut Generator) {
        let symbol = &self.symbol;
        let header = CFile::new(format!("{symbol}.h"), format!("struct {symbol}_s {{ int k; }};").into_bytes());
        self.instance = Some(Instance {
            structure: format!("{symbol}_s"),
            header: header.name.clone(),
            initialiser: format!("{{{}}}", generator.range(0, 9)).into(),
        });
        self.sources.push(header);
        self.begin = Some(format!("{symbol}_begin"));
        self.end = generator.one_in(2).then(|| format!("{symbol}_end"));
        let free = self.overwrites.is_empty() && generator.one_in(2);
        self.persistent = Vec::from_iter(free.then_some(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of a sound operator.
    type Change = fn(&mut Extern);

    fn sound() -> Extern {
        let ty = TensorType::new(DType::F32, [2, 3]);
        let files = vec![CFile::new("f.c", "int f;"), CFile::new("f.h", "struct f { int k; };")];
        let mut op = Extern::new("f", CallConvention::Unpacked, vec![ty.clone()], vec![ty.clone(), ty], files);
        op.instance = Some(Instance { structure: "f".into(), header: "f.h".into(), initialiser: "{1}".into() });
        op.begin = Some("f_begin".into());
        op.overwrites = vec![(0, 0)];
        op.persistent = vec![1];
        op
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let op = sound();
        assert_eq!(op.infer(&op.operands).unwrap(), op.results);
        let changes: [(Change, &str); 15] = [
            (|op| op.symbol = "2f".into(), "\"2f\" isn't a C identifier"),
            (|op| op.begin = Some("f()".into()), "\"f()\" isn't a C identifier"),
            (|op| op.end = Some("none".into()), "\"none\" isn't a C identifier"),
            (|op| op.sources[0].name = "../f.c".into(), "\"../f.c\" isn't a name of a C file or a header"),
            (|op| op.sources[0].name = ".c".into(), "\".c\" isn't a name of a C file or a header"),
            (|op| op.sources.push(op.sources[0].clone()), "two C files have the name \"f.c\""),
            (|op| op.sources[0].text = Attribute::from_i64(&[1], &[0]).unwrap(), "a C file is a tensor of u8 with one axis"),
            (|op| op.alignment = 12, "the alignment 12 isn't a power of two of at most 4096"),
            (|op| op.workspace = usize::MAX, "18446744073709551615 bytes of scratch memory are too many"),
            (|op| op.overwrites = vec![(0, 1)], "result 0 overwrites operand 1: one of them doesn't exist"),
            (|op| op.results[0].dtype = DType::I8, "result 0, i8[2, 3], can't overwrite operand 0, f32[2, 3]"),
            (|op| op.persistent = vec![0], "the persistent result 0 doesn't exist, or has other memory too"),
            (|op| op.begin = None, "there is no begin to compute the persistent results"),
            (|op| drop(op.sources.pop()), "the instance's header \"f.h\" isn't among the C files"),
            (|op| op.convention = CallConvention::Packed, "a packed function has neither begin nor end nor an instance"),
        ];
        for (change, message) in changes {
            let mut op = sound();
            change(&mut op);
            assert_eq!(op.infer(&op.operands).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn small_files_are_shown_and_all_read_back() {
        let spelled = FieldValue::List(vec![FieldValue::Text("f.c".into()), FieldValue::Text("int f;\n".into())]);
        assert_eq!(CFile::new("f.c", "int f;\n").to_value(), spelled);
        for text in ["int f;\n".into(), vec![0xff; 3], vec![b' '; MAXIMUM_SHOWN + 1]] {
            let file = CFile::new("f.c", text);
            assert_eq!(CFile::from_value(&file.to_value()), Some(file));
        }
    }
}
