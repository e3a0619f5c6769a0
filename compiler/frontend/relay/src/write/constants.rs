//! The metadata at the end: a description of each constant, and its array in base64.

use crate::types::element_type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mlc_ir::{Attribute, parallel};
use mlc_runtime::params::array_header;
use std::io::{self, Write};

/// Objects that are there once: nothing, the map, the list, the device, and the empty string.
const FIXED: usize = 5;

/// Objects of a constant besides those of its extents: itself, its type, its shape.
const EACH: usize = 3;

/// Bytes that are written at once: a multiple of three, so that the text of all but the last has no padding.
const PIECE: usize = 3 << 13;

pub(super) fn write_metadata(constants: &[Attribute], out: &mut dyn Write) -> io::Result<()> {
    let mut places = Vec::with_capacity(constants.len());
    let mut next = FIXED;
    for constant in constants {
        places.push(next);
        next += EACH + constant.ty().rank();
    }
    let references: Vec<String> = places.iter().map(usize::to_string).collect();
    writeln!(out, "\n#[metadata]\n{{\n  \"root\": 1,\n  \"nodes\": [\n    {{\"type_key\": \"\"}},")?;
    writeln!(out, "    {{\"type_key\": \"Map\", \"keys\": [\"relay.Constant\"], \"data\": [2]}},")?;
    writeln!(out, "    {{\"type_key\": \"Array\", \"data\": [{}]}},", references.join(", "))?;
    writeln!(
        out,
        "    {{\"type_key\": \"VirtualDevice\", \"attrs\": {{\"device_type_int\": \"-1\", \"memory_scope\": \"4\", \
         \"target\": \"0\", \"virtual_device_id\": \"-1\"}}}},"
    )?;
    write!(out, "    {{\"type_key\": \"runtime.String\"}}")?;
    for (index, (constant, place)) in constants.iter().zip(places).enumerate() {
        describe(constant, index, place, out)?;
    }
    write!(out, "\n  ],\n  \"b64ndarrays\": [")?;
    for (index, constant) in constants.iter().enumerate() {
        write!(out, "{}\n    \"", if index == 0 { "" } else { "," })?;
        encode(constant, out)?;
        write!(out, "\"")?;
    }
    writeln!(out, "\n  ],\n  \"attrs\": {{\"tvm_version\": \"0.14.0\"}}\n}}")
}

fn describe(constant: &Attribute, index: usize, place: usize, out: &mut dyn Write) -> io::Result<()> {
    let (ty, shape) = (constant.ty(), place + 2);
    write!(
        out,
        ",\n    {{\"type_key\": \"relay.Constant\", \"attrs\": {{\"_checked_type_\": \"{}\", \"data\": \"{index}\", \
         \"span\": \"0\", \"virtual_device_\": \"3\"}}}}",
        place + 1
    )?;
    write!(
        out,
        ",\n    {{\"type_key\": \"relay.TensorType\", \"attrs\": {{\"dtype\": \"{}\", \"shape\": \"{shape}\", \"span\": \
         \"0\"}}}}",
        ty.dtype.long_name()
    )?;
    let extents: Vec<String> = (0..ty.rank()).map(|axis| (shape + 1 + axis).to_string()).collect();
    write!(out, ",\n    {{\"type_key\": \"Array\"")?;
    if !extents.is_empty() {
        write!(out, ", \"data\": [{}]", extents.join(", "))?;
    }
    write!(out, "}}")?;
    for extent in &ty.shape {
        write!(
            out,
            ",\n    {{\"type_key\": \"IntImm\", \"attrs\": {{\"dtype\": \"int32\", \"span\": \"0\", \"value\": \
             \"{extent}\"}}}}"
        )?;
    }
    Ok(())
}

/// Writes a constant's array while the text of its next pieces is made.
fn encode(constant: &Attribute, out: &mut dyn Write) -> io::Result<()> {
    let (ty, bytes) = (constant.ty(), constant.bytes());
    let mut first = array_header(element_type(ty.dtype), &ty.shape, bytes.len());
    let (with_header, others) = bytes.split_at(bytes.len().min(PIECE - first.len() % PIECE));
    first.extend_from_slice(with_header);
    let pieces: Vec<&[u8]> = first.chunks(PIECE).chain(others.chunks(PIECE)).collect();
    let threads = parallel::threads(bytes.len());
    parallel::in_order(&pieces, threads, |piece| STANDARD.encode(piece), |text| out.write_all(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_one_text() {
        let header = array_header(element_type(mlc_ir::DType::F32), &[1], 4).len();
        for bytes in [4, PIECE - header % PIECE, PIECE, 3 * PIECE + 4, 1 << 20] {
            let elements = bytes.div_ceil(4);
            let values: Vec<f32> = (0..elements).map(|number| number as f32).collect();
            let constant = Attribute::from_f32(&[elements], &values).unwrap();
            let mut text = Vec::new();
            encode(&constant, &mut text).unwrap();
            let decoded = STANDARD.decode(&text).unwrap();
            let (first, rest) = decoded.split_at(header);
            assert_eq!(first, array_header(element_type(constant.ty().dtype), &[elements], 4 * elements));
            assert!(rest == constant.bytes(), "{elements} elements");
        }
    }
}
