//! From lines to a graph: operands are resolved, values are read, weights are noted for later.

use super::lines::{File, KeyValue, OperatorLine, Prefix, shorten};
use super::options::ReadOptions;
use super::report::Report;
use super::structure;
use super::weights::Declaration;
use crate::model::{ElementType, Model, Operand, OperandId, Operator, OperatorId, Parameter};
use crate::value::{self, ValueError};
use indexmap::{IndexMap, IndexSet};
use mlc_ir::{Code, Diagnostic, Location};
use std::collections::{BTreeMap, VecDeque};

/// Stands for an operand that isn't defined; a model that holds one is never returned.
const UNDEFINED: OperandId = OperandId(u32::MAX);

/// A token's place, small enough to keep for every operand.
#[derive(Clone, Copy)]
struct Place {
    operator: OperatorId,
    column: u32,
}

struct Builder<'a, 'r> {
    file: &'a File<'a>,
    report: &'r mut Report,
    model: Model,
    declarations: Vec<Declaration>,
    /// The operands defined so far.
    operands: IndexMap<&'a str, OperandId>,
    /// Where each operand is defined, and where it got its shape.
    definitions: Vec<Place>,
    shapes: Vec<Option<Place>>,
    /// The line that defines each operand, for those used too early. Built when the first one is.
    later: Option<IndexMap<&'a str, u32>>,
    undefined: IndexSet<&'a str>,
    operator_names: IndexMap<&'a str, (Place, bool)>,
}

/// Builds the graph. The weights come back as declarations, without their bytes.
pub(super) fn build(file: &File<'_>, options: &ReadOptions, report: &mut Report) -> (Model, Vec<Declaration>) {
    let mut builder = Builder {
        file,
        report,
        model: Model::default(),
        declarations: Vec::new(),
        operands: IndexMap::new(),
        definitions: Vec::new(),
        shapes: Vec::new(),
        later: None,
        undefined: IndexSet::new(),
        operator_names: IndexMap::new(),
    };
    for line in &file.operators {
        builder.operator(line);
    }
    builder.check_operand_count(options);
    (builder.model, builder.declarations)
}

impl<'a> Builder<'a, '_> {
    fn location(&self, place: Place) -> Location {
        self.file.operators[place.operator.index()].at(place.column)
    }

    fn operator(&mut self, line: &'a OperatorLine<'a>) {
        let id = OperatorId(self.model.operators.len() as u32);
        let inputs: Vec<_> = line.inputs.iter().map(|token| self.input(line, id, token.text, token.column)).collect();
        let outputs: Vec<_> =
            line.outputs.iter().map(|token| self.output(line, id, token.text, token.column)).collect();
        let mut operator = Operator {
            kind: line.kind.text.to_owned(),
            name: line.name.text.to_owned(),
            inputs,
            outputs,
            input_names: Vec::new(),
            parameters: BTreeMap::new(),
            attributes: BTreeMap::new(),
            line: line.number,
        };
        self.operator_name(line, id);
        let mut attribute_keys = IndexSet::new();
        for key_value in &line.key_values {
            if key_value.key.is_empty() {
                let message = "expected a key before `=`";
                self.report.push(Diagnostic::error(Code::Syntax, line.at(key_value.column), message));
                continue;
            }
            match key_value.prefix {
                Prefix::Parameter => self.parameter(line, key_value, &mut operator),
                Prefix::Attribute if attribute_keys.insert(key_value.key) => self.attribute(line, key_value, id),
                Prefix::Attribute => self.duplicate_key(line, key_value),
                Prefix::Label | Prefix::Shape => {}
            }
        }
        self.labels(line, &mut operator);
        self.operand_types(line, id, &operator);
        structure::check_operator(line, &operator, attribute_keys.len(), self.report);
        self.model.operators.push(operator);
    }

    fn input(&mut self, line: &OperatorLine<'a>, consumer: OperatorId, name: &'a str, column: u32) -> OperandId {
        let Some(&id) = self.operands.get(name) else {
            self.undefined_operand(line, name, column);
            return UNDEFINED;
        };
        // Operators come in order, so a repeated consumer is always the last one.
        let consumers = &mut self.model.operands[id.index()].consumers;
        if consumers.last() != Some(&consumer) {
            consumers.push(consumer);
        }
        id
    }

    fn undefined_operand(&mut self, line: &OperatorLine<'a>, name: &'a str, column: u32) {
        if !self.undefined.insert(name) {
            return;
        }
        let file = self.file;
        let later = self.later.get_or_insert_with(|| {
            let mut lines = IndexMap::new();
            for line in &file.operators {
                for output in &line.outputs {
                    lines.entry(output.text).or_insert(line.number);
                }
            }
            lines
        });
        let error = |message| Diagnostic::error(Code::UndefinedValue, line.at(column), message);
        let diagnostic = match later.get(name) {
            Some(&definition) if definition == line.number => {
                error(format!("the operator uses its own output `{name}`"))
            }
            Some(&definition) => error(format!("operand `{name}` is used before it is defined"))
                .with_related(Location::line(definition), "defined here")
                .with_help("an operator must come after those that make its inputs, so there can't be cycles"),
            None => error(format!("operand `{name}` is never defined"))
                .with_help("every operand must be an output of an earlier line"),
        };
        self.report.push(diagnostic);
    }

    fn output(&mut self, line: &OperatorLine<'a>, producer: OperatorId, name: &'a str, column: u32) -> OperandId {
        if let Some(&first) = self.operands.get(name) {
            let message = format!("operand `{name}` is defined twice");
            let diagnostic = Diagnostic::error(Code::DuplicateDefinition, line.at(column), message);
            let place = self.location(self.definitions[first.index()]);
            self.report.push(diagnostic.with_related(place, "first defined here"));
            return first;
        }
        let id = OperandId(self.model.operands.len() as u32);
        self.operands.insert(name, id);
        self.definitions.push(Place { operator: producer, column });
        self.shapes.push(None);
        self.model.operands.push(Operand { name: name.to_owned(), ty: None, producer, consumers: Vec::new() });
        id
    }

    /// Weights are found by their operator's name, so it must be unique where there are any.
    fn operator_name(&mut self, line: &OperatorLine<'a>, id: OperatorId) {
        let has_attributes = line.key_values.iter().any(|key_value| key_value.prefix == Prefix::Attribute);
        let Some((first, first_has_attributes)) = self.operator_names.get_mut(line.name.text) else {
            let place = Place { operator: id, column: line.name.column };
            self.operator_names.insert(line.name.text, (place, has_attributes));
            return;
        };
        let either_has_attributes = has_attributes || *first_has_attributes;
        *first_has_attributes = either_has_attributes;
        let first = *first;
        let place = line.at(line.name.column);
        let message = format!("another operator is called `{}` too", shorten(line.name.text));
        let diagnostic = if either_has_attributes {
            Diagnostic::error(Code::DuplicateDefinition, place, message)
                .with_help("operators with weights need names of their own, because the weights are found by them")
        } else {
            Diagnostic::warning(Code::DuplicateDefinition, place, message)
        };
        self.report.push(diagnostic.with_related(self.location(first), "the other one"));
    }

    fn parameter(&mut self, line: &OperatorLine<'_>, key_value: &KeyValue<'_>, operator: &mut Operator) {
        let parameter = if value::is_raw(line.kind.text, key_value.key) {
            Parameter::String(key_value.value.to_owned())
        } else {
            match value::parse_parameter(key_value.value) {
                Ok(parameter) => parameter,
                Err(error) => {
                    let message = format!("parameter `{}`: {error}", key_value.key);
                    self.report.push(Diagnostic::error(code(&error), line.at(key_value.value_column), message));
                    return;
                }
            }
        };
        if operator.parameters.insert(key_value.key.to_owned(), parameter).is_some() {
            self.duplicate_key(line, key_value);
        }
    }

    fn duplicate_key(&mut self, line: &OperatorLine<'_>, key_value: &KeyValue<'_>) {
        let message = format!("`{}` is given twice", key_value.key);
        self.report.push(Diagnostic::error(Code::DuplicateDefinition, line.at(key_value.column), message));
    }

    fn attribute(&mut self, line: &OperatorLine<'_>, key_value: &KeyValue<'_>, operator: OperatorId) {
        let ty = match self.attribute_type(line, key_value) {
            Ok(ty) => Some(ty),
            Err(diagnostic) => {
                self.report.push(*diagnostic);
                None
            }
        };
        let key = key_value.key.to_owned();
        self.declarations.push(Declaration { operator, key, ty, column: key_value.column });
    }

    fn attribute_type(
        &self,
        line: &OperatorLine<'_>,
        key_value: &KeyValue<'_>,
    ) -> Result<(ElementType, Vec<u32>), Box<Diagnostic>> {
        let fail = |error: ValueError| {
            let message = format!("weight `{}`: {error}", key_value.key);
            Box::new(Diagnostic::error(code(&error), line.at(key_value.value_column), message))
        };
        let (shape, suffix) = value::split_type(key_value.value).map_err(fail)?;
        let extents = value::parse_extents(shape).map_err(fail)?;
        let element_type = ElementType::from_suffix(suffix).ok_or_else(|| {
            let message = format!("weight `{}`: unknown element type `{suffix}`", key_value.key);
            let known = ElementType::ALL.map(ElementType::suffix).join(", ");
            let diagnostic = Diagnostic::error(Code::Syntax, line.at(key_value.value_column), message);
            Box::new(diagnostic.with_help(format!("the element types are {known}")))
        })?;
        Ok((element_type, extents))
    }

    /// Every label goes to the first input of that name that has none yet, so that one operand can have two labels.
    fn labels(&mut self, line: &OperatorLine<'a>, operator: &mut Operator) {
        let labels = || line.key_values.iter().filter(|key_value| key_value.prefix == Prefix::Label);
        if labels().next().is_none() {
            return;
        }
        let mut unlabelled: IndexMap<&str, VecDeque<usize>> = IndexMap::new();
        for (position, token) in line.inputs.iter().enumerate() {
            unlabelled.entry(token.text).or_default().push_back(position);
        }
        operator.input_names = vec![None; operator.inputs.len()];
        let mut keywords = IndexSet::new();
        for key_value in labels().filter(|key_value| !key_value.key.is_empty()) {
            if !keywords.insert(key_value.key) {
                self.duplicate_key(line, key_value);
                continue;
            }
            let location = line.at(key_value.value_column);
            let KeyValue { key, value, .. } = key_value;
            let diagnostic = match unlabelled.get_mut(value) {
                Some(positions) => match positions.pop_front() {
                    Some(position) => {
                        operator.input_names[position] = Some((*key).to_owned());
                        continue;
                    }
                    None => {
                        let message = format!("`${key}` names operand `{value}`, whose uses have other names already");
                        Diagnostic::error(Code::DuplicateDefinition, location, message)
                    }
                },
                None => {
                    let message = format!("`${key}` names operand `{value}`, which isn't an input of this operator");
                    Diagnostic::error(Code::UndefinedValue, location, message)
                }
            };
            self.report.push(diagnostic);
        }
    }

    fn operand_types(&mut self, line: &OperatorLine<'a>, id: OperatorId, operator: &Operator) {
        let shapes = || line.key_values.iter().filter(|key_value| key_value.prefix == Prefix::Shape);
        if shapes().next().is_none() {
            return;
        }
        let names = line.inputs.iter().chain(&line.outputs).map(|token| token.text);
        let operands: IndexMap<&str, OperandId> =
            names.zip(operator.inputs.iter().chain(&operator.outputs).copied()).collect();
        for key_value in shapes().filter(|key_value| !key_value.key.is_empty()) {
            match operands.get(key_value.key) {
                Some(&operand) => self.operand_type(line, id, key_value, operand),
                None => {
                    let message = format!("`#{}` isn't an input or output of this operator", key_value.key);
                    self.report.push(Diagnostic::warning(Code::UndefinedValue, line.at(key_value.column), message));
                }
            }
        }
    }

    fn operand_type(&mut self, line: &OperatorLine<'_>, at: OperatorId, key_value: &KeyValue<'_>, id: OperandId) {
        let (ty, unknown) = match value::parse_operand_type(key_value.value) {
            Ok(parsed) => parsed,
            Err(error) => {
                let message = format!("shape of operand `{}`: {error}", key_value.key);
                self.report.push(Diagnostic::error(code(&error), line.at(key_value.value_column), message));
                return;
            }
        };
        if let Some(suffix) = unknown {
            let message = format!("operand `{}` has the unknown element type `{suffix}`", key_value.key);
            self.report.push(Diagnostic::warning(Code::Syntax, line.at(key_value.value_column), message));
        }
        let Some(operand) = self.model.operands.get_mut(id.index()) else { return };
        match (&operand.ty, self.shapes[id.index()]) {
            (Some(known), Some(first)) if *known != ty => {
                let message = format!("operand `{}` is {ty} here and {known} elsewhere", operand.name);
                let diagnostic = Diagnostic::error(Code::ShapeMismatch, line.at(key_value.value_column), message);
                self.report.push(diagnostic.with_related(self.location(first), "the other shape"));
            }
            (Some(_), _) => {}
            (None, _) => {
                operand.ty = Some(ty);
                self.shapes[id.index()] = Some(Place { operator: at, column: key_value.value_column });
            }
        }
    }

    fn check_operand_count(&mut self, options: &ReadOptions) {
        let found = self.file.operators.iter().map(|line| line.outputs.len() as u64).sum::<u64>();
        let declared = self.file.operand_count;
        if declared == found {
            return;
        }
        let message = format!("{declared} operands are declared, the operators have {found} outputs");
        let place = self.file.operand_count_place.clone();
        self.report.push(if options.tolerate_operand_count {
            Diagnostic::warning(Code::CountMismatch, place, message)
        } else {
            Diagnostic::error(Code::CountMismatch, place, message)
        });
    }
}

fn code(error: &ValueError) -> Code {
    match error {
        ValueError::OutOfRange(_) | ValueError::DimensionOutOfRange(_) => Code::NumberOutOfRange,
        ValueError::ListNotClosed | ValueError::ShapeNotClosed | ValueError::Dimension(_) => Code::Syntax,
    }
}
