//! A whole description.

use super::builder::{Builder, report_fault};
use super::fields::Fields;
use super::names::{Role, Scope, declared, fault, is_type};
use super::parameters::{check_parameter, parameter};
use super::tensors::{define_output, input, output};
use crate::c::{Names, Record, TokenKind, Type, check_brackets, parse_statements, tokens};
use crate::definition::WORKSPACE;
use crate::description::{Arch, Body, Description, Input, Output, PrivateMember};
use crate::parameter::Parameter;
use crate::problem::{ProblemKind, Problems};
use crate::program::{OffsetProgram, Program, Snippet, declare, declare_names, declare_types};
use crate::source::Place;
use crate::syntax::{Kind, Tree};

const FIELDS: [&str; 19] = [
    "optype",
    "author",
    "arch",
    "tensors_in",
    "tensors_out",
    "params",
    "autogen",
    "extra_privs",
    "checks",
    "custom",
    "static_run",
    "run",
    "post_run",
    "calc_offset",
    "variable_length",
    "pure",
    "operations",
    "workspace",
    "alignment",
];

/// The largest alignment that can be asked for: what lines of caches and pages of memories have.
const MOST_ALIGNMENT: usize = 4096;

/// The description that a tree is. Nothing for a template; what is wrong with it is told.
pub(super) fn operator(tree: &Tree, pointer: String, number: usize, problems: &mut Problems) -> Option<Description> {
    let name = match &tree.kind {
        Kind::Object(members) => members.iter().find_map(|member| match &member.value.kind {
            Kind::Text(text) if &*member.name == "optype" => Some(format!("operator '{}'", text.as_str())),
            _ => None,
        }),
        _ => None,
    };
    let subject = name.unwrap_or_else(|| format!("operator {number}"));
    let fields = Fields::new(tree, pointer, subject, problems)?;
    if fields.truth("autogen", problems) == Some(false) {
        return None;
    }
    fields.warn_unknown(&FIELDS, problems);
    let optype = fields.required_text("optype", problems).map(|text| text.as_str().to_owned());
    let author = fields.required_text("author", problems).map(|text| text.as_str().to_owned());
    let arch = architecture(&fields, optype.as_deref(), problems);
    let described = Parts::read(&fields, problems);
    let bodies = ["static_run", "run", "post_run"].map(|field| body(&fields, field, problems));
    let pure = fields.truth("pure", problems).unwrap_or(true);
    fields.truth("variable_length", problems);
    let alignment = alignment(&fields, problems);
    // What only devices run is read, not understood.
    let (program, offset) = match arch {
        Some(arch) if arch.is_supported() => described.program(&fields, problems),
        _ => {
            body(&fields, "calc_offset", problems);
            (Program::default(), None)
        }
    };
    let [static_run, run, post_run] = bodies;
    Some(Description {
        optype: optype?,
        author: author?,
        arch: arch?,
        inputs: described.inputs,
        outputs: described.outputs,
        parameters: described.parameters,
        private: described.private,
        static_run,
        run,
        post_run,
        pure,
        alignment,
        place: tree.place,
        program,
        offset,
    })
}

/// The architecture, which the operator's type must end in.
fn architecture(fields: &Fields, optype: Option<&str>, problems: &mut Problems) -> Option<Arch> {
    if let Some(message) = optype.and_then(fault) {
        fields.report(ProblemKind::BadIdentifier, "optype", format!("the `optype`: {message}"), problems);
    }
    let arch = Arch::ALL[fields.choice("arch", &Arch::ALL.map(Arch::name), problems)?];
    if let Some(optype) = optype
        && arch != Arch::None
    {
        let stem = optype.strip_suffix(arch.name()).and_then(|stem| stem.strip_suffix('_'));
        if stem.is_none_or(str::is_empty) {
            let message = format!("the `optype` '{optype}' doesn't end in '_{0}', its `arch` is '{0}'", arch.name());
            fields.report(ProblemKind::ArchMismatch, "optype", message, problems);
        }
    }
    Some(arch)
}

/// The alignment of tensors and scratch memory.
fn alignment(fields: &Fields, problems: &mut Problems) -> usize {
    let Some(value) = fields.get("alignment") else { return 1 };
    match value.kind {
        Kind::Number(number) if number.fract() == 0.0 && (1.0..=MOST_ALIGNMENT as f64).contains(&number) => {
            let bytes = number as usize;
            if bytes.is_power_of_two() {
                return bytes;
            }
        }
        _ => {}
    }
    let message = format!("the `alignment` of {} must be a power of two, at most {MOST_ALIGNMENT}", fields.subject);
    fields.report(ProblemKind::UnknownValue, "alignment", message, problems);
    1
}

/// C text that is pasted into a function of its own: it must not reach out of it.
fn body(fields: &Fields, field: &str, problems: &mut Problems) -> Option<Body> {
    let text = fields.text(field, problems)?;
    let found = tokens(text.as_str()).and_then(|tokens| check_brackets(&tokens).map(|()| tokens));
    match found {
        Ok(tokens) => {
            let mut words: Vec<String> = Vec::new();
            for token in tokens {
                if let TokenKind::Word(word) = token.kind {
                    words.push(word.to_owned());
                }
            }
            words.sort_unstable();
            words.dedup();
            Some(Body { text: text.as_str().to_owned(), words })
        }
        Err(fault) => {
            report_fault(fields, field, text, &fault, problems);
            None
        }
    }
}

/// Tensors and parameters, with the objects that describe them.
struct Parts<'t> {
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    parameters: Vec<Parameter>,
    private: Vec<PrivateMember>,
    input_fields: Vec<Fields<'t>>,
    output_fields: Vec<Fields<'t>>,
    parameter_fields: Vec<Fields<'t>>,
}

impl<'t> Parts<'t> {
    fn read(fields: &Fields<'t>, problems: &mut Problems) -> Parts<'t> {
        let mut scope = Scope::default();
        let mut named = |field: &str, what: &str, role: Role, problems: &mut Problems| {
            let list = fields.required_list(field, problems);
            let mut found = Vec::new();
            for object in fields.objects(field, list, what, problems) {
                if let Some(name) = object.required_text("arg_name", problems) {
                    let name = name.as_str().to_owned();
                    scope.add(&object, "arg_name", &name, role, problems);
                    found.push((name, object));
                }
            }
            found
        };
        let inputs = named("tensors_in", "input", Role::Input, problems);
        let outputs = named("tensors_out", "output", Role::Output, problems);
        let parameters = named("params", "parameter", Role::Parameter, problems);
        let private = private_members(fields, &mut scope, problems);
        if fields.has(WORKSPACE) && scope.has(WORKSPACE) {
            let message = format!("the name '{WORKSPACE}' is reserved where scratch memory is asked for");
            fields.report(ProblemKind::BadIdentifier, WORKSPACE, message, problems);
        }
        let (inputs, input_fields): (Vec<Input>, Vec<Fields>) =
            inputs.into_iter().map(|(name, fields)| (Input { name }, fields)).unzip();
        let outputs = outputs.into_iter().map(|(name, fields)| (output(&name, &inputs, &fields, problems), fields));
        let (outputs, output_fields) = outputs.unzip();
        let parameters = parameters.into_iter().filter_map(|(name, fields)| {
            let parameter = parameter(&name, &fields, problems)?;
            Some((parameter, fields))
        });
        let (parameters, parameter_fields) = parameters.unzip();
        Parts { inputs, outputs, parameters, private, input_fields, output_fields, parameter_fields }
    }

    fn tensors(&self) -> impl Iterator<Item = &str> {
        let inputs = self.inputs.iter().map(|input| input.name.as_str());
        inputs.chain(self.outputs.iter().map(|output| output.name.as_str()))
    }

    /// What is evaluated, in the order in which the fields are looked at.
    fn program(&self, fields: &Fields, problems: &mut Problems) -> (Program, Option<OffsetProgram>) {
        let mut names = Names::default();
        let layout = declare(&mut names, self.tensors(), &self.parameters);
        let tensor_names = declare_names(&mut names, self.tensors());
        let types = declare_types(&mut names, self.outputs.iter().map(|output| output.name.as_str()));
        let program = Program { names, layout, tensor_names, types, ..Program::default() };
        let mut builder = Builder { program, problems };
        for (number, fields) in self.input_fields.iter().enumerate() {
            input(number, &self.inputs, fields, &mut builder);
        }
        for (number, (parameter, fields)) in self.parameters.iter().zip(&self.parameter_fields).enumerate() {
            check_parameter(number, parameter, fields, &mut builder);
        }
        builder.checks(fields, false);
        builder.statements(fields, "custom");
        for (number, fields) in self.output_fields.iter().enumerate() {
            define_output(number, self.inputs.len(), fields, &mut builder);
        }
        builder.program.operations = builder.figure(fields, "operations");
        builder.program.workspace = builder.figure(fields, WORKSPACE);
        let program = builder.program;
        let offset = self.offset(fields, problems);
        (program, offset)
    }

    /// `calc_offset`, which sees less than the other texts.
    fn offset(&self, fields: &Fields, problems: &mut Problems) -> Option<OffsetProgram> {
        let text = fields.text("calc_offset", problems)?;
        let (mut names, mut strings) = (Names::default(), Vec::new());
        let layout = declare(&mut names, self.tensors(), &self.parameters);
        let wanted = names.declare("te", Type::record(Record::TensorEntry).pointer(), false).unwrap_or(0);
        match parse_statements(text.as_str(), true, &mut names, &mut strings) {
            Ok(code) => {
                let field = format!("`calc_offset` of {}", fields.subject);
                let snippet = Snippet { statements: code.statements, text: text.clone(), field };
                Some(OffsetProgram { snippet, names, strings, layout, wanted })
            }
            Err(fault) => {
                report_fault(fields, "calc_offset", text, &fault, problems);
                None
            }
        }
    }
}

fn private_members(fields: &Fields, scope: &mut Scope, problems: &mut Problems) -> Vec<PrivateMember> {
    let list = fields.list("extra_privs", problems);
    let mut members = Vec::new();
    for object in fields.objects("extra_privs", list, "member", problems) {
        object.warn_unknown(&["type", "name"], problems);
        let ty = object.required_text("type", problems);
        let declarator = object.required_text("name", problems);
        let (Some(ty), Some(declarator)) = (ty, declarator) else { continue };
        let (ty, declarator) = (ty.as_str(), declarator.as_str());
        if !is_type(ty) {
            let message = format!("'{ty}' isn't a type of C");
            object.report(ProblemKind::BadIdentifier, "type", message, problems);
        }
        match declared(declarator) {
            Some(name) => {
                scope.add(&object, "name", name, Role::Private, problems);
                members.push(PrivateMember { ty: ty.to_owned(), declarator: declarator.to_owned() });
            }
            None => {
                let message = format!("'{declarator}' isn't a name, or a name with extents");
                object.report(ProblemKind::BadIdentifier, "name", message, problems);
            }
        }
    }
    members
}

/// Where a description's type is said, for messages about two of one name.
pub(super) fn place_of(tree: &Tree) -> Place {
    match &tree.kind {
        Kind::Object(members) => {
            members.iter().find(|member| &*member.name == "optype").map_or(tree.place, |member| member.value.place)
        }
        _ => tree.place,
    }
}
