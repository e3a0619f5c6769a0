//! A description to start from.

use crate::c::is_name;

/// The text of a new description, where OPTYPE stands for the operator's type.
const TEMPLATE: &str = include_str!("template.json");

/// A new description of an operator, with comments: `_cpu` is added to a name that doesn't end in it.
///
/// # Errors
/// When the name isn't an identifier of C.
pub fn template(name: &str) -> Result<String, String> {
    let optype = if name.ends_with("_cpu") && name.len() > 4 { name.to_owned() } else { format!("{name}_cpu") };
    if name.is_empty() || !is_name(&optype) {
        return Err(format!("'{name}' isn't an identifier of C"));
    }
    Ok(TEMPLATE.replace("OPTYPE", &optype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Library;

    #[test]
    fn a_new_description_is_right() {
        for (name, optype) in [("clip", "clip_cpu"), ("clip_cpu", "clip_cpu"), ("_cpu", "_cpu_cpu")] {
            let text = template(name).unwrap();
            let library = Library::read(&[("new", text.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
            assert!(library.warnings.is_empty(), "{:?}", library.warnings);
            assert!(library.get(optype).is_some());
        }
        assert!(template("a-b").is_err() && template("").is_err() && template("1x").is_err());
    }
}
