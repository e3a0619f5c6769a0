//! What README and documentation promise: their commands run as they stand in the text, their links lead somewhere.
//!
//! A page's commands are its blocks `sh`, run by bash one after the other in a folder of the page's own, and its blocks `console`,
//! commands behind `$ ` and what they print. Comments of the page, which readers don't see, say what else there is to know:
//!
//! | comment | meaning |
//! |---|---|
//! | `run` and lines of commands | these are run too: they put files where the text takes them for granted, or check what it says |
//! | `not run: reason` | the next block isn't run |
//! | `needs: tools` | the next block, or commands, are left out where one of the programs is missing |
//! | `in the repository` | the next block is run there, not in the page's folder |
//! | `commands in the text` | the commands of mlc within the next paragraph are run, but for those with words like `FILE` |
//! | `as: file` | the next block becomes this file in the page's folder |
//! | `printed` | the lines of the next block are among what the commands before it have printed; `printed, numbers apart`: but for their numbers, also of a block `console` |
//!
//! Commands find the repository's models in `$DATA`, and the repository in `$REPOSITORY`.

mod commands;
mod links;
mod marks;
mod options;
mod page;

pub use commands::{Outcome, run};
pub use links::{dead_links, missing_chapters};
pub use marks::{faults as faults_of_marks, missing_from_ci};
pub use options::{Options, unknown_options};
pub use page::Page;

use crate::paths;
use std::io;
use std::path::Path;

/// The pages: the README and all of the documentation, sorted by their paths.
///
/// # Errors
/// When one can't be read.
pub fn pages() -> io::Result<Vec<Page>> {
    let root = paths::repository();
    let mut pages = vec![Page::read(&root, "README.md")?];
    add_folder(&root, "docs", &mut pages)?;
    pages.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(pages)
}

fn add_folder(root: &Path, folder: &str, pages: &mut Vec<Page>) -> io::Result<()> {
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add_folder(root, &name, pages)?;
        } else if name.ends_with(".md") {
            pages.push(Page::read(root, &name)?);
        }
    }
    Ok(())
}
