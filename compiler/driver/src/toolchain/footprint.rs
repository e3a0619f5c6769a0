//! How much memory a built model takes: the sections of an image that holds the model and the library functions it needs,
//! and nothing else.

use serde::Serialize;

/// What a model takes of a machine's memories in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Footprint {
    /// Code, constants and initial values.
    pub flash_bytes: usize,
    /// The part of it that is the model's constants.
    pub constants_bytes: usize,
    /// Static memory, with the arena unless it is the caller's; without inputs, outputs and stack, which are the caller's.
    pub ram_bytes: usize,
    /// Memory that the caller gives to every run for intermediate results; it is in no section.
    pub pool_bytes: usize,
    /// What of the model's own objects has initial values, and so takes flash and RAM; none of mlc's code has any. Some C
    /// libraries' functions have a few bytes.
    pub data_bytes: usize,
}

impl Footprint {
    /// Reads what `size -A` prints of the image: a line per section with its name, size and address.
    pub(super) fn parse(listing: &str, constants_bytes: usize) -> Footprint {
        let mut footprint = Footprint { constants_bytes, ..Footprint::default() };
        for line in listing.lines() {
            let mut words = line.split_whitespace();
            let (Some(section), Some(bytes)) = (words.next(), words.next()) else { continue };
            let Ok(bytes) = bytes.parse::<usize>() else { continue };
            let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| belongs(section, prefix));
            if is(&[".init", ".text", ".rodata", ".srodata", ".preinit_array", ".init_array", ".fini_array"]) {
                footprint.flash_bytes += bytes;
            } else if is(&[".data", ".sdata", ".tdata"]) {
                footprint.flash_bytes += bytes;
                footprint.ram_bytes += bytes;
                footprint.data_bytes += bytes;
            } else if is(&[".bss", ".sbss", ".tbss"]) {
                footprint.ram_bytes += bytes;
            }
        }
        footprint
    }
}

/// Whether a section is `prefix` or `prefix.…`.
fn belongs(section: &str, prefix: &str) -> bool {
    section.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_summed() {
        let listing = "model.elf  :\nsection  size  addr\n.init  0  0\n.text  1000  0\n.data  8  536870912\n.tbss  4  0\n\
                       .tbss_space  4  0\n.bss  200  0\n.stack  65536  0\n.comment  50  0\nTotal  1300\n\n";
        let expected =
            Footprint { flash_bytes: 1008, constants_bytes: 900, ram_bytes: 212, data_bytes: 8, pool_bytes: 0 };
        assert_eq!(Footprint::parse(listing, 900), expected);
    }
}
