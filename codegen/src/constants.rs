//! The constants of a module as C text. The text of large weights is several times their size, so it is written piece by piece
//! and never held as a whole.

use crate::loops::spelling::{c_type, harmless, literal};
use crate::module::{ConstantForm, Module, PackedConstant};
use crate::{hexadecimal, string_literals};
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType, Values, parallel};
use std::io::{self, Write};

/// Columns of a line of numbers at most.
const COLUMNS: usize = 100;
/// Elements whose lines are written by one thread at once; behind them a line ends.
const BLOCK: usize = hexadecimal::EACH_LINE << 10;
/// Singles of a constant from which on they are hexadecimal: that many are for C compilers, fewer for people, too.
const MANY: usize = 1024;
/// Elements that are converted at once where that takes memory.
const CONVERTED: usize = 4096;
/// Bytes of a constant from which on it is a string: C compilers read fewer at once, and people may want to.
const LONG: usize = 4096;
/// Bytes of a string whose lines are written by one thread at once; behind them a line ends.
const STRING_BLOCK: usize = string_literals::EACH_LINE << 10;

/// What stands before strings. C99 promises 4,095 characters (5.2.4.1), which compilers of today exceed but tell of; and there is no 0 at their end.
const STRINGS: &str = "\
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error \"the constants are little-endian: compile the model for the target 'generic'\"
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
#if defined(__clang__)
#if __has_warning(\"-Wunterminated-string-initialization\")
#pragma clang diagnostic ignored \"-Wunterminated-string-initialization\"
#endif
#elif __GNUC__ >= 15
#pragma GCC diagnostic ignored \"-Wunterminated-string-initialization\"
#endif
#endif
";

/// What defines a constant in code for machines that all keep the lowest byte of a number first, or for others.
pub fn form(value: &Attribute, is_little_endian: bool) -> ConstantForm {
    if is_little_endian && value.bytes().len() >= LONG { ConstantForm::String } else { ConstantForm::Numbers }
}

/// The C declaration of a constant, without a semicolon.
pub fn declaration(constant: &PackedConstant) -> String {
    let union = match constant.form {
        ConstantForm::Numbers => String::new(),
        ConstantForm::String => format!(
            "union {} {{\n  char bytes[{}];\n  {};\n}};\n",
            constant.symbol,
            constant.value.ty().bytes(),
            numbers(constant, "values")
        ),
    };
    format!("{union}extern {}", object(constant))
}

/// An array of a constant's numbers by some name.
fn numbers(constant: &PackedConstant, name: &str) -> String {
    let ty = constant.value.ty();
    format!("{} {name}[{}]", c_type(ty.dtype), ty.elements().max(1))
}

/// What C declares a constant as, and defines it as.
fn object(constant: &PackedConstant) -> String {
    let symbol = &constant.symbol;
    match constant.form {
        ConstantForm::Numbers => format!("const {}", numbers(constant, symbol)),
        ConstantForm::String => format!("const union {symbol} {symbol}"),
    }
}

/// The C expression that is a constant's array of numbers.
pub fn array(constant: &PackedConstant) -> String {
    match constant.form {
        ConstantForm::Numbers => constant.symbol.clone(),
        ConstantForm::String => format!("{}.values", constant.symbol),
    }
}

/// Writes the file that defines all constants of a module.
///
/// # Errors
/// Those of the writer.
pub fn write_constants(module: &Module, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "/* The constants of model {}. */\n#include <math.h>\n#include <stdint.h>\n\n", module.model_name)?;
    if module.linked_constants().next().is_none() {
        return out.write_all(b"/* There are none. */\ntypedef int mlc_no_constants;\n");
    }
    write!(
        out,
        "#if defined(__GNUC__)\n#define MLC_CONSTANT __attribute__((aligned({})))\n#else\n#define MLC_CONSTANT\n#endif\n",
        module.plan.alignment
    )?;
    if module.linked_constants().any(|constant| constant.form == ConstantForm::String) {
        out.write_all(STRINGS.as_bytes())?;
    }
    for constant in module.linked_constants() {
        let (name, ty) = (harmless(&constant.name), constant.value.ty());
        let (head, own) = (declaration(constant), object(constant));
        write!(out, "\n/* {name} {ty} */\n{head};\n{own} MLC_CONSTANT = {{\n")?;
        match constant.form {
            ConstantForm::Numbers => write_values(&constant.value, out)?,
            ConstantForm::String => {
                write_blocks(constant.value.bytes(), STRING_BLOCK, string_literals::lines, out)?;
            }
        }
        out.write_all(b"};\n")?;
    }
    Ok(())
}

/// The lines of an initialiser.
pub fn values(value: &Attribute) -> String {
    let mut text = Vec::new();
    // Writing to memory doesn't fail, and the text is ASCII.
    let _ = write_values(value, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

fn write_values(value: &Attribute, out: &mut dyn Write) -> io::Result<()> {
    let (dtype, bytes) = (value.ty().dtype, value.bytes());
    if bytes.is_empty() {
        return out.write_all(b"  0,\n");
    }
    let are_many = value.ty().elements() >= MANY;
    write_blocks(bytes, BLOCK * dtype.size(), |block| lines(dtype, block, are_many), out)
}

/// Writes the lines of blocks of so many bytes while those of the next ones are made.
fn write_blocks(
    bytes: &[u8],
    block_bytes: usize,
    lines: impl Fn(&[u8]) -> Vec<u8> + Sync,
    out: &mut dyn Write,
) -> io::Result<()> {
    let blocks: Vec<&[u8]> = bytes.chunks(block_bytes).collect();
    let threads = parallel::threads(bytes.len());
    parallel::in_order(&blocks, threads, |block| lines(block), |text| out.write_all(&text))
}

/// The lines of some elements.
fn lines(dtype: DType, block: &[u8], are_many: bool) -> Vec<u8> {
    if dtype == DType::F32 && are_many {
        return hexadecimal::lines(block);
    }
    let mut lines = Lines::default();
    if dtype == DType::F32 {
        lines.put_singles(block);
    } else {
        for bytes in block.chunks(CONVERTED * dtype.size()) {
            lines.put_values(dtype, bytes);
        }
    }
    lines.end()
}

/// Words separated by commas, in lines. Weights have millions of them.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    column: usize,
}

impl Lines {
    fn put_values(&mut self, dtype: DType, bytes: &[u8]) {
        let tensor = Tensor::from_le_bytes(TensorType::new(dtype, [bytes.len() / dtype.size()]), bytes);
        match tensor.values() {
            Values::Float(values) => {
                values.iter().for_each(|&value| self.put(&literal(Literal::float(dtype, value))));
            }
            Values::Integer(values) if dtype == DType::Bool => {
                values.iter().for_each(|value| self.put(&value.to_string()));
            }
            Values::Integer(values) => {
                values.iter().for_each(|&value| self.put(&literal(Literal::integer(dtype, value))));
            }
        }
    }

    fn put(&mut self, word: &str) {
        self.put_parts(word.as_bytes(), b",");
    }

    /// Numbers of single precision, exactly, of their little-endian bytes. Negative ones need no parentheses in an initialiser.
    fn put_singles(&mut self, bytes: &[u8]) {
        let mut digits = zmij::Buffer::new();
        for chunk in bytes.chunks_exact(4) {
            let value = f32::from_le_bytes(chunk.try_into().unwrap_or_default());
            if value.is_finite() {
                self.put_parts(digits.format_finite(value).as_bytes(), b"f,");
            } else {
                self.put(hexadecimal::not_finite(value));
            }
        }
    }

    /// A word and what follows it, a comma and perhaps more.
    fn put_parts(&mut self, word: &[u8], rest: &[u8]) {
        let length = word.len() + rest.len() + 1;
        if self.column > 0 && self.column + length > COLUMNS {
            self.text.push(b'\n');
            self.column = 0;
        }
        if self.column == 0 {
            self.text.push(b' ');
            self.column = 1;
        }
        self.text.push(b' ');
        self.text.extend_from_slice(word);
        self.text.extend_from_slice(rest);
        self.column += length;
    }

    fn end(mut self) -> Vec<u8> {
        self.text.push(b'\n');
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::MemoryPlan;

    #[test]
    fn constants_are_exact_and_lines_short() {
        let values = [0.1f32, -1.5, f32::INFINITY, 3.0e-41, 16_777_216.0];
        let value = Attribute::from_f32(&[5], &values).unwrap();
        let module = Module {
            model_name: "m".into(),
            plan: MemoryPlan { alignment: 16, ..MemoryPlan::default() },
            considered: crate::lower::Considered::default(),
            constants: vec![PackedConstant {
                symbol: "tvmgen_m_w".into(),
                name: "w */".into(),
                value,
                form: ConstantForm::Numbers,
                in_code: true,
                pool_offset: None,
            }],
            ..Module::default()
        };
        let mut text = Vec::new();
        write_constants(&module, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("/* w * / f32[5] */\nextern const float tvmgen_m_w[5];"), "{text}");
        assert!(text.contains("  0.1f, -1.5f, INFINITY, 3e-41f, 16777216.0f,\n};"), "{text}");
        assert!(text.lines().all(|line| line.len() <= COLUMNS));
    }

    #[test]
    fn large_constants_are_strings_where_the_lowest_byte_comes_first() {
        let of_bytes = |bytes: usize, is_little_endian| {
            let value = Attribute::from_f32(&[bytes / 4], &vec![1.5; bytes / 4]).unwrap();
            let form = form(&value, is_little_endian);
            PackedConstant {
                symbol: "tvmgen_m_w".into(),
                name: "w".into(),
                value,
                form,
                in_code: true,
                pool_offset: None,
            }
        };
        let text = |constant: PackedConstant| {
            let module = Module { constants: vec![constant], ..Module::default() };
            let mut text = Vec::new();
            write_constants(&module, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        for constant in [of_bytes(LONG - 4, true), of_bytes(LONG, false)] {
            assert_eq!(array(&constant), "tvmgen_m_w");
            let text = text(constant);
            assert!(
                text.contains("\nconst float tvmgen_m_w[") && !text.contains("ORDER") && !text.contains("union"),
                "{text}"
            );
        }
        let constant = of_bytes(LONG, true);
        assert_eq!(array(&constant), "tvmgen_m_w.values");
        assert_eq!(
            declaration(&constant),
            "union tvmgen_m_w {\n  char bytes[4096];\n  float values[1024];\n};\nextern const union tvmgen_m_w tvmgen_m_w"
        );
        let text = text(constant);
        assert!(text.contains("#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__"), "{text}");
        // 0x3fc00000, of which 0x3f is a question mark.
        let one = r"\000\000\300\?";
        let string =
            format!("  \"{}\"\n", one.repeat(string_literals::EACH_LINE / 4)).repeat(LONG / string_literals::EACH_LINE);
        let definition = format!("const union tvmgen_m_w tvmgen_m_w MLC_CONSTANT = {{\n{string}}};\n");
        assert!(text.ends_with(&definition), "{text}");
    }

    #[test]
    fn many_singles_are_hexadecimal() {
        let text = |count: usize| {
            let numbers = [0.1f32, -0.375, 0.0, f32::NEG_INFINITY].into_iter().cycle().take(count).collect::<Vec<_>>();
            values(&Attribute::from_f32(&[count], &numbers).unwrap())
        };
        assert!(text(MANY - 1).starts_with("  0.1f, -0.375f, 0.0f, -INFINITY, 0.1f,"));
        assert!(text(MANY).starts_with("  0x1.99999ap-4f, -0x1.8p-2f, 0.0f, -INFINITY, 0x1.99999ap-4f,"));
    }
}
