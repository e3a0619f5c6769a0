//! A reproducible tar archive: sorted entries under `./`, owner root, fixed modes, one time stamp.

use super::content::Content;
use super::error::PackageError;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use tar::{EntryType, Header};

/// Bytes of a tar record.
const RECORD: usize = 512;

/// Packs files, given sorted by path. Every folder is a member of its own, and so is the root.
///
/// A member's header is written again once its size is known, so that no content has to be held in memory.
pub(super) fn pack<W: Write + Seek>(
    files: &IndexMap<String, Content<'_>>,
    modified: u64,
    out: &mut W,
) -> Result<(), PackageError> {
    let mut members: BTreeSet<String> = BTreeSet::from(["./".to_owned()]);
    for path in files.keys() {
        members.extend(path.match_indices('/').map(|(end, _)| format!("./{}", &path[..=end])));
        members.insert(format!("./{path}"));
    }
    for member in &members {
        let start = out.stream_position()?;
        let content = files.get(&member[2..]);
        out.write_all(header(member, content.map(|_| 0), modified)?.as_bytes())?;
        let Some(content) = content else { continue };
        let mut buffered = BufWriter::with_capacity(1 << 16, &mut *out);
        content.write(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        let end = out.stream_position()?;
        let size = end - start - RECORD as u64;
        out.write_all(&vec![0; (size.next_multiple_of(RECORD as u64) - size) as usize])?;
        let next = out.stream_position()?;
        out.seek(SeekFrom::Start(start))?;
        out.write_all(header(member, Some(size), modified)?.as_bytes())?;
        out.seek(SeekFrom::Start(next))?;
    }
    out.write_all(&[0; 2 * RECORD])?;
    Ok(out.flush()?)
}

/// The header of a file of a size, or of a folder when there is none.
fn header(member: &str, content: Option<u64>, modified: u64) -> Result<Header, PackageError> {
    let size = content.unwrap_or(0);
    if size >= 1 << 33 {
        return Err(PackageError::FileTooLarge(member.to_owned()));
    }
    let mut header = Header::new_ustar();
    let (prefix, name) = split(member).ok_or_else(|| PackageError::PathTooLong(member.to_owned()))?;
    if let Some(fields) = header.as_ustar_mut() {
        fields.prefix[..prefix.len()].copy_from_slice(prefix.as_bytes());
        fields.name[..name.len()].copy_from_slice(name.as_bytes());
        fields.uname[..4].copy_from_slice(b"root");
        fields.gname[..4].copy_from_slice(b"root");
    }
    header.set_entry_type(if content.is_some() { EntryType::Regular } else { EntryType::Directory });
    header.set_mode(if content.is_some() { 0o644 } else { 0o755 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_mtime(modified);
    header.set_cksum();
    Ok(header)
}

/// A path as a prefix of up to 155 bytes and a name of up to 100; they are joined by a slash.
fn split(member: &str) -> Option<(&str, &str)> {
    if member.len() <= 100 {
        return Some(("", member));
    }
    let slash = member.match_indices('/').map(|(at, _)| at).find(|at| member.len() - at - 1 <= 100)?;
    let (prefix, name) = (&member[..slash], &member[slash + 1..]);
    (prefix.len() <= 155 && !name.is_empty()).then_some((prefix, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_split_at_a_slash_or_refused() {
        let long = format!("./codegen/host/src/{}_lib0.c", "m".repeat(90));
        let (prefix, name) = split(&long).unwrap();
        assert_eq!(format!("{prefix}/{name}"), long);
        assert!(name.len() <= 100 && prefix.len() <= 155);
        assert_eq!(split(&format!("./{}", "m".repeat(101))), None);
    }
}
