//! The shape of the sources: no circle of imports between the files of a crate, and no file that is too long to be read.
//!
//! A file imports the one that defines what it names, whether in a `use` or in the code, and whether by the defining module
//! or by one that hands the name on. So a folder's `mod.rs` that declares and re-exports its children imports none of them,
//! but one that uses them does. Tests are compiled with what they test and may import anything.
//!
//! What is read is tokens: a local variable that has the name of something imported counts as that.

mod modules;
mod outline;
#[cfg(test)]
mod tests;

pub use modules::Import;

use modules::Modules;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Source files by their paths from the repository's root, with `/` on every system.
pub type Sources = BTreeMap<String, String>;

/// The greatest number of lines of a source file.
pub const MOST_LINES: usize = 500;

/// Folders of data, of generated files and of what isn't ours.
const NOT_SOURCES: [&str; 4] = ["target", "snapshots", "tests/data", "tests/filetests"];

/// Reads every Rust and C source under a folder.
///
/// # Errors
/// When a folder or a file can't be read.
pub fn read_sources(root: &Path) -> io::Result<Sources> {
    let mut sources = Sources::new();
    read_folder(root, "", &mut sources)?;
    Ok(sources)
}

fn read_folder(folder: &Path, name: &str, sources: &mut Sources) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let name = if name.is_empty() { file } else { format!("{name}/{file}") };
        if entry.file_type()?.is_dir() {
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if !hidden && !NOT_SOURCES.contains(&name.as_str()) {
                read_folder(&entry.path(), &name, sources)?;
            }
        } else if [".rs", ".c", ".h"].iter().any(|extension| name.ends_with(extension)) {
            sources.insert(name, std::fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

/// The files of more than [`MOST_LINES`] lines.
pub fn long_files(sources: &Sources) -> Vec<String> {
    let lengths = sources.iter().map(|(file, text)| (file, text.lines().count()));
    lengths.filter(|&(_, lines)| lines > MOST_LINES).map(|(file, lines)| format!("{file}: {lines} lines")).collect()
}

/// Every import of one file by another one of its crate, tests' apart.
///
/// # Errors
/// When a source isn't one of Rust's, or belongs to no crate, so that its imports would stay unseen.
pub fn imports(sources: &Sources) -> Result<BTreeSet<Import>, String> {
    let mut modules = Modules::default();
    for root in sources.keys().filter(|file| is_crate_root(file, sources)) {
        modules.add_crate(root, sources)?;
    }
    let known = modules.files();
    // What projects are made from isn't compiled where it is.
    let compiled = sources.keys().filter(|file| file.ends_with(".rs") && !file.contains("/templates/"));
    let unknown = compiled.filter(|file| !known.contains(file.as_str())).map(|file| format!("{file} is in no crate"));
    let faults: Vec<String> = modules.missing.iter().cloned().chain(unknown).collect();
    if faults.is_empty() { Ok(modules.imports()) } else { Err(faults.join("\n")) }
}

/// Whether a file is the first one of a crate, as Cargo finds them. Beside an `all.rs`, which makes one program of all tests, there are only its
/// modules.
fn is_crate_root(file: &str, sources: &Sources) -> bool {
    let Some((folder, name)) = file.rsplit_once('/') else { return false };
    let is_package =
        |folder: &str| ["lib", "main"].iter().any(|root| sources.contains_key(&format!("{folder}/src/{root}.rs")));
    let is_programs = |folder: &str| {
        ["tests", "benches", "examples", "src/bin"].iter().any(|programs| {
            folder.strip_suffix(programs).and_then(|rest| rest.strip_suffix('/')).is_some_and(is_package)
        })
    };
    let parent = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
    match name {
        "lib.rs" | "main.rs" if folder.ends_with("/src") => is_package(parent),
        "build.rs" if is_package(folder) => true,
        "main.rs" => is_programs(parent) || is_programs(folder),
        "all.rs" => is_programs(folder),
        _ => name.ends_with(".rs") && is_programs(folder) && !sources.contains_key(&format!("{folder}/all.rs")),
    }
}

/// One circle of each group of files that import each other, the shortest one through the group's first file.
pub fn circles(imports: &BTreeSet<Import>) -> Vec<String> {
    let files: BTreeSet<&str> = imports.iter().flat_map(|(from, to, _)| [from.as_str(), to.as_str()]).collect();
    let mut graph = DiGraph::<&str, ()>::new();
    let nodes: BTreeMap<&str, NodeIndex> = files.into_iter().map(|file| (file, graph.add_node(file))).collect();
    for (from, to, _) in imports {
        graph.update_edge(nodes[from.as_str()], nodes[to.as_str()], ());
    }
    let components = tarjan_scc(&graph).into_iter().filter(|component| component.len() > 1);
    let groups: BTreeSet<BTreeSet<&str>> =
        components.map(|component| component.into_iter().map(|node| graph[node]).collect()).collect();
    groups.iter().map(|group| spell(group, imports)).collect()
}

/// A circle as `file -> file: names`, a line each.
fn spell(group: &BTreeSet<&str>, imports: &BTreeSet<Import>) -> String {
    let is_inside = |(from, to, _): &&Import| group.contains(from.as_str()) && group.contains(to.as_str());
    let inside: Vec<&Import> = imports.iter().filter(is_inside).collect();
    let mut text = format!("{} files import each other:", group.len());
    for (from, to) in group.first().map_or_else(Vec::new, |first| shortest_circle(first, &inside)) {
        let names = inside.iter().filter(|edge| edge.0 == from && edge.1 == to).map(|edge| edge.2.as_str());
        let _ = write!(text, "\n  {from} -> {to}: {}", names.collect::<Vec<_>>().join(", "));
    }
    let all: Vec<&str> = group.iter().copied().collect();
    let _ = write!(text, "\n  all of them: {}", all.join(", "));
    text
}

/// The steps of a shortest way from a file back to itself.
fn shortest_circle<'a>(start: &'a str, imports: &[&'a Import]) -> Vec<(&'a str, &'a str)> {
    let mut reached_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(file) = queue.pop_front() {
        for (_, next, _) in imports.iter().filter(|(from, _, _)| from == file) {
            if !reached_from.contains_key(next.as_str()) {
                reached_from.insert(next, file);
                queue.push_back(next);
            }
        }
    }
    let mut steps = Vec::new();
    let mut at = start;
    while let Some(&before) = reached_from.get(at) {
        steps.push((before, at));
        at = before;
        if at == start {
            break;
        }
    }
    steps.reverse();
    steps
}
