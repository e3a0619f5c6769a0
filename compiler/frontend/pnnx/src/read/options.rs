//! What the user says about reading.

/// How to read a model.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Name of the `.param` file for messages.
    pub param_file: Option<String>,
    /// Name of the `.bin` file for messages.
    pub bin_file: Option<String>,
    /// Only warn if the file declares another number of operands than it has. Files edited by hand often do.
    pub tolerate_operand_count: bool,
}
