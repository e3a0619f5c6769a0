//! A reproducible tar archive: sorted entries under `./`, owner root, fixed modes, one time stamp.

use super::PackageError;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use tar::{EntryType, Header};

/// Bytes of a tar record.
const RECORD: usize = 512;

/// Packs files, given sorted by path. Every folder is a member of its own, and so is the root.
pub(super) fn pack(files: &IndexMap<String, Vec<u8>>, modified: u64) -> Result<Vec<u8>, PackageError> {
    let mut members: BTreeSet<String> = BTreeSet::from(["./".to_owned()]);
    for path in files.keys() {
        members.extend(path.match_indices('/').map(|(end, _)| format!("./{}", &path[..=end])));
        members.insert(format!("./{path}"));
    }
    let mut archive = Vec::new();
    for member in &members {
        let content = files.get(&member[2..]).map(Vec::as_slice);
        archive.extend_from_slice(header(member, content, modified)?.as_bytes());
        archive.extend_from_slice(content.unwrap_or_default());
        archive.resize(archive.len().next_multiple_of(RECORD), 0);
    }
    archive.resize(archive.len() + 2 * RECORD, 0);
    Ok(archive)
}

/// The header of a file, or of a folder when there is no content.
fn header(member: &str, content: Option<&[u8]>, modified: u64) -> Result<Header, PackageError> {
    let size = content.map_or(0, <[u8]>::len) as u64;
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
