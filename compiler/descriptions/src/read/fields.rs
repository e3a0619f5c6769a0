//! Fields of an object, and the problems of them.

use crate::problem::{Problem, ProblemKind, Problems};
use crate::source::Place;
use crate::syntax::{Kind, Member, Text, Tree};
use mlc_ir::text::nearest;

/// An object of a description.
#[derive(Clone)]
pub(super) struct Fields<'t> {
    members: &'t [Member],
    place: Place,
    /// Where the object is in the file.
    pub pointer: String,
    /// What it describes, such as "input 'src'".
    pub subject: String,
}

impl<'t> Fields<'t> {
    /// The members of a value, which must be an object.
    pub fn new(tree: &'t Tree, pointer: String, subject: String, problems: &mut Problems) -> Option<Fields<'t>> {
        match &tree.kind {
            Kind::Object(members) => Some(Fields { members, place: tree.place, pointer, subject }),
            kind => {
                let message = format!("{subject} must be an object, not {}", kind.describe());
                let kind = ProblemKind::WrongType;
                problems.push(Problem { kind, place: tree.place, pointer, message, help: None });
                None
            }
        }
    }

    /// A field, if it is there.
    pub fn get(&self, field: &str) -> Option<&'t Tree> {
        self.members.iter().find(|member| &*member.name == field).map(|member| &member.value)
    }

    pub fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    /// Tells a problem of a field: at its value, or at the object if it isn't there.
    pub fn report(&self, kind: ProblemKind, field: &str, message: String, problems: &mut Problems) {
        let place = self.get(field).map_or(self.place, |value| value.place);
        self.report_at(kind, field, place, message, problems);
    }

    /// Tells a problem of a field at a place.
    pub fn report_at(&self, kind: ProblemKind, field: &str, place: Place, message: String, problems: &mut Problems) {
        let pointer = format!("{}/{field}", self.pointer);
        problems.push(Problem { kind, place, pointer, message, help: None });
    }

    fn wrong_type(&self, field: &str, expected: &str, found: &Tree, problems: &mut Problems) {
        let message = format!("the `{field}` of {} must be {expected}, not {}", self.subject, found.kind.describe());
        self.report(ProblemKind::WrongType, field, message, problems);
    }

    /// A string, if it is there and one.
    pub fn text(&self, field: &str, problems: &mut Problems) -> Option<&'t Text> {
        let value = self.get(field)?;
        match &value.kind {
            Kind::Text(text) => Some(text),
            _ => {
                self.wrong_type(field, "a string", value, problems);
                None
            }
        }
    }

    /// A string that must be there.
    pub fn required_text(&self, field: &str, problems: &mut Problems) -> Option<&'t Text> {
        self.require(field, problems);
        self.text(field, problems)
    }

    /// Tells that a field is missing, if it is.
    pub fn require(&self, field: &str, problems: &mut Problems) {
        if !self.has(field) {
            let message = format!("{} needs a `{field}`", self.subject);
            self.report(ProblemKind::MissingField, field, message, problems);
        }
    }

    /// A string that is one of a list: its number there.
    pub fn choice(&self, field: &str, choices: &[&str], problems: &mut Problems) -> Option<usize> {
        let text = self.required_text(field, problems)?;
        self.chosen(field, text.as_str(), choices, problems)
    }

    /// The number of a text in a list.
    pub fn chosen(&self, field: &str, text: &str, choices: &[&str], problems: &mut Problems) -> Option<usize> {
        let found = choices.iter().position(|choice| *choice == text);
        if found.is_none() {
            let message = format!("the `{field}` of {} is '{text}', not one of {}", self.subject, choices.join(", "));
            self.report(ProblemKind::UnknownValue, field, message, problems);
        }
        found
    }

    /// A truth value, if it is there: also 0 or 1, and null for false.
    pub fn truth(&self, field: &str, problems: &mut Problems) -> Option<bool> {
        let value = self.get(field)?;
        match value.kind {
            Kind::Bool(truth) => Some(truth),
            Kind::Null => Some(false),
            Kind::Number(number) if number == 0.0 || number == 1.0 => Some(number == 1.0),
            _ => {
                self.wrong_type(field, "true or false", value, problems);
                None
            }
        }
    }

    /// The elements of an array that must be there.
    pub fn required_list(&self, field: &str, problems: &mut Problems) -> &'t [Tree] {
        self.require(field, problems);
        self.list(field, problems)
    }

    /// The elements of an array; none if it isn't there.
    pub fn list(&self, field: &str, problems: &mut Problems) -> &'t [Tree] {
        match self.get(field) {
            None => &[],
            Some(Tree { kind: Kind::List(list), .. }) => list,
            Some(value) => {
                self.wrong_type(field, "an array", value, problems);
                &[]
            }
        }
    }

    /// The objects of an array, each with what it describes: `what` and its name.
    pub fn objects(&self, field: &str, list: &'t [Tree], what: &str, problems: &mut Problems) -> Vec<Fields<'t>> {
        let mut objects = Vec::new();
        for (number, tree) in list.iter().enumerate() {
            let pointer = format!("{}/{field}/{number}", self.pointer);
            let name = match &tree.kind {
                Kind::Object(members) => members.iter().find_map(|member| match &member.value.kind {
                    Kind::Text(text) if &*member.name == "arg_name" => Some(text.as_str()),
                    _ => None,
                }),
                _ => None,
            };
            let subject = match name {
                Some(name) => format!("{what} '{name}'"),
                None => format!("{what} {number} of {}", self.subject),
            };
            objects.extend(Fields::new(tree, pointer, subject, problems));
        }
        objects
    }

    /// Warns of fields without meaning.
    pub fn warn_unknown(&self, known: &[&str], problems: &mut Problems) {
        for member in self.members.iter().filter(|member| !known.contains(&&*member.name)) {
            let message = format!("the field `{}` of {} has no meaning", member.name, self.subject);
            let pointer = format!("{}/{}", self.pointer, escaped(&member.name));
            let help = nearest(&member.name, known.iter().copied()).map(|near| format!("is `{near}` meant?"));
            let kind = ProblemKind::UnknownField;
            problems.push(Problem { kind, place: member.place, pointer, message, help });
        }
    }
}

/// A key as JSON pointers have it.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
