//! The archive of weights, as the current exporter lays it out: always in the 64-bit form, whatever the size.
//!
//! The `zip` crate writes that form only where it is needed, so the five records are written by hand.

use super::WriteError;
use crate::model::{ElementType, Model};

const LOCAL_HEADER: u32 = 0x0403_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const END_RECORD: u32 = 0x0605_4b50;
const ZIP64_END_RECORD: u32 = 0x0606_4b50;
const ZIP64_LOCATOR: u32 = 0x0706_4b50;
const ZIP64_EXTRA: u16 = 1;
/// Payload of the extra field: two sizes, an offset and a disk number.
const ZIP64_EXTRA_LENGTH: u16 = 28;
/// What follows the length field of the 64-bit end record.
const ZIP64_END_LENGTH: u64 = 44;
/// Stands for a number that the 64-bit form has elsewhere.
const ELSEWHERE_16: u16 = u16::MAX;
const ELSEWHERE_32: u32 = u32::MAX;

/// Writes the `.bin` file: all weights in the order of the operators and their sorted keys.
///
/// Weights without an element type have no bytes and no entry.
pub fn to_bin(model: &Model) -> Result<Vec<u8>, WriteError> {
    let mut archive = Records(Vec::new());
    let mut directory = Records(Vec::new());
    let mut count = 0;
    for operator in &model.operators {
        let attributes = operator.attributes.iter();
        for (key, attribute) in attributes.filter(|(_, attribute)| attribute.element_type != ElementType::Null) {
            let name = operator.entry_name(key);
            let Ok(name_length) = u16::try_from(name.len()) else {
                return Err(WriteError::NameTooLong(name));
            };
            let entry = Entry {
                name: &name,
                name_length,
                crc32: crc32fast::hash(&attribute.data),
                size: attribute.data.len() as u64,
                offset: archive.0.len() as u64,
            };
            archive.local_header(&entry);
            archive.0.extend_from_slice(&attribute.data);
            directory.central_header(&entry);
            count += 1;
        }
    }
    let directory_offset = archive.0.len() as u64;
    archive.0.extend_from_slice(&directory.0);
    archive.end(count, directory.0.len() as u64, directory_offset);
    Ok(archive.0)
}

struct Entry<'a> {
    name: &'a str,
    name_length: u16,
    crc32: u32,
    size: u64,
    offset: u64,
}

struct Records(Vec<u8>);

impl Records {
    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// The fields that both headers share: flags to the length of the extra field.
    fn common(&mut self, entry: &Entry<'_>) {
        for _flags_method_time_date in 0..4 {
            self.u16(0);
        }
        self.u32(entry.crc32);
        self.u32(ELSEWHERE_32);
        self.u32(ELSEWHERE_32);
        self.u16(entry.name_length);
        self.u16(ZIP64_EXTRA_LENGTH + 4);
    }

    fn extra(&mut self, entry: &Entry<'_>, offset: u64) {
        self.u16(ZIP64_EXTRA);
        self.u16(ZIP64_EXTRA_LENGTH);
        self.u64(entry.size);
        self.u64(entry.size);
        self.u64(offset);
        self.u32(0);
    }

    fn local_header(&mut self, entry: &Entry<'_>) {
        self.u32(LOCAL_HEADER);
        self.u16(0);
        self.common(entry);
        self.0.extend_from_slice(entry.name.as_bytes());
        self.extra(entry, 0);
    }

    fn central_header(&mut self, entry: &Entry<'_>) {
        self.u32(CENTRAL_HEADER);
        self.u16(0);
        self.u16(0);
        self.common(entry);
        self.u16(0);
        self.u16(ELSEWHERE_16);
        self.u16(0);
        self.u32(0);
        self.u32(ELSEWHERE_32);
        self.0.extend_from_slice(entry.name.as_bytes());
        self.extra(entry, entry.offset);
    }

    fn end(&mut self, count: u64, directory_size: u64, directory_offset: u64) {
        let zip64_end = self.0.len() as u64;
        self.u32(ZIP64_END_RECORD);
        self.u64(ZIP64_END_LENGTH);
        self.u32(0);
        self.u32(0);
        self.u32(0);
        self.u64(count);
        self.u64(count);
        self.u64(directory_size);
        self.u64(directory_offset);
        self.u32(ZIP64_LOCATOR);
        self.u32(0);
        self.u64(zip64_end);
        self.u32(1);
        self.u32(END_RECORD);
        for _disks_and_counts in 0..4 {
            self.u16(ELSEWHERE_16);
        }
        self.u32(ELSEWHERE_32);
        self.u32(ELSEWHERE_32);
        self.u16(0);
    }
}
