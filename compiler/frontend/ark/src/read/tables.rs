//! [`Tables`]: the tensors and buffers of a file, each once, and their checks.

use super::super::model::{Buffer, BufferIndex, DataType, Extents, Tag, Tensor, TensorIndex};
use super::evidence::Evidence;
use super::faults::Faults;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic};
use mlc_json::{Json, shortened};
use std::collections::BTreeSet;

/// Most axes of a tensor.
pub(super) const MOST_AXES: usize = 4;

/// Most bytes of a tensor's array: far more than any machine has, and far less than overflows.
const MOST_BYTES: usize = 1 << 44;

/// What a file says once and repeats at every use.
#[derive(Debug)]
pub(super) struct Tables {
    /// Number of the file's rank.
    rank: u32,
    world_size: u32,
    /// By number.
    pub tensors: IndexMap<u64, Tensor>,
    /// By number.
    pub buffers: IndexMap<u64, Buffer>,
    /// Numbers of tensors and buffers that were found to be wrong, which needn't be told at every use.
    wrong: (BTreeSet<u64>, BTreeSet<u64>),
}

impl Tables {
    /// Empty ones.
    pub fn new(rank: u32, world_size: u32) -> Tables {
        Tables {
            rank,
            world_size,
            tensors: IndexMap::new(),
            buffers: IndexMap::new(),
            wrong: (BTreeSet::new(), BTreeSet::new()),
        }
    }

    /// Reads a use of a tensor: a new one, or one that must be as before.
    pub fn tensor(&mut self, json: &Json, faults: &mut Faults, evidence: &mut Evidence) -> Option<TensorIndex> {
        let mark = faults.mark();
        let id = faults.note(json.get("Id").and_then(|id| id.integer::<u64>()));
        if id.is_some_and(|id| self.wrong.0.contains(&id)) {
            return None;
        }
        let index = self.checked_tensor(id, json, faults, evidence);
        if let (None, Some(id), true) = (index, id, faults.mark() > mark) {
            self.wrong.0.insert(id);
        }
        index
    }

    fn checked_tensor(
        &mut self,
        id: Option<u64>,
        json: &Json,
        faults: &mut Faults,
        evidence: &mut Evidence,
    ) -> Option<TensorIndex> {
        let data_type = faults.note(data_type(json));
        let shape = faults.note(extents(json, "Shape"));
        let storage = faults.note(extents(json, "Strides"));
        let offsets = faults.note(extents(json, "Offsets"));
        let pads = faults.note(json.find("Pads")).flatten();
        evidence.tensor(json, pads.is_some());
        let padded = match &pads {
            Some(_) => faults.note(extents(json, "Pads")),
            None => faults.note(extents(json, "PaddedShape")),
        };
        let buffer = faults.note(json.get("Buffer")).and_then(|buffer| self.buffer(&buffer, faults, evidence));
        let (shape, storage, offsets, padded) = (shape?, storage?, offsets?, padded?);
        let padded_shape = if pads.is_some() {
            faults.note(check_pads(json, &storage, &padded))?;
            shape.clone()
        } else {
            padded
        };
        let (id, data_type) = (id?, data_type?);
        faults.note(check_window(json, data_type, [&shape, &storage, &offsets, &padded_shape]))?;
        let tensor = Tensor { id, data_type, shape, storage, offsets, padded_shape, buffer: buffer? };
        if let Some((index, _, known)) = self.tensors.get_full(&id) {
            if let Some(field) = self.difference(known, &tensor) {
                let message = format!("tensor {id} has another {field} here than where it was first used");
                faults.push(json.fault(Code::DuplicateDefinition, message));
                return None;
            }
            return Some(TensorIndex(index as u32));
        }
        let bytes = tensor.storage_bytes();
        let buffer = &mut self.buffers[tensor.buffer.0 as usize];
        buffer.bytes = buffer.bytes.max(bytes);
        let (index, _) = self.tensors.insert_full(id, tensor);
        Some(TensorIndex(index as u32))
    }

    /// In what a tensor differs from the one of the same number, in the file's words.
    fn difference(&self, known: &Tensor, tensor: &Tensor) -> Option<String> {
        let buffer = |index: BufferIndex| self.buffers[index.0 as usize].id;
        let differs = [
            ("DataType", known.data_type != tensor.data_type),
            ("Shape", known.shape != tensor.shape),
            ("Strides", known.storage != tensor.storage),
            ("Offsets", known.offsets != tensor.offsets),
            ("PaddedShape", known.padded_shape != tensor.padded_shape),
        ];
        if known.buffer != tensor.buffer {
            return Some(format!("Buffer ({} and not {})", buffer(tensor.buffer), buffer(known.buffer)));
        }
        differs.iter().find(|(_, differs)| *differs).map(|(field, _)| (*field).to_owned())
    }

    /// Reads a use of a buffer, likewise.
    fn buffer(&mut self, json: &Json, faults: &mut Faults, evidence: &mut Evidence) -> Option<BufferIndex> {
        let mark = faults.mark();
        let id = faults.note(json.get("Id").and_then(|id| id.integer::<u64>()))?;
        if self.wrong.1.contains(&id) {
            return None;
        }
        let remote = faults.note(self.remote(json));
        let is_external =
            faults.note(json.find("IsExternal").and_then(|flag| flag.map(|flag| flag.boolean()).transpose()));
        evidence.buffer(is_external.flatten().is_some());
        let send_tags = faults.note(self.tags(json, "SendTags", remote.flatten()));
        let receive_tags = faults.note(self.tags(json, "RecvTags", remote.flatten()));
        if faults.mark() > mark {
            self.wrong.1.insert(id);
        }
        let buffer = Buffer {
            id,
            remote: remote?,
            is_external: is_external?.unwrap_or(false),
            send_tags: send_tags?,
            receive_tags: receive_tags?,
            bytes: 0,
        };
        if let Some((index, _, known)) = self.buffers.get_full(&id) {
            let differs = [
                ("Rank", known.remote != buffer.remote),
                ("IsExternal", known.is_external != buffer.is_external),
                ("SendTags", known.send_tags != buffer.send_tags),
                ("RecvTags", known.receive_tags != buffer.receive_tags),
            ];
            if let Some((field, _)) = differs.iter().find(|(_, differs)| *differs) {
                let message = format!("buffer {id} has another {field} here than where it was first used");
                faults.push(json.fault(Code::DuplicateDefinition, message));
                self.wrong.1.insert(id);
                return None;
            }
            return Some(BufferIndex(index as u32));
        }
        Some(BufferIndex(self.buffers.insert_full(id, buffer).0 as u32))
    }

    /// The rank that a buffer belongs to, if it is another one.
    fn remote(&self, json: &Json) -> Result<Option<u32>, Diagnostic> {
        let rank = self.rank_of(&json.get("Rank")?)?;
        Ok(rank.filter(|&rank| rank != self.rank))
    }

    /// A rank, `None` for -1.
    fn rank_of(&self, json: &Json) -> Result<Option<u32>, Diagnostic> {
        let rank = json.integer::<i64>()?;
        match u32::try_from(rank) {
            Ok(rank) if rank < self.world_size => Ok(Some(rank)),
            _ if rank == -1 => Ok(None),
            _ => {
                let message = format!("rank {rank} isn't one of the {} ranks, nor -1", self.world_size);
                Err(json.fault(Code::NumberOutOfRange, message))
            }
        }
    }

    fn tags(&self, json: &Json, key: &str, remote: Option<u32>) -> Result<Vec<Tag>, Diagnostic> {
        let mut tags = Vec::new();
        for pair in json.get(key)?.list()? {
            let [rank, tag] = &pair.list()?[..] else {
                return Err(pair.fault(Code::Syntax, "a pair of a rank and a tag expected"));
            };
            let named = self.rank_of(rank)?.filter(|&rank| rank != self.rank);
            if remote.is_none() && named.is_none() {
                return Err(pair.fault(Code::ParameterInvalid, "the message is from this rank to itself"));
            }
            tags.push(Tag { rank: named, tag: tag.integer()? });
        }
        tags.sort_unstable();
        tags.dedup();
        Ok(tags)
    }
}

fn data_type(json: &Json) -> Result<DataType, Diagnostic> {
    let name = json.get("DataType")?;
    let text = name.text()?;
    DataType::parse(text).ok_or_else(|| {
        let known: Vec<&str> = DataType::ALL.iter().map(|(name, _)| *name).collect();
        name.fault(
            Code::VariantUnsupported,
            format!("the data type {:?} isn't one of {}", shortened(text), known.join(", ")),
        )
    })
}

fn extents(json: &Json, key: &str) -> Result<Extents, Diagnostic> {
    let list = json.get(key)?;
    let numbers: Extents = list.list()?.iter().map(|number| number.integer::<usize>()).collect::<Result<_, _>>()?;
    if !(1..=MOST_AXES).contains(&numbers.len()) {
        let message = format!("{key} has {} axes, 1 to {MOST_AXES} are possible", numbers.len());
        return Err(list.fault(Code::VariantUnsupported, message));
    }
    Ok(numbers)
}

/// The oldest dialect's padding: units that storage is a multiple of.
fn check_pads(json: &Json, storage: &Extents, pads: &Extents) -> Result<(), Diagnostic> {
    let fits = |(extent, pad): (&usize, &usize)| *pad > 0 && extent % pad == 0;
    if storage.len() == pads.len() && storage.iter().zip(pads).all(fits) {
        return Ok(());
    }
    let message = format!("the Strides {storage:?} aren't multiples of the Pads {pads:?}");
    Err(json.fault(Code::ShapeMismatch, message))
}

/// Whether shape, storage, offsets and padded shape are a window: `0 < shape <= padded shape`, which lies inside of storage.
fn check_window(json: &Json, data_type: DataType, window: [&Extents; 4]) -> Result<(), Diagnostic> {
    let [shape, storage, offsets, padded] = window;
    let fault = |message: String| Err(json.fault(Code::ShapeMismatch, message));
    for (name, extents) in [("Strides", storage), ("Offsets", offsets), ("PaddedShape", padded)] {
        if extents.len() != shape.len() {
            return fault(format!("{name} has {} axes and Shape {}", extents.len(), shape.len()));
        }
    }
    for axis in 0..shape.len() {
        if shape[axis] == 0 {
            return fault(format!("Shape has the extent 0 along axis {axis}"));
        }
        if padded[axis] < shape[axis] {
            return fault(format!("PaddedShape {} along axis {axis} is less than Shape {}", padded[axis], shape[axis]));
        }
        if offsets[axis].checked_add(padded[axis]).is_none_or(|end| end > storage[axis]) {
            return fault(format!(
                "Offsets {} and PaddedShape {} along axis {axis} exceed Strides {}",
                offsets[axis], padded[axis], storage[axis]
            ));
        }
    }
    let bytes = storage.iter().try_fold(data_type.size(), |bytes, extent| bytes.checked_mul(*extent));
    if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
        let message = format!("an array of {storage:?} elements of {data_type} takes more than {MOST_BYTES} bytes");
        return Err(json.fault(Code::NumberOutOfRange, message));
    }
    Ok(())
}
