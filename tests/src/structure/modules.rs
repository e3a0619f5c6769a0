//! The modules of all crates as a tree, and which file a path leads to.

use super::outline::{Body, Child, Outline, Use, outline};
use std::collections::{BTreeMap, BTreeSet};

/// Every module of every crate.
#[derive(Default)]
pub(super) struct Modules {
    modules: Vec<Module>,
    /// Declared modules that no file has been found for.
    pub missing: Vec<String>,
}

/// A module and where it is.
struct Module {
    file: String,
    parent: Option<usize>,
    /// Of its crate.
    root: usize,
    children: BTreeMap<String, usize>,
    /// Where its children's files are.
    folder: String,
    outline: Outline,
    /// Whether it is a test's, which may import anything.
    test: bool,
    /// Names that a crate's root has besides its own: exported macros, with their files.
    macros: BTreeMap<String, String>,
}

/// What a path leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Module(usize),
    /// Something that this file defines.
    Item(String),
}

/// What names in modules have been found to be, while a path is followed: what is known so far of one under way.
type Known = BTreeMap<(usize, String), BTreeSet<Found>>;

/// An import: by which file, of which file, and which name.
pub type Import = (String, String, String);

impl Modules {
    /// Adds the crate that a file is the root of.
    pub fn add_crate(&mut self, root: &str, sources: &BTreeMap<String, String>) -> Result<(), String> {
        let text = sources.get(root).map(String::as_str).unwrap_or_default();
        let outline = outline(text).map_err(|error| format!("{root}: {error}"))?;
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let position = self.modules.len();
        self.add(root.to_owned(), &folder, None, position, outline, false, sources)?;
        self.add_undeclared(position, sources)
    }

    /// Adds the files that no declaration names but that lie where a module's children do: macros declare them, and hand on
    /// all of their names.
    fn add_undeclared(&mut self, first: usize, sources: &BTreeMap<String, String>) -> Result<(), String> {
        let mut at = first;
        while at < self.modules.len() {
            let module = &self.modules[at];
            let (file, folder) = (module.file.clone(), module.folder.clone());
            let files = if module.outline.declares_by_macro { Some(sources) } else { None };
            let names = files.into_iter().flatten().filter_map(|(path, _)| {
                let name = path.strip_prefix(&folder)?.strip_prefix('/')?.strip_suffix(".rs")?;
                let name = name.strip_suffix("/mod").unwrap_or(name);
                (!name.contains('/') && !self.files().contains(path.as_str())).then(|| name.to_owned())
            });
            for name in names.collect::<Vec<_>>() {
                self.modules[at].outline.imports.push(Use { path: vec![name.clone()], name: None, reexport: true });
                self.add_child(&file, &folder, at, Child { name, test: false, body: Body::File(None) }, sources)?;
            }
            at += 1;
        }
        Ok(())
    }

    /// Every file that belongs to a crate.
    pub fn files(&self) -> BTreeSet<&str> {
        self.modules.iter().map(|module| module.file.as_str()).collect()
    }

    /// Adds a module and those that it declares, whose files are in `folder`.
    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        file: String,
        folder: &str,
        parent: Option<usize>,
        root: usize,
        mut outline: Outline,
        test: bool,
        sources: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let position = self.modules.len();
        let declared = std::mem::take(&mut outline.children);
        let exported = outline.exported_macros.clone();
        let macros = BTreeMap::new();
        let children = BTreeMap::new();
        let inside = folder.to_owned();
        self.modules.push(Module { file: file.clone(), parent, root, children, folder: inside, outline, test, macros });
        self.modules[root].macros.extend(exported.into_iter().map(|name| (name, file.clone())));
        for child in declared {
            self.add_child(&file, folder, position, child, sources)?;
        }
        Ok(())
    }

    fn add_child(
        &mut self,
        file: &str,
        folder: &str,
        parent: usize,
        child: Child,
        sources: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let test = child.test || self.modules[parent].test;
        let root = self.modules[parent].root;
        let position = self.modules.len();
        self.modules[parent].children.insert(child.name.clone(), position);
        let inner = format!("{folder}/{}", child.name);
        match child.body {
            Body::Inline(outline) => self.add(file.to_owned(), &inner, Some(parent), root, *outline, test, sources),
            Body::File(named) => {
                let beside = file.rsplit_once('/').map_or("", |(folder, _)| folder);
                let candidates = match named {
                    Some(name) => vec![joined(beside, &name)],
                    None => vec![format!("{inner}.rs"), format!("{inner}/mod.rs")],
                };
                let Some(path) = candidates.iter().find(|&path| sources.contains_key(path)) else {
                    self.missing.push(format!("{file} declares the module {}, which has no file", child.name));
                    self.modules[parent].children.remove(&child.name);
                    return Ok(());
                };
                let outline = outline(&sources[path]).map_err(|error| format!("{path}: {error}"))?;
                let folder = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
                let test = test || path.ends_with("/tests.rs") || path.ends_with("_tests.rs");
                self.add(path.clone(), folder, Some(parent), root, outline, test, sources)
            }
        }
    }

    /// Every import of one file by another one, tests' apart.
    pub fn imports(&self) -> BTreeSet<Import> {
        let mut edges = BTreeSet::new();
        for (position, module) in self.modules.iter().enumerate().filter(|(_, module)| !module.test) {
            let mut note = |found: &BTreeSet<Found>, name: &str| {
                for found in found {
                    if let Found::Item(file) = found
                        && *file != module.file
                    {
                        edges.insert((module.file.clone(), file.clone(), name.to_owned()));
                    }
                }
            };
            for import in &module.outline.imports {
                let found = self.resolve(position, &import.path, &mut Known::new());
                // What is only handed on isn't used here; a name of both a module and an item is what the code says.
                let clear = !found.iter().any(|found| matches!(found, Found::Module(_)));
                if clear && !import.reexport {
                    note(&found, import.path.last().map_or("", String::as_str));
                }
            }
            for path in &module.outline.paths {
                let found = self.resolve(position, path, &mut Known::new());
                note(&found, path.last().map_or("", String::as_str));
            }
        }
        edges
    }

    /// What a path in the code of a module leads to; nothing for one that leaves the crate.
    fn resolve(&self, module: usize, path: &[String], known: &mut Known) -> BTreeSet<Found> {
        let mut here = BTreeSet::from([Found::Module(module)]);
        for (position, segment) in path.iter().enumerate() {
            let modules: Vec<usize> = here
                .iter()
                .filter_map(|found| match found {
                    Found::Module(module) => Some(*module),
                    Found::Item(_) => None,
                })
                .collect();
            // What follows an item is a part of it.
            if modules.is_empty() {
                return here;
            }
            here = modules.iter().flat_map(|&module| self.step(module, segment, position, known)).collect();
        }
        here
    }

    /// What the segment of a path at a position leads to from a module.
    fn step(&self, at: usize, segment: &str, position: usize, known: &mut Known) -> BTreeSet<Found> {
        let module = &self.modules[at];
        match segment {
            "crate" => BTreeSet::from([Found::Module(module.root)]),
            "self" if position == 0 => BTreeSet::from([Found::Module(at)]),
            "super" => module.parent.map(Found::Module).into_iter().collect(),
            name => {
                let found = self.lookup(at, name, known);
                // What macros define can't be read, but it is in the file that was named.
                if found.is_empty() && position > 0 {
                    return BTreeSet::from([Found::Item(module.file.clone())]);
                }
                found
            }
        }
    }

    /// What a name is in a module. A module and an item can have the same one.
    fn lookup(&self, at: usize, name: &str, known: &mut Known) -> BTreeSet<Found> {
        let key = (at, name.to_owned());
        if let Some(found) = known.get(&key) {
            return found.clone();
        }
        let module = &self.modules[at];
        let item = module.outline.items.contains(name).then_some(&module.file).or_else(|| module.macros.get(name));
        let mut found: BTreeSet<Found> = item.cloned().map(Found::Item).into_iter().collect();
        found.extend(module.children.get(name).map(|&child| Found::Module(child)));
        known.insert(key.clone(), found.clone());
        let named = |import: &&Use| import.name.as_deref() == Some(name);
        for import in module.outline.imports.iter().filter(named) {
            found.extend(self.resolve(at, &import.path, known));
        }
        if found.is_empty() {
            for import in module.outline.imports.iter().filter(|import| import.name.is_none()) {
                for place in self.resolve(at, &import.path, known) {
                    if let Found::Module(place) = place {
                        found.extend(self.lookup(place, name, known));
                    }
                }
            }
        }
        known.insert(key, found.clone());
        found
    }
}

/// A path from a folder on, without `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
