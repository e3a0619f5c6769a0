//! The model's own functions: a call becomes the operators of the body.

use super::scope::{Attributes, Scope};
use super::{Importer, Item, Site};
use crate::proto::FunctionProto;
use crate::read;
use mlc_import::Fault;
use mlc_ir::Code;
use std::rc::Rc;

/// Deepest nesting of calls and subgraphs; a function that calls itself ends here.
const DEEPEST_NESTING: usize = 100;

impl<'a> Importer<'a> {
    /// Imports a function's body in place of a call.
    pub(super) fn call_function(
        &mut self,
        site: &Site<'a>,
        function: &'a FunctionProto,
        mut inputs: Vec<Item>,
    ) -> Result<Vec<Item>, Fault> {
        if self.scopes.len() > DEEPEST_NESTING {
            let message = format!("functions call each other more than {DEEPEST_NESTING} levels deep");
            return Err(Fault::new(Code::NumberOutOfRange, message));
        }
        if inputs.len() > function.input.len() {
            let message = format!("the function takes {} operands, {} are given", function.input.len(), inputs.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        inputs.resize(function.input.len(), Item::Absent);
        let mut attributes: Attributes<'a> =
            function.attribute_proto.iter().map(|attribute| (attribute.name.as_str(), attribute)).collect();
        attributes.extend(self.attributes(site.node)?);
        let opsets = read::opsets(&function.opset_import).map_err(|errors| {
            let message = errors.first().map_or(String::new(), |error| error.message.clone());
            Fault::variant(format!("function `{}`: {message}", function.name))
        })?;
        // Old writers leave the imports of functions out; the model's count then.
        let opsets = if opsets.is_empty() { Rc::clone(&self.scope().opsets) } else { Rc::new(opsets) };
        let mut scope = Scope::new(opsets, format!("{}.", site.name));
        scope.attributes = Some(attributes);
        scope.items.extend(function.input.iter().map(String::as_str).zip(inputs));
        self.scopes.push(scope);
        self.import_nodes(&function.node);
        let outputs = function.output.iter().map(|output| self.resolve(output)).collect();
        self.scopes.pop();
        outputs
    }
}
