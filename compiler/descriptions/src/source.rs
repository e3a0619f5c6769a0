//! Places in the files of descriptions.

use mlc_ir::Location;

/// A byte of one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Number of the file.
    pub file: u32,
    /// Offset in its text.
    pub offset: u32,
}

#[derive(Debug)]
struct File {
    name: String,
    /// Where each line begins.
    lines: Vec<u32>,
}

/// Names and lines of the files that places lie in.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<File>,
}

impl Sources {
    /// Adds a file and returns its number.
    pub fn add(&mut self, name: &str, text: &[u8]) -> u32 {
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u32 + 1);
        self.files.push(File { name: name.to_owned(), lines: std::iter::once(0).chain(ends).collect() });
        self.files.len() as u32 - 1
    }

    /// File, line and column of a place.
    pub fn location(&self, place: Place) -> Location {
        let Some(file) = self.files.get(place.file as usize) else { return Location::default() };
        let line = file.lines.partition_point(|&start| start <= place.offset);
        let start = file.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        Location::line_column(line as u32, place.offset - start + 1).in_file(file.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_columns() {
        let mut sources = Sources::default();
        sources.add("a", b"");
        let file = sources.add("b", b"xy\nz\n");
        for (offset, text) in [(0, "b:1:1"), (1, "b:1:2"), (2, "b:1:3"), (3, "b:2:1"), (5, "b:3:1")] {
            assert_eq!(sources.location(Place { file, offset }).to_string(), text);
        }
        assert_eq!(sources.location(Place::default()).to_string(), "a:1:1");
    }
}
