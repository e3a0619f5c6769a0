//! The metadata at the end: a description of each constant, and its array in base64.

use crate::types::element_type;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use mlc_ir::Attribute;
use mlc_runtime::params::array_header;
use std::io::{self, Write};

/// Objects that are there once: nothing, the map, the list, the device, and the empty string.
const FIXED: usize = 5;

/// Objects of a constant besides those of its extents: itself, its type, its shape.
const EACH: usize = 3;

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

fn encode(constant: &Attribute, out: &mut dyn Write) -> io::Result<()> {
    let ty = constant.ty();
    let mut encoder = EncoderWriter::new(out, &STANDARD);
    encoder.write_all(&array_header(element_type(ty.dtype), &ty.shape, constant.bytes().len()))?;
    encoder.write_all(constant.bytes())?;
    encoder.finish().map(|_| ())
}
