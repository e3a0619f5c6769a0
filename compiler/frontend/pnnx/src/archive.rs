//! The archive of weights: a ZIP file whose entries are all stored, never compressed.
//!
//! The directory is read by the `zip` crate. That crate is made to open as many archives as possible, so everything it
//! would forgive is checked here: both headers of an entry agree, entries lie inside the file and apart from each
//! other, names are unique, and checksums are right. Entry data are slices of the file, never copies.

use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};
use std::borrow::Cow;
use std::io::Cursor;
use std::ops::Range;
use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const LOCAL_HEADER_SIZE: u64 = 30;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const CENTRAL_HEADER_SIZE: u64 = 46;
const ZIP64_EXTRA: u16 = 1;
const ENCRYPTED: u16 = 1 << 0;
const DATA_DESCRIPTOR: u16 = 1 << 3;

/// The entries of an archive.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    /// In the directory's order; `None` for entries that were refused.
    entries: IndexMap<Vec<u8>, Option<Entry>>,
}

/// One entry of an archive.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The entry's bytes, a slice of the archive.
    pub data: Bytes,
    /// Where its header begins in the archive.
    pub header_offset: u64,
}

impl Archive {
    /// Reads an archive. There is none if its directory can't be found; otherwise entries that are damaged are missing
    /// from it, with an error for each.
    pub fn read(bytes: &Bytes) -> (Option<Archive>, Vec<Diagnostic>) {
        let archive = match open(bytes) {
            Ok(archive) => archive,
            Err(diagnostic) => return (None, vec![*diagnostic]),
        };
        let directory_start = archive.central_directory_start();
        let mut diagnostics = Vec::new();
        let mut found = Vec::new();
        for index in 0..archive.len() {
            match CentralHeader::of(&archive, bytes, index) {
                Ok(header) => {
                    let extent = header.check(bytes, directory_start);
                    found.push((header, extent.map_err(|diagnostic| diagnostics.push(*diagnostic)).ok()));
                }
                Err(error) => diagnostics.push(damaged(directory_start, error)),
            }
        }
        refuse_overlap(&mut found, &mut diagnostics);
        // Only now, because summing up many entries that share their bytes could take forever.
        let entries = found.into_iter().map(|(header, extent)| {
            let entry = extent.and_then(|data| match header.checked_data(bytes, data) {
                Ok(data) => Some(Entry { data, header_offset: header.header_start }),
                Err(diagnostic) => {
                    diagnostics.push(*diagnostic);
                    None
                }
            });
            (header.name, entry)
        });
        let entries = entries.collect();
        if archive.has_duplicate_names() {
            check_duplicates(bytes, directory_start, &mut diagnostics);
        }
        (Some(Archive { entries }), diagnostics)
    }

    /// The entry with this name, if it is there and wasn't refused.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.find(name)?.1
    }

    /// Position and entry of this name; there is no entry in it if it was refused.
    pub fn find(&self, name: &str) -> Option<(usize, Option<&Entry>)> {
        self.entries.get_full(name.as_bytes()).map(|(position, _, entry)| (position, entry.as_ref()))
    }

    /// All entries that weren't refused, with their positions in the directory's order and their names. Names are
    /// untrusted: never open a file by them.
    pub fn entries(&self) -> impl Iterator<Item = (usize, Cow<'_, str>, &Entry)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(position, (name, entry))| Some((position, String::from_utf8_lossy(name), entry.as_ref()?)))
    }
}

fn damaged(offset: u64, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::ArchiveDamaged, Location::byte_offset(offset), message)
}

fn open(bytes: &Bytes) -> Result<ZipArchive<Cursor<Bytes>>, Box<Diagnostic>> {
    // Nothing may stand before the archive; otherwise the crate would search the whole file for its parts.
    let config = Config { archive_offset: ArchiveOffset::Known(0) };
    ZipArchive::with_config(config, Cursor::new(bytes.clone())).map_err(|error| {
        let message = "the archive's directory can't be read; it stands at the end of the file";
        let diagnostic = damaged(bytes.len() as u64, message).with_note(error.to_string());
        Box::new(diagnostic.with_help("is the file complete? export or copy it again"))
    })
}

/// What the directory says about an entry.
struct CentralHeader {
    name: Vec<u8>,
    offset: u64,
    header_start: u64,
    flags: u16,
    method: u16,
    crc32: u32,
    compressed_size: u64,
    size: u64,
}

impl CentralHeader {
    fn of(archive: &ZipArchive<Cursor<Bytes>>, bytes: &[u8], index: usize) -> Result<Self, String> {
        let entry = archive.by_index_data(index).map_err(|error| error.to_string())?;
        let offset = entry.central_header_start();
        let field = |at| u16_at(bytes, offset + at).ok_or("the directory is cut short");
        Ok(CentralHeader {
            name: entry.name_raw().to_vec(),
            offset,
            header_start: entry.header_start(),
            flags: field(8)?,
            method: field(10)?,
            crc32: entry.crc32(),
            compressed_size: entry.compressed_size(),
            size: entry.size(),
        })
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).escape_debug().to_string()
    }

    fn fail<T>(&self, offset: u64, what: impl std::fmt::Display) -> Result<T, Box<Diagnostic>> {
        Err(Box::new(damaged(offset, format!("entry `{}` of the archive {what}", self.name()))))
    }

    /// Checks everything about an entry but its neighbours and its checksum, and gives the place of its data.
    fn check(&self, bytes: &[u8], directory_start: u64) -> Result<Range<u64>, Box<Diagnostic>> {
        self.check_stored(self.offset, self.flags, self.method)?;
        if self.compressed_size != self.size {
            let what = format!("is stored, but has sizes {} and {}", self.compressed_size, self.size);
            return self.fail(self.offset, what);
        }
        let data_start = self.check_local_header(bytes)?;
        let end = data_start.checked_add(self.size).filter(|&end| end <= directory_start.min(bytes.len() as u64));
        let Some(end) = end else {
            let what = format!("claims {} bytes, more than the file has before its directory", self.size);
            return self.fail(self.header_start, what);
        };
        Ok(data_start..end)
    }

    fn checked_data(&self, bytes: &Bytes, place: Range<u64>) -> Result<Bytes, Box<Diagnostic>> {
        let data = bytes.slice(place.start as usize..place.end as usize);
        let checksum = crc32fast::hash(&data);
        if checksum != self.crc32 {
            let what = format!("has checksum {checksum:08x}, expected {:08x}", self.crc32);
            return self.fail(place.start, what);
        }
        Ok(data)
    }

    fn check_stored(&self, offset: u64, flags: u16, method: u16) -> Result<(), Box<Diagnostic>> {
        let help = "write the archive again without compression, for example by `zip -0 -X`";
        let what = if flags & ENCRYPTED != 0 {
            "is encrypted"
        } else if flags & DATA_DESCRIPTOR != 0 {
            "has its sizes behind its data, which PNNX can't read"
        } else if method != 0 {
            "is compressed; weights must be stored"
        } else {
            return Ok(());
        };
        self.fail(offset, what).map_err(|diagnostic: Box<Diagnostic>| Box::new(diagnostic.with_help(help)))
    }

    /// Compares the header before the data with the directory, and gives the data's offset.
    fn check_local_header(&self, bytes: &[u8]) -> Result<u64, Box<Diagnostic>> {
        let Some(local) = LocalHeader::read(bytes, self.header_start) else {
            return self.fail(self.header_start, "has no header where the directory says");
        };
        self.check_stored(self.header_start, local.flags, local.method)?;
        if local.name != self.name {
            let name = String::from_utf8_lossy(local.name).escape_debug().to_string();
            return self.fail(self.header_start, format!("is called `{name}` in its own header"));
        }
        if (local.compressed_size, local.size) != (self.compressed_size, self.size) {
            let what = format!("has {} bytes in the directory, {} in its own header", self.size, local.size);
            return self.fail(self.header_start, what);
        }
        if local.crc32 != self.crc32 {
            return self.fail(self.header_start, "has another checksum in the directory than in its own header");
        }
        Ok(local.data_start)
    }
}

/// The header before an entry's data.
struct LocalHeader<'a> {
    flags: u16,
    method: u16,
    crc32: u32,
    compressed_size: u64,
    size: u64,
    name: &'a [u8],
    data_start: u64,
}

impl<'a> LocalHeader<'a> {
    fn read(bytes: &'a [u8], offset: u64) -> Option<Self> {
        if u32_at(bytes, offset)? != LOCAL_HEADER {
            return None;
        }
        let name_start = offset.checked_add(LOCAL_HEADER_SIZE)?;
        let extra_start = name_start.checked_add(u64::from(u16_at(bytes, offset + 26)?))?;
        let data_start = extra_start.checked_add(u64::from(u16_at(bytes, offset + 28)?))?;
        let extra = slice(bytes, extra_start..data_start)?;
        let mut wide = zip64_fields(extra);
        let mut widen = |narrow: u32| if narrow == u32::MAX { wide.next() } else { Some(u64::from(narrow)) };
        let size = widen(u32_at(bytes, offset + 22)?)?;
        let compressed_size = widen(u32_at(bytes, offset + 18)?)?;
        Some(LocalHeader {
            flags: u16_at(bytes, offset + 6)?,
            method: u16_at(bytes, offset + 8)?,
            crc32: u32_at(bytes, offset + 14)?,
            compressed_size,
            size,
            name: slice(bytes, name_start..extra_start)?,
            data_start,
        })
    }
}

/// The 64-bit numbers of a header's zip64 field: those whose 32-bit forms are all ones, in a fixed order.
fn zip64_fields(mut extra: &[u8]) -> impl Iterator<Item = u64> {
    let mut payload: &[u8] = &[];
    while let (Some(id), Some(length)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let Some(field) = slice(extra, 4..4 + u64::from(length)) else { break };
        if id == ZIP64_EXTRA {
            payload = field;
            break;
        }
        extra = &extra[4 + field.len()..];
    }
    payload.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok().map(u64::from_le_bytes))
}

/// Takes away the data of all entries that share bytes with another one.
fn refuse_overlap(found: &mut [(CentralHeader, Option<Range<u64>>)], diagnostics: &mut Vec<Diagnostic>) {
    let mut order: Vec<usize> = (0..found.len()).filter(|&index| found[index].1.is_some()).collect();
    let extent = |(header, data): &(CentralHeader, Option<Range<u64>>)| {
        (header.header_start, data.as_ref().map_or(header.header_start, |data| data.end))
    };
    order.sort_by_key(|&index| extent(&found[index]));
    let mut overlapping = Vec::new();
    let mut reached: Option<usize> = None;
    for index in order {
        let (start, end) = extent(&found[index]);
        let before = reached.filter(|&before| start < extent(&found[before]).1);
        if let Some(before) = before {
            let names = format!("`{}` and `{}`", found[before].0.name(), found[index].0.name());
            diagnostics.push(damaged(start, format!("entries {names} of the archive overlap")));
            overlapping.extend([before, index]);
        }
        if reached.is_none_or(|before| extent(&found[before]).1 < end) {
            reached = Some(index);
        }
    }
    for index in overlapping {
        found[index].1 = None;
    }
}

/// Walks the directory itself, because the `zip` crate keeps only the last entry of each name.
fn check_duplicates(bytes: &[u8], directory_start: u64, diagnostics: &mut Vec<Diagnostic>) {
    let mut names: IndexMap<&[u8], u64> = IndexMap::new();
    let mut offset = directory_start;
    while let Some((name, next)) = central_name(bytes, offset) {
        if let Some(&first) = names.get(name) {
            let name = String::from_utf8_lossy(name).escape_debug().to_string();
            let place = Location::byte_offset(offset);
            let diagnostic =
                Diagnostic::error(Code::DuplicateDefinition, place, format!("the archive has two entries `{name}`"));
            diagnostics.push(diagnostic.with_related(Location::byte_offset(first), "the other one"));
        } else {
            names.insert(name, offset);
        }
        offset = next;
    }
}

/// The name in a directory record, and where the next record begins.
fn central_name(bytes: &[u8], offset: u64) -> Option<(&[u8], u64)> {
    if u32_at(bytes, offset)? != CENTRAL_HEADER {
        return None;
    }
    let start = offset.checked_add(CENTRAL_HEADER_SIZE)?;
    let end = start.checked_add(u64::from(u16_at(bytes, offset + 28)?))?;
    let rest = u64::from(u16_at(bytes, offset + 30)?) + u64::from(u16_at(bytes, offset + 32)?);
    Some((slice(bytes, start..end)?, end.checked_add(rest)?))
}

fn slice(bytes: &[u8], range: Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

fn array_at<const N: usize>(bytes: &[u8], offset: u64) -> Option<[u8; N]> {
    slice(bytes, offset..offset.checked_add(N as u64)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], offset: u64) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: u64) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
