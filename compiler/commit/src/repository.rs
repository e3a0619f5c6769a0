//! What a repository of Git's says about the commit that is checked out, read from its files.

use std::fs;
use std::path::{Path, PathBuf};

/// The commit that is checked out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its name in hexadecimal digits, where it could be read.
    pub(crate) commit: Option<String>,
    /// The files that change when another commit is checked out or made.
    pub(crate) files: Vec<PathBuf>,
}

impl Head {
    /// Reads it of the repository whose work tree is at a folder, not of one further up.
    pub(crate) fn read(work_tree: &Path) -> Option<Head> {
        let own = repository(work_tree)?;
        let path = own.join("HEAD");
        let text = fs::read_to_string(&path).ok()?;
        let mut head = Head { commit: None, files: vec![path] };
        match text.trim().strip_prefix("ref: ") {
            // The commit itself is checked out, not a branch.
            None => head.commit = name(&text),
            Some(branch) => head.read_branch(branch, &own, &shared(&own)),
        }
        Some(head)
    }

    /// Reads a branch of the repository, which work trees share, from its own file or from that of all of them.
    fn read_branch(&mut self, branch: &str, own: &Path, shared: &Path) {
        let loose = shared.join(branch);
        if let Ok(text) = fs::read_to_string(&loose) {
            self.commit = name(&text);
            self.files.push(loose);
            return;
        }
        let packed = shared.join("packed-refs");
        if let Ok(text) = fs::read_to_string(&packed) {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            self.commit = lines.find(|&(_, packed)| packed == branch).and_then(|(commit, _)| name(commit));
            self.files.push(packed);
        }
        // The next commit makes a file of the branch's own, which can't be watched before it exists; it is recorded here, too.
        self.files.extend(Some(own.join("logs/HEAD")).filter(|log| log.is_file()));
    }
}

/// The repository of a work tree: its folder `.git`, or the one that its file `.git` names.
fn repository(work_tree: &Path) -> Option<PathBuf> {
    let path = work_tree.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let text = fs::read_to_string(path).ok()?;
    Some(work_tree.join(text.trim().strip_prefix("gitdir: ")?))
}

/// Where the branches are: in the repository, or in the one that it is a further work tree of.
fn shared(own: &Path) -> PathBuf {
    fs::read_to_string(own.join("commondir")).map_or_else(|_| own.to_owned(), |text| own.join(text.trim()))
}

/// A commit's name, if a text is one.
fn name(text: &str) -> Option<String> {
    let name = text.trim();
    (name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The commit and the names of the files, relative to the folder.
    fn read(folder: &Path) -> Option<(Option<String>, Vec<String>)> {
        let head = Head::read(folder)?;
        let files =
            head.files.iter().map(|file| file.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/"));
        Some((head.commit.clone(), files.collect()))
    }

    fn found(files: &[&str]) -> Option<(Option<String>, Vec<String>)> {
        Some((Some(COMMIT.into()), files.iter().map(|&file| file.to_owned()).collect()))
    }

    #[test]
    fn the_commit_is_that_of_the_branch() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(Head::read(folder), None);
        write(folder, ".git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(read(folder), Some((None, vec![".git/HEAD".into()])));
        write(
            folder,
            ".git/packed-refs",
            &format!("# pack-refs\n{} refs/heads/mai\n{COMMIT} refs/heads/main\n", "f".repeat(40)),
        );
        assert_eq!(read(folder), found(&[".git/HEAD", ".git/packed-refs"]));
        write(folder, ".git/logs/HEAD", "");
        assert_eq!(read(folder), found(&[".git/HEAD", ".git/packed-refs", ".git/logs/HEAD"]));
        write(folder, ".git/packed-refs", "");
        write(folder, ".git/refs/heads/main", &format!("{COMMIT}\n"));
        assert_eq!(read(folder), found(&[".git/HEAD", ".git/refs/heads/main"]));
    }

    #[test]
    fn a_commit_is_checked_out_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), ".git/HEAD", &format!("{COMMIT}\n"));
        assert_eq!(read(folder.path()), found(&[".git/HEAD"]));
        write(folder.path(), ".git/HEAD", "\"quoted\" + code()");
        assert_eq!(read(folder.path()), Some((None, vec![".git/HEAD".into()])));
    }

    #[test]
    fn a_further_work_tree_shares_branches() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        write(&tree, ".git", "gitdir: ../main/.git/worktrees/tree\n");
        let main = folder.path().join("main/.git");
        write(&main, "worktrees/tree/HEAD", "ref: refs/heads/side\n");
        write(&main, "worktrees/tree/commondir", "../..\n");
        write(&main, "refs/heads/side", COMMIT);
        let head = Head::read(&tree).unwrap();
        assert_eq!(head.commit.as_deref(), Some(COMMIT));
        assert!(head.files.len() == 2 && head.files.iter().all(|file| file.is_file()));
    }
}
