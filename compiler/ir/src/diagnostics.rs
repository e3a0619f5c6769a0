//! Diagnostics: everything that mlc tells its user about a model.
//!
//! A [`Diagnostic`] says what is wrong, where, what was expected and what to do. Libraries build them; only the driver
//! renders them. Every [`Code`] has a page, printed by `mlc explain CODE`, which is the documentation of its variant.

use serde::Serialize;
use std::fmt;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The model can't be compiled.
    Error,
    /// The model compiles, but something in it is suspicious.
    Warning,
    /// Worth knowing, nothing to do.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// A place in a user's file. Every part is optional, and each one narrows the place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Location {
    /// The file's name as the user gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of a text file, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in bytes, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Byte offset in a binary file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_offset: Option<u64>,
    /// JSON path in a JSON file, such as `$.nodes[3].op`. In a description of operators, a JSON pointer, such as `/ops/0/run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
    /// The operator's type in the file's own words, such as `nn.Conv2d`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The operator's name in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl Location {
    /// A line of a text file.
    pub fn line(line: u32) -> Self {
        Location { line: Some(line), ..Self::default() }
    }

    /// A line and a column of a text file, both from 1.
    pub fn line_column(line: u32, column: u32) -> Self {
        Location { line: Some(line), column: Some(column), ..Self::default() }
    }

    /// A byte offset in a binary file.
    pub fn byte_offset(offset: u64) -> Self {
        Location { byte_offset: Some(offset), ..Self::default() }
    }

    /// The same place, in this file.
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// The same place, at this operator.
    pub fn at_operator(mut self, operator: impl Into<String>, node: impl Into<String>) -> Self {
        self.operator = Some(operator.into());
        self.node = Some(node.into());
        self
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut file = self.file.clone().unwrap_or_default();
        if let Some(line) = self.line {
            if file.is_empty() {
                file = "line ".into();
            } else {
                file.push(':');
            }
            file += &line.to_string();
            if let Some(column) = self.column {
                file += &format!(":{column}");
            }
        }
        if !file.is_empty() {
            parts.push(file);
        }
        if let Some(offset) = self.byte_offset {
            parts.push(format!("byte {offset}"));
        }
        if let Some(path) = &self.json_path {
            parts.push(path.clone());
        }
        match (&self.operator, &self.node) {
            (Some(operator), Some(node)) => parts.push(format!("{operator} \"{node}\"")),
            (Some(operator), None) => parts.push(operator.clone()),
            (None, Some(node)) => parts.push(format!("\"{node}\"")),
            (None, None) => {}
        }
        f.write_str(&parts.join(", "))
    }
}

/// One finding: what, where, what was expected, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Which kind of finding; `mlc explain CODE` has a page on it.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence, lower case, no full stop: what is, and what was expected.
    pub message: String,
    /// Where it is.
    pub location: Location,
    /// Other places that belong to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<(Location, String)>,
    /// Facts that help to understand it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the user can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: Code, location: Location, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, location, message)
    }

    /// An error of options that don't go with each other, or with what they are given for.
    pub fn option_mismatch(message: impl Into<String>) -> Self {
        Self::error(Code::OptionMismatch, Location::default(), message)
    }

    /// A warning at a place.
    pub fn warning(code: Code, location: Location, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, location, message)
    }

    /// A note about a place.
    pub fn note(code: Code, location: Location, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, location, message)
    }

    fn new(severity: Severity, code: Code, location: Location, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity,
            message: message.into(),
            location,
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// Adds another place that belongs to the finding.
    pub fn with_related(mut self, location: Location, message: impl Into<String>) -> Self {
        self.related.push((location, message.into()));
        self
    }

    /// Adds a fact.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the file of every place that has none yet.
    pub fn in_file(mut self, file: &str) -> Self {
        self.location.file.get_or_insert_with(|| file.to_owned());
        for (location, _) in &mut self.related {
            location.file.get_or_insert_with(|| file.to_owned());
        }
        self
    }

    /// Whether the finding stops the compilation.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        let place = self.location.to_string();
        if !place.is_empty() {
            write!(f, " ({place})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal,)+) => {
        /// The kinds of findings. The numbers never change and are never used again.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[doc = $doc])+ $name,)+ }

        impl Code {
            /// All codes, by number.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// The number, as in `MLC0101`.
            pub fn number(self) -> u16 {
                match self { $(Code::$name => $number,)+ }
            }

            /// The variant's name: a short title.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => stringify!($name),)+ }
            }

            /// The page that `mlc explain` prints.
            pub fn page(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc, "\n",)+),)+ }
            }
        }
    };
}

codes! {
    /// The file can't be read: it doesn't exist, or the system refuses it.
    FileUnreadable = 1,
    /// The file can't be written.
    FileUnwritable = 2,
    /// The format of the file isn't one that mlc knows. `--format` names it by hand.
    FormatUnknown = 3,
    /// An option of the command line doesn't fit the model, for example an `--input` whose name the model doesn't have.
    OptionMismatch = 4,
    /// A tool that mlc needs, such as the C compiler, isn't there or failed.
    ToolFailed = 5,
    /// An array file (`.npy`) is damaged, or has another type or shape than the model's tensor.
    ArrayMismatch = 6,
    /// The generated code and the evaluator, or the generated code and the golden outputs, disagree.
    OutputMismatch = 7,
    /// The arrays of `mlc quantize --calibration` don't say what a model's inputs are like: there are none for an input, the inputs
    /// have different numbers of runs, an element is no finite number, or all elements of an input are the same.
    CalibrationUnfit = 8,

    /// The text breaks the grammar of its format.
    Syntax = 101,
    /// The file declares a number of things and holds another.
    CountMismatch = 102,
    /// A value is used before, or without, being defined.
    UndefinedValue = 103,
    /// A value, a key or a name is defined twice.
    DuplicateDefinition = 104,
    /// A weight isn't in the file that should hold it.
    WeightMissing = 105,
    /// A weight has another size than its shape and data type say.
    WeightSizeMismatch = 106,
    /// The archive that holds the weights is damaged.
    ArchiveDamaged = 107,
    /// A number in the file is too large for what it means, or for this machine.
    NumberOutOfRange = 108,
    /// A shape in the file disagrees with the shape that follows from the operators.
    ShapeMismatch = 109,
    /// The file is of a related format that mlc reads under another name, or not at all.
    RelatedFormat = 110,
    /// The graph has no output.
    NoOutput = 111,
    /// The file holds something that nothing uses.
    Unused = 112,
    /// Models of several ranks don't fit each other: another number of ranks, a message that is sent and not received or has two
    /// types, or ranks that wait for each other.
    RanksMismatch = 113,

    /// An operator isn't supported. All of them are reported at once.
    OperatorUnsupported = 201,
    /// An operator is supported, but not with these parameters or types.
    VariantUnsupported = 202,
    /// A parameter that the operator needs is missing.
    ParameterMissing = 203,
    /// A parameter has a value of the wrong kind, or one that the operator doesn't allow.
    ParameterInvalid = 204,
    /// The operator has the wrong number of operands or results.
    OperandCount = 205,
    /// The operands' types or shapes don't fit the operator, or each other.
    OperandTypes = 206,
    /// The shape of an input isn't known. `--input-shape NAME=1,3,224,224` gives it.
    InputShapeUnknown = 207,
    /// The result's size depends on the data, so no static memory plan exists.
    DataDependentShape = 208,

    /// A graph breaks an invariant of the intermediate representation. This is a defect of mlc: please report it.
    InvalidGraph = 301,
    /// The intermediate representation's text can't be parsed.
    TextSyntax = 302,
    /// The evaluator was asked for something without a value, such as an index out of range.
    Evaluation = 303,

    /// The target can't run the model: an operator, a data type or a size is out of its reach.
    TargetLimit = 401,
    /// The model doesn't fit the memory that `--ram` or `--flash` allows, or that of an emulated board. `mlc compile` counts
    /// what is certain before a C compiler has run: for RAM the working memory, the states, the inputs and the outputs; for
    /// flash the constants. `mlc run --on` builds the model and counts its code and its stack too.
    MemoryExceeded = 402,
    /// Operators on 8-bit integers are computed in floating point: the numbers are right, the code is larger and slower than integer
    /// arithmetic would be. A model with `QLinearConv`, `QLinearMatMul` and their kin in the place of pairs of `QuantizeLinear` and
    /// `DequantizeLinear` is computed in integers. A note for each such kernel says why: its weights are real numbers, the scale of an
    /// operand isn't constant, sums may have more than 32 bits, or the target is strict, and integers would be rounded otherwise.
    FloatingPointIntegers = 403,
    /// A layer that `mlc quantize` leaves in floating point, since its operator has no form of integers, or none for these operands.
    /// Its operands are turned into real numbers, and its result back into integers where other layers want these.
    LayerInFloat = 404,
    /// The input that `--feed` names can't be given row by row: it has no rows, a kernel reads all of it at once, or the kernels that read
    /// it can't be computed by rows together. The message names what stands in the way.
    InputNotFed = 405,

    /// A description of an operator is wrong. The message ends in the kind of problem: `missing-field`, `unknown-value`,
    /// `arch-mismatch`, `unknown-reference`, `duplicate-name`, `bad-identifier`, `wrong-type` or `bad-snippet`. All problems of a
    /// file are reported at once, each with its place and its JSON pointer.
    DescriptionInvalid = 501,
    /// An operator of the model breaks a check of its description.
    CheckFailed = 502,
    /// The C text of a description that says shapes and checks can't be evaluated: it divides by zero, reads or writes outside of
    /// its memory, takes too many steps, or the like. The message names the line within the text.
    SnippetFault = 503,
}

impl Code {
    /// Finds a code by its spelling, `MLC0101` or `101`.
    pub fn parse(text: &str) -> Option<Code> {
        let digits = text.trim().to_ascii_uppercase();
        let number: u16 = digits.strip_prefix("MLC").unwrap_or(&digits).parse().ok()?;
        Code::ALL.iter().copied().find(|code| code.number() == number)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MLC{:04}", self.number())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
