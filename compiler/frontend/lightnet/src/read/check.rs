//! What must hold of a model of either form, whatever its operators mean.

use crate::model::{Model, Operator};
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic};
use std::collections::BTreeMap;

/// Reports operators of one name.
pub(super) fn check(model: &Model, report: &mut Report) {
    let mut names: BTreeMap<&str, &Operator> = BTreeMap::new();
    for operator in &model.operators {
        let Some(first) = names.insert(&operator.name, operator) else { continue };
        let location = operator.place.location().at_operator(&*operator.kind, &*operator.name);
        let message = format!("two operators are called `{}`", operator.name);
        let finding = Diagnostic::error(Code::DuplicateDefinition, location, message);
        report.push(operator.place.explain(finding.with_related(first.place.location(), "the other one is here")));
    }
}
