//! The memory of a running text: objects of bytes or of pointers. Every access is checked.

use super::types::{Base, Type};
use super::value::{Pointer, Target, Value};

/// The most bytes that all objects have together.
const MOST_BYTES: usize = 16 << 20;

/// Work for the limit of steps: so many bytes count as one.
const BYTES_PER_STEP: usize = 16;

/// What an object costs, so that there are never many.
const STEPS_PER_OBJECT: usize = 32;

/// Objects, and how much work and memory is left.
#[derive(Debug, Clone)]
pub struct Memory {
    objects: Vec<Object>,
    bytes: usize,
    steps: usize,
}

#[derive(Debug, Clone)]
struct Object {
    content: Content,
    /// Whether it can't be written.
    constant: bool,
    /// Whether it may be freed.
    allocated: bool,
}

#[derive(Debug, Clone)]
enum Content {
    /// Bytes, each with whether it was ever written.
    Bytes(Vec<u8>, Vec<bool>),
    Pointers(Vec<Option<Pointer>>),
    Freed,
}

const OUTSIDE: &str = "is outside of the memory";

impl Memory {
    /// Empty memory, and a number of steps.
    pub fn new(steps: usize) -> Memory {
        Memory { objects: Vec::new(), bytes: 0, steps }
    }

    /// Counts steps.
    ///
    /// # Errors
    /// When none are left.
    pub fn step(&mut self, count: usize) -> Result<(), String> {
        match self.steps.checked_sub(count) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.steps = 0;
                Err("it takes too many steps: is there a loop without end?".into())
            }
        }
    }

    fn work(&mut self, bytes: usize) -> Result<(), String> {
        self.step(bytes / BYTES_PER_STEP)
    }

    fn add(&mut self, content: Content, bytes: usize) -> Result<usize, String> {
        let total = self.bytes.saturating_add(bytes);
        if total > MOST_BYTES {
            return Err(format!("it takes more than {} MiB of memory", MOST_BYTES >> 20));
        }
        self.bytes = total;
        self.step(STEPS_PER_OBJECT)?;
        self.work(bytes)?;
        self.objects.push(Object { content, constant: false, allocated: false });
        Ok(self.objects.len() - 1)
    }

    fn check_size(&self, bytes: usize) -> Result<(), String> {
        if bytes > MOST_BYTES { Err(format!("it asks for {bytes} bytes of memory at once")) } else { Ok(()) }
    }

    /// An object for elements of a type; nothing is in it yet.
    pub fn variable(&mut self, ty: Type, count: usize) -> Result<usize, String> {
        let bytes = count.saturating_mul(ty.size().unwrap_or(1));
        self.check_size(bytes)?;
        let content = if ty.stars > 0 {
            Content::Pointers(vec![None; count])
        } else {
            Content::Bytes(vec![0; bytes], vec![false; bytes])
        };
        self.add(content, bytes)
    }

    /// A constant object of bytes.
    pub fn constant(&mut self, bytes: &[u8]) -> Result<usize, String> {
        self.check_size(bytes.len())?;
        let object = self.add(Content::Bytes(bytes.to_vec(), vec![true; bytes.len()]), bytes.len())?;
        self.objects[object].constant = true;
        Ok(object)
    }

    /// Zeroed bytes that can be freed.
    pub fn allocate(&mut self, bytes: usize) -> Result<usize, String> {
        self.check_size(bytes)?;
        let object = self.add(Content::Bytes(vec![0; bytes], vec![true; bytes]), bytes)?;
        self.objects[object].allocated = true;
        Ok(object)
    }

    /// Frees an object.
    pub fn free(&mut self, pointer: Pointer) -> Result<(), String> {
        let object = match (pointer.target, pointer.offset) {
            (Target::Null, _) => return Ok(()),
            (Target::Object(object), 0) => object,
            _ => return Err("only what was allocated can be freed".into()),
        };
        match &mut self.objects[object] {
            Object { content: Content::Freed, .. } => Err("it is freed twice".into()),
            Object { content, allocated: true, .. } => {
                let freed = std::mem::replace(content, Content::Freed);
                self.bytes -= freed.bytes();
                Ok(())
            }
            _ => Err("only what was allocated can be freed".into()),
        }
    }

    /// Bytes of an object.
    pub fn size(&self, object: usize) -> usize {
        self.objects[object].content.bytes()
    }

    /// Puts a new content in the place of a variable's.
    pub fn renew(&mut self, object: usize, ty: Type, count: usize) -> Result<(), String> {
        let new = self.variable(ty, count)?;
        if let Some(Object { content, .. }) = self.objects.pop() {
            self.bytes -= self.objects[object].content.bytes();
            self.objects[object].content = content;
        }
        debug_assert_eq!(new, self.objects.len());
        Ok(())
    }

    /// Moves a pointer by elements of what it points to.
    pub fn moved(&self, pointer: Pointer, elements: i128) -> Result<Pointer, String> {
        let size = pointer.ty.size().ok_or_else(|| format!("the size of `{}` isn't known", pointer.ty))?;
        let offset = elements.saturating_mul(size as i128).saturating_add(pointer.offset.into());
        let end = match pointer.target {
            Target::Object(object) => self.size(object),
            _ if elements == 0 => return Ok(pointer),
            _ => return Err("only pointers to elements can be moved".into()),
        };
        if !(0..=end as i128).contains(&offset) {
            return Err(format!("element {} {OUTSIDE}, which has {}", offset / size as i128, end / size));
        }
        Ok(Pointer { offset: offset as i64, ..pointer })
    }

    /// Some bytes that a pointer leads to.
    ///
    /// # Errors
    /// When they aren't there, or were never written.
    pub fn bytes(&mut self, pointer: Pointer, count: usize) -> Result<&[u8], String> {
        self.work(count)?;
        let object = target(pointer)?;
        match &self.objects[object].content {
            Content::Bytes(bytes, written) => {
                let range = range(pointer, count, bytes.len())?;
                if written[range.clone()].iter().all(|written| *written) {
                    Ok(&bytes[range])
                } else {
                    Err("it reads what was never written".into())
                }
            }
            Content::Pointers(_) => Err("pointers aren't bytes here".into()),
            Content::Freed => Err("it reads memory that was freed".into()),
        }
    }

    /// The bytes to write to, which count as written then.
    pub fn bytes_mut(&mut self, pointer: Pointer, count: usize) -> Result<&mut [u8], String> {
        self.work(count)?;
        let object = target(pointer)?;
        let Object { content, constant, .. } = &mut self.objects[object];
        if *constant {
            return Err("it writes to what can only be read".into());
        }
        match content {
            Content::Bytes(bytes, written) => {
                let range = range(pointer, count, bytes.len())?;
                written[range.clone()].fill(true);
                Ok(&mut bytes[range])
            }
            Content::Pointers(_) => Err("pointers aren't bytes here".into()),
            Content::Freed => Err("it writes to memory that was freed".into()),
        }
    }

    /// Copies bytes, and whether they were written.
    pub fn copy(&mut self, to: Pointer, from: Pointer, count: usize) -> Result<(), String> {
        self.work(count)?;
        let object = target(from)?;
        let (bytes, known) = match &self.objects[object].content {
            Content::Bytes(bytes, written) => {
                let range = range(from, count, bytes.len())?;
                (bytes[range.clone()].to_vec(), written[range].to_vec())
            }
            Content::Pointers(_) => return Err("pointers aren't bytes here".into()),
            Content::Freed => return Err("it reads memory that was freed".into()),
        };
        self.bytes_mut(to, count)?.copy_from_slice(&bytes);
        let object = target(to)?;
        if let Content::Bytes(all, written) = &mut self.objects[object].content {
            let range = range(to, count, all.len())?;
            written[range].copy_from_slice(&known);
        }
        Ok(())
    }

    /// The value that a pointer leads to.
    pub fn load(&mut self, pointer: Pointer) -> Result<Value, String> {
        let ty = pointer.ty;
        if ty.stars > 0 {
            let object = target(pointer)?;
            return match &self.objects[object].content {
                Content::Pointers(pointers) => {
                    let value = pointers.get(element(pointer)?).ok_or_else(|| format!("it {OUTSIDE}"))?;
                    let value = value.ok_or("it reads a pointer that was never assigned")?;
                    Ok(Value::Pointer(value))
                }
                _ => Err("there are no pointers in this memory".into()),
            };
        }
        let size = ty.size().ok_or_else(|| format!("there are no values of type `{ty}`"))?;
        let mut raw = [0; 8];
        raw[..size].copy_from_slice(self.bytes(pointer, size)?);
        Ok(match ty.base {
            Base::Int(int) => Value::Int(int.wrapped(u64::from_le_bytes(raw).into()), int),
            Base::Float => Value::Single(f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]])),
            _ => Value::Double(f64::from_le_bytes(raw)),
        })
    }

    /// Stores a value, which is converted to the type of the place.
    pub fn store(&mut self, pointer: Pointer, value: Value) -> Result<Value, String> {
        let value = value.converted(pointer.ty)?;
        let (raw, size) = match value {
            Value::Int(number, int) => ((number as u64).to_le_bytes(), int.bytes.into()),
            Value::Single(number) => (u64::from(number.to_bits()).to_le_bytes(), 4),
            Value::Double(number) => (number.to_le_bytes(), 8),
            Value::Void => return Err("there is no value to store".into()),
            Value::Pointer(stored) => {
                let (object, index) = (target(pointer)?, element(pointer)?);
                return match &mut self.objects[object].content {
                    Content::Pointers(pointers) => {
                        *pointers.get_mut(index).ok_or_else(|| format!("it {OUTSIDE}"))? = Some(stored);
                        Ok(value)
                    }
                    _ => Err("pointers can only be kept in variables".into()),
                };
            }
        };
        self.bytes_mut(pointer, size)?.copy_from_slice(&raw[..size]);
        Ok(value)
    }

    /// The text that a pointer leads to, up to its end.
    pub fn text(&mut self, pointer: Pointer) -> Result<Vec<u8>, String> {
        let object = target(pointer)?;
        let Content::Bytes(bytes, _) = &self.objects[object].content else {
            return Err("there is no text in this memory".into());
        };
        let start = usize::try_from(pointer.offset).ok().filter(|start| *start <= bytes.len());
        let rest = start.and_then(|start| bytes.get(start..)).ok_or_else(|| format!("the text {OUTSIDE}"))?;
        let length = rest.iter().position(|byte| *byte == 0).ok_or("the text has no end")?;
        self.bytes(pointer, length).map(<[u8]>::to_vec)
    }
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Content::Bytes(bytes, _) => bytes.len(),
            Content::Pointers(pointers) => 8 * pointers.len(),
            Content::Freed => 0,
        }
    }
}

fn target(pointer: Pointer) -> Result<usize, String> {
    match pointer.target {
        Target::Object(object) => Ok(object),
        Target::Null => Err("it follows the null pointer".into()),
        Target::Record(..) => Err("members of a structure are reached by their names".into()),
    }
}

fn range(pointer: Pointer, count: usize, length: usize) -> Result<std::ops::Range<usize>, String> {
    let start = usize::try_from(pointer.offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(count);
    if end > length {
        let what = match pointer.ty.size() {
            Some(size) => format!("element {} {OUTSIDE}, which has {}", pointer.offset / size as i64, length / size),
            None => format!("byte {} {OUTSIDE}, which has {length}", end - 1),
        };
        return Err(what);
    }
    Ok(start..end)
}

/// The number of a pointer among pointers.
fn element(pointer: Pointer) -> Result<usize, String> {
    let offset = usize::try_from(pointer.offset).map_err(|_| format!("it {OUTSIDE}"))?;
    if offset.is_multiple_of(8) { Ok(offset / 8) } else { Err("it reads half a pointer".into()) }
}
