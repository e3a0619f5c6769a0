//! Gives every declared weight its bytes.

use super::lines::{File, shorten};
use super::report::Report;
use crate::archive::{Archive, Entry};
use crate::model::{Attribute, ElementType, Model, OperatorId};
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};

/// A ZIP file can't hold entries with longer names.
const LONGEST_ENTRY_NAME: usize = 65535;

/// A weight that an operator's line promises.
pub(super) struct Declaration {
    pub(super) operator: OperatorId,
    pub(super) key: String,
    /// `None` if the declaration is wrong, which has been reported.
    pub(super) ty: Option<(ElementType, Vec<u32>)>,
    /// Where on the operator's line it stands.
    pub(super) column: u32,
}

/// Looks up all declared weights in the archive and puts them into the model.
pub(super) fn attach(
    model: &mut Model,
    file: &File<'_>,
    declarations: Vec<Declaration>,
    bin: Option<Bytes>,
    report: &mut Report,
) {
    let Some(archive) = open(file, bin, &declarations, report) else { return };
    // By position in the archive, because two operators' names and keys can make the same entry's name.
    let mut used: IndexMap<usize, Location> = IndexMap::new();
    for declaration in declarations {
        let operator = model.operator(declaration.operator);
        let name_length = operator.name.len() + 1 + declaration.key.len();
        let entry =
            if name_length <= LONGEST_ENTRY_NAME { archive.find(&operator.entry_name(&declaration.key)) } else { None };
        if let Some((position, _)) = entry
            && let Some(first) = used.insert(position, declaration.location(file))
        {
            let message = format!("two weights are called `{}`", declaration.entry_name(model));
            let diagnostic = Diagnostic::error(Code::DuplicateDefinition, declaration.location(file), message);
            report.push(diagnostic.with_related(first, "the other one"));
            continue;
        }
        match attribute(entry.map(|(_, entry)| entry), file, &declaration, model) {
            Ok(Some(attribute)) => {
                let operator = &mut model.operators[declaration.operator.index()];
                operator.attributes.insert(declaration.key, attribute);
            }
            Ok(None) => {}
            Err(diagnostic) => report.push(*diagnostic),
        }
    }
    note_unused(&archive, &used, report);
}

/// The archive, or `None` after reporting why there is none. A model without weights does without.
fn open(file: &File<'_>, bin: Option<Bytes>, declarations: &[Declaration], report: &mut Report) -> Option<Archive> {
    let bin = bin.unwrap_or_default();
    if bin.is_empty() {
        let mut needed = declarations.iter().filter(|declaration| declaration.needs_bytes());
        let Some(first) = needed.next() else { return Some(Archive::default()) };
        let count = 1 + needed.count();
        let message = format!("the file of weights is missing or empty, but the model needs {count} weights");
        let diagnostic = Diagnostic::error(Code::WeightMissing, first.location(file), message);
        report.push(diagnostic.with_help("keep the .pnnx.bin file of the export beside the .pnnx.param file"));
        return None;
    }
    let (archive, diagnostics) = Archive::read(&bin);
    diagnostics.into_iter().for_each(|diagnostic| report.push(diagnostic));
    archive
}

impl Declaration {
    fn location(&self, file: &File<'_>) -> Location {
        file.operators[self.operator.index()].at(self.column)
    }

    /// The entry's name, for messages.
    fn entry_name(&self, model: &Model) -> String {
        format!("{}.{}", shorten(&model.operator(self.operator).name), shorten(&self.key))
    }

    fn needs_bytes(&self) -> bool {
        let is_empty =
            |(element_type, shape): &(ElementType, Vec<u32>)| *element_type == ElementType::Null || shape.contains(&0);
        self.ty.as_ref().is_some_and(|ty| !is_empty(ty))
    }
}

/// The weight with its bytes; `Ok(None)` if what is wrong with it has been reported already.
fn attribute(
    entry: Option<Option<&Entry>>,
    file: &File<'_>,
    declaration: &Declaration,
    model: &Model,
) -> Result<Option<Attribute>, Box<Diagnostic>> {
    let Some((element_type, shape)) = declaration.ty.clone() else { return Ok(None) };
    let mut attribute = Attribute { element_type, shape, data: Bytes::new() };
    let name = || declaration.entry_name(model);
    let fail = |code, message: String| Err(Box::new(Diagnostic::error(code, declaration.location(file), message)));
    if element_type == ElementType::Null {
        let operator = model.operator(declaration.operator);
        let is_unused = |output: &crate::OperandId| model.operand(*output).consumers.is_empty();
        if operator.kind == "pnnx.Attribute" && operator.outputs.iter().all(is_unused) {
            return Ok(Some(attribute));
        }
        return fail(Code::VariantUnsupported, format!("weight `{}` has no element type, but is used", name()));
    }
    let Some(expected) = attribute.byte_size() else {
        let message = format!("weight `{}` of {} has more bytes than 64 bits count", name(), attribute.type_text());
        return fail(Code::NumberOutOfRange, message);
    };
    let entry = match entry {
        Some(Some(entry)) => entry,
        Some(None) => return Ok(None),
        None if expected == 0 => return Ok(Some(attribute)),
        None => return fail(Code::WeightMissing, format!("weight `{}` isn't in the archive", name())),
    };
    let found = entry.data.len() as u64;
    if found != expected {
        let ty = attribute.type_text();
        let message = format!("weight `{}` of {ty} needs {expected} bytes, the archive has {found}", name());
        let diagnostic = Diagnostic::error(Code::WeightSizeMismatch, declaration.location(file), message);
        let place = Location::byte_offset(entry.header_offset);
        return Err(Box::new(diagnostic.with_related(place, "the archive's entry")));
    }
    attribute.data = entry.data.clone();
    Ok(Some(attribute))
}

fn note_unused(archive: &Archive, used: &IndexMap<usize, Location>, report: &mut Report) {
    const MOST_NAMES: usize = 5;
    let entries = archive.entries().filter(|(position, _, _)| !used.contains_key(position));
    let unused: Vec<_> = entries.map(|(_, name, entry)| (name, entry)).collect();
    let Some((_, first)) = unused.first() else { return };
    let place = Location::byte_offset(first.header_offset);
    let names = unused.iter().take(MOST_NAMES).map(|(name, _)| format!("`{}`", shorten(name).escape_debug()));
    let mut names = names.collect::<Vec<_>>().join(", ");
    if unused.len() > MOST_NAMES {
        names += " and others";
    }
    let message = format!("{} entries of the archive belong to no operator: {names}", unused.len());
    // An exporter never writes a path, so somebody tampered with the archive. Nothing is ever written to that path.
    let is_path = unused.iter().any(|(name, _)| name.contains(['/', '\\']));
    report.push(if is_path {
        Diagnostic::warning(Code::Unused, place, message)
    } else {
        Diagnostic::note(Code::Unused, place, message)
    });
}
