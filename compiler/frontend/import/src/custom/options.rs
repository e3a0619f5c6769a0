//! What the user says about operators that aren't mlc's: their descriptions, and how they are found.

use indexmap::IndexMap;
use mlc_descriptions::{Description, Library};

/// Operators that the user describes.
#[derive(Debug)]
pub struct CustomOperators {
    /// Their descriptions.
    pub library: Library,
    /// Descriptions by the names of models' operators, where those have others.
    pub renamed: IndexMap<String, Renamed>,
    /// Whether a description takes the place of an operator of the same name that mlc has.
    pub replace_own: bool,
    /// Whether attributes that a description has no parameter for are left out.
    pub ignore_attributes: bool,
}

/// An operator that a model calls otherwise than its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The description's type of operator.
    pub optype: String,
    /// The description's parameters by the names of the model's attributes, where those have others.
    pub parameters: IndexMap<String, String>,
}

/// A description that fits an operator of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described<'o> {
    /// Which types it: that of the name itself, or of the name with `_cpu`.
    pub description: &'o Description,
    /// Which has its code.
    pub code: Option<&'o Description>,
    /// Parameters by attributes of other names.
    pub parameters: Option<&'o IndexMap<String, String>>,
}

impl Described<'_> {
    /// The parameter that an attribute of the model is for.
    pub fn parameter<'s>(&'s self, attribute: &'s str) -> &'s str {
        let renamed = self.parameters.and_then(|parameters| parameters.get(attribute));
        renamed.map_or(attribute, String::as_str)
    }
}

impl CustomOperators {
    /// Operators by their descriptions, which have the names of the models' operators.
    pub fn new(library: Library) -> Self {
        CustomOperators { library, renamed: IndexMap::new(), replace_own: false, ignore_attributes: false }
    }

    /// Whether there is a description of an operator of a set.
    pub fn knows(&self, domain: &str, kind: &str) -> bool {
        self.find(domain, kind).is_some()
    }

    /// The description of an operator by what the user says, else by its name, with or without the part before `::`.
    pub(crate) fn find(&self, domain: &str, kind: &str) -> Option<Described<'_>> {
        let full = format!("{domain}::{kind}");
        if let Some(Renamed { optype, parameters }) = self.renamed.get(&full).or_else(|| self.renamed.get(kind)) {
            return self.of_name(optype).map(|found| Described { parameters: Some(parameters), ..found });
        }
        let last = kind.rsplit("::").next().unwrap_or(kind);
        self.of_name(kind).or_else(|| self.of_name(last))
    }

    fn of_name(&self, name: &str) -> Option<Described<'_>> {
        let twin = self.library.get(&format!("{name}_cpu"));
        let description = self.library.get(name).or(twin)?;
        let code = if description.arch == mlc_descriptions::Arch::None { twin } else { Some(description) };
        Some(Described { description, code, parameters: None })
    }
}
