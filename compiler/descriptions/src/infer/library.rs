//! The functions that a description's text can call while types are inferred, apart from checks.

use super::host::{Records, count, integer, number_of, pointer};
use super::operator::ELEMENT_BYTES;
use crate::c::{DIRECTIONS, ELEMENTS, ELEMENTWISE, Function, IntType, Memory, Pointer, RESIZES, Record, Type, Value};

/// The result of a function.
pub(super) fn call(
    records: &Records,
    memory: &mut Memory,
    function: Function,
    arguments: &[Value],
) -> Result<Value, String> {
    match (function, arguments) {
        (Function::SprintShape, [buffer, rank, extents]) => {
            let shape = shape(memory, integer(*rank)?, pointer(*extents)?)?;
            let text = format!("{shape:?}");
            memory.bytes_mut(pointer(*buffer)?, text.len() + 1)?.copy_from_slice(&[text.as_bytes(), &[0]].concat());
            Ok(*buffer)
        }
        (Function::Free, [memory_]) => memory.free(pointer(*memory_)?).map(|()| Value::Void),
        (Function::Allocate, [bytes]) => allocate(memory, count(*bytes)?),
        (Function::Clone, [from, bytes]) => {
            let bytes = count(*bytes)?;
            let copy = allocate(memory, bytes)?;
            memory.copy(pointer(copy)?, pointer(*from)?, bytes)?;
            Ok(copy)
        }
        (Function::Duplicate, [from]) => {
            let mut text = memory.text(pointer(*from)?)?;
            text.push(0);
            let copy = allocate(memory, text.len())?;
            memory.bytes_mut(pointer(copy)?, text.len())?.copy_from_slice(&text);
            copy.converted(Type::CHAR.pointer())
        }
        (Function::Copy | Function::Move, [to, from, bytes]) => {
            memory.copy(pointer(*to)?, pointer(*from)?, count(*bytes)?)?;
            Ok(*to)
        }
        (Function::Set, [to, byte, bytes]) => {
            let byte = integer(*byte)? as u8;
            memory.bytes_mut(pointer(*to)?, count(*bytes)?)?.fill(byte);
            Ok(*to)
        }
        (Function::Equal | Function::EqualN | Function::Compare | Function::Length, _) => {
            texts(memory, function, arguments)
        }
        (Function::OutputConv | Function::OutputDeconv, _) => window(function, arguments),
        (Function::PaddingConv, _) => padding_conv(memory, arguments),
        (Function::PaddingDeconv, _) => padding_deconv(memory, arguments),
        (Function::Product, [rank, extents]) => {
            let shape = shape(memory, integer(*rank)?, pointer(*extents)?)?;
            let product = shape.iter().try_fold(1i32, |product, extent| product.checked_mul(*extent));
            product.map(Value::int).ok_or_else(|| format!("the product of {shape:?} is too large"))
        }
        (Function::NextMultiple, [number, _]) => {
            let number = integer(*number)?;
            let next = number.checked_add(7).ok_or("the number is too large")?;
            Ok(Value::int(next & !7))
        }
        (Function::SizeOfElement, [element]) => Ok(size(u64::from(element_bytes(integer(*element)?)?))),
        (Function::TensorBytes, [tensor]) => {
            let number = number_of(Record::Tensor, *tensor)?;
            let known = records.tensors[number].known.as_ref().ok_or("the tensor isn't defined yet")?;
            let bytes = u64::from(element_bytes(known.ty.element as i32)?);
            Ok(size(known.ty.length() as u64 * bytes))
        }
        (Function::ElementMax | Function::ElementMin, [element]) => {
            limit(integer(*element)?, function == Function::ElementMax).map(Value::Double)
        }
        (Function::ElementFromText, [text]) => number_of_name(memory, *text, &ELEMENTS),
        (Function::ElementwiseFromText, [text]) => number_of_name(memory, *text, &ELEMENTWISE),
        (Function::ResizeFromText, [text]) => number_of_name(memory, *text, &RESIZES),
        (Function::DirectionFromText, [text]) => number_of_name(memory, *text, &DIRECTIONS),
        (Function::FindTensor, [_, name]) => {
            let name = memory.text(pointer(*name)?)?;
            let found = records.tensors.iter().position(|tensor| tensor.name_text.as_bytes() == name);
            Ok(found.map_or(Value::Pointer(Pointer::NULL), |number| records.entry(number)))
        }
        _ => number(function, arguments),
    }
}

fn allocate(memory: &mut Memory, bytes: usize) -> Result<Value, String> {
    Ok(Value::Pointer(Pointer::object(memory.allocate(bytes)?, Type::VOID)))
}

fn size(bytes: u64) -> Value {
    Value::Int(bytes.into(), IntType::SIZE)
}

fn element_bytes(element: i32) -> Result<u8, String> {
    let bytes = usize::try_from(element).ok().and_then(|element| ELEMENT_BYTES.get(element));
    bytes.copied().ok_or_else(|| format!("there is no element type {element}"))
}

/// The extents that a pointer leads to.
pub(super) fn shape(memory: &mut Memory, rank: i32, extents: Pointer) -> Result<Vec<i32>, String> {
    let rank = usize::try_from(rank).ok().filter(|rank| *rank <= 64);
    let rank = rank.ok_or("a shape has 0 to 64 extents here")?;
    let bytes = memory.bytes(extents, 4 * rank)?;
    Ok(bytes.chunks_exact(4).map(|bytes| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect())
}

/// Comparisons and lengths of texts.
fn texts(memory: &mut Memory, function: Function, arguments: &[Value]) -> Result<Value, String> {
    let mut text = |number: usize| {
        let value = arguments.get(number).copied().unwrap_or(Value::Void);
        pointer(value).and_then(|pointer| memory.text(pointer))
    };
    let first = text(0)?;
    if function == Function::Length {
        return Ok(size(first.len() as u64));
    }
    let second = text(1)?;
    Ok(match function {
        Function::Compare => Value::int(first.cmp(&second) as i32),
        Function::Equal => Value::truth(first == second),
        _ => {
            let most = count(arguments.get(2).copied().unwrap_or(Value::Void))?;
            let cut = |text: &[u8]| text[..most.min(text.len())].to_vec();
            Value::truth(cut(&first) == cut(&second))
        }
    })
}

/// The number of a name in a list; -1 for one that isn't there.
fn number_of_name(memory: &mut Memory, text: Value, names: &[&str]) -> Result<Value, String> {
    let text = memory.text(pointer(text)?)?;
    let number = names.iter().position(|name| name.as_bytes() == text);
    Ok(Value::int(number.map_or(-1, |number| number as i32)))
}

/// The range of an element type in double precision.
fn limit(element: i32, greatest: bool) -> Result<f64, String> {
    let (low, high) = match ELEMENTS.get(usize::try_from(element).unwrap_or(usize::MAX)).copied() {
        Some("TL_DOUBLE") => (-f64::MAX, f64::MAX),
        Some("TL_FLOAT") => (-f64::from(f32::MAX), f64::from(f32::MAX)),
        Some("TL_INT64") => (i64::MIN as f64, i64::MAX as f64),
        Some("TL_INT32") => (i32::MIN.into(), i32::MAX.into()),
        Some("TL_INT16") => (i16::MIN.into(), i16::MAX.into()),
        Some("TL_INT8") => (i8::MIN.into(), i8::MAX.into()),
        Some("TL_UINT64") => (0.0, u64::MAX as f64),
        Some("TL_UINT32") => (0.0, u32::MAX.into()),
        Some("TL_UINT16") => (0.0, u16::MAX.into()),
        Some("TL_UINT8") => (0.0, u8::MAX.into()),
        Some(_) => (0.0, 1.0),
        None => return Err(format!("there is no element type {element}")),
    };
    Ok(if greatest { high } else { low })
}

fn integers(arguments: &[Value]) -> Result<Vec<i64>, String> {
    arguments.iter().map(|argument| integer(*argument).map(i64::from)).collect()
}

/// Extents of the results of convolutions and their transposes.
fn window(function: Function, arguments: &[Value]) -> Result<Value, String> {
    let numbers = integers(arguments)?;
    let extent = match (function, numbers.as_slice()) {
        (Function::OutputConv, [input, window, stride, padding, dilation]) => {
            if *stride == 0 {
                return Err("the stride is 0".into());
            }
            (input + padding - (i64::from(i32::try_from(window - 1).unwrap_or(i32::MAX)) * dilation + 1)) / stride + 1
        }
        (_, [input, window, stride, padding, output_padding, dilation]) => {
            stride * (input - 1) + output_padding + (window - 1) * dilation + 1 - padding
        }
        _ => return Err("it takes five or six numbers".into()),
    };
    i32::try_from(extent).map(Value::int).map_err(|_| format!("the extent {extent} is out of range"))
}

/// What is stored as padding at both ends of each axis.
fn store_padding(memory: &mut Memory, place: Pointer, pads: &[(i64, i64)]) -> Result<Value, String> {
    let (before, after) = (pads.iter().map(|pad| pad.0), pads.iter().map(|pad| pad.1));
    for (number, pad) in before.chain(after).enumerate() {
        let pad = i32::try_from(pad).map_err(|_| "the padding is out of range")?;
        let place = memory.moved(Pointer { ty: Type::INT, ..place }, number as i128)?;
        memory.store(place, Value::int(pad))?;
    }
    Ok(Value::Pointer(Pointer { ty: Type::INT, ..place }))
}

/// Both ends of a padding, the larger half where the mode says it; `None` for a mode that leaves the padding alone.
fn halves(mode: &[u8], total: i64) -> Option<(i64, i64)> {
    let total = total.max(0);
    match mode {
        b"SAME_UPPER" => Some((total / 2, total - total / 2)),
        b"SAME_LOWER" => Some((total - total / 2, total / 2)),
        b"VALID" => Some((0, 0)),
        _ => None,
    }
}

fn padding_conv(memory: &mut Memory, arguments: &[Value]) -> Result<Value, String> {
    let [padding, extents, window, stride, dilation, axes, mode] = arguments else {
        return Err("it takes seven arguments".into());
    };
    let axes = integer(*axes)?;
    let mut lists = Vec::new();
    for list in [extents, window, stride, dilation] {
        lists.push(shape(memory, axes, pointer(*list)?)?);
    }
    let mode = memory.text(pointer(*mode)?)?;
    let mut pads = Vec::new();
    let axes = 0..lists[0].len();
    for axis in axes {
        let [extent, window, stride, dilation] = [0, 1, 2, 3].map(|list: usize| i64::from(lists[list][axis]));
        if stride <= 0 {
            return Err("a stride isn't positive".into());
        }
        let results = (extent + stride - 1).div_euclid(stride);
        let Some(pad) = halves(&mode, (results - 1) * stride + (window - 1) * dilation + 1 - extent) else {
            return Ok(*padding);
        };
        pads.push(pad);
    }
    store_padding(memory, pointer(*padding)?, &pads)
}

fn padding_deconv(memory: &mut Memory, arguments: &[Value]) -> Result<Value, String> {
    let [padding, extents, results, window, stride, output_padding, dilation, axes, mode] = arguments else {
        return Err("it takes nine arguments".into());
    };
    let axes = integer(*axes)?;
    let mut lists = Vec::new();
    for list in [extents, results, window, stride, output_padding, dilation] {
        lists.push(shape(memory, axes, pointer(*list)?)?);
    }
    let mode = memory.text(pointer(*mode)?)?;
    let mut pads = Vec::new();
    let axes = 0..lists[0].len();
    for axis in axes {
        let [extent, result, window, stride, output_padding, dilation] =
            [0, 1, 2, 3, 4, 5].map(|list| i64::from(lists[list][axis]));
        let total = stride * (extent - 1) + output_padding + (window - 1) * dilation + 1 - result;
        let Some(pad) = halves(&mode, total) else { return Ok(*padding) };
        pads.push(pad);
    }
    store_padding(memory, pointer(*padding)?, &pads)
}

/// Functions of numbers.
fn number(function: Function, arguments: &[Value]) -> Result<Value, String> {
    let argument = |number: usize| {
        let value = arguments.get(number).copied().unwrap_or(Value::Void);
        value.number().ok_or_else(|| format!("a number expected, `{}` found", value.describe()))
    };
    let x = argument(0)?;
    let single = |number: f64| Value::Single(number as f32);
    Ok(match function {
        Function::Ceil => Value::Double(x.ceil()),
        Function::CeilF => single(x.ceil()),
        Function::Floor => Value::Double(x.floor()),
        Function::FloorF => single(x.floor()),
        Function::Round => Value::Double(x.round()),
        Function::RoundF => single(x.round()),
        Function::Truncate => Value::Double(x.trunc()),
        Function::SquareRoot => Value::Double(x.sqrt()),
        // Of a library that gives the same bits everywhere.
        Function::Power => Value::Double(libm::pow(x, argument(1)?)),
        Function::Exp => Value::Double(libm::exp(x)),
        Function::Log => Value::Double(libm::log(x)),
        Function::AbsoluteF => Value::Double(x.abs()),
        Function::Absolute => {
            let number = integer(arguments[0])?;
            Value::int(number.checked_abs().ok_or("the number has no absolute value")?)
        }
        _ => return Err("it can't be called here".into()),
    })
}
