//! Names in the public header that must not meet: macros of the inputs' and outputs' sizes.

use crate::module::{Module, Port};
use std::collections::BTreeSet;

/// The size macros of a module's inputs and outputs, all different.
pub(super) struct Names {
    /// One macro for each input.
    pub inputs: Vec<String>,
    /// One macro for each output.
    pub outputs: Vec<String>,
}

impl Names {
    /// `TVMGEN_<MODEL>_<FIELD>_SIZE`, as microTVM names them; where two fields differ in case only, or an output has an
    /// input's name, the later one carries a number.
    pub(super) fn new(module: &Module) -> Names {
        let prefix = macro_prefix(module);
        let own = if module.execution.feed.is_some() { &["FEED_ROW", "FEED_SAVED"][..] } else { &[] };
        let own = ["WORKSPACE", "CONSTANTS", "STATE"].iter().chain(own);
        let mut taken: BTreeSet<String> = own.map(|name| format!("{prefix}_{name}_SIZE")).collect();
        let mut unique = |port: &Port| {
            let field = port.field.to_ascii_uppercase();
            let mut name = format!("{prefix}_{field}_SIZE");
            let mut number = 1;
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{prefix}_{field}_{number}_SIZE");
            }
            name
        };
        let inputs = module.inputs.iter().map(&mut unique).collect();
        let outputs = module.outputs.iter().map(&mut unique).collect();
        Names { inputs, outputs }
    }
}

/// `TVMGEN_<MODEL>`.
pub(super) fn macro_prefix(module: &Module) -> String {
    format!("TVMGEN_{}", module.model_name.to_ascii_uppercase())
}
