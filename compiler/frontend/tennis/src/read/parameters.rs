//! The parameters of a node: names and tensors.

use super::budget::Budget;
use super::cursor::Cursor;
use crate::element_type::ElementType;
use crate::model::Node;
use crate::tensor::{Field, Tensor};
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Longest name of a parameter, in bytes.
const LONGEST_NAME: usize = 31;

/// Most axes of a tensor.
const MOST_AXES: usize = 64;

/// Least bytes of a parameter: the lengths of its name and its tuple, a data type and a number of axes.
const LEAST_PARAMETER: usize = 13;

/// Least bytes of a tensor.
const LEAST_FIELD: usize = 5;

/// Reads a node's parameters. Of several of one name the first counts.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    budget: &mut Budget,
    report: &mut Report,
) -> Result<BTreeMap<String, Tensor>, Diagnostic> {
    let mut parameters = BTreeMap::new();
    for _ in 0..cursor.count("the number of parameters", LEAST_PARAMETER)? {
        budget.take(cursor, 1)?;
        let place = cursor.place();
        let name = name(cursor, report)?;
        let tensor = tensor(cursor, budget, report, &name)?;
        if name == "#name"
            && let Some(text) = tensor.single().and_then(Field::text).filter(|text| !text.is_empty())
        {
            cursor.node.1 = Some(text.to_owned());
        }
        match parameters.entry(name) {
            Entry::Vacant(vacant) => {
                vacant.insert(tensor);
            }
            Entry::Occupied(first) => {
                let message = format!("parameter `{}` is there twice; the first one counts", first.key());
                let location = cursor.location(place);
                report.push(Diagnostic::warning(Code::DuplicateDefinition, location, message));
            }
        }
    }
    Ok(parameters)
}

fn name(cursor: &mut Cursor<'_>, report: &mut Report) -> Result<String, Diagnostic> {
    let place = cursor.place();
    let length = cursor.count("the length of a parameter's name", 1)?;
    if length > LONGEST_NAME {
        let message = format!("a parameter's name has {length} bytes, at most {LONGEST_NAME} expected");
        report.push(cursor.fault(Code::NumberOutOfRange, place, message));
    }
    let bytes = cursor.take(length, "a parameter's name")?;
    Ok(std::str::from_utf8(&bytes).map(str::to_owned).unwrap_or_else(|_| {
        report.push(cursor.fault(Code::Syntax, place + 4, "a parameter's name isn't UTF-8"));
        String::from_utf8_lossy(&bytes).into_owned()
    }))
}

fn tensor(cursor: &mut Cursor<'_>, budget: &mut Budget, report: &mut Report, name: &str) -> Result<Tensor, Diagnostic> {
    let place = cursor.place();
    let count = cursor.count(&format!("the number of tensors of `{name}`"), LEAST_FIELD)?;
    if count == 0 {
        report.push(cursor.fault(Code::CountMismatch, place, format!("parameter `{name}` has no tensor")));
    }
    budget.take(cursor, count)?;
    let fields = (0..count).map(|_| field(cursor, name)).collect::<Result<_, _>>()?;
    Ok(Tensor { fields })
}

fn field(cursor: &mut Cursor<'_>, name: &str) -> Result<Field, Diagnostic> {
    let place = cursor.place();
    let code = cursor.byte("a tensor's data type")?;
    let element_type = ElementType::of_code(code).ok_or_else(|| {
        let message = format!("parameter `{name}` has the data type {code}, which isn't one of a file");
        cursor.fault(Code::Syntax, place, message)
    })?;
    let place = cursor.place();
    let rank = cursor.count(&format!("the number of axes of `{name}`"), 4)?;
    if rank > MOST_AXES {
        let message = format!("parameter `{name}` has {rank} axes, at most {MOST_AXES} are supported");
        return Err(cursor.fault(Code::NumberOutOfRange, place, message));
    }
    let mut shape = Vec::with_capacity(rank);
    for _ in 0..rank {
        let place = cursor.place();
        let extent = cursor.int("a tensor's extents")?;
        let extent = usize::try_from(extent).map_err(|_| {
            let message = format!("parameter `{name}` has the extent {extent}, which is negative");
            cursor.fault(Code::NumberOutOfRange, place, message)
        })?;
        shape.push(extent);
    }
    let product = |product: usize, &extent: &usize| product.checked_mul(extent);
    let size = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(element_type.width(), product),
    };
    let size = size.filter(|&size| size <= cursor.left()).ok_or_else(|| {
        let message = format!("parameter `{name}` is {element_type}{shape:?}, but {} bytes are left", cursor.left());
        cursor.fault(Code::WeightSizeMismatch, place, message)
    })?;
    Ok(Field { element_type, shape, data: cursor.take(size, "a tensor")? })
}

/// Takes a node's name and operator out of its parameters.
pub(super) fn take_own(
    cursor: &mut Cursor<'_>,
    offset: u64,
    parameters: &mut BTreeMap<String, Tensor>,
    report: &mut Report,
) -> (String, String) {
    let mut texts = ["#name", "#op"].map(|key| match text(parameters.remove(key)) {
        Ok(text) => Some(text),
        Err(what) => {
            report.push(cursor.fault(what.0, offset as usize, format!("the parameter `{key}` of a node {}", what.1)));
            None
        }
    });
    let (name, kind) = (texts[0].take().unwrap_or_default(), texts[1].take());
    cursor.node.0.clone_from(&kind);
    if kind.as_deref() == Some("") {
        report.push(cursor.fault(Code::Syntax, offset as usize, "the parameter `#op` of a node is empty"));
    }
    (name, kind.unwrap_or_default())
}

/// A text, or what is wrong with it.
fn text(tensor: Option<Tensor>) -> Result<String, (Code, &'static str)> {
    let tensor = tensor.ok_or((Code::ParameterMissing, "is missing"))?;
    let field = tensor.single().filter(|field| field.element_type == ElementType::CHAR8);
    let field = field.ok_or((Code::ParameterInvalid, "must be text (CHAR8)"))?;
    field.text().map(str::to_owned).ok_or((Code::Syntax, "isn't UTF-8"))
}

/// Checks the reserved parameters that are there.
pub(super) fn check_hints(
    cursor: &Cursor<'_>,
    offset: u64,
    parameters: &BTreeMap<String, Tensor>,
    report: &mut Report,
) {
    let mut fault = |message: String| {
        report.push(cursor.fault(Code::ParameterInvalid, offset as usize, message));
    };
    if let Some(count) = parameters.get("#output_count")
        && count.single().and_then(Field::int) != Some(1)
    {
        fault("the parameter `#output_count` of a node must be 1".into());
    }
    let is_input = cursor.node.0.as_deref() == Some(Node::PARAMETER);
    if let Some(shape) = parameters.get("#shape") {
        let numbers = shape.single().filter(|field| field.shape.len() <= 1).and_then(Field::ints);
        if numbers.is_none_or(|numbers| numbers.iter().any(|&extent| extent < -1)) {
            let found: Vec<String> = shape.fields.iter().map(Field::type_text).collect();
            let message = "the parameter `#shape` of a node must be a list of whole numbers from -1";
            fault(format!("{message}, found {}", found.join(" and ")));
        }
    }
    if let Some(dtype) = parameters.get("#dtype") {
        let code = dtype.single().and_then(Field::int).and_then(|code| u8::try_from(code).ok());
        if is_input && code.and_then(ElementType::of_code).is_none() {
            fault("the parameter `#dtype` of an input must be the code of a data type".into());
        }
    }
}
