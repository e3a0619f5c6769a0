//! Options of custom operators: a FlexBuffer, which is read from its end. Numbers and offsets are as wide as what holds them says, and
//! offsets go backwards. No crate is taken for this: the known reader panics where an offset leaves the buffer.

use crate::model::Setting;
use indexmap::IndexMap;

/// The types of values, as their upper six bits say them.
mod kind {
    pub const INT: u8 = 1;
    pub const UINT: u8 = 2;
    pub const FLOAT: u8 = 3;
    pub const KEY: u8 = 4;
    pub const STRING: u8 = 5;
    pub const INDIRECT_FLOAT: u8 = 8;
    pub const MAP: u8 = 9;
    pub const VECTOR: u8 = 10;
    /// The first of vectors whose elements have one type: whole numbers, with or without sign, floats.
    pub const VECTOR_OF_INT: u8 = 11;
    pub const VECTOR_OF_FLOAT: u8 = 13;
    /// The first of pairs, triples and quadruples of such numbers.
    pub const PAIR_OF_INT: u8 = 16;
    pub const QUADRUPLE_OF_FLOAT: u8 = 24;
    pub const BOOL: u8 = 26;
    pub const VECTOR_OF_BOOL: u8 = 36;
}

/// A value: where it or its offset stands, in how many bytes, and its type with the logarithm of the width of what it holds.
#[derive(Clone, Copy)]
struct Slot {
    place: usize,
    width: usize,
    packed: u8,
}

/// Elements of one kind behind each other.
struct Elements {
    first: usize,
    width: usize,
    count: usize,
}

struct Reader<'b> {
    bytes: &'b [u8],
    /// Elements that may still be read: offsets may go to one place many times.
    budget: usize,
}

/// The options by name, those that are kept in a map of numbers, truth values, texts, and lists of numbers; `None` when the bytes aren't a
/// FlexBuffer with a map.
pub(super) fn read(bytes: &[u8]) -> Option<IndexMap<String, Setting>> {
    let (&[packed, width], start) = (bytes.last_chunk::<2>()?, bytes.len() - 2);
    let width = usize::from(width);
    let place = start.checked_sub(width).filter(|_| matches!(width, 1 | 2 | 4 | 8))?;
    Reader { bytes, budget: bytes.len() }.map(Slot { place, width, packed })
}

impl Reader<'_> {
    fn whole(&self, place: usize, width: usize) -> Option<u64> {
        let own = self.bytes.get(place..place.checked_add(width)?)?;
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(own);
        Some(u64::from_le_bytes(wide))
    }

    fn size(&self, place: usize, width: usize) -> Option<usize> {
        self.whole(place, width)?.try_into().ok()
    }

    fn signed(&self, place: usize, width: usize) -> Option<i64> {
        let unused = 64 - 8 * width as u32;
        Some((self.whole(place, width)? << unused) as i64 >> unused)
    }

    fn float(&self, place: usize, width: usize) -> Option<f64> {
        let bits = self.whole(place, width)?;
        match width {
            4 => Some(f32::from_bits(bits as u32).into()),
            8 => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Where the offset in a slot goes.
    fn target(&self, slot: Slot) -> Option<usize> {
        slot.place.checked_sub(self.size(slot.place, slot.width)?)
    }

    /// Elements with their number before them.
    fn elements(&mut self, first: usize, width: usize) -> Option<Elements> {
        let count = self.size(first.checked_sub(width)?, width)?;
        self.budget = self.budget.checked_sub(count)?;
        Some(Elements { first, width, count })
    }

    fn map(&mut self, slot: Slot) -> Option<IndexMap<String, Setting>> {
        if slot.packed >> 2 != kind::MAP {
            return None;
        }
        let width = inner_width(slot.packed);
        let values = self.target(slot)?;
        let values = self.elements(values, width)?;
        let keys = Slot { place: values.first.checked_sub(3 * width)?, width, packed: 0 };
        let key_width = self.size(values.first.checked_sub(2 * width)?, width)?;
        if !matches!(key_width, 1 | 2 | 4 | 8) {
            return None;
        }
        let keys = self.target(keys)?;
        let keys = self.elements(keys, key_width)?;
        let mut options = IndexMap::new();
        for number in 0..values.count.min(keys.count) {
            let key = Slot { place: keys.place(number)?, width: key_width, packed: 0 };
            let name = self.key(key)?;
            let value = self.setting(self.slot(&values, number)?)?;
            options.insert(name, value);
        }
        Some(options)
    }

    /// An element of a vector that says the type of each.
    fn slot(&self, elements: &Elements, number: usize) -> Option<Slot> {
        let types = elements.place(elements.count)?;
        let packed = *self.bytes.get(types.checked_add(number)?)?;
        Some(Slot { place: elements.place(number)?, width: elements.width, packed })
    }

    fn key(&mut self, slot: Slot) -> Option<String> {
        let text = self.bytes.get(self.target(slot)?..)?;
        let end = text.iter().position(|&byte| byte == 0)?;
        self.budget = self.budget.checked_sub(end)?;
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    fn setting(&mut self, slot: Slot) -> Option<Setting> {
        let inner = inner_width(slot.packed);
        Some(match slot.packed >> 2 {
            own @ (kind::INT | kind::UINT) => Setting::Int(self.integer(own, slot.place, slot.width)?),
            kind::FLOAT => Setting::Float(self.float(slot.place, slot.width)?),
            kind::BOOL => Setting::Flag(self.whole(slot.place, slot.width)? != 0),
            kind::KEY => Setting::Text(self.key(slot)?),
            kind::STRING => {
                let first = self.target(slot)?;
                let Elements { first, count, .. } = self.elements(first, inner)?;
                let text = self.bytes.get(first..first.checked_add(count)?)?;
                Setting::Text(String::from_utf8_lossy(text).into_owned())
            }
            kind::INDIRECT_FLOAT => Setting::Float(self.float(self.target(slot)?, inner)?),
            // Whole numbers that stand elsewhere.
            own @ (6 | 7) => Setting::Int(self.integer(own - 5, self.target(slot)?, inner)?),
            kind::VECTOR => self.mixed(slot, inner)?,
            own @ kind::VECTOR_OF_INT..=kind::VECTOR_OF_FLOAT => {
                let first = self.target(slot)?;
                let elements = self.elements(first, inner)?;
                self.numbers(own - kind::VECTOR_OF_INT + kind::INT, &elements)?
            }
            own @ kind::PAIR_OF_INT..=kind::QUADRUPLE_OF_FLOAT => {
                let (count, own) = (usize::from((own - kind::PAIR_OF_INT) / 3) + 2, (own - kind::PAIR_OF_INT) % 3);
                let elements = Elements { first: self.target(slot)?, width: inner, count };
                self.numbers(kind::INT + own, &elements)?
            }
            kind::VECTOR_OF_BOOL => {
                let first = self.target(slot)?;
                let elements = self.elements(first, inner)?;
                self.numbers(kind::UINT, &elements)?
            }
            _ => Setting::Other,
        })
    }

    fn integer(&self, own: u8, place: usize, width: usize) -> Option<i64> {
        if own == kind::INT { self.signed(place, width) } else { self.whole(place, width)?.try_into().ok() }
    }

    fn numbers(&self, own: u8, elements: &Elements) -> Option<Setting> {
        let places = || (0..elements.count).map(|number| elements.place(number));
        Some(if own == kind::FLOAT {
            Setting::Floats(places().map(|place| self.float(place?, elements.width)).collect::<Option<_>>()?)
        } else {
            Setting::Ints(places().map(|place| self.integer(own, place?, elements.width)).collect::<Option<_>>()?)
        })
    }

    /// A vector of any values: a list of numbers if all are.
    fn mixed(&mut self, slot: Slot, width: usize) -> Option<Setting> {
        let first = self.target(slot)?;
        let elements = self.elements(first, width)?;
        let (mut whole, mut real) = (Vec::new(), Vec::new());
        for number in 0..elements.count {
            let own = self.slot(&elements, number)?;
            match own.packed >> 2 {
                kind::INT | kind::UINT => {
                    let value = self.integer(own.packed >> 2, own.place, width)?;
                    whole.push(value);
                    real.push(value as f64);
                }
                kind::FLOAT => real.push(self.float(own.place, width)?),
                _ => return Some(Setting::Other),
            }
        }
        Some(if whole.len() == real.len() { Setting::Ints(whole) } else { Setting::Floats(real) })
    }
}

impl Elements {
    fn place(&self, number: usize) -> Option<usize> {
        self.first.checked_add(number.checked_mul(self.width)?)
    }
}

fn inner_width(packed: u8) -> usize {
    1 << (packed & 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the flexbuffers crate, version 25.12.19, writes for a map of the values below.
    const MAP: &str = "616c706861006265746100636f756e7400666c6167006c61726765006d6f6465000a68616c665f706978656c006178657300\
        0100feff2c016d697865640001780002010404146e65737465640061000103010101010874797065640003fc057265616c73000000000000803e\
        0000c03f6269747300020100626c6f62000378797a696e6469726563740087d612006e6f7468696e67000f976b932a23918c1d8968855c15454f\
        0000110000000000000001000000000000000f00000000000000000000000000e03f96000000000000009a9999999999b93f6200000000000000\
        6200000000000000070000000000000001000000000000006e00000000000000000efad5feffffffc600000000000000ee00000000000000c400\
        0000000000000000000000000000c000000000000000d4000000000000000f4d0f90640b6b1a07281424034a4c872701";

    fn bytes(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|place| u8::from_str_radix(&text[2 * place..2 * place + 2], 16).unwrap()).collect()
    }

    #[test]
    fn values_of_every_kind_are_read() {
        let options = read(&bytes(MAP)).unwrap();
        let expected = [
            ("alpha", Setting::Float(0.5)),
            ("beta", Setting::Float(0.1)),
            ("count", Setting::Int(7)),
            ("flag", Setting::Flag(true)),
            ("large", Setting::Int(-5_000_000_000)),
            ("mode", Setting::Text("half_pixel".into())),
            ("axes", Setting::Ints(vec![1, -2, 300])),
            ("mixed", Setting::Other),
            ("nested", Setting::Other),
            ("typed", Setting::Ints(vec![3, -4, 5])),
            ("reals", Setting::Floats(vec![0.25, 1.5])),
            ("bits", Setting::Ints(vec![1, 0])),
            ("blob", Setting::Other),
            ("indirect", Setting::Int(1_234_567)),
            ("nothing", Setting::Other),
        ];
        assert_eq!(options.len(), expected.len());
        for (name, value) in expected {
            assert_eq!(options.get(name), Some(&value), "{name}");
        }
    }

    #[test]
    fn what_is_no_map_has_no_options() {
        for text in ["", "00", "050401", "0504ff", "ffff2408", "000000"] {
            assert_eq!(read(&bytes(text)), None, "{text}");
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_read_but_never_leave_the_buffer() {
        let whole = bytes(MAP);
        let mut refused = 0;
        for length in 0..whole.len() {
            refused += usize::from(read(&whole[whole.len() - length..]).is_none());
        }
        for place in 0..whole.len() {
            for value in [0, 1, 7, 0x28, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[place] = value;
                refused += usize::from(read(&damaged).is_none());
            }
        }
        assert!(refused > 300, "{refused}");
    }
}
