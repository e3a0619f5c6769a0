//! Links between pages, and the table of contents of the book that they make.

use super::page::Page;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Links of pages that lead nowhere: to no file of the repository, or to no heading of a page.
pub fn dead_links(root: &Path, pages: &[Page]) -> Vec<String> {
    let anchors: BTreeMap<&str, Vec<String>> = pages.iter().map(|page| (page.name.as_str(), anchors(page))).collect();
    let mut faults = Vec::new();
    for page in pages {
        for (line, target) in links(page) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = resolve(&page.name, file);
            let is_dead = match anchors.get(path.as_str()) {
                Some(anchors) => !anchor.is_empty() && !anchors.iter().any(|known| known == anchor),
                None => !anchor.is_empty() || !root.join(&path).exists(),
            };
            if is_dead {
                faults.push(format!("{}: '{target}' leads nowhere", page.place(line)));
            }
        }
    }
    faults
}

/// Pages of the documentation that the book's table of contents doesn't have exactly once.
pub fn missing_chapters(summary: &str, pages: &[Page]) -> Vec<String> {
    let Some(contents) = pages.iter().find(|page| page.name == summary) else {
        return vec![format!("there is no {summary}")];
    };
    let chapters: Vec<String> = links(contents).into_iter().map(|(_, target)| resolve(summary, &target)).collect();
    let folder = Path::new(summary).parent().unwrap_or(Path::new(""));
    let documents = pages.iter().filter(|page| page.name != summary && Path::new(&page.name).starts_with(folder));
    let counts = documents.map(|page| (&page.name, chapters.iter().filter(|&chapter| *chapter == page.name).count()));
    counts.filter(|&(_, count)| count != 1).map(|(name, count)| format!("{summary} has {name} {count} times")).collect()
}

/// Targets of a page's links with their lines.
fn links(page: &Page) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in &page.prose {
        let text = without_code(line);
        for part in text.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                links.push((*number, target.to_owned()));
            }
        }
    }
    links
}

/// A line with its spans of code emptied: a link's text may be one, its target can't.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The path from the root of what a page calls a path from itself; the page itself for an empty one.
fn resolve(page: &str, file: &str) -> String {
    if file.is_empty() {
        return page.to_owned();
    }
    let mut path = PathBuf::new();
    for component in Path::new(page).parent().unwrap_or(Path::new("")).join(file).components() {
        match component {
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.to_string_lossy().replace('\\', "/")
}

/// What links call the headings of a page, as its renderers make it of them.
fn anchors(page: &Page) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in &page.prose {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = slug(title.trim());
        let same = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
    }
    anchors
}

fn slug(title: &str) -> String {
    let kept = title.chars().filter(|&character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'));
    kept.map(|character| if character == ' ' { '-' } else { character.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn dead_links_are_found() {
        let page = "# A page, of `code`\n\n[a](other.md) [b](other.md#two-1) `[c](none.md)` [`d`](https://e.f)\n\n## Two\n\n## Two\n";
        let other = "# Two\n\n## Two\n\n[a](page.md#a-page-of-code) [b](#two) [c](none.md) [d](page.md#three) [e](../Cargo.toml)\n";
        let pages = [Page::parse("docs/page.md", page), Page::parse("docs/other.md", other)];
        let dead = dead_links(&paths::repository(), &pages);
        assert_eq!(
            dead,
            ["docs/other.md:5: 'none.md' leads nowhere", "docs/other.md:5: 'page.md#three' leads nowhere"]
        );
    }

    #[test]
    fn every_page_is_a_chapter_once() {
        let pages = ["docs/SUMMARY.md", "docs/one.md", "docs/two.md", "docs/three.md", "README.md"]
            .map(|name| Page::parse(name, "- [One](one.md)\n- [Two](two.md)\n- [Again](./two.md)\n"));
        assert_eq!(
            missing_chapters("docs/SUMMARY.md", &pages),
            ["docs/SUMMARY.md has docs/two.md 2 times", "docs/SUMMARY.md has docs/three.md 0 times"]
        );
    }
}
