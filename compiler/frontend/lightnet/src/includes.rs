//! [`Includes`]: how a text gets the files that it includes, without opening one.

/// Hands over files that a text includes.
pub trait Includes {
    /// The file of a name, which is relative to the folder of the file that includes it: `from`, as it was called when it was
    /// included itself, or the model.
    ///
    /// # Errors
    /// Why it can't be had.
    fn include(&self, name: &str, from: Option<&str>) -> Result<Included, String>;
}

/// A file that a text includes.
#[derive(Debug, Clone)]
pub struct Included {
    /// What messages call it.
    pub name: String,
    /// What it holds.
    pub text: String,
}

/// For texts by themselves: there are no other files.
#[derive(Debug, Clone, Copy)]
pub struct NoIncludes;

impl Includes for NoIncludes {
    fn include(&self, _name: &str, _from: Option<&str>) -> Result<Included, String> {
        Err("there are no other files here".into())
    }
}
