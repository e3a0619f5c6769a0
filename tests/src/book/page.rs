//! A page of Markdown as far as its promises go: blocks of code with the comments before them, and the prose between them.

use std::io;
use std::path::Path;

/// A page.
#[derive(Debug)]
pub struct Page {
    /// Its path from the repository's root.
    pub name: String,
    /// Blocks of code, and comments that no block comes after, in order.
    pub(super) blocks: Vec<Block>,
    /// The lines that are neither code nor comments, by their numbers from 1.
    pub(super) prose: Vec<(usize, String)>,
}

/// A block of code, or commands in a comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The number of its first line, from 1.
    pub(super) line: usize,
    pub(super) kind: Kind,
    pub(super) text: String,
    /// The comments right before it.
    pub(super) marks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Between fences, of a language, which may be empty.
    Fenced(String),
    Indented,
    /// A comment `run` with commands.
    Hidden,
    /// The commands of mlc within a paragraph.
    Spans,
}

/// The comment that says that the commands in the next paragraph are run.
pub(super) const SPANS: &str = "commands in the text";

impl Page {
    pub(super) fn read(root: &Path, name: &str) -> io::Result<Page> {
        Ok(Page::parse(name, &std::fs::read_to_string(root.join(name))?))
    }

    pub(super) fn parse(name: &str, text: &str) -> Page {
        let mut reader =
            Reader { page: Page { name: name.to_owned(), blocks: Vec::new(), prose: Vec::new() }, marks: Vec::new() };
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
        let mut is_after_blank = true;
        while let Some((number, line)) = lines.next() {
            let was_after_blank = std::mem::replace(&mut is_after_blank, line.trim().is_empty());
            if let Some(language) = line.strip_prefix("```") {
                let kind = Kind::Fenced(language.trim().to_owned());
                let text = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```"));
                reader.add(number + 1, kind, text);
            } else if let Some(comment) = line.strip_prefix("<!--") {
                let mut comment = comment.to_owned();
                while !comment.contains("-->") {
                    let Some((_, line)) = lines.next() else { break };
                    comment += "\n";
                    comment += line;
                }
                reader.comment(number, comment.split("-->").next().unwrap_or_default().trim());
                is_after_blank = true;
            } else if was_after_blank && line.starts_with("    ") {
                let mut block = vec![&line[4..]];
                while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("    ")) {
                    block.push(&line[4..]);
                }
                reader.add(number, Kind::Indented, block.into_iter());
            } else if !is_after_blank && reader.marks.iter().any(|mark| mark == SPANS) {
                let mut paragraph = vec![(number, line.to_owned())];
                while let Some((number, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
                    paragraph.push((number, line.to_owned()));
                }
                let text: String = paragraph.iter().map(|(_, line)| format!("{line}\n")).collect();
                reader.add(number, Kind::Spans, commands(&text).into_iter());
                reader.page.prose.extend(paragraph);
            } else {
                if !is_after_blank {
                    reader.marks.clear();
                }
                reader.page.prose.push((number, line.to_owned()));
            }
        }
        reader.page
    }

    /// A place in the page, for messages.
    pub(super) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.name)
    }
}

/// The commands of mlc in a text, without those that have a word in capitals in the place of something, or are a name alone.
fn commands(text: &str) -> Vec<&str> {
    let is_placeholder = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_name = |span: &str| span.split_whitespace().count() == 2 && !span.contains("--");
    let spans = text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("mlc ") && !is_name(span));
    spans.filter(|span| !span.split_whitespace().any(is_placeholder)).collect()
}

struct Reader {
    page: Page,
    marks: Vec<String>,
}

impl Reader {
    fn add<'a>(&mut self, line: usize, kind: Kind, lines: impl Iterator<Item = &'a str>) {
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        self.page.blocks.push(Block { line, kind, text, marks: std::mem::take(&mut self.marks) });
    }

    fn comment(&mut self, line: usize, comment: &str) {
        match comment.strip_prefix("run\n") {
            Some(commands) => self.add(line + 1, Kind::Hidden, commands.lines()),
            None => self.marks.push(comment.to_owned()),
        }
    }
}

impl Block {
    /// What a comment says behind its word, where there is one.
    pub(super) fn mark(&self, word: &str) -> Option<&str> {
        self.marks.iter().find_map(|mark| mark.strip_prefix(word)).map(|rest| rest.trim_start_matches(':').trim())
    }

    /// The language of a fenced block.
    pub(super) fn language(&self) -> Option<&str> {
        match &self.kind {
            Kind::Fenced(language) => Some(language),
            Kind::Indented | Kind::Hidden | Kind::Spans => None,
        }
    }

    /// Whether it has commands that readers type.
    pub(super) fn is_commands(&self) -> bool {
        self.kind == Kind::Spans || matches!(self.language(), Some("sh" | "console"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_a_paragraph_are_a_block() {
        let text = "<!-- commands in the text -->\nUse `mlc --help` or\n`mlc ops --json`, `--json`, `mlc run`, not `mlc run DIR`.\n\n`mlc fly`\n";
        let page = Page::parse("page.md", text);
        let marks = vec![SPANS.to_owned()];
        assert_eq!(
            page.blocks,
            [Block { line: 2, kind: Kind::Spans, text: "mlc --help\nmlc ops --json\n".into(), marks }]
        );
        assert!(page.blocks[0].is_commands() && page.prose.len() == 4);
    }

    #[test]
    fn blocks_have_the_comments_before_them() {
        let text = "# Page\n\n<!-- run\ntouch a\ntouch b\n-->\n<!-- needs: qemu -->\n\n```sh\nmlc compile a\n```\n\ntext\n    not code\n\n    code\n     more\n\n<!-- printed -->\n\nprose\n\n```c\nint x;\n```\n";
        let page = Page::parse("page.md", text);
        let block = |line, kind, text: &str, marks: &[&str]| Block {
            line,
            kind,
            text: text.into(),
            marks: marks.iter().map(|&mark| mark.into()).collect(),
        };
        assert_eq!(
            page.blocks,
            [
                block(4, Kind::Hidden, "touch a\ntouch b\n", &[]),
                block(10, Kind::Fenced("sh".into()), "mlc compile a\n", &["needs: qemu"]),
                block(16, Kind::Indented, "code\n more\n", &[]),
                block(24, Kind::Fenced("c".into()), "int x;\n", &[]),
            ]
        );
        assert_eq!(page.blocks[1].mark("needs"), Some("qemu"));
        assert_eq!(page.place(3), "page.md:3");
    }
}
