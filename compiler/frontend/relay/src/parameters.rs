//! Constants that come in a file of their own.

use crate::types;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Attribute, Code, Diagnostic, Location};
use mlc_runtime::params;

/// Constants by the names of the variables that they are for.
pub type Parameters = IndexMap<String, Attribute>;

/// Reads a file of parameters (`.params`); the constants are slices of it.
///
/// # Errors
/// When the file is damaged, or holds a data type that isn't supported.
pub fn read_parameters(bytes: &Bytes) -> Result<Parameters, Diagnostic> {
    let at = |offset: usize, message: String| {
        Diagnostic::error(Code::ArchiveDamaged, Location::byte_offset(offset as u64), message)
    };
    let list = params::read_list(bytes).map_err(|error| at(error.offset, error.message))?;
    let mut parameters = Parameters::new();
    for named in &list {
        let location = Location { node: Some(named.name.to_string()), ..Location::default() };
        let constant = types::constant(&named.array, bytes)
            .map_err(|fault| Diagnostic::error(fault.code, location.clone(), fault.message))?;
        if parameters.insert(named.name.to_string(), constant).is_some() {
            let message = format!("the parameter `{}` is there twice", named.name);
            return Err(Diagnostic::error(Code::DuplicateDefinition, location, message));
        }
    }
    Ok(parameters)
}
