//! What a user says of operators that mlc doesn't have.

use super::console::Console;
use super::words::mismatch;
use crate::descriptions::{self, Described};
use crate::pipeline::Failure;
use clap::Args;
use indexmap::IndexMap;
use mlc_descriptions::Library;
use mlc_import::{CustomOperators, Renamed};
use mlc_ir::Diagnostic;
use std::path::PathBuf;
use std::sync::Arc;

/// Operators that mlc doesn't have.
#[derive(Debug, Clone, Default, Args)]
pub struct OperatorOptions {
    /// Descriptions of operators that mlc doesn't have: a file, or a folder of .json and .op files; may be repeated
    #[arg(long = "op-descriptions", value_name = "DESC")]
    pub descriptions: Vec<PathBuf>,
    /// The description of an operator that the model has by another name, and its parameters by the names of attributes, such as
    /// 'acme::Clip=leaky_clip,alpha=slope'; may be repeated
    #[arg(long = "op-map", value_name = "NAME=OPTYPE[,ATTRIBUTE=PARAM...]", value_parser = renamed, requires = "descriptions")]
    pub map: Vec<(String, Renamed)>,
    /// Take a description in the place of an operator of the same name that mlc has
    #[arg(long = "op-override", requires = "descriptions")]
    pub replace_own: bool,
    /// Leave out attributes that a description has no parameter for
    #[arg(long = "op-ignore-attributes", requires = "descriptions")]
    pub ignore_attributes: bool,
    /// What the files say, once they are read.
    #[arg(skip)]
    pub described: Option<Described>,
}

impl OperatorOptions {
    /// Reads the descriptions.
    ///
    /// # Errors
    /// All that is wrong with them, or with the names of `--op-map`.
    pub(super) fn read(&mut self, console: &Console) -> Result<(), Failure> {
        if self.descriptions.is_empty() {
            return Ok(());
        }
        let (library, sources) = descriptions::read(&self.descriptions)?;
        console.report(&library.warnings, &sources);
        self.map.iter().try_for_each(|(_, renamed)| check(&library, renamed))?;
        let operators = CustomOperators {
            renamed: self.map.iter().cloned().collect(),
            replace_own: self.replace_own,
            ignore_attributes: self.ignore_attributes,
            ..CustomOperators::new(library)
        };
        self.described = Some(Described { operators: Arc::new(operators), sources });
        Ok(())
    }
}

/// Whether an operator and its parameters are described.
fn check(library: &Library, Renamed { optype, parameters }: &Renamed) -> Result<(), Diagnostic> {
    let found = library.get(optype).or_else(|| library.get(&format!("{optype}_cpu")));
    let description = found.ok_or_else(|| {
        let names: Vec<&str> = library.iter().map(|description| description.optype.as_str()).collect();
        mismatch(format!("--op-map names the operator '{optype}', which isn't described"))
            .with_help(format!("described are {}", names.join(", ")))
    })?;
    let unknown = parameters.values().find(|name| !description.parameters.iter().any(|known| known.name == **name));
    unknown.map_or(Ok(()), |name| {
        Err(mismatch(format!("--op-map names the parameter '{name}', which '{}' doesn't have", description.optype)))
    })
}

/// `NAME=OPTYPE`, and `,ATTRIBUTE=PARAM` for each attribute of another name.
fn renamed(text: &str) -> Result<(String, Renamed), String> {
    let mut pairs = text.split(',').map(|pair| match pair.split_once('=') {
        Some((name, meaning)) if !name.is_empty() && !meaning.is_empty() => Ok((name.to_owned(), meaning.to_owned())),
        _ => Err("it must have the form NAME=OPTYPE, or NAME=OPTYPE,ATTRIBUTE=PARAM".to_owned()),
    });
    let (name, optype) = pairs.next().unwrap_or_else(|| Err("it is empty".into()))?;
    let parameters = pairs.collect::<Result<IndexMap<_, _>, _>>()?;
    Ok((name, Renamed { optype, parameters }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_mapped_with_their_attributes() {
        let (name, found) = renamed("acme::Clip=leaky_clip,alpha=slope,max=hi").unwrap();
        assert_eq!((name.as_str(), found.optype.as_str()), ("acme::Clip", "leaky_clip"));
        let pairs: Vec<(&str, &str)> =
            found.parameters.iter().map(|(name, parameter)| (&**name, &**parameter)).collect();
        assert_eq!(pairs, [("alpha", "slope"), ("max", "hi")]);
        for wrong in ["", "Clip", "=clip", "Clip=", "Clip=clip,alpha", "Clip=clip,"] {
            assert!(renamed(wrong).is_err(), "{wrong}");
        }
    }
}
