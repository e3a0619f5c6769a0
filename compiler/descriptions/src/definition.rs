//! The C of an operator type: the structure that it keeps, and a function for each of its phases.

use crate::description::{Arch, Body, Description};
use crate::parameter::{Parameter, ParameterKind};
use std::borrow::Cow;
use std::fmt::Write;

/// What operators are written against: a header, and the functions that it declares.
const SUPPORT: [CFile; 2] = [
    CFile::fixed("mlc_operator.h", include_str!("../include/mlc_operator.h")),
    CFile::fixed("mlc_operator.c", include_str!("../include/mlc_operator.c")),
];

/// Functions on whole tensors, for the operators that call them.
const TENSORS: [CFile; 2] = [
    CFile::fixed("mlc_tensors.h", include_str!("../include/mlc_tensors.h")),
    CFile::fixed("mlc_tensors.c", include_str!("../include/mlc_tensors.c")),
];

/// Those functions.
const TENSOR_FUNCTIONS: [&str; 8] = [
    "tl_tensor_slice",
    "tl_tensor_transpose",
    "tl_tensor_elew",
    "tl_tensor_lrelu",
    "tl_tensor_dot_product",
    "tl_tensor_maxreduce",
    "tl_tensor_resize",
    "tl_tensor_rearange",
];

/// The variable for scratch memory.
pub(crate) const WORKSPACE: &str = "workspace";

/// A file of C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CFile {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its text.
    pub text: Cow<'static, str>,
}

impl CFile {
    const fn fixed(name: &'static str, text: &'static str) -> CFile {
        CFile { name: Cow::Borrowed(name), text: Cow::Borrowed(text) }
    }

    fn made(name: String, text: String) -> CFile {
        CFile { name: name.into(), text: text.into() }
    }
}

/// A phase of an operator's life, and its function.
pub(crate) struct Phase<'a> {
    pub name: &'static str,
    pub body: &'a Body,
    comment: &'static str,
}

impl Description {
    /// The operator type's header and source; nothing if it runs on no processor.
    ///
    /// # Errors
    /// When a phase is only announced, by an empty text.
    pub fn definition(&self) -> Result<Vec<CFile>, String> {
        if self.arch != Arch::Cpu {
            return Ok(Vec::new());
        }
        if let Some(phase) = self.phases().find(|phase| phase.body.text.trim().is_empty()) {
            return Err(format!("the `{}` of '{}' is empty: there is nothing to generate", phase.name, self.optype));
        }
        let Description { optype, .. } = self;
        Ok(vec![CFile::made(format!("{optype}.h"), self.header()), CFile::made(format!("{optype}.c"), self.source())])
    }

    /// The files that the operator type's source is written against: the same for all types, but for those that not all need.
    pub fn support(&self) -> impl Iterator<Item = CFile> {
        SUPPORT.into_iter().chain(TENSORS.into_iter().filter(|_| self.calls_tensor_functions()))
    }

    /// Whether a text calls functions on whole tensors.
    fn calls_tensor_functions(&self) -> bool {
        self.phases().any(|phase| TENSOR_FUNCTIONS.iter().any(|function| phase.body.mentions(function)))
    }

    /// The phases that the operator has.
    pub(crate) fn phases(&self) -> impl Iterator<Item = Phase<'_>> {
        [
            ("static_run", &self.static_run, "once, before the first run"),
            ("run", &self.run, "at each run"),
            ("post_run", &self.post_run, "once, at the end"),
        ]
        .into_iter()
        .filter_map(|(name, body, comment)| Some(Phase { name, body: body.as_ref()?, comment }))
    }

    /// A comment that says where the file comes from.
    fn origin(&self) -> String {
        let author: String = self.author.chars().map(|c| if is_harmless(c) { c } else { '_' }).collect();
        format!(
            "/* The operator {}, by {author}. Made from its description by mlc opgen: edit that instead. */\n",
            self.optype
        )
    }

    fn header(&self) -> String {
        let Description { optype, .. } = self;
        let guard = format!("MLC_OPERATOR_{}_H_", optype.to_ascii_uppercase());
        let mut text = self.origin();
        text += &format!(
            "#ifndef {guard}\n#define {guard}\n\n#include \"mlc_operator.h\"\n\n\
             /* What an operator of this type keeps; `priv` of its ln_op_arg points to it. */\nstruct {optype}_priv {{\n"
        );
        // No formatting of a String fails.
        let mut members = 0;
        for name in self.tensors() {
            let _ = writeln!(text, "  ln_tensor_entry *{name}_entry;");
            members += 1;
        }
        for member in &self.private {
            let _ = writeln!(text, "  {} {};", member.ty.trim(), member.declarator.trim());
            members += 1;
        }
        for parameter in &self.parameters {
            let _ = writeln!(text, "  ln_param_entry *{}_entry;", parameter.name);
            members += 1;
        }
        if members == 0 {
            text += "  char unused;\n";
        }
        text += "};\n";
        for Phase { name, comment, .. } in self.phases() {
            let _ = write!(text, "\n/* To be called {comment}. */\nvoid {optype}_{name}(ln_op_arg *op_arg);\n");
        }
        text + &self.glue_header() + "\n#endif\n"
    }

    fn source(&self) -> String {
        let Description { optype, .. } = self;
        let tensors = if self.calls_tensor_functions() { "#include \"mlc_tensors.h\"\n" } else { "" };
        let mut text = self.origin();
        let _ = write!(
            text,
            "#include \"{optype}.h\"\n{tensors}\n/* The name that the description has for it. */\n#define priv_s {optype}_priv\n"
        );
        for phase in self.phases() {
            text += &self.function(&phase);
        }
        text + &self.glue_source()
    }

    pub(crate) fn tensors(&self) -> impl Iterator<Item = &str> {
        let inputs = self.inputs.iter().map(|input| input.name.as_str());
        inputs.chain(self.outputs.iter().map(|output| output.name.as_str()))
    }

    /// The function of a phase: it declares the names that the text mentions.
    fn function(&self, Phase { name, body, .. }: &Phase) -> String {
        let mut locals: Vec<(String, String)> = Vec::new();
        let mut local = |name: &str, declaration: String| {
            if body.mentions(name) {
                locals.push((declaration, name.to_owned()));
            }
        };
        for name in self.tensors() {
            let entry = format!("{name}_entry");
            local(&entry, format!("ln_tensor_entry *{entry} = priv->{entry};"));
            local(&format!("{name}_name"), format!("const char *{name}_name = priv->{entry}->name;"));
            local(name, format!("tl_tensor *{name} = priv->{entry}->tensor;"));
        }
        for parameter in &self.parameters {
            let entry = format!("{}_entry", parameter.name);
            local(&entry, format!("ln_param_entry *{entry} = priv->{entry};"));
            local(&parameter.name, variable(parameter));
        }
        if self.has_workspace() {
            local(WORKSPACE, format!("void *{WORKSPACE} = op_arg->workspace;"));
        }
        let mut text = format!("\nvoid {}_{name}(ln_op_arg *op_arg) {{\n", self.optype);
        if locals.iter().any(|(declaration, _)| declaration.contains("priv->")) || body.mentions("priv") {
            text += "  struct priv_s *priv = op_arg->priv;\n";
        } else if locals.is_empty() {
            text += "  (void)op_arg;\n";
        }
        for (declaration, _) in &locals {
            let _ = writeln!(text, "  {declaration}");
        }
        // A name may be mentioned in a way that doesn't use it.
        for (_, name) in &locals {
            let _ = writeln!(text, "  (void){name};");
        }
        if body.mentions("priv") {
            text += "  (void)priv;\n";
        }
        text += "  {\n";
        for line in body.text.trim_end().trim_start_matches(['\n', '\r']).lines() {
            let _ = writeln!(text, "{}{line}", if line.is_empty() { "" } else { "    " });
        }
        text + "  }\n}\n"
    }
}

/// Whether a letter can stand in a comment whatever its neighbours are.
fn is_harmless(letter: char) -> bool {
    letter.is_alphanumeric() || " .,-@()<>'+&".contains(letter)
}

/// The declaration of a parameter's variable.
fn variable(parameter: &Parameter) -> String {
    let Parameter { name, kind, array, real_type, .. } = parameter;
    let list = if *array { "array_" } else { "" };
    let star = if *array { "*" } else { "" };
    let real = real_type.as_deref().map(str::trim);
    match (kind, real) {
        (ParameterKind::Null, _) => format!("void *{name} = NULL;"),
        (ParameterKind::Bool, _) => format!("tl_bool_t {star}{name} = priv->{name}_entry->value_{list}bool;"),
        (ParameterKind::Text, None) => format!("char *{star}{name} = priv->{name}_entry->value_{list}string;"),
        (_, Some(real @ ("int" | "float" | "double"))) => {
            format!("{real} {star}{name} = priv->{name}_entry->value_{list}{real};")
        }
        // Enumerations are kept as integers, whose size theirs needn't have.
        (_, Some(real)) if !array => format!("{real} {name} = ({real})priv->{name}_entry->value_int;"),
        _ => format!("int {star}{name} = priv->{name}_entry->value_{list}int;"),
    }
}
