//! From a file's bytes to a [`Model`].

mod check;
mod flat;
mod flex;
pub(crate) mod nesting;

use crate::element_type::ElementType;
use crate::model::{Model, Operator, Quantization, Setting, Subgraph, Tensor};
use crate::schema::{self, Preset};
use crate::sparsity::{Level, Sparsity};
use bytes::Bytes;
use flat::{Fault, Flat};
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};
use std::borrow::Cow;

/// What every file has at byte 4.
const IDENTIFIER: &[u8] = b"TFL3";

/// The version of the format.
const VERSION: i32 = 3;

/// Reads a file.
///
/// # Errors
/// The first place that can't be read; or everything that refers to what isn't there.
pub fn read(bytes: &Bytes) -> Result<Model, Vec<Diagnostic>> {
    if bytes.get(4..8) != Some(IDENTIFIER) {
        let message = "the file doesn't begin as a TensorFlow Lite model does: TFL3 is expected at byte 4";
        return Err(vec![Diagnostic::error(Code::Syntax, Location::byte_offset(4), message)]);
    }
    let limits = flat::limits(bytes.len());
    let mut reader = Reader {
        file: bytes,
        flat: Flat::new(&limits, bytes),
        names: schema::operator_names(),
        place: String::new(),
        version: 0,
    };
    let model = reader.model().map_err(|fault| vec![damaged(&reader.place, &fault)])?;
    if reader.version != VERSION {
        let message = format!("the version of the format is {}, {VERSION} is known", reader.version);
        return Err(vec![Diagnostic::error(Code::Syntax, Location::default(), message)]);
    }
    check::check(&model)?;
    nesting::check(&model).map_err(|fault| vec![fault])?;
    Ok(model)
}

fn damaged(place: &str, fault: &Fault) -> Diagnostic {
    // The rest of the library's text is a trace of names that it wasn't given.
    let text = fault.to_string();
    let reason = text.lines().next().unwrap_or_default().trim_end_matches(['.', ':']);
    Diagnostic::error(Code::Syntax, Location::default(), format!("the file is damaged at {place}: {reason}"))
}

/// The type of operators, by their number in the file.
struct OperatorCode {
    kind: Cow<'static, str>,
    is_custom: bool,
}

struct Reader<'l, 'b> {
    file: &'b Bytes,
    flat: Flat<'l, 'b>,
    names: Vec<&'static str>,
    /// What is being read.
    place: String,
    /// What the file says.
    version: i32,
}

impl Reader<'_, '_> {
    fn model(&mut self) -> Result<Model, Fault> {
        self.place = "the model".into();
        let root = self.flat.follow(0)?;
        let [version, codes, subgraphs, _description, buffers] = self.flat.fields(root)?;
        self.version = self.flat.int32(version, 0)?;
        let codes = self.flat.tables(codes)?;
        let codes = codes.into_iter().map(|table| self.operator_code(table)).collect::<Result<Vec<_>, Fault>>()?;
        let buffers = self.flat.tables(buffers)?;
        let buffers = buffers.into_iter().enumerate().map(|(number, table)| self.buffer(number, table));
        let buffers = buffers.collect::<Result<Vec<_>, Fault>>()?;
        let subgraphs = self.flat.tables(subgraphs)?;
        let subgraphs =
            subgraphs.into_iter().enumerate().map(|(number, table)| self.subgraph(number, table, &codes, &buffers));
        Ok(Model { subgraphs: subgraphs.collect::<Result<Vec<_>, Fault>>()? })
    }

    /// Old files have the number in a byte; new ones in both places where it fits.
    fn operator_code(&mut self, table: usize) -> Result<OperatorCode, Fault> {
        let [old, custom, _version, number] = self.flat.fields(table)?;
        let number = self.flat.int32(number, 0)?.max(self.flat.int8(old, 0)?.into());
        if number == schema::CUSTOM {
            return Ok(OperatorCode { kind: self.flat.text(custom)?.into(), is_custom: true });
        }
        Ok(OperatorCode { kind: schema::operator_name(&self.names, number), is_custom: false })
    }

    /// A constant's bytes; `None` for what is computed.
    fn buffer(&mut self, number: usize, table: usize) -> Result<Option<Bytes>, Fault> {
        self.place = format!("buffer {number}");
        let [data, offset, size] = self.flat.fields(table)?;
        let place = self.flat.vector(data, 1)?;
        if !place.is_empty() {
            return Ok(Some(self.file.slice(place)));
        }
        // Large models have their constants behind the tables.
        let (offset, size) = (self.flat.int64(offset)?, self.flat.int64(size)?);
        let (Ok(offset), Ok(size)) = (usize::try_from(offset), usize::try_from(size)) else { return Ok(None) };
        if offset <= 1 || size == 0 {
            return Ok(None);
        }
        let end = self.flat.outside(offset, size)?;
        Ok(Some(self.file.slice(offset..end)))
    }

    fn subgraph(
        &mut self,
        number: usize,
        table: usize,
        codes: &[OperatorCode],
        buffers: &[Option<Bytes>],
    ) -> Result<Subgraph, Fault> {
        self.place = format!("subgraph {number}");
        let [tensors, inputs, outputs, operators, name] = self.flat.fields(table)?;
        let name = self.flat.text(name)?;
        let (inputs, outputs) = (self.numbers(inputs)?, self.numbers(outputs)?);
        let tensors = self.flat.tables(tensors)?.into_iter().enumerate();
        let tensors = tensors.map(|(place, table)| {
            self.place = format!("tensor {place} of subgraph {number}");
            self.tensor(table, buffers)
        });
        let tensors = tensors.collect::<Result<Vec<_>, Fault>>()?;
        let operators = self.flat.tables(operators)?.into_iter().enumerate();
        let operators = operators.map(|(place, table)| {
            self.place = format!("operator {place} of subgraph {number}");
            self.operator(place, table, codes)
        });
        Ok(Subgraph { name, operators: operators.collect::<Result<Vec<_>, Fault>>()?, tensors, inputs, outputs })
    }

    /// Numbers of tensors; those that can't be any are beyond all.
    fn numbers(&mut self, field: Option<usize>) -> Result<Vec<usize>, Fault> {
        let numbers = self.flat.ints32(field)?;
        Ok(numbers.into_iter().map(|number| usize::try_from(number).unwrap_or(usize::MAX)).collect())
    }

    fn tensor(&mut self, table: usize, buffers: &[Option<Bytes>]) -> Result<Tensor, Fault> {
        let [shape, ty, buffer, name, quantization, is_variable, sparsity, signature] = self.flat.fields(table)?;
        let buffer = self.flat.int32(buffer, 0)?;
        let is_open = self.flat.ints32(signature)?.iter().any(|&extent| extent < 0);
        Ok(Tensor {
            name: self.flat.text(name)?,
            shape: self.numbers(shape)?,
            is_open,
            element_type: ElementType(self.flat.int8(ty, 0)?),
            data: usize::try_from(buffer).ok().and_then(|buffer| buffers.get(buffer).cloned()).flatten(),
            quantization: self.quantization(quantization)?,
            is_variable: self.flat.int8(is_variable, 0)? != 0,
            sparsity: self.sparsity(sparsity)?,
        })
    }

    fn quantization(&mut self, field: Option<usize>) -> Result<Option<Quantization>, Fault> {
        let Some(field) = field else { return Ok(None) };
        let table = self.flat.follow(field)?;
        let [_min, _max, scales, zero_points, _details_type, _details, axis] = self.flat.fields(table)?;
        let scales = self.flat.floats32(scales)?;
        let mut zero_points = self.flat.ints64(zero_points)?;
        let axis = usize::try_from(self.flat.int32(axis, 0)?).unwrap_or(usize::MAX);
        if scales.is_empty() {
            return Ok(None);
        }
        zero_points.resize(scales.len(), zero_points.first().copied().unwrap_or(0));
        Ok(Some(Quantization { scales, zero_points, axis }))
    }

    fn sparsity(&mut self, field: Option<usize>) -> Result<Option<Sparsity>, Fault> {
        let Some(field) = field else { return Ok(None) };
        let table = self.flat.follow(field)?;
        let [order, blocks, levels] = self.flat.fields(table)?;
        let (order, blocks) = (self.numbers(order)?, self.numbers(blocks)?);
        let levels = self.flat.tables(levels)?.into_iter().map(|table| self.level(table));
        Ok(Some(Sparsity { order, blocks, levels: levels.collect::<Result<_, Fault>>()? }))
    }

    fn level(&mut self, table: usize) -> Result<Level, Fault> {
        let [format, size, segments_type, segments, indices_type, indices] = self.flat.fields(table)?;
        if self.flat.int8(format, 0)? == schema::DENSE {
            return Ok(Level::Dense(usize::try_from(self.flat.int32(size, 0)?).unwrap_or(usize::MAX)));
        }
        let segments = self.sparse_index(segments_type, segments)?;
        Ok(Level::Compressed { segments, indices: self.sparse_index(indices_type, indices)? })
    }

    /// Numbers in a table of its own, whose type says how wide they are.
    fn sparse_index(&mut self, kind: Option<usize>, field: Option<usize>) -> Result<Vec<usize>, Fault> {
        let Some(field) = field else { return Ok(Vec::new()) };
        let table = self.flat.follow(field)?;
        let [values] = self.flat.fields(table)?;
        match self.flat.int8(kind, 0)? {
            schema::INDEX_INT32 => self.numbers(values),
            schema::INDEX_UINT16 => Ok(self.flat.unsigned16(values)?.into_iter().map(usize::from).collect()),
            _ => {
                let place = self.flat.vector(values, 1)?;
                Ok(self.file[place].iter().copied().map(usize::from).collect())
            }
        }
    }

    fn operator(&mut self, index: usize, table: usize, codes: &[OperatorCode]) -> Result<Operator, Fault> {
        let [code, inputs, outputs, _type, options, custom_options, _format, _mutating, intermediates] =
            self.flat.fields(table)?;
        let code = usize::try_from(self.flat.int32(code, 0)?).ok().and_then(|code| codes.get(code));
        let unknown = || OperatorCode { kind: "an operator whose type isn't in the file".into(), is_custom: false };
        let OperatorCode { kind, is_custom } =
            code.map_or_else(unknown, |code| OperatorCode { kind: code.kind.clone(), ..*code });
        let inputs = self.flat.ints32(inputs)?;
        let custom_options = self.flat.vector(custom_options, 1)?;
        let options = if is_custom {
            let own = flex::read(&self.file[custom_options]).unwrap_or_default();
            own.into_iter().map(|(name, value)| (Cow::Owned(name), value)).collect()
        } else {
            self.options(&kind, options)?
        };
        Ok(Operator {
            index,
            kind,
            is_custom,
            inputs: inputs
                .into_iter()
                .map(|number| (number != -1).then(|| usize::try_from(number).unwrap_or(usize::MAX)))
                .collect(),
            outputs: self.numbers(outputs)?,
            intermediates: self.numbers(intermediates)?,
            options,
        })
    }

    fn options(&mut self, kind: &str, field: Option<usize>) -> Result<IndexMap<Cow<'static, str>, Setting>, Fault> {
        let places = match field {
            Some(field) => {
                let table = self.flat.follow(field)?;
                self.flat.fields::<8>(table)?
            }
            None => [None; 8],
        };
        let mut options = IndexMap::new();
        for (option, place) in schema::options(kind).iter().zip(places) {
            let setting =
                if place.is_some() { Some(self.setting(option.default, place)?) } else { option.default.setting() };
            options.extend(setting.map(|setting| (Cow::Borrowed(option.name), setting)));
        }
        Ok(options)
    }

    fn setting(&mut self, kind: Preset, place: Option<usize>) -> Result<Setting, Fault> {
        Ok(match kind {
            Preset::Choice => Setting::Int(self.flat.int8(place, 0)?.into()),
            Preset::Int(default) => Setting::Int(self.flat.int32(place, default)?.into()),
            Preset::Float => Setting::Float(self.flat.float32(place)?.into()),
            Preset::Flag | Preset::Held => Setting::Flag(self.flat.int8(place, 0)? != 0),
            Preset::Ints => Setting::Ints(self.flat.ints32(place)?.into_iter().map(i64::from).collect()),
            Preset::Text => Setting::Text(self.flat.text(place)?),
            Preset::Subgraph => Setting::Subgraph(usize::try_from(self.flat.int32(place, 0)?).unwrap_or(usize::MAX)),
        })
    }
}

#[cfg(test)]
mod tests;
