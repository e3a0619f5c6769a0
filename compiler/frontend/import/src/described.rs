//! Operators that the user describes, where the importer meets them.

use crate::call::{Call, Parts, Site};
use crate::custom::{Refusal, Typed, arguments, parameters, result_names, result_order};
use crate::format::Format;
use crate::importer::Importer;
use crate::item::Item;
use mlc_descriptions::OperatorInstance;

impl<'m, F: Format> Importer<'m, F> {
    /// What a described operator computes.
    pub(crate) fn apply_described(
        &mut self,
        site: &Site<'m, F>,
        inputs: Vec<F::Item>,
    ) -> Result<Vec<F::Item>, Refusal> {
        let operators = self.custom.operators.clone();
        let found = operators.as_deref().and_then(|all| Some((all, all.find(site.domain, site.kind)?)));
        let Some((operators, described)) = found else { return Ok(Vec::new()) };
        let attributes = F::attributes(self.scope(), site.operator)?;
        self.builder.begin(&site.name);
        let Importer { model, builder, notes, dimensions, bodies, custom, .. } = self;
        let notes = &mut notes[bodies.depth()];
        let mut call = Call::new(Parts { site, model: *model, builder, notes, dimensions, inputs, attributes });
        let order = result_order(&call, described)?;
        let arguments = arguments(&mut call, described)?;
        let instance = OperatorInstance {
            name: site.name.clone(),
            inputs: arguments.iter().map(|argument| argument.ty.clone()).collect(),
            outputs: result_names(&call, &order),
            parameters: parameters(&mut call, described, operators)?,
        };
        let typed = Typed::by(&operators.library, described, instance)?;
        let results = custom.build(call.builder, &arguments, &typed)?;
        let results = order.iter().map(|&output| F::Item::of(results[output])).collect();
        let results = F::arrange(call.model, site.operator, results);
        for (code, message) in call.into_warnings() {
            self.warn(site, code, &message);
        }
        Ok(results)
    }
}
